"""The documentation site: every public name is on it, no link is dead, and its examples run."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mlc.tools.site import __main__ as site
from mlc.tools.site import build, docstrings, gallery, links, names, reference

ROOT = Path(__file__).parent.parent
NOT_PUBLIC = {"mlc.backends": "the compiler's", "mlc.nn.modules": "names that mlc.nn has",
              "mlc.signal": "holds windows", "mlc.multiprocessing.reducer": "Python's"}
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_every_public_name_is_on_a_page() -> None:
    pages = names.pages()
    found = reference.index(pages)
    wanted = {f"mlc.{space}.{name}".replace("..", ".") for space in names.SPACES for name in names.names_of(space)}
    assert found.keys() == wanted
    assert {f"mlc.{name}" for name in names.public_names() if not inspect.ismodule(names.public_names()[name])} == {
        name for page in pages.values() for name in page.members}
    listed = reference.all_names(pages)
    assert not [name for name in wanted if f"`{name}" not in listed]


def test_every_page_names_its_members() -> None:
    for name, page in names.pages().items():
        text = "\n".join(reference.lines_of(name, page))
        assert not [n for n in page.members if f":: {n}\n" not in text], name
        assert not [n for n in (*page.aliases, *page.values) if f"``{n}``" not in text], name


def test_every_public_module_has_a_page() -> None:
    modules = {n for page in names.pages().values() for n, v in page.values.items() if inspect.ismodule(v)}
    assert not {n for n in modules - names.pages().keys() - NOT_PUBLIC.keys() if n not in {
        f"mlc.{space}" for space in names.SPACES}}


def test_no_link_of_the_sources_is_dead() -> None:
    assert not links.dead_in_markdown(ROOT, build.pages_of_repository())


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "docs" / "index.md").read_text()
    for page in build.pages_of_repository():
        assert page.stem in contents if page.parent.name == "docs" else page.with_suffix("").as_posix() in contents


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_the_pages_run(page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(
        test, out=report.append)
    assert not report, "".join(report)
    assert test.examples or not page.stem.startswith("coming_from")


def test_docstrings_become_markup() -> None:
    text = "|x|, as `mlc.abs` or `a*b`; see MLC0345.\n\nArgs:\n    x: A tensor_.\n\nExample:\n    >>> 1\n    1\n"
    assert docstrings.to_rst(text, lambda name: ":py:obj:`x`" if name == "mlc.abs" else None) == [
        r"\|x\|, as :py:obj:`x` or ``a*b``\ ; see :ref:`MLC0345 <mlc0345>`.", "", ":Parameters:",
        r"    * **x** -- A tensor\_.", "", "", ".. rubric:: Example", "", ".. code-block:: pycon", "", "    >>> 1",
        "    1", ""]


def test_every_example_is_in_the_gallery(tmp_path: Path) -> None:
    gallery.write(ROOT / "examples", tmp_path, draw=False)
    contents = (tmp_path / "gallery" / "index.rst").read_text()
    assert all(f"   {path.name}\n" in contents for path in gallery.examples(ROOT / "examples"))
    assert {"digits", "newton", "ode"} <= {*gallery.drawn()} <= {p.stem for p in gallery.examples(ROOT / "examples")}


def test_the_extra_of_the_site_has_what_public_modules_import() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    own = extras["docs"][0].removeprefix("mlc[").removesuffix("]").split(",")
    missing = [re.split("[<>=]", text)[0].replace("-", "_") for name, texts in extras.items()
               if name not in ("docs", "dev", "peers", "all", *own) for text in texts if not text.startswith("mlc[")]
    missing = ["cuda" if name == "cuda_python" else "IPython" if name == "ipython" else name for name in missing
               if name != "jinja2"]                        # sphinx is written with it
    assert {"pygls", "tokenizers", "mpi4py"} <= {*missing} and not {"torch", "onnx"} & {*missing}
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); from mlc.tools.site import names; names.pages()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_site_is_made_without_warnings_and_without_dead_links(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    assert site.main(["-o", str(tmp_path / "site")]) == 0
    made = {path.name for path in (tmp_path / "site" / "explorer").iterdir()}
    assert {"index.html", "newton.html", "digits-gpu.html"} <= made
    page = (tmp_path / "site" / "reference" / "mlc.nn.html").read_text()
    assert all(f'id="{name}"' in page for name in names.pages()["mlc.nn"].members)
