"""The page of mlc serve in a browser: a conversation, its stop button, the page of a model, and no other requests."""
from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlc
from tests.browser import Browser, executable

pytestmark = [pytest.mark.slow, pytest.mark.skipif(executable() is None, reason="there is no browser")]
ASSISTANT = str(Path(__file__).parent.parent / "examples" / "assistant")
PATIENCE = 120.0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("saved") / "f.mlc")
    mlc.save(mlc.compile(lambda x: x * 2), path, args=[mlc.spec("B", 2)])
    words = [sys.executable, "-m", "mlc.tools.cli", "serve", ASSISTANT, path, "--port", "0", "--slots", "1",
             "--grace", "1"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines: list[str] = []
        while not any("is ready" in line for line in lines):
            lines.append(server.stderr.readline())
        found = re.search(r"http://\S+", "".join(lines))
        assert found is not None
        yield found[0]
        server.terminate()
        assert server.wait(30) == 0


def until(page: Browser, condition: str) -> None:
    started = time.monotonic()
    while not page(condition):
        assert time.monotonic() - started < PATIENCE, (condition, page.errors)
        time.sleep(0.02)


@pytest.mark.parametrize("dark", [False, True])
def test_a_conversation(address: str, dark: bool, tmp_path: Path) -> None:
    with Browser((1100, 700), dark) as page:
        page.send("Page.navigate", url=address)
        until(page, "document.body && document.body.dataset.ready === 'true'")
        page("document.getElementById('text').focus()")
        page.send("Input.insertText", text="What does mlc.cumsum do?")
        page.press("Enter")
        until(page, "document.querySelector('.turn.assistant small') !== null")
        assert "mlc.cumsum: Running sums" in page("document.querySelector('.turn.assistant').textContent")
        page.picture(tmp_path / "chat.png")
        page.click("#about")
        until(page, "document.querySelectorAll('td').length > 4")
        assert "generated tokens" in page("document.getElementById('view').textContent")
        page.picture(tmp_path / "about.png")
        page.click("nav a", 1)
        until(page, "document.getElementById('title').textContent === 'f'")
        until(page, "document.getElementById('view').textContent.includes('FP32')")
        page.picture(tmp_path / "function.png")
        assert not page.errors and all(r.startswith((address, "about:")) for r in page.requests)


def test_an_answer_is_stopped(address: str) -> None:
    with Browser() as page:
        page.send("Page.navigate", url=address)
        until(page, "document.body && document.body.dataset.ready === 'true'")
        page("document.getElementById('temperature').value = 2; document.getElementById('text').value = 'Tell me all';"
             "document.getElementById('form').requestSubmit();"
             "new MutationObserver(() => { if (document.querySelector('.turn.assistant').textContent) "
             "document.getElementById('stop').click(); }).observe(document.getElementById('view'), "
             "{subtree: true, childList: true, characterData: true})")
        until(page, "document.querySelector('.turn.assistant small') !== null")
        assert "stopped" in page("document.querySelector('.turn.assistant small').textContent")
        assert page("getComputedStyle(document.getElementById('stop')).display") == "none"
