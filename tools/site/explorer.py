"""The explorer: programs of the examples at every level, each as the page that `mlc explain` writes."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlc.backends.target import Target
from mlc.ir.files import write_text
from mlc.ir.passes import no_collection
from mlc.tools import inputs
from mlc.tools.explain import collect, page, subjects


@dataclass(frozen=True)
class Program:
    """A program that is prepared.

    name    the name of its page
    title   what it shows
    file    the example that has it
    entry   the function
    types   types of its arguments, where annotations do not tell
    target  the machine that it is compiled for
    """

    name: str
    title: str
    file: str
    entry: str
    types: str | None = None
    target: str = "x86-64-v4"


PROGRAMS = (
    Program("newton", "A while loop", "newton.mlc", "root"),
    Program("beam-search", "Beam search: a loop with a data-dependent end", "beam_search.py", "search", "f32[17,17]"),
    Program("rnn", "A recurrent network", "rnn.mlc", "classify"),
    Program("digits", "A training step: forward, backward, AdamW", "digits.mlc", "step"),
    Program("transformer", "A transformer's loss", "transformer.mlc", "loss"),
    Program("digits-gpu", "The classifier for a GPU, down to PTX", "digits.mlc", "answers", None, "cuda:sm_90"),
)
FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mlc explorer</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 0; height: 100vh; display: flex; flex-direction: column; font: 15px system-ui, sans-serif; }}
  nav {{ display: flex; flex-wrap: wrap; gap: .4em 1.2em; padding: .5em 1em; border-bottom: 1px solid #8885; }}
  nav a {{ text-decoration: none; color: inherit; opacity: .75; }}
  nav a:hover, nav a.shown {{ opacity: 1; text-decoration: underline; text-underline-offset: .3em; }}
  iframe {{ flex: 1; border: 0; }}
</style></head><body>
<nav><a href="../{home}.html"><b>mlc</b></a>{links}</nav>
<iframe name="program" title="program" src="{first}.html"></iframe>
<script>
  const links = [...document.querySelectorAll("nav a[target]")];
  const show = link => links.forEach(other => other.classList.toggle("shown", other === link));
  links.forEach(link => link.addEventListener("click", () => show(link)));
  show(links[0]);
  document.body.dataset.ready = "true";
</script></body></html>
"""


def write(examples: Path, out: Path, home: str, programs: Iterable[Program] = PROGRAMS) -> None:
    """Write the explorer.

    Args:
        examples: The folder of the examples.
        out: The folder to write `index.html` and a page for each program into.
        home: The page of the site to return to, relative to the folder above `out`.
        programs: The programs.
    """
    out.mkdir(parents=True, exist_ok=True)
    programs = list(programs)
    for program in programs:
        write_text(out / f"{program.name}.html", page_of(program, examples))
    links = "".join(f'<a target="program" href="{p.name}.html">{html.escape(p.title)}</a>' for p in programs)
    write_text(out / "index.html", FRAME.format(home=home, links=links, first=programs[0].name))


def page_of(program: Program, examples: Path) -> str:
    """The page of one program."""
    given = inputs.parse_args(program.types) if program.types is not None else None
    subject = subjects.of_function(str(examples / program.file), program.entry, given, Target.parse(program.target),
                                   None)
    with no_collection():
        found = collect.explain(subjects.specialise(subject, None))
        found.title = f"{program.file}:{program.entry}"
        return page.render(found)
