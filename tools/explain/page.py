"""The page of an explanation: one HTML file, with its style, its program and its data inside, and no links out."""

from __future__ import annotations

import gzip
import html
import re
from base64 import b64encode
from importlib.resources import files

from mlc.tools.explain import as_json
from mlc.tools.explain.explanation import Explanation

PROGRAM = ("tree.js", "code.js", "views.js", "page.js")
"""The files of the folder `page` that are its program, in order."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Content security policy: the page cannot request anything."""
COMPRESSION = 5
"""The highest level takes five times as long, for a page that is 5 % smaller."""


def render(found: Explanation) -> str:
    """The text of the page."""
    folder = files("mlc.tools.explain") / "page"
    text = (folder / "page.html").read_text("utf-8")
    program = "\n".join((folder / name).read_text("utf-8") for name in PROGRAM)
    parts = {"TITLE": html.escape(found.title), "POLICY": POLICY,
             "STYLE": (folder / "page.css").read_text("utf-8"), "PROGRAM": program,
             "DATA": b64encode(gzip.compress(as_json.compact(found).encode(), COMPRESSION, mtime=0)).decode()}
    return re.sub(r"@([A-Z]+)@", lambda m: parts[m[1]], text)
