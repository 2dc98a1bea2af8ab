"""mlc completion: all commands and options are in the script of every shell, and each shell can read its own."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mlc.tools import completion
from mlc.tools.cli import COMMANDS, main

COMMANDS_AND_OPTIONS = list(completion.described())
ASK = '''
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _mlc
echo "${COMPREPLY[@]}"
'''


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_all_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [c.name for c in COMMANDS_AND_OPTIONS] == list(COMMANDS)
    for command in COMMANDS_AND_OPTIONS:
        assert command.name in script
        for option in command.options:
            assert all(spelling.lstrip("-") in script for spelling in option.spellings)
    assert {"--entry", "--check", "--exec"} <= {s for c in COMMANDS_AND_OPTIONS for o in c.options for s in o.spellings}


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_the_shell_reads_it(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path = tmp_path / "script"
    path.write_text(completion.SCRIPTS[shell](COMMANDS_AND_OPTIONS))
    assert subprocess.run([shell, "-n", path], capture_output=True).returncode == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize("words, wanted", [
    (["co"], {"compile", "completion"}), (["run", "--ex"], {"--exec"}), (["run", "--exec", ""], {"native", "interp"}),
    (["cache", ""], {"info", "clear", "verify", "warm"}), (["run", "--inputs", "mo"], {"model.mlir", "model.py"}),
    (["compile", "--weights", "b"], {"beside"}), (["opt", "model.m"], {"model.mlir"}), (["help", "pas"], {"passes"}),
    (["info", "--col"], {"--color"}), (["info", "--color", "a"], {"auto", "always"}),
])
def test_what_bash_offers(words: list[str], wanted: set[str], sample_folder: Path) -> None:
    (sample_folder / "completion").write_text(completion.bash(COMMANDS_AND_OPTIONS))
    run = subprocess.run(["bash", "-c", ASK, "bash", "./completion", "mlc", *words], capture_output=True, text=True)
    assert set(run.stdout.split()) == wanted, run.stderr
