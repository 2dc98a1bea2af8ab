"""PyTorch's `torch.utils.benchmark`: `Timer`, its `Measurement`s, and their comparison in a table.

A `Timer` runs a statement of Python often enough for a time that does not depend on the clock, with one thread unless
told otherwise, and `blocked_autorange` gives the median with the spread of its measurements.

Example:
    >>> timer = mlc.utils.benchmark.Timer("x + x", globals={"x": mlc.ones(3)})
    >>> timer.timeit(2).median > 0
    True
"""

from __future__ import annotations

import math
import statistics
import time
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import mlc
from mlc import cuda
from mlc.api import get_num_threads, set_num_threads
from mlc.frontend.arguments import coded_methods
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "timer"]

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_LARGE_SPREAD = 0.1
_MOST_FIGURES = 4


def timer() -> float:
    """Read the clock, after all devices have finished their work.

    Returns:
        Seconds since some point in time.

    Example:
        >>> mlc.utils.benchmark.timer() <= mlc.utils.benchmark.timer()
        True
    """
    if _has_device():
        cuda.synchronize()
    return time.perf_counter()


@cache
def _has_device() -> bool:
    return cuda.is_available()


@dataclass(frozen=True)
class TaskSpec:
    """The program that is timed.

    Args:
        stmt: Statement.
        setup: Statement that runs once before it.
        global_setup: Accepted for PyTorch's sake.
        label: Name of what is done, by which measurements are grouped into tables.
        sub_label: Name of a row.
        description: Name of a column.
        env: Name of the environment, in which rows of one name may differ.
        num_threads: Number of threads.

    Example:
        >>> mlc.utils.benchmark.TaskSpec("x + 1", "", label="add", sub_label="small").title
        'add: small'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and sub-label, or the statement."""
        label = self.label or self.stmt
        return f"{label}: {self.sub_label}" if self.sub_label else label


@dataclass(eq=False)
class Measurement:
    """The times of a statement; its attributes are those of its `TaskSpec`, too.

    Args:
        number_per_run: Number of times that the statement ran for each time.
        raw_times: Seconds of each such run.
        task_spec: The program.
        metadata: Whatever the program wants to keep with it.

    Example:
        >>> spec = mlc.utils.benchmark.TaskSpec("x + 1", "")
        >>> m = mlc.utils.benchmark.Measurement(10, [2e-5, 3e-5, 4e-5], spec)
        >>> m.median, m.stmt
        (3e-06, 'x + 1')
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None, repr=False)

    def __getattr__(self, name: str) -> Any:
        if name == "task_spec":                            # of a copy that has no attributes yet
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of the statement in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self.times)

    @property
    def _quartiles(self) -> tuple[float, float]:
        if len(self.raw_times) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def iqr(self) -> float:
        """The distance of the quartiles of the times."""
        low, high = self._quartiles
        return high - low

    @property
    def significant_figures(self) -> int:
        """The number of figures of the median that its 90 % confidence interval leaves, from 1 to 4; the quartiles give
        the deviation."""
        deviation = self.iqr / 1.349                       # of a normal distribution
        error = max(1.645 * deviation / math.sqrt(len(self.raw_times)), 1e-9)
        return min(max(math.floor(math.log10(max(self.median, 1e-12) / error)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the distance of the quartiles is more than a tenth of the median."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _LARGE_SPREAD) -> bool:
        """Tell whether the times are close together.

        Args:
            threshold: The greatest distance of the quartiles, as a part of the median.

        Returns:
            Whether it is smaller.
        """
        return self.iqr < threshold * self.median

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return str(self.sub_label or self.stmt)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Join the measurements of equal programs.

        Args:
            measurements: Several of them.

        Returns:
            List of one for each program, of the times of all of its runs.
        """
        found: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            found.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, spec) for spec, times in found.items()]

    def __repr__(self) -> str:
        name, unit = _unit(self.median)
        low, high = self._quartiles
        lines = [self.title, *[self.description] * (self.description is not None),
                 f"  Median: {self.median / unit:.2f} {name}"]
        if len(self.raw_times) >= 4:
            lines.append(f"  IQR:    {self.iqr / unit:.2f} {name} ({low / unit:.2f} to {high / unit:.2f})")
        lines.append(f"  {_plural(len(self.raw_times), 'measurement')}, {_plural(self.number_per_run, 'run')} per "
                     f"measurement, {_plural(self.num_threads, 'thread')}")
        if len(self.raw_times) >= 4 and self.has_warnings:
            lines.append(f"  WARNING: the interquartile range is {self.iqr / self.median:.0%} of the median")
        return "\n".join(lines)


def _unit(seconds: float) -> tuple[str, float]:
    return next(((name, unit) for name, unit in _UNITS if seconds >= unit), _UNITS[-1])


def _plural(n: int, word: str) -> str:
    return f"{n} {word}{'s' * (n != 1)}"


class Timer:
    """Timer of a statement.

    It runs with one thread of compiled code unless `num_threads` says otherwise; every measurement comes after a run
    that does not count, in which code is compiled.

    Args:
        stmt: Statement, as text.
        setup: Statement that runs once before it.
        global_setup: Accepted for PyTorch's sake, where it is for C++.
        timer: Function that reads a clock; by default it waits for devices first.
        globals: Names that the statements may use; `mlc` is among them.
        label: Name of what is done, by which measurements are grouped into tables.
        sub_label: Name of a row.
        description: Name of a column.
        env: Name of the environment.
        num_threads: Number of threads.
        language: "python" only.

    Raises:
        UserError: Another language is given, or a statement is no Python (MLC0795).

    Example:
        >>> t = mlc.utils.benchmark.Timer("x + 1", globals={"x": mlc.ones(4)})
        >>> t.timeit(10).number_per_run
        10
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None, label: str | None = None,
                 sub_label: str | None = None, description: str | None = None, env: str | None = None,
                 num_threads: int = 1, language: str = "python") -> None:
        if str(language).lower() not in ("python", "py", "language.python"):
            raise UserError(f"language = {language!r}: mlc times statements of Python", code="MLC0795", loc=user_loc())
        self._spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        try:
            self._timer = timeit.Timer(stmt, setup, timer, {"mlc": mlc, **(globals or {})})
        except SyntaxError as error:
            raise UserError(f"stmt and setup are statements of Python: {error}", code="MLC0795",
                            loc=user_loc()) from None

    @contextmanager
    def _threads(self) -> Iterator[None]:
        before = get_num_threads()
        set_num_threads(self._spec.num_threads)
        try:
            yield
        finally:
            set_num_threads(before)

    def _run(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Time a number of runs together.

        Args:
            number: How often the statement runs.

        Returns:
            A measurement of one time.
        """
        return Measurement(number, self.repeat(1, number), self._spec)

    def repeat(self, repeat: int = 5, number: int = 1_000_000) -> list[float]:
        """Time a number of runs several times.

        Args:
            repeat: How often.
            number: How often the statement runs each time.

        Returns:
            List of seconds.
        """
        with self._threads():
            self._run(max(number // 100, 2))
            return [self._run(number) for _ in range(repeat)]

    def _block(self, min_run_time: float) -> int:
        """A number of runs so many that reading the clock does not count: a hundredth of the time at least."""
        number = 1
        self._run(2)                                       # compiles
        while self._run(number) < max(min_run_time / 100, 1e-4):
            number *= 10
        return number

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
        """Time blocks of runs, so large that the clock does not count, until a time has passed.

        Args:
            callback: Called with the size of a block and its seconds, after each.
            min_run_time: Seconds of all blocks together.

        Returns:
            A measurement of many times.
        """
        return self._blocks(callback, min_run_time, lambda found: sum(found.raw_times) >= min_run_time)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:
        """Time blocks of runs until the times are close together.

        Args:
            threshold: The greatest distance of the quartiles, as a part of the median.
            min_run_time: Seconds of all blocks together, at least.
            max_run_time: Seconds of all blocks together, at most.
            callback: Called with the size of a block and its seconds, after each.

        Returns:
            A measurement of many times.
        """
        def enough(found: Measurement) -> bool:
            total = sum(found.raw_times)
            return total > max_run_time or (total > min_run_time and len(found.raw_times) >= 4
                                            and found.meets_confidence(threshold))

        return self._blocks(callback, min_run_time, enough)

    def _blocks(self, callback: Callable[[int, float], Any] | None, min_run_time: float,
                enough: Callable[[Measurement], bool]) -> Measurement:
        """Blocks of runs until there are enough."""
        with self._threads():
            found = Measurement(self._block(min_run_time), [], self._spec)
            while not found.raw_times or not enough(found):
                found.raw_times.append(self._run(found.number_per_run))
                if callback is not None:
                    callback(found.number_per_run, found.raw_times[-1])
        return found

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> Any:
        """Refuse the method of `timeit.Timer`, as PyTorch does.

        Args:
            callback: Of `timeit.Timer`.

        Raises:
            UserError: Always (MLC0795).
        """
        raise UserError("Timer has no autorange", code="MLC0795", loc=user_loc(), hint="use blocked_autorange")


class Compare:
    """Tables of measurements: one for each label, with a row for each sub-label and a column for each description.

    Args:
        results: Measurements; those of equal programs are merged.

    Example:
        >>> B = mlc.utils.benchmark
        >>> print(B.Compare([B.Measurement(1, [t], B.TaskSpec("x", "", label="add", sub_label=n, description=lib))
        ...                  for n, lib, t in (("small", "a", 1e-6), ("small", "b", 2e-6), ("large", "a", 3e-4))]))
        add
        -----------------------
                   a      b
          small    1.0    2.0
          large  300.0
        -----------------------
        Times are in microseconds (us), of 1 thread.
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._warn = self._color = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements.

        Args:
            results: Several of them.

        Raises:
            UserError: One is none (MLC0795).
        """
        for m in results:
            if not isinstance(m, Measurement):
                raise UserError(f"Compare takes measurements, found {type(m).__name__}", code="MLC0795",
                                loc=user_loc(), hint="they are what Timer.blocked_autorange returns")
            self._results.append(m)

    def trim_significant_figures(self) -> None:
        """Show no more figures than are significant."""
        self._trim = True

    def highlight_warnings(self) -> None:
        """Mark times that differ much from run to run."""
        self._warn = True

    def colorize(self, rowwise: bool = False) -> None:
        """Mark the best time of each row.

        Args:
            rowwise: Accepted for PyTorch's sake.
        """
        self._color = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        groups: dict[tuple[str, int], list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            groups.setdefault((m.label or m.stmt, m.num_threads), []).append(m)
        return "\n\n".join(self._table(label, threads, group) for (label, threads), group in groups.items())

    def _table(self, label: str, threads: int, group: list[Measurement]) -> str:
        name, unit = _unit(min(m.median for m in group))
        rows = list(dict.fromkeys((m.as_row_name, m.env) for m in group))
        columns = list(dict.fromkeys(m.description or "" for m in group))
        best = {row: min(m.median for m in group if (m.as_row_name, m.env) == row) for row in rows}
        cells = {((m.as_row_name, m.env), m.description or ""):
                 self._cell(m, unit, len(columns) > 1 and m.median == best[m.as_row_name, m.env]) for m in group}
        titles = [f"{name} ({env})" if env else name for name, env in rows]
        first = max(map(len, titles))
        widths = [max(len(c), *(len(cells.get((row, c), "")) for row in rows)) for c in columns]
        lines = [" " * first + "".join(f"  {c:>{w}}" for c, w in zip(columns, widths))]
        lines += [f"{title:<{first}}" + "".join(f"  {cells.get((row, c), ''):>{w}}" for c, w in zip(columns, widths))
                  for title, row in zip(titles, rows)]
        rule = "-" * max(len(label), max(map(len, lines)) + 6)
        english = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[name]
        return "\n".join([label, rule, *("  " + line.rstrip() for line in lines), rule,
                          f"Times are in {english} ({name}), of {_plural(threads, 'thread')}."])

    def _cell(self, m: Measurement, unit: float, best: bool) -> str:
        value = m.median / unit
        if self._trim and value:
            scale = 10.0 ** (math.floor(math.log10(value)) + 1 - m.significant_figures)
            text = f"{round(value / scale) * scale:.{max(0, -math.floor(math.log10(scale)))}f}"
        else:
            text = f"{value:.1f}"
        spread = f" (! {m.iqr / m.median:.0%})" if self._warn and m.has_warnings else ""
        return f"{'*' * (best and self._color)}{text}{spread}"


coded_methods(Timer, ("__init__", "timeit", "repeat", "blocked_autorange", "adaptive_autorange"))
coded_methods(Compare, ("__init__", "extend_results"))
