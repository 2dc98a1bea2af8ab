"""Random bits, by the algorithms that the specification names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mlc.frontend.dtypes import of_ir
from mlc.frontend.stablehlo.elementwise import bitcast_any, full, width
from mlc.frontend.stablehlo.table import REFUSED, row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step

REFUSED["stablehlo.rng"] = "its generator is left open by the specification; rng_bit_generator has a defined one"
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
"""Constants of Threefry 2x32 of 20 rounds (Salmon et al., 2011)."""


def threefry(keys: tuple[Any, Any], x: tuple[Any, Any]) -> tuple[Any, Any]:
    """Threefry 2x32 with 20 rounds: two words of uint32 for a key and a counter of two words each."""
    third = O["bitwise_xor"](O["bitwise_xor"](keys[0], keys[1]), full(PARITY, keys[0]))
    schedule = (keys[0], keys[1], third)
    a, b = O["add"](x[0], schedule[0]), O["add"](x[1], schedule[1])
    for turn in range(5):
        for r in ROTATIONS[turn % 2]:
            a = O["add"](a, b)
            turned = O["bitwise_or"](O["bitwise_left_shift"](b, full(r, b)),
                                     O["bitwise_right_shift"](b, full(32 - r, b)))
            b = O["bitwise_xor"](turned, a)
        a = O["add"](a, schedule[(turn + 1) % 3])
        b = O["add"](O["add"](b, schedule[(turn + 2) % 3]), full(turn + 1, b))
    return a, b


def _halves(x: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits."""
    return O["cast"](x, "uint32"), O["cast"](O["bitwise_right_shift"](x, full(32, x)), "uint32")


def _joined(low: Any, high: Any) -> Any:
    low, high = O["cast"](low, "uint64"), O["cast"](high, "uint64")
    return O["bitwise_or"](low, O["bitwise_left_shift"](high, full(32, high)))


@row("stablehlo.rng_bit_generator")
def rng_bit_generator(step: Step, state: Any) -> tuple[Any, ...]:
    """Bits of the counter that the state has, which is raised by as many words of 64 bits as it gives."""
    algorithm = step.op.need("rng_algorithm")
    type = step.op.results[-1]
    shape, dtype = tuple(getattr(type, "shape", ())), of_ir(getattr(type, "dtype", None))  # type: ignore[arg-type]
    if algorithm == "PHILOX":
        step.op.refuse("the algorithm PHILOX")
    if state.dtype.name != "uint64" or tuple(state.shape) != (2,):
        step.op.refuse("a state that is not tensor<2xui64>")
    if dtype.is_complex or dtype.name == "bool" or None in shape:
        step.op.refuse(f"bits as {dtype.name}")
    count = math.prod(n or 0 for n in shape)
    bits = 8 * dtype.itemsize
    words = count if bits == 64 else (count + 1) // 2
    key, counter = state[0], state[1]
    keys = _halves(key)
    at = O["add"](O["cast"](O["arange"](words), "uint64"), counter)
    low, high = threefry(keys, _halves(at))
    if bits == 64:
        found = _joined(low, high)
    else:
        found = O["cat"]([low, high], 0)[:count]
        if bits < 32:
            found = O["cast"](found, f"uint{bits}")
    found = bitcast_any(O["reshape"](found, shape), dtype)
    following = O["stack"]([key, O["add"](counter, full(words, counter))], 0)
    assert width(following) == 64
    return following, found
