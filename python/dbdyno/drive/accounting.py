"""The accounting identity, verified at the end of every run.

    scheduled = committed + rolled_back + failed + unknown + skipped + unfinished

A run that violates it has no result: some transaction was lost or counted twice.
"""

from __future__ import annotations

from dbdyno.model.errors import RunError
from dbdyno.model.sample import Counts


def verify(counts: Counts) -> None:
    """Check the identity.

    Raises:
        RunError: it does not hold; the message has both sides.
    """
    if counts.scheduled != counts.ended:
        raise RunError(
            f"the run has no result: {counts.scheduled} transactions were scheduled but {counts.ended} accounted for "
            f"({counts.committed} committed, {counts.rolled_back} rolled back, {counts.failed} failed, "
            f"{counts.unknown} unknown, {counts.skipped} skipped, {counts.unfinished} unfinished); please report this"
        )
