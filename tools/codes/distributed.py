"""Error codes of communication between the ranks of a job."""

TEXT = r'''
MLC0970 A rank of the job has failed or ended while others wait for it.
The error of that rank ends the waiting of all others, which would take for ever.
example python:
    from mlc.backends.transport import threads
    def work(rank):
        raise ValueError("no data")
    threads.run(1, work)
fix: the message has the error of the rank that failed first; correct that.

MLC0971 A rank does not answer within the time-out.
It has not made the call that others wait in: it is slow, it hangs, or its program went another way.
example python:
    import time
    from mlc.backends.transport import current, threads
    def work(rank):
        if rank == 0:
            current.transport().barrier(timeout=0.01)
        time.sleep(0.2)
    try:
        threads.run(2, work)
    except RuntimeError as error:
        raise error.__cause__
fix: have all ranks of the group make the same calls in the same order; give slow ranks a longer time-out.

MLC0972 The ranks of a group call different collectives, or one with tensors of different shapes or dtypes.
Each rank would wait for data that never comes, or take it for something else.
example python:
    import mlc
    from mlc.backends.transport import threads
    def work(rank):
        mlc.distributed.init_process_group()
        mlc.distributed.all_reduce(mlc.ones(2 + rank))
    try:
        threads.run(2, work)
    except RuntimeError as error:
        raise error.__cause__
fix: the message has the calls and lines of all ranks; have them make the same call.

MLC0973 A collective has elements that it cannot combine, or a message of another size than the rank expects.
example python:
    import numpy as np
    from mlc.backends.transport import collectives, current, threads
    def work(rank):
        collectives.all_reduce(current.transport(), (0,), np.array([True]), "add")
    try:
        threads.run(1, work)
    except RuntimeError as error:
        raise error.__cause__
fix: give all ranks arrays of one shape and type, and a kind of reduction that the type has.

MLC0974 A process group, a rank or an argument of a collective does not exist or does not fit its group.
example python:
    import numpy as np
    from mlc.backends.transport import collectives, current, threads
    def work(rank):
        collectives.all_gather(current.transport(), (1, 2), np.ones(3))
    try:
        threads.run(1, work)
    except RuntimeError as error:
        raise error.__cause__
fix: call init_process_group once, and collectives only on the ranks of their group, with one tensor for each of them.

MLC0975 The process is not one of several ranks, or what its launcher needs is not installed.
example python:
    import mlc
    mlc.distributed.init_process_group()
fix: start the program by mlc run --ranks 4 train.py, mpiexec -n 4 python train.py or torchrun --nproc-per-node 4
train.py; the first two need mpi4py (pip install 'mlc[distributed]'), the last one torch.

MLC0976 Process groups of mlc do not have this backend, tensor, or way to call them.
Collectives take dense tensors, all in the CPU's memory or all on the one GPU of the rank, outside of compiled
functions; messages name their sender.
example python:
    import mlc
    mlc.distributed.init_process_group("ucc")
fix: do what the message suggests.

MLC0977 A checkpoint of a job cannot be read, or a rank cannot write its part of it.
It is damaged, or not whole, or the state has other names, shapes or dtypes than it. None is written of ranks whose
states have different tensors.
example python:
    import mlc
    mlc.distributed.checkpoint.load({"w": mlc.ones(2)}, "no-such-folder")
fix: read the last whole one, which mlc.distributed.checkpoint.latest finds, into the state that was saved.

MLC0978 A rank of a job that mlc run --ranks started has failed.
example text:
    error[MLC0978]: rank 2 of 4 was killed by SIGKILL
fix: the message names the rank that failed first; if it was killed, look whether the machine has run out of memory.

MLC0979 The ranks have different models, or parameters without a gradient.
DistributedDataParallel averages every gradient over the ranks, and each waits for those of the others.
example python:
    import mlc
    from mlc import nn
    from mlc.backends.transport import threads
    def work(rank):
        mlc.distributed.init_process_group()
        nn.parallel.DistributedDataParallel(nn.Linear(2 + rank, 1))
    try:
        threads.run(2, work)
    except RuntimeError as error:
        raise error.__cause__
fix: make the same model on all ranks, and have the loss depend on all of its parameters, or give
find_unused_parameters=True.

MLC0999 NCCL, which carries tensors between GPUs, reports an error.
It cannot connect the GPUs of the ranks, or a connection has failed. Two ranks cannot share a GPU.
example text:
    error[MLC0999]: NCCL, meeting the other ranks: InvalidUsage (5): invalid usage
fix: give each rank a GPU of its own: f"cuda:{mlc.distributed.get_node_local_rank()}". With NCCL_DEBUG=WARN in the
environment NCCL says more.
'''
