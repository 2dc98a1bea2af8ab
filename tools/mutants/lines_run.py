"""Which lines of the sources each test runs: recorded by a plugin of pytest, and read to choose tests for a line.

    python -m pytest -p mlc.tools.mutants.lines_run --lines-run lines.sqlite -n 2

Needs Python 3.12 or newer, whose `sys.monitoring` reports a line once per test and then costs nothing. What a test's
child processes run is not seen, nor what an earlier test in the process has left in a cache.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = 3
"""The number of this tool in `sys.monitoring`: 0 to 2 and 5 are for debuggers, coverage, profilers and optimisers."""
TABLE = "CREATE TABLE IF NOT EXISTS run (file TEXT, test TEXT, seconds REAL, lines BLOB)"


class Recorder:
    """The lines that one test runs, by file, as the bits of a number."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.rows: list[tuple[str, str, float, bytes]] = []
        self.lines: dict[str, int] = defaultdict(int)
        self.monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self.monitoring.use_tool_id(TOOL, "lines run")
        self.monitoring.register_callback(TOOL, self.monitoring.events.LINE, self.line)
        self.monitoring.set_events(TOOL, self.monitoring.events.LINE)

    def line(self, code: CodeType, number: int) -> object:
        self.lines[code.co_filename] |= 1 << number
        return self.monitoring.DISABLE

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.lines.clear()
        self.monitoring.restart_events()
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and not hasattr(report, "node"):    # from xdist's workers: theirs
            for name, lines in list(self.lines.items()):           # this, too, runs lines
                if (path := Path(name).resolve()).is_relative_to(ROOT) and not path.is_relative_to(ROOT / "tests"):
                    self.rows.append((path.relative_to(ROOT).as_posix(), report.nodeid, report.duration,
                                      lines.to_bytes(lines.bit_length() // 8 + 1, "little")))

    def pytest_sessionfinish(self) -> None:
        with closing(sqlite3.connect(self.output, timeout=600)) as base, base:
            base.execute(TABLE)
            base.executemany("INSERT INTO run VALUES (?, ?, ?, ?)", self.rows)
            base.execute("CREATE INDEX IF NOT EXISTS of_file ON run (file)")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lines-run", metavar="FILE", help="write which lines of the sources each test runs")


def pytest_configure(config: pytest.Config) -> None:
    if output := config.getoption("--lines-run"):
        config.pluginmanager.register(Recorder(output))


class Index:
    """A file that the plugin has written."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as base:
            rows = base.execute("SELECT file, test, seconds, lines FROM run").fetchall()
        self.runs: dict[str, list[tuple[str, float, int]]] = defaultdict(list)
        """Of a file, which tests run it, how long each takes, and the lines that it runs, as bits."""
        for file, test, seconds, lines in rows:
            self.runs[file].append((test, seconds, int.from_bytes(lines, "little")))

    def lines(self, file: str) -> int:
        """The lines of a file that some test runs, as bits."""
        return functools.reduce(operator.or_, (lines for _, _, lines in self.runs[file]), 0)

    def tests(self, file: str, first: int, last: int, seconds: float) -> list[str]:
        """Tests that run one of some lines, as many as take so long: first those that are called like the file or its
        folder, and of each test function the quickest first, then the second of each, so that a short list is as
        various as it can be. Where no test runs the lines, as a module is imported before the tests, those that run any
        line of the file."""
        wanted = sum(1 << line for line in range(first, last + 1))
        wanted = wanted if self.lines(file) & wanted else -1
        functions: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for test, took, lines in self.runs[file]:
            if lines & wanted:
                functions[test.partition("[")[0]].append((took, test))
        called = re.compile("|".join(rf"[/_]{name}[./]" for name in (Path(file).stem, Path(file).parent.name)))
        turns = sorted((called.search(test.partition("::")[0]) is None, turn, took, test)
                       for found in functions.values() for turn, (took, test) in enumerate(sorted(found)))
        until = itertools.accumulate(took for _, _, took, _ in turns)
        return [test for (*_, test), total in zip(turns, until) if total <= seconds]
