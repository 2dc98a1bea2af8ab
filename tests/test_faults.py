"""Planted faults are found by one command each: the transcripts of docs/finding_what_is_wrong.md are what these say.

`pytest --bless` writes them anew. A transcript agrees with what is said where all but its measurements does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER, PAGE = ROOT / "docs" / "faults", ROOT / "docs" / "finding_what_is_wrong.md"
TRANSCRIPT = re.compile(r"(?ms)^```console\n\$ (?P<command>[^\n]*)\n(?P<said>.*?)^```$")
MEASURED = re.compile(r"(?<![\w.:*])\d[\d.,]*(?: ?(?:ns|us|ms|s|%|B|KiB|MiB|GiB))?(?![\w.])")
MUST_SAY = {
    "not_a_number.py": r"model\.py:13:17.*sqrt makes NaN .* in the module Model\.layers\.7\n",
    "slow_layer.py": r"(?m)^Model\.layers\.5 takes .* times as long as is usual of the 12 modules of Model\.layers$",
    "recompiled.py": r"\(recompiled\.py:12\) is compiled again, .*: Settings\.rate has changed",
    "peak.py": r"memory at the peak, in spread: .*\n.*\n.*32\.00 MiB +value +<512x512x32xf32> +peak\.py:11\n"}
"""The text that names the place of each fault; the rest of a transcript may change with the compiler."""
TIMED = ("slow_layer.py", "peak.py")
"""Those with tables of times, whose rows have another order each time."""
LONG = (*TIMED, "recompiled.py")


def said_by(command: str) -> str:
    """The output of a command in the folder of the faults, with the paths that are shown there."""
    line = re.sub(r"(^|\s)(mlc|python) ", lambda m: f"{m[1]}{sys.executable} " + (
        "-m mlc.tools.cli " if m[2] == "mlc" else ""), command)
    done = subprocess.run(["bash", "-c", line], cwd=FOLDER, capture_output=True, text=True, env={
        **os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "110", "MLC_CACHE": "0"})
    said = (done.stdout + done.stderr).replace(f"{FOLDER}{os.sep}", "")
    return "".join(f"{row.rstrip()}\n" for row in said.splitlines())


def steady(text: str) -> str:
    """A transcript without measurements and spaces."""
    return re.sub(r"[ \t]+", " ", MEASURED.sub("#", text))


def program_of(found: re.Match[str]) -> str:
    return str(re.findall(r"\w+\.py", found["command"])[0])


@pytest.mark.parametrize("found", [pytest.param(m, marks=[pytest.mark.slow] * (program_of(m) in LONG))
                                   for m in TRANSCRIPT.finditer(PAGE.read_text())], ids=program_of)
def test_a_fault_is_found(found: re.Match[str], request: pytest.FixtureRequest) -> None:
    program = program_of(found)
    said = said_by(found["command"])
    assert re.search(MUST_SAY[program], said), said
    if request.config.getoption("bless"):
        page = PAGE.read_text()
        block = f"```console\n$ {found['command']}\n"
        start = page.index(block) + len(block)
        PAGE.write_text(page[:start] + said + page[page.index("```", start):])
    elif program not in TIMED:
        assert steady(found["said"]) == steady(said)


def test_every_fault_is_told_of() -> None:
    programs = {path.name for path in FOLDER.glob("*.py")} - {"model.py"}
    assert programs == MUST_SAY.keys() == {program_of(m) for m in TRANSCRIPT.finditer(PAGE.read_text())}


def test_measurements_do_not_count() -> None:
    assert steady("88.3%  116 ms  x.py:11") == steady("1.2%   3 us x.py:11") != steady("1.2% 3 us x.py:12")
    assert steady("Model.layers.7") != steady("Model.layers.8")
