"""The pages of the reference: every public name with its signature and documentation, and the lists of them."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from mlc.ir.files import write_text
from mlc.tools.codes import load
from mlc.tools.site import docstrings, names

FOLDER = "reference"
ALL = "names"
"""The page that lists all public names."""


def write(sources: Path) -> None:
    """Write the pages into a folder of Sphinx's sources."""
    folder = sources / FOLDER
    folder.mkdir(parents=True)
    pages = names.pages()
    for name, page in pages.items():
        write_text(folder / f"{name}.rst", "\n".join(lines_of(name, page)) + "\n")
    write_text(folder / f"{ALL}.rst", all_names(pages))
    write_text(folder / "codes.rst", error_codes())
    listed = "\n".join(f"   {name}" for name in (*pages, ALL, "codes"))
    write_text(folder / "index.rst", f"{heading('Reference', '=')}\nEvery public name, by module. :doc:`{ALL}` lists "
                                   f"them all, :doc:`codes` explains every error.\n\n.. toctree::\n\n{listed}\n")


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def lines_of(name: str, page: names.Page) -> list[str]:
    """The source of a page: the documentation of its module, then its members by the modules that define them."""
    module = importlib.import_module(page.module)
    space = page.module if not page.module.startswith(names.FUNCTIONS) else "mlc"
    out = [f".. _page-{name}:", "", heading(page.title, "=")]
    out += docstrings.to_rst(module.__doc__ or "", link_from(space))
    out += table(page)
    sections = names.sections(page)
    for defined_in, members in sections.items():
        if len(sections) > 1 and defined_in != page.module:
            summary = (importlib.import_module(defined_in).__doc__ or "").strip().split("\n\n")[0]
            out += [heading(defined_in.rpartition(".")[2].replace("_", " ").capitalize(), "-"),
                    docstrings.paragraph(summary, link_from(space)), ""]
        for member in members:
            out += directive(member, page.members[member])
    return out


def table(page: names.Page) -> list[str]:
    """The aliases and the values of a page."""
    rows = [(name, f":py:obj:`{of}`") for name, of in sorted(page.aliases.items())]
    for name, value in sorted(page.values.items()):
        linked = inspect.ismodule(value) and value.__name__ in names.pages()
        rows.append((name, f":ref:`page-{value.__name__}`" if linked else docstrings.inline(
            f"a module: {first_line(value)}" if inspect.ismodule(value) else f"`{shown(value)}`", link_from("mlc"))))
    if not rows:
        return []
    out = [".. list-table:: Other names", "   :widths: auto", ""]
    for name, what in rows:
        out += [f"   * - .. _{anchor(name)}:", "", f"       ``{name}``", f"     - {what}"]
    return [*out, ""]


def first_line(module: Any) -> str:
    return (module.__doc__ or "").strip().split("\n")[0]


def shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    if inspect.isroutine(value) or inspect.isclass(value):
        return f"{value.__module__}.{value.__qualname__}"
    return type(value).__name__ if " at 0x" in text or len(text) > 80 or "`" in text else text


def anchor(name: str) -> str:
    return "value-" + name.replace(".", "-")


def directive(name: str, value: Any) -> list[str]:
    """The directive of autodoc for a member."""
    if not inspect.isclass(value):
        return [f".. autofunction:: {name}", ""]
    every = ["   :inherited-members: object"] if name == "mlc.Tensor" else []
    return [f".. autoclass:: {name}", "   :members:", *every, ""]


def link_from(space: str) -> docstrings.Links:
    """Links for names in backticks that stand in a public module: names there, or full ones without `mlc.`."""
    known = documented()

    def link(code: str) -> str | None:
        name = code.removesuffix("()")
        for full in (f"{space}.{name}", f"mlc.{name}", name):
            if full in known:
                return f":py:obj:`{name} <{known[full]}>`"
            if full in names.pages() and full != "mlc":
                return f":ref:`{name} <page-{full}>`"
        return None
    return link


def documented() -> dict[str, str]:
    """The name under which each public function and class is documented."""
    pages = names.pages().values()
    return {**{name: name for page in pages for name in page.members},
            **{name: of for page in pages for name, of in page.aliases.items()}}


def all_names(pages: dict[str, names.Page]) -> str:
    """The page that lists every public name, with the first sentence of its documentation."""
    out = [heading("All public names", "="), f"{len(index(pages))} names.", ""]
    for name, page in pages.items():
        out += [heading(page.title, "-"), ".. list-table::", "   :widths: auto", ""]
        rows = {**{n: (f":py:obj:`{n}`", summary(v)) for n, v in page.members.items()},
                **{n: (f"``{n}``", f":py:obj:`{of}`") for n, of in page.aliases.items()},
                **{n: (f":ref:`{n} <{anchor(n)}>`", "") for n in page.values}}
        for _, (left, right) in sorted(rows.items(), key=lambda row: row[0].lower()):
            out += [f"   * - {left}", f"     - {right}"]
        out += ["", f"On the page :doc:`{name}`.", ""]
    return "\n".join(out) + "\n"


def index(pages: dict[str, names.Page]) -> dict[str, str]:
    """Every public name, and the page that it is on."""
    return {name: page for page, p in pages.items() for name in (*p.members, *p.aliases, *p.values)}


def summary(value: Any) -> str:
    text = (inspect.getdoc(value) or "").split("\n\n")[0]
    return docstrings.paragraph(text, link_from("mlc"))


def error_codes() -> str:
    """The page that explains every error code, as `mlc explain-error` does."""
    out = [heading("Error codes", "="), "Each as ``mlc explain-error`` explains it.", ""]
    for name, code in load().items():
        out += [f".. _{name.lower()}:", "", heading(f"{name}", "-"), ".. code-block:: text", "",
                *docstrings.indented(code.text().rstrip().split("\n")), ""]
    return "\n".join(out)
