"""The commands for rubrics: what a file says, and how far two raters agree by it. Asks no judge."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_eval.cli.console import say, warn
from rag_eval.cli.inputs import opened
from rag_eval.cli.options import options
from rag_eval.cli.parameters import PATH
from rag_eval.texts.display import counted, decimals, percent

if TYPE_CHECKING:
    from rag_eval.rubric import Agreement, EvaluationRubric, MetricDefinition


@click.group("rubric", short_help="Check rubrics, compare raters.")
def command() -> None:
    """Check a rubric file or measure agreement between two raters."""


@command.command("check", short_help="Check a rubric file and print the rubric.")
@click.argument("file", type=PATH)
def _check(file: Path) -> None:
    """Print the rubric in FILE (.yaml, .yml or .json) as RAG Eval reads it, or everything that is wrong with it."""
    from rag_eval.rubric import load_rubric

    for line in _described(load_rubric(file)):
        say(line)


@command.command("align", short_help="Measure the agreement of two raters.")
@click.argument("a", type=PATH)
@click.argument("b", type=PATH)
@click.option("--rubric", "file", type=PATH, required=True, help="Rubric file (.yaml, .yml or .json).")
@options("align", map="Give a column a role, as in verdict=grounded.")
def _align(a: Path, b: Path, file: Path, **values: Any) -> None:
    """Measure the agreement of the verdicts in files A and B, with Cohen's kappa.

    Each has one of the types that 'rag-eval run' reads, with a row per response and a column per criterion that
    contains yes or no (also true, false, pass, fail, 1, 0). Rows are paired by the column id, or by their order
    without it. Conditions and ranges select rows of A.
    """
    from rag_eval.rubric import load_rubric
    from rag_eval.rubric.ratings import pair_ratings

    rubric = load_rubric(file)
    roles = ["id", *(metric.id for metric in rubric.metrics)]
    told: list[str] = []
    with opened((a, b), roles, told.append, values) as (a, b, reading):
        ratings = pair_ratings(a, b, rubric, reading)
    for path, ids in ((a, ratings.only_a), (b, ratings.only_b)):
        if ids:
            warn(f"{path.name}: left out because the other file does not have them: {_listed(ids)}")
    for metric in rubric.metrics:
        if count := sum((metric.id in one) != (metric.id in other) for one, other in ratings.pairs):
            warn(
                f"{metric.id}: {counted(count, 'response')} with a verdict of one rater only; not in its line, but in "
                "Overall. Fill in the blank cells if the criterion applies."
            )
    report = rubric.align_verdicts(ratings.pairs)
    rows = [("Overall", report), *((row.metric_id, row) for row in report.criteria)]
    for line in told:
        say(line)
    say(f"Rubric {rubric.rubric_id}: A is {a.name}, B is {b.name}")
    for line in _table([_HEADER, *(_cells(name, agreement) for name, agreement in rows)]):
        say(line)


def _described(rubric: "EvaluationRubric") -> Iterator[str]:
    mandatory, cumulative = rubric.mandatory_metrics, rubric.cumulative_metrics
    yield f"Rubric {rubric.rubric_id}: {len(mandatory)} mandatory and {len(cumulative)} cumulative criteria"
    rules = ["every mandatory criterion passes"] if mandatory else []
    if cumulative:
        rules.append(f"at least {rubric.passing_score_threshold} of {len(cumulative)} cumulative ones pass")
    yield f"It passes when {' and '.join(rules)}."
    yield f"Name of its schema: {rubric.schema_name}"
    yield from _table([_criterion_cells(metric) for metric in rubric.metrics])


def _criterion_cells(metric: "MetricDefinition") -> list[str]:
    where = ", ".join(f"{column} is {value!r}" for column, value in (metric.applies_to or {}).items())
    text = " ".join(metric.rubric.split())
    kind = "mandatory" if metric.mandatory else "cumulative"
    return [f"  {metric.id}", kind, f"{text} (only where {where})" if where else text]


_HEADER = ["", "Pairs", "Agreement", "Kappa", "95% CI of kappa", "Both pass", "Both fail", "Only A", "Only B"]


def _cells(name: str, agreement: "Agreement") -> list[str]:
    counts = agreement.both_pass, agreement.both_fail, agreement.only_a_passes, agreement.only_b_passes
    return [
        name,
        str(agreement.n),
        "–" if agreement.agreement is None else percent(agreement.agreement, 1),
        decimals(agreement.kappa),
        _interval(agreement),
        *map(str, counts),
    ]


def _interval(agreement: "Agreement") -> str:
    """Of kappa; '–' where the pairs do not tell how sure it is, as when a rater always says the same."""
    from rag_eval.results.agreement import cohen_kappa

    verdicts = [
        *[(True, True)] * agreement.both_pass,
        *[(False, False)] * agreement.both_fail,
        *[(True, False)] * agreement.only_a_passes,
        *[(False, True)] * agreement.only_b_passes,
    ]
    interval = cohen_kappa([a for a, _ in verdicts], [b for _, b in verdicts]).interval
    if interval is None:
        return "–"
    return f"{decimals(interval.low)} to {decimals(interval.high)}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:10]) + (f", … ({len(ids):,} in all)" if len(ids) > 10 else "")
