"""One rank of `mlc run --ranks`: a process that MPI's launcher starts, which runs the program in a child of its own.

MPI's launcher says that some process has died, and often names one that it has killed itself for that. So each rank has
a parent that sees how it ends, and leaves that in a file before the launcher ends all others.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from contextlib import AbstractContextManager, nullcontext

from mlc.ir.files import write_text

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent ends."""


def main(folder: str, rank: int, path: str) -> int:
    """Run a program as a rank; the status that its process ends with.

    folder  where the parent leaves how the rank has ended, and the rank its traceback
    """
    parent, child = os.getpid(), os.fork()
    if not child:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:                         # it has ended before that
            os._exit(1)
        run(rank, path)
        return 0
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda number, frame: os.kill(child, number))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        write_text(os.path.join(folder, f"{rank}.died"), str(code))
    if code < 0:                                           # so that the launcher sees a signal, and ends the others
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def run(rank: int, path: str) -> None:
    """Run the program; an exception before it has joined the job ends the job, too."""
    from mlc.distributed import job
    job.tell_others(rank)
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    watched: AbstractContextManager[None] = nullcontext()
    if os.environ.get("MLC_RANKS_DETECT_ANOMALY") == "1":
        from mlc.anomaly import detect_anomaly
        watched = detect_anomaly()
    with watched:
        runpy.run_path(path, run_name="__main__")


def number() -> int:
    """The number that the launcher gives this process."""
    return int(next(os.environ[name] for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
                    if name in os.environ))


if __name__ == "__main__":
    sys.argv = sys.argv[1:]                                # the path, and what the program is given
    sys.exit(main(os.environ["MLC_RANKS_FOLDER"], number(), sys.argv[0]))
