"""Pages of a cache: which are free, which sequences have them, and what text each holds.

The rows of a sequence are in pages of `PAGE` tokens, whose numbers are its page table. Sequences that begin with the
same text have the same pages for it (W. Kwon et al., "Efficient memory management for large language model serving with
PagedAttention", 2023). The texts of pages are a tree: each page that is known continues another one, or begins a text,
so that the longest known beginning of a prompt is found by walking down (L. Zheng et al., "SGLang: Efficient execution
of structured language model programs", 2023). Pages that no sequence has any more stay known until their memory is
needed; those that were given back longest ago go first.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.models.cache import PAGE, pages_for


class Page:
    """Memory for the rows of some tokens.

    number  of the page in the cache
    users   how many sequences have it
    text    its tokens, if it is known; fewer than PAGE at the end of a text
    before  the page that it continues, where it is known
    behind  the known pages that continue it
    """

    __slots__ = ("before", "behind", "number", "text", "users")

    def __init__(self, number: int) -> None:
        self.number, self.users = number, 0
        self.text: tuple[int, ...] = ()
        self.before: Page | None = None
        self.behind: list[Page] = []

    def continued_by(self, text: Sequence[int]) -> tuple[Page | None, int]:
        """The page behind this one that begins with most of a text, and with how many of its tokens."""
        found, most = None, 0
        for page in self.behind:
            if (count := common(page.text, text)) > most:
                found, most = page, count
        return found, most


class Pages:
    """The pages of a cache, from number 1 on: page 0 belongs to no sequence, and is written where there is none."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._unknown = [Page(number) for number in range(count, 0, -1)]       # free, the next one last
        self._kept = dict[Page, None]()                    # known, without users, as they were given back
        self._start = Page(0)

    @property
    def free(self) -> int:
        """How many pages no sequence has."""
        return len(self._unknown) + len(self._kept)

    @property
    def kept(self) -> int:
        """How many of these hold text that a prompt may begin with."""
        return len(self._kept)

    def find(self, text: Sequence[int]) -> tuple[list[Page], Page | None, int]:
        """The whole pages that hold the beginning of a text, the page with most of what follows, and how much that is.
        """
        found, last = list[Page](), self._start
        while True:
            page, count = last.continued_by(text[len(found) * PAGE: (len(found) + 1) * PAGE])
            if page is None or count < PAGE:
                return found, page, count
            found.append(page)
            last = page

    def take(self) -> Page:
        """A free page for a sequence. If it has a text, that is forgotten."""
        if self._unknown:
            page = self._unknown.pop()
        else:
            page = next(iter(self._kept))                  # what continues it was given back before it
            del self._kept[page]
            self.forget(page)
        page.users = 1
        return page

    def share(self, page: Page) -> Page:
        """The page, which one more sequence has."""
        self._kept.pop(page, None)
        page.users += 1
        return page

    def give_back(self, table: Sequence[Page]) -> None:
        """Take the pages of a text from a sequence."""
        for page in reversed(table):
            page.users -= 1
            if page.users == 0 and page.before is None:
                self._unknown.append(page)
            elif page.users == 0:
                self._kept[page] = None

    def know(self, table: list[Page], text: Sequence[int]) -> None:
        """Have the pages of a sequence be known for its text, which does not change from now on.

        A page whose text is known already is given back for the one that holds it: their rows are the same bits.
        """
        last = self._start
        for i in range(pages_for(len(text))):
            page, own = table[i], tuple(text[i * PAGE: (i + 1) * PAGE])
            known = page if page.before is not None else next(
                (p for p in last.behind if p.text[: len(own)] == own), None)
            if known is None:
                for short in [p for p in last.behind if p in self._kept and p.text == own[: len(p.text)]]:
                    del self._kept[short]                  # this one holds what it does, and more
                    self.forget(short)
                    self._unknown.append(short)
                page.before, page.text = last, own
                last.behind.append(page)
            elif known is not page:
                table[i] = self.share(known)
                self.give_back([page])
            last = table[i]

    def forget(self, page: Page) -> None:
        """Have the text of a page that nothing continues be unknown."""
        assert page.before is not None and not page.behind
        page.before.behind.remove(page)
        page.before, page.text = None, ()


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """With how many equal elements two sequences begin."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))

