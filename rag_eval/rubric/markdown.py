"""A rubric and a result as Markdown: for the judge's prompt, and for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rag_eval.rubric.criteria import MetricDefinition

if TYPE_CHECKING:
    from rag_eval.rubric.definition import EvaluationRubric


def prompt_text(rubric: "EvaluationRubric") -> str:
    """The rubric as Markdown for a judge's prompt."""
    return "\n\n".join(_prompt_blocks(rubric))


def report_text(
    rubric: "EvaluationRubric",
    verdicts: Mapping[str, bool],
    reasoning: Mapping[str, str | None],
    heading: str,
) -> str:
    """A result as Markdown, under a heading; `reasoning` has explanations by metric id."""
    return "\n\n".join(_report_blocks(rubric, verdicts, reasoning, heading))


def _prompt_blocks(rubric: "EvaluationRubric") -> Iterator[str]:
    mandatory, cumulative = rubric.mandatory_metrics, rubric.cumulative_metrics
    instructions = [
        "## Instructions",
        "For each criterion above, evaluate whether it passes (Yes) or fails (No).",
    ]
    yield f"# Evaluation Rubric: {rubric.rubric_id}"
    if mandatory:
        yield "## Mandatory Criteria (ALL must pass)"
        yield _prompt_list(mandatory)
        instructions.append(f"- All {len(mandatory)} mandatory criteria must pass.")
    if cumulative:
        threshold = rubric.passing_score_threshold
        yield f"## Cumulative Criteria\n(Must pass at least {threshold} of {len(cumulative)})"
        yield _prompt_list(cumulative)
        instructions.append(f"- At least {threshold} cumulative criteria must pass.")
    yield "\n".join(instructions)


def _prompt_list(metrics: Iterable[MetricDefinition]) -> str:
    return "\n".join(f"- **{metric.id}**: {metric.rubric}" for metric in metrics)


def _report_blocks(
    rubric: "EvaluationRubric",
    verdicts: Mapping[str, bool],
    reasoning: Mapping[str, str | None],
    heading: str,
) -> Iterator[str]:
    yield f"# {heading}"
    yield f"**Overall Result: {_word(rubric.is_passed_by(verdicts))}**"
    if mandatory := rubric.mandatory_metrics:
        yield "## Mandatory Criteria (ALL must pass)"
        yield from (_report_entry(metric, verdicts, reasoning) for metric in mandatory)
        if failed := [metric.id for metric in mandatory if not verdicts[metric.id]]:
            # With the two spaces of teval, whose reports are searched for this line.
            yield f"⚠️  **{len(failed)} mandatory metric(s) failed:** {', '.join(failed)}"
    if cumulative := rubric.cumulative_metrics:
        n_passed, threshold = _count_passed(cumulative, verdicts), rubric.passing_score_threshold
        yield f"## Cumulative Criteria\n**Score: {n_passed}/{len(cumulative)}** (Required: {threshold})"
        yield from (_report_entry(metric, verdicts, reasoning) for metric in cumulative)
        if n_passed < threshold:
            yield f"⚠️ **Need {threshold - n_passed} more cumulative metric(s) to pass**"
    yield "## Requirements for Passing"
    yield from _requirement_blocks(rubric, verdicts)


def _requirement_blocks(rubric: "EvaluationRubric", verdicts: Mapping[str, bool]) -> Iterator[str]:
    if mandatory := rubric.mandatory_metrics:
        marks = [f"  {_mark(verdicts[metric.id])} {metric.id}" for metric in mandatory]
        yield "\n".join(["**Mandatory criteria (ALL must pass):**", *marks])
    if cumulative := rubric.cumulative_metrics:
        n_passed, threshold = _count_passed(cumulative, verdicts), rubric.passing_score_threshold
        lines = [
            "**Cumulative criteria:**",
            f"  - Need at least {threshold} of {len(cumulative)} to pass",
            f"  - Currently passed: {n_passed}",
        ]
        if n_passed < threshold:
            lines.append(f"  - Still need: {threshold - n_passed} more")
        yield "\n".join(lines)


def _report_entry(
    metric: MetricDefinition, verdicts: Mapping[str, bool], reasoning: Mapping[str, str | None]
) -> str:
    passed = verdicts[metric.id]
    entry = f"{_mark(passed)} **{metric.id}** [{_word(passed)}]: {_one_line(metric.rubric)}"
    explanation = _one_line(reasoning.get(metric.id) or "")
    return f"{entry}\n  → {explanation}" if explanation else entry


def _count_passed(metrics: Iterable[MetricDefinition], verdicts: Mapping[str, bool]) -> int:
    return sum(verdicts[metric.id] for metric in metrics)


def _one_line(text: str) -> str:
    # A judge's explanation must not be able to write lines of the report, such as a verdict of its own.
    return " ".join(text.splitlines())


def _mark(passed: bool) -> str:
    return "✓" if passed else "✗"


def _word(passed: bool) -> str:
    return "PASS" if passed else "FAIL"
