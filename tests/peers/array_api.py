"""Run the official test suite of the Python array API standard on mlc.array_api.

    python -m tests.peers.array_api CHECKOUT [--examples 20] [--only PATTERN] [--version 2024.12]

The checkout is one of https://github.com/data-apis/array-api-tests with its submodule, and the packages of its
requirements.txt have to be installed. The tests that are expected to fail are in `array_api_failures.txt`, each group
below the reason.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
EXPECTED = HERE / "array_api_failures.txt"
PROBLEM = re.compile(r"(?m)^\s*(?:E\s+)?([\w.]*(?:Error|Failure|Exception|Group)\b.*)$")
"""The line of a report that says what failed."""


@dataclass
class Outcome:
    """The outcome of the suite.

    passed      number of tests
    skipped     number of tests that the suite leaves out, by its own conditions
    expected    tests that fail, as is expected
    unexpected  tests that fail otherwise, with what failed
    surprising  tests that pass, where a failure was expected
    """

    passed: int = 0
    skipped: int = 0
    expected: list[str] = field(default_factory=list)
    unexpected: dict[str, str] = field(default_factory=dict)
    surprising: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of tests that pass, of those that run."""
        passed = self.passed + len(self.surprising)
        run = passed + len(self.expected) + len(self.unexpected)
        return passed / run if run else 0.0


def expected_failures(text: str) -> dict[str, str]:
    """The reasons of expected failures, by test: adjacent comment lines tell the reason of the tests that follow."""
    found, reason, open_ = dict[str, str](), list[str](), False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            reason = [*(reason if open_ else []), line.lstrip("# ")]
        elif line:
            found[line] = " ".join(reason)
        open_ = line.startswith("#")
    return found


def reason_of(test: str, expected: dict[str, str]) -> str | None:
    """The reason why a test is expected to fail; None if it is not. A name without [...] stands for all parameters."""
    return expected.get(test) or expected.get(test.split("[")[0])


def read(report: Path, expected: dict[str, str]) -> Outcome:
    """The outcome in a report of pytest, as XML of JUnit."""
    out = Outcome()
    for case in xml.parse(report).getroot().iter("testcase"):
        name = case.get("classname", "").replace(".", "/")
        path, _, group = name.partition("/Test")
        test = f"{path}.py::{f'Test{group}::' if group else ''}{case.get('name')}"
        failed = case.find("failure")
        failed = case.find("error") if failed is None else failed
        if failed is not None and reason_of(test, expected) is not None:
            out.expected.append(test)
        elif failed is not None:
            told = PROBLEM.search(failed.text or "")
            out.unexpected[test] = told[1] if told else failed.get("message", "")
        elif case.find("skipped") is not None:
            out.skipped += 1
        elif reason_of(test, expected) is not None:
            out.surprising.append(test)
        else:
            out.passed += 1
    return out


def run(checkout: Path, examples: int, only: str, version: str) -> tuple[Outcome, str]:
    """Run the suite; the outcome, and the last line that pytest prints."""
    expected = expected_failures(EXPECTED.read_text(encoding="utf-8"))
    root = str(HERE.parent.parent)
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": "mlc.array_api",
                   "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
                   **({"ARRAY_API_TESTS_VERSION": version} if version else {})}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short", "--disable-deadline",
                   f"--max-examples={examples}", f"--junitxml={report}", "array_api_tests/",
                   *(["-k", only] if only else [])]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        if not report.exists():
            sys.exit(f"the suite did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return read(report, expected), done.stdout.strip().splitlines()[-1]


def main() -> int:
    """Run the suite and print its outcome; 1 if a test fails that is not expected to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--examples", type=int, default=20, help="random examples per test")
    parser.add_argument("--only", default="", help="names of tests, as pytest -k takes them")
    parser.add_argument("--version", default="", help="version of the standard; that of mlc.array_api by default")
    options = parser.parse_args()
    outcome, last = run(options.checkout, options.examples, options.only, options.version)
    expected = expected_failures(EXPECTED.read_text(encoding="utf-8"))
    groups = defaultdict[str, list[str]](list)
    for test in outcome.expected:
        groups[reason_of(test, expected) or ""].append(test)
    for reason, tests in groups.items():
        print(f"expected ({len(tests)}): {reason}", *tests, sep="\n    ")
    for test, problem in outcome.unexpected.items():
        print(f"failed: {test}\n    {problem}")
    print(f"pytest: {last}")
    print(f"{outcome.passed} passed, {len(outcome.unexpected)} failed, {len(outcome.expected)} failed as expected, "
          f"{len(outcome.surprising)} passed that may fail, {outcome.skipped} skipped: {outcome.share:.1%} pass")
    return 1 if outcome.unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
