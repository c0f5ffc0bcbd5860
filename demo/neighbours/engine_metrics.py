"""The metrics a vLLM engine shows, by the names and labels of its v1 engine."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LABELS = ("model_name", "engine")
ENGINE_INDEX = "0"


class EngineMetrics:
    """Counts what one engine does; `render` gives the Prometheus text.

    `most_running` is how many requests fill the simulated KV cache (vLLM's `max_num_seqs`).
    """

    def __init__(self, *, model_name: str, most_running: int) -> None:
        self._registry = CollectorRegistry()
        self._most_running = most_running
        self._labels = (model_name, ENGINE_INDEX)
        self._running = self._gauge("vllm:num_requests_running", "Number of requests in execution batches.")
        self._waiting = self._gauge(
            "vllm:num_requests_waiting", "Number of requests waiting to be processed."
        )
        self._kv_usage = self._gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        self._prompt_tokens = self._counter("vllm:prompt_tokens", "Number of prefill tokens processed.")
        self._output_tokens = self._counter(
            "vllm:generation_tokens", "Number of generation tokens processed."
        )
        self._succeeded = Counter(
            "vllm:request_success",
            "Count of successfully processed requests.",
            (*LABELS, "finished_reason"),
            registry=self._registry,
        )
        self._first_token = self._histogram(
            "vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds."
        )
        self._latency = self._histogram(
            "vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds."
        )

    def show_load(self, *, running: int, waiting: int) -> None:
        """Set the gauges; each running request holds an equal share of the simulated KV cache."""
        self._running.set(running)
        self._waiting.set(waiting)
        self._kv_usage.set(min(1.0, running / self._most_running))

    def count_finished(self, *, prompt_tokens: int, output_tokens: int, seconds: float) -> None:
        """Count one request that ended well after `seconds`."""
        self._prompt_tokens.inc(prompt_tokens)
        self._output_tokens.inc(output_tokens)
        self._succeeded.labels(*self._labels, "length").inc()
        self._first_token.observe(seconds / max(1, output_tokens))
        self._latency.observe(seconds)

    def render(self) -> bytes:
        """Return the Prometheus text exposition."""
        return generate_latest(self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, LABELS, registry=self._registry).labels(*self._labels)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, LABELS, registry=self._registry).labels(*self._labels)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, LABELS, registry=self._registry).labels(*self._labels)
