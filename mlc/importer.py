"""mlc.importer: `import model` finds model.mlc, a program in the text language.

    import mlc.importer
    mlc.importer.install()
    import digits                                            # digits.mlc, next to the program or elsewhere on sys.path
    net = digits.Classifier()
    digits.answers(net, images)

A program is checked when it is imported. Its functions are compiled when they are first called, and come from the
compile cache from then on. Files of Python of the same name go first.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend import language

SUFFIX = ".mlc"
_SAVED = b"MLCMODEL"


def install() -> None:
    """Let import statements of this process find programs; doing so again changes nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())


def remove() -> None:
    """Undo `install`; what has been imported stays."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]


class Finder(importlib.abc.MetaPathFinder):
    """Looks for NAME.mlc where Python looks for modules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        name = fullname.rpartition(".")[2] + SUFFIX
        for folder in sys.path if path is None else path:
            file = os.path.join(folder or os.getcwd(), name)
            if os.path.isfile(file):
                spec = importlib.machinery.ModuleSpec(fullname, Loader(file), origin=file)
                spec.has_location = True
                return spec
        return None


class Loader(importlib.abc.Loader):
    """Creates a module from a program: its functions and models are attributes, created on first use."""

    def __init__(self, path: str) -> None:
        self.path = path

    def exec_module(self, module: ModuleType) -> None:
        with open(self.path, "rb") as file:
            if file.read(len(_SAVED)) == _SAVED:
                raise ImportError(f"{self.path} is a saved model and no program: mlc.load({self.path!r}) loads it",
                                  name=module.__name__, path=self.path)
        program = language.load(self.path)
        module.__doc__ = program.__doc__
        vars(module).update(__getattr__=program.__getattr__, __dir__=program.__dir__)
