"""Work in a child process, which may crash or hang."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
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
                except KeyboardInterrupt:                  # of the terminal, which interrupts the parent too
                    pass
                except BaseException:
                    traceback.print_exc()
                finally:
                    out.flush()
                    os._exit(0)                            # nothing of the parent's is cleaned up twice
        os.close(writer)
        self.reader, self.rest = reader, b""
        self.status, self.seconds = 0, 0.0

    def answers(self, seconds: float, patience: int = 1) -> Iterator[Any]:
        """Messages of the child until it ends; TimeoutError if it sends nothing for this many seconds.

        patience  how many times as long it may take by the clock, as long as it does not use that much processor time
        """
        before = self.processor_seconds()
        while True:
            while (end := self.rest.find(b"\n")) >= 0:
                line, self.rest = self.rest[:end], self.rest[end + 1:]
                yield json.loads(line)
                before = self.processor_seconds()
            for _ in range(patience):
                if select.select([self.reader], [], [], seconds)[0]:
                    break
                if patience > 1 and self.processor_seconds() - before >= seconds:
                    raise TimeoutError
            else:
                raise TimeoutError
            if not (data := os.read(self.reader, 1 << 16)):
                return
            self.rest += data

    def processor_seconds(self) -> float:
        """Processor time that the process has used so far; 0 once it has ended."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except FileNotFoundError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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
