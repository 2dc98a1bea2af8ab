"""Calls of compiled functions: binding and flattening of arguments, and the lookup key of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

from mlc.dialects.builtin import EXCESS_PRECISION
from mlc.frontend import tree
from mlc.frontend.autocast import autocast_of, on_device
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.captures import in_order
from mlc.frontend.devices import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import Recorded, record_entry
from mlc.frontend.refusals import in_progress
from mlc.frontend.script.reach import Reached
from mlc.frontend.signature import Arguments, Spec, name_of, parameters, paths_of, roots
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import TensorType

Parameters = str | int | Iterable[str | int]
"""Parameters of a function: names, positions, or one of them."""


class Signature:
    """A function to be compiled, and its parameters.

    f       the function; for a module, that of its class
    module  the module whose `__call__` f is, which it reaches by itself
    bound   the module, as the first argument of every call; its arrays are arguments, not constants
    names   the parameters that may be passed by position
    donate  parameters whose memory results may reuse
    static  parameters that are compile-time constants
    asked   those of them that are since Python asked for their numbers while the function was recorded
    numbers what these were in calls
    warned  whether a warning has been given of too many of these
    specs   the specifications of parameters
    device  the device it runs on; None: that of the arguments
    sees_layout    whether recordings depend on how the elements of the arguments lie in memory
    sees_autograd  whether recordings depend on what autograd knows of the arguments
    sees_identity  whether recordings depend on which arguments are one tensor
    excess_precision  whether values of 16 bits may have more bits between two operations
    """

    def __init__(self, f: Callable[..., Any], donate: Parameters = (), static: Parameters = (),
                 args: Sequence[Any] | None = None, device: str | None = None) -> None:
        self.bound: tuple[Any, ...] = ()
        if isinstance(f, tree.AttributeTree):
            self.bound, f = (f,), type(f).__call__
        if not callable(f):
            raise UserTypeError(f"mlc.compile takes a function, found {type(f).__name__}", code="MLC0380",
                                loc=user_loc())
        self.f, self.device = f, device
        self.module = called_module(f)
        self.asked = frozenset[str]()
        self.numbers = set[Any]()
        self.warned = False
        self.sees_layout = False                           # whether recordings depend on strides
        self.sees_identity = False                         # whether recordings depend on which arguments are one
        self.sees_autograd = False                         # whether recordings depend on `requires_grad` and the like
        self.excess_precision = False
        known = parameters(f)
        if self.bound and "args" in known and hasattr(self.bound[0], "forward"):
            known = parameters(type(self.bound[0]).forward)            # its __call__ passes all of them on
        elif self.module is not None:
            known = parameters(self.module.forward)
        self.names = [n for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY)]
        every = [n for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.donate = self._parameters(donate, every, "donate")
        self.static = self._parameters(static, every, "static")
        if both := sorted(self.donate & self.static):
            raise UserError(f"{both[0]} is both donated and static", code="MLC0380", loc=user_loc())
        self.specs = self._specifications(known, args)

    @property
    def name(self) -> str:
        """Name of the function in messages; of a module, that of its class."""
        module = self.bound[0] if self.bound else self.module
        return name_of(self.f) if module is None else type(module).__name__

    def _parameters(self, given: Parameters, names: Sequence[str], what: str) -> frozenset[str]:
        """The names of parameters, which may be given by position."""
        out = set()
        for x in (given,) if isinstance(given, str | int) else given:
            name = names[x] if isinstance(x, int) and -len(names) <= x < len(names) else x
            if name not in names:
                raise UserError(f"{what} names {x!r}, which is no parameter of {self.name}", code="MLC0380",
                                loc=user_loc(), hint="it has " + ", ".join(names))
            out.add(str(name))
        return frozenset(out)

    def _specifications(self, known: dict[str, Any], args: Sequence[Any] | None) -> dict[str, Any]:
        """Specifications of the parameters' types: by annotation, or by position in `args`."""
        out = {n: p.annotation for n, p in known.items() if isinstance(p.annotation, Spec)}
        for i, x in enumerate(args or ()):
            if i + len(self.bound) >= len(self.names):
                raise UserError(f"args has {len(args or ())} specifications, {self.name} takes "
                                f"{len(self.names) - len(self.bound)} positional arguments", code="MLC0380",
                                loc=user_loc())
            if x is not None:
                out[self.names[i + len(self.bound)]] = x
        return out

    def specified(self) -> list[Any] | None:
        """The specifications of the positional arguments; None where one that must be passed has none."""
        known = parameters(type(self.bound[0]).forward) if self.bound and hasattr(
            self.bound[0], "forward") else parameters(self.f if self.module is None else self.module.forward)
        out = list[Any]()
        for name in self.names[len(self.bound):]:
            if name in self.specs:
                out.append(self.specs[name])
            elif known[name].default is known[name].empty:
                return None
            else:
                break
        return out

    def bound_arrays(self) -> list[Any]:
        """The arrays of the module that is bound, which are the first arguments of the code."""
        leaves = tree.leaves(self.bound)
        return [x.array if isinstance(x, Tensor) else x for x, slot in zip(
            leaves, Arguments(leaves, tree.TreeDef()).slots) if slot]

    def marked(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with each static one as a single leaf."""
        if not self.static:
            return args, keywords
        return (tuple(self._marked(self.names[i], x) if i < len(self.names) else x for i, x in enumerate(args)),
                {n: self._marked(n, x) for n, x in keywords.items()})

    def _marked(self, name: str, x: Any) -> Any:
        return tree.Static(x) if name in self.static and (name not in self.asked or _is_of_numbers(x)) else x

    def specs_of(self, name: str, x: Any) -> list[Spec | None]:
        """The specification of each leaf of an argument."""
        leaves, structure = tree.flatten(x)
        wanted = self.specs.get(name)
        if wanted is None:
            return [None] * len(leaves)
        if isinstance(wanted, Spec):
            if len(structure) != 1:
                raise UserTypeError(f"{name} is a {type(x).__name__}, its specification {wanted}", code="MLC0381",
                                    loc=user_loc())
            return [wanted]
        return [s if isinstance(s, Spec) else None for s in tree.matching_leaves(structure, wanted)]

    def bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Call:
        """A call with these arguments, those of the bound module before them."""
        return Call(self, (*self.bound, *args) if self.bound else args, keywords)

    def bind_types(self, args: Sequence[Any], keywords: dict[str, Any]) -> Call:
        """A call some of whose arguments are specifications: it can be recorded, not run."""
        call = self.bind(tuple(args), keywords)
        call.types = [x.type if isinstance(x, Spec) else t for x, t in zip(call.given, call.types)]
        return call


def called_module(f: Callable[..., Any]) -> Any:
    """The module whose `__call__`, with any arguments that `forward` takes, is this method; None for all else."""
    owner = getattr(f, "__self__", None)
    is_call = isinstance(owner, tree.AttributeTree) and f.__name__ == "__call__" and hasattr(owner, "forward")
    return owner if is_call and "args" in parameters(f) else None


class Call(Arguments):
    """One call of a function.

    args, keywords  as the function itself takes them
    marked          the same, with each static argument as a leaf
    target_device   device that the call runs on
    captured        the inputs of the code besides the arguments: tensors, and the arrays of numbers
    autocast        the autocast state that it is recorded in
    lookup          what to find its code by: all that the code depends on
    before          the arrays of captured tensors before the call, if a profile is on
    left            what the code has left for backward: its results behind those of the function
    """

    __slots__ = ("args", "autocast", "before", "captured", "keywords", "left", "lookup", "marked", "signature",
                 "target_device")

    def __init__(self, signature: Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.signature, self.args, self.keywords = signature, args, keywords
        self.marked = signature.marked(args, keywords) if signature.static else (args, keywords)
        leaves, structure = tree.flatten(self.marked)
        specs = None
        if signature.specs:
            specs = [s for name, x in self.roots() for s in signature.specs_of(name, x)]
        super().__init__(leaves, structure, specs)
        self.captured: list[Any] = []
        self.before: list[Any] = []
        self.left: Sequence[Any] = ()
        self.target_device = signature.device or self.device
        self.lookup: Any = self.key if signature.device or self.device == CPU else (self.key, self.device)
        self.autocast = on_device(self.target_device) if state.autocast is not None else None
        if self.autocast is not None:
            self.lookup = self.lookup, self.autocast
        if signature.sees_autograd:
            self.see_autograd()
        if signature.sees_layout:
            self.see_layout()
        if signature.sees_identity:
            self.see_identity()

    def see_layout(self) -> None:
        """Have the code be looked up by whether the elements of each argument lie in memory in order, too."""
        self.lookup = self.lookup, self._layout()

    def _layout(self) -> tuple[bool, ...]:
        return tuple(map(in_order, self.given))

    def see_identity(self) -> None:
        """Have the code be looked up by which arguments are one tensor, too."""
        self.lookup = self.lookup, self._identity()

    def _identity(self) -> tuple[int, ...]:
        """Per array, the number of the first argument that it is."""
        first: dict[int, int] = {}
        return tuple(first.setdefault(id(x), i) for i, x in enumerate(self.given))

    def see_autograd(self) -> None:
        """Have the code be looked up by what autograd knows of the arguments, too."""
        self.lookup = self.lookup, self._autograd()

    def _autograd(self) -> tuple[Any, ...]:
        """The grad mode, and per tensor whether it requires a gradient, is a leaf and has a gradient, and its hooks."""
        metas = [x._autograd if type(x) is Tensor else None for x in self.given]
        return mode.enabled, *(
            None if m is None else (m.requires_grad, m.node is None, m.grad is not None, *m.hooks, *m.after)
            for m in metas)

    def roots(self) -> list[tuple[str, Any]]:
        """(name, argument), in the order in which the leaves come; static arguments are leaves."""
        return roots(self.signature.names, *self.marked)

    def lookup_without_sizes(self) -> Any:
        """Lookup key of code for many sizes: the key without the sizes of arrays whose types are not specified."""
        flags = iter(zip(self.types, self.weak))
        out: list[Any] = [self.key[0]]
        for part, slot in zip(self.key[1:], self.slots):
            is_sized = slot and next(flags) == (None, False)
            out.append((part[0], len(part[1])) if is_sized else part)
        return (tuple(out), self.device, self.autocast, self._autograd() if self.signature.sees_autograd else (),
                self._layout() if self.signature.sees_layout else (),
                self._identity() if self.signature.sees_identity else ())

    def paths(self) -> list[str]:
        """The path of each array from the caller's side: `params['w'][0]`."""
        return paths_of(self.signature.names, self, *self.marked)

    def values(self) -> list[tuple[str, Any]]:
        """The arguments that are no arrays, each with its path."""
        every = [path for name, x in self.roots() for path in tree.paths(x, name)]
        return [(path, x.value if isinstance(x, tree.Static) else x)
                for path, x, slot in zip(every, self.leaves, self.slots) if not slot]

    def donated(self) -> tuple[int, ...]:
        """The numbers of the arrays whose memory results may reuse."""
        numbers, slots, number = list[int](), iter(self.slots), 0
        for name, x in self.roots():
            for _ in tree.leaves(x):
                if next(slots):
                    numbers += [number] if name in self.signature.donate else []
                    number += 1
        return tuple(numbers)

    def of_modules(self) -> list[bool]:
        """Per array: whether it belongs to a module among the arguments."""
        of_module: list[bool] = []
        for _, x in self.roots():
            of_module += [any(True for _ in tree.attribute_trees(x))] * len(tree.leaves(x))
        return [h for h, slot in zip(of_module, self.slots) if slot]

    def brings(self) -> dict[str, Any]:
        """Values besides arrays that arguments bring along: parts of the code, and the classes of modules."""
        values = [x for _, x in self.values()]
        for module in tree.attribute_trees((self.args, self.keywords)):
            values += [type(module), *(x for x in vars(module).values() if not tree.is_data(x)
                                       and not isinstance(x, tree.AttributeTree))]
        return {str(i): x for i, x in enumerate(values)}

    def specified(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments after the bound module, with specifications in place of the arrays."""
        arrays = iter(zip(self.input_types(), self.weak, self.given))
        leaves = list[Any]()
        for x, slot in zip(self.leaves, self.slots):
            type, weak, given = next(arrays) if slot else (None, True, x)
            leaves.append(Spec(type) if type is not None and not weak else given)
        args, keywords = self.structure.unflatten(leaves)
        return [x.value if isinstance(x, tree.Static) else x for x in args][len(self.signature.bound):], {
            name: x.value if isinstance(x, tree.Static) else x for name, x in keywords.items()}

    @contextmanager
    def of_types(self, types: Sequence[TensorType]) -> Iterator[None]:
        """Context in which arrays without a specification have these types."""
        before = self.types
        self.types = [t if s is None else s for s, t in zip(before, types)]
        try:
            yield
        finally:
            self.types = before

    def know_numbers(self, numbers: Set[int]) -> bool:
        """Have the parameters be static from now on that these arguments are, whose numbers Python asked for; False if
        they are no numbers, or have other parts, too."""
        if not numbers or not all(i < len(self.weak) and self.weak[i] for i in numbers):
            return False
        names, slots, number = set[str](), iter(self.slots), 0
        for name, x in self.roots():
            own = range(number, number + sum(next(slots) for _ in tree.leaves(x)))
            number = own.stop
            if numbers.isdisjoint(own):
                continue
            if not (name.isidentifier() and name not in self.signature.donate and _is_of_numbers(x)):
                return False
            names.add(name)
        self.signature.static |= names
        self.signature.asked |= names
        Call.__init__(self, self.signature, self.args, self.keywords)
        return True

    def know_again(self, static: frozenset[str], asked: frozenset[str]) -> None:
        """Have these parameters be static again, and those of which Python asked for the numbers."""
        self.signature.static, self.signature.asked = static, asked
        Call.__init__(self, self.signature, self.args, self.keywords)

    def is_of_few_numbers(self, most: int) -> bool:
        """Whether the numbers that have to be known are among the `most` first ones that the function was called with.
        """
        numbers = tuple(x.value for x in self.leaves if isinstance(x, tree.Static))
        known = self.signature.numbers
        if len(known) < most:
            known.add(numbers)
        return numbers in known

    def unhashable(self) -> UserTypeError:
        """The error of a call whose code cannot be looked up."""
        every = [path for name, x in self.roots() for path in tree.paths(x, name)]
        for path, x, slot in zip(every, self.leaves, self.slots):
            try:
                hash(None if slot else x)
            except TypeError:
                return UserTypeError(f"{path} is a {type(x).__name__}, which is neither an array nor hashable",
                                     code="MLC0347", loc=user_loc())
        return UserTypeError("an argument is neither an array nor hashable", code="MLC0347", loc=user_loc())


def _is_of_numbers(x: Any) -> bool:
    """Whether an argument is a number of Python, or a tuple of them."""
    return all(map(_is_of_numbers, x)) if type(x) is tuple else type(x) in (int, float, bool)


def record(call: Call, reached: Reached | None = None, captures: bool = True) -> Recorded:
    """The function as a module, recorded for the arguments of a call.

    reached   what it reaches by itself, which it may not change; looked up without one
    captures  whether tensors that it reaches are inputs of the module, which it may change, or constants
    """
    in_progress.asked = ()
    with autocast_of(call.autocast):
        recorded = record_entry(call.signature.f, call, call.paths(), donated=call.donated(),
                                reached=reached or Reached({"": call.signature.f}), name=call.signature.name,
                                writes=True, captures=captures)
    if call.signature.excess_precision:
        recorded.trace.module.attrs[EXCESS_PRECISION] = True
    return recorded
