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

MLC0974 A collective is called with ranks or arguments that do not fit its group.
example python:
    import numpy as np
    from mlc.backends.transport import collectives, current, threads
    def work(rank):
        collectives.all_gather(current.transport(), (1, 2), np.ones(3))
    try:
        threads.run(1, work)
    except RuntimeError as error:
        raise error.__cause__
fix: call it only on the ranks of the group, with one piece for each of them.
'''
