"""The examples of the README run."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlc
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


def test_the_first_example_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "block.py").write_text(PYTHON[0])
    done = subprocess.run([sys.executable, "block.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_printed(PYTHON[0], done.stdout)


@pytest.mark.parametrize("block", PYTHON[1:], ids=lambda b: re.findall(r"(?:def |class |)(\w+)(?: = |[(:])", b)[0])
def test_python(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                random_state: None) -> None:
    """In this process, which has imported what the examples import."""
    file = tmp_path / "block.py"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    file.write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    runpy.run_path(str(file), run_name="__main__")
    check_printed(block, capsys.readouterr().out)


def check_printed(block: str, out: str) -> None:
    for expected in re.findall(r"print\(.*\)\s+# (\[.*\])", block):
        assert expected in out


@pytest.fixture
def random_state() -> Iterator[None]:
    """Other tests draw what they would have drawn."""
    state = mlc.get_rng_state()
    yield
    mlc.set_rng_state(state)


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
