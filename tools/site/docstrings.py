"""Docstrings as reStructuredText: Google's sections, code in backticks, and links to public names and error codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

HEADING = re.compile(r"(?m)^(Args|Shape|Attributes|Returns|Raises|Example):$")
FIELDS = {"Args": "Parameters", "Shape": "Shape", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises"}
"""Sections, and how the pages call them; examples are blocks of code."""
ENTRY = re.compile(r"^([*\w][\w*., ]*):(?:\s|$)", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)*)`")
ERROR_CODE = re.compile(r"\bMLC\d{4}\b")
SPECIAL = re.compile(r"([\\*|`]|_(?!\w)|(?<=\s)_|^_|(?<=\])_)")

Links = Callable[[str], str | None]
"""The target of a link for a name in backticks, as a role of Sphinx; None for code that is no public name."""


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring by their headings; that before the first one is ''."""
    parts = HEADING.split("\n" + inspect.cleandoc(text))
    return {"": parts[0].strip("\n"), **dict(zip(parts[1::2], parts[2::2]))}


def to_rst(text: str, links: Links) -> list[str]:
    """The lines of a docstring as reStructuredText.

    Args:
        text: A docstring with the sections of Google's style.
        links: Gives the targets of names in backticks.

    Returns:
        Lines without newlines, which Sphinx reads without a warning whatever signs the prose has.

    Example:
        >>> to_rst("|x|, as in `abs` here", lambda name: None)
        ['\\\\|x\\\\|, as in ``abs`` here', '']
    """
    found = sections(text)
    out = list(blocks(found.pop(""), links))
    for heading, body in found.items():
        body = inspect.cleandoc("\n" + body)
        if heading == "Example":
            out += [".. rubric:: Example", "", *blocks(body, links)]
        else:
            out += [f":{FIELDS[heading]}:", *indented(entries(body, links, heading == "Raises")), ""]
    return out


def blocks(text: str, links: Links) -> Iterator[str]:
    """Paragraphs, lists, examples and indented code."""
    for part in re.split(r"\n\s*\n", text):
        lines = part.strip("\n").split("\n")
        if lines == [""]:
            continue
        if lines[0].lstrip().startswith(">>> "):
            yield from (".. code-block:: pycon", "", *indented(inspect.cleandoc("\n" + part).split("\n")), "")
        elif lines[0].startswith("    "):
            yield from (".. code-block:: text", "", *indented(inspect.cleandoc("\n" + part).split("\n")), "")
        elif re.match(r"[*-] ", lines[0]):
            for item in re.split(r"(?m)^[*-] ", part.strip("\n"))[1:]:
                yield f"* {inline(' '.join(item.split()), links)}"
            yield ""
        else:
            yield from (paragraph(part, links), "")


def entries(body: str, links: Links, errors: bool) -> Iterator[str]:
    """Entries `name: text`, as a list of them; text without names as it is."""
    if not ENTRY.match(body):
        yield from blocks(body, links)
        return
    for entry in re.split(r"\n(?=\S)", body):
        name, colon, text = entry.partition(":")
        if not colon or not ENTRY.match(entry):
            yield from ("* " + inline(" ".join(entry.split()), links), "")
            continue
        head = inline(f"`{name}`", links) if errors else f"**{inline(name, links)}**"
        first, *rest = list(blocks(inspect.cleandoc("\n" + text if text.startswith("\n") else text), links)) or [""]
        yield from (f"* {head} -- {first}", *indented(rest, 2))


def paragraph(text: str, links: Links) -> str:
    """One line: no line of the prose can then begin like a list or a directive, but the first."""
    line = inline(" ".join(text.split()), links)
    return "\\" + line if re.match(r"[-+:>.#=~^\"'(|]|\w+[.)]\s", line) and not line.startswith(":py:") else line


def inline(text: str, links: Links) -> str:
    """Prose with code in backticks."""
    out, at = [], 0
    for match in CODE.finditer(text):
        out.append(prose(text[at:match.start()]))
        target = links(match[1])
        code = match[1].strip()
        if target is None and "`" not in code and not code.endswith("\\"):
            target = f"``{code}``"
        before = "" if match.start() == 0 or text[match.start() - 1].isspace() else "\\ "
        after = "" if match.end() == len(text) or text[match.end()].isspace() else "\\ "
        out.append(f"{before}{target}{after}")
        at = match.end()
    out.append(prose(text[at:]))
    return "".join(out)


def prose(text: str) -> str:
    """Text with no markup, in which error codes are links."""
    parts = re.split(f"({ERROR_CODE.pattern})", text)
    return "".join(f":ref:`{part} <{part.lower()}>`" if i % 2 else SPECIAL.sub(r"\\\1", part)
                   for i, part in enumerate(parts))


def indented(lines: list[str] | Iterator[str], by: int = 4) -> list[str]:
    return [" " * by + line if line else "" for line in lines]
