"""Anomaly detection: finds the operation that produced a NaN or an infinity, in eager and compiled code.

`mlc.detect_anomaly` looks at all operations, `mlc.autograd.detect_anomaly` at the gradients that backward computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from mlc.checks import Checks
from mlc.compiled import without_fast_paths
from mlc.dialects import tensor as tn
from mlc.dialects.func import Call
from mlc.frontend import eager, tree
from mlc.frontend.arguments import coded
from mlc.frontend.autograd import anomaly_mode
from mlc.frontend.autograd.function_modules import copy_of
from mlc.frontend.autograd.function_node import FunctionNode
from mlc.frontend.autograd.graph import Node
from mlc.frontend.autograd.operation_node import PULLBACK
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, as_array
from mlc.ir.core import Op
from mlc.ir.diag import Error, InternalError, Loc, UserError
from mlc.ir.interp import Frame, Interpreter
from mlc.passes import grad


class AnomalyError(UserError):
    """An operation produced a NaN or an infinity from finite operands."""

    default_code = "MLC0672"


@coded
@contextmanager
def detect_anomaly(check_nan: bool = True, check_inf: bool = True) -> Iterator[None]:
    """Context that raises an error at the first operation that makes a NaN or an infinity of finite operands.

    In a derivative, the line is that of the operation that is differentiated. Operations that run at once are checked
    one by one. Of a compiled function, the results and the buffers that it assigns are checked; where one holds such a
    number, the call is repeated in the interpreter to find where it came from. So what a compiled function makes and
    discards again, as by `where`, is not reported. `mlc.autograd.detect_anomaly` checks the backward pass alone.

    Args:
        check_nan: Whether NaN is looked for.
        check_inf: Whether infinities are looked for.

    Returns:
        A context manager.

    Raises:
        AnomalyError: An operation makes such a number (MLC0672); it is a UserError.

    Example:
        >>> with mlc.detect_anomaly():
        ...     mlc.log(mlc.tensor([1.0, 2.0]))
        tensor([0.       , 0.6931472], dtype=mlc.float32)
    """
    look = _Look(check_nan, check_inf)
    before = Checks.anomaly
    Checks.anomaly = look.compiled
    try:
        with eager.watched(look.operation), without_fast_paths(), _Backward(True, look.gradient):
            yield
    finally:
        Checks.anomaly = before


class _Backward:
    """Anomaly mode of the backward pass, set at once; as a context manager, the former one is restored at the end."""

    def __init__(self, enabled: bool, check: Callable[[Any, Sequence[Any], Sequence[Any]], None] | None) -> None:
        self.before = anomaly_mode.state.enabled, anomaly_mode.state.check
        self.wanted = enabled, check if enabled else None
        self.__enter__()

    def __enter__(self) -> None:
        anomaly_mode.state.enabled, anomaly_mode.state.check = self.wanted

    def __exit__(self, *raised: object) -> None:
        anomaly_mode.state.enabled, anomaly_mode.state.check = self.before


class set_detect_anomaly(_Backward):
    """Set whether backward raises an error where a gradient is NaN; as a context manager, restore it at the end.

    While the mode is on, recorded operations know their lines, so that the error names the line of backward's caller
    and that of the operation whose gradient it is.

    Args:
        mode: Whether the mode is on.
        check_nan: Whether gradients are checked; without it, errors of backward name the line of the operation.

    Raises:
        AnomalyError: A gradient is NaN (MLC0672), raised by backward.

    Example:
        >>> x = mlc.tensor(0.0, requires_grad=True)
        >>> with mlc.autograd.set_detect_anomaly(True):
        ...     mlc.sqrt(x).backward()
        >>> x.grad
        tensor(inf, dtype=mlc.float32)
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(bool(mode), _Look(True, False).gradient if check_nan else None)


class detect_backward_anomaly(set_detect_anomaly):
    """Context in which backward raises an error where a gradient is NaN, `set_detect_anomaly(True)`.

    Args:
        check_nan: Whether gradients are checked; without it, errors of backward name the line of the operation.

    Raises:
        AnomalyError: A gradient is NaN (MLC0672), raised by backward.

    Example:
        >>> x = mlc.tensor(2.0, requires_grad=True)
        >>> with mlc.autograd.detect_anomaly():
        ...     mlc.sqrt(x).backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
        self.__exit__()                                    # it is on once the context is entered

    def __enter__(self) -> None:
        self.before = anomaly_mode.state.enabled, anomaly_mode.state.check
        super().__enter__()


detect_backward_anomaly.__name__ = "detect_anomaly"


class _Look:
    def __init__(self, nan: bool, inf: bool) -> None:
        self.nan, self.inf = nan, inf

    def found(self, values: Any) -> str | None:
        """The kind of anomaly in some arrays: "NaN", "infinity", or none."""
        for x in values:
            x = np.asarray(x)
            if x.dtype.kind not in "fV" or x.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
                continue
            wide = x.astype(np.float64)
            if self.nan and np.isnan(wide).any():
                return "NaN"
            if self.inf and np.isinf(wide).any():
                return "infinity"
        return None

    def gradient(self, node: Node, cotangents: Sequence[Any], found: Sequence[Any]) -> None:
        """Check the gradients that a node computed; NaN is reported even if it was among the cotangents."""
        for i, x in enumerate(found):
            what = None if x is None else self.found([x.array])
            if what is None or (what == "infinity" and not _finite([y.array for y in cotangents if y is not None])):
                continue
            notes = self.inside(node, cotangents) if isinstance(node, FunctionNode) else ()
            raise AnomalyError(f"{node.name()} gives {what} as the gradient of its input {i}", code="MLC0672",
                               loc=user_loc(), notes=notes, hint=_EDGE)

    def inside(self, node: FunctionNode, cotangents: Sequence[Any]) -> tuple[str, ...]:
        """The operation in a whole function whose gradient it is, as a note; nothing if there is no single one."""
        function, operands = node.pullback(cotangents)
        module = copy_of(function.module)
        grad.run(module)
        try:
            _Watched(module, self).call("main", [np.array(as_array(x)) for x in operands])
        except AnomalyError as error:
            return (f"within that function, {error.message}: {error.loc}",)
        except InternalError:
            raise
        except Error:
            pass                                           # compiled code does not stop there
        return ()

    def operation(self, name: str, operands: Sequence[Any], result: Any) -> None:
        """Check the result of an eager operation; gradients are checked as those of their nodes."""
        if name.endswith(PULLBACK):
            return
        given = [np.asarray(x if isinstance(x, np.ndarray) else x.numpy()) for x in operands]
        made = [x.array for x in tree.leaves(result) if isinstance(x, Tensor)]
        if (what := self.found(made)) is not None and _finite(given):
            _born(what, name, user_loc(), given)

    def compiled(self, results: Sequence[Any], module: Callable[[], Op], arrays: Sequence[Any]) -> None:
        """Check the `results` of a compiled function; `module` records it again, for these arguments."""
        if (what := self.found(results)) is None:
            return
        recorded = module()
        grad.run(recorded)                                 # the functions that are differentiated run in it
        try:
            _Watched(recorded, self).call("main", [np.array(a) for a in arrays])
        except (AnomalyError, InternalError):
            raise
        except Error:
            pass                                           # the compiled code has reported it, or will
        if not _finite(arrays):
            return                                         # it was there before
        raise AnomalyError(f"a compiled function gives {what}, which no single operation makes of finite numbers",
                           code="MLC0672", loc=user_loc(),
                           hint="sums of large numbers overflow in another order: look at the magnitudes")


class _Watched(Interpreter):
    """Interpreter that stops at the first operation that produces the anomaly from finite operands."""

    def __init__(self, module: Op, look: _Look) -> None:
        super().__init__(module)
        self.look = look
        self.calls: list[Op] = []                          # those that have not ended, the outermost first

    def place(self, loc: Loc) -> Loc:
        """Where an operation is that runs now: equal layers share a function, and its calls are of other modules."""
        for call in reversed(self.calls):
            loc = loc.called(self.function(call.attrs["callee"]).loc, call.loc)
        return loc

    def frame(self) -> Frame:
        return _WatchedFrame(self)


class _WatchedFrame(Frame):
    __slots__ = ()

    def step(self, op: Op) -> None:
        assert isinstance(self.interpreter, _Watched)
        if isinstance(op, Call):
            self.interpreter.calls.append(op)
            super().step(op)
            self.interpreter.calls.pop()
            return
        super().step(op)
        if op.regions or not op.results or not op.name.startswith("tensor."):
            return
        if isinstance(op, tn.Constant | tn.Full):           # infinities are intended, as where a maximum starts
            return
        what = self.interpreter.look.found(self.env[r] for r in op.results)
        operands = [np.asarray(x) for x in self.all(op.operands)]
        if what is not None and _finite(operands):
            through = " in the derivative of this line" if "grad" in op.loc.via else ""
            _born(what, op.name.removeprefix("tensor."), self.interpreter.place(op.loc), operands, through)


_EDGE = "at the edge of a function's domain its slope is infinite, and 0 times that is NaN: look at the operands there"


def _finite(arrays: Sequence[Any]) -> bool:
    wide = (np.asarray(a) for a in arrays)
    return all(a.dtype.kind not in "fV" or bool(np.isfinite(a.astype(np.float64)).all()) for a in wide)


def _born(what: str, name: str, loc: Loc, operands: Sequence[Any], through: str = "") -> NoReturn:
    shown = tuple(f"operand {i}: {a.dtype}{list(a.shape)} from {np.min(a)} to {np.max(a)}"
                  for i, a in enumerate(operands) if a.size)
    module = f", in the module {loc.scope}" if loc.scope else ""
    raise AnomalyError(f"{name} makes {what} of finite operands{through}{module}", code="MLC0672", loc=Loc(
        loc.file, loc.line, loc.col), notes=shown, hint="the operands' ranges tell which of them is at fault")
