"""Dead links: of the pages as they are written, and of the HTML that is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")
ADDRESS = re.compile(r"(?P<site>[a-z][a-z0-9+.-]*:(?://)?|//)?(?P<path>[^#?]*)(?:\?[^#]*)?(?:#(?P<place>.*))?")
FENCE = re.compile(r"(?ms)^(`{3,}|~{3,}).*?^\1\s*$")


class _Page(HTMLParser):
    """The anchors of a page, and the addresses that it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)
            elif value and name in ("href", "src", "data"):
                self.addresses.append(value)


def dead_in_html(folder: Path) -> list[str]:
    """The links within a folder of HTML pages that lead nowhere.

    Args:
        folder: The folder; pages in folders below it belong to it.

    Returns:
        A line for each link whose file or anchor there is not, `page: address`. Links to other sites are not followed.

    Example:
        >>> from pathlib import Path
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.html").write_text('<a href="b.html#x">b</a> <a id="y" href="#y">here</a>')
        >>> dead_in_html(folder)
        ['a.html: b.html#x']
    """
    pages = {path.resolve(): _parsed(path) for path in sorted(folder.rglob("*.html"))}
    return [f"{path.relative_to(folder.resolve())}: {address}" for path, page in pages.items()
            for address in dict.fromkeys(page.addresses) if not _leads_somewhere(path, address, pages)]


def _parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def _leads_somewhere(path: Path, address: str, pages: dict[Path, _Page]) -> bool:
    elsewhere, file, place = parts(address)
    if elsewhere:
        return True
    target = (path.parent / file).resolve() if file else path
    if target not in pages:
        return target.is_file() and not place
    return not place or place in pages[target].anchors


def parts(address: str) -> tuple[bool, str, str]:
    """(whether it is on another site, the file, the place in it)"""
    found = ADDRESS.fullmatch(address)
    assert found is not None                               # the pattern matches every line
    return found["site"] is not None, _decoded(found["path"]), _decoded(found["place"] or "")


def _decoded(text: str) -> str:
    """A text in which %XX stands for the bytes of a character."""
    def characters(found: re.Match[str]) -> str:
        return bytes.fromhex(found[0].replace("%", "")).decode(errors="replace")
    return re.sub(r"(?:%[0-9A-Fa-f]{2})+", characters, text)


def dead_in_markdown(root: Path, pages: Iterator[Path]) -> list[str]:
    """The relative links of Markdown pages whose file there is not, as `page: address`.

    Args:
        root: The folder that the pages are relative to.
        pages: The pages.

    Returns:
        A line for each dead link; those within examples of code are none.

    Example:
        >>> from pathlib import Path
        >>> import tempfile
        >>> root = Path(tempfile.mkdtemp())
        >>> _ = (root / "a.md").write_text("[here](a.md) [there](b.md) [far](https://example.org)")
        >>> dead_in_markdown(root, iter([Path("a.md")]))
        ['a.md: b.md']
    """
    found = []
    for page in pages:
        for address in LINK.findall(FENCE.sub("", (root / page).read_text("utf-8"))):
            elsewhere, file, _ = parts(address)
            if not elsewhere and file and not (root / page.parent / file).exists():
                found.append(f"{page}: {address}")
    return found
