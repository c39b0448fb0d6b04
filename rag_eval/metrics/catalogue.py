"""The metrics that enter RQS, each defined in the module that has its name."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from rag_eval.metrics.metric import Metric, MetricInfo
from rag_eval.records import METRIC_LABELS, FailureMode

METRICS: Mapping[str, MetricInfo] = MappingProxyType(
    {name: import_module(f"rag_eval.metrics.{name}").INFO for name in METRIC_LABELS}
)
"""By name, in the order of the report's columns."""

CALIBRATED_THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {name: metric.offline_threshold for name, metric in METRICS.items()}
)
"""Per metric, the score from which a case is more likely good than bad for the offline judge.

Each maximises the balanced accuracy, averaged over human-labelled datasets (docs/background/offline-judge-quality.md).
They are advice, because the scale differs between kinds of text: pass or fail at them is not a finding.
"""


EMBEDDING_THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {name: metric.embedding_threshold or metric.offline_threshold for name, metric in METRICS.items()}
)
"""The same for the offline judge with an embedding."""


def llm_metrics(names: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics with these names, in their order, for an LLM judge. An unknown name is a KeyError.

    Raises InputError when ragas, whose prompts they send, is not there.
    """
    from rag_eval.metrics.ragas_import import load

    load()
    return tuple(METRICS[name].llm() for name in names)


def offline_metrics(names: Iterable[str], embedding: Path | None = None) -> tuple[Metric, ...]:
    """The metrics with these names, in their order, for the offline judge. An unknown name is a KeyError.

    `embedding` is the folder of a sentence model. Raises SettingsError if that cannot be used.
    """
    metrics = tuple(METRICS[name].offline() for name in names)
    if embedding is None:
        return metrics
    from rag_eval.metrics.embedding import WithEmbedding, open_embedding

    model = open_embedding(embedding)
    return tuple(
        WithEmbedding(metric, model) if METRICS[metric.name].embedding_threshold else metric
        for metric in metrics
    )


def metrics_behind(mode: FailureMode) -> tuple[str, ...]:
    """Names of the metrics whose low scores may mean this failure."""
    return tuple(name for name, metric in METRICS.items() if metric.failure is mode)
