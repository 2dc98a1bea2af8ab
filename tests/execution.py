"""How tests execute what is recorded: interpreted by default, and in the slow suite in machine code.

A module of tests about what is recorded and differentiated begins with

    pytestmark = pytest.mark.usefixtures("execution")
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlc import api, fast_path
from mlc.frontend import eager
from mlc.frontend.dispatch import general_path
from mlc.tools.fuzzing.interpreted import Interpreted


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within the test, compiled functions and operations that run at once are interpreted: no machine code is made."""
    monkeypatch.setattr(api, "native_code", lambda module, placement: Interpreted(module))
    monkeypatch.setattr(fast_path, "offer", lambda *args: None)
    monkeypatch.setattr(eager, "_kernels", {})
    monkeypatch.setattr(eager, "_by_shape", {})
    with general_path():                                   # past the machine code of earlier tests
        yield


@pytest.fixture(params=["interpreted", pytest.param("native", marks=pytest.mark.slow)])
def execution(request: pytest.FixtureRequest) -> str:
    """Tests of what is recorded and differentiated: interpreted, and in the slow suite in machine code ("native").

    Machine code takes about five times as long, most of it in LLVM.
    """
    if request.param == "interpreted":
        request.getfixturevalue("interpreted")
    return str(request.param)


NATIVE = pytest.mark.parametrize("execution", ["native"], indirect=True)
"""For a test about machine code, in a module whose tests use `execution`."""
