"""The error of communication between ranks, which names the ranks that it is about."""

from __future__ import annotations

from collections.abc import Iterable

from mlc.ir.diag import UNKNOWN, BackendError, Loc


class RankError(BackendError, RuntimeError):
    """A rank has ended, does not answer, or does something else than the others.

    It is a RuntimeError, since that is what programs for PyTorch expect of a collective.

    Args:
        message: One sentence: what is wrong, with the ranks.
        code: Stable name of this kind of error; `mlc explain-error CODE` explains it.
        ranks: The ranks that it is about.
        loc: Place that the user can change.
        notes: Further lines, such as the calls of the other ranks.
        hint: One suggested fix, or None.

    Example:
        >>> from mlc.backends.transport.errors import RankError
        >>> RankError("rank 1 has ended", code="MLC0970", ranks=[1]).ranks
        (1,)
    """

    default_code = "MLC0970"

    def __init__(self, message: str, code: str = "", ranks: Iterable[int] = (), loc: Loc = UNKNOWN,
                 notes: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, code=code, loc=loc, notes=notes, hint=hint)
        self.ranks = tuple(ranks)

    def at(self, loc: Loc) -> RankError:
        """The same error at a place of the program, with a traceback of its own."""
        return RankError(self.message, self.code, self.ranks, loc, self.notes, self.hint)


def ranks_text(ranks: Iterable[int]) -> str:
    """`rank 3`, or `ranks 1, 4`."""
    listed = sorted(ranks)
    return f"rank{'s' * (len(listed) != 1)} {', '.join(map(str, listed))}"


def timed_out(name: str, missing: Iterable[int]) -> RankError:
    """The error of a call that has not ended in time, because of ranks, if they are known."""
    missing = sorted(missing)
    late = f"{name}: {ranks_text(missing)} {'has' if len(missing) == 1 else 'have'} not answered in time"
    return RankError(late if missing else f"{name} has not ended in time", code="MLC0971", ranks=missing,
                     hint="all ranks of the group have to make the same calls; a longer timeout gives slow ones time")
