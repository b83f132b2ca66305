"""A headless Chromium, spoken to over pipes: pages at any width, in light and dark.

The protocol is Chromium's own (DevTools); nothing has to be installed for it.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


def find_chromium() -> str:
    """The browser's command; without one the test is skipped, or fails."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None and os.environ.get("KERNLETS_REQUIRE_BROWSER") == "1":
        pytest.fail("no chromium, but KERNLETS_REQUIRE_BROWSER=1")
    return found or pytest.skip("no chromium: apt-get install chromium")


class Chromium:
    """One browser with one page; `with Chromium() as page: page.open(...)`."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        self.complaints: list[str] = []
        """Errors and warnings of the console since the last `open`."""

    def __enter__(self) -> Chromium:
        # The browser reads commands from file 3 and writes answers to file 4.
        read_by_it, written = os.pipe()
        read, written_by_it = os.pipe()
        profile = f"--user-data-dir={self._folder.name}"
        words = [find_chromium(), *FLAGS, "--remote-debugging-pipe", profile]
        redirect = f'exec "$@" 3<&{read_by_it} 4>&{written_by_it}'
        self._process = subprocess.Popen(
            ["bash", "-c", redirect, "bash", *words],
            pass_fds=(read_by_it, written_by_it),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_by_it)
        os.close(written_by_it)
        self._to, self._from = os.fdopen(written, "wb", 0), os.fdopen(read, "rb")
        self._session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_: Any) -> None:
        self._to.close()  # the browser ends when nobody can tell it anything
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._from.close()
        self._folder.cleanup()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one command."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser has gone"
            text += byte
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, params: dict[str, Any]) -> None:
        if event == "Log.entryAdded" and params["entry"]["level"] in LOUD:
            self.complaints.append(params["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and params["type"] in LOUD:
            self.complaints.append(str(params["args"]))
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.complaints.append(f"asked for {url}")

    def open(self, page: Path | str, width: int, height: int, scheme: str) -> None:
        """Load a page at this size, for a reader who prefers light or dark."""
        self.complaints.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        preferred = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[preferred])
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript on the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))


LOUD = ("error", "warning", "assert")
