"""The list of seeded faults: each is a replacement that can be made, and no two are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlc.tools.mutants import FAULTS, UNSEEN
from mlc.tools.mutants.__main__ import named_pass, suites_of
from mlc.tools.mutants.fault import Fault

ROOT = Path(__file__).parents[1]


def test_the_list_is_not_stale() -> None:
    texts: dict[str, str] = {}
    for fault in (*FAULTS, *UNSEEN):
        text = texts.setdefault(fault.file, (ROOT / fault.file).read_text(encoding="utf-8"))
        assert fault.applied(text) != text
        assert all((ROOT / test).exists() for test in suites_of(fault.file))
    assert len(FAULTS) >= 150 and len(UNSEEN) >= 40
    assert all(len({f.name for f in some}) == len(some) for some in (FAULTS, UNSEEN))


def test_a_stale_fault_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 times, not once"):
        Fault("rule", "a.py", "x", "y").applied("x x")


@pytest.mark.parametrize("blame, message, named", [
    ("canonicalize", "error[MLC0901]: pass canonicalize changes the answer", True),
    ("canonicalize", "error[MLC0901]: pass cse changes the answer", False),
    ("", "error[MLC0903]: compiled f is not what Python gives", True),
    ("", "error[MLC0901]: pass cse changes the answer", False),
])
def test_who_is_blamed(blame: str, message: str, named: bool) -> None:
    assert named_pass(Fault("", "", "a", "b", blame), message) is named
