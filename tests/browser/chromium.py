"""A real Chromium, driven over its debugging pipe (DevTools protocol): no driver, no port, no other package."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def executable() -> str | None:
    """Path of an installed Chromium; None without one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser process with one page. What the page logs, throws or asks of a network is kept."""

    def __init__(self, program: str, profile: Path) -> None:
        """Start it, headless and without any background traffic."""
        to_read, self._send = os.pipe()
        self._receive, to_write = os.pipe()
        flags = (
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"),
        )

        def place_pipes() -> None:  # the browser reads its descriptor 3 and writes its descriptor 4
            ends = os.dup(to_read), os.dup(to_write)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [program, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place_pipes,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            self._session = None
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._send)
        os.close(self._receive)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer; events on the way are kept."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return dict(answer["result"])
        raise EOFError("the browser is gone")

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            while b"\0" in self._buffer:
                text, _, self._buffer = self._buffer.partition(b"\0")
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                yield message
            data = os.read(self._receive, 1 << 20)
            if not data:
                raise EOFError("the browser is gone")
            self._buffer += data

    def emulate(self, width: int = 1280, height: int = 900, *, dark: bool = False, scale: float = 1) -> None:
        """Size of the window in CSS pixels, and what the reader prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path, *, draws: bool = True) -> None:
        """Load a file and wait until it is there (and, unless told otherwise, laid out by its scripts)."""
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.readyState === 'complete'")
        if draws:
            self.wait_frame()

    def wait_frame(self) -> None:
        """Let the page lay itself out and draw."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def wait(self, condition: str, timeout_s: float = 20.0) -> None:
        """Wait until a JavaScript expression is true."""
        until = time.monotonic() + timeout_s
        while not self.value(condition):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """Value of a JavaScript expression (a promise is awaited)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = False) -> bytes:
        """Write a PNG of the window, or of the whole page."""
        data = base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])
        path.write_bytes(data)
        return data

    def pdf(self, path: Path) -> bytes:
        """Print to a PDF on A4."""
        answer = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=False)
        data = base64.b64decode(answer["data"])
        path.write_bytes(data)
        return data

    def complaints(self) -> list[str]:
        """Everything that the page logged, threw, or was refused by its policy."""
        kinds: dict[str, Callable[[dict[str, Any]], str]] = {
            "Runtime.consoleAPICalled": lambda event: str([each.get("value") for each in event["args"]]),
            "Runtime.exceptionThrown": lambda event: str(event["exceptionDetails"]),
            "Log.entryAdded": lambda event: str(event["entry"]["text"]),
        }
        return [kinds[event["method"]](event["params"]) for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself and data: excepted."""
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent" and event["params"].get("type") != "Document"
        ]
        return [url for url in asked if not url.startswith("data:")]
