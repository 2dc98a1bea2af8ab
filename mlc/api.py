"""From a Python function to its result: record -> lower -> compile -> call -> wrap.

`Compiled.__call__` is the chain; each step is one function of another module. What else is imported here is offered as
mlc's own, and importing it gives the frontend its compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from mlc.backends.cpu.threads import get_num_threads, set_num_threads
from mlc.call import Call, Parameters, record
from mlc.checks import Checks
from mlc.code import Placement, loaded
from mlc.compiled import CompiledFunction
from mlc.dialects.builtin import Module
from mlc.dispatch_cache import RunAsPython, Specialization
from mlc.execution import execute, wrap
from mlc.frontend import compiler as frontend
from mlc.frontend.batching import hessian, jacfwd, jacrev, vmap
from mlc.frontend.control import cond, fori_loop, scan, while_loop
from mlc.frontend.derivatives import grad, value_and_grad, vjp
from mlc.frontend.forward import hvp, jvp, linearize
from mlc.frontend.functions import MODULES
from mlc.frontend.location import user_loc
from mlc.frontend.rules import checkpoint, custom_jvp, custom_vjp, saved_bytes
from mlc.frontend.signature import Recorded, Spec, name_of, spec
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import call as recorded_call
from mlc.frontend.trace import state
from mlc.frontend_compiler import FrontendCompiler
from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.lowered import Lowered
from mlc.specialize import specialize

__all__ = [
    "MODULES",
    "OPERATIONS",
    "Compiled",
    "Lowered",
    "Spec",
    "Tensor",
    "checkpoint",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "fori_loop",
    "get_num_threads",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "lower",
    "native_entries",
    "saved_bytes",
    "scan",
    "set_num_threads",
    "spec",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]


class Compiled(CompiledFunction):
    """A function that runs as native code, made when it is first called with arguments of new types.

    Arrays of other shapes or element types, other containers and other values of what is no array lead to another
    compilation; sizes that a specification names by a symbol do not. So does another device where tensors are, unless
    there is a target.
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if state.trace is not None:                        # within another function that is recorded
            return recorded_call(self.signature.name, self.signature.f, *self.signature.bound, *args, **keywords)
        call = self.signature.bind(args, keywords)
        return self._beside_python(call) if self.check or Checks.every_call else self.run(call)

    def run(self, call: Call) -> Any:
        """The result of a call, of code that is known or that `specialize` has recorded and built now."""
        code = self.cache.find(call) or specialize(self, call, record, self.build)
        if isinstance(code, RunAsPython):
            return self.signature.f(*call.args, **call.keywords)
        return wrap(code, call, execute(code, call))

    def build(self, call: Call, recorded: Recorded) -> Specialization:
        """Code of what was recorded for a call, loaded where the call runs."""
        if not recorded.computes:
            return Specialization(recorded)
        executable = native_code(recorded.trace.module, self.placement.at(call.device))
        return Specialization(recorded, executable, executable.entry("main"), call.donated())

    def _beside_python(self, call: Call) -> Any:
        from mlc.checked import checked_call
        return checked_call(self, call, self.run)


def native_code(module: Module, placement: Placement) -> Any:
    """Loaded code of a module of the tensor level: lowered and compiled, unless equal code is known."""
    toolchain = placement.toolchain()                      # backends/cpu/toolchain.py, backends/cuda/toolchain.py

    def image(module: Module) -> Any:
        lowered = toolchain.lower(module)
        return toolchain.compile(lowered)

    return loaded(module, toolchain, image)


frontend.use(FrontendCompiler(lambda module, placement: native_code(module, placement)))


def compiled_function(f: Any) -> Compiled | None:
    """The `Compiled` behind what `mlc.compile` returned: that itself, or what it calls where it has no fast path."""
    found = getattr(f, "compiled", None)
    return found if isinstance(found, Compiled) else None


def native_entries() -> int:
    """How often this process has entered compiled code."""
    from mlc.backends import executable
    return executable.native_entries()


@overload
def compile(f: Callable[..., Any], donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
            check: bool = False, checked: bool = False) -> Compiled: ...
@overload
def compile(f: None = None, donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False,
            dynamic: bool | None = None,
            check: bool = False, checked: bool = False) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(f: Callable[..., Any] | None = None, donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
            check: bool = False, checked: bool = False) -> Any:
    """f as native code: recorded and compiled when it is first called, once for each kind of arguments.

    f       takes and returns nested containers of arrays. Python numbers are passed as arguments too; anything else
            (strings, bools, None, functions) is part of what is compiled. Without it, what is returned decorates:
            `@mlc.compile(dynamic=True)`
    donate  parameters, by name or position, whose memory the results may take: afterwards a donated mlc.Tensor cannot
            be used, and a donated numpy array holds anything, as does what x.numpy() gave of a donated tensor x.
            Both must be writable and contiguous
    static  parameters whose numbers are part of what is compiled
    args    specifications of the positional arguments (`mlc.spec`, or containers of them; None for none), as an
            annotation `def f(x: mlc.spec("B", 64))` gives too
    target  "cuda" or "cuda:1": run on that device, bring arguments there, and leave results there; "cuda:sm_90" the
            same with code for that architecture. "host": run on the CPU. None: run where tensors among the arguments
            are
    dynamic  True: one code for all sizes of the arguments that f can be recorded for, but for the arrays of modules.
            False: code for each. None: code for the sizes of the first call, and where others come, one for all sizes
            of those axes that differ
    fallback  run f as Python for arguments for which it cannot be recorded, such as where a tensor's number is a shape
    graph   on a device: launch all kernels as one, if the sizes alone say which there are (a CUDA graph)
    matmul_precision
            how products of matrices and convolutions are computed. None: of float16 and bfloat16 by tensor cores where
            the device has them, for sums of a multiple of 16 terms: products are exact, and sums rounded to float32
            once for 16 terms; all others as "ieee". "ieee": by fused multiply-add, so with the same bits everywhere.
            "tf32": as None, and of float32 by tensor cores too, which take 10 bits after the point of each factor, for
            sums of a multiple of 8 terms
    check   run f as plain Python too in every call, op by op, and compare: InternalError MLC0903 names the first line
            that gives something else. `mlc run --check` asks for that of all functions, and checks every pass besides
    checked  the code looks, at each access to memory, whether it is within bounds and whether what it reads has been
            written, and whether index arithmetic fits 64 bits: InternalError MLC0480 names the line of f whose code is
            wrong. Results have the same bits; it is 4 to 12 times slower, takes twice the memory, and is for the CPU

    What f reaches by itself (closures, globals, attributes, elements of containers and of numpy arrays) is part of what
    is compiled. Each call looks whether it is still the same, and if not f is recorded again; code for the last eight
    states is kept. What is passed as an argument costs less. f itself may not change what was there before it was
    called, but for the buffers of modules among its arguments: UserError MLC0615.

    `if`, `while`, `for`, `break`, `continue`, `return`, `and`, `or`, `not`, conditional expressions and `assert` mean
    on tensors what they mean in Python, in f and in the functions that it calls; `Compiled.report` lists them.
    """
    if f is None:
        return functools.partial(compile, donate=donate, static=static, args=args, target=target, graph=graph,
                                 matmul_precision=matmul_precision, fallback=fallback, dynamic=dynamic, check=check,
                                 checked=checked)
    compiled = Compiled(f, donate, static, args, target, graph, matmul_precision, fallback, dynamic, check,
                        checked)
    if compiled.signature.bound:
        return compiled                                    # its parameters are not arguments one passes
    from mlc.backends.cpu.callable import make_dispatcher
    compiled.dispatcher = make_dispatcher(compiled)
    return compiled.dispatcher


def lower(f: Callable[..., Any], args: Sequence[Any] | None = None, level: str = "tensor") -> Lowered:
    """f for arguments like `args` (arrays, or `mlc.spec`s) as a module at a level; without args, by its annotations.

    "trace" is what was recorded, "tensor" the same differentiated, inlined and simplified, then "loop", "low", "llvm".
    """
    compiled = compiled_function(f) or Compiled(f)
    if args is None:
        signature = compiled.signature
        args = signature.specified()
        if args is None:
            missing = [n for n in signature.names[len(signature.bound):] if n not in signature.specs]
            raise UserError(f"nothing says what {', '.join(missing)} of {name_of(f)} is", code="MLC0381",
                            loc=user_loc(),
                            hint="pass args=[...] with arrays or mlc.spec(...), or annotate the parameters")
    return compiled.lower(*args, level=level)


def run_module(module: Op, entry: str, arrays: Sequence[Any]) -> list[Any]:
    """The results of function `entry` on arrays, as native code; `module`, at any level, is lowered in place."""
    from mlc.backends.cpu.targets import host
    from mlc.backends.executable import build
    from mlc.passes import pipeline
    target = host()
    pipeline.resume(module, "llvm", target.machine)
    return build(module, target).entry(entry).call(arrays)
