"""Work in a child process, which may crash or hang."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any

Tell = Callable[[Any], None]


class Child:
    """A forked process that sends messages as lines of JSON."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            faulthandler.disable()                         # its exit status says how it ended
            with os.fdopen(writer, "w", encoding="utf-8") as out:
                try:
                    work(lambda answer: print(json.dumps(answer), file=out, flush=True))
                except BaseException:
                    traceback.print_exc()
                finally:
                    out.flush()
                    os._exit(0)                            # nothing of the parent's is cleaned up twice
        os.close(writer)
        self.reader, self.rest = reader, b""
        self.status, self.seconds = 0, 0.0

    def answers(self, seconds: float) -> Iterator[Any]:
        """Messages of the child until it ends; TimeoutError if it sends nothing for this many seconds."""
        while True:
            while (end := self.rest.find(b"\n")) >= 0:
                line, self.rest = self.rest[:end], self.rest[end + 1:]
                yield json.loads(line)
            if not select.select([self.reader], [], [], seconds)[0]:
                raise TimeoutError
            if not (data := os.read(self.reader, 1 << 16)):
                return
            self.rest += data

    def end(self, kill: bool = False) -> str | None:
        """Wait for the process to end, or kill it; returns the name of the signal that ended it."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reader)
        _, status, used = os.wait4(self.pid, 0)
        self.seconds = used.ru_utime + used.ru_stime
        return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) and not kill else None


def asked(question: Callable[[], Any], seconds: float) -> tuple[Any, str | None]:
    """(result of the function as JSON, None); or (None, how the process ended before it returned)."""
    child = Child(lambda tell: tell(question()))
    try:
        answers = list(child.answers(seconds))
    except TimeoutError:
        child.end(kill=True)
        return None, f"no end within {seconds:g} s"
    died = child.end()
    return (answers[0], died) if answers else (None, died or "no answer")


def ask(question: Callable[[], str | None], seconds: float) -> str | None:
    """The answer to one question that may crash or hang: then that is the answer."""
    answer, died = asked(question, seconds)
    return died or answer
