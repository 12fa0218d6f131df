"""SQL as TiDB writes it."""

from __future__ import annotations

from typing import ClassVar

from dbdyno.targets.mysql.dialect import MysqlDialect


class TidbDialect(MysqlDialect):
    """MySQL's, without storage engines."""

    engines: ClassVar[bool] = False
