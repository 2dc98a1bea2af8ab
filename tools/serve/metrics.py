"""Metrics in the format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response

from mlc.tools.serve.registry import Registry
from mlc.tools.serve.worker import LanguageWorker

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """Counts requests and their times; the numbers of models are read when they are asked for."""

    def __init__(self, registry: Registry) -> None:
        self.models = registry
        self.collected = CollectorRegistry()
        self.requests = Counter("mlc_requests", "Requests that were answered", ["route", "status"],
                                registry=self.collected)
        self.seconds = Histogram("mlc_request_seconds", "Time of a request, to its last byte", ["route"],
                                 buckets=SECONDS, registry=self.collected)
        self.first = Histogram("mlc_first_token_seconds", "Time to the first token of an answer", buckets=SECONDS,
                               registry=self.collected)
        self.collected.register(self)

    def piece(self, request: Request) -> None:
        """Count a token of an answer."""
        line = request.state.line
        if not line.get("tokens"):
            line["first"] = time.perf_counter() - line["started"]
            self.first.observe(line["first"])
        line["tokens"] = line.get("tokens", 0) + 1

    def done(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """The numbers of all models."""
        ready = GaugeMetricFamily("mlc_model_ready", "Whether a model takes requests", labels=["model"])
        gauges = {name: GaugeMetricFamily(f"mlc_{name}", text, labels=["model"]) for name, text in (
            ("requests_running", "Requests that have a slot"), ("requests_waiting", "Requests that wait for a slot"),
            ("cache_bytes", "Memory for keys and values"), ("cache_pages", "Pages of this memory"),
            ("cache_pages_free", "Pages that no request has"),
            ("cache_pages_kept", "Free pages with text that a prompt may begin with"))}
        counters = {name: CounterMetricFamily(f"mlc_{name}", text, labels=["model"]) for name, text in (
            ("prompt_tokens", "Tokens of prompts that were read"),
            ("reused_tokens", "Tokens of prompts whose keys and values were kept"),
            ("generated_tokens", "Tokens of answers"), ("drafted_tokens", "Tokens that a draft guessed"),
            ("accepted_tokens", "Guessed tokens that were right"), ("steps", "Steps that wrote tokens"))}
        finished = CounterMetricFamily("mlc_finished", "Answers by the reason of their end", labels=["model", "reason"])
        for worker in self.models:
            ready.add_metric([worker.name], float(worker.ready))
            if isinstance(worker, LanguageWorker) and worker.ready and worker.model.generates:
                self._add(worker, gauges, counters, finished)
        yield from (ready, *gauges.values(), *counters.values(), finished)

    def _add(self, worker: LanguageWorker, gauges: dict[str, Any], counters: dict[str, Any], finished: Any) -> None:
        scheduler, name = worker.scheduler, [worker.name]
        done = scheduler.counters
        gauges["requests_running"].add_metric(name, scheduler.running)
        gauges["requests_waiting"].add_metric(name, scheduler.waiting)
        slots = scheduler.slots
        for key, gauge in (("cache_bytes", slots.nbytes), ("cache_pages", slots.pages.count),
                           ("cache_pages_free", slots.pages.free), ("cache_pages_kept", slots.pages.kept)):
            gauges[key].add_metric(name, gauge)
        for key, value in (("prompt_tokens", done.prompt_tokens), ("reused_tokens", done.reused_tokens),
                           ("generated_tokens", done.tokens), ("drafted_tokens", done.drafted),
                           ("accepted_tokens", done.accepted), ("steps", done.steps)):
            counters[key].add_metric(name, value)
        for reason, count in dict(done.finished).items():
            finished.add_metric([worker.name, reason], count)


async def metrics(request: Request) -> Response:
    """All metrics as text."""
    return Response(generate_latest(request.app.state.metrics.collected), media_type="text/plain; version=0.0.4")
