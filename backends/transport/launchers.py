"""How a process was started: by MPI's launcher, by torchrun, or by neither."""

from __future__ import annotations

import os
from importlib.util import find_spec

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Transport

_MPI = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""Variables that MPICH's launcher, PMIx (which Slurm may use), Open MPI and MVAPICH set."""
_LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE")
_LOCAL_RANKS = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                "SLURM_LOCALID")
"""Variables with the number of a rank on its host, of torchrun, MPICH, Open MPI, MVAPICH and Slurm."""
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_NEEDS = {"mpi": ("mpi4py", "pip install 'mlc[distributed]' brings mpi4py and MPICH"),
          "gloo": ("torch", "install torch, which has gloo, or start with MPI: mpiexec -n 4 python train.py"),
          "nccl": ("nccl", "pip install 'mlc[nccl]' brings nccl4py and NCCL, which carry tensors between GPUs")}


def by_mpi() -> bool:
    """Whether MPI's launcher started this process."""
    return any(name in os.environ for name in _MPI)


def by_torchrun() -> bool:
    """Whether torchrun, or a program that sets the same variables, started this process."""
    return all(name in os.environ for name in _TORCHRUN)


def ranks_on_host() -> int:
    """The number of ranks that were started on this host, as far as the launcher says."""
    return next((int(os.environ[name]) for name in _LOCAL_SIZES if os.environ.get(name, "").isdecimal()), 1)


def number_on_host() -> int | None:
    """The number of this rank among those of its host; None if the launcher does not say."""
    return next((int(os.environ[name]) for name in _LOCAL_RANKS if os.environ.get(name, "").isdecimal()), None)


def is_installed(backend: str) -> bool:
    """Whether the package that a backend needs is installed."""
    return find_spec(_NEEDS[backend][0]) is not None


def check_installed(backend: str) -> None:
    """RankError if it is not (MLC0975)."""
    if not is_installed(backend):
        raise RankError(f"the backend {backend!r} needs {_NEEDS[backend][0]}, which is not installed", code="MLC0975",
                        hint=_NEEDS[backend][1])


def join(backend: str | None, timeout: float, **given: object) -> Transport:
    """The transport of this process.

    backend  mpi or gloo; None for that of the launcher
    given    rank, world_size, init_method, store, for a process that no launcher started: gloo's
    """
    if backend is None:
        nearer = "TORCHELASTIC_RUN_ID" in os.environ       # torchrun, which another launcher may have started
        backend = "mpi" if by_mpi() and not given and not nearer else "gloo" if by_torchrun() or given else None
    if backend is None:
        raise RankError("this process is not one of several: neither MPI's launcher nor torchrun started it",
                        code="MLC0975", hint="start it by mlc run --ranks 4 train.py, mpiexec -n 4 python train.py, or "
                        "torchrun --nproc-per-node 4 train.py")
    check_installed(backend)
    if backend == "mpi":
        if given:
            raise RankError(f"{', '.join(given)}: MPI's launcher says which rank a process is", code="MLC0975",
                            hint="leave them out, or use the backend gloo")
        from mlc.backends.transport.mpi import MpiTransport
        return MpiTransport(timeout)
    if not by_torchrun() and not given:
        raise RankError("the backend 'gloo' needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment",
                        code="MLC0975", hint="start it by torchrun --nproc-per-node 4 train.py, or give init_method, "
                        "rank and world_size")
    from mlc.backends.transport.gloo import GlooTransport
    return GlooTransport(timeout, **given)
