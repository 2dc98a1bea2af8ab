"""From a Python function to its result: record -> lower -> compile -> call -> wrap.

`Compiled.__call__` is the chain; each step is one function of another module. What else is imported here is offered as
mlc's own, and importing it gives the frontend its compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from mlc import fast_path
from mlc.backends.cached_code import loaded
from mlc.backends.cpu.threads import get_num_threads, set_num_threads
from mlc.call import Call, Parameters, record
from mlc.checks import Checks
from mlc.code import Placement
from mlc.compiled import CompiledFunction
from mlc.debugged import DebuggedEntry, taken_out
from mlc.device_call import MISSED, learn
from mlc.dialects.autodiff import Derivative
from mlc.dialects.builtin import Module
from mlc.dispatch_cache import STATES_KNOWN, Code, RunAsPython, Specialization
from mlc.execution import execute, give_tangents, memory_of, record_for_backward, wrap
from mlc.for_backward import for_backward
from mlc.frontend import compiler as frontend
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.function_modules import copy_of
from mlc.frontend.autograd.function_node import FunctionRecord, requires_grad
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.batching import hessian, jacfwd, jacrev, vmap
from mlc.frontend.control import cond, fori_loop, scan, while_loop
from mlc.frontend.derivatives import grad, value_and_grad, vjp
from mlc.frontend.devices import CPU, device_of_call
from mlc.frontend.forward import hvp, jvp, linearize
from mlc.frontend.functions import MODULES
from mlc.frontend.location import user_loc
from mlc.frontend.nested import call as recorded_call
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.rules import checkpoint, custom_jvp, custom_vjp, saved_bytes
from mlc.frontend.signature import Spec, name_of, spec
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import state
from mlc.frontend.tree import AttributeTree
from mlc.frontend_compiler import FrontendCompiler
from mlc.frozen import check_device, mark_constants, without_constants
from mlc.ir.compilation_lock import compiling
from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.ir.profiling import timed
from mlc.lowered import Lowered
from mlc.repeated_call import RepeatedCall
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


M = TypeVar("M", bound=AttributeTree)


class Compiled(CompiledFunction):
    """Function that runs as native code, made when it is first called with arguments of new types.

    `mlc.compile` makes it. Other shapes or dtypes, containers, or values of what is no array lead to another
    compilation, as does another device where tensors are, unless there is a target; sizes that a specification names by
    a symbol do not.

    Args:
        f: The function.
        donate: As of `mlc.compile`, as are all below.
        static: Parameters whose numbers are part of what is compiled.
        args: Specifications of the positional arguments.
        target: Device or machine.
        graph: Whether kernels are launched as one CUDA graph.
        matmul_precision: None, "ieee" or "tf32".
        fallback: Whether f runs as Python where it cannot be recorded.
        dynamic: Whether one code serves all sizes.
        check: Whether each call runs as Python too.
        checked: Whether the code checks its accesses to memory.
        freeze: Whether the tensors that f reaches are constants of the code.
        excess_precision: Whether values of 16 bits may have more bits between two operations.

    Raises:
        UserError: A setting names no parameter or is unknown (MLC0380), or the target is unknown (MLC0501).
        UserTypeError: f is no function (MLC0380).

    Example:
        >>> double = mlc.compile(lambda x: x * 2)
        >>> double(mlc.tensor([1.0, 2.0]))
        tensor([2., 4.], dtype=mlc.float32)
        >>> double.signatures
        ['(tensor<2xf32>) -> tensor<2xf32>']
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if not keywords:
            for repeated in self.device_calls:             # which take none while a function is being recorded
                out = repeated.call(args)
                if out is not MISSED:
                    return out
        if state.trace is not None:                        # within another function that is recorded
            return recorded_call(name_of(self.signature.f), self.signature.f, *self.signature.bound, *args, **keywords)
        direct = self.direct
        if direct is not None:
            if not direct.unsteady:
                return direct.dispatcher(*args, **keywords)
            self.reports, self.direct = direct.reports + self.reports, None    # the arrays are others all the time
        call = self.signature.bind(args, keywords)
        return self._beside_python(call) if self.check or Checks.every_call else self.run(call)

    def run(self, call: Call) -> Any:
        """The result of a call, by cached code or code that `specialize` builds now."""
        cache = self.cache
        code = cache.find(call)
        if code is None:
            code = timed("compilation", self.signature.name,
                         lambda: specialize(self, cache, call, record, self.build))
            self.unsteady = cache.states > STATES_KNOWN and not self.freeze
        if isinstance(code, RunAsPython):
            return self.signature.f(*call.args, **call.keywords)
        if code.recorded.captures is not None and not code.recorded.captures.fit():
            cache.forget()                            # a tensor that it reaches is of another type now
            return self.run(call)
        call.captured = code.recorded.captured_operands(call.given)
        code = for_backward(code, call, lambda module, device: native_code(
            module, self.placement.at(device).timed(cache.timed)))
        out = timed("compiled function", self.signature.name, lambda: wrap(code, call, execute(code, call)),
                    call.arrays, lambda: memory_of(code, call))
        if code.waits:                                     # made now, after calls that are recorded for backward
            with compiling:
                waits, code.waits = code.waits, False
            if waits:
                fast_path.offer(self, cache.state(), call, code)
        if mode.enabled and record_for_backward(code, call, out):
            fast_path.offer_recorded(self, cache.state(), call, code)
        give_tangents(code, call, out)
        if code.repeated is not None:
            code.repeated.renew_fast_path()
        elif call.target_device != CPU:
            learn(self, cache, call, code)
        return out

    def build(self, call: Call, recorded: Recorded, timed: bool) -> Specialization:
        """Code for the recording of a call, loaded on the device of the call; on a processor it may be timed."""
        if not recorded.computes:
            return Specialization(recorded)
        reached = recorded.captures.tensors() if recorded.captures is not None else []
        device = device_of_call([*call.arrays, *(t.backing_array for t in reached)])
        recorded.trace.check_device(device)
        debugged = taken_out(recorded.trace.module, device)
        frozen, own = self.freeze and debugged is None, len(call.arrays)
        wanted = not frozen and not recorded.accumulates and requires_grad([*call.given, *reached])
        if frozen:
            check_device(self.signature.name, device)
            mark_constants(recorded, own, self.signature.name)
        elif wanted:                                       # lowering consumes the recording
            recorded.function = FunctionRecord(copy_of(recorded.trace.module), self.signature.name)
        if device.startswith("mesh"):
            recorded.mark_results()
        placement = self.placement.at(device).timed(timed)

        def make() -> Code:
            executable = native_code(recorded.trace.module, placement)
            entry = without_constants(executable, recorded, own) if frozen else executable.entry("main")
            if debugged is not None:
                entry = DebuggedEntry(entry, debugged)
            return Code(executable, entry, RepeatedCall.of(entry, recorded, own))

        code = Specialization(recorded, make, call.donated())
        derives = any(recorded.trace.module.inside(Derivative))
        code.may_split = not (frozen or recorded.accumulates or debugged or code.donated or recorded.trace.unpadding
                           or derives or device.startswith("mesh"))
        code.waits = code.may_split and wanted and all(t.is_static for t in call.input_types())
        if not code.waits:
            _ = code.code                                  # errors are those of the first call
        return code

    def _beside_python(self, call: Call) -> Any:
        from mlc.checked import checked_call
        return checked_call(self, call, self.run)


def native_code(module: Module, placement: Placement) -> Any:
    """Loaded code of a module of the tensor level: lowered and compiled, unless it is cached."""
    toolchain = placement.toolchain()                      # backends/cpu/toolchain.py, backends/cuda/toolchain.py

    def image(module: Module) -> Any:
        lowered = toolchain.lower(module)
        return toolchain.compile(lowered, placement.cache)

    return loaded(module, toolchain, image, placement.cache)


frontend.use(FrontendCompiler(lambda module, placement: native_code(module, placement)))


def compiled_function(f: Any) -> Compiled | None:
    """The `Compiled` behind what `mlc.compile` returned: that itself, or what it calls where it has no fast path."""
    found = getattr(f, "compiled", None)
    return found if isinstance(found, Compiled) else None


def native_entries() -> int:
    """Number of times that this process has entered compiled code.

    Returns:
        An integer.

    Example:
        >>> before = mlc.native_entries()
        >>> _ = mlc.compile(lambda x: x * 2)(mlc.ones(2))
        >>> mlc.native_entries() > before
        True
    """
    from mlc.backends import executable
    return executable.native_entries()


@overload
def compile(f: M, donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
            check: bool = False, checked: bool = False, freeze: bool = False,
            excess_precision: bool = False) -> M: ...
@overload
def compile(f: Callable[..., Any], donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
            check: bool = False, checked: bool = False, freeze: bool = False,
            excess_precision: bool = False) -> Compiled: ...
@overload
def compile(f: None = None, donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False,
            dynamic: bool | None = None, check: bool = False, checked: bool = False,
            freeze: bool = False, excess_precision: bool = False) -> Callable[[Callable[..., Any]], Compiled]: ...
@coded
def compile(f: Any = None, donate: Parameters = (), *, static: Parameters = (),
            args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
            matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
            check: bool = False, checked: bool = False, freeze: bool = False,
            excess_precision: bool = False) -> Any:
    """Compile a function to native code, when it is first called, once for each kind of arguments.

    Tensors that f reaches by itself (closures, globals, attributes, elements of containers) are inputs of the code,
    which it may change: f may call `backward`, the steps of optimizers and schedulers, and draw random numbers. numpy
    arrays and Python values that it reaches are part of what is compiled; each call checks that they are still the
    same, and if not, f is recorded again; code for the last eight states is kept. f may not change other objects that
    were there before it was called. A call that fails has changed nothing. While one runs, another thread that reads a
    tensor which it changes may find some of the new elements, as in PyTorch.

    `if`, `while`, `for`, `break`, `continue`, `return`, `and`, `or`, `not`, conditional expressions and `assert` mean
    on tensors what they mean in Python, in f and in the functions that it calls; `Compiled.report` lists them.

    Args:
        f: Function of nested containers of arrays, to such. Python numbers are arguments too; all else (strings, bools,
            None, functions) is part of what is compiled. Without it, a decorator is returned.
        donate: Parameters, by name or position, whose memory the results may take: a donated tensor cannot be used
            afterwards, a donated numpy array holds anything. Both must be writable and contiguous.
        static: Parameters, by name or position, whose numbers are part of what is compiled. Those whose numbers Python
            asks for while the function is recorded, as a dimension, a size, or a key of a dict, become static without
            being named, if they are numbers or tuples of them. After 64 different ones the function runs as Python for
            others, with a warning.
        args: Specifications of the positional arguments (`mlc.spec`, containers of them, None for none), as annotations
            such as `def f(x: mlc.spec("B", 64))` give them too.
        target: "cuda" or "cuda:1" to run on that device and leave results there; "cuda:sm_90" the same with code for
            that architecture; "host" for the CPU. None runs where tensors among the arguments are.
        graph: Whether a device launches all kernels as one CUDA graph, where the sizes alone say which there are, and
            they are more than two.
        matmul_precision: Precision of matrix products and convolutions. None: float16 and bfloat16 by tensor cores,
            where the device has them and sums are of a multiple of 16 terms; all else as "ieee", by fused multiply-add,
            with the same bits everywhere. "tf32": also float32 by tensor cores, with 10 bits after the point of each
            factor, for sums of a multiple of 8 terms.
        fallback: Whether f runs as Python for arguments for which it cannot be recorded.
        dynamic: True for one code for all sizes of the arguments, but for the arrays of modules; False for code for
            each; None for code for the sizes of the first call, and then one for all sizes of those axes that differ.
        check: Whether each call runs as Python too, operation by operation, and results are compared.
        checked: Whether each access to memory is checked to be within bounds and initialized, and index arithmetic to
            fit 64 bits. Results have the same bits, at 4 to 12 times the time and twice the memory; on the CPU.
        freeze: Whether the tensors that f reaches, such as the weights of a model in evaluation, are constants. What
            depends on them alone is then computed once, matrix products and convolutions read weights from a copy in
            the layout that suits them, and images have their channels last between convolutions. Results have the same
            bits. If one of these tensors is changed, f is recorded again; there
            are no derivatives. Arguments, and modules among them, are not constants. On the CPU.
        excess_precision: Whether a float16 or bfloat16 value that one or two arithmetic operations on elements, or
            reductions, read, and nothing else, stays float32 in between, as PyTorch's and XLA's compilers have it.
            Without, each operation rounds its result, as it does when it is called by itself. Results are closer to
            those of float32 then, and take less time. Threads have no part in them, but what is compiled has: a call
            that is recorded for `backward` rounds what backward reads. Compiled functions that f calls do as f does.

    Returns:
        The compiled function, which is called as f is and has the methods of `Compiled`. Of a module, the same module
        by another class, whose calls are compiled: it has its attributes and methods besides, and is an instance of its
        class.

    Raises:
        UserError: A setting names no parameter or is unknown (MLC0380), the target is unknown (MLC0501), or f changes
            what was there before (MLC0615). With `freeze`, f changes a tensor that it reaches (MLC0995).
        UserTypeError: f is no function (MLC0380).
        InternalError: With `check`, Python gives something else (MLC0903); with `checked`, an access is wrong
            (MLC0480).

    Example:
        >>> @mlc.compile
        ... def f(x):
        ...     return mlc.sqrt(x) + 1
        >>> f(mlc.tensor([1.0, 4.0]))
        tensor([2., 3.], dtype=mlc.float32)
    """
    options = {"donate": donate, "static": static, "args": args, "target": target, "graph": graph,
               "matmul_precision": matmul_precision, "fallback": fallback, "dynamic": dynamic, "check": check,
               "checked": checked, "freeze": freeze, "excess_precision": excess_precision}
    if f is None:
        return functools.partial(compile, **options)
    compiled = Compiled(f, **options)  # type: ignore[arg-type]
    if compiled.signature.bound:
        return f._as_compiled(compiled, options) if hasattr(f, "_as_compiled") else compiled
    return compiled.with_dispatcher().dispatcher


@coded
def lower(f: Callable[..., Any], args: Sequence[Any] | None = None, level: str = "tensor") -> Lowered:
    """Lower a function to a module at a level of the compiler.

    "trace" is what was recorded, "tensor" the same differentiated, inlined and simplified; then come "loop", "low" and
    "llvm".

    Args:
        f: Function, or result of `mlc.compile`.
        args: Arguments, arrays or specifications (`mlc.spec`); None for the annotations of f.
        level: One of the levels above.

    Returns:
        The module, which prints as its text.

    Raises:
        UserError: An argument is not specified (MLC0381), or the level is unknown (MLC0334).

    Example:
        >>> print(mlc.lower(lambda x: x + x, [mlc.spec("B")]))
        module {
          func.func @main(%x: tensor<Bxf32>) -> tensor<Bxf32> attributes {arg_names = ["x"]} {
            %0 = tensor.add %x, %x : tensor<Bxf32>
            func.return %0 : tensor<Bxf32>
          }
        }
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
