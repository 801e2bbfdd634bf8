"""Figures for Prometheus, of this server only."""

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ducos.serve.jobs import Jobs

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Counters of requests, and what jobs, queue and folder say when they are asked."""

    def __init__(self, jobs: Jobs):
        self.jobs = jobs
        self.registry = CollectorRegistry()
        self.registry.register(self)  # its `collect` is below
        labels = ("route", "status")
        self.requests = Counter(
            "ducos_requests", "Requests answered.", labels, registry=self.registry
        )
        self.seconds = Histogram(
            "ducos_request_seconds",
            "Time from a request to its answer.",
            ("route",),
            registry=self.registry,
            buckets=BUCKETS,
        )

    def collect(self) -> Iterator[Metric]:
        """What is true at this moment."""
        pool, store = self.jobs.pool, self.jobs.store
        gauges = {
            "ducos_queue": ("Tasks that wait.", len(pool.waiting)),
            "ducos_workers_ready": ("Processes that can work.", pool.ready),
            "ducos_workers_busy": ("Processes that work.", pool.busy),
            "ducos_folder_bytes": ("Bytes of requests and results.", store.used),
            "ducos_jobs_kept": ("Jobs whose files are kept.", len(self.jobs.known)),
        }
        for name, (about, value) in gauges.items():
            yield GaugeMetricFamily(name, about, value=value)
        yield CounterMetricFamily(
            "ducos_worker_restarts", "Processes that ended and were replaced.", value=pool.restarts
        )
        ended = CounterMetricFamily("ducos_jobs", "Jobs that ended.", labels=["outcome"])
        for outcome, count in self.jobs.outcomes.items():
            ended.add_metric([outcome], count)
        yield ended

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class Counted:
    """An application whose requests are counted, by route: names of jobs are no label."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.answered(route, status, time.perf_counter() - begun)
