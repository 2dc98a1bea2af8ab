"""Judge mlc by the tests of ONNX's own package; README.md describes the verdicts.

    python -m tests.peers.onnx_backend [--only REGEX] [--kinds node,simple,pytorch-converted,pytorch-operator]
                                       [--mode interpreted|compiled] [--sample N] [--shard I/N] [--json FILE] [--resume]
                                       [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import mlc
from mlc.tools.fuzzing.interpreted import interpreted

VERDICTS = ("right", "wrong", "refused", "error", "not there")
KINDS = ("node", "simple", "light", "real", "pytorch-converted", "pytorch-operator")


def cases(kinds: list[str]) -> list[Any]:
    """The cases of ONNX's tests, each with its kind."""
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for kind in kinds for case in load_model_tests(kind=kind)]


def model_of(case: Any) -> Any:
    """The model of a case; None if it would have to be downloaded."""
    import onnx
    if case.model is not None:
        return case.model
    return onnx.load(Path(case.model_dir) / "model.onnx") if case.model_dir else None


def data_of(case: Any, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and results of a case: those in memory, or of the files beside the model."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield list(map(_array, inputs)), list(map(_array, outputs))
        return
    graph, weights = model.graph, {t.name for t in model.graph.initializer}
    inputs = [i for i in graph.input if i.name not in weights] if len(weights) else list(graph.input)
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        files = sorted(folder.glob("input_*.pb"), key=_number)
        described = inputs if len(files) <= len(inputs) else list(graph.input)
        yield ([_loaded(f, i.type) for f, i in zip(files, described)],
               [_loaded(f, o.type) for f, o in zip(sorted(folder.glob("output_*.pb"), key=_number), graph.output)])
    for file in sorted(Path(case.model_dir).glob("test_data_*.npz")):
        data = np.load(file, encoding="bytes")
        yield list(data["inputs"]), list(data["outputs"])


def _array(x: Any) -> Any:
    """A tensor of ONNX's as an array; arrays as they are."""
    from onnx import numpy_helper
    return numpy_helper.to_array(x) if hasattr(x, "data_type") else x


def _number(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def _loaded(path: Path, type: Any) -> Any:
    import onnx
    from onnx import numpy_helper
    kind = type.WhichOneof("value")
    proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(kind, onnx.TensorProto)()
    proto.ParseFromString(path.read_bytes())
    read = {"sequence_type": numpy_helper.to_list, "optional_type": numpy_helper.to_optional}.get(
        kind, numpy_helper.to_array)
    return read(proto)


ROUNDED = "rounded"
"""A difference of a unit in the last place of the largest element, where sums and exponentials round otherwise."""


def difference(found: Any, wanted: Any, rtol: float, atol: float) -> str:
    """Where a result is not the one that ONNX has; empty if it is. As ONNX's runner compares them."""
    if wanted is None or found is None:
        return "" if wanted is None and found is None else f"{found} in place of {wanted}"
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"a sequence of {len(wanted)} is expected"
        found = [difference(f, w, rtol, atol) for f, w in zip(found, wanted)]
        return next((d for d in sorted(found, key=lambda d: d == ROUNDED) if d), "")
    wanted = np.asarray(wanted)
    if found.dtype != wanted.dtype:
        return f"{found.dtype} in place of {wanted.dtype}"
    if found.shape != wanted.shape:
        return f"the shape {found.shape} in place of {wanted.shape}"
    if found.dtype.kind not in "fcV":
        return "" if np.array_equal(found, wanted) else f"{found.ravel()[:8]} in place of {wanted.ravel()[:8]}"
    rtol = max(rtol, 2**-6) if found.dtype.name == "bfloat16" else rtol
    complex_ = found.dtype.kind == "c"
    dtype = found.dtype
    found, wanted = (x if complex_ else x.astype(np.float64) for x in (found, wanted))
    if np.allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    finite = np.abs(wanted[np.isfinite(wanted)])
    unit = float(ml_dtypes.finfo(dtype).eps) * (finite.max() if finite.size else 0)  # type: ignore[no-untyped-call]
    if np.allclose(found, wanted, rtol=rtol, atol=max(atol, unit), equal_nan=True):
        return ROUNDED
    at = np.argmax(~np.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True).ravel())
    return f"{found.ravel()[at]} in place of {wanted.ravel()[at]} at {at}"


def judge(case: Any, mode: str) -> dict[str, Any]:
    """The line of a case: its verdict and the reason."""
    from mlc.onnx import backend
    line: dict[str, Any] = {"kind": case.kind, "name": case.name, "rounded": False, "constants": []}
    model = model_of(case)
    if model is None:
        return line | {"verdict": "not there", "reason": f"it would be downloaded from {case.url}"}
    try:
        with interpreted() if mode == "interpreted" else nullcontext(), np.errstate(all="ignore"):
            prepared = backend.prepare(model)
            for inputs, outputs in data_of(case, model):
                found = prepared.run(inputs)
                line["constants"] = sorted(prepared.fixed)
                if len(found) != len(outputs):
                    return line | {"verdict": "wrong", "reason": f"{len(found)} results in place of {len(outputs)}"}
                for x, wanted, name in zip(found, outputs, prepared.model.outputs):
                    text = difference(x, wanted, case.rtol, case.atol)
                    line["rounded"] |= text == ROUNDED
                    if text and text != ROUNDED:
                        return line | {"verdict": "wrong", "reason": f"{name}: {text}"}
    except mlc.Error as error:
        verdict = "refused" if isinstance(error, mlc.UserError) else "error"
        return line | {"verdict": verdict, "reason": f"{error.code} {error.message}", "notes": list(error.notes)}
    except Exception as error:
        return line | {"verdict": "error", "reason": f"{type(error).__name__}: {error}"[:500]}
    return line | {"verdict": "right", "reason": ""}


def _child(requests: Any, replies: Any, kinds: list[str], mode: str) -> None:
    warnings.simplefilter("ignore")
    found = cases(kinds)
    while (k := requests.get()) is not None:
        replies.put(judge(found[k], mode))


class Child:
    """A process that judges cases; one that takes longer than the limit is ended, and the next case gets a new one."""

    def __init__(self, kinds: list[str], mode: str) -> None:
        context = multiprocessing.get_context("fork")
        self.requests, self.replies = context.Queue(), context.Queue()
        self.process = context.Process(target=_child, args=(self.requests, self.replies, kinds, mode), daemon=True)
        self.process.start()

    def judged(self, k: int, limit: float) -> dict[str, Any] | None:
        """The line of a case; None if the process ended, or had to be."""
        import queue
        self.requests.put(k)
        end = time.monotonic() + limit
        while time.monotonic() < end and self.process.is_alive():
            try:
                return self.replies.get(timeout=0.5)  # type: ignore[no-any-return]
            except queue.Empty:
                continue
        self.process.kill()
        return None


def summary(lines: list[dict[str, Any]]) -> str:
    """Numbers of verdicts by kind, and the reasons of refusals with how often each occurs."""
    out = []
    for kind in KINDS:
        if found := Counter(line["verdict"] for line in lines if line["kind"] == kind):
            out.append(f"{kind} {found.total()}: " + ", ".join(f"{v} {found[v]}" for v in VERDICTS if found[v]))
    found = Counter(line["verdict"] for line in lines)
    out.append(f"all {found.total()}: " + ", ".join(f"{v} {found[v]}" for v in VERDICTS if found[v]))
    right = [line for line in lines if line["verdict"] == "right"]
    out.append(f"of those that are right, {sum(bool(x.get('constants')) for x in right)} have inputs as constants, and "
               f"{sum(bool(x.get('rounded')) for x in right)} differ by a rounding")
    reasons = Counter(re.sub(r"\d+", "N", line["reason"]) for line in lines if line["verdict"] == "refused")
    return "\n".join([*out, *(f"  {count:4} {reason}" for reason, count in reasons.most_common())])


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--only", default="", help="names of cases, a regular expression")
    p.add_argument("--kinds", default=",".join(KINDS))
    p.add_argument("--mode", choices=("interpreted", "compiled"), default="interpreted")
    p.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth case")
    p.add_argument("--shard", default="0/1", metavar="I/N")
    p.add_argument("--json", type=Path, help="a line per case")
    p.add_argument("--resume", action="store_true", help="leave out what --json has, and add to it")
    p.add_argument("--limit", type=float, default=60, help="seconds per case")
    options = p.parse_args()
    kinds = options.kinds.split(",")
    lines = [json.loads(x) for x in options.json.read_text().splitlines()] if options.resume and options.json.exists(
        ) else []
    if options.json and not options.resume:
        options.json.write_text("")
    done = {(line["kind"], line["name"]) for line in lines}
    shard, shards = map(int, options.shard.split("/"))
    found = cases(kinds)
    child = Child(kinds, options.mode)
    for k, case in enumerate(found):
        if (case.kind, case.name) in done or not re.search(options.only, case.name) or k % options.sample or (
                k // options.sample % shards != shard):
            continue
        line = child.judged(k, options.limit)
        if line is None:
            line = {"kind": case.kind, "name": case.name, "verdict": "error",
                    "reason": f"the process ended, or took more than {options.limit:g} s"}
            child = Child(kinds, options.mode)
        lines.append(line)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(line) + "\n")
        if line["verdict"] in ("wrong", "error"):
            print(f"{line['verdict']:8} {line['name']}: {line['reason']}", flush=True)
    child.requests.put(None)
    print(summary(lines))
    return int(any(line["verdict"] in ("wrong", "error") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
