"""The comparison of two judges as a page for any browser, without a script."""

from collections.abc import Iterator
from pathlib import Path

from rag_eval.report.judge_tables import (
    ComparedJudges,
    Runs,
    evidence_text,
    properties_text,
    summary_lines,
    tables_of,
)
from rag_eval.report.page.sections import folded, further_tables, head, safe
from rag_eval.results.judge_comparison import JudgeComparison, JudgeDisagreement, headline
from rag_eval.results.verdict import unfit_words
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import decimals, shorten


def write_page(target: Path, comparison: JudgeComparison, runs: Runs, *, has_texts: bool) -> Path:
    """Write the page as a whole; without `has_texts`, no query and no evidence. Returns its path. Or OutputError."""
    return write_text(target, "".join(_parts(comparison, runs, has_texts=has_texts)), "--html")


def _parts(comparison: JudgeComparison, runs: Runs, *, has_texts: bool) -> Iterator[str]:
    facts = runs[0].facts
    yield head(f"RAG Eval: {properties_text(runs)}", facts.version)
    for run in runs:
        if run.facts.partial:
            words = f"{run.letter}: {shorten(run.facts.partial, 300)}"
            yield f'<p class="partial"><strong>PARTIAL</strong> {safe(words)}</p>'
        if unfit_words(run.facts):
            yield f'<p class="partial">{run.letter}: {safe(unfit_words(run.facts))}</p>'
    about = [
        shorten(facts.input_name, 80),
        f"{comparison.cases:,} cases in {comparison.rows:,} rows",
        f"{facts.started:%Y-%m-%d %H:%M} {facts.started.tzname() or ''}".rstrip(),
        *(f"{run.letter}: {shorten(run.facts.judge, 120)}" for run in runs),
    ]
    byline = "".join(f"<li>{safe(each)}</li>" for each in about)
    yield f'<header><p class="eyebrow">RAG Eval comparison of judges</p><h1>{safe(headline(comparison, *runs))}</h1>'
    yield f'<ul class="byline">{byline}</ul></header>'
    sentences = "".join(f"<li>{safe(each)}</li>" for each in summary_lines(comparison, runs))
    yield f'<section><h2>What this means</h2><ul class="notes">{sentences}</ul></section>'
    yield further_tables(tables_of(comparison), ComparedJudges(comparison, runs), _section)
    cases = "".join(_disagreement(each, has_texts=has_texts) for each in comparison.disagreements)
    none = "<p>The judges give every case the same scores.</p>"
    yield folded("Largest disagreements", cases or none, is_open=True)
    yield "</main>\n</body>\n</html>\n"


def _section(title: str, content: str, _: bool) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _disagreement(line: JudgeDisagreement, *, has_texts: bool) -> str:
    scores = [("A", line.a), ("B", line.b)]
    title = f"{line.label}, row {line.row}{f', {line.bot}' if line.bot else ''}: " + ", ".join(
        f"{letter} {decimals(score.value or 0.0)}" for letter, score in scores
    )
    if not has_texts:
        return f'<article class="card"><h3 dir="auto">{safe(title)}</h3></article>'
    evidence = "".join(
        f"<div><h4>{letter}</h4><ul>"
        + "".join(
            f'<li dir="auto">{safe(shorten(each, 600))}</li>' for each in evidence_text(score).split("\n")
        )
        + "</ul></div>"
        for letter, score in scores
    )
    return (
        f'<article class="card"><h3 dir="auto">{safe(title)}</h3><p dir="auto">{safe(shorten(line.query, 400))}</p>'
        f'<div class="cards">{evidence}</div></article>'
    )
