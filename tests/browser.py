"""A headless browser for tests of pages, driven through its debugging pipe: no driver and no network is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--remote-debugging-pipe")
PATIENCE = 60.0
"""Seconds to wait for an answer: a busy machine takes a few to start a browser."""
KEYS = {"Escape": 27, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39}


def executable() -> str | None:
    """The browser of this machine, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser with a profile of its own.

    requests  addresses that the page has asked for
    errors    exceptions and messages of errors on its console
    """

    def __init__(self, size: tuple[int, int] = (1600, 950), dark: bool = False) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._count = 0
        self._rest = b""
        self._profile = tempfile.mkdtemp(prefix="browser")
        program = executable()
        assert program is not None
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()

        def connect() -> None:
            os.dup2(os.dup(theirs_in), 1003)               # clear of the pipes, whatever their numbers are
            os.dup2(os.dup(theirs_out), 1004)
            os.dup2(1003, 3)
            os.dup2(1004, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._profile}", f"--window-size={size[0]},{size[1]}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=connect, env={**os.environ, "HOME": self._profile})
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1,
                  mobile=False)
        self.dark(dark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    # -- what a user does ---------------------------------------------------------------------------------------------
    def open(self, file: Path, fragment: str = "") -> float:
        """Open a page from disk; the seconds until it is ready, which it says by `data-ready` of its body."""
        started = time.monotonic()
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=file.resolve().as_uri() + fragment)
        while not self("document.body && document.body.dataset.ready === 'true'"):
            assert time.monotonic() - started < PATIENCE, self.errors
            time.sleep(0.01)
        return time.monotonic() - started

    def __call__(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press and release keys."""
        for key in keys:
            code = KEYS.get(key, ord(key[0].upper()))
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            for kind in ("keyDown", "keyUp"):
                self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                          **(text if kind == "keyDown" else {}))

    def click(self, selector: str, number: int = 0) -> None:
        """Click the middle of the visible part of an element, once what was done before is drawn."""
        self("Promise.race([new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))), "
             "new Promise(done => setTimeout(done, 200))]).then(() => true)")
        x, y = self(f"(() => {{ const r = document.querySelectorAll({json.dumps(selector)})[{number}]"
                    ".getBoundingClientRect(); return [r.left + Math.min(r.width, 60) / 2, r.top + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def dark(self, on: bool) -> None:
        """Have the user prefer dark colours, or light ones."""
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def picture(self, file: Path) -> None:
        """Write what is seen as a PNG file."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))

    # -- the pipe -----------------------------------------------------------------------------------------------------
    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol, and wait for its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._event(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _event(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(str(parameters["args"]))
