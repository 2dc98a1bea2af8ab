"""Every public function compiled for all sizes gives at each size what it gives compiled for that one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
import mlc.nn.functional as F
from mlc.ir.diag import UserError
from tests import size_sweep
from tests.public_case import Case, Input, look_up
from tests.test_public_functions import CASES as OWN

CASES = [case for case in OWN if any(isinstance(a, Input | list) for a in case.args)]
QUICK = 16
"""The default run takes one case of so many."""


def function(case: Case) -> Any:
    """The public function of the arguments that are arrays; the others are part of it."""
    ours = look_up(mlc, case.name)

    def f(*arrays: Any) -> Any:
        given = iter(arrays)
        return ours(*(next(given) if isinstance(a, Input | list) else a for a in case.args), **case.keywords)
    return f


def check(case: Case) -> None:
    arrays = [a for a in case.args if isinstance(a, Input | list)]
    calls = [list(args) for args in size_sweep.variants(arrays, 0)]
    found = list(size_sweep.difference(function(case), calls))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES[::2 * QUICK], ids=str)
@pytest.mark.usefixtures("interpreted")
def test_some(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("args, f, message", [
    ([(3, 0, 8)], lambda x: F.interpolate(x[None], size=(4, 4)), "an image of size"),
    ([(2, 4, 5, 8), (2, 0, 5, 8)], lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
     "do not share"),
    ([(3, 2)], lambda x: x.unfold(1, 3, 1), "windows of 3"),
    ([(3, 2)], lambda x: mlc.repeat_interleave(x, 2, 1, output_size=6), "output_size = 6, and the result has 4"),
], ids=["image", "heads", "windows", "repeats"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.usefixtures("interpreted")
def test_what_has_no_size_for_it_is_refused(args: Any, f: Any, message: str, dynamic: bool) -> None:
    with pytest.raises(UserError, match=message):
        mlc.compile(f, dynamic=dynamic)(*(np.ones(shape, np.float32) for shape in args))


@pytest.mark.usefixtures("interpreted")
def test_one_row_and_no_row() -> None:
    """Of one row the covariance is a number; a size that is kept may be 0."""
    calls = [[np.ones(shape, np.float32)] for shape in ((2, 3), (1, 3), (1, 1))]
    assert not list(size_sweep.difference(lambda x: mlc.cov(x), calls))
    calls = [[np.ones(shape, np.float32)] for shape in ((3, 4, 8), (3, 0, 8))]
    assert not list(size_sweep.difference(lambda x: F.adaptive_avg_pool2d(x, (None, 4)), calls))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("interpreted")
def test_all(case: Case) -> None:
    check(case)


@pytest.mark.usefixtures("interpreted")
def test_a_condition_that_gets_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are wrong at small sizes without constrain_sizes."""
    from mlc.passes import constrain_sizes
    calls = [[np.arange(n, dtype=np.float32)] for n in (8, 3, 1, 0)]
    assert not list(size_sweep.difference(lambda x: x[5:][-2:], calls))
    monkeypatch.setattr(constrain_sizes, "size_constraints", lambda *args: {})
    assert list(size_sweep.difference(lambda x: x[5:][-2:], calls))
