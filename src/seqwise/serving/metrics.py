"""What a server has done, in the text format of Prometheus."""

from __future__ import annotations

import bisect
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)  # seconds

Labels = tuple[tuple[str, str], ...]


ABOUT = {
    "seqwise_requests_total": "Requests that were answered, by route and status.",
    "seqwise_request_seconds": "How long requests took, by route.",
    "seqwise_first_token_seconds": "How long it took until the first token of a text, by run.",
    "seqwise_generated_tokens_total": "Tokens that were written, by run.",
    "seqwise_steps_total": "Steps that were taken, by run; a step adds a token to each row.",
    "seqwise_prompt_tokens_read_total": "Tokens of prompts that were read, by run.",
    "seqwise_prompt_tokens_known_total": "Tokens of prompts whose state was kept from before, by run.",
    "seqwise_waiting": "Texts that wait to be begun, by run.",
    "seqwise_running": "Texts that are being written side by side, by run.",
    "seqwise_loaded": "Whether a run's weights are in memory.",
}


class Histogram:
    """How often something took how long."""

    def __init__(self) -> None:
        self.counts, self.total = [0] * (len(BUCKETS) + 1), 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics:
    """Counters and histograms by name and labels; gauges are asked for when somebody looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._histograms: dict[str, dict[Labels, Histogram]] = defaultdict(lambda: defaultdict(Histogram))

    def add(self, name: str, value: float = 1.0, **labels: str) -> None:
        with self._lock:
            self._counters[name][tuple(sorted(labels.items()))] += value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        with self._lock:
            self._histograms[name][tuple(sorted(labels.items()))].observe(seconds)

    def text(self, gauges: Mapping[str, Mapping[str, float]]) -> str:
        """All of it; `gauges` by name and run."""
        with self._lock:
            return "\n".join([*self._lines(gauges), ""])

    def _lines(self, gauges: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
        for name, values in self._counters.items():
            yield from self._head(name, "counter")
            yield from (f"{name}{_shown(labels)} {value:g}" for labels, value in values.items())
        for name, by_run in gauges.items():
            yield from self._head(name, "counter" if name.endswith("_total") else "gauge")
            yield from (f"{name}{_shown((('run', run),))} {value:g}" for run, value in by_run.items())
        for name, histograms in self._histograms.items():
            yield from self._head(name, "histogram")
            for labels, histogram in histograms.items():
                reached = 0
                for bound, count in zip((*BUCKETS, float("inf")), histogram.counts, strict=True):
                    reached += count
                    edge = "+Inf" if bound == float("inf") else f"{bound:g}"
                    yield f"{name}_bucket{_shown((*labels, ('le', edge)))} {reached}"
                yield f"{name}_sum{_shown(labels)} {histogram.total:g}"
                yield f"{name}_count{_shown(labels)} {reached}"

    def _head(self, name: str, kind: str) -> Iterator[str]:
        yield f"# HELP {name} {ABOUT[name]}"
        yield f"# TYPE {name} {kind}"


def _shown(labels: Labels) -> str:
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}" if labels else ""
