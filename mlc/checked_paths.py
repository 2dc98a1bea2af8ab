"""Compares calls that native code takes without Python (backends/cpu/wrapper.py) with the call through Python.

They give the same bits, and do the same to what the function reaches. What they are not made for they have to refuse:
such calls go through Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mlc.array_difference import Array, shown, unlike
from mlc.checked_backward import compare_backward
from mlc.checked_state import StateOfCall
from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import InternalError

REFUSED = object()
"""Sentinel that a wrapper returns to decline a call, which then takes the slow path."""


def refused(*args: Any, **keywords: Any) -> Any:
    """The slow path of a wrapper that is checked by itself."""
    return REFUSED


def again(args: Sequence[Any], copied: bool) -> Callable[[], list[Any]] | None:
    """Factory of arguments to call wrappers with, which may write to them if they are `copied`; None if there are
    other things among them than arrays."""
    if not all(isinstance(x, Tensor | np.ndarray) for x in args):
        return None
    arguments = [np.array(x.array) if isinstance(x, Tensor) else np.array(x) if copied else x for x in args]
    tensors = [isinstance(x, Tensor) for x in args]
    return lambda: [wrap(np.array(x)) if is_tensor else np.array(x) if copied else x
                    for x, is_tensor in zip(arguments, tensors)]


def compare_wrappers(name: str, wrappers: Sequence[Any], arguments: Callable[[], list[Any]], want: Any,
                     donated: Sequence[int] = ()) -> None:
    """InternalError where an emitted wrapper takes a call and gives it other bits than the call through Python had.

    All are asked that were made for the function: one whose variables have changed since has to refuse. They are asked
    with the arguments, with the same elements laid out otherwise in memory, and with others that they have to refuse:
    among them a `donated` argument that is another one, too.
    """
    wanted = [np.asarray(x.array) for x in tree.leaves(want) if isinstance(x, Tensor)]
    for wrapper in wrappers:
        taken = _compared(name, "its emitted wrapper", wrapper(*arguments()), wanted)
        for layout, change in LAYOUTS.items():
            _compared(name, f"its emitted wrapper, of {layout} arguments",
                      wrapper(*(change(x) if isinstance(x, np.ndarray) else x for x in arguments())), wanted)
        for i in range(len(arguments()) if taken else 0):
            for what, changed in _others(arguments()[i]):
                given = arguments()
                given[i] = changed
                if wrapper(*given) is not REFUSED:
                    raise InternalError(f"compiled {name}, by its emitted wrapper, takes an argument {i} of {what}",
                                        code="MLC0903", loc=user_loc())
        for i in donated if taken else ():
            for j, other in enumerate(arguments()):
                given = arguments()
                if j == i or type(other) is not type(given[i]) or other.shape != given[i].shape or (
                        other.dtype != given[i].dtype):
                    continue
                if wrapper(*(given[i] if k == j else x for k, x in enumerate(given))) is not REFUSED:
                    raise InternalError(f"compiled {name}, by its emitted wrapper, takes donated argument {i} as "
                                        f"argument {j}, too", code="MLC0903", loc=user_loc())


TURNS = ("the first time", "again", "in memory that it gave up")
"""The calls of one path. Of the first, somebody else holds the arrays."""


def compare_reaching(name: str, paths: Sequence[tuple[Any, Any]], arguments: Callable[[], list[Any]],
                     before: StateOfCall, want: tuple[Any, dict[tuple[str, int], Tensor]]) -> None:
    """InternalError where a path that takes the tensors which a function reaches gives other bits, or leaves other bits
    in these, than the call through Python; or where it writes to memory that somebody else holds, changes a tensor
    beside its views, or one that is an argument, too.

    paths   each with its captured inputs
    before  the state before the call
    want    the result of the call, and the state after it
    """
    if not paths:
        return
    after = StateOfCall(before.f)
    try:
        for path, inputs in paths:
            _compare_turns(name, path, inputs, arguments, before, want)
            changed = [] if inputs.changes is None else [inputs.inputs[j] for j, _ in inputs.changes.stored]
            _compare_views(name, path, arguments, changed, partial(_renewed, inputs, before))
    finally:
        after.restore()


def _compare_turns(name: str, path: Any, inputs: Any, arguments: Callable[[], list[Any]], before: StateOfCall,
                   want: tuple[Any, dict[tuple[str, int], Tensor]]) -> None:
    held = list[tuple[Array, Array]]()
    for turn in TURNS:
        if not _renewed(inputs, before):
            return
        if turn is TURNS[0]:
            held = [(x._array, x._array.copy()) for x in before.tensors if isinstance(x._array, np.ndarray)]
        found = path(*arguments())
        if found is REFUSED:
            return
        _same_state(name, turn, (found, before.values()), want)
        compare_backward(name, found, last=True)
        if any(array.tobytes() != copy.tobytes() for array, copy in held):
            raise InternalError(f"compiled {name}, by its emitted wrapper, writes to memory that somebody else holds",
                                code="MLC0903", loc=user_loc())


def _renewed(inputs: Any, state: StateOfCall) -> bool:
    """Have all be as before the call, and the path take that; whether it may."""
    state.restore()
    inputs.renew()
    return bool(inputs.takes(mode.enabled))


def _same_state(name: str, turn: str, found: tuple[Any, Any], want: tuple[Any, Any]) -> None:
    _compared(name, f"its emitted wrapper {turn}", found[0], [
        np.asarray(x.array) for x in tree.leaves(want[0]) if isinstance(x, Tensor)])
    if found[1].keys() != want[1].keys():
        raise InternalError(f"compiled {name}, by its emitted wrapper {turn}, leaves other gradients", code="MLC0903",
                            loc=user_loc())
    for (what, _), a, b in ((key, x.array, want[1][key].array) for key, x in found[1].items()):
        if a.shape != b.shape or a.dtype != b.dtype or a.tobytes() != b.tobytes():
            raise InternalError(f"compiled {name}, by its emitted wrapper {turn}, leaves other {what}: {shown(a)} in "
                                f"place of {shown(b)}", code="MLC0903", loc=user_loc())


def _compare_views(name: str, path: Any, arguments: Callable[[], list[Any]], changed: Sequence[Tensor],
                   renewed: Callable[[], bool]) -> None:
    """InternalError where a call changes a tensor whose memory another one has, which does not change."""
    for i, x in enumerate(arguments()):
        for tensor in changed:
            if isinstance(x, Tensor) and (x.shape, x.dtype) == (tensor.shape, tensor.dtype) and renewed():
                given = arguments()
                given[i] = tensor
                if path(*given) is not REFUSED:
                    raise InternalError(f"compiled {name}, by its emitted wrapper, takes as argument {i} a tensor that "
                                        "it changes", code="MLC0903", loc=user_loc())
    if not changed or not renewed():
        return
    views = [x.detach() for x in changed]
    if path(*arguments()) is not REFUSED and any(
            x.array.tobytes() != view.array.tobytes() for x, view in zip(changed, views)):
        raise InternalError(f"compiled {name}, by its emitted wrapper, changes a tensor beside its view",
                            code="MLC0903", loc=user_loc())


def _compared(name: str, way: str, found: Any, wanted: Sequence[Array]) -> bool:
    """Whether the wrapper accepted a call; InternalError if it did and gives other bits."""
    if found is REFUSED:
        return False
    for i, (a, b) in enumerate(zip((np.asarray(x.array) for x in tree.leaves(found)), wanted, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype or a.tobytes() != b.tobytes():
            how = unlike(a, b) if a.shape == b.shape and a.dtype == b.dtype else None
            raise InternalError(f"compiled {name} gives other bits by {way}: result {i} is "
                                f"{how or f'{shown(a)} in place of {shown(b)}'}", code="MLC0903", loc=user_loc())
    return True


def _strided(x: Array) -> Array:
    """Every second element of a longer array."""
    storage = np.repeat(x, 2, -1) if x.ndim else x
    return storage[..., ::2] if x.ndim else x


def _backwards(x: Array) -> Array:
    return np.ascontiguousarray(x[::-1])[::-1] if x.ndim else x


def _unaligned(x: Array) -> Array:
    storage = np.zeros(x.nbytes + 1, np.uint8)
    storage[1:] = np.frombuffer(x.tobytes(), np.uint8)
    return np.ndarray(x.shape, x.dtype, storage, 1)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "strided": _strided, "reversed": _backwards, "unaligned": _unaligned, "transposed": np.asfortranarray}
"""A copy at another address."""


def _others(x: Any) -> list[tuple[str, Any]]:
    """Arguments that are not what a wrapper was made for, whatever its sizes: of another type, or rank."""
    array = np.array(x.array if isinstance(x, Tensor) else x)
    swapped = np.zeros(array.shape, np.uint16 if array.dtype.itemsize != 2 else np.uint64)
    twin = np.zeros(array.shape, f"{'i' if array.dtype.kind == 'u' else 'u'}{min(8, array.dtype.itemsize)}")
    found = [("another element type", swapped), ("as many bits in another element type", twin),
             ("one dimension more", array[None])]
    return [(what, wrap(y) if isinstance(x, Tensor) else y) for what, y in found]
