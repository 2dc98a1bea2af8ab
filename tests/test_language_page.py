"""Every example of the page on the text language does what the page says."""
from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from mlc.frontend.language import ProgramError, load

PAGE = (Path(__file__).parent.parent / "frontend" / "language" / "README.md").read_text(encoding="utf-8")
BLOCKS = [(m[1], m[2]) for m in re.finditer(r"```(\w+)\n(.*?)```", PAGE, re.S)]


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for (kind, text), (following, expected) in zip(BLOCKS, [*BLOCKS[1:], ("", "")]):
        if kind == "mlc":
            m = re.match(r"# (\w+\.mlc)\n", text)
            assert m, text
            Path(m[1]).write_text(text, encoding="utf-8")
            if following == "text":
                with pytest.raises(ProgramError) as caught:
                    load(m[1])
                assert str(caught.value) == expected.rstrip("\n")
            else:
                load(m[1])
        elif kind == "python":
            Path("example.py").write_text(text, encoding="utf-8")
            capsys.readouterr()
            runpy.run_path("example.py")
            assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", text)


def test_the_page_is_one() -> None:
    assert len(PAGE.splitlines()) < 250
    assert {kind for kind, _ in BLOCKS} == {"mlc", "python", "text"}
