"""The site: Sphinx's sources are gathered in a folder, and Sphinx makes HTML of them. Any warning is an error."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlc.ir.diag import UserError
from mlc.ir.files import write_text
from mlc.tools.site import docstrings, lexers, reference

ROOT = Path(__file__).resolve().parents[2]
"""The checkout. The site is made of files that an installed package does not have."""
HOME = "docs/index"
FOLDERS = ("ir", "dialects", "passes", "backends", "frontend", "mlc", "tools", "examples", "docs", "tests")
"""The folders whose Markdown pages are on the site."""


def pages_of_repository() -> Iterator[Path]:
    """The Markdown pages of the checkout, relative to it; what they link to keeps its place."""
    yield from (path.relative_to(ROOT) for path in sorted(ROOT.glob("*.md")))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.md")):
            if not any(p.is_symlink() for p in path.parents if p.is_relative_to(ROOT) and p != ROOT):
                yield path.relative_to(ROOT)


def gather(sources: Path) -> None:
    """Write Sphinx's sources: the repository's pages in their places, and the reference."""
    for page in pages_of_repository():
        target = sources / page
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / page, target)
    for other in ("LICENSE", "examples/notebook.ipynb"):                   # which the README links to
        shutil.copyfile(ROOT / other, sources / other)
    reference.write(sources)


def settings() -> dict[str, Any]:
    """The settings of Sphinx."""
    return {
        "project": "mlc", "html_title": "mlc", "root_doc": HOME, "html_theme": "furo", "html_show_sphinx": False,
        "html_copy_source": False, "html_show_copyright": False,
        "extensions": ["myst_parser", "sphinx.ext.autodoc"],
        "myst_heading_anchors": 4, "myst_enable_extensions": ["colon_fence"], "nitpicky": True,
        # types in signatures are names for readers; links to public names are `py:obj`, and those are strict
        "nitpick_ignore_regex": [("py:class", ".*"), ("py:data", ".*"), ("py:exc", ".*")],
        "autodoc_inherit_docstrings": False, "autodoc_member_order": "bysource", "add_module_names": True,
        "python_maximum_signature_line_length": 100, "highlight_language": "text",
        "toc_object_entries_show_parents": "hide",
    }


def build(sources: Path, out: Path, jobs: int = 2) -> None:
    """Have Sphinx make the HTML.

    Raises:
        UserError: Sphinx warned of something, such as a broken reference (MLC0930).
    """
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils
    with patch_docutils(), docutils_namespace():
        app = Sphinx(sources, None, out, out / ".doctrees", "html", settings(), status=None, warning=sys.stderr,
                     warningiserror=False, parallel=jobs)
        app.add_lexer("mlir", lexers.MlirLexer)
        app.add_lexer("mlc", lexers.MlcLexer)
        app.connect("autodoc-process-docstring", _docstring)
        app.build(force_all=True)
    if app.statuscode or app._warncount:
        raise UserError(f"the site has {app._warncount} warnings", code="MLC0930",
                        hint="each is named above, with its page and line")
    shutil.rmtree(out / ".doctrees")
    write_text(out / "index.html", f'<!doctype html><meta charset="utf-8"><title>mlc</title>'
                                 f'<meta http-equiv="refresh" content="0; url={HOME}.html">'
                                 f'<a href="{HOME}.html">mlc</a>\n')


def _docstring(app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Turn the lines of a docstring into reStructuredText, in place."""
    space = name.rpartition(".")[0] if kind in ("function", "class") else name.rpartition(".")[0].rpartition(".")[0]
    lines[:] = docstrings.to_rst("\n".join(lines), reference.link_from(space))
