"""The examples of the README run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlc.tools import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
            for line in block.splitlines() if line.startswith("mlc ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.py, the README's second example, and the examples."""
    path = tmp_path_factory.mktemp("readme")
    (path / "examples").symlink_to(ROOT / "examples")
    (path / "model.py").write_text(next(block for block in PYTHON if "def scores" in block))
    return path


@pytest.mark.parametrize("block", PYTHON, ids=lambda b: re.findall(r"(?:def |class |)(\w+)(?: = |[(:])", b)[0])
def test_python(block: str, tmp_path: Path) -> None:
    file = tmp_path / "block.py"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    file.write_text(block)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for expected in re.findall(r"print\(.*\)\s+# (\[.*\])", block):
        assert expected in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
                 capsys: pytest.CaptureFixture[str]) -> None:
    if re.search("[|&]", command):
        line = re.sub(r"(^|\| |&& )mlc ", rf"\1{sys.executable} -m mlc.tools.cli ", command)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        status, out, err = done.returncode, done.stdout, done.stderr
    else:                                                  # in this process, which has imported what a command needs
        monkeypatch.chdir(folder)
        status = cli.main(shlex.split(command)[1:])
        out, err = capsys.readouterr()
    assert status == 0, err
    written = re.search(r" -o ([\w.]+)", command)
    assert out or (written is not None and (folder / written[1]).stat().st_size)
