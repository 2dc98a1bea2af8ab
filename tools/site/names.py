"""The public names of mlc, and the page of the reference that each is on."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

SPACES = ("", "nn", "nn.functional", "nn.grad", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize",
          "nn.utils.parametrizations", "nn.utils.prune", "nn.utils.fusion", "nn.utils.stateless", "nn.modules.module",
          "optim", "optim.lr_scheduler", "optim.swa_utils", "amp", "cpu", "cpu.amp", "cuda.amp",
          "linalg", "fft", "random", "signal.windows", "special", "masked", "cuda", "utils.data", "sparse",
          "utils.checkpoint", "utils.tensorboard", "utils.benchmark", "utils.dlpack", "hub", "profiler", "quantization",
          "autograd", "autograd.function", "autograd.functional", "autograd.grad_mode",
          "autograd.forward_ad", "autograd.graph", "func", "accelerator", "distributions",
          "distributions.constraints", "serialization", "onnx", "torch", "nn.parallel", "nn.quantized", "tree",
          "array_api", "array_api.linalg", "array_api.fft", "api", "distributed", "distributed.checkpoint",
          "multiprocessing",
          "onnx.backend", "optim.schedules", "stablehlo", "utils", "debug", "models")
"""The public modules, after `mlc.`."""
FUNCTIONS = "mlc.frontend.functions."
"""The package whose families have a page each."""


@dataclass
class Page:
    """A page of the reference.

    title    its heading
    module   the module whose docstring it begins with
    members  the objects that it documents, by their full names
    aliases  other public names of objects, and the name that each is documented under
    values   public names of what is neither a function nor a class nor a module, such as a dtype
    """

    title: str
    module: str
    members: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def names_of(space: str) -> list[str]:
    """The public names of a module: those that it lists, or all that it defines."""
    module = importlib.import_module(f"mlc.{space}".rstrip("."))
    return list(getattr(module, "__all__", None) or defined_in(module))


def defined_in(module: ModuleType) -> Iterator[str]:
    return (name for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__)


def is_documented(value: Any) -> bool:
    return inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)


def module_of(value: Any) -> str:
    """The module that a function or class is defined in, or the module itself; those of Python's own are not ours."""
    return str(value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) or "mlc")


@cache
def public_names() -> dict[str, Any]:
    """Functions, classes and modules by their names; an object with several names once."""
    found = dict[int, tuple[str, Any]]()
    for space in SPACES:
        module = importlib.import_module(f"mlc.{space}".rstrip("."))
        for name in names_of(space):
            value = getattr(module, name)
            if is_documented(value) and module_of(value).partition(".")[0] == "mlc":
                found.setdefault(id(value), (f"{space}.{name}".lstrip("."), value))
    return dict(found.values())


@cache
def pages() -> dict[str, Page]:
    """The pages of the reference by their file names, without an ending."""
    documented = {id(value): name for name, value in public_names().items()}
    found: dict[str, Page] = {}
    for space in SPACES:
        module = importlib.import_module(f"mlc.{space}".rstrip("."))
        for name in names_of(space):
            value, full = getattr(module, name), f"mlc.{space}.{name}".replace("..", ".")
            page = _page_of(found, space, value)
            first = documented.get(id(value)) if is_documented(value) else None
            if inspect.ismodule(value):
                page.values[full] = value
            elif first is None:
                page.values[full] = value
            elif full == f"mlc.{first}":
                page.members[full] = value
            else:
                page.aliases[full] = f"mlc.{first}"
    return {name: page for name, page in found.items() if page.members or page.aliases or page.values}


def _page_of(found: dict[str, Page], space: str, value: Any) -> Page:
    """The page for a name of a space: names of mlc itself are divided by the family of their functions."""
    module = module_of(inspect.unwrap(value)) if inspect.isroutine(value) else ""
    if space == "" and module.startswith(FUNCTIONS):
        family = module.removeprefix(FUNCTIONS).split(".")[0]
        return found.setdefault(f"mlc-{family}", Page(f"mlc: {family.replace('_', ' ')}", f"{FUNCTIONS}{family}"))
    name = f"mlc.{space}".rstrip(".")
    return found.setdefault(name, Page(name, name))


def sections(page: Page) -> dict[str, list[str]]:
    """The members of a page by the modules that define them, in the order of the modules."""
    found: dict[str, list[str]] = {}
    for name, value in page.members.items():
        found.setdefault(module_of(inspect.unwrap(value) if inspect.isroutine(value) else value), []).append(name)
    return {module: sorted(found[module], key=str.lower) for module in sorted(found)}
