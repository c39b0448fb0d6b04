"""The offline judge: the five metrics and toxicity as arithmetic over words. No model, no network, no cost."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rag_eval.metrics.metric import Metric
from rag_eval.metrics.offline.answer_correctness import OfflineAnswerCorrectness
from rag_eval.metrics.offline.answer_relevancy import OfflineAnswerRelevancy
from rag_eval.metrics.offline.context_precision import OfflineContextPrecision
from rag_eval.metrics.offline.context_recall import OfflineContextRecall
from rag_eval.metrics.offline.faithfulness import OfflineFaithfulness
from rag_eval.metrics.offline.toxicity import OfflineToxicity

__all__ = [
    "CALIBRATED_THRESHOLDS",
    "OfflineAnswerCorrectness",
    "OfflineAnswerRelevancy",
    "OfflineContextPrecision",
    "OfflineContextRecall",
    "OfflineFaithfulness",
    "OfflineToxicity",
    "offline_metrics",
]

CALIBRATED_THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {
        "answer_correctness": 0.48,
        "faithfulness": 0.62,
        "answer_relevancy": 0.35,
        "context_precision": 0.47,
        "context_recall": 0.54,
    }
)
"""Per metric, the score from which a case is more likely good than bad for this judge.

Each maximises the balanced accuracy, averaged over human-labelled datasets
(docs/background/offline-judge-quality.md). The scale differs between kinds of text, so they are advice: pass or fail at
them is not a finding.
"""


def offline_metrics(names: Iterable[str]) -> tuple[Metric, ...]:
    """The offline metrics with these names, in their order. An unknown name is a KeyError."""
    return tuple(_METRICS[name]() for name in names)


_METRICS: Mapping[str, type[Metric]] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            OfflineAnswerCorrectness,
            OfflineFaithfulness,
            OfflineAnswerRelevancy,
            OfflineContextPrecision,
            OfflineContextRecall,
        )
    }
)
