"""Collects the file cases of tests/cases (see casefile.py) and adds `--bless`."""
from __future__ import annotations

import functools
import gc
import io
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlc.backends.cuda import devices, launch_plan
from mlc.frontend import eager
from mlc.tools import cli
from tests.casefile import Case, CaseError, CaseFailure, Chunk, Test, bless_file, parse_case, run_test
from tests.execution import execution as execution
from tests.execution import interpreted as interpreted
from tests.fake_device import FakeDevice
from tests.samples import SAMPLES, Run

CASES = Path(__file__).parent / "cases"

os.environ.pop("COLUMNS", None)                            # tests do not depend on the terminal's width

# Tests use a compile cache of their own instead of the user's; pytest's workers and child processes inherit it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="mlc-tests-")
    os.environ |= {"MLC_CACHE_DIR": os.path.join(_folder.name, "cache"), "MLC_CACHE": "1",
                   "MLC_CACHE_KEY": os.path.join(_folder.name, "config", "cache-key")}

# Python caches bytecode, even if it is configured to write none: each worker and each child process of a test would
# compile a thousand modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# PyTorch's computations are small here: its threads would only wait for each other, and compete with other tests. So
# would processes that compile for a test, which take half a second of a processor to start.
os.environ |= {"OMP_NUM_THREADS": "1", "MLC_COMPILE_JOBS": "1"}


@pytest.fixture
def device() -> Iterator[FakeDevice]:
    """A fake device as cuda:0."""
    made = FakeDevice()
    devices.substitute({0: made})
    yield made
    devices.substitute(None)
    eager._kernels.clear()                                 # their device no longer exists
    eager._by_shape.clear()


@pytest.fixture
def one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every plan has a graph, which each call with other addresses changes."""
    monkeypatch.setattr(launch_plan, "GRAPH_STEPS", 1)
    monkeypatch.setattr(launch_plan, "MOST_GRAPHS", 1)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    """Replaces cuda-python's driver module by an object."""
    def install(cu: Any) -> None:
        package = type(sys)("cuda")
        package.bindings = type(sys)("cuda.bindings")  # type: ignore[attr-defined]
        if cu is not None:
            package.bindings.driver = cu
        for name, module in (("cuda", package), ("cuda.bindings", package.bindings)):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, "cuda.bindings.driver", raising=False)
    yield install
    devices.substitute(None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write the output of file cases into their CHECK lines")
    parser.addoption("--shard", type=shard, default=(0, 1), metavar="I/N", help="of the tests one in N, from I = 0 on")


def shard(text: str) -> tuple[int, int]:
    number, count = map(int, text.split("/"))
    if not 0 <= number < count:
        raise ValueError
    return number, count


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shard the tests selected by -m and -k; those of a file go to different shards, which then take equally long."""
    number, count = config.getoption("shard")
    if count > 1:
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % count != number])
        items[:] = items[number::count]


def leaves_out_slow(config: pytest.Config) -> bool:
    """Whether slow tests need not be collected at all; they are the majority."""
    return config.option.markexpr == "not slow" and not any("::" in argument for argument in config.args)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    marks = getattr(obj, "pytestmark", ()) if name.startswith("test_") else ()
    return [] if any(mark.name == "slow" for mark in marks) and leaves_out_slow(collector.config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if leaves_out_slow(metafunc.config):
        marks = metafunc.definition.own_markers
        marks[:] = [without_slow(mark) if mark.name == "parametrize" else mark for mark in marks]


def without_slow(mark: pytest.Mark) -> pytest.Mark:
    """A parametrization without its slow parameters."""
    names, values, *others = mark.args
    values = list(values)
    kept = [not any(m.name == "slow" for m in getattr(value, "marks", ())) for value in values]
    keywords = dict[str, Any](mark.kwargs)
    if isinstance(ids := keywords.get("ids"), Sequence):
        keywords["ids"] = list(itertools.compress(ids, kept))
    return pytest.mark.parametrize(names, list(itertools.compress(values, kept)), *others, **keywords).mark


_set_aside = 0.0
"""When long-lived objects were last set aside."""


def set_aside() -> None:
    """Exclude long-lived objects (tests, libraries, caches) from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    set_aside()


def pytest_runtest_teardown() -> None:
    global _set_aside
    if time.monotonic() > _set_aside + 5:
        set_aside()
        _set_aside = time.monotonic()
    gc.set_threshold(50_000, 20, 20)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".mlir" and CASES in file_path.parents:
        return CaseCollector.from_parent(parent, path=file_path)
    return None


class CaseCollector(pytest.File):
    """A case file: one item per `// test:` line and module."""

    def collect(self) -> Iterator[pytest.Item]:
        file = self.path.relative_to(self.config.rootpath).as_posix()
        try:
            case = parse_case(self.path.read_text(encoding="utf-8"), file)
        except CaseError as e:
            raise self.CollectError(str(e)) from None
        for test in case.tests:
            for chunk in case.chunks:
                name = f"{test}[{chunk.index}]" if len(case.chunks) > 1 else str(test)
                yield CaseItem.from_parent(self, name=name, case=case, test=test, chunk=chunk)


class CaseItem(pytest.Item):
    """One test of one module."""

    def __init__(self, *, case: Case, test: Test, chunk: Chunk, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case, self.test, self.chunk = case, test, chunk

    def runtest(self) -> None:
        bless = functools.partial(bless_file, self.path, self.chunk.index) if self.config.getoption("bless") else None
        run_test(self.case, self.test, self.chunk, bless)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.test.line - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailure | CaseError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


@pytest.fixture
def sample_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the examples of the command's help use."""
    for name, text in SAMPLES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path

@pytest.fixture
def run(sample_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process: (exit status, stdout, stderr)."""
    def call(*words: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = cli.main(words)
        out, err = capsys.readouterr()
        return status, out, err
    return call
