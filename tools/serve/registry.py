"""The models of a server by their names; one that is loaded again takes over from the one before without a gap."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlc.ir.diag import UserError
from mlc.tools.serve.errors import ApiError
from mlc.tools.serve.functions import FunctionWorker, functions_of
from mlc.tools.serve.worker import LanguageWorker, Limits

Worker = LanguageWorker | FunctionWorker


class Registry:
    """The models of a server.

    paths   folder or file of each model, as the command line gives them: no request names a path
    limits  of the server
    """

    def __init__(self, paths: dict[str, str], limits: Limits) -> None:
        self.paths, self.limits = paths, limits
        self._workers: dict[str, Worker] = {}
        self._leaving: list[Worker] = []
        self._holds = Counter[Worker]()                    # requests that a model has been found for, and has not yet
        self._loading = set[str]()
        self._replaced = set[Worker]()                     # models that end once nobody holds them

    def start(self) -> None:
        """Begin to load all models, once."""
        if not self._workers:
            for name, path in self.paths.items():
                for worker in self._started(name, path):
                    if worker.name in self._workers:
                        raise UserError(f"two models have the name {worker.name}", code="MLC0921",
                                        hint="give one of them another name: NAME=PATH")
                    self._workers[worker.name] = worker

    def _started(self, name: str, path: str) -> list[Worker]:
        workers: list[Worker] = []
        if Path(path).is_dir() or path.endswith(".gguf"):
            workers.append(LanguageWorker(name, path, self.limits))
        else:
            workers += functions_of(name, path, self.limits)
        for worker in workers:
            worker.start()
        return workers

    def __iter__(self) -> Iterator[Worker]:
        return iter(list(self._workers.values()))

    def path_name(self, name: str) -> str | None:
        """The name that the command line gives to the folder or file of a model, or of a module with this function."""
        return max((n for n in self.paths if name == n or name.startswith(f"{n}.")), key=len, default=None)

    def find(self, name: str) -> Worker:
        """The model of a name."""
        if (worker := self._workers.get(name)) is None:
            raise ApiError(404, f"there is no model {name[:80]!r}", "model", "model_not_found")
        return worker

    @contextmanager
    def language_model(self, name: str) -> Iterator[LanguageWorker]:
        """The language model of a name, which takes requests as long as it is held."""
        worker = self.find(name)
        if not isinstance(worker, LanguageWorker):
            raise ApiError(400, f"{name} is a {worker.kind}: use /v2/models/{name}/infer", "model")
        worker.check_ready()
        with self._held(worker):
            yield worker

    @contextmanager
    def _held(self, worker: Worker) -> Iterator[None]:
        self._holds[worker] += 1
        try:
            yield
        finally:
            self._holds[worker] -= 1
            if not self._holds[worker]:
                del self._holds[worker]
                if worker in self._replaced:
                    self._replaced.remove(worker)
                    worker.stop()

    @contextmanager
    def function(self, name: str) -> Iterator[FunctionWorker]:
        """The function of a name, which takes requests as long as it is held."""
        worker = self.find(name)
        if not isinstance(worker, FunctionWorker):
            raise ApiError(400, f"{name} is a {worker.kind}: use /v1/chat/completions or /v1/completions", "model")
        worker.check_ready()
        with self._held(worker):
            yield worker

    async def load(self, name: str) -> None:
        """Load a model anew; requests go to the one before until the new one is ready, which ends its own."""
        root = self.path_name(name)
        if root is None:
            raise ApiError(404, f"there is no model {name[:80]!r} in the repository", "model", "model_not_found")
        if root in self._loading:
            raise ApiError(409, f"{root} is being loaded already", "model")
        self._loading.add(root)
        try:
            workers = await asyncio.to_thread(self._started, root, self.paths[root])
            while any(w.state == "loading" for w in workers):
                await asyncio.sleep(0.02)
        finally:
            self._loading.discard(root)
        if failed := next((w for w in workers if w.state == "failed"), None):
            raise ApiError(400, f"{name} cannot be loaded: {failed.reason}", "model")
        before = [w for w in self if self.path_name(w.name) == root]
        self._workers = {n: w for n, w in self._workers.items() if w not in before} | {w.name: w for w in workers}
        for worker in before:
            self._leave(worker)

    def unload(self, name: str) -> None:
        """Take a model away; the requests that it has are answered."""
        self.find(name)
        self._leave(self._workers.pop(name))

    def _leave(self, worker: Worker) -> None:
        if worker in self._holds:
            self._replaced.add(worker)
        else:
            worker.stop()
        self._leaving = [w for w in self._leaving if w.state != "stopped"] + [worker]

    def stop(self, reason: str = "") -> None:
        """End all models once their requests are answered, or, with a reason, now."""
        for worker in [*self._workers.values(), *self._leaving]:
            worker.stop(reason)

    def join(self, seconds: float) -> None:
        """Wait for all threads."""
        for worker in [*self._workers.values(), *self._leaving]:
            worker.join(seconds)
