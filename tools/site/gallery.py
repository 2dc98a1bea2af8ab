"""The gallery: a page for each example, with its text, its source, and a picture of what it computes."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from mlc.ir.files import write_text
from mlc.tools.site import docstrings, pictures

FOLDER = "gallery"


def examples(folder: Path) -> list[Path]:
    """The examples in Python and in the text language."""
    return sorted([*folder.glob("*.py"), *folder.glob("*.mlc")], key=lambda path: (path.suffix, path.stem))


def drawn() -> list[str]:
    """The examples that have a picture: those that `pictures` has a function for."""
    return [name for name, f in vars(pictures).items()
            if inspect.isfunction(f) and f.__module__ == pictures.__name__]


def write(folder: Path, sources: Path, draw: bool = True) -> None:
    """Write the pages of the gallery, and its pictures.

    Args:
        folder: The folder of the examples.
        sources: The folder of Sphinx's sources.
        draw: Whether pictures are made; without them the pages have none.
    """
    out = sources / FOLDER
    out.mkdir(parents=True)
    shown = drawn() if draw else []
    for name in shown:
        _draw(name, folder, out / f"{name}.png")
    found = examples(folder)
    for path in found:
        lines = _page(path, path.suffix == ".py" and path.stem in shown)
        write_text(out / f"{path.name}.rst", "\n".join(lines))
    title = "Gallery"
    cards = [line for name in shown for line in (f".. image:: {name}.png", f"   :target: {name}.py.html",
                                                 f"   :alt: {name}", "   :width: 48%", "")]
    listed = [f"   {path.name}" for path in found]
    write_text(out / "index.rst", "\n".join([
        title, "=" * len(title), "", "The programs in ``examples/``; the pictures are drawn when this site is made, by "
        "what the programs compute.", "", *cards, ".. toctree::", "   :maxdepth: 1", "", *listed, ""]))


def _page(path: Path, picture: bool) -> list[str]:
    source = path.read_text("utf-8")
    text = (ast.get_docstring(ast.parse(source)) or "") if path.suffix == ".py" else source.split('"""')[1]
    language = "python" if path.suffix == ".py" else "mlc"
    image = [f".. image:: {path.stem}.png", f"   :alt: {pictures_text(path.stem)}", ""] if picture else []
    return [path.name, "=" * len(path.name), "", *docstrings.to_rst(text, lambda name: None), *image,
            f".. code-block:: {language}", "", *docstrings.indented(source.rstrip().split("\n")), ""]


def pictures_text(name: str) -> str:
    return inspect.getdoc(getattr(pictures, name)) or name


def _draw(name: str, folder: Path, file: Path) -> None:
    from matplotlib.figure import Figure
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    getattr(pictures, name)(example(name, folder), figure)
    figure.savefig(file, dpi=110)


def example(name: str, folder: Path) -> ModuleType:
    """An example as a module, which finds those beside it."""
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
