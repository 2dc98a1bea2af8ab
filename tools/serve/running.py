"""Runs the application in uvicorn, until a signal; then lets the answers in progress end."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import uvicorn

from mlc.tools.serve.app import application
from mlc.tools.serve.registry import Registry
from mlc.tools.serve.worker import Limits

log = logging.getLogger("mlc.serve")


class Server(uvicorn.Server):
    """A server that ends by itself after a signal: the exit status is its own.

    grace  seconds that answers in progress have
    """

    def __init__(self, config: uvicorn.Config, registry: Registry, grace: float) -> None:
        super().__init__(config)
        self.registry, self.grace = registry, grace

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT while the server runs."""
        before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no more requests; end all answers after a while, or at once if it is the second signal."""
        again, self.should_exit = self.should_exit, True
        self.registry.stop("shutdown" if again else "")
        if not again:
            timer = threading.Timer(self.grace, self.registry.stop, ["shutdown"])
            timer.daemon = True
            timer.start()

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for server in self.servers:
            for own in server.sockets:
                host, port = own.getsockname()[:2]
                log.info("listening at http://%s:%s", f"[{host}]" if ":" in host else host, port)


def run(paths: dict[str, str], limits: Limits, key: str | None, host: str, port: int, grace: float) -> bool:
    """Serve until a signal; whether the server could listen."""
    registry = Registry(paths, limits)
    registry.start()                                       # a file that is none is an error of the command
    config = uvicorn.Config(application(registry, key), host=host, port=port, log_config=None, access_log=False,
                            lifespan="on", timeout_graceful_shutdown=int(grace) + 10, timeout_keep_alive=30,
                            server_header=False, h11_max_incomplete_event_size=64 << 10)
    server = Server(config, registry, grace)
    try:
        server.run()
    except SystemExit:                                     # uvicorn has said why it cannot listen
        return False
    log.info("ended")
    return server.started
