"""mlc bench: networks and operations beside other frameworks, in turns, with this machine's limits; or a file's."""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mlc.tools import report

if TYPE_CHECKING:
    from mlc.roofline import Limits
    from mlc.tools.bench.measuring import Measured

CHARTS = (".png", ".svg", ".pdf")
"""Endings of files that charts are drawn into."""

EXAMPLES = """examples:
  mlc bench --list
  mlc bench mlp --peers torch
  mlc bench "matmul 256" sort --peers numpy --threads 1 --rounds 3 --json figures.json
  mlc bench resnet50 --peers openvino,torch --busy 2
  mlc bench model.py:predict --sizes B=16 --peers ""

The networks ("mlc bench models") and the training steps ("mlc bench training") take minutes; model.onnx is measured
beside ONNX Runtime and OpenVINO, model.pt2 beside PyTorch.
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("bench", "Measure networks and operations beside other frameworks that are installed, or the "
                      "function of a file.", EXAMPLES)
    add = p.add_argument
    add("rows", nargs="*", metavar="ROW", help="a row, a group of them, the beginning of their names, or "
        "FILE[:FUNCTION] (default: models)")
    add("--list", action="store_true", help="list the rows by group, and the peers")
    add("--peers", metavar="NAME,...", help="which to measure beside mlc (default: all that are installed)")
    add("--threads", type=report.integer(1), default=len(os.sched_getaffinity(0)), metavar="N",
        help="threads of each (default: the processors of this process)")
    add("--rounds", type=report.integer(1), default=7, metavar="N",
        help="turns of each, of which the best counts (default 7)")
    add("--busy", type=report.integer(0, most=256), default=0, metavar="N",
        help="measure while N other programs compute; the median of the turns counts")
    add("--args", metavar="TYPES", help="of a file: types of the arguments, as in 'f32[4,16]'")
    add("--sizes", metavar="B=4,...", help="of a file: numbers for size symbols")
    add("--json", type=report.Output, metavar="FILE",
        help="write the figures, with a description of the machine, - for stdout")
    add("--plot", type=report.Output, metavar="FILE", help=f"draw the ratios as a chart ({', '.join(CHARTS)})")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.tools.bench import in_file, roofline
    from mlc.tools.bench.measuring import measure, measured
    from mlc.tools.bench.rows import all_rows
    table = all_rows()
    if options.list:
        report.refuse(options, ("rows", "peers", "json", "plot"), "--list lists all rows, and measures nothing",
                      "leave it out")
        _list(table)
        return 0
    if options.plot:
        _check_plot(options.plot)
    peers = _peers(options.peers)
    names = _chosen(options.rows or ["models"], table)
    limits = roofline.limits(options.threads)
    stream = sys.stderr if options.json == "-" else sys.stdout

    def say(text: str) -> None:
        print(text, file=stream, flush=True)

    for line in _header(limits, peers):
        say(line)
    if options.busy:
        say(f"medians of {options.rounds} turns, while {options.busy} other programs compute")
    found = list[Any]()
    for name in names:
        how = peers, options.threads, options.rounds, options.busy
        found.append(measured(name, *how) if name in table else measure(in_file.row(name, options), *how))
        for line in _lines(found[-1], peers, limits):
            say(line)
    say(_summary(found))
    if options.json:
        _write(options.json, limits, found, options.busy)
    if options.plot:
        _plot(options.plot, found, peers)
    return 0


def _peers(text: str | None) -> list[str]:
    """mlc, and the peers that are asked for or installed."""
    from mlc.tools.bench.peers import PEERS
    asked = [n for n in (text or "").split(",") if n and n != "mlc"]
    for name in asked:
        if name not in PEERS:
            raise report.usage_error(f"--peers: there is no peer {name!r}", "one of " + ", ".join(PEERS), "MLC0391")
        if package := PEERS[name].missing():
            raise report.usage_error(f"--peers: {name} needs {package}, which is not installed",
                                     f"pip install {package}, or leave it out", "MLC0391")
    return ["mlc", *(asked if text is not None else [n for n, p in PEERS.items() if n != "mlc" and not p.missing()])]


def _chosen(words: Sequence[str], table: dict[str, Any]) -> list[str]:
    """The rows that are named, in the order of the words."""
    from mlc.tools import sources
    found = list[str]()
    for word in words:
        path = word.rpartition(":")[0] or word
        if os.path.isfile(word) or word.endswith((*sources.FUNCTIONS, ".mlir")) or os.path.isfile(path):
            found.append(word)
            continue
        names = [word] if word in table else [n for n, row in table.items() if row.group == word] or \
            [n for n in table if n.startswith(word)]
        if not names:
            raise report.usage_error(f"there is no row or file {word!r}", "mlc bench --list has the rows", "MLC0391")
        found += [n for n in names if n not in found]
    return found


def _list(table: dict[str, Any]) -> None:
    from mlc.tools.bench.peers import PEERS
    groups = dict[str, list[str]]()
    for name, row in table.items():
        groups.setdefault(row.group, []).append(name)
    for group, names in groups.items():
        print(f"{group}:")
        for name in names:
            print(f"  {name}")
    print("peers: " + ", ".join(n + (f" (needs {p.missing()})" if p.missing() else "") for n, p in PEERS.items()))


# -- the table --------------------------------------------------------------------------------------------------------
def _header(limits: Limits, peers: Sequence[str]) -> list[str]:
    operations = ", ".join(f"{n} {one / 1e9:.0f} and {both / 1e9:.0f} G/s" for n, (one, both)
                           in limits.operations.items())
    copied = ", ".join(f"{n} {one / 1e9:.0f} and {both / 1e9:.0f} GB/s" for n, _, (one, both) in limits.levels)
    return [f"one thread and {limits.threads}: multiply-adds {operations}", f"  copies {copied}", "",
            f"{'ms':26}" + "".join(f"{n:>12}" for n in peers) + f"{'ratio':>8}{'of limit':>9}  first call, s"]


def _lines(m: Measured, peers: Sequence[str], limits: Limits) -> list[str]:
    cells = "".join(f"{m.seconds[n] * 1e3:12.3f}" if n in m.seconds else f"{'-':>12}" for n in peers)
    from mlc.profile_kernels import roof_text
    limit = limits.seconds(m.flops, m.bytes, number=m.number)
    share = f"{roof_text(limit / m.seconds['mlc']):>9}" if limit else f"{'':9}"
    first = "  ".join(f"{n} {m.first[n]:.2f}" for n in peers if n in m.first)
    ratio = f"{m.ratio:8.2f}" if m.ratio else f"{'':8}"
    return [f"{m.row:26}{cells}{ratio}{share}  {first}",
            *(f"  {n} has no time: {why[:150]}" for n, why in m.failed.items())]


def _summary(found: Sequence[Measured]) -> str:
    """The geometric mean of the ratios by group, and the worst of each."""
    lines = [""]
    for group in dict.fromkeys(m.group for m in found):
        ratios = [(m.ratio, m.row) for m in found if m.group == group and m.ratio]
        if ratios:
            mean = math.exp(sum(math.log(r) for r, _ in ratios) / len(ratios))
            lines.append(f"{group}: the best peer's time over mlc's: geometric mean of {len(ratios)} {mean:.2f}, worst "
                         f"{min(ratios)[0]:.2f} ({min(ratios)[1]})")
    return "\n".join(lines)


def _machine() -> dict[str, Any]:
    from mlc.tools.info import versions
    return {"date": datetime.date.today().isoformat(), "processor": _processor(), "system": platform.platform(),
            **{k: v for k, v in versions("host") if k in ("mlc", "python", "LLVM", "machine model")}}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")),
                        platform.machine())
    except OSError:
        return platform.machine()


def _write(path: str, limits: Limits, found: Sequence[Measured], busy: int) -> None:
    from mlc.tools import files
    rates = {level.name: level.rates for level in limits.levels}
    text = json.dumps({"machine": _machine(), "threads": limits.threads, "busy": busy,
                       "limits": {"operations": limits.operations, "bytes": rates},
                       "rows": [asdict(m) for m in found]}, indent=1) + "\n"
    files.write(path, text)


def _check_plot(path: str) -> None:
    """Raise UserError, before all measurements, if a chart cannot be drawn into this file."""
    if os.path.splitext(path)[1].lower() not in CHARTS:
        raise report.usage_error(f"--plot: {path} is no kind of chart", "name a file that ends with one of " +
                                 ", ".join(CHARTS), "MLC0391")
    if importlib.util.find_spec("matplotlib") is None:
        raise report.usage_error("--plot draws with matplotlib, which is not installed", 'pip install "mlc[cli]"',
                                 "MLC0391")


def _plot(path: str, found: Sequence[Measured], peers: Sequence[str]) -> None:
    """A bar per row and peer: the peer's time over mlc's."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    others = [n for n in peers if n != "mlc" and any(n in m.seconds for m in found)]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.3 * len(found)), layout="constrained")
    for i, name in enumerate(others):
        rows = [(j, m.seconds[name] / m.seconds["mlc"]) for j, m in enumerate(found) if name in m.seconds]
        height = 0.8 / len(others)
        axes.barh([j + i * height for j, _ in rows], [r for _, r in rows], height, label=name)
    axes.set_yticks([j + 0.4 for j in range(len(found))], [m.row for m in found])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("time / mlc's time")
    if others:
        axes.legend()
    from mlc.tools import files
    figure.savefig(files.placed(path))
    pyplot.close(figure)
