"""Check mlc on the GPU of this machine, and measure its speed.

    python -m mlc.tools.gpu_check --out results
    python -m mlc.tools.gpu_check --only programs,speed --minutes 3
    python -m mlc.tools.gpu_check --out results --jobs 16

Programs, operations and training steps run on the device and on the CPU, on random inputs that are new each time
(--seed repeats a run), with memory full of NaNs before each call; by design of mlc the two agree to the bit. Products
and attention by tensor cores are compared with float64. Then speed is measured, and PyTorch's too, if it supports the
device. The programs and operations are those of the tests, and the models those of the examples, where they are to be
found. Where NCCL is installed, all GPUs of the machine call collectives. A kernel that takes the device along costs the
process; with --out another one goes on after it. Exit status 1: something is wrong, or there is no device.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc import api
from mlc import distributed as dist
from mlc.backends.cuda import devices, image
from mlc.backends.cuda.devices import target_for
from mlc.backends.cuda.executable import Executable, device_memory
from mlc.backends.cuda.launch_plan import MOST_GRAPHS
from mlc.backends.transport import threads
from mlc.ir.diag import BackendError
from mlc.ir.files import write_text
from mlc.tools import files
from mlc.tools.gpu_speed import ROUNDED, SPEEDS, Speed, attention_in_f64, measured, torch_with_device
from mlc.tools.report import output

Array = np.ndarray[Any, Any]
SECTIONS = ("copies", "programs", "operations", "products", "attention", "models", "ranks", "speed")
ROOT = Path(__file__).resolve().parents[1]
LOST = "MLC0587"
PARTS_SHARE = 0.7
"""Part of the time that processes beside each other get; the rest is for speed."""
CLOSE = 1e-5
"""Largest difference, relative to the largest number, that counts as close; beyond it, a result is wrong."""


@dataclass
class Row:
    """Result of one check: "bits" (the same), "close", "wrong", "error", or a speed."""

    section: str
    name: str
    result: str
    detail: str = ""
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def bad(self) -> bool:
        return self.result in ("wrong", "error")


class Lost(Exception):
    """The device is unusable in this process."""


class Report:
    """Collects result rows, and keeps track of the time limit. Part (k, n): every n-th check only, from the k-th."""

    def __init__(self, out: Path | None, seconds: float, resume: bool = False, part: tuple[int, int] = (0, 1)) -> None:
        self.out, self.rows = out, list[Row]()
        self.part, self.asked = part, 0
        self.started, self.seconds = time.monotonic(), seconds
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            if resume:
                self.rows = [Row(**row) for row in json.loads((out / "results.json").read_text())]
        self.done = {(row.section, row.name) for row in self.rows}

    def left(self) -> float:
        """Seconds until the time limit."""
        return self.seconds - (time.monotonic() - self.started)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if row.bad:
            print(f"{row.result.upper()}: {row.section} {row.name}: {row.detail.splitlines()[0] if row.detail else ''}",
                  flush=True)
        self.save()                                        # after every row: a device may take the process along

    def save(self) -> None:
        """Write all rows, if there is a folder for them."""
        if self.out is not None:
            write_text(self.out / "results.json", json.dumps([asdict(r) for r in self.rows], indent=1))

    def check(self, section: str, name: str, run: Callable[[], Row]) -> None:
        """Run one check, recording any exception, unless the device is lost."""
        self.asked += 1
        if (section, name) in self.done or self.asked % self.part[1] != self.part[0]:
            return
        try:
            self.add(run())
        except Exception as error:
            self.add(Row(section, name, "error", f"{error}\n{traceback.format_exc()}"))
            if isinstance(error, BackendError) and error.code == LOST:
                raise Lost from error


def compared(section: str, name: str, found: Sequence[Any], wanted: Sequence[Any], **numbers: float) -> Row:
    """Compare arrays with the expected ones."""
    worst, same = 0.0, True
    for i, (a, b) in enumerate(zip(found, map(np.asarray, wanted), strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return Row(section, name, "wrong", f"result {i} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}", numbers)
        if a.tobytes() == b.tobytes():
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        if (np.isnan(x) != np.isnan(y)).any() or (np.isinf(x) & (x != y) | np.isinf(y) & (x != y)).any():
            return Row(section, name, "wrong", f"result {i}: NaN or infinity in other places", numbers)
        finite = np.isfinite(x)
        apart = np.abs(np.where(finite, x - y, 0))
        same = same and not apart.any()                    # NaNs of other bits are still NaNs
        scale = float(np.abs(np.where(finite, y, 0)).max()) or 1.0
        worst = max(worst, float(apart.max()) / scale)
        if worst > CLOSE or a.dtype.kind not in "fV":
            at = np.unravel_index(int(apart.argmax()), apart.shape)
            return Row(section, name, "wrong", f"result {i} at {tuple(map(int, at))}: {x[at]}, not {y[at]}; "
                       f"{int((apart > 0).sum())} of {apart.size} differ", {**numbers, "worst": worst})
    return Row(section, name, "bits" if same else "close", "", {**numbers, "worst": worst})


# -- correctness ------------------------------------------------------------------------------------------------------
def copies(report: Report, rng: np.random.Generator, small: bool) -> None:
    """Copy arrays to the device and back."""
    memory = device_memory()
    for size in (1, 3, 511, 4096, (4 << 20) - 1, (4 << 20) + 1, 100_000_007):
        if small and size > 5_000_000:
            continue

        def one(size: int = size) -> Row:
            x = rng.integers(0, 256, size, np.uint8)
            there = memory.array(x)
            return compared("copies", str(size), [there.numpy(), there.copy().numpy()], [x, x])

        report.check("copies", str(size), one)


def on_device(build: Callable[[], Any], args: Sequence[Array], section: str, name: str, graphs: bool) -> Row:
    """Run a module on the device and on the CPU; if CUDA graphs are tested, at so many addresses that they are changed.
    """
    memory = device_memory()
    started = time.perf_counter()
    made = image.compile_image(build(), target_for(memory.device), memory.device.assemble, "ieee")
    f = Executable(made, memory).entry("main")
    taken = time.perf_counter() - started
    f.poison = True
    wanted = api.run_module(build(), "main", args)
    rows, held = [], list[Any]()
    for as_graph in (False, *[True] * (MOST_GRAPHS + 2) * graphs):
        f.program.graphs = as_graph
        held.append([memory.array(np.asarray(a)) for a in args])              # other addresses each time
        rows.append(compared(section, name, [r.numpy() for r in f.call(held[-1])], wanted, compile_s=taken))
    return next((row for row in rows if row.bad), max(rows, key=lambda row: row.numbers.get("worst", 0.0)))


def tests(name: str) -> Any:
    """A module of the tests, if they are available."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(f"tests.{name}")
    except ImportError:
        print(f"the tests are not here: nothing of tests.{name} is checked", flush=True)
        return None


def programs(report: Report, rng: np.random.Generator, small: bool) -> None:
    """The programs of the tests, at their sizes and with symbols standing for larger ones."""
    if (corpus := tests("corpus")) is None:
        return
    for name, program in corpus.PROGRAMS.items():
        args = [fresh(a, rng) for a in program()[1]]
        report.check("programs", name, lambda p=program, a=args, n=name: on_device(  # type: ignore[misc]
            lambda: p()[0], a, "programs", n, True))
    for name in ("symbolic_rows_and_columns", "product_with_transposed_factor", "loop_that_carries_two"):
        if small:
            continue
        large = [fresh(np.resize(a, [{7: 3001, 37: 1999}.get(n, n) for n in a.shape]), rng)
                 for a in corpus.PROGRAMS[name]()[1]]
        report.check("programs", f"{name}, large", lambda a=large, n=name: on_device(  # type: ignore[misc]
            lambda: corpus.PROGRAMS[n]()[0], a, "programs", f"{n}, large", True))


def fresh(x: Array, rng: np.random.Generator) -> Array:
    """Similar numbers: the elements of x in another order, floats multiplied by factors near 1."""
    out = rng.permutation(x.reshape(-1)).reshape(x.shape)
    return (out * rng.uniform(0.5, 1.5, x.shape)).astype(x.dtype) if x.dtype.kind == "f" else out


def operations(report: Report, rng: np.random.Generator, small: bool) -> None:
    """The samples of every operation, a few of each first, until their share of the time is over."""
    if (found := tests("op_samples")) is None:
        return
    rounds: dict[str, int] = {}
    ordered = []
    for sample in found.SAMPLES:
        rounds[sample.op] = rounds.get(sample.op, 0) + 1
        ordered.append((rounds[sample.op], sample))
    ordered.sort(key=lambda pair: pair[0])
    seed, share = int(rng.integers(1 << 30)), report.left() * 0.6
    until = time.monotonic() + share
    for number, (_, sample) in enumerate(ordered):
        if time.monotonic() > until or (small and number >= 20):
            print(f"operations: {number} of {len(ordered)} samples in {share:.0f} s", flush=True)
            return
        report.check("operations", str(sample), lambda s=sample: on_device(  # type: ignore[misc]
            lambda: s.build()[0], s.arguments(seed), "operations", str(s), False))


def products(report: Report, rng: np.random.Generator, small: bool) -> None:
    """Products by tensor cores, whose sums round slightly differently from the interpreter's."""
    shapes = (16, 16, 8), (40, 48, 72), (33, 1600, 50), (500, 256, 1000), (2048, 4096, 1024)
    for (m, k, n), dtype, transposed in itertools.product(shapes[:2] if small else shapes, ROUNDED, (False, True)):
        name = f"{m}x{k}x{n} {dtype}{' transposed' if transposed else ''}"

        def one(m: int = m, k: int = k, n: int = n, dtype: str = dtype, transposed: bool = transposed,
                name: str = name) -> Row:
            x, y = (mlc.tensor(rng.standard_normal(s, np.float32)).to("float32" if dtype == "tf32" else dtype)
                    for s in ((m, k), (n, k) if transposed else (k, n)))
            f = mlc.compile(lambda x, y: (x @ (y.T if transposed else y)).float(), target="cuda",
                            matmul_precision="tf32" if dtype == "tf32" else None)
            wanted = x.numpy().astype(np.float64) @ (y.numpy().T if transposed else y.numpy()).astype(np.float64)
            error = float(np.abs(f(x, y).numpy() - wanted).max() / np.abs(wanted).max())
            return Row("products", name, "close" if error < ROUNDED[dtype] else "wrong", f"relative error {error:.2g}",
                       {"worst": error})

        report.check("products", name, one)


def attention(report: Report, rng: np.random.Generator, small: bool) -> None:
    """Attention in one kernel, in 16 bits; heads, queries, keys and features that fill blocks and that do not."""
    shapes = (2, 64, 64, 64), (2, 70, 70, 32), (3, 200, 333, 64), (2, 300, 190, 128), (4, 1000, 2000, 96)
    for (heads, queries, keys, features), dtype, causal in itertools.product(
            shapes[1:2] if small else shapes, ("bfloat16", "float16"), (False, True)):
        name = f"{heads} x {queries} x {keys} x {features} {dtype}{' causal' if causal else ''}"

        def one(heads: int = heads, queries: int = queries, keys: int = keys, features: int = features,
                dtype: str = dtype, causal: bool = causal, name: str = name) -> Row:
            q, k, v = (mlc.tensor(rng.standard_normal((1, heads, n, features), np.float32)).to(dtype)
                       for n in (queries, keys, keys))
            f = mlc.compile(lambda q, k, v: mlc.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal).float(), target="cuda")
            wanted = attention_in_f64(q.float().numpy(), k.float().numpy(), v.float().numpy(), causal)
            error = float(np.abs(f(q, k, v).numpy() - wanted).max() / np.abs(wanted).max())
            return Row("attention", name, "close" if error < 2 * ROUNDED[dtype] else "wrong",
                       f"relative error {error:.2g}", {"worst": error})

        report.check("attention", name, one)


def example(name: str) -> Any:
    """A module of the examples, if they are available."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path) if path.exists() else None
    if spec is None or spec.loader is None:
        print(f"the examples are not here: {name} is not checked", flush=True)
        return None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def models(report: Report, rng: np.random.Generator, small: bool) -> None:
    """The first steps of training the classifiers of digits, on the device as on the CPU."""
    digits, cnn = example("digits"), example("digits_cnn")
    if digits is None or cnn is None:
        return
    images, labels, _, _ = digits.load()
    order, steps = rng.permutation(len(images)), 2 if small else 12
    optimizer = mlc.optim.AdamW(lr=2e-3)
    cnn_step = cnn.make_step(optimizer).compiled.__wrapped__
    for name, make, step, shape in (("digits", digits.Classifier, digits.training_step, (-1, 64)),
                                    ("digits_cnn", cnn.make, cnn_step, (-1, 1, 8, 8))):
        def losses(where: str, make: Any = make, step: Any = step, shape: Any = shape, name: str = name) -> Array:
            mlc.manual_seed(0)
            model = make().to(where)
            state = (digits.optimizer if name == "digits" else optimizer).init(model)
            train = mlc.compile(step, donate=("model", "state"), target="host" if where == "cpu" else where)
            out = []
            for i in range(steps):
                batch = order[i * 64: (i + 1) * 64]
                model, state, value = train(model, state, images[batch].reshape(shape), labels[batch])
                out.append(value.item())
            return np.array(out, np.float32)

        def one(name: str = name, losses: Callable[..., Array] = losses) -> Row:
            started = time.perf_counter()
            found = losses("cuda")
            seconds = time.perf_counter() - started
            return compared("models", name, [found], [losses("cpu")], seconds=seconds, last_loss=float(found[-1]))

        report.check("models", name, one)


def ranks(report: Report, rng: np.random.Generator, small: bool) -> None:
    """Collectives, messages and a program on a mesh of all GPUs by NCCL, of whole numbers; ranks are threads."""
    if not dist.is_nccl_available():
        print("nccl4py or NCCL is not installed: nothing of ranks is checked (pip install 'mlc[nccl]')", flush=True)
        return
    count = devices.count()
    xs = rng.integers(-50, 50, (count, 2, 4 * count)).astype(np.float32)

    def collectives(rank: int) -> list[Array]:
        dist.init_process_group(timeout=60)
        x = mlc.tensor(xs[rank], device=f"cuda:{rank}")
        total, largest, whole, other = x.clone(), x.clone(), mlc.zeros(2 * count, 4 * count).to(x), mlc.zeros_like(x)
        work = dist.all_reduce(total, async_op=True)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        dist.all_gather_into_tensor(whole, x)
        messages = [dist.P2POp(dist.isend, x, (rank + 1) % count), dist.P2POp(dist.irecv, other, (rank - 1) % count)]
        for message in [work, *(dist.batch_isend_irecv(messages) if count > 1 else [])]:
            message.wait()                                 # type: ignore[union-attr]
        return [y.numpy() for y in (total, largest, whole, other)]

    def on_mesh(rank: int) -> list[Array]:
        dist.init_process_group(timeout=60)
        y = dist.shard(np.concatenate(xs), "data", mesh=dist.mesh({"data": count}, device_type="cuda"))
        f = mlc.compile(lambda y: (y.sum(0), y.amax(0), dist.shard(y * 2, None, "data"), dist.shard(y + 1)))
        return [z.numpy() for z in f(y)]

    whole, last = np.concatenate(xs), xs[count - 2] if count > 1 else 0 * xs[0]
    for name, function, wanted in (
            ("collectives", collectives, [xs.sum(0), xs.max(0), whole, last]),
            ("a program on a mesh", on_mesh, [whole.sum(0), whole.max(0), whole * 2, whole + 1])):
        report.check("ranks", f"{name}, {count} GPUs", lambda f=function, w=wanted, n=name: compared(  # type: ignore[misc]
            "ranks", f"{n}, {count} GPUs", threads.run(count, f)[-1], w))


# -- speed ------------------------------------------------------------------------------------------------------------
def speed(report: Report, rng: np.random.Generator, small: bool) -> None:
    """Measure the rates of mlc, and of PyTorch, on the device."""
    torch = torch_with_device()
    for what in SPEEDS:
        for n in (16,) if small else what.sizes:
            if report.left() < 15:
                print("speed: no time for the rest", flush=True)
                return

            def one(what: Speed = what, n: int = n) -> Row:
                error, numbers = measured(what, n, rng, torch, small)
                right = error < what.close
                return Row("speed", f"{what.name} {n}", "speed" if right else "wrong",
                           "" if right else f"relative error {error:.2g}", numbers)

            report.check("speed", f"{what.name} {n}", one)


# -- processes --------------------------------------------------------------------------------------------------------
def in_parts(jobs: int, sections: Sequence[str], report: Report, seed: int, small: bool) -> list[Row]:
    """The rows of the sections, checked by several processes on one device."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [(report.out or Path(folder)) / f"part-{k}" for k in range(jobs)]
        running = [subprocess.Popen(
            [sys.executable, "-m", "mlc.tools.gpu_check", "--out", str(out), "--only", ",".join(sections), "--part",
             f"{k}/{jobs}", "--seed", str(seed), "--minutes", str(report.left() / 60 * PARTS_SHARE),
             *["--small"] * small], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for k, out in enumerate(outs)]
        rows = list[Row]()
        for k, (process, out) in enumerate(zip(running, outs, strict=True)):
            said = process.communicate()[0]
            if (found := out / "results.json").exists():
                rows += [Row(**row) for row in json.loads(found.read_text())]
            if process.returncode not in (0, 1) or not (out / "summary.txt").exists():
                rows.append(Row("processes", str(k), "error", f"exit status {process.returncode}\n{said[-2000:]}"))
    return rows


# -- reporting --------------------------------------------------------------------------------------------------------
def header() -> Iterator[str]:
    """Lines describing the device, the code generated for it and the versions in use."""
    device = device_memory().device
    free, total = device.memory_info()
    yield f"device      {device.name}, sm_{device.architecture}, {total >> 20} MiB, {free >> 20} free"
    yield f"code        {target_for(device)}, {' '.join(target_for(device).features)}"
    known = {"mlc": mlc.__version__, "Python": platform.python_version()}
    for name in ("numpy", "llvmlite", "cuda-bindings", "torch"):
        with suppress(PackageNotFoundError):
            known[name] = version(name)
    yield "versions    " + ", ".join(f"{name} {number}" for name, number in known.items())


def table(report: Report) -> Iterator[str]:
    """Summary of the run: correctness, then speeds."""
    for section in SECTIONS[:-1]:
        rows = [r for r in report.rows if r.section == section]
        if rows:
            counts = {kind: sum(r.result == kind for r in rows) for kind in ("bits", "close", "wrong", "error")}
            yield f"{section:<12}" + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
    for r in report.rows:
        if r.section == "speed" and r.result != "error":
            rate = next(f"{v:9.0f} {u}" for u, v in r.numbers.items() if u in ("GB/s", "GFLOP/s"))
            ratio = f"  {r.numbers['ratio']:5.2f} x torch" if "ratio" in r.numbers else ""
            yield f"{r.name:<20}{r.numbers['seconds'] * 1e6:11.1f} us {rate}{ratio}"
    bad = [r for r in report.rows if r.bad]
    yield f"{len(report.rows)} checks, {len(bad)} bad, {time.monotonic() - report.started:.0f} s"


def main(words: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser("gpu_check", description="Check mlc on the GPU of this machine, and measure its speed.")
    p.add_argument("--out", type=output(files.check_output_folder),
                   help="folder for all that is found: results.json and summary.txt")
    p.add_argument("--only", default=",".join(SECTIONS), help="sections to run: " + ", ".join(SECTIONS))
    p.add_argument("--minutes", type=float, default=7.5, help="about how long it may take")
    p.add_argument("--seed", type=int, help="of the random inputs; without one they are new each time")
    p.add_argument("--resume", action="store_true", help="leave out what --out has results of")
    p.add_argument("--small", action="store_true", help="little of everything, to try the program itself")
    p.add_argument("--jobs", type=int, default=1, help="processes that check; speed is measured by one")
    p.add_argument("--part", default="0/1", help=argparse.SUPPRESS)
    options = p.parse_args(words)
    if unknown := [s for s in options.only.split(",") if s not in SECTIONS]:
        p.error(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    if options.jobs > 1 and options.resume:
        p.error("--resume goes on with one process: leave out --jobs")
    if (reason := mlc.cuda.why_not()) is not None:
        print(f"{reason}\nno device: nothing is checked")
        return 1
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    head = [*header(), f"seed        {seed}"]
    print("\n".join(head), flush=True)
    part = tuple(map(int, options.part.split("/")))
    report = Report(options.out, options.minutes * 60, options.resume, (part[0], part[1]))
    rng = np.random.default_rng(seed)
    wanted = options.only.split(",")
    if options.jobs > 1:
        beside = [s for s in wanted if s != "speed"]
        report.rows += in_parts(options.jobs, beside, report, seed, options.small)
        report.save()
        wanted = [s for s in wanted if s == "speed"]
    runs = {"copies": copies, "programs": programs, "operations": operations, "products": products,
            "attention": attention, "models": models, "ranks": ranks, "speed": speed}
    try:
        for section in SECTIONS:
            if section in wanted:
                runs[section](report, rng, options.small)
    except Lost:
        print("the device is lost, and so is this process", flush=True)
        if options.out is not None and report.left() > 30:
            again = ["--out", str(options.out), "--only", options.only, "--minutes", str(report.left() / 60)]
            os.execv(sys.executable, [sys.executable, "-m", "mlc.tools.gpu_check", *again, "--resume",
                                      "--part", options.part, *["--small"] * options.small])
    lines = list(table(report))
    print("\n".join(lines))
    if options.out is not None:
        write_text(options.out / "summary.txt", "\n".join([*head, *lines]) + "\n")
    return 1 if any(r.bad for r in report.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
