"""What a run found beside RQS, as plain lines for the terminal: rubric, retrieval, agreement with people."""

from collections.abc import Iterator

from rag_eval.records import TOXICITY
from rag_eval.results.findings import Findings
from rag_eval.results.human_alignment import JUDGE, PEOPLE, HumanAgreement, rare_error_words
from rag_eval.results.summary import GOAL
from rag_eval.results.verdict import flagged_words, labelled_words, noise_words
from rag_eval.texts.display import decimals, percent


def annotation_lines(findings: Findings) -> Iterator[str]:
    """What to look at; a line a bot for the rubric and for retrieval, and one for each measure with human labels."""
    yield from noise_words(findings)
    yield from flagged_words(findings)
    for bot in findings.pass_rates:
        rate = bot.overall
        share = f" ({percent(rate.rate)})" if rate.rate is not None else ""
        missing = f", {rate.failed} not judged" if rate.failed else ""
        yield f"{bot.bot}: {rate.passed} of {rate.scored} responses pass the rubric{share}{missing}"
    for name, summary in findings.retrieval.items():
        means = ", ".join(f"{label} {decimals(summary.means[key])}" for key, label in _SHOWN.items())
        queries = "query" if summary.scored == 1 else "queries"
        yield f"{name}: {means} over {summary.scored:,} {queries} with gold documents"
    for line in findings.alignment.agreements if findings.alignment else ():
        yield _agreement_line(line)
    yield from rare_error_words(findings.alignment)
    yield from labelled_words(findings.head_to_head)


def _agreement_line(line: HumanAgreement) -> str:
    who = line.bot or "All bots"
    one, more = ("query", "queries") if line.measure == TOXICITY else ("case", "cases")
    with_whom = (
        "with human labels" if line.raters == (JUDGE, PEOPLE) else f"between {' and '.join(line.raters)}"
    )
    text = (
        f"{who}, {line.label}: kappa {decimals(line.kappa.kappa)} {with_whom} over {line.count:,} "
        f"{one if line.count == 1 else more}"
    )
    if not (mean := line.corrected):
        return text
    interval = f"95% CI {decimals(mean.interval.low)} to {decimals(mean.interval.high)}"
    more = f"; about {mean.more_labels:,} more labels for ±{GOAL:.2f}" if mean.more_labels else ""
    return f"{text}; mean {decimals(mean.judge_mean)}, corrected {decimals(mean.value)} ({interval}){more}"


_SHOWN = {"doc_recall": "doc recall", "doc_precision": "doc precision", "ndcg_10": "NDCG@10"}
