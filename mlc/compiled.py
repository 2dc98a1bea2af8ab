"""Compiled functions: settings, code, and the methods for inspection.

The call itself is in mlc/api.py.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

from mlc.backends.cached_code import image_of
from mlc.call import Parameters, Signature, called_module, record
from mlc.code import Placement, target_named
from mlc.dispatch_cache import FROZEN_STATES_KNOWN, STATES_KNOWN, DispatchCache
from mlc.frontend import tree
from mlc.frontend.autocast import on_device
from mlc.frontend.devices import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.script.report import Report
from mlc.frontend.signature import name_of
from mlc.frozen import mark_constants, mark_weights
from mlc.ir import html, sizes
from mlc.ir.diag import UserError
from mlc.ir.instrumentation import CHECKS, NONE
from mlc.ir.profiling import state as profiling
from mlc.ir.weak_references import WeakList
from mlc.variant import Variant, bound_key, variant_of

if TYPE_CHECKING:
    from mlc.backends.executable import Entry
    from mlc.device_call import DeviceCall
    from mlc.lowered import Lowered

PRECISIONS = (None, "ieee", "tf32")
"""Values of `matmul_precision`."""
_functions = WeakList["CompiledFunction"]()


def _after_fork() -> None:
    for function in _functions.values():
        for cache in function._caches.values():
            cache.after_fork()


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def without_fast_paths() -> Iterator[None]:
    """Context in which all calls of compiled functions take the slow path through Python."""
    from mlc.backends.cpu.callable import without_fast_path
    with ExitStack() as stack:
        for function in _functions.values():
            if function.dispatcher is not None:
                stack.enter_context(without_fast_path(function.dispatcher, function))
        yield


class CompiledFunction:
    """A function, the settings of its compilation, and its compiled code.

    signature   the function and its parameters
    placement   the device, and the requirements on its code
    cache       its specializations; those whose kernels are timed, while a profile asks for them
    reports     one report per specialization
    wrappers    the fast paths, when each is checked by itself
    reaching    those of them that take tensors which the function reaches, each with these
    dispatcher  the callable that users hold, if it learns fast paths
    filled      how many calls have run as Python since they make what the function reaches
    unsteady    whether it was compiled for more captured states than are kept
    device_calls          its repeated calls on devices
    device_calls_learned  how many it has learned so far
    """

    __call__: Callable[..., Any]

    def __init__(self, f: Callable[..., Any], donate: Parameters = (), static: Parameters = (),
                 args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
                 matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
                 check: bool = False, checked: bool = False, freeze: bool = False,
                 excess_precision: bool = False) -> None:
        if matmul_precision not in PRECISIONS:
            raise UserError(f"matmul_precision is {matmul_precision!r}", code="MLC0380", loc=user_loc(),
                            hint='one of "ieee", "tf32" and None')
        if dynamic not in (None, True, False):
            raise UserError(f"dynamic is {dynamic!r}", code="MLC0380", loc=user_loc(),
                            hint="one of True, False and None")
        device, machine = target_named(target)
        self.placement = Placement(device, machine, graph, matmul_precision, CHECKS if checked else NONE)
        self.signature = Signature(f, donate, static, args, device)
        self.signature.excess_precision = excess_precision
        against = [name for name, given in (("donate", donate != ()), ("static", static != ()),
                                            ("target", device not in (None, CPU))) if given]
        if freeze and against:
            raise UserError(f"freeze=True does not go with {' and '.join(against)}", code="MLC0380", loc=user_loc(),
                            hint=f"leave out {' and '.join(against)}, or freeze")
        self.fallback, self.dynamic, self.check, self.freeze = fallback, dynamic, check, freeze
        self._settings: dict[str, Any] = {"donate": donate, "static": static, "args": args, "graph": graph,
                          "matmul_precision": matmul_precision, "fallback": fallback, "dynamic": dynamic,
                          "check": check, "checked": checked, "freeze": freeze,
                          "excess_precision": excess_precision}
        self._caches = {False: self._new_cache(False)}
        self.reports: list[Report] = []
        self.wrappers = list[Any]()
        self.reaching = list[tuple[Any, Any]]()
        self.dispatcher: Any = None
        self.filled = 0
        self.unsteady = False
        self.device_calls: tuple[DeviceCall, ...] = ()
        self.device_calls_learned = 0
        _functions.add(self)
        functools.update_wrapper(self, self.signature.f, updated=())

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By the name that its module has it under, as of all functions."""
        function, module = self.signature.f, self.signature.f.__module__
        held: Any = sys.modules.get(module)
        for part in function.__qualname__.split("."):
            held = getattr(held, part, None)
        if getattr(held, "compiled", None) is not self:
            raise UserError(f"{name_of(function)} cannot be pickled: it is not what {module} has under the name "
                            f"{function.__qualname__}", code="MLC0799", loc=user_loc(),
                            hint="define it at the top level of a module, by a decorator")
        return _named, (module, function.__qualname__)

    @property
    def cache(self) -> DispatchCache:
        """Its specializations for calls from now on. A call asks once: a profile may begin or end meanwhile."""
        timed = profiling.kernels
        found = self._caches.get(timed)
        if found is None:
            found = self._caches.setdefault(timed, self._new_cache(timed))
        return found

    def _new_cache(self, timed: bool) -> DispatchCache:
        return DispatchCache(self.signature, timed, FROZEN_STATES_KNOWN if self.freeze else STATES_KNOWN)

    def with_dispatcher(self) -> Self:
        """This function, with a callable that learns fast paths."""
        from mlc.backends.cpu.callable import make_dispatcher
        self.dispatcher = make_dispatcher(self)
        return self

    @functools.cached_property
    def direct(self) -> CompiledFunction | None:
        """The compiled function that takes the calls of a bound module, which it reaches by itself: so it need not be
        taken apart in each call. None where all that the module has is an argument of the code: on a device, if
        arguments are donated or static, and if the module has a buffer without a value, which a call may make."""
        bound = self.signature.bound
        if not bound or self.signature.device is not None or called_module(bound[0].__call__) is None or (
                self.signature.donate or self.signature.static):
            return None
        if not self.freeze and any(
                vars(m).get(name) is None for m in tree.attribute_trees(bound[0]) for name in m._buffers):
            return None
        return type(self)(bound[0].__call__, **self._settings).with_dispatcher()

    # -- code for files -----------------------------------------------------------------------------------------------
    @property
    def variants(self) -> list[Variant]:
        """Variants compiled for the current state of the bound module and of autocast."""
        now, state = bound_key(self.signature), self.cache.state()
        called = state.reaching if self.direct is None else [*state.reaching, *self.direct.cache.reaching()]
        distinct = {repr((args, keywords)): (args, keywords) for key, args, keywords in called if key == now}
        prepared = [self.prepare(args, keywords) for args, keywords in distinct.values()]
        made = [] if on_device(self.signature.device or CPU) is not None else state.variants     # without autocast
        return [v for v in (*made, *prepared) if v.bound == now]

    def prepare(self, args: Sequence[Any], keywords: dict[str, Any], targets: Sequence[str] = ()) -> Variant:
        """The code for arguments like these (arrays or specifications), made without running it; for machines of these
        names, as of `mlc.compile`, or for that which the function runs on."""
        call = self.signature.bind_types(args, keywords)
        images = []
        for placement in [self.placement.named(t) for t in targets] or [self.placement]:
            recorded = record(call, captures=False)        # lowering consumes the recording
            if recorded.computes:
                placed = placement.at(call.device)
                if self.freeze:
                    mark_weights(recorded, self.signature, str(placed.device))
                toolchain = placed.toolchain(here=False)
                images.append(image_of(recorded.trace.module, toolchain))
        return variant_of(call, recorded, images)

    def recording(self, args: Sequence[Any], keywords: dict[str, Any]) -> Variant:
        """Recording for arguments like these (arrays or specifications), without any code."""
        call = self.signature.bind_types(args, keywords)
        return variant_of(call, record(call, captures=False), [])

    # -- looking inside -----------------------------------------------------------------------------------------------
    def report(self) -> str:
        """Describe what the function was compiled for.

        Returns:
            Text: for each specialization its types, the lines that became loops and conditions, the Python values it
                was specialized on, and for which arguments it runs as Python (`fallback`), and why.
        """
        reports = self.reports if self.direct is None else [*self.direct.reports, *self.reports]
        count = len(reports)
        return f"{self.signature.name}: {count} specialisation{'s' * (count != 1)}\n" + "".join(map(str, reports))

    def peak_bytes(self, **numbers: int) -> int:
        """Compute the memory of a call before it is made: bytes of its arguments, its results and all between, at once.

        Of several codes, it is the most of those whose symbols are given; that of calls which are recorded for
        `backward` has what they leave for it among its results. Loops with a data-dependent trip count may
        take more for their derivatives, while these run.

        Args:
            numbers: Values of the symbolic sizes.

        Returns:
            An integer.

        Raises:
            UserError: There is no code with these symbols (MLC0409).
        """
        interfaces = [e.interface for e in self.entries]
        if not interfaces and (args := self.signature.specified()) is not None:
            interfaces = [i for image in self.prepare(args, {}).images for i in image.interfaces.values()]
        found = [i for i in interfaces if set(i.symbols) == set(numbers)]
        if not found:
            known = sorted({", ".join(i.symbols) or "none" for i in interfaces})
            raise UserError(f"{self.signature.name} has no code whose symbolic sizes are "
                            f"{', '.join(numbers) or 'none'}",
                            code="MLC0409", loc=user_loc(), hint="those of what is compiled so far: " + (
                                "; ".join(known) if known else "nothing is, so call it once"))
        return max(sum(sizes.evaluate(n, numbers) for n in (i.arena, *(
            t.size * t.dtype.itemsize for t in (*i.inputs, *(t for t, a in zip(i.results, i.aliases) if a < 0)))))
            for i in found)

    def lower(self, *args: Any, level: str = "tensor", **keywords: Any) -> Lowered:
        """Lower the function for these arguments, as `mlc.lower`.

        Tensors that it reaches by itself are constants of the module, unless it changes any; those of a frozen function
        are arguments, of which a function of its own computes what the code takes.

        Args:
            args: Arrays or specifications.
            level: Level of the module.
            keywords: Arrays or specifications.

        Returns:
            The module, which prints as its text.
        """
        from mlc.backends.target import Target
        from mlc.lowered import Lowered
        if self.freeze and self.direct is not None:        # which takes the calls, and has the weights as constants
            lowered: Lowered = self.direct.lower(*args, level=level, **keywords)
            return lowered
        call = self.signature.bind_types(args, keywords)
        vendor = call.target_device.partition(":")[0]
        gpu = None if call.target_device == CPU else self.placement.target or Target.default(vendor)
        recorded = record(call)
        if self.freeze:
            mark_constants(recorded, len(call.arrays), self.signature.name)
        elif recorded.captures is not None and recorded.captures.tensors() and not recorded.has_effects:
            recorded = record(call, captures=False)        # a module that says everything by itself
        return Lowered(recorded.trace.module, level, gpu, self.placement.precision)

    @property
    def compiled(self) -> CompiledFunction:
        """This object, also when asked of the callable that `mlc.compile` returns for it."""
        return self

    @property
    def signatures(self) -> list[str]:
        """The types of the specializations compiled so far."""
        own = [text for code in self.cache.all() if (text := code.signature) is not None]
        return own if self.direct is None else own + self.direct.signatures

    @property
    def entries(self) -> list[Entry]:
        """The compiled entries so far; each counts its calls."""
        own = [entry for code in self.cache.all() for entry in code.made]
        return own if self.direct is None else own + self.direct.entries

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance, as a method does."""
        return self if instance is None else functools.partial(self, instance)

    def _repr_html_(self) -> str:
        rows = [(str(e.interface.type), str(e.calls)) for e in self.entries]
        made = html.table(("compiled for", "calls"), rows) if rows else html.plain("not yet called")
        told = html.folded("report", html.plain(self.report()))
        return html.folded(f"mlc.compile({self.signature.name})", made + told, True)

    def __repr__(self) -> str:
        return f"<mlc.compile({self.signature.name}), {len(self.cache.all())} signatures>"


def _named(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))
