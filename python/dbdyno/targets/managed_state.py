"""What dbdyno remembers of its servers: ``server.json`` in a folder of each, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dbdyno.model.errors import RunError

FORMAT = 1


@dataclass(frozen=True)
class State:
    """One server as last known. ``pid`` 0 means that it was stopped cleanly. ``create_time`` is the start of
    process ``pid`` in seconds since the epoch (psutil); ``initialised`` that it once answered."""

    name: str
    kind: str
    data_dir: str
    socket: str
    port: int
    pid: int = 0
    create_time: float = 0.0
    version: str = ""
    initialised: bool = False
    options: Mapping[str, str | None] = field(default_factory=dict)


def default_home() -> Path:
    """Where managed servers live: $DBDYNO_HOME, or dbdyno below $XDG_DATA_HOME or ~/.local/share."""
    if home := os.environ.get("DBDYNO_HOME"):
        return Path(home)
    if data := os.environ.get("XDG_DATA_HOME"):
        return Path(data) / "dbdyno"
    return Path.home() / ".local" / "share" / "dbdyno"


@dataclass(frozen=True)
class Shelf:
    """The folder of one server: HOME/servers/NAME."""

    folder: Path

    @classmethod
    def of(cls, name: str, home: Path | None) -> Shelf:
        # Resolved, so that the data folder's name in a command line is always the same text.
        return cls((home or default_home()).absolute().resolve() / "servers" / name)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def state_file(self) -> Path:
        return self.folder / "server.json"

    @property
    def lock_file(self) -> Path:
        # Beside the folder: it must outlive the folder's removal.
        return self.folder.parent / f".{self.folder.name}.lock"

    def read(self) -> State | None:
        """The state, None if there is no such server. Raises RunError if the file cannot be understood."""
        try:
            text = self.state_file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise RunError(f"{self.state_file} cannot be read: {error.strerror}") from None
        try:
            raw = json.loads(text)
            written = raw.pop("format")
            if written != FORMAT:
                raise RunError(f"{self.state_file} has format {written}, this dbdyno knows {FORMAT}; use the newer one")
            return State(
                name=str(raw["name"]),
                kind=str(raw["kind"]),
                data_dir=str(raw["data_dir"]),
                socket=str(raw["socket"]),
                port=int(raw["port"]),
                pid=int(raw["pid"]),
                create_time=float(raw["create_time"]),
                version=str(raw["version"]),
                initialised=bool(raw["initialised"]),
                options={str(k): None if v is None else str(v) for k, v in raw["options"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(
                f"{self.state_file} is damaged; if its server is not running, remove the folder {self.folder}"
            ) from None

    def make(self) -> None:
        """Make the folder. Raises RunError if that is not possible."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be made: {error.strerror}") from None

    def write(self, state: State) -> None:
        """Replace the state: after a crash the file is the old one or the new one. Raises RunError if the disk
        is full or not ours to write to."""
        temporary = self.state_file.with_name(f"server.json.{os.getpid()}")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                json.dump({"format": FORMAT, **asdict(state)}, file, indent=1)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.state_file)
        except OSError as error:
            raise RunError(f"{self.state_file} cannot be written: {error.strerror}") from None
