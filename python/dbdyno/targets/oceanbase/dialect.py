"""SQL as OceanBase writes it in MySQL mode."""

from __future__ import annotations

from typing import ClassVar

from dbdyno.targets.mysql.dialect import MysqlDialect


class OceanbaseDialect(MysqlDialect):
    """MySQL's, without storage engines."""

    engines: ClassVar[bool] = False
