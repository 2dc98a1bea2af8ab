"""The page of mlc explain in a browser: it opens from disk, asks for nothing, and answers clicks, keys and searches."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlc.backends.cpu.targets import host
from mlc.frontend.location import in_command
from mlc.roofline import Level, Limits
from mlc.tools.explain import collect, page, subjects
from tests.browser import Browser, executable

pytestmark = pytest.mark.skipif(executable() is None, reason="no browser is installed (chromium)")

MODEL = """\
import mlc

def attention(x: mlc.spec("B", 16, 8), w: mlc.spec(8, 24)):
    q, k, v = (x @ w).split(8, 2)
    scores = mlc.softmax(q @ k.transpose(1, 2) / 8 ** 0.5, dim=2)
    return scores @ v * 1
"""
LIMITS = Limits({"f32": (1e11, 2e11)}, (Level("L2", 1 << 17, (1e11, 2e11)), Level("L3", 1 << 22, (8e10, 1e11)),
                                        Level("memory", 1 << 28, (2e10, 3e10))), 2)
SELECTED = "state.related.size"
COLUMNS = "views.code.visible().map(c => c.kind)"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    model = folder / "attention_of_the_page.py"
    model.write_text(MODEL)
    with in_command(sys._getframe()):
        subject = subjects.of_function(str(model), "attention", None, host(), None)
    found = collect.explain(subjects.specialise(subject, None))
    found.limits = LIMITS
    (folder / "report.html").write_text(page.render(found))
    return folder / "report.html"


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture
def browser(started: Browser, file: Path) -> Iterator[Browser]:
    """The page, freshly opened; afterwards nothing was asked for and nothing failed."""
    started.open(file)
    assert int(started("document.querySelectorAll('.column.source .row code').length")) > 3
    yield started
    assert started.errors == [] and {r.partition("#")[0] for r in started.requests} <= {file.as_uri(), "about:blank"}


def related(browser: Browser, kind: str) -> int:
    return int(browser(f"views.code.columns.get('{kind}').related.length"))


def test_a_line_of_the_source_is_marked_at_every_level(browser: Browser) -> None:
    browser.click(".column.source .row code", 4)
    assert browser("document.querySelector('.column.source .row.selected').textContent").startswith("5")
    assert all(related(browser, kind) > 0 for kind in browser(COLUMNS))
    assert browser("levels.every(level => [...state.related].some(op => level.linesOf(op).length))")
    assert "attention_of_the_page.py:5" in browser("byId('details').textContent")


def test_an_instruction_leads_back_to_its_line(browser: Browser) -> None:
    browser("(() => { const asm = levelNamed('asm'); let i = 0; while (!/v?div[ps]s/.test(asm.text(i))) i++; "
            "views.code.go('asm', i); })()")
    assert browser("[...state.lines]") == ["0:5"]
    assert related(browser, "tensor") == 1


def test_every_note_of_a_specialisation_is_shown(browser: Browser) -> None:
    shown = browser("(() => { data.specialisations[0].notes = ['the first', 'the second']; "
                    "return new SpecialisationsView().root.textContent; })()")
    assert "the first" in shown and "the second" in shown


def test_a_value_is_marked_where_it_is_used(browser: Browser) -> None:
    browser("views.code.columns.get('tensor').chooseValue(2, '%x')")
    assert browser("document.querySelectorAll('.column[data-kind=tensor] .marked').length") >= 2


def test_keys_move_the_choice_and_change_the_view(browser: Browser) -> None:
    browser("views.code.go(SOURCE, 3)")
    browser.press("ArrowDown")
    assert browser("state.lines.has('0:5')")
    browser.press("ArrowRight")
    assert browser("document.activeElement.closest('.column').dataset.kind") != "source"
    for key, view in zip("2345", ("passes", "kernels", "memory", "specialisations")):
        browser.press(key)
        assert browser("document.body.dataset.view") == view
    browser.press("1", "Escape")
    assert browser(SELECTED) == 0
    browser.press("?")
    assert browser("byId('keys').open")


def test_the_roofline_has_a_line_for_each_level(browser: Browser) -> None:
    browser.press("3")
    assert browser("[...document.querySelectorAll('.roofline .roof title')].map(e => e.textContent.split(':')[0])") == [
        "L2", "L3", "memory"]
    dots = browser("[...document.querySelectorAll('.roofline circle title')].map(e => e.textContent)")
    assert dots and all(re.search(r"flops/byte in L[23], at most .* on one thread$", text) for text in dots)
    browser("views.kernels.select(data.kernels.find(k => intensity(k)))")
    side = "document.querySelector('.kernels-view .side').textContent"
    assert browser(f"/(L2 bounds|Arithmetic bounds)/.test({side})")
    for threads, needs, measured in (("true", "2 threads of this machine need", r"200\sGflop/s, .* with 2 threads"),
                                     ("false", "one thread of this machine needs", r"100\sGflop/s, .* with 1 thread")):
        browser(f"views.kernels.select(Object.assign({{}}, data.kernels.find(k => k.bound), {{threads: {threads}}}))")
        found = str(browser(side))
        assert re.search(f"is the least that {needs}", found) and re.search(measured, found), found


def test_sources_are_coloured_as_their_language_has_it(browser: Browser) -> None:
    def strings(path: str, *lines: str) -> list[list[str]]:
        browser(f"data.files.push({json.dumps({'path': path, 'lines': lines})})")
        return browser(  # type: ignore[no-any-return]
            f"{json.dumps(lines)}.map((_, i) => [...coloredSource(data.files.length - 1, i).querySelectorAll("
            "'.c-string, .c-comment')].map(e => e.textContent))")

    doc = ['"""Newton\'s', 'from "here"', 'to # there"""; y = x // 2; z = "a" # c']
    assert strings("f.py", *doc, "s = 'a # b'") == [
        [doc[0]], [doc[1]], ['to # there"""', '"a"', "# c"], ["'a # b'"]]
    assert strings("f.mlc", "y = f'(x) / g'(x)", "# it's", '"""a""" + "b"') == [[], ["# it's"], ['"""a"""', '"b"']]
    assert strings("f.mlir", "%0 = a.b %x // it's") == [["// it's"]]


def test_search_finds_lines_of_all_levels_and_goes_there(browser: Browser) -> None:
    browser.press("/")
    browser("byId('query').value = 'softmax'; search('softmax')")
    groups = browser("[...document.querySelectorAll('#hits .group')].map(e => e.textContent)")
    assert any("attention_of_the_page.py" in g for g in groups) and any(g.startswith("tensor") for g in groups)
    browser.press("ArrowDown", "ArrowDown", "Enter")
    assert browser("byId('hits').hidden") and browser(SELECTED) > 0


def test_functions_fold(browser: Browser) -> None:
    before = browser("views.code.columns.get('llvm').visible.length")
    browser("views.code.columns.get('llvm').foldFunctions()")
    assert browser("views.code.columns.get('llvm').visible.length") < before / 4
    browser("views.code.columns.get('llvm').foldFunctions()")
    assert browser("views.code.columns.get('llvm').visible.length") == before


def test_the_passes_show_rules_and_changes(browser: Browser) -> None:
    browser.press("2")
    names = browser("data.passes.map(p => p.name)")
    browser.click(".pass", names.index("canonicalize"))
    assert "x * 1 == x" in browser("document.querySelector('.detail table').textContent")
    assert browser("document.querySelectorAll('.row.removed').length") > 0
    browser.click(".row.removed code")
    assert browser(SELECTED) > 0


def test_the_graph_of_kernels_says_why(browser: Browser) -> None:
    browser.press("3")
    count = browser("document.querySelectorAll('.node').length")
    assert count == browser("data.kernels.filter(k => k.function === 'main').length") > 1
    spots = browser("layered(data.kernels).map(s => [s.x, s.y])")
    assert len({tuple(s) for s in spots}) == len(spots)
    assert browser("layered(data.kernels).every((s, i, all) => s.sources.every(j => all[j].y < s.y))")
    browser.click(".node", count - 1)
    side = browser("document.querySelector('.side').textContent")
    assert "Why it is a kernel of its own" in side and "Schedule" in side and "What it fuses" in side


def test_the_memory_plan_is_drawn(browser: Browser) -> None:
    browser.press("4")
    assert browser("document.querySelectorAll('.buffer').length") == browser("data.memory[0].buffers.length") > 0
    browser.click(".buffer")
    assert "last used in" in browser("document.querySelector('.side').textContent")


def test_links_open_the_same_choice(started: Browser, file: Path) -> None:
    started.open(file, "#line0:5")
    assert started("state.lines.has('0:5')") and started(SELECTED) > 0
    started.open(file, "#memory")
    assert started("document.body.dataset.view") == "memory"


def test_colours_follow_the_system(browser: Browser) -> None:
    def lightness() -> int:
        red, green, blue = browser("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        return int(red + green + blue)

    browser.dark(True)
    dark = lightness()
    browser.dark(False)
    assert dark < 200 < 600 < lightness()
