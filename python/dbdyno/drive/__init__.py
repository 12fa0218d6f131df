"""One trial. Two drives stand behind one interface (job.py); one conformance suite for both."""

from __future__ import annotations

from dbdyno.drive.dbapi import DbApiDrive
from dbdyno.drive.engine import EngineDrive
from dbdyno.drive.job import Drive, Job, Stop
from dbdyno.targets.target import Target

__all__ = ["DbApiDrive", "Drive", "EngineDrive", "Job", "Stop", "drive_for"]


def drive_for(target: Target) -> Drive:
    """The drive that runs trials on ``target``: the engine where it speaks the family's protocol."""
    return DbApiDrive() if target.family.wire(target.address, None) is None else EngineDrive()
