"""mlc judged by the interpreter tests of StableHLO's specification.

    python -m tests.peers.stablehlo_suite FOLDER [--mode interpreted|compiled] [--only REGEX] [--every N]
                                          [--json FILE [--resume]] [--limit SECONDS] [--shard I/N] [--show N]

FOLDER is a checkout of StableHLO, which has `stablehlo/tests/interpret` and `stablehlo/testdata`. A test is a file of
the second, or a part of a file of the first between lines `// -----`. Its functions compare what they compute by
`check.expect_eq` and others, which this program evaluates.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import re
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager
from mlc.frontend.stablehlo import interpreter, table
from mlc.frontend.stablehlo.calls import custom
from mlc.frontend.stablehlo.reader import read

VERDICTS = ("right", "near", "wrong", "refused", "error", "no check")
TOLERANCES = {"float16": 1e-2, "bfloat16": 4e-2, "float32": 2e-4, "float64": 1e-8}
"""Relative tolerance of what is near; a sum may also be off by a rounding error of the largest element."""
ULPS = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -20, "float64": 2.0 ** -49}


class Wrong(Exception):
    """A comparison does not hold."""


class Near(Wrong):
    """A comparison of floats by the number of floats between them does not hold, and one by a tolerance does."""


def _parts(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Real numbers: the parts of complex ones."""
    return np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x


def expect_eq(found: Any, wanted: Any) -> None:
    """The same elements; NaN is itself, and zeros are equal."""
    a, b = (_parts(np.asarray(x)) for x in (found, wanted))
    if a.dtype != b.dtype or a.shape != b.shape:
        raise Wrong(f"{a.dtype}{a.shape} in place of {b.dtype}{b.shape}")
    same = (a == b) | ((a != a) & (b != b))
    if not same.all():
        at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(same)))
        raise Wrong(f"{int((~same).sum())} of {same.size} differ, at {at}: {np.atleast_1d(a)[at]} in place of "
                    f"{np.atleast_1d(b)[at]}")


def expect_close(found: Any, wanted: Any, tolerance: float | None = None, ulps: int = 3) -> None:
    """Nearly the same floats: by an absolute tolerance, or with at most so many floats between them.

    Near is what is further away, and within the tolerance that other comparisons of the tests have.
    """
    a, b = (_parts(np.asarray(x)) for x in (found, wanted))
    if a.dtype != b.dtype or a.shape != b.shape or a.dtype.name not in TOLERANCES:
        return expect_eq(found, wanted)
    wide = [x.astype(np.float64) for x in (a, b)]
    with np.errstate(all="ignore"):
        special = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        difference = np.abs(wide[0] - wide[1])
        if tolerance is not None:
            same = special | (difference <= tolerance)
        else:
            apart = np.asarray(_ordered(a) - _ordered(b))
            same = special | (np.abs(apart.astype(np.float64)) <= ulps)
        finite = np.abs(np.where(np.isfinite(wide[1]), wide[1], 0))
        absolute = ULPS[a.dtype.name] * max(1.0, float(finite.max(initial=0)))
        near = special | (difference <= absolute + TOLERANCES[a.dtype.name] * np.abs(wide[1]))
    if not same.all():
        at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(same)))
        raise (Near if near.all() else Wrong)(
            f"{int((~same).sum())} of {same.size} differ, at {at}: {np.atleast_1d(a)[at]} in place of "
            f"{np.atleast_1d(b)[at]}")
    return None


def _ordered(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The number of a float among all floats, as Python integers where 64 bits are too few."""
    bits = x.view(f"int{8 * x.dtype.itemsize}").astype(object if x.dtype.itemsize == 8 else np.int64)
    least = 1 << (8 * x.dtype.itemsize - 1)
    return np.where(bits < 0, -(bits + least), bits)


CHECKED = 0


def _count() -> None:
    global CHECKED
    CHECKED += 1


def _wanted(step: Any, rest: tuple[Any, ...]) -> Any:
    return rest[0] if rest else step.op.need("value")


def _register() -> None:
    """Make the comparisons operations of the program."""
    def equal(step: Any, found: Any, *rest: Any) -> tuple[Any, ...]:
        _count()
        expect_eq(found, _wanted(step, rest))
        return ()

    def close(step: Any, found: Any, *rest: Any) -> tuple[Any, ...]:
        _count()
        expect_close(found, _wanted(step, rest), ulps=int(step.op.get("max_ulp_difference", 3)))
        return ()

    def almost(step: Any, found: Any, *rest: Any) -> tuple[Any, ...]:
        _count()
        limit = step.op.get("tolerance")
        expect_close(found, _wanted(step, rest), float(limit) if limit is not None else 1e-3)
        return ()

    table.find("stablehlo.add")
    for name, f in {"eq": equal, "eq_const": equal, "close": close, "close_const": close, "almost_eq": almost,
                    "almost_eq_const": almost}.items():
        table.row(f"check.expect_{name}")(f)
        custom(f"check.expect_{name}", f"check.{name}")(f)


def tests(folder: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of each test."""
    for path in sorted((folder / "stablehlo" / "testdata").glob("*.mlir")):
        yield f"testdata/{path.name}", path.read_text()
    for path in sorted((folder / "stablehlo" / "tests" / "interpret").rglob("*.mlir")):
        parts = path.read_text().split("// -----")
        for number, part in enumerate(parts):
            if "func.func" in part:
                yield f"interpret/{path.stem}/{number}", part


def judge(name: str, text: str, mode: str) -> tuple[str, str]:
    """The verdict on a test, with what there is to say about it."""
    global CHECKED
    CHECKED = 0
    around = eager.compiled_by(lambda module, where: Meaning(module)) if mode == "interpreted" else nullcontext()
    try:
        with around:
            program = read(text, name)
            mains = [program.functions["main"]] if "main" in program.functions else list(program.functions.values())
            for function in mains:
                if function.body is not None and not function.body.names:
                    interpreter.Interpreter(program).call(function, ())
        return ("right", "") if CHECKED else ("no check", "")
    except Wrong as error:
        return "near" if isinstance(error, Near) else "wrong", str(error)
    except mlc.UserError as error:
        return "refused", f"{error.code} {error.message}"
    except Exception as error:                             # the judge reports what the program does not catch
        if isinstance(error.__cause__, Wrong):
            return "wrong", str(error.__cause__)
        return "error", f"{type(error).__name__}: {error}"[:300] + "\n" + traceback.format_exc(limit=-4)


def _work(pipe: Any, mode: str) -> None:
    _register()
    while (task := pipe.recv()) is not None:
        pipe.send(judge(task[0], task[1], mode))


class Worker:
    """A process that judges one test after the other, and is replaced when a test takes too long."""

    def __init__(self, mode: str, limit: float) -> None:
        self.mode, self.limit = mode, limit
        self.process: Any = None

    def verdict(self, name: str, text: str) -> tuple[str, str]:
        if self.process is None:
            context = multiprocessing.get_context("fork")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=_work, args=(other, self.mode), daemon=True)
            self.process.start()
        self.pipe.send((name, text))
        if not self.pipe.poll(self.limit):
            self.stop()
            return "error", f"more than {self.limit:g} seconds"
        try:
            found: tuple[str, str] = self.pipe.recv()
            return found
        except EOFError:
            self.stop()
            return "error", "the process ended"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def main() -> int:
    """Run the tests, and print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mode", choices=("interpreted", "compiled"), default="interpreted")
    parser.add_argument("--only", default="", help="regular expression of names")
    parser.add_argument("--every", type=int, default=1, help="take one test of so many")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--show", type=int, default=3, help="tests shown per reason")
    options = parser.parse_args()
    number, count = map(int, options.shard.split("/"))
    done: dict[str, dict[str, Any]] = {}
    if options.resume and options.json and options.json.exists():
        done = {r["name"]: r for r in map(json.loads, options.json.read_text().splitlines())}
    log = options.json.open("a" if options.resume else "w") if options.json else None
    worker, results = Worker(options.mode, options.limit), list[dict[str, Any]]()
    chosen = [t for t in tests(options.folder) if re.search(options.only, t[0])]
    for name, text in chosen[number * options.every:: count * options.every]:
        if name not in done:
            start = time.perf_counter()
            verdict, note = worker.verdict(name, text)
            done[name] = {"name": name, "verdict": verdict, "note": note, "s": round(time.perf_counter() - start, 2)}
            if log:
                log.write(json.dumps(done[name]) + "\n")
                log.flush()
        results.append(done[name])
    worker.stop()
    _summary(results, options.show)
    return 0


def _summary(results: list[dict[str, Any]], show: int) -> None:
    reasons: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for r in results:
        if r["verdict"] != "right":
            reason = re.sub(r"\d+", "N", r["note"].splitlines()[0] if r["note"] else "")[:110]
            reasons[(r["verdict"], reason)].append(r["name"])
    for (verdict, reason), names in sorted(reasons.items(), key=lambda x: (x[0][0], -len(x[1]))):
        print(f"{verdict}: {reason}: {len(names)}: {', '.join(names[:show])}")
    for kind in ("testdata", "interpret"):
        found = collections.Counter(r["verdict"] for r in results if r["name"].startswith(kind))
        print(f"{kind}: {sum(found.values())} tests: " + ", ".join(f"{found[v]} {v}" for v in VERDICTS if found[v]))
    total = collections.Counter(r["verdict"] for r in results)
    print(f"all: {len(results)} tests: " + ", ".join(f"{total[v]} {v}" for v in VERDICTS))


if __name__ == "__main__":
    sys.exit(main())
