"""`mlc run --ranks N train.py`: start a program as N ranks by MPI's launcher, again after a failure if asked to."""

from __future__ import annotations

import codecs
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.launchers import check_installed
from mlc.tools import report

_SIGNALS = {str(-number) for number in signal.Signals if number != signal.SIGTERM}
"""Statuses of processes that were killed, other than by the launcher, which ends those that are left by SIGTERM."""
GRACE = 3.0
"""Seconds in which the launcher may end the other ranks of a job by itself, once one has died."""
_BANNER = b"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
_BELOW = (b"=   ", b"=" * 83, b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING",
          b"This typically refers to a problem with your ", b"Please see the FAQ page for debugging suggestions")
"""How the lines begin that the launcher prints about a rank that has died."""


def launch(path: str, arguments: Sequence[str], count: int, max_restarts: int, detect_anomaly: bool = False) -> int:
    """Run a Python program as ranks until all have ended well; RankError that names the rank that failed first."""
    check_installed("mpi")
    command = [launcher(), "-n", str(count), sys.executable, "-m", "mlc.tools.rank", path, *arguments]
    for restart in range(max_restarts + 1):
        with tempfile.TemporaryDirectory(prefix="mlc-ranks-") as folder:
            status = _run(command, Path(folder), {"MLC_RANKS_FOLDER": folder, "MLC_RESTART_COUNT": str(restart),
                                                  "MLC_RANKS_DETECT_ANOMALY": str(int(detect_anomaly))})
            if not status:
                return 0
            error = failure(Path(folder), count, status)
        if restart < max_restarts:
            report.message(f"{error.message}; restart {restart + 1} of {max_restarts}")
    raise error


def launcher() -> str:
    """The path of mpiexec: that beside Python, which the wheel mpich brings, or the one of the system."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if found is None:
        raise RankError("mpiexec is not installed", code="MLC0975",
                        hint="pip install 'mlc[distributed]' brings MPICH, which has it")
    return found


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> int:
    """The status of a command, which ends with this process."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    forward = threading.Thread(target=_forward, args=(process.stdout,))
    forward.start()
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number)) \
        if threading.current_thread() is threading.main_thread() else None
    try:
        return _waited(process, folder)
    finally:
        _end(process)
        forward.join()
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _waited(process: subprocess.Popen[bytes], folder: Path) -> int:
    """The status of the launcher, which is ended if it does not end the other ranks when one has died."""
    died = math.inf
    while (status := process.poll()) is None:
        time.sleep(0.05)
        if died == math.inf and any(folder.glob("*.died")):
            died = time.monotonic()
        if time.monotonic() > died + GRACE:
            _end(process)
            return 1
    return status


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _forward(output: IO[bytes]) -> None:
    """Pass on what the ranks print, without the launcher's own words about one that has died."""
    text = codecs.getincrementaldecoder("utf-8")("replace")          # a read may end within a character
    held = b""
    while chunk := os.read(output.fileno(), 1 << 16):
        before, banner, after = (held + chunk).partition(_BANNER)
        if banner:                                         # which begins with a line of its own
            before = before.removesuffix(b"\n").rstrip(b"=")
            before = before[:-1] if before.endswith(b"\n\n") or before == b"\n" else before
        end = len(before) if banner else _beginning(before)
        sys.stdout.write(text.decode(before[:end]))
        sys.stdout.flush()
        if banner:
            return _forward_lines(output, after, text)
        held = before[end:]
    sys.stdout.write(text.decode(held, True))


def _beginning(read: bytes) -> int:
    """Where the end of what is read may be the beginning of the launcher's words; its length if it is not."""
    start = read.rfind(b"\n") + 1
    line = read[start:]
    above = read.rfind(b"\n", 0, max(start - 1, 0)) + 1
    if start > above + 1 and not read[above:start - 1].strip(b"=") and _BANNER.startswith(line):
        return above
    return start if not line.strip(b"=") else len(read)


def _forward_lines(output: IO[bytes], rest: bytes, text: codecs.IncrementalDecoder) -> None:
    """Pass on the lines of ranks that are left, between and after those of the launcher; `rest` is read already."""
    launchers = True                                       # whether the line before is of the launcher
    while True:
        *lines, rest = rest.split(b"\n")
        for line in lines:
            launchers = line.startswith(_BELOW) or (launchers and not line)
            if not launchers:
                sys.stdout.write(text.decode(line + b"\n"))
        sys.stdout.flush()
        chunk = os.read(output.fileno(), 1 << 16)
        if not chunk:
            break
        rest += chunk
    sys.stdout.write(text.decode(b"" if rest.startswith(_BELOW) else rest, True))


def failure(folder: Path, count: int, status: int) -> RankError:
    """The error of the rank that failed first: what it has raised, or how its process has ended."""
    found = sorted((*folder.glob("*.error"), *folder.glob("*.died")), key=lambda path: path.stat().st_mtime_ns)
    if not found:
        return RankError(f"the job has ended with status {status}", code="MLC0978",
                         hint="a process was ended from outside, or MPI could not start it: its messages are above")
    killed = [path for path in found if path.suffix == ".died" and path.read_text() in _SIGNALS]
    first = (killed or found)[0]                           # others may have seen its death before its parent has
    rank = int(first.stem)
    if first.suffix == ".error":
        what, place = first.read_text().rsplit("\n", 2)[:2]
        what, notes = f"has failed: {what}", (f"at {place}",) if place else ()
    else:
        code, notes = int(first.read_text()), ()
        what = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"has ended with status {code}"
    return RankError(f"rank {rank} of {count} {what}", code="MLC0978", ranks=[rank], notes=notes,
                     hint="its traceback is above; --max-restarts 3 starts the job again")
