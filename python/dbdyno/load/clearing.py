"""``cleanup``: drop the workload's tables, and nothing else."""

from __future__ import annotations

from dbdyno.load import ledger
from dbdyno.load.failures import told
from dbdyno.load.inspection import connected
from dbdyno.model.errors import RunError
from dbdyno.targets.target import Target
from dbdyno.workload import Workload


def cleanup(target: Target, workload: Workload) -> list[str]:
    """Drop the tables of the workload that exist; their names.

    Tables with the right columns are the workload's, whoever made them, as with sysbench.

    Raises:
        RunError: a table of that name has other columns (nothing is dropped then), or a statement failed.
    """
    with connected(target) as connection, told(target, f"drop the tables of {workload.label}"):
        existing = target.family.existing_tables(connection)
        entries = ledger.read(connection) if ledger.NAME in existing else {}
        doomed = []
        for table in (*workload.schema(), *workload.tables_of_runs(existing)):
            columns = existing.get(table.name.lower())
            if columns is None:
                continue
            wanted = {column.name.lower() for column in table.columns}
            unfinished = table.name in entries and not entries[table.name].finished
            if set(columns) != wanted and not unfinished:
                raise RunError(
                    f"table {table.name} on {target.label} is not one of {workload.label}: it has the columns"
                    f" {', '.join(columns)}; nothing was dropped"
                )
            doomed.append(table.name)
        for name in reversed(doomed):  # a table before those that it refers to
            connection.execute(target.family.dialect.drop_table(name))
        if entries or ledger.NAME in existing:
            ledger.forget(target, connection, [table.name for table in workload.schema()])
    return doomed
