"""The walks of WALKS.md are taken: their files written into a copy of the repository, their commands run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "WALKS.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", TEXT))
STEP = re.compile(r"(?ms)^`(?P<file>[\w/.]+)`(?P<append> \(append\))?\n\n```\w+\n(?P<body>.*?)^```$"
                  r"|^```console\n(?P<console>.*?)^```$")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as it is, with links where it has links."""
    folder = tmp_path_factory.mktemp("walks") / "mlc"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", "examples"))
    return folder


def commands(console: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that its output has, in this order."""
    for block in re.split(r"(?m)^\$ ", console)[1:]:
        command, *lines = block.splitlines()
        yield command, [line for line in lines if line.strip() not in ("", "...")]


@pytest.mark.parametrize("walk", WALKS)
def test_walk(walk: str, copy: Path) -> None:
    steps = list(STEP.finditer(WALKS[walk]))
    assert steps
    for step in steps:
        if step["console"] is None:
            path = copy / step["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_text(encoding="utf-8") if step["append"] else ""
            path.write_text(before + step["body"], encoding="utf-8")
            continue
        for command, lines in commands(step["console"]):
            line = re.sub(r"(^|\| )(mlc|pytest) ", lambda m: f"{m[1]}{sys.executable} -m "
                          + ("mlc.tools.cli " if m[2] == "mlc" else "pytest -p no:cacheprovider "), command)
            done = subprocess.run(["bash", "-c", line], cwd=copy, capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(copy)})
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            rest = done.stdout
            for wanted in lines:
                assert wanted in rest, f"{command}: no {wanted!r} in\n{rest}"
                rest = rest[rest.index(wanted) + len(wanted):]
