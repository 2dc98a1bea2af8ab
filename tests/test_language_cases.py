"""Faulty programs: each file of tests/cases/language begins with the exact diagnostics of what follows.

    # LINE:COLUMN: error[CODE]: message
    #   help: the suggestion

`python -m tests.test_language_cases FILE...` writes them; read what it wrote.
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mlc.frontend.language import ProgramError, load

FOLDER = Path(__file__).parent / "cases" / "language"
FILES = sorted(FOLDER.glob("*.mlc"))


def diagnostics(path: Path) -> list[str]:
    """Diagnostics of a program in the form of its first lines."""
    try:
        load(path)
    except ProgramError as error:
        return [line for e in error.diagnostics for line in (
            f"# {e.loc.line}:{e.loc.col}: error[{e.code}]: {e.message}", f"#   help: {e.hint}")]
    return []


def split(text: str) -> tuple[list[str], str]:
    """(the expected lines, the program)"""
    head, _, program = text.partition("\n\n")
    return (head.split("\n"), program) if head.startswith("# ") else ([], text)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_diagnostics(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    expected, _ = split(path.read_text(encoding="utf-8"))
    found = diagnostics(Path(path.name))
    assert found, "nothing is wrong with it"
    assert "\n".join(found) == "\n".join(expected)
    assert all(line != "#   help: None" for line in found), "a diagnostic without a suggestion"


def test_there_are_many() -> None:
    assert len(FILES) >= 40


def write(path: Path) -> None:
    """Put the diagnostics of a program above it, which moves its lines: again until they stay."""
    _, program = split(path.read_text(encoding="utf-8"))
    for _ in range(4):
        path.write_text("\n".join(diagnostics(path)) + "\n\n" + program, encoding="utf-8")


if __name__ == "__main__":
    names = [Path(name).resolve() for name in sys.argv[1:]]
    os.chdir(FOLDER)
    for name in names:
        write(Path(os.path.relpath(name)))
