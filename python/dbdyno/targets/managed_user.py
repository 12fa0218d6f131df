"""Running a program that refuses to be root when we are root.

PostgreSQL checks its effective user and stops if that is 0. Two ways round it, tried in this order:

* a user namespace in which we are an ordinary user: files stay root's outside, so that folders only root may
  enter (a checkout below /root) work as they are;
* where the kernel or a container forbids namespaces: another user of the machine. Programs and data then have
  to lie where that user may go, so both live below /var/tmp in a folder that we own.
"""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dbdyno.model.errors import RunError
from dbdyno.targets.managed_process import private_folder

#: Accounts that systems have for this, or for nothing in particular; the program looks its user's name up.
_ACCOUNTS = ("postgres", "nobody", "daemon")


@dataclass(frozen=True)
class OrdinaryUser:
    """How to run a program as somebody other than root. ``prefix`` goes before its command line."""

    prefix: tuple[str, ...] = ()
    #: The user that must own the data, if it is not ourselves.
    owner: tuple[int, int] | None = None

    def give(self, path: Path) -> None:
        """Make a folder and all below it the user's."""
        if self.owner is None:
            return
        os.chown(path, *self.owner, follow_symlinks=False)
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), *self.owner, follow_symlinks=False)

    def can_reach(self, path: Path) -> bool:
        return self.owner is None or _works([*self.prefix, "test", "-x", str(path)])


def _works(command: Sequence[str]) -> bool:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _account() -> pwd.struct_passwd:
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return entry
    raise RunError(f"PostgreSQL does not run as root, and none of the users {', '.join(_ACCOUNTS)} exists here")


def by_namespace(account: pwd.struct_passwd) -> OrdinaryUser | None:
    """In a user namespace where root's files appear as the account's; None where that is not allowed."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    prefix = (unshare, "--user", f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}", "--")
    return OrdinaryUser(prefix) if _works([*prefix, "true"]) else None


def by_account(account: pwd.struct_passwd) -> OrdinaryUser | None:
    """As the account itself."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return None
    prefix = (setpriv, f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--")
    owner = (account.pw_uid, account.pw_gid)
    return OrdinaryUser(prefix, owner) if _works([*prefix, "true"]) else None


@functools.cache
def ordinary_user() -> OrdinaryUser:
    """How to be somebody other than root here. Raises RunError when there is no way."""
    if os.geteuid() != 0:
        return OrdinaryUser()
    account = _account()
    user = by_namespace(account) or by_account(account)
    if user is None:
        raise RunError(
            "PostgreSQL does not run as root, and neither unshare nor setpriv (util-linux) can make us "
            f"the user {account.pw_name}; run dbdyno as an ordinary user"
        )
    return user


def open_folder(name: str) -> Path:
    """A folder below /var/tmp that is ours and that everybody may pass through."""
    top = private_folder(Path("/var/tmp") / f"dbdyno-{os.geteuid()}", mode=0o711)
    folder = top / name
    folder.mkdir(mode=0o711, exist_ok=True)
    folder.chmod(0o711)
    return folder


def reachable_copy(top: Path, parts: Sequence[str], probe: Path, user: OrdinaryUser) -> Path:
    """``top`` itself if the user can run ``probe`` below it, else a folder with copies (made once) of the
    parts of it. Symbolic links are kept."""
    if user.can_reach(probe):
        return top
    made = probe.stat().st_mtime_ns
    target = open_folder("programs") / sha256(f"{top}\0{parts}\0{made}".encode()).hexdigest()[:12]
    if not target.exists():
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        for part in parts:
            shutil.copytree(top / part, partial / part, symlinks=True)
        for path, folders, files in os.walk(partial):
            for name in (".", *folders, *files):
                entry = Path(path, name)
                if not entry.is_symlink():
                    mode = entry.stat().st_mode & 0o777
                    entry.chmod(mode | (0o555 if mode & 0o100 else 0o444))
        try:
            partial.rename(target)
        except OSError:  # another dbdyno made it meanwhile
            shutil.rmtree(partial)
    return target
