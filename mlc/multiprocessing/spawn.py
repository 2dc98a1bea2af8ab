"""`spawn`: a function in several processes, whose errors the caller gets."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.arguments import coded


class ProcessException(Exception):
    """A process did not end well.

    Args:
        msg: What happened.
        error_index: Number of the process.
        pid: Its process id.

    Example:
        >>> mlc.multiprocessing.ProcessException("process 0 has ended", 0, 4711).pid
        4711
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception in a process; the message has its traceback.

    Args:
        msg: The message.
        error_index: Number of the process.
        pid: Its process id.

    Example:
        >>> error = mlc.multiprocessing.ProcessRaisedException("ValueError: negative", 0, 4711)
        >>> isinstance(error, mlc.multiprocessing.ProcessException)
        True
    """


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with an exit code.

    Args:
        msg: What happened.
        error_index: Number of the process.
        error_pid: Its process id.
        exit_code: Its exit code.
        signal_name: Name of the signal, or None.

    Example:
        >>> mlc.multiprocessing.ProcessExitedException("process 0 terminated with exit code 3", 0, 4711, 3).exit_code
        3
    """

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


class ProcessContext:
    """The processes of `spawn`.

    Args:
        processes: The processes, which have been started.
        errors: For each the connection through which it sends the text of an exception.

    Attributes:
        processes: The processes.

    Example:
        >>> context = mlc.multiprocessing.spawn(print, nprocs=2, join=False, start_method="fork")
        >>> while not context.join():
        ...     pass
    """

    def __init__(self, processes: Sequence[Any], errors: Sequence[Any]) -> None:
        self.processes, self._errors = list(processes), list(errors)
        self._waiting = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for a process to end. If it failed, the others are ended.

        Args:
            timeout: Seconds to wait; None for no bound.
            grace_period: Seconds that other processes have to end by themselves, after one that failed.

        Returns:
            Whether all processes have ended.

        Raises:
            ProcessRaisedException: The function raised an exception.
            ProcessExitedException: A process ended otherwise.
        """
        failed = None
        ended: list[Any] = multiprocessing.connection.wait(list(self._waiting), timeout) if self._waiting else []
        for sentinel in ended:
            index = self._waiting.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode:
                failed = index
                break
        if failed is None:
            return not self._waiting
        if grace_period is not None:
            multiprocessing.connection.wait(list(self._waiting), grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period or 30)
            if process.is_alive():
                process.kill()
                process.join()
        raise self._error(failed)

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        try:
            text = self._errors[index].recv()
        except EOFError:                                   # it raised none
            text = None
        if text is not None:
            return ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{text}", index,
                                          process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            return ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code,
                                          name)
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass                                               # the parent has it as well
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


@coded
def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
                    daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Call fn(i, *args) in processes of their own, for i from 0 to nprocs - 1.

    Args:
        fn: Function of a module that the processes can import.
        args: The arguments after the first. Tensors among them are shared.
        nprocs: Number of processes.
        join: Whether to wait until all have ended.
        daemon: Whether the processes end with this one.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None, or without `join` a `ProcessContext`.

    Raises:
        ProcessRaisedException: fn raised an exception; the other processes are ended.
        ProcessExitedException: A process ended otherwise.
        UserTypeError: An argument has the wrong type (MLC0421).

    Example:
        >>> def store(index, results):
        ...     results[index] = index + 1
        >>> results = mlc.zeros(2).share_memory_()
        >>> mlc.multiprocessing.start_processes(store, (results,), nprocs=2, start_method="fork")
        >>> results
        tensor([1., 2.], dtype=mlc.float32)
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = list[Any](), list[Any]()
    for index in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    found = ProcessContext(processes, errors)
    if not join:
        return found
    while not found.join():
        pass
    return None


spawn = start_processes
