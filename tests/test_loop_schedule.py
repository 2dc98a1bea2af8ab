"""The schedule of a kernel as one attribute: its text, and the errors that name a field."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc.dialects.loop import Kernel, Schedule
from mlc.ir.core import Op
from mlc.ir.diag import IRError, ParseError
from mlc.ir.parser import parse_module
from mlc.ir.printer import attr_text, to_text
from mlc.ir.sizes import sym
from mlc.ir.types import substitute_attr
from tests.upstream import verify_text

KERNEL = """func.func @f(%n: index) {{
  loop.kernel %n {{symbols = ["B"], domain = ["B", 64], iterator_types = ["parallel", "parallel"],
                  schedule = {}}} : (index) -> () {{
    loop.end
  }}
  func.return
}}"""
SCHEDULES = st.builds(
    Schedule, tile=st.tuples(st.integers(1, 64), st.integers(1, 64)), vector=st.integers(-1, 1),
    lanes=st.integers(0, 16), masked=st.sampled_from([(), (0, 1)]), thread_dims=st.integers(0, 2),
    grain_size=st.sampled_from([1, 7, sym("B") // 2 + 1]),
    tiles_per_cta=st.just(64), threads_per_cta=st.sampled_from([(), (8, 8), (4, 16)]),
    steps=st.sampled_from([(), ("tile(dim=0, size=4)", 'a "step" > 1')]))


def read(schedule: str) -> tuple[Op, Schedule]:
    module = parse_module(KERNEL.format(schedule))
    return module, next(module.inside(Kernel)).schedule


@given(SCHEDULES)
@settings(max_examples=60, deadline=None)
def test_text_reads_back(schedule: Schedule) -> None:
    module, found = read(attr_text(schedule, generic=False))
    assert found == schedule
    generic = to_text(module, generic=True)
    assert next(parse_module(generic).inside(Kernel)).schedule == schedule
    verify_text(generic, unregistered=True)


def test_only_what_differs_from_the_default_is_printed() -> None:
    assert attr_text(Schedule((1, 16), vector=1, thread_dims=1, grain_size=4), generic=False) == \
        "#loop.schedule<tile = [1, 16], vector = 1, thread_dims = 1, grain_size = 4>"
    assert attr_text(Schedule((1, 1)), generic=True) == "#mlc.loop.schedule<tile = [1, 1]>"


@pytest.mark.parametrize(("text", "message"), [
    ("#loop.schedule<vector = 1>", "#loop.schedule needs the field tile"),
    ("#loop.schedule<tile = [1, 1], warp = [8, 4]>", "#loop.schedule has no field warp; it has tile, vector, lanes"),
    ("#loop.schedule<tile = 4>", r"the field tile is not of type tuple\[int, ...\]"),
    ('#loop.schedule<tile = [1, 1], lanes = "B">', "the field lanes is not of type int"),
    ("#loop.schedule<tile = [1, 1], lanes = true>", "the field lanes is not of type int"),
    ("#loop.schedule<tile = [1, 1], tile = [2, 2]>", "a field is given twice"),
    ("#loop.schedule<tile>", "expected '='"),
    ('#loop.schedule<tile = [1, 1], grain_size = "B +">', "bad size 'B [+]'"),
    ("[1, 1]", "the attribute schedule is not of type Schedule"),
])
def test_a_wrong_field_is_named(text: str, message: str) -> None:
    with pytest.raises((ParseError, IRError), match=message) as caught:
        read(text)
    assert caught.value.loc.line in (2, 3)


def test_sizes_in_fields_are_substituted() -> None:
    schedule = Schedule((1,), grain_size=sym("B") + 1)
    assert substitute_attr(schedule, {"B": 7}) == Schedule((1,), grain_size=8)
    assert substitute_attr(Schedule((1,)), {"B": 7}) == Schedule((1,))
