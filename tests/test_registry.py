"""Every tensor operation times every facet, on the samples of op_samples.py; holes are listed here with a reason."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlc import dialects
from mlc.dialects import autodiff, func, tensor
from mlc.dialects.builtin import Module
from mlc.dialects.tensor.base import full
from mlc.dialects.tensor.complex import ComplexOp
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.traits import FACTS, FusionInterface, HostOp, Iteration
from mlc.ir.core import REGISTRY, Op, Value, at_end, before
from mlc.ir.diag import IRError
from mlc.ir.interp import Interpreter
from mlc.ir.parser import Parser, parse_module
from mlc.ir.passes import find_pass
from mlc.ir.printer import to_text
from mlc.ir.sizes import Dim, evaluate, sym
from mlc.ir.types import FloatType, TensorType, f64, to_numpy
from mlc.ir.verify import verify
from mlc.tools.ops import describe, facets
from tests.arrays import Array, difference
from tests.op_samples import NUMBERS, SAMPLES, Sample, main_of, samples_of
from tests.public_case import thinned_by

TENSOR = {name: cls for name, cls in REGISTRY.items() if name.startswith("tensor.") and not cls.terminator}
OPS = {name: cls for name, cls in TENSOR.items() if not issubclass(cls, HostOp | ComplexOp)}
"""The functions of real tensors; what stands between kernels has file cases (cases/tensor/control.mlir, fuse,
bufferize), and so has what is decomposed before derivatives are taken (cases/decompose_complex)."""

HOLES = {"vjp": {"map": "made by fix_numerics, after differentiation"},
         "fold": {**dict.fromkeys(("constant", "full", "iota"), "is a constant"),
                  "map": "a canonical body has no constant operands"},
         "vmap": dict[str, str]()}
"""facet -> operation -> why it does not have it, unless what its class says is reason enough (`why_without`)."""


def why_without(facet: str, cls: type[Op]) -> str:
    """Why a class need not have a facet; empty if it has to."""
    if why := HOLES[facet].get(cls.name.removeprefix("tensor.")):
        return why
    if facet == "vmap":
        return "" if cls.operand_fields else "no operand"
    if issubclass(cls, tensor.Composite):
        return "that of the decomposition" if facet == "vjp" else "a composite is taken apart before it is folded"
    if facet == "vjp":
        return "" if any(map(is_differentiable, samples_of(cls.name))) else "no floats, or none in the result"
    if issubclass(cls, Elementwise) and cls.has_expansion() and cls.accepts == ("float",):
        return "rounded more than once, or not correctly: folding could change bits"
    return "an index may be out of range" if cls.checked_operand is not None else ""  # type: ignore[attr-defined]


def floats(values: Sequence[Value]) -> list[Value]:
    return [v for v in values if isinstance(v.type.dtype, FloatType)]


def is_differentiable(sample: Sample) -> bool:
    op = sample.build()[1]
    return bool(floats(op.operands) and floats(op.results))


def operation(sample: Sample) -> str:
    return sample.op


def ids(samples: Sequence[Sample]) -> list[str]:
    return [f"{i}-{s}" for i, s in enumerate(samples)]


def run(inside: Module, args: Sequence[Any]) -> list[Array]:
    """@main of a module, interpreted; the symbols of samples without arguments for them have their usual numbers."""
    return [np.asarray(x) for x in Interpreter(inside).call("main", [a.copy() for a in args])]


def has_vjp(cls: type[Op]) -> bool:
    return cls.vjp is not Op.vjp


def folds(cls: type[Op]) -> bool:
    """Whether some sample with constant operands folds."""
    return any(folded(s) is not None for s in samples_of(cls.name))


# -- the table --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TENSOR)
def test_every_trait_is_set(name: str) -> None:
    """By the class or its family: none has a default."""
    cls = TENSOR[name]
    facts = (*FACTS, *(("rounding",) if issubclass(cls, Elementwise) else ()),
             *(("combines",) if issubclass(cls, Reduce) else ()))
    assert [fact for fact in facts if not hasattr(cls, fact)] == [], f"{name} has to say so, see dialects/tensor/traits"
    is_composite = hasattr(cls, "decompose")
    assert is_composite == (cls.iteration is Iteration.COMPOSITE)  # type: ignore[attr-defined]


def test_every_operation_says_whether_it_is_pure() -> None:
    """Of every dialect: an operation with effects that is declared pure would be silently removed or merged."""
    for module in pkgutil.walk_packages(dialects.__path__, "mlc.dialects."):
        importlib.import_module(module.name)
    assert [name for name, cls in REGISTRY.items() if not hasattr(cls, "pure")] == []


def test_methods_of_operations_have_a_place() -> None:
    """`mlc ops NAME` gives the line of each method that is the operation's, of `expand` too."""
    dialects.load_all()
    for cls in REGISTRY.values():
        places = re.findall(r"(?m)^  \w+ +[\w.]+ +(\S+\.py):(\d+)$", describe(cls))
        assert len(places) >= len(facets(cls))
        for file, line in places:
            text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
            assert re.search(r"def |lambda|@", text), (file, line)
    assert re.search(r"expand +exp +dialects/expansions/exponential.py:\d+", describe(REGISTRY["tensor.exp"]))


def test_table_of_facets(capsys: pytest.CaptureFixture[str]) -> None:
    """A facet that is missing has a reason, and what HOLES lists is missing."""
    missing: dict[str, set[str]] = {"vjp": set(), "fold": set(), "vmap": set()}
    for name, cls in OPS.items():
        assert cls.infer is not Op.infer, f"{name} has no infer"
        assert cls.ref is not Op.ref or hasattr(cls, "interpret"), f"{name} has no meaning"
        assert samples_of(name), f"{name} has no samples"
        missing["vjp"] |= set() if has_vjp(cls) else {name}
        missing["fold"] |= set() if folds(cls) else {name}
        missing["vmap"] |= set() if cls.vmap is not Op.vmap else {name}
    with capsys.disabled():
        print(f"\n{len(OPS)} tensor operations, {len(SAMPLES)} samples; infer, meaning, text: no holes")
        for facet, names in missing.items():
            by_reason: dict[str, list[str]] = {}
            for name in sorted(names):
                by_reason.setdefault(why_without(facet, OPS[name]) or "NO REASON", []).append(name)
            for reason, group in by_reason.items():
                print(f"  no {facet}: {' '.join(n.removeprefix('tensor.') for n in group)}\n      ({reason})")
    for facet, names in missing.items():
        assert {n for n in names if not why_without(facet, OPS[n])} == set(), facet
        assert {f"tensor.{n}" for n in HOLES[facet]} <= names, facet


@pytest.mark.parametrize("name", OPS)
def test_samples_cover_the_sizes(name: str) -> None:
    """At least three shapes, among them sizes 0 and 1 and a symbol."""
    built = [s.build()[1] for s in samples_of(name)]
    shapes = {tuple(v.type.shape) for op in built for v in (*op.operands, *op.results)}
    dims = {str(d) for shape in shapes for d in shape}
    if name == "tensor.size":
        return                               # has no operand, and a result without dimensions
    assert len(shapes) >= 3 and {"0", "1"} <= dims
    assert any(not d.isdigit() for d in dims) or name == "tensor.constant"


# -- documentation ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OPS)
def test_docstring_is_an_equation_and_an_example(name: str) -> None:
    """The first line is the defining equation, and the example prints as it is written."""
    doc = inspect.getdoc(OPS[name]) or ""
    assert re.match(r"result(\[.*?\])? = ", doc), f"{name}: {doc.splitlines()[0]}"
    example = re.search(r"^( *)(%r(?::\d)? = (?:.|\n)*?)(?:\n\n|\Z)", doc, re.M)
    assert example, f"{name} has no example"
    text = "\n".join(line.removeprefix(example[1]) for line in example[2].splitlines())
    parser = Parser(text, name)
    op = parser.op()
    assert parser.token.kind == "end" and op.name == name
    for key, value in parser.forward[-1].items():
        value.name = key
    assert to_text(op) == text + "\n"


# -- infer, meaning, text ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OPS)
def test_infer_matches_the_reference(name: str) -> None:
    """The interpreter checks every value against its type; here also that verification agrees."""
    for sample in samples_of(name):
        inside, op = sample.build()
        verify(inside)
        for value, type in zip(run(inside, sample.arguments()), [r.type for r in op.results], strict=True):
            assert value.dtype == to_numpy(type.dtype), str(sample)
            assert value.shape == tuple(evaluate(d, NUMBERS) for d in type.shape), str(sample)


@pytest.mark.parametrize("name", OPS)
def test_text_round_trips(name: str) -> None:
    """Both printings give the operation back, and printing that is a fixpoint."""
    for sample in samples_of(name):
        inside, _ = sample.build()
        wanted = run(inside, sample.arguments())
        for generic in (False, True):
            text = to_text(inside, generic)
            again = parse_module(text)
            verify(again)
            assert to_text(again, generic) == text
        assert isinstance(again, Module)
        for a, b in zip(run(again, sample.arguments()), wanted, strict=True):
            assert difference(a, b, "bits") is None, str(sample)


# -- fold -------------------------------------------------------------------------------------------------------------
def constant_operands(sample: Sample) -> tuple[Module, Op]:
    """The sample with its operands replaced by constants."""
    inside, op = sample.build()
    main = main_of(inside)
    with before(op):
        for arg, array in zip(main.args, sample.arguments()):
            if arg.type.is_static:
                arg.replace_by(tensor.Constant(array).result)
    return inside, op


def folded(sample: Sample) -> Any:
    _, op = constant_operands(sample)
    return op.fold()


@pytest.mark.parametrize("name", [n for n, c in OPS.items() if not why_without("fold", c)])
def test_folding_matches_the_reference(name: str) -> None:
    for sample in samples_of(name):
        if (array := folded(sample)) is not None:
            want, = run(sample.build()[0], sample.arguments())
            assert isinstance(array, np.ndarray)
            assert difference(array, want, "bits") is None, str(sample)


ELEMENTS = (Iteration.POINTWISE, Iteration.INDEXED, Iteration.VIEW, Iteration.REDUCE)


@pytest.mark.parametrize("name", sorted({s.op for s in SAMPLES if getattr(REGISTRY[s.op], "of_elements", False)}))
def test_composites_of_elements_are_of_elementwise_operations_and_reductions(name: str) -> None:
    for sample in samples_of(name):
        module = sample.build()[0]
        find_pass("decompose").run(module)
        assert {op.iteration for op in module.walk() if isinstance(op, FusionInterface)} <= {*ELEMENTS, Iteration.HOST}


# -- derivatives ------------------------------------------------------------------------------------------------------
def take_apart(op: tensor.Composite) -> None:
    with before(op):
        value = op.decompose()
    op.replace_by(*((value,) if isinstance(value, Value) else value))


def open_composites(inside: Module) -> None:
    """Take apart the composites that have no rule of their own."""
    for op in list(main_of(inside).block):
        if isinstance(op, tensor.Composite) and not has_vjp(type(op)):
            take_apart(op)


def gradients(inside: Module, cts: dict[Value, Value], wrt: Sequence[Value]) -> list[Value]:
    """The cotangents of `wrt` from those of others: one walk from the last operation to the first."""
    for op in reversed(list(main_of(inside).block)):
        if any(r in cts for r in op.results) and has_vjp(type(op)):
            given = [cts[r] if r in cts else full(0, r, r.type.shape) for r in op.results]
            for v, d in zip(op.operands, op.vjp(*given)):
                if d is not None and isinstance(v.type.dtype, FloatType):
                    assert d.type == v.type, f"the vjp of {op} gives {d.type} for {v.type}"
                    cts[v] = cts[v] + d if v in cts else d
    return [cts[v] if v in cts else full(0, v, v.type.shape) for v in wrt]


def inner_product(x: Value, y: Value) -> Value:
    return tensor.ReduceSum(x * y, tuple(range(x.type.rank))).result


def with_gradient(sample: Sample, order: int) -> tuple[Module, list[int]]:
    """@main returns s = <results, w>, or <its gradient, v> for order 2, and the gradient of s by each float operand.

    The weights w and v come as further arguments.
    """
    inside, op = sample.build()
    main = main_of(inside)
    wrt = [i for i, a in enumerate(main.args) if isinstance(a.type.dtype, FloatType)]
    weights = [main.block.add_arg(r.type) for r in floats(op.results)]
    args = [main.args[i] for i in wrt]
    directions = [main.block.add_arg(a.type) for a in args] if order == 2 else []
    end = main.block.terminator
    open_composites(inside)
    with before(end):
        products = [inner_product(r, w) for r, w in zip(floats(end.operands), weights)]
        scalar = sum(products[1:], products[0])
        grads = gradients(inside, {scalar: full(1, scalar)}, args)
        if order == 2:
            parts = [inner_product(g, v) for g, v in zip(grads, directions)]
            scalar = sum(parts[1:], parts[0])
            open_composites(inside)
            grads = gradients(inside, {scalar: full(1, scalar)}, args)
    end.set_operands([scalar, *grads])
    main.update_type()
    verify(inside)
    return inside, wrt


def check_gradient(sample: Sample, order: int) -> None:
    """The gradient along three random directions against central differences."""
    inside, wrt = with_gradient(sample, order)
    rng = np.random.default_rng(3)
    inputs = sample.arguments()
    extra = [rng.uniform(0.5, 1.5, [evaluate(d, NUMBERS) for d in arg.type.shape])
             for arg in main_of(inside).args[len(inputs):]]
    _, *grads = run(inside, [*inputs, *extra])
    for _ in range(3):
        directions = [rng.uniform(-1, 1, inputs[i].shape) for i in wrt]
        want = 0.0
        h = 1e-5
        for sign in (1, -1):
            moved = list(inputs)
            for i, d in zip(wrt, directions):
                moved[i] = np.asarray(inputs[i] + sign * h * d)
            value = float(run(inside, [*moved, *extra])[0])
            if not np.isfinite(value):       # a reduction over nothing, or a division by it
                assert min(x.size for x in inputs) < 2, (
                    f"{sample}: {value}; where a function is defined stands in DOMAINS of tests/op_samples.py")
                return
            want += sign * value / (2 * h)
        got = sum(float(np.sum(g * d)) for g, d in zip(grads, directions))
        assert abs(got - want) <= 2e-6 * (1 + abs(want)), f"{sample}: {got} by vjp, {want} by differences"


DIFFERENTIABLE = [s for s in SAMPLES if isinstance(s.build()[1].results[0].type, TensorType)
                  and s.build()[1].results[0].type.dtype == f64 and any(t.dtype == f64 for t in s.types)
                  and s.smooth and s.op not in ("tensor.map", "tensor.stop_gradient")]
"""Operations whose derivatives finite differences can check; test_tensor_ops has the rest."""


@pytest.mark.parametrize("sample", thinned_by(operation, DIFFERENTIABLE, 3), ids=ids(DIFFERENTIABLE))
def test_vjp_matches_finite_differences(sample: Sample) -> None:
    check_gradient(sample, 1)


@pytest.mark.parametrize("sample", thinned_by(operation, DIFFERENTIABLE, 5), ids=ids(DIFFERENTIABLE))
def test_second_derivative_matches_finite_differences(sample: Sample) -> None:
    check_gradient(sample, 2)


@pytest.mark.parametrize("sample", thinned_by(operation, DIFFERENTIABLE, 3), ids=ids(DIFFERENTIABLE))
def test_jvp_is_the_transpose_of_vjp(sample: Sample) -> None:
    """<w, J v> == <J' w, v>: forward mode is made from the same rules, which differences check above."""
    inside, _ = sample.build()
    source = main_of(inside)
    wrt = [i for i, a in enumerate(source.args) if isinstance(a.type.dtype, FloatType)]
    of = [v.type for v in source.block.terminator.operands if isinstance(v.type.dtype, FloatType)]
    both = func.function("both", [*(a.type for a in source.args), *(source.args[i].type for i in wrt), *of])
    inside.body.block.insert(both)
    count = len(source.args)
    primals, moved = both.args[:count], both.args[count: count + len(wrt)]
    with at_end(both.block):
        pushed = autodiff.jvp(source, primals, moved, wrt)
        pulled = autodiff.vjp(source, primals, both.args[count + len(wrt):], wrt)
        func.Return((*pushed, *pulled))
    both.update_type()
    find_pass("grad").run(inside)
    verify(inside)
    rng = np.random.default_rng(4)
    extra = [rng.uniform(-1, 1, [evaluate(d, NUMBERS) for d in a.type.shape]) for a in both.args[count:]]
    found = Interpreter(inside).call("both", [*sample.arguments(), *extra])
    own = len(source.function_type.results)
    tangents, cotangents = found[own: own + len(of)], found[len(found) - len(wrt):]
    forward = sum(float(np.sum(t * w)) for t, w in zip(tangents, extra[len(wrt):], strict=True))
    reverse = sum(float(np.sum(c * v)) for c, v in zip(cotangents, extra[: len(wrt)], strict=True))
    if all(np.isfinite(x).all() for x in found[:own]):
        assert abs(forward - reverse) <= 1e-9 * (1 + abs(reverse)), f"{sample}: {forward} by jvp, {reverse} by vjp"


# -- batches ----------------------------------------------------------------------------------------------------------
def subsets(count: int) -> list[tuple[int, ...]]:
    return [s for k in range(1, count + 1) for s in itertools.combinations(range(count), k)]


@pytest.mark.parametrize("name", [n for n, c in OPS.items() if not why_without("vmap", c)])
def test_vmap_is_a_loop_over_the_batch(name: str) -> None:
    """Every operation, batched over some of its operands, equals a loop over the batch elements.

    Of samples and choices of operands every second, with alternating batch sizes.
    """
    chosen = [(sample, batched) for sample in samples_of(name) for batched in subsets(len(sample.types))][::2]
    for (sample, batched), (batch_size, count) in zip(chosen, itertools.cycle(BATCH_SIZES)):
        check_vmap(sample, batched, batch_size, count)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, c in OPS.items() if not why_without("vmap", c)])
def test_vmap_of_any_batch_size(name: str) -> None:
    for sample in samples_of(name):
        for batched, (batch_size, count) in itertools.product(subsets(len(sample.types)), BATCH_SIZES):
            check_vmap(sample, batched, batch_size, count)


BATCH_SIZES: tuple[tuple[Dim, int], ...] = ((3, 3), (1, 1), (sym("V"), 2))


def check_vmap(sample: Sample, batched: Sequence[int], batch_size: Dim, count: int) -> None:
    inside, _ = sample.build()
    types = [t.with_shape((batch_size, *t.shape)) if i in batched else t for i, t in enumerate(sample.types)]
    many = func.function("many", types)
    inside.body.block.insert(many)
    with at_end(many.block):
        func.Return(tuple(autodiff.vmap(main_of(inside), many.args, batched, batch_size)))
    many.update_type()
    each = [sample.arguments(i) for i in range(count)]
    args = [np.stack([xs[i] for xs in each]) if i in batched else each[0][i] for i in range(len(types))]
    wanted = Interpreter(inside).call("many", args)
    find_pass("grad").run(inside)
    verify(inside)
    for got, want in zip(Interpreter(inside).call("many", args), wanted, strict=True):
        assert difference(got, want, None) is None, f"{sample}, batched {batched}, batch size {batch_size}"


# -- composites -------------------------------------------------------------------------------------------------------
COMPOSITES = [s for s in SAMPLES if issubclass(OPS[s.op], tensor.Composite)]


def taken_apart(sample: Sample) -> Module:
    """The sample without composites, also none that its own decomposition is made of."""
    inside, op = sample.build()
    assert isinstance(op, tensor.Composite)
    types = [r.type for r in op.results]
    while composites := [op for op in inside.walk() if isinstance(op, tensor.Composite)]:
        for op in composites:
            take_apart(op)
    assert [v.type for v in main_of(inside).block.terminator.operands] == types
    verify(inside)
    return inside


@pytest.mark.parametrize("sample", thinned_by(operation, COMPOSITES, 2), ids=ids(COMPOSITES))
def test_decomposition_matches_the_reference(sample: Sample) -> None:
    args = sample.arguments()
    for want, got in zip(run(sample.build()[0], args), run(taken_apart(sample), args), strict=True):
        if want.dtype == np.float64:
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
        assert difference(got, want, None) is None


SIZED = [s for s in COMPOSITES if not all(t.is_static for t in s.types)]


@pytest.mark.parametrize("sample", SIZED, ids=ids(SIZED))
def test_decomposition_has_equal_bits_for_symbolic_and_static_sizes(sample: Sample) -> None:
    """Expanded to arithmetic with static and symbolic sizes."""
    try:
        known = replace(sample, types=tuple(t.with_shape(evaluate(d, NUMBERS) for d in t.shape) for t in sample.types))
    except IRError:
        known = sample
    if not all(r.type.is_static for r in known.build()[1].results):
        return                               # `make` mentions the symbols itself
    results = []
    for one in (sample, known):
        inside, _ = one.build()
        for name in ("decompose", "fix_numerics"):
            find_pass(name).run(inside)
        results.append(run(inside, sample.arguments()))
    for a, b in zip(*results, strict=True):
        assert difference(a, b, "bits") is None


OWN_RULE = [s for s in COMPOSITES if s in DIFFERENTIABLE and has_vjp(OPS[s.op])]


@pytest.mark.parametrize("sample", OWN_RULE, ids=ids(OWN_RULE))
def test_own_vjp_matches_that_of_the_decomposition(sample: Sample) -> None:
    """A composite's own rule against the walk over its decomposition, unless that has loops."""
    results = []
    for own in (True, False):
        inside, op = sample.build()
        main = main_of(inside)
        wrt = [a for a in main.args if isinstance(a.type.dtype, FloatType)]
        end = main.block.terminator
        if not own:
            assert isinstance(op, tensor.Composite)
            take_apart(op)
            if any(op.name.startswith("scf.") for op in inside.walk()):
                return
        with before(end):
            grads = gradients(inside, {v: full(1.25, v, v.type.shape) for v in floats(end.operands)}, wrt)
        end.set_operands(grads)
        main.update_type()
        results.append(run(inside, sample.arguments()))
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
