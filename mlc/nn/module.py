"""Module: a tree of parameters with a `forward`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mlc.frontend import absent, tree
from mlc.frontend.arguments import FAILURES, as_coded, coded_methods
from mlc.frontend.dtypes import destination
from mlc.frontend.functions.elementwise import cast_to
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Consumed, DTypeLike, Tensor, as_array, is_operand
from mlc.frontend.trace import Tracer, call, check_call, state
from mlc.ir.diag import Error, UserError, UserTypeError
from mlc.ir.types import from_numpy

M = TypeVar("M", bound="Module")


class Incompatible(NamedTuple):
    """What a state and a module do not share: names the module has, and names the state has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Parameter(Tensor):
    """A tensor that is trained: an attribute of a module that is assigned one is a parameter from then on.

        self.scale = nn.Parameter(mlc.ones(3))

    data           a tensor, an array, or what `mlc.tensor` takes
    requires_grad  False: a parameter that is frozen, see `Module.freeze`

    The module holds the tensor itself. As in torch.nn.Parameter, but that a new model is what an update makes.
    """

    __slots__ = ("tensor", "trains")

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        self.tensor = data if type(data) is Tensor else Tensor(as_array(data))
        self.trains = bool(requires_grad)
        self._array = self.tensor.held


coded_methods(Parameter, ("__init__",))


class Module(tree.AttributeTree):
    """A part of a model. Its parameters are the attributes assigned `nn.Parameter`s, in it and in the modules it holds.

    A module is itself an argument and a result: `mlc.grad(loss)(model, x)` is a module that holds the gradients, and
    `opt.update(gradients, state, model)` returns a new model. Attributes without arrays (sizes, functions, flags) are
    part of what is compiled.

        class Net(nn.Module):
            def __init__(self):
                self.hidden = nn.Linear(64, 128)
                self.out = nn.Linear(128, 10)
                self.scale = nn.Parameter(mlc.ones(10))

            def forward(self, x):
                return self.scale * self.out(mlc.relu(self.hidden(x)))

    A buffer (`register_buffer`) is a tensor that is state and not trained, such as the running mean of a BatchNorm:
    it has no gradient, optimisers leave it alone, and `forward` may assign it anew. Such an assignment reaches the
    caller out of calls, derivatives and compiled functions alike: on the module that was passed, or on the one that
    the function returns. Any other attribute that is a tensor or an array, such as a mask, has no gradient either, is
    not in `state_dict`, and stays as it is.

    `train`, `eval`, `freeze`, `to` and `load_state_dict` change the module itself, as in PyTorch.

    Layers share a weight by holding the same tensor, `self.out.weight = self.embedding.weight`: that is one parameter,
    with one gradient, which `state_dict` has under both names.
    """

    training = True
    _unsaved: tuple[str, ...] = ()                         # buffers that `state_dict` leaves out

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", _blamed(vars(cls)["__init__"]))  # noqa: B010 (for mypy)

    def __init__(self) -> None:
        """A module without anything in it."""

    def forward(self, *args: Any, **keywords: Any) -> Any:
        raise UserTypeError(f"{type(self).__name__} has no forward", code="MLC0349", loc=user_loc(),
                            hint="define it, or call what the module holds")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """forward(...); within a recorded function, a call of a function of its own."""
        try:
            if state.trace is None:
                return self.forward(*args, **keywords)
            return call(type(self).__name__, self.forward, *args, **keywords)
        except Error:
            raise
        except FAILURES as error:
            check = as_coded if type(self).__module__.startswith("mlc.") else _check_count
            check(error, self.forward, type(self).__name__, args, keywords)
            raise

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self), name):
            object.__getattribute__(self, name)              # a property that failed: let its own error be seen
        raise absent.error(type(self).__name__, name, absent.MODULE.get(name), self)

    # -- what is inside -----------------------------------------------------------------------------------------------
    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the modules that this one holds itself, also in lists and dicts."""
        for name, x in self._held():
            if isinstance(x, Module):
                yield name, x

    def children(self) -> Iterator[Module]:
        return (x for _, x in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """(name, module) of this module and all inside it, each before those it holds."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        return (x for _, x in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """The module of this name: "layers.0"."""
        for name, module in self.named_modules():
            if name == target:
                return module
        raise UserError(f"{type(self).__name__} has no module {target!r}", code="MLC0385", loc=user_loc(),
                        hint="it has " + ", ".join(name for name, _ in self.named_modules() if name))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of every parameter, such as ("layers.0.weight", ...); frozen ones too, shared ones once."""
        names = {id(x): name for name, x in reversed(self._ties().items())}
        return ((name, x) for name, x in self._ties().items() if names[id(x)] == name)

    def parameters(self) -> list[Tensor]:
        return [x for _, x in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of every buffer."""
        return ((name, x) for name, owner, attribute, x in self._tensors() if attribute in owner._buffers)

    def buffers(self) -> list[Tensor]:
        return [x for _, x in self.named_buffers()]

    def num_parameters(self, trained: bool = False) -> int:
        """How many numbers the parameters are; with `trained`, without the frozen ones."""
        frozen = {id(x) for _, owner, attribute, x in self._tensors() if trained and attribute in owner._frozen}
        return sum(x.numel() for x in self.parameters() if id(x) not in frozen)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(value)
        if kind is Parameter or (kind in _CONTAINERS and any(isinstance(x, Parameter) for x in tree.leaves(value))):
            self._parameters = (*(n for n in self._parameters if n != name), name)
            if any(not x.trains for x in tree.leaves(value) if isinstance(x, Parameter)):
                self._frozen = (*(n for n in self._frozen if n != name), name)
            value = tree.map(lambda x: x.tensor if isinstance(x, Parameter) else x, value)
        object.__setattr__(self, name, value)

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Make an attribute that is a parameter; None keeps its place for one that comes later."""
        if not str(name).isidentifier() or (hasattr(self, name) and name not in self._parameters):
            raise UserError(f"{name!r} cannot name a parameter of a {type(self).__name__}", code="MLC0386",
                            loc=user_loc(), hint="it is no name of Python, or that of an attribute already")
        setattr(self, name, param if param is None or isinstance(param, Parameter) else Parameter(param))
        self._parameters = (*(n for n in self._parameters if n != name), name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make an attribute that is state, and no parameter; one that is not persistent is not in `state_dict`."""
        if not str(name).isidentifier() or (hasattr(self, name) and name not in self._buffers):
            raise UserError(f"{name!r} cannot name a buffer of a {type(self).__name__}", code="MLC0386", loc=user_loc(),
                            hint="it is no name of Python, or that of an attribute already")
        setattr(self, name, tensor)
        self._buffers = (*(n for n in self._buffers if n != name), name)
        self._unsaved = (*(n for n in self._unsaved if n != name), *[name] * (not persistent))

    def _held(self) -> Iterator[tuple[str, Module | Tensor]]:
        """The modules and tensors that the attributes hold, in containers too, but not those inside the modules."""
        for name, x in vars(self).items():
            yield from _inside(x, name)

    def _tensors(self) -> Iterator[tuple[str, Module, str, Tensor]]:
        """(name, the module that holds it, the attribute it is in, tensor) of every tensor."""
        for prefix, owner in self.named_modules():
            for name, x in owner._held():
                if isinstance(x, Tensor):
                    yield f"{prefix}.{name}" if prefix else name, owner, name.split(".")[0], x

    def _ties(self) -> dict[str, Tensor]:
        """Every parameter under each of its names."""
        return {name: x for name, owner, attribute, x in self._tensors() if attribute in owner._parameters}

    # -- changing it --------------------------------------------------------------------------------------------------
    def train(self: M, mode: bool = True) -> M:
        """Let Dropout, BatchNorm and the like do what they do in training; itself."""
        for module in self.modules():
            vars(module).pop("training", None)             # the class says True: a module is what it was when made
            if not mode:
                module.training = False
        return self

    def eval(self: M) -> M:
        """train(False): what the model does when it is used; itself."""
        return self.train(False)

    def apply(self: M, f: Callable[[Module], Any]) -> M:
        """Call f on every module inside, then on this one; itself."""
        for child in self.children():
            child.apply(f)
        f(self)
        return self

    def freeze(self: M, which: Callable[[str], bool] | None = None) -> M:
        """Take the parameters out of training, or those whose names `which` accepts; itself.

        A frozen parameter has no gradient, and optimisers neither change it nor keep state for it.
        """
        return self._freeze(which, lambda frozen, name: frozen if name in frozen else (*frozen, name))

    def unfreeze(self: M, which: Callable[[str], bool] | None = None) -> M:
        """Undo `freeze`; itself."""
        return self._freeze(which, lambda frozen, name: tuple(n for n in frozen if n != name))

    def _freeze(self: M, which: Callable[[str], bool] | None,
                change: Callable[[tuple[str, ...], str], tuple[str, ...]]) -> M:
        for name, owner, attribute, _ in list(self._tensors()):
            if attribute in owner._parameters and (which is None or which(name)):
                frozen = change(owner._frozen, attribute)
                vars(owner).pop("_frozen", None)
                if frozen:
                    owner._frozen = frozen
        return self

    def to(self: M, target: Any = None, dtype: DTypeLike = None, *, device: Any = None,
           non_blocking: bool = False) -> M:
        """Make the parameters and buffers that are floats of the float type `dtype`, and bring all to `device`; itself.

        target   an element type, a device, or a tensor that tells both
        """
        wanted, where = destination(target, dtype, device)
        if where is not None:
            self._assign({name: x.moved(where) for name, _, _, x in self._state()})
        if wanted is None:
            return self
        if not wanted.is_floating_point:
            raise UserTypeError(f"a module of {wanted} could not be trained", code="MLC0342", loc=user_loc(),
                                hint="use float16, bfloat16, float32 or float64")

        def cast(x: Tensor) -> Tensor:
            in_kernels = isinstance(x, Tracer) or x.is_cuda
            return cast_to(x, wanted) if in_kernels else Tensor(x.array.astype(wanted.dtype))

        self._assign({name: cast(x) for name, _, _, x in self._state() if x.dtype.is_floating_point})
        return self

    def cpu(self: M) -> M:
        """to("cpu")"""
        return self.to("cpu")

    def cuda(self: M, device: Any = None) -> M:
        """to("cuda")"""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def float(self: M) -> M:
        """to(float32)"""
        return self.to("float32")

    def double(self: M) -> M:
        """to(float64)"""
        return self.to("float64")

    def half(self: M) -> M:
        """to(float16)"""
        return self.to("float16")

    def bfloat16(self: M) -> M:
        """to(bfloat16)"""
        return self.to("bfloat16")

    def _assign(self, new: Mapping[str, Tensor]) -> None:
        """Put new tensors in place of those of these names; a shared parameter takes that of its first name."""
        ties = self._ties()
        first = {id(x): new[name] for name, x in reversed(ties.items()) if name in new}
        new = {**new, **{name: first[id(x)] for name, x in ties.items() if id(x) in first}}
        for prefix, owner in self.named_modules():
            start = f"{prefix}." if prefix else ""
            for name, x in list(vars(owner).items()):
                if not isinstance(x, Module) and any(True for _ in _inside(x, name)):
                    setattr(owner, name, _replaced(x, start + name, new))

    # -- saving and loading -------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Tensor]:
        """The parameters and the buffers by name."""
        return {name: x for name, owner, attribute, x in self._state() if attribute not in owner._unsaved}

    def _state(self) -> Iterator[tuple[str, Module, str, Tensor]]:
        """What `_tensors` gives of parameters and buffers."""
        return (found for found in self._tensors()
                if found[2] in found[1]._parameters or found[2] in found[1]._buffers)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Take over copies of the arrays in `state_dict`, by name; what the two do not share.

        An array has the shape of what it replaces, and its element type or another of the same kind. With strict,
        both have the same names. What is under several names of one parameter must be equal.
        """
        if not isinstance(state_dict, Mapping):
            raise UserTypeError(f"a state is a dict of arrays by name, found {type(state_dict).__name__}",
                                code="MLC0382", loc=user_loc())
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        report = [f"{what} {_some(names)}" for what, names in (("missing", missing), ("unexpected", unexpected))
                  if names and strict]
        new: dict[str, Tensor] = {}
        misfits = 0
        for name, old in own.items():
            if name not in state_dict:
                continue
            given = state_dict[name]
            array = as_array(given, None if is_operand(given) else old.dtype)
            if array.shape != old.shape or _kind(array.dtype) != _kind(old.held.dtype):
                report.append(f"{name} is {Tensor(array).dtype}{list(array.shape)}, expected "
                              f"{old.dtype}{list(old.shape)}")
                misfits += 1
            else:
                new[name] = Tensor(np.array(array, old.held.dtype, order="C")).moved(old.device)
        first: dict[int, str] = {}
        for name, x in self._ties().items():
            other = first.setdefault(id(x), name) if name in new else name
            if other != name and new[other].array.tobytes() != new[name].array.tobytes():
                report.append(f"{other} and {name} are one parameter, and differ")
        if report:
            kind = UserTypeError if misfits == len(report) else UserError
            raise kind("the state does not fit the module: " + "; ".join(report), code="MLC0382", loc=user_loc())
        self._assign(new)
        return Incompatible(missing, unexpected)

    def __repr__(self) -> str:
        lines = [f"{name}={_shown(x)}".replace("\n", "\n  ") for name, x in vars(self).items()
                 if not name.startswith("_") and (name, x) != ("training", True)]
        flat = ", ".join(lines)
        if len(flat) < 80 and "\n" not in flat:
            return f"{type(self).__name__}({flat})"
        return f"{type(self).__name__}(\n  " + ",\n  ".join(lines) + "\n)"


_CONTAINERS = frozenset({list, tuple, dict})


def _check_count(error: BaseException, f: Callable[..., Any], name: str, args: Sequence[Any],
                 keywords: dict[str, Any]) -> None:
    """As `as_coded` for a `forward` of the user's: what its annotations say is not for mlc to hold against anybody."""
    if isinstance(error, TypeError):
        check_call(f, name, args, keywords)


def _kind(dtype: np.dtype[Any]) -> str:
    """Which element types of a state may take each other's place: bool, integers, or floats, bfloat16 among them."""
    found = from_numpy(dtype)
    return "float" if found.is_float else "bool" if found.is_bool else "integer"


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _blamed(init: Callable[..., None]) -> Callable[..., None]:
    """An __init__ whose errors are the user's, at their line."""

    @functools.wraps(init)
    def located(self: Module, *args: Any, **keywords: Any) -> None:
        name = type(self).__name__
        try:
            init(self, *args, **keywords)
        except Error as error:
            if not error.loc.file:
                error.loc, error.message = user_loc(), f"{name}: {error.message}"
            raise
        except FAILURES as error:
            as_coded(error, init, name, (self, *args), keywords)
            raise

    return located


def _inside(x: Any, name: str) -> Iterator[tuple[str, Module | Tensor]]:
    if isinstance(x, Module | Tensor):
        yield name, x
        return
    for step, child in tree.children(x):
        yield from _inside(child, name + step)


def _replaced(x: Any, name: str, new: Mapping[str, Tensor]) -> Any:
    """x with the tensors in it replaced by those of their names; modules stay as they are."""
    if isinstance(x, Module):
        return x
    if isinstance(x, Tensor):
        return new.get(name, x)
    inside = tree.children(x)
    return tree.with_children(x, [_replaced(child, name + step, new) for step, child in inside]) if inside else x


def _shown(x: Any) -> str:
    if not isinstance(x, Tensor) or isinstance(x._array, Consumed):
        return repr(x)
    return f"{x.dtype}{list(x.shape)}"


setattr(Module, "__init__", _blamed(Module.__init__))  # noqa: B010 (for mypy)
