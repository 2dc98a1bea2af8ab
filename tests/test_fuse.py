"""Fusion: what holds of every program, and what forms refuse. Single behaviours are in tests/cases/fuse."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects import loop
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return, function
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.traits import is_free, moves_elements
from mlc.ir import changes
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import InternalError, IRError, UserError
from mlc.ir.interp import run_function
from mlc.ir.passes import Instruments, Pass, Pipeline, parse_pipeline
from mlc.ir.types import f32
from mlc.ir.verify import verify
from mlc.passes import fix_numerics, fuse, pipeline
from mlc.passes.forms import LOW
from mlc.passes.fuse.graph import is_host_level
from mlc.tools.fuzzing.levels import same
from mlc.tools.fuzzing.programs import Program, generate
from tests.op_samples import t
from tests.timing import seconds_by_count

ABOVE = [s for s in pipeline.steps() if s.transform.name != "fuse"][: [
    s.transform.name for s in pipeline.steps()].index("fuse")]


def before_fusion(program: Program) -> Module:
    out = program.module()
    Pipeline(ABOVE).run(out)
    return out


def computing(root: Op) -> Counter[str]:
    """The operations that compute, by name; those that move elements may be copied to each contraction."""
    return Counter(op.name for op in root.walk() if op.name.startswith("tensor.") and op.name not in (
        "tensor.kernel", "tensor.yield") and not is_free(op) and not moves_elements(op))


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_every_operation_runs_once(seed: int) -> None:
    """Each computing operation stands in exactly one kernel, none is lost, and none is left outside."""
    module = before_fusion(generate(seed))
    expected = computing(module)
    Pipeline(["fuse"]).run(module)
    verify(module)
    assert computing(module) == expected
    for op in module.walk():
        if op.name.startswith("tensor.") and op.parent_op is not None and op.parent_op.name == "func.func":
            assert isinstance(op, Kernel) or is_host_level(op), op.name


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_limit_of_operations(most: int) -> None:
    """No kernel has more than `max_ops` operations that are not free, and smaller kernels mean the same."""
    for seed in range(0, 30, 2):
        program = generate(seed)
        module = before_fusion(program)
        wanted = run_function(module, "main", program.arguments)
        Pipeline(parse_pipeline(f"fuse{{max_ops={most}}}")).run(module)
        for kernel in module.inside(Kernel):
            count = sum(not is_free(op) and not op.terminator for op in kernel.body.block)
            assert count <= most, kernel.label
        same(run_function(module, "main", program.arguments), wanted, f"fuse of seed {seed}")


def chain(n: int) -> Module:
    """Elementwise operations and reductions in alternation: about as many groups as operations."""
    inside, main = module(), function("main", [t("16x16xf32")])
    inside.body.block.insert(main)
    x = main.args[0]
    with at_end(main.block):
        for i in range(n):
            total = tn.ReduceSum(x, (i % 2,)).result
            x = tn.Add(tn.Sqrt(x).result, total).result
        Return((x,))
    main.update_type()
    Pipeline(["fix_numerics"]).run(inside)
    return inside


def test_a_disabled_merge_is_a_reason() -> None:
    """Every kernel says why its neighbours are apart, also where nothing but MLC_CHANGES keeps them so."""
    inside = chain(1)
    with changes.chosen(changes.parse("none", None)):
        Pipeline(["fuse"]).run(inside)
    reasons = [why for kernel in inside.inside(Kernel) for why in kernel.unfused]
    assert any("MLC_CHANGES" in why for why in reasons) and not any("None" in why for why in reasons)


def test_time_grows_slower_than_the_cube_of_the_program() -> None:
    """Twice the operations take less than eight times as long."""
    seconds = seconds_by_count(chain, fuse.run, (15, 30, 60))
    assert seconds[60] < 8 * max(seconds[30], 0.02) and seconds[30] < 8 * max(seconds[15], 0.02), seconds


def test_what_is_read_at_two_places_counts_twice() -> None:
    """y = y + (y moved by one), 40 times: a kernel of all of it would evaluate the first of them 2^40 times."""
    made, main = module(), function("main", [t("64xf32")])
    made.body.block.insert(main)
    with at_end(main.block):
        y: Value = main.args[0]
        zero = tn.Full(0.0, (), f32).result
        for _ in range(40):
            moved = tn.Slice(y, (1,), (64,), (1,)).result
            y = tn.Add(y, tn.Pad(moved, zero, (0,), (1,), (0,)).result).result
        Return((y,))
    main.update_type()
    Pipeline([*ABOVE, "fuse"]).run(made)
    assert 5 < len(list(made.inside(Kernel))) < 40, "some, though not all, are one kernel"
    kernels = pipeline.resume(made, "loop").inside(loop.Kernel)
    assert max(sum(1 for _ in kernel.inside(loop.Load)) for kernel in kernels) < 96


def test_pipelines_that_do_not_compose_are_refused() -> None:
    for text, message in (("fix_numerics,tensor_to_loop", "tensor_to_loop takes the form 'bufferized'"),
                          ("fix_numerics,fuse,vectorize", "vectorize takes the form 'loop'"),
                          ("bufferize,fuse", "fuse takes the form 'fixed'"),
                          ("tensor_to_loop,scf_to_llvm", "scf_to_llvm takes the form 'low'")):
        with pytest.raises(UserError, match=message):
            Pipeline(parse_pipeline(text))


def test_a_composite_is_no_form_below_decompose() -> None:
    inside, main = module(), function("main", [t("4xf32")])
    inside.body.block.insert(main)
    with at_end(main.block):
        Return((tn.Softmax(main.args[0], 0).result,))
    main.update_type()
    for step in ("fix_numerics", "fuse", "bufferize"):
        form = parse_pipeline(step)[0].transform.takes
        assert form is not None
        with pytest.raises(IRError, match="softmax is composite"):
            form.check(inside)


def test_a_pass_that_does_not_leave_its_form_is_named() -> None:
    inside = chain(1)
    idle = Pass(lambda module: None, gives=LOW)
    Pipeline([idle]).run(inside)
    with pytest.raises(InternalError, match=r"pass .* failed.* is not allowed in the form 'low'"):
        Pipeline([idle]).run(inside, Instruments(verify_each=True))


# -- long sums --------------------------------------------------------------------------------------------------------
def test_sums_of_parts_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of 2^31 elements are made in three: with smaller parts, so are those of a hundred."""
    for name, number in (("LONG", 8), ("BLOCK", 4), ("ENOUGH", 4), ("SHORT", 2)):
        monkeypatch.setattr(fix_numerics, name, number)
    x = np.arange(256, dtype=np.float32).reshape(4, 64)
    for f, want in ((mlc.sum, x.sum()), (mlc.amax, x.max()), (mlc.mean, x.mean())):
        made = mlc.lower(f, args=[x], level="tensor").module
        Pipeline(["decompose", "fix_numerics"]).run(made, Instruments(verify_each=True))
        assert len(list(made.inside(tn.Windows))) > 1
        assert np.allclose(run_function(made, "main", [x]), want)
    made = mlc.lower(lambda x: x.expand(1 << 31, 3).sum(), args=[x[0, :3]], level="tensor").module
    pipeline.lower(made, instruments=Instruments(verify_each=True))


def test_a_loop_whose_first_result_is_an_index_feeds_a_kernel() -> None:
    """Only what the two groups exchange has a shape that matters."""
    def f(x: Any, y: Any) -> Any:
        return x.exp() + x.sin() + mlc.hypot(x, y) + mlc.fmod(x, y) + mlc.logcumsumexp(y, 0)

    spec = mlc.spec("N")
    assert "loop.kernel" in mlc.lower(f, [spec, spec], level="loop").to_text()
