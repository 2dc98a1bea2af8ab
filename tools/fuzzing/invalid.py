"""Almost valid programs, in both text languages and built directly: each must be accepted, or rejected by an Error.

IR texts are mutations of random programs after a random pass; one that still parses must verify or be rejected too, and
must round-trip. Tensor programs that pass all this are lowered to kernels. Texts of the `.mlc` language are loaded.
Operations are built from the declarations of their classes, with arbitrary attributes.
"""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Func, function
from mlc.frontend.language import ProgramError, load
from mlc.ir.core import REGISTRY, at_end
from mlc.ir.diag import Error, InternalError
from mlc.ir.files import write_text
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.sizes import evaluate, sym, symbols
from mlc.ir.types import TensorType, bf16, f32, f64, i1, i32, i64
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.passes.forms import TENSOR
from mlc.tools.fuzzing import functions, language_texts, levels, programs, registry
from mlc.tools.fuzzing.levels import Failure, key_of
from mlc.tools.fuzzing.programs import Program, random_array
from mlc.tools.fuzzing.texts import mutated

CORPUS = 12
"""Number of programs per generator whose texts are mutated; generating one costs more than parsing it many times."""
LONGEST = 8000
"""Limit on the length of a text; longer ones take more time and test nothing else."""


def examine(seed: int) -> Failure | None:
    """Check how the invalid input of a seed is rejected; the failure, or None."""
    rng = random.Random(f"invalid {seed}")
    return rng.choices((ir_text, language_text, built), (6, 2, 3))[0](rng)


# -- texts of the IR --------------------------------------------------------------------------------------------------
@cache
def corpus(number: int) -> list[str]:
    """The texts of a program after each pass that changes it."""
    made = (functions if number % 2 else programs).generate(number).module()
    texts = [to_text(made), to_text(made, generic=True)]
    for step in pipeline.steps("llvm"):
        step.transform.run(made, **dict(step.options))
        text = to_text(made)
        if len(text) < LONGEST and text != texts[-1]:
            texts.append(text)
    return texts


def ir_text(rng: random.Random) -> Failure | None:
    """Check a mutated text: it must round-trip, or be rejected with a location."""
    text = mutated(rng, rng.choice(corpus(rng.randrange(CORPUS))))
    try:
        module = parse_module(text, "mutated.mlir")
        verify(module)
        printed = to_text(module)
        if to_text(parse_module(printed, "printed.mlir")) != printed:
            return Failure("prints otherwise than it is read", "the text is not what its module prints", text)
        if isinstance(module, Module):
            return lowered(module, text)
    except InternalError as error:
        return Failure(key_of(error, "a text"), str(error), text)
    except Error as error:
        if not error.code or not error.loc.line:
            return Failure(key_of(error, "an error without code or place"), str(error), text)
    except RecursionError as error:
        return Failure(key_of(error, "a text"), str(error), text)
    except Exception as error:                             # whatever the parser dies of is a finding
        return Failure(key_of(error, "a text"), f"{type(error).__name__}: {error}", text)
    return None


def lowered(module: Module, text: str) -> Failure | None:
    """Check a tensor module: lowering to kernels must preserve its results, or be rejected."""
    if not any(op.name.startswith("tensor.") for op in module.walk()) or pipeline.stage(module) > 0:
        return None
    steps = pipeline.steps("llvm")
    names = [step.transform.name for step in steps]
    try:
        TENSOR.check(module)
    except Error:
        return None                                        # operations of lower levels among those of this one
    for step in steps[: names.index("coalesce_dimensions") + 1]:
        try:
            step.transform.run(module, **dict(step.options))
            verify(module)
        except Error as error:
            if isinstance(error, InternalError) or not error.code:
                return Failure(key_of(error, f"pass {step.transform.name}"), str(error), text)
            return None
        except Exception as error:                         # whatever a pass dies of is a finding
            return Failure(key_of(error, f"pass {step.transform.name}"), f"{type(error).__name__}: {error}", text)
    program = called(text)
    if program is None or (found := levels.examine(program, "fuse")) is None:
        return None
    return found if can_run(program) else None


def can_run(program: Program) -> bool:
    """Whether a program is well-defined for its arguments: no step of 0, no index out of range."""
    try:
        run_function(program.module(), "main", program.arguments)
    except Error as error:
        return isinstance(error, InternalError) or not error.code
    return True


def called(text: str) -> Program | None:
    """The program of a text with some arguments, if there are any for its @main."""
    main = next((f for f in parse_module(text).inside(Func) if f.sym_name == "main"), None)
    if main is None or not all(isinstance(a.type, TensorType) for a in main.args):
        return None
    shapes = [[evaluate(d, dict.fromkeys(symbols(d), 3)) for d in a.type.shape] for a in main.args]
    if any(d < 0 or d > 200 for shape in shapes for d in shape):
        return None
    rng = np.random.default_rng(len(text))
    arrays = tuple(random_array(rng, shape, a.type.dtype) for shape, a in zip(shapes, main.args))
    return Program(0, text, arrays)


# -- texts of the language --------------------------------------------------------------------------------------------
def language_text(rng: random.Random) -> Failure | None:
    """Check a mutated program: every diagnostic must have a location and a hint."""
    text = language_texts.mutated(rng.randrange(1 << 40))
    with tempfile.TemporaryDirectory(prefix="mlc-fuzz-") as folder:
        path = Path(folder) / "mutated.mlc"
        write_text(path, text)
        try:
            load(path)
        except ProgramError as error:
            for fault in error.diagnostics:
                if not (fault.loc.line and fault.hint and fault.code):
                    return Failure(key_of(fault, "a diagnostic without place, hint or code"), str(fault), text, ".mlc")
        except Exception as error:                         # whatever the reader dies of is a finding
            return Failure(key_of(error, "a program"), f"{type(error).__name__}: {error}", text, ".mlc")
    return None


# -- operations -------------------------------------------------------------------------------------------------------
def built(rng: random.Random) -> Failure | None:
    """Build operations of a class on values of many types, with arbitrary attributes of the right kinds."""
    inside, main = module(), some_arguments()
    inside.body.block.insert(main)
    names = [name for name, cls in sorted(REGISTRY.items()) if not any(
        f.kind in ("region", "successor", "type") for f in cls.fields)]
    name = rng.choice(names)
    with at_end(main.block):
        for _ in range(12):
            try:
                op = registry.drawn(REGISTRY[name], main.args, rng, strange=rng.random() < 0.7)
                if op is not None:
                    to_text(op)
            except Exception as error:                     # no Error with a code: `drawn` takes those
                return Failure(key_of(error, f"building {name}"), f"{name}: {type(error).__name__}: {error}")
    return None


def some_arguments() -> Func:
    """A function with arguments of many types."""
    shapes = ((), (0,), (3,), (2, 3), (sym("B"), 3), (3, 3), (1, 2, 4, 4), (sym("B") * 2, 1))
    return function("main", [TensorType(s, t) for s in shapes for t in (f32, i64, i1)]
                    + [TensorType((3,), t) for t in (bf16, f64, i32)])
