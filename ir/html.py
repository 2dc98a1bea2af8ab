"""HTML for notebooks: tables, text, and IR with colours, whose regions fold.

The colours are legible on light and on dark pages, and everything else has the colour of the page's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

COLOURS = (
    ("comment", r"//[^\n]*", "#7d8590"),
    ("string", r'"(?:[^"\\]|\\.)*"', "#3f9142"),
    ("value", r"%[\w$.#-]+", "#4a86d8"),
    ("symbol", r"@[\w$.-]+", "#c27a12"),
    ("type", r"[!#][\w.]+|\b(?:tensor|memref|vector|tuple|index|none)\b|\b(?:i|ui|f|bf)\d+\b", "#2b9aa0"),
    ("operation", r"\b[a-z_]\w*\.[\w.]+", "#a667d6"),
)
"""Parts of MLIR's text: their names, patterns and colours."""
_PART = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in COLOURS))
_COLOUR = {name: colour for name, _, colour in COLOURS}
LARGEST = 400_000
"""Characters of IR above which it is shown without colours, which a browser would take long to draw."""
OPEN_LINES = 40
"""Regions with more lines are folded at first."""
PRE = ("margin:0;font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;line-height:1.4;text-align:left;"
       "max-height:36em;overflow:auto")


def highlighted(line: str) -> str:
    """A line of IR with colours."""
    out, at = [], 0
    for found in _PART.finditer(line):
        colour = _COLOUR[found.lastgroup or ""]
        out += [escape(line[at:found.start()]), f'<span style="color:{colour}">{escape(found[0])}</span>']
        at = found.end()
    return "".join(out) + escape(line[at:])


def module(text: str) -> str:
    """A module as HTML: each region of its text folds.

    Args:
        text: The text of the module, as the printer lays it out.

    Returns:
        HTML that asks for nothing else.

    Example:
        >>> from mlc.ir import html
        >>> html.module("module {\\n  %0 = f.op : f32\\n}").count("<details")
        1
    """
    if len(text) > LARGEST:
        return plain(text)
    lines, ends, stack = text.rstrip("\n").split("\n"), dict[int, int](), list[int]()
    for number, line in enumerate(lines):                  # the printer ends the line of a region with its brace
        if line.lstrip().startswith("}") and stack:
            ends[stack.pop()] = number
        if line.endswith("{"):
            stack.append(number)
    out, closing = list[str](), set(ends.values())
    for number, line in enumerate(lines):
        out.append("</details>" * (number in closing))
        if number in ends:
            unfolded = " open" if number == 0 or ends[number] - number <= OPEN_LINES else ""
            out.append(f'<details{unfolded} style="margin:0"><summary style="cursor:pointer">{highlighted(line)}'
                       "</summary>")
        else:
            out.append(f"<div>{highlighted(line) or ' '}</div>")
    return f'<pre style="{PRE}">{"".join(out)}</pre>'


def plain(text: str) -> str:
    """Text in a font of equal widths."""
    return f'<pre style="{PRE}">{escape(text)}</pre>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> str:
    """A table of texts; columns of numbers are aligned to the right.

    Args:
        head: The names of the columns.
        rows: The cells of each row.
        title: The caption; none if it is empty.

    Returns:
        HTML in which every cell is escaped.

    Example:
        >>> from mlc.ir import html
        >>> "&lt;unknown&gt;" in html.table(["line"], [["<unknown>"]])
        True
    """
    cells = [list(row) for row in rows]
    right = [all(re.fullmatch(r"[-+]?\d[\d.,e+-]*\s?[\w%/]*|-?", row[i]) for row in cells) for i in range(len(head))]

    def line(tag: str, row: Sequence[str]) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:{"right" if r else "left"}">{escape(cell)}</{tag}>'
                                for r, cell in zip(right, row)) + "</tr>"
    caption = f'<caption style="text-align:left;font-weight:bold">{escape(title)}</caption>' if title else ""
    return (f"<table>{caption}<thead>{line('th', head)}</thead><tbody>"
            + "".join(line("td", row) for row in cells) + "</tbody></table>")


def folded(summary: str, content: str, opened: bool = False) -> str:
    """Content under a line that folds it."""
    return (f'<details{" open" if opened else ""} style="margin-left:1em"><summary style="cursor:pointer">'
            f"{escape(summary)}</summary>{content}</details>")


def framed(page: str, height: int) -> str:
    """A page of its own, whose program reaches nothing of the notebook."""
    return (f'<iframe sandbox="allow-scripts allow-modals" style="width:100%;height:{height}px;border:0" '
            f'srcdoc="{escape(page)}"></iframe>')
