"""Finding a workload by name or file, and hashing its source.

A file's text is stored with the trial, so that a figure can always be traced to what was run.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
import textwrap
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from dbdyno.model.errors import UsageError, nearest
from dbdyno.workload.compiler import check_workload
from dbdyno.workload.language import Workload

GROUP = "dbdyno.workloads"
#: Attribute of a workload file's module that holds the text it was made from.
_TEXT = "__dbdyno_text__"


def shipped() -> list[str]:
    """Names of all installed workloads (entry points of the group ``dbdyno.workloads``)."""
    return sorted(_installed())


@cache
def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def workload_class(name: str) -> type[Workload]:
    """The class behind a shipped name or ``./file.py`` (``./file.py:Class`` when it holds several).

    Raises:
        UsageError: unknown name (with the nearest one), no such file, an error in the file.
    """
    if "/" in name or name.endswith(".py") or ".py:" in name:
        return _from_file(name)
    installed = _installed()
    if name not in installed:
        raise UsageError(f"unknown workload {name!r} (a file is written ./file.py){nearest(name, installed)}")
    loaded = installed[name].load()
    assert isinstance(loaded, type)
    assert issubclass(loaded, Workload)
    return loaded


def load_workload(name: str, options: Mapping[str, Any]) -> Workload:
    """An instance with its options set, and its transactions checked against the workload language.

    Raises:
        UsageError: no such workload, a wrong option, constructs outside the language (all of them, with their lines).
    """
    label = name if name in shipped() else Path(name.partition(".py")[0]).name
    workload = workload_class(name)(options, name=label)
    workload.reference = name
    check_workload(workload)
    return workload


def _from_file(name: str) -> type[Workload]:
    path_text, _, wanted = name.partition(".py:")
    path = Path(path_text if path_text.endswith(".py") else path_text + ".py")
    if not path.is_file():
        raise UsageError(f"workload file {path} does not exist")
    module = _module(path)
    classes = {
        key: member
        for key, member in vars(module).items()
        if isinstance(member, type) and issubclass(member, Workload) and member.__module__ == module.__name__
    }
    if wanted:
        if wanted not in classes:
            raise UsageError(f"{path} has no workload {wanted!r}{nearest(wanted, classes)}")
        return classes[wanted]
    if len(classes) != 1:
        names = ", ".join(classes) or "none"
        raise UsageError(f"{path} must define one Workload class, found {names}; name one as {path}:CLASS")
    return next(iter(classes.values()))


def _module(path: Path) -> ModuleType:
    """The file's text, executed once; a changed file is another module, so that text, hash and code agree."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"workload file {path} cannot be read: {_one_line(error)}") from error
    digest = hashlib.sha256(str(path.resolve()).encode() + text.encode())
    name = f"dbdyno_workload_{digest.hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    # Entries without a time are never checked against the file: inspect sees the text that runs.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    sys.modules[name] = module
    setattr(module, _TEXT, text)
    try:
        exec(compile(text, str(path), "exec"), vars(module))
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SyntaxError) and error.filename == str(path):
            raise UsageError(f"{path}:{error.lineno}: {error.msg}") from error
        if not isinstance(error, Exception):
            raise
        raise UsageError(f"{path}{_line_in(error, path)}: {type(error).__name__}: {_one_line(error)}") from error
    return module


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _line_in(error: BaseException, path: Path) -> str:
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def source_text(workload: Workload) -> str:
    """Source of the workload's class and of those bases that are not the language's own."""
    parts = [
        getattr(sys.modules[module], _TEXT, None) or inspect.getsource(sys.modules[module])
        for module in dict.fromkeys(
            base.__module__ for base in type(workload).__mro__ if issubclass(base, Workload) and base is not Workload
        )
    ]
    return "\n".join(parts)


def program_hash(workload: Workload) -> str:
    """sha256 over source, class and options: two trials with the same hash ran the same program."""
    digest = hashlib.sha256(source_text(workload).encode())
    digest.update(type(workload).__qualname__.encode())
    digest.update(repr(sorted(workload.options.items())).encode())
    return digest.hexdigest()


def writes(workload: Workload, method: str) -> bool:
    """Whether a transaction may write: it or a method of ``self`` it calls says ``db.execute`` or ``db.batch``.

    A database with one writer at a time must know before BEGIN, for a read lock cannot always be raised later.
    """
    return _writes(type(workload), method)  # type: ignore[arg-type]  # a class is hashable


@lru_cache(maxsize=1024)
def _writes(cls: type[Workload], method: str) -> bool:
    seen: set[str] = set()
    pending = [method]
    while pending:
        name = pending.pop()
        function = getattr(cls, name, None)
        if name in seen or not inspect.isfunction(function):
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if isinstance(owner, ast.Name) and owner.id == "db" and node.func.attr in ("execute", "batch"):
                    return True
                if isinstance(owner, ast.Name) and owner.id == "self":
                    pending.append(node.func.attr)
                if isinstance(owner, ast.Call):  # super().method(...)
                    pending.append(node.func.attr)
    return False
