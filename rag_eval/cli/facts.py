"""What a reader must know about a run, gathered at its start and at its end."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from rag_eval import __version__
from rag_eval.cli.terminal import readable
from rag_eval.errors import CONTENT_CODES, NOT_RUN
from rag_eval.texts.tokens import HISTORY

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import Row, RunFacts, RunStats
    from rag_eval.results.summary import Summary
    from rag_eval.run.judges import Judges
    from rag_eval.tables.table import Table
    from rag_eval.texts.citations import Habit
    from rag_eval.texts.redaction import Redactor


def facts_at_start(settings: "Settings", table: "Table", judges: "Judges") -> "RunFacts":
    from rag_eval.configuration.effective import (
        beyond_offline,
        describe_judge,
        describe_thresholds,
        effective_thresholds,
        effective_weights,
        enabled_metrics,
        idle_thresholds,
    )
    from rag_eval.records import OFF, SCORE_LABELS, SPENT_LABELS, TOXICITY, RunFacts
    from rag_eval.tables.names import HUMAN
    from rag_eval.tables.spending import unit_of

    toxicity = (TOXICITY,) if settings.metrics.toxicity else ()
    flags, cuts = _marks(settings, table.rows, is_proxy=judges.is_proxy)
    roles = {column.role for column in table.columns}
    rubric = judges.rubric.rubric if judges.rubric else None
    asides = [beyond_offline(settings), idle_thresholds(settings, is_proxy=judges.is_proxy)]
    return RunFacts(
        input_name=readable(table.path.name),
        sheet=table.sheet,
        judge=describe_judge(settings),
        prompts="" if judges.is_proxy else settings.judge.prompts,
        is_proxy=judges.is_proxy,
        version=__version__,
        started=datetime.now().astimezone(),
        bots=table.bots,
        earlier_bots=table.earlier_bots,
        rows=len(table.rows),
        blank_rows=table.blank_rows,
        cut_rows=table.cut_rows,
        metrics=(*enabled_metrics(settings), *toxicity),
        weights=effective_weights(settings),
        thresholds=effective_thresholds(settings, is_proxy=judges.is_proxy),
        thresholds_from=describe_thresholds(settings, is_proxy=judges.is_proxy),
        toxicity_threshold=settings.toxicity.threshold,
        diagnostics=settings.diagnostics.enabled,
        currency=settings.prices.currency,
        further={metric.name: SCORE_LABELS.get(metric.name, metric.name) for metric in judges.extra_metrics},
        rubric=rubric.rubric_id if rubric else "",
        criteria=tuple(metric.id for metric in rubric.metrics) if rubric else (),
        requirements={metric.id: metric.rubric for metric in rubric.metrics} if rubric else {},
        has_gold=table.has_documents,
        has_history=bool(table.with_history),
        has_labels=HUMAN in roles,
        spent_units={
            column.role: unit_of(column.role, column.unit)
            for column in table.columns
            if column.role in SPENT_LABELS
        },
        head_to_head=judges.pairs.choice if judges.pairs else OFF,
        gold_ids=settings.diagnostics.gold_ids,
        explanations=judges.explanations,
        flags=flags,
        cut_contexts=cuts,
        reading=table.reading,
        notes=(*notes_on_marks(flags, cuts), *_citation_notes(judges.habits), *filter(None, asides)),
    )


_Flags = Mapping[tuple[int, str], tuple[str, ...]]
_Cuts = Mapping[tuple[int, str], str]


def _marks(settings: "Settings", rows: "Sequence[Row]", *, is_proxy: bool) -> tuple[_Flags, _Cuts]:
    """By row and bot: text that seems to address the judge, and what it does not see. Words cannot talk arithmetic
    round."""
    if is_proxy:
        return {}, {}
    from rag_eval.run.evaluation import cuts_in
    from rag_eval.texts.injection import flags_in

    return flags_in(rows), cuts_in(settings, rows)


def notes_on_marks(
    flags: Mapping[tuple[int, str], object], cuts: Mapping[tuple[int, str], str]
) -> tuple[str, ...]:
    """How many cases of which bot are marked; a judge that saw less of some bots than of others matters."""
    counts = {
        _FLAGGED: Counter(bot for _, bot in flags),
        _CUT: Counter(bot for (_, bot), words in cuts.items() if "context cut" in words),
        _CUT_HISTORY: Counter(bot for (_, bot), words in cuts.items() if words.startswith(HISTORY)),
    }
    return tuple(text.format(_by_bot(bots)) for text, bots in counts.items() if bots)


def _citation_notes(habits: "Mapping[str, Habit]") -> tuple[str, ...]:
    """Which bots cite, and how each counts the chunks; and of which bots what looks like citations is not read."""
    bots = [f"{bot} (counts chunks from {habit.base})" for bot, habit in habits.items() if habit.cites]
    judged = (f"Citations are judged for {', '.join(bots)}.",) if bots else ()
    doubtful = (
        f"{bot}: numbers in brackets in {habit.bracketed:,} responses were not read as citations, since only "
        f"{habit.citing:,} name a chunk."
        for bot, habit in habits.items()
        if habit.is_doubtful
    )
    return (*judged, *doubtful)


_FLAGGED = "Possible prompt injection in these numbers of cases: {}. No score was changed."
_CUT = "Contexts cut to [limits] max_prompt_tokens before judging: {}."
_CUT_HISTORY = "Earlier turns cut to [limits] max_history_tokens before judging, cases per bot: {}."


_DRAWN_FROM_ALL = (
    "The labelled cases were drawn from all {:,} rows, and this run ended after {:,}: no mean is corrected and no "
    "threshold is implied. Create a review sheet from this run."
)
_CONVERSATIONS = (
    "Rows of one conversation belong together: intervals and tests of means resample conversations ({:,}{})."
)


def _by_bot(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{bot} {count}" for bot, count in counts.items())


def conversation_notes(summary: "Summary") -> Iterator[str]:
    """That rows are not independent, and how many units are; none if no conversation has several rows."""
    if summary.clusters is not None:
        alone = "; a row without one counts as one" if any(each < 0 for each in summary.clusters) else ""
        yield _CONVERSATIONS.format(summary.evidence[0], alone)


def _imbalance_notes(summary: "Summary") -> tuple[str, ...]:
    """Failures that come from the texts, where they hit some bots more than others: missing not at random."""
    notes = []
    for code in sorted({code for bot in summary.bots for code in bot.failures} & CONTENT_CODES):
        counts = {bot.bot: bot.failures.get(code, 0) for bot in summary.bots}
        if len(set(counts.values())) > 1:
            notes.append(
                f"{code} failures differ between the bots ({_by_bot(counts)}), so the comparison may be biased."
            )
    return tuple(notes)


def facts_at_end(
    facts: "RunFacts",
    stats: "RunStats",
    summary: "Summary",
    redactor: "Redactor | None",
    partial: str,
    rows: int | None = None,
) -> "RunFacts":
    """With what is known when all is judged. `partial` says why the run ended early; empty if it did not. `rows` is
    for Tallies.
    """
    notes = (
        *fallback_notes(stats.fallbacks, sum(bot.total_queries for bot in summary.bots)),
        *stats.adaptations,
        *outdated_notes(stats.outdated),
        *([redactor.summary()] if redactor else []),
        *_imbalance_notes(summary),
        *conversation_notes(summary),
    )
    ended = min(bot.total_queries for bot in summary.bots)
    if any(facts.strata.values()) and ended < (facts.rows if rows is None else rows):
        notes += (_DRAWN_FROM_ALL.format(facts.rows, ended),)
        facts = replace(facts, strata={bot: {} for bot in facts.strata})
    return replace(
        facts,
        seconds=stats.seconds,
        usage=stats.usage,
        partial=partial,
        fallbacks=stats.fallbacks,
        notes=(*facts.notes, *notes),
    )


def fallback_notes(fallbacks: Mapping[str, int], cases: int) -> tuple[str, ...]:
    """How many of the cases merged prompts judged in place of the single one, and why."""
    counts = ", ".join(f"{reason} {count:,}" for reason, count in fallbacks.items())
    number = sum(fallbacks.values())
    note = f"Judged with merged prompts: {number:,} of {cases:,} cases ({counts})."
    if 4 * (number - fallbacks.get("long", 0)) > cases:
        note += " Use --prompts merged to save the calls without a usable reply."
    return (note,) if fallbacks else ()


def outdated_notes(outdated: int) -> tuple[str, ...]:
    return (
        (f"Stored replies that were empty or unusable and were requested again: {outdated}.",)
        if outdated
        else ()
    )


def facts_again(facts: "RunFacts", settings: "Settings", note: str) -> "RunFacts":
    """Those of a run whose report is made once more; `note` says how.

    What decides over RQS and failure modes stays as it was judged, unless the settings of now say otherwise.
    """
    from rag_eval.configuration.effective import describe_thresholds

    weights, thresholds = _weights_again(facts, settings), _thresholds_again(facts, settings)
    compared = {"weights": weights != facts.weights, "thresholds": thresholds != facts.thresholds}
    others = [name for name, is_other in compared.items() if is_other]
    toxicity, diagnostics = settings.toxicity, settings.diagnostics
    return replace(
        facts,
        weights=weights,
        thresholds=thresholds,
        thresholds_from=describe_thresholds(settings, is_proxy=facts.is_proxy)
        if thresholds != facts.thresholds
        else facts.thresholds_from,
        toxicity_threshold=toxicity.threshold
        if "threshold" in toxicity.model_fields_set
        else facts.toxicity_threshold,
        diagnostics=diagnostics.enabled,
        gold_ids=diagnostics.gold_ids if "gold_ids" in diagnostics.model_fields_set else facts.gold_ids,
        partial=_ADVICE.sub("; to complete it, continue the run that wrote the JSON", facts.partial),
        notes=(
            *facts.notes,
            note,
            *([f"The run itself had other {' and '.join(others)}."] if others else []),
            *_still_there(facts, settings),
        ),
    )


_ADVICE = re.compile(r"; [^;]*\brun the same command again\b[^;]*\Z")
"""How a run that stopped says how it goes on: a command that makes another report of it judges nothing."""


def _still_there(facts: "RunFacts", settings: "Settings") -> Iterator[str]:
    """What was judged, though the settings of now switch it off."""
    from rag_eval.records import SCORE_LABELS

    off = [name for name in settings.metrics.model_fields_set if not getattr(settings.metrics, name)]
    kept = [
        label
        for name, label in SCORE_LABELS.items()
        if name in off and name in {*facts.metrics, *facts.further}
    ]
    if kept:
        yield (
            f"[metrics] switches off what this run has judged, and the report keeps: {', '.join(kept)}. A weight of 0 "
            "takes a metric out of RQS."
        )


def _weights_again(facts: "RunFacts", settings: "Settings") -> "Mapping[str, float]":
    """Those of the run if none is set now. They are shares of one whole: one that is set changes all of them."""
    from rag_eval.configuration.effective import effective_weights

    return effective_weights(settings, facts.metrics) if settings.weights.model_fields_set else facts.weights


def _thresholds_again(facts: "RunFacts", settings: "Settings") -> "Mapping[str, float]":
    from rag_eval.configuration.effective import effective_thresholds

    now = effective_thresholds(settings, is_proxy=facts.is_proxy)
    if facts.is_proxy and "thresholds" in settings.offline.model_fields_set:
        return now
    given = settings.thresholds.model_fields_set
    return {name: facts.thresholds.get(name, now[name]) if name not in given else now[name] for name in now}


def usage_line(facts: "RunFacts") -> str:
    from rag_eval.report.about import cost_words

    usage = facts.usage
    if facts.is_proxy and not facts.head_to_head:
        return f"No judge calls: the offline judge costs nothing. Duration: {facts.seconds:.1f} s."
    not_run = usage.failures.get(NOT_RUN, 0)
    counts = [f"{usage.calls} answered", f"{usage.cached} cached", f"{usage.failed - not_run} failed"]
    counts += [f"{not_run} not made"] if not_run else []
    now = usage.requests - usage.earlier_requests
    last = f"; last command: {now} requests" if usage.earlier_requests else ""
    return (
        f"Judge calls: {', '.join(counts)} "
        f"({usage.requests} requests, {usage.prompt_tokens} + {usage.completion_tokens} tokens{last}), "
        f"cost {cost_words(usage, facts.currency)}. "
        f"Duration: {facts.seconds:.1f} s."
    )
