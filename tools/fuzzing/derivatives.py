"""Random programs that contain derivatives and batched versions of other random programs, also nested.

@main of a random program becomes private, and a new @main asks for its vjp, jvp or vmap, once or twice over. The
interpreter runs batch elements one after the other, so it is a reference for `vmap`; derivatives are held against the
other mode, forward against reverse.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from mlc.dialects import autodiff, func
from mlc.dialects.autodiff import has_cotangent
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func, Return, function
from mlc.ir.core import Symbol, Value, at_end
from mlc.ir.interp import bind_sizes
from mlc.ir.printer import to_text
from mlc.ir.sizes import evaluate
from mlc.ir.types import TensorType
from mlc.ir.verify import verify
from mlc.tools.fuzzing import functions, programs
from mlc.tools.fuzzing.programs import Program


def generate(seed: int) -> Program:
    """The program of a seed: one or two transforms of another."""
    rng = random.Random(f"derivative {seed}")
    base = (programs if rng.random() < 0.6 else functions).generate(seed)
    inside = base.module()
    main = next(f for f in func.functions(inside) if f.sym_name == "main")
    numbers: dict[str, int] = {}
    bind_sizes([a.type for a in main.args], base.arguments, numbers)
    main.attrs.pop("donate", None)
    for level in range(rng.choice((1, 1, 2))):
        main = transformed(inside, main, level, rng)
    main.attrs["sym_name"] = Symbol("main")
    verify(inside)
    arrays = np.random.default_rng(seed)
    arguments = tuple(programs.random_array(arrays, [evaluate(d, numbers) for d in a.type.shape], a.type.dtype)
                      for a in main.args)
    return Program(seed, to_text(inside), arguments)


def transformed(inside: Module, one: Func, level: int, rng: random.Random) -> Func:
    """A function that asks for a transform of `one`, in its module."""
    types = [a.type for a in one.args]
    floats = [i for i, t in enumerate(types) if has_cotangent(t)]
    returned = [v.type for v in one.block.terminator.operands]
    ways = ["vmap"] + (["vjp", "jvp", "vjp"] if floats and any(map(has_cotangent, returned)) else [])
    way = rng.choice(ways) if types else "vjp"
    wrt = sorted(rng.sample(floats, rng.randint(1, min(3, len(floats))))) if floats else []
    batch_size = rng.randint(0, 3)
    batched = [i for i in range(len(types)) if rng.random() < 0.6] or [0]
    more: Sequence[TensorType] = ()
    if way == "vjp":
        more = [t for t in returned if has_cotangent(t)]
    elif way == "jvp":
        more = [types[i] for i in wrt]
    else:
        types = [t.with_shape((batch_size, *t.shape)) if i in batched else t for i, t in enumerate(types)]
    one.attrs["sym_name"] = Symbol(f"of_{level}")
    one.attrs["sym_visibility"] = "private"
    out = function(f"main_{level}", [*types, *more])
    inside.body.block.insert(out)
    with at_end(out.block):
        Return(tuple(_asked(way, one, out.args, len(types), wrt, batched, batch_size)))
    out.update_type()
    return out


def _asked(way: str, one: Func, args: Sequence[Value], own: int, wrt: Sequence[int], batched: Sequence[int],
           batch_size: int) -> Sequence[Value]:
    if way == "vmap":
        return autodiff.vmap(one, args, batched, batch_size)
    ask = autodiff.vjp if way == "vjp" else autodiff.jvp
    return ask(one, args[:own], args[own:], wrt)
