"""Check derivatives by finite differences: the rule of each operation that a program runs, and each whole derivative.

Passes are compared with the interpreter, but the interpreter expands derivatives by the same rules. So the program is
run once more in float64, and every operation and every differentiated function is also evaluated at nearby points:
along a direction d, the derivative must lie between the slopes to the left and to the right.

    sum(ct * (f(x + h d) - f(x - h d)) / 2 h) == sum(vjp(ct) * d)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mlc.dialects import func
from mlc.dialects.autodiff import Grad, Jvp, Vjp, has_cotangent, is_custom
from mlc.dialects.builtin import module as new_module
from mlc.dialects.func import Func
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.ir.core import Op, Value, at_end, before
from mlc.ir.diag import Error, Loc, UserError
from mlc.ir.interp import Frame, Interpreter
from mlc.ir.types import FloatType, FunctionType, TensorType, f64
from mlc.ir.verify import verify
from mlc.tools.neighbours import neighbours, shown_options

Array = np.ndarray[Any, Any]
Function = Callable[[Sequence[Array]], list[Array]]

STEP = 1e-5
"""Relative distance of the nearby points."""
TOLERANCE, SMALL = 1e-4, 1e-5
"""Tolerance of a derivative, relative to the magnitude of its terms; and the weight of the values in that magnitude."""
LARGEST, REPEATS = 1 << 14, 2
"""Limit on the elements of a checked operation, and on the number of checks of one that runs repeatedly."""


def mistake(module: Op, entry: str, arrays: Sequence[Array]) -> tuple[str, Loc] | None:
    """The error in a derivative that `entry` computes, and its location; None if there is none."""
    if not are_taken(module):
        return None
    wide = in_f64(module)
    try:
        verify(wide)
        watching = _Watching(wide)
        watching.run(entry, [a.astype(np.float64) if _is_float(a) else a for a in map(np.asarray, arrays)])
    except Error:                                          # it needs the types that it has, or raises by itself
        return None
    return watching.found


def are_taken(module: Op) -> bool:
    """Whether a module contains operations of the autodiff dialect."""
    return any(isinstance(op, Grad | Vjp | Jvp) for op in module.walk())


def _is_float(x: Array) -> bool:
    return bool(x.dtype.kind == "f" or x.dtype.name == "bfloat16")


# -- float64 ----------------------------------------------------------------------------------------------------------
def in_f64(module: Op) -> Op:
    """A copy of a tensor module with float64 in place of the other float types."""
    out = module.clone()
    for op in out.walk():
        for value in (*op.results, *(a for region in op.regions for b in region.blocks for a in b.args)):
            value.type = _wide(value.type)
        op.attrs.update({name: _wide(x) for name, x in op.attrs.items()})
    return out


def _wide(x: Any) -> Any:
    """A type or an attribute with float64 in place of other float types."""
    if isinstance(x, FloatType):
        return f64
    if isinstance(x, TensorType):
        return TensorType(x.shape, _wide(x.dtype))
    if isinstance(x, FunctionType):
        return FunctionType(tuple(map(_wide, x.inputs)), tuple(map(_wide, x.results)))
    if isinstance(x, np.ndarray) and _is_float(x):
        return x.astype(np.float64)
    return tuple(map(_wide, x)) if type(x) is tuple else x


# -- watching ---------------------------------------------------------------------------------------------------------
class _Watching(Interpreter):
    """Interprets a module, checking the operations and functions that it differentiates."""

    def __init__(self, module: Op, outer: _Watching | None = None) -> None:
        super().__init__(module)
        self.outer = outer
        self.seen: dict[Any, int] = outer.seen if outer else {}
        self.found: tuple[str, Loc] | None = None

    def another(self, module: Op) -> Interpreter:
        return _Watching(module, self)

    def frame(self) -> Frame:
        return _WatchingFrame(self)

    def report(self, message: str, op: Op) -> None:
        """Record the first error; an error in a rule takes precedence over its effect on a whole derivative."""
        watching: _Watching | None = self
        while watching is not None:
            watching.found = watching.found or (message, op.loc)
            watching = watching.outer


class _WatchingFrame(Frame):
    __slots__ = ()

    def step(self, op: Op) -> None:
        super().step(op)
        watching = self.interpreter
        assert isinstance(watching, _Watching)
        if watching.found is not None:
            return
        if isinstance(op, Grad | Vjp | Jvp):
            if message := _whole(watching, op, self.all(op.operands), [self.env[r] for r in op.results]):
                watching.report(message, op)
        elif type(op).vjp is not Op.vjp and watching.outer is not None and not op.regions:
            operands = self.all(op.operands)
            if sum(np.size(x) for x in operands) <= LARGEST and _is_new(watching, op, operands) and (
                    message := _rule(op, operands, self.sizes) or _forward_rule(op, operands, self.sizes)
                    or _of_neighbours(watching, op, operands)):
                watching.report(message, op)


def _is_new(watching: _Watching, op: Op, operands: Sequence[Array]) -> bool:
    """Whether this operation, which may run in several copies of the program, needs further checks."""
    key = type(op), str(sorted((k, str(v)) for k, v in op.attrs.items())), tuple(
        (x.shape, x.tobytes()[:256]) for x in operands)
    place = type(op), op.loc.file, op.loc.line, op.loc.col
    if key in watching.seen or watching.seen.get(place, 0) >= REPEATS:
        return False
    watching.seen[key] = 1
    watching.seen[place] = watching.seen.get(place, 0) + 1
    return True


# -- one operation ----------------------------------------------------------------------------------------------------
def _rule(op: Op, operands: Sequence[Array], numbers: dict[str, int]) -> str | None:
    """Describe the error in the operand cotangents of an operation at this point; None if they are right."""
    wrt = [i for i, x in enumerate(operands) if _is_float(x) and np.all(np.isfinite(x)) and x.size]
    if op.blocks_gradient or not wrt or not all(has_cotangent(r.type) for r in op.results):
        return None
    inside, copy, args = alone(op, operands, numbers)
    only = inside.clone()
    with before(end := copy.enclosing(Func).block.terminator):
        cotangents = copy.vjp(*args(copy.results))
        given = {i: d for i in wrt if (d := cotangents[i]) is not None}
    end.set_operands(list(given.values()))
    copy.enclosing(Func).update_type()

    def value(xs: Sequence[Array]) -> list[Array]:
        return [np.asarray(x) for x in Interpreter(only).call("main", [np.array(x) for x in xs])]

    rng = np.random.default_rng(len(operands))
    for i in wrt:
        if (slopes := _slopes(value, operands, {i: _direction(rng, operands[i])})) is None:
            continue
        if not isinstance(op, Elementwise) and not all(np.all(part.ok) for part in slopes.parts):
            continue                                       # a jump of one result may come with those of others
        weights = [rng.uniform(0.5, 1.5, part.ok.shape) * part.ok for part in slopes.parts]
        try:
            found = dict(zip(given, Interpreter(inside).call("main", [*map(np.array, operands), *weights])))
        except UserError as error:                         # the operation itself is evaluated here
            return f"the vjp of {op.name} fails: {error.message}"
        if message := slopes.compare(found.get(i, np.zeros(operands[i].shape)), weights):
            return f"the vjp of {op.name} gives operand {i} {message}"
    return None


def _forward_rule(op: Op, operands: Sequence[Array], numbers: dict[str, int]) -> str | None:
    """The same of the tangents of an operation that has a rule of its own for them, which are of its first operand."""
    if not hasattr(op, "jvp") or not _is_float(operands[0]) or not operands[0].size:
        return None
    inside, copy, args = alone(op, operands, numbers)
    only, forward = inside.clone(), cast(Any, copy)
    with before(end := copy.enclosing(Func).block.terminator):
        tangents = forward.jvp(*args(copy.operands[:1]))
    end.set_operands(tangents)
    copy.enclosing(Func).update_type()
    direction = _direction(np.random.default_rng(1), operands[0])
    slopes = _slopes(lambda xs: [np.asarray(x) for x in Interpreter(only).call("main", [np.array(x) for x in xs])],
                     operands, {0: direction})
    if slopes is None:
        return None
    found = Interpreter(inside).call("main", [*map(np.array, operands), direction])
    message = slopes.compare_each(found)
    return f"the jvp of {op.name} is {message}" if message else None


def _of_neighbours(watching: _Watching, op: Op, operands: Sequence[Array]) -> str | None:
    """The same of the operation with other options, once for those that it has, and operands of these shapes."""
    shapes = [np.shape(x) for x in operands]
    key = "neighbours", type(op), str(sorted((k, str(v)) for k, v in op.attrs.items())), tuple(shapes)
    if watching.seen.setdefault(key, 0):
        return None
    watching.seen[key] = 1
    for other in neighbours(op, shapes):
        try:
            message = _rule(other, operands, {}) or _forward_rule(other, operands, {})
        except (Error, NotImplementedError):               # it has no derivative, or none at these operands
            continue
        if message is not None:
            return f"{message}, for {shown_options(other)}"
    return None


def alone(op: Op, operands: Sequence[Array], numbers: dict[str, int],
          ) -> tuple[Op, Op, Callable[[Sequence[Value]], list[Value]]]:
    """A module in which @main is the operation at the sizes that it has; the operation there, and what adds arguments.
    """
    inside = new_module()
    main = func.function("main", [TensorType(x.shape, v.type.dtype) for x, v in zip(operands, op.operands)])
    inside.body.block.insert(main)
    copy = op.clone(dict(zip(op.operands, main.args)), env=numbers)
    copy.set_operands(list(main.args), op.segments)                     # each its own, where one value is read twice
    main.block.insert(copy)
    with at_end(main.block, op.loc):
        func.Return(tuple(copy.results))
    main.update_type()
    return inside, copy, lambda values: [main.block.add_arg(v.type) for v in values]


# -- a derivative as a whole ------------------------------------------------------------------------------------------
def _whole(watching: _Watching, op: Grad | Vjp | Jvp, operands: Sequence[Any], results: Sequence[Any]) -> str | None:
    """Check a derivative of a function by finite differences; the error found, or None."""
    table: dict[str, Func] = {f.sym_name: f for f in func.functions(watching.module)}
    function = table.get(op.callee)
    if function is None or _has_own_rules(function, table, set()):
        return None
    count, plain = len(function.args), Interpreter(watching.module)
    primals = [np.asarray(x) for x in operands[:count]]
    floats = [j for j, t in enumerate(function.function_type.results) if has_cotangent(t)]

    def value(xs: Sequence[Array]) -> list[Array]:
        found = plain.call(op.callee, [np.array(x) for x in xs])
        return [np.asarray(found[j]) for j in floats]

    own = len(function.function_type.results)
    if isinstance(op, Jvp):
        slopes = _slopes(value, primals, {i: np.asarray(t) for i, t in zip(op.wrt, operands[count:])})
        return f"the jvp of @{op.callee} is {message}" if slopes is not None and (
            message := slopes.compare_each(results[own:])) else None
    weights = [np.asarray(x) for x in operands[count:]] if isinstance(op, Vjp) else [
        np.ones(()), *(np.zeros(np.shape(results[j])) for j in floats[1:])]
    rng = np.random.default_rng(0)
    for i, ct in zip(op.wrt, results[own:]):
        if not primals[i].size:
            continue
        slopes = _slopes(value, primals, {i: _direction(rng, primals[i])})
        if slopes is None or not all(np.all(part.ok) for part in slopes.parts):
            continue
        if message := slopes.compare(np.asarray(ct), weights):
            return f"the gradient of @{op.callee} by argument {i} is {message}"
    return None


def _has_own_rules(function: Func, table: dict[str, Func], seen: set[str]) -> bool:
    """Whether a function, or one that it calls, has a custom derivative or blocks gradients."""
    if function.sym_name in seen:
        return False
    seen.add(function.sym_name)
    return is_custom(function) or any(op.blocks_gradient for op in function.walk()) or any(
        _has_own_rules(table[name], table, seen) for name in func.references(function) if name in table)


# -- differences ------------------------------------------------------------------------------------------------------
@dataclass
class _Part:
    """Change of one result along a direction: the mean of the slopes to both sides, half their difference, the mask of
    elements where both are valid; and the result."""

    slope: Array
    half: Array
    ok: Array
    value: Array


@dataclass
class _Slopes:
    """Slopes of the results of a function along a direction."""

    direction: dict[int, Array]
    parts: list[_Part]

    def compare(self, cotangent: Array, weights: Sequence[Array]) -> str | None:
        """None if the cotangent of the perturbed operand matches the weighted slopes of the results."""
        d, = self.direction.values()
        with np.errstate(all="ignore"):
            got, size = float(np.sum(cotangent * d)), float(np.sum(np.abs(cotangent * d)))
            want = kink = 0.0
            for part, w in zip(self.parts, weights):
                want += float(np.sum(w * part.slope))
                kink += float(np.sum(np.abs(w) * part.half))
                size += float(np.sum(np.abs(w * part.slope) + SMALL * np.abs(w * part.value)))
        everywhere = all(np.all(part.ok) for part in self.parts)
        if not np.isfinite(want) or (not np.isfinite(got) and not everywhere):
            return None
        if abs(got - want) <= kink + TOLERANCE * size + 1e-9:
            return None
        return f"{got:.6g} along a direction in which differences give {want:.6g}"

    def compare_each(self, tangents: Sequence[Array]) -> str | None:
        """None if the tangents of the results match their slopes."""
        for part, t in zip(self.parts, map(np.asarray, tangents)):
            size = np.abs(t) + np.abs(part.slope) + SMALL * np.abs(part.value)
            wrong = part.ok & ~(np.abs(t - part.slope) <= part.half + TOLERANCE * size + 1e-9)
            if np.any(wrong):
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                return f"{t[at]:.6g} at {list(at)}, where differences give {part.slope[at]:.6g}"
        return None


def _direction(rng: np.random.Generator, x: Array) -> Array:
    return np.asarray(rng.uniform(-1, 1, x.shape) * np.maximum(np.abs(x), 1e-2))


def _slopes(f: Function, xs: Sequence[Array], direction: dict[int, Array]) -> _Slopes | None:
    """The slopes of f at xs; None where it cannot be evaluated nearby.

    They mean something where those of two distances agree: not across a jump, nor beside a pole.
    """
    def at(t: float) -> list[Array]:
        return f([x + t * direction[i] if i in direction else x for i, x in enumerate(xs)])

    parts = []
    try:
        with np.errstate(all="ignore"):
            middle = at(0.0)
            far, near = ([(at(h), at(-h), h)] for h in (STEP, STEP / 4))
            for k, y in enumerate(middle):
                (right, left), (right_near, left_near) = (
                    ((up[k] - y) / h, (y - down[k]) / h) for (up, down, h), in (far, near))
                mean, half = (right_near + left_near) / 2, np.abs(right_near - left_near) / 2
                noise = 1e-3 * (np.abs(right) + np.abs(left)) + 1e-14 / STEP * np.abs(y) + 1e-9
                ok = np.isfinite(mean) & (np.abs(right - right_near) <= noise) & (np.abs(left - left_near) <= noise)
                smooth = half <= noise                     # what is left there is curvature
                parts.append(_Part(np.where(ok, mean, 0.0), np.where(ok & ~smooth, half, 0.0), np.asarray(ok),
                                   np.where(ok, y, 0.0)))
    except Error:
        return None
    return _Slopes(direction, parts)
