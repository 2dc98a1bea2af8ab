"""mlc.extension: compiled functions as a CPython extension module that needs Python and numpy, and nothing of mlc.

    mlc.extension.write("digits.so", {"train": train, "predict": predict})
    import digits; digits.train(...)                         # anywhere

Arguments and results are numpy arrays in dicts, lists and tuples. A module (mlc.nn.Module) among the arguments or
results is a dict of its arrays by the names of its `state_dict`, a named tuple is a tuple, and a dataclass a dict; the
module that was given to mlc.compile is part of the file, as its weights.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mlc.api import Compiled, compiled_function
from mlc.backends.checksummed import CorruptFile
from mlc.backends.cpu.targets import host
from mlc.backends.extension.container import ELF_MAGIC, Description, check_beside, unpack
from mlc.backends.extension.signature import Constant, Container, Function, Parameter, Slot, Tree
from mlc.backends.extension.weights import Weights, inside
from mlc.backends.target import Target
from mlc.frontend import tree
from mlc.frontend.arguments import FAILURES
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file
from mlc.frontend.signature import Spec
from mlc.frontend.tensor import Array, Tensor
from mlc.ir.abi import Interface, interfaces
from mlc.ir.core import Op
from mlc.ir.diag import BackendError, UserError, UserTypeError
from mlc.ir.files import at_once, read_starting
from mlc.ir.machine import Model
from mlc.ir.types import FunctionType
from mlc.passes import pipeline
from mlc.variant import Variant
from mlc.weights import to_bytes

LEVELS = ("x86-64-v3", "x86-64-v4")
"""Targets that code is generated for by default."""
WEIGHTS = ("inside", "beside")
MOST_INSIDE = (1 << 31) - (1 << 26)
"""Limit on the bytes of weights inside a file, since displacements in code are signed 32-bit numbers."""


def write(path: str | Path, functions: Any, cpu: Sequence[str] = LEVELS, weights: str = "inside",
          opt_level: int = 2) -> None:
    """Write compiled functions as an extension module named after the file, atomically.

    functions  what mlc.compile returned, with specifications of its arguments in annotations or in its `args`, or a
               dict of such functions by their names in the module
    cpu        kinds of processor, as `mlc compile --cpu` takes them: the best that fits is chosen when it is loaded
    weights    "inside", or "beside" it in a safetensors file of the same name, whose checksum the module has
    """
    name = module_name(str(path))
    if weights not in WEIGHTS:
        raise UserError(f"weights={weights!r} is no place", code="MLC0574", loc=user_loc(),
                        hint="one of " + ", ".join(map(repr, WEIGHTS)))
    named = functions if isinstance(functions, dict) else {"": functions}
    sources = [source(f, name=given) for given, f in named.items()]
    weights_file = weights_of(name, sources, weights)
    content = built(name, sources, [Target.parse(level) for level in cpu], weights_file, opt_level)
    if weights_file.beside:
        write_file(Path(path).with_name(weights_file.beside), [weights_file.content])
    write_file(path, [content])


def built(name: str, sources: Sequence[RecordedFunction], targets: Sequence[Target], weights: Weights,
          opt_level: int) -> bytes:
    """The file of a module."""
    from mlc.backends.extension.build import build  # LLVM comes in only when something must be compiled
    return build(name, sources, sorted(targets, key=lambda t: len(t.features)), weights, opt_level)


def weights_of(name: str, sources: Sequence[RecordedFunction], where: str) -> Weights:
    """The arrays that functions hold themselves, "inside" the module `name` or "beside" it."""
    total = sum(array.nbytes for s in sources for array in s.weights)
    if where == "inside" and total > MOST_INSIDE:
        raise UserError(f"the weights are {total} bytes, and code reaches {MOST_INSIDE} inside the file",
                        code="MLC0574", loc=user_loc(),
                        hint='put them beside it, with --weights=beside or weights="beside"')
    if where == "inside" or not any(s.weights for s in sources):
        return inside([s.weights for s in sources])
    several = sum(bool(s.weights) for s in sources) > 1
    names = [[f"{s.function.name}.{n}" if several else n for n in s.names] for s in sources]
    content = to_bytes({n: array for s, row in zip(sources, names) for n, array in zip(row, s.weights)})
    size = int.from_bytes(content[:8], "little")             # of the header, which says where each array is
    header = json.loads(content[8:8 + size])
    return Weights(content, [[8 + size + header[n]["data_offsets"][0] for n in row] for row in names],
                   f"{name}.safetensors")


def module_name(path: str) -> str:
    """The name by which Python imports a file."""
    name = Path(path).name.partition(".")[0]
    if not name.isidentifier() or not name.isascii():
        raise UserError(f"{path}: {name!r} is no name that Python can import", code="MLC0573", loc=user_loc(),
                        hint="name the file with ASCII letters, digits and _, as in net.so")
    return name


@dataclass(frozen=True)
class RecordedFunction:
    """A function, ready to be built for any machine.

    weights, names  the arrays of the module it was made from, and what its `state_dict` calls them
    """

    function: Function
    module: Lowering
    weights: Sequence[Array]
    names: Sequence[str]

    def lowered(self, target: Target) -> Op:
        """The function in the llvm dialect for a target."""
        return self.module.at(target.machine)


class Lowering:
    """A module of the tensor level, in the llvm dialect for any machine."""

    def __init__(self, module: Op) -> None:
        self.module = module
        self.made: dict[Model, Op] = {}

    def at(self, machine: Model) -> Op:
        if machine not in self.made:
            self.made[machine] = pipeline.lower(self.module.clone(), "llvm", machine)
        return self.made[machine]

    @property
    def interface(self) -> Interface:
        """The interface of the code, the same for all targets."""
        return interfaces(self.at(Target.parse(LEVELS[0]).machine))["main"]


def source(f: Any, args: Sequence[Any] | None = None, name: str = "") -> RecordedFunction:
    """A function to be built.

    args  specifications of its arguments, or arguments like those it will be called with, in place of what it has
    name  what it is called in the module; its own name without one
    """
    compiled = f if isinstance(f, Compiled) else compiled_function(f) or Compiled(f)
    if args is not None:
        given = compiled.signature
        compiled = Compiled(given.bound[0] if given.bound else given.f, given.donate, given.static, args)
    signature = compiled.signature
    what = name or (signature.name.lower() if signature.bound else signature.name)
    if not what.isascii():
        raise UserError(f"{what} is no name for a function of C", code="MLC0574", loc=user_loc(),
                        hint="use ASCII letters, digits and _")
    positional, keywords = specified(compiled)
    variant = compiled.recording(positional, keywords)
    if variant.recorded.assigned:
        raise UserError(f"{what} gives new values to buffers of a module, which a module that is imported has nowhere "
                        "to keep", code="MLC0574", loc=user_loc(),
                        hint="call eval() of the module first, or return the module from the function")
    if variant.recorded.written:
        raise UserError(f"{what} changes an argument in place, which a module that is imported cannot do",
                        code="MLC0574", loc=user_loc(), hint="return the new value")
    if not variant.recorded.computes:
        raise UserError(f"{what} computes nothing", code="MLC0574", loc=user_loc(),
                        hint="return something that depends on an argument")
    bound = signature.bound_arrays()
    names = tree.names(signature.bound[0]) if signature.bound else []
    lowering = Lowering(variant.recorded.trace.module)
    if found := [t for t in (*lowering.interface.inputs, *lowering.interface.results) if t.dtype.is_complex]:
        raise UserError(f"{what} takes or gives a {found[0]}, and modules that are imported have no complex numbers",
                        code="MLC0574", loc=user_loc(), hint="pass and return them as mlc.view_as_real gives them")
    return RecordedFunction(_function(compiled, what, variant, lowering.interface, len(bound)), lowering, bound, names)


def specified(compiled: Compiled) -> tuple[list[Any], dict[str, Any]]:
    """The specifications of the parameters, by position and by name; parameters that have a default may have none."""
    names = compiled.signature.names[len(compiled.signature.bound):]
    try:
        known = inspect.signature(compiled.signature.f, eval_str=True).parameters
    except (NameError, SyntaxError, *FAILURES) as error:     # an annotation that does not evaluate
        raise UserError(f"the annotations of {compiled.signature.name} cannot be evaluated: {error}", code="MLC0381",
                        loc=user_loc(), hint="give mlc.compile args=[...] in place of them") from None
    specs = {n: p.annotation for n, p in known.items() if isinstance(p.annotation, Spec)} | compiled.signature.specs
    positional, keywords = list[Any](), dict[str, Any]()
    for name in [*names, *(n for n, p in known.items() if p.kind is p.KEYWORD_ONLY)]:
        if name in specs:
            if name in names and len(positional) == names.index(name):
                positional.append(specs[name])
            else:
                keywords[name] = specs[name]
        elif name in known and known[name].default is inspect.Parameter.empty:
            raise UserError(f"nothing says what {name} of {compiled.signature.name} is", code="MLC0381", loc=user_loc(),
                            hint=f'annotate it, {name}: mlc.spec("B", 16), or give mlc.compile args=[...]')
    return positional, keywords


def _function(compiled: Compiled, name: str, variant: Variant, interface: Interface, weights: int) -> Function:
    """The calling convention of the function."""
    tokens, slots = iter(variant.structure), iter(variant.slots)
    values = iter(variant.leaves)
    numbers = iter(range(len(variant.slots)))

    def leaf(path: str) -> Tree:
        slot, value = next(slots), next(values)
        if slot:
            return Slot(next(numbers))
        raise UserTypeError(f"{path} of {name} is {value!r}, and a module that is imported takes arrays",
                            code="MLC0574", loc=user_loc(), hint="make it a default, or a constant of the function")

    next(tokens)                                             # (args, keywords)
    parameters = list[Parameter]()
    _, count, _ = next(tokens)
    names = compiled.signature.names[len(compiled.signature.bound):]
    if count > len(names):
        raise UserTypeError(f"{name} takes any number of arguments", code="MLC0574", loc=user_loc(),
                            hint="name its parameters")
    for parameter in names[:count]:
        parameters.append(Parameter(parameter, _tree(tokens, leaf, parameter)))
    _, _, keys = next(tokens)
    parameters += [Parameter(key, _tree(tokens, leaf, key), True) for key in keys]

    outputs = iter(variant.recorded.plain_outputs())

    def result(path: str) -> Tree:
        kind, value = next(outputs)
        if kind in ("result", "number"):
            return Slot(value)
        if kind == "first":
            raise UserTypeError(f"{name} returns an array of data-dependent size",
                                code="MLC0574", loc=user_loc(),
                                hint="return one of a known size, and the number of elements that count beside it")
        if type(value) not in (bool, int, float, str):
            raise UserTypeError(f"{name} returns a {type(value).__name__}", code="MLC0574", loc=user_loc(),
                                hint="return arrays, numbers, strings, bools and None")
        return Constant(value)

    returned = _tree(iter(variant.recorded.structure), result, "the result")
    public = _without(interface, weights)
    doc = inspect.getdoc(compiled.signature.bound[0] if compiled.signature.bound else compiled.signature.f) or ""
    return Function(name, tuple(parameters), returned, public, weights, doc)


def _without(interface: Interface, weights: int) -> Interface:
    """The interface for callers, without the weights."""
    aliases = tuple(a - weights if a >= 0 else a for a in interface.aliases)
    return replace(interface, type=FunctionType(interface.type.inputs[weights:], interface.type.results), overwrites=(),
                   aliases=aliases, arg_names=interface.arg_names[weights:])


# -- files ------------------------------------------------------------------------------------------------------------
def checked(path: str | Path) -> Description:
    """Description in the file of a module, after verifying it and its weights, without running any of it."""
    try:
        description = unpack(read_starting(path, ELF_MAGIC))
        if description.beside:
            check_beside(description, read_starting(Path(path).with_name(description.beside), b""))
        return description
    except (OSError, ValueError) as error:
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        raise UserError(f"cannot read {reason}", code="MLC0392", loc=user_loc()) from None
    except CorruptFile as error:
        raise UserError(f"{path} is no module of mlc, or a damaged one: {error}", code="MLC0571", loc=user_loc(),
                        hint="it is what mlc compile -o NAME.so writes; compile it again, or copy it again with the "
                             "file of its weights") from None


def check_runs_here(description: Description) -> None:
    """BackendError unless this machine has a processor that the module has code for."""
    here = platform.machine()
    fits = [t for t in description.targets if t.triple.partition("-")[0] == here]
    if not fits or (here == "x86_64" and not any(host().runs(t) for t in fits)):
        made = ", ".join(t.name for t in description.targets)
        raise BackendError(f"this machine cannot run code made for {made}", code="MLC0562", loc=user_loc(),
                           hint="compile the module with --cpu for what this machine has")


def load(path: str | Path) -> ModuleType:
    """The module of a file, imported once the file is found whole and for this machine; not put into sys.modules."""
    description = checked(path)
    check_runs_here(description)
    where = str(Path(path).absolute())
    spec = importlib.util.spec_from_file_location(description.name, where,
                                                  loader=ExtensionFileLoader(description.name, where))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_module(path: str | Path) -> bool:
    """Whether a file starts as a shared object does."""
    try:
        with open(path, "rb", opener=at_once) as file:
            return file.read(len(ELF_MAGIC)) == ELF_MAGIC
    except (OSError, ValueError):
        return False


def describe(path: str | Path) -> list[tuple[str, str]]:
    """Description of the file of a module, as (name, text) pairs; the file is verified, and none of it is run."""
    description = checked(path)
    try:
        check_runs_here(description)
        runs = "yes"
    except BackendError:
        runs = "no"
    where = f", in {description.beside}" if description.beside else ""
    return [("module", description.name), ("weights", f"{description.weights} bytes{where}"),
            ("code for", ", ".join(t.name for t in description.targets)), ("runs on this machine", runs),
            *(("function", text) for text in description.functions)]


# -- containers -------------------------------------------------------------------------------------------------------
def _tree(tokens: Iterator[tree.Token], leaf: Any, path: str) -> Tree:
    """The containers with which an extension module replaces those of a structure."""
    token = next(tokens)
    if token is tree.LEAF:
        return leaf(path)  # type: ignore[no-any-return]
    kind, count, rest = token
    if kind is type(None):
        return Constant(None)
    if issubclass(kind, tree.AttributeTree):
        rows = list(_attributes(token, tokens, leaf, path, ""))
        return Container("dict", tuple(child for _, child in rows), tuple(key for key, _ in rows))
    if kind is dict and any(type(key) not in (str, int) for key in rest):
        raise UserTypeError(f"{path} has a key that is neither a string nor an integer", code="MLC0574", loc=user_loc(),
                            hint="use strings as keys")
    keys = rest if kind is dict else () if issubclass(kind, tuple | list) else rest
    shown = keys or range(count)
    children = tuple(_tree(tokens, leaf, f"{path}[{key!r}]") for _, key in zip(range(count), shown))
    name = "list" if kind is list else "tuple" if issubclass(kind, tuple) else "dict"
    return Container(name, children, tuple(keys) if name == "dict" else ())


def _attributes(token: tree.Token, tokens: Iterator[tree.Token], leaf: Any, path: str,
                prefix: str) -> Iterator[tuple[str, Tree]]:
    """(name, array) of what is in a module, however deep: nothing of what is None or was there before."""
    kind, count, rest = token
    steps = rest[0] if issubclass(kind, tree.AttributeTree) else rest if kind is dict else range(count)
    for step, _ in zip(steps, range(count)):
        name = f"{prefix}.{step}".removeprefix(".")
        child = next(tokens)
        if child is tree.LEAF:
            yield name, leaf(f"{path}[{name!r}]")
        elif child[0] is not tree.Again:
            yield from _attributes(child, tokens, leaf, path, name)


def arrays(x: Any) -> Any:
    """x as functions of an imported module take it: copies of tensors as arrays, modules as dicts of them by name.

    `module.train(*mlc.extension.arrays((model, state)), images, labels)` goes on where mlc has begun.
    """
    leaves, structure = tree.flatten(x)
    copies = iter([np.array(leaf.array if isinstance(leaf, Tensor) else leaf, order="C") for leaf in leaves])
    values = list[Any]()

    def leaf(path: str) -> Tree:
        values.append(next(copies))
        return Slot(len(values) - 1)
    return _plain(_tree(iter(structure), leaf, "x"), values)


def _plain(form: Tree, values: Sequence[Any]) -> Any:
    if isinstance(form, Slot):
        return values[form.number]
    if isinstance(form, Constant):
        return form.value
    children = [_plain(child, values) for child in form.children]
    return dict(zip(form.keys, children)) if form.kind == "dict" else \
        children if form.kind == "list" else tuple(children)
