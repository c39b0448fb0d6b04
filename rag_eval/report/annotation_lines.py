"""What a run found beside RQS, as plain lines for the terminal: rubric, retrieval, agreement with people."""

from collections.abc import Iterator

from rag_eval.records import TOXICITY
from rag_eval.results.findings import Findings, flagged_words, noise_words


def beside_lines(findings: Findings) -> Iterator[str]:
    """What to look at; a line a bot for the rubric and for retrieval, and one for each measure with human labels."""
    yield from noise_words(findings)
    yield from flagged_words(findings)
    for bot in findings.pass_rates:
        rate = bot.overall
        share = f" ({rate.rate:.0%})" if rate.rate is not None else ""
        missing = f", {rate.failed} not judged" if rate.failed else ""
        yield f"{bot.bot}: {rate.passed} of {rate.scored} responses pass the rubric{share}{missing}"
    for name, summary in findings.retrieval.items():
        means = ", ".join(f"{label} {_number(summary.means[key])}" for key, label in _SHOWN.items())
        queries = "query" if summary.scored == 1 else "queries"
        yield f"{name}: {means} over {summary.scored:,} {queries} with gold documents"
    for line in findings.alignment.agreements if findings.alignment else ():
        who = line.bot or "All bots"
        kappa = f"kappa {_number(line.kappa.kappa)}"
        one, more = ("query", "queries") if line.measure == TOXICITY else ("case", "cases")
        things = one if line.count == 1 else more
        yield f"{who}, {line.label}: {kappa} with people over {line.count:,} {things}"


_SHOWN = {"doc_recall": "doc recall", "doc_precision": "doc precision", "ndcg_10": "NDCG@10"}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
