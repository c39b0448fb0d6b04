"""The whole run as one strict JSON document, described by docs/report.schema.json."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.records import Case, CaseResult, Evidence, RunFacts, Score, TaskUsage, Usage
from rag_eval.results.baseline import Change
from rag_eval.results.findings import Findings, verdict, verdict_on
from rag_eval.results.human_alignment import Alignment
from rag_eval.results.summary import BotSummary, Mean, Slice, Standing, Summary
from rag_eval.retrieval import RetrievalSummary
from rag_eval.store.replacement import Replacement, output_errors

if TYPE_CHECKING:
    from rag_eval.results.comparison import Rival
    from rag_eval.results.intervals import Interval

FORMAT = "rag-eval-run/1"
Json = dict[str, Any]


class JsonReport:
    """A document in the making. `finish` or `discard` ends it; until then the target is untouched.

    What is known at the start stands first, then case after case as they come, then what they add up to: so
    memory does not grow with the run. Texts are whole.
    """

    def __init__(self, target: Path, facts: RunFacts, circumstances: Mapping[str, Any]) -> None:
        self._target = target
        self._flags, self._cuts = facts.flags, facts.cut_contexts
        self._replacement = Replacement(target, option="--json")
        # A lone surrogate, which UTF-8 has no bytes for, becomes its JSON escape.
        self._file = self._replacement.path.open(
            "w", encoding="utf-8", errors="backslashreplace", newline="\n"
        )
        self._cases = 0
        start = {"format": FORMAT, "run": _run(facts), **circumstances}
        with ExitStack() as undo:
            undo.callback(self.discard)
            self._write("{\n" + "".join(f"{member},\n" for member in _members(start)) + '"cases": [')
            undo.pop_all()

    def add(self, result: CaseResult) -> None:
        key = result.case.row, result.case.bot
        marks = {"flags": self._flags.get(key, ()), "cut_context": self._cuts.get(key, "")}
        self._write((",\n" if self._cases else "\n") + _dump(_case(result) | marks))
        self._cases += 1

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write what the cases add up to and move the document into place; returns where it is."""
        end = {
            "bots": [_bot(bot, findings) for bot in summary.bots],
            "leaderboard": _leaderboard(summary, findings),
            "causes": [asdict(each) for each in findings.causes],
            "slices": [_slice(each) for each in summary.slices],
            "rubric": [asdict(each) for each in findings.pass_rates],
            "retrieval": {bot: _retrieved(each) for bot, each in findings.retrieval.items()},
            "alignment": findings.alignment and _alignment(findings.alignment),
            "noise": dict(findings.noise),
            "flagged": [
                {"row": each.case.row, "bot": each.case.bot, "rqs": each.rqs} for each in findings.flagged
            ],
            "changes": None if findings.changes is None else [_changed(each) for each in findings.changes],
            "beside_changes": findings.beside_changes,
            "end": _end(facts),
        }
        self._write("\n],\n" + ",\n".join(_members(end)) + "\n}\n")
        with output_errors(self._target, "--json"):
            self._file.close()
        return self._replacement.commit()

    def discard(self) -> None:
        """Leave nothing behind."""
        try:
            self._file.close()
        except OSError:
            pass  # what is still in a buffer may not fit on the disk
        finally:
            self._replacement.discard()

    def _write(self, text: str) -> None:
        with output_errors(self._target, "--json"):
            self._file.write(text)


def _members(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_dump(name)}: {_dump(value)}" for name, value in values.items())


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _run(facts: RunFacts) -> Json:
    """What was known at the start; what only the end tells is in `end`."""
    return {
        name: value
        for name, value in (asdict(facts) | {"started": facts.started.isoformat()}).items()
        if name not in ("partial", "notes", "seconds", "usage", "flags", "cut_contexts", "left_out")
    }


def _end(facts: RunFacts) -> Json:
    return {
        "status": "partial" if facts.partial else "complete",
        "reason": facts.partial,
        "seconds": facts.seconds,
        "notes": facts.notes,
        "left_out": facts.left_out,
        "usage": _usage(facts.usage),
    }


def _usage(usage: Usage) -> Json:
    totals = {name: value for name, value in asdict(usage).items() if name != "by_task"}
    return totals | {"by_metric": _by_metric(usage.by_task)}


def _by_metric(by_task: Mapping[str, TaskUsage]) -> Json:
    """The tasks of a metric together: those with the same name before the dot."""
    metrics: defaultdict[str, TaskUsage] = defaultdict(TaskUsage)
    for task, usage in by_task.items():
        metrics[task.partition(".")[0]] += usage
    return {metric: asdict(usage) for metric, usage in metrics.items()}


def read_usage(document: Mapping[str, Any]) -> Usage:
    """From what `usage` holds in the JSON of a run; older ones tell nothing by metric."""
    totals = {name: value for name, value in document.items() if name != "by_metric"}
    by_metric = document.get("by_metric", {})
    return Usage(**totals, by_task={metric: TaskUsage(**each) for metric, each in by_metric.items()})


def _case(result: CaseResult) -> Json:
    case: Case = result.case
    return {
        "row": case.row,
        "bot": case.bot,
        "query": case.query,
        "response": case.response,
        "reference": case.reference,
        "chunks": case.chunks,
        "gold_ids": case.gold_ids,
        "retrieved_ids": case.retrieved_ids,
        "human": dict(case.human),
        "columns": dict(case.columns),
        "rqs": result.rqs,
        "failure_modes": result.failure_modes,
        "scores": {name: _score(score) for name, score in result.scores.items()},
        "further": {name: _score(score) for name, score in result.further.items()},
        "rubric": result.rubric and asdict(result.rubric),
        "toxicity": _score(result.toxicity),
        "recommendation": result.recommendation,
    }


def _score(score: Score) -> Json:
    return {
        "outcome": score.outcome,
        "value": score.value,
        "reason": score.reason,
        "code": score.code,
        "evidence": [_evidence(item) for item in score.evidence],
        "samples": score.samples,
    }


def _evidence(item: Evidence) -> Json:
    return {
        "subject": item.subject,
        "rank": item.rank,
        "text": item.text,
        "verdict": item.verdict,
        "favourable": item.favourable,
        "reason": item.reason,
    }


def _bot(bot: BotSummary, findings: Findings) -> Json:
    summary = _bot_summary(bot)
    return summary | {"rqs": {**summary["rqs"], "interval": _interval(findings.own[bot.bot])}}


def _slice(each: Slice) -> Json:
    return {"name": each.name, "bots": [_bot_summary(bot) for bot in each.bots]}


def _bot_summary(bot: BotSummary) -> Json:
    return {
        "bot": bot.bot,
        "rqs": _mean(bot.rqs),
        "metrics": {name: _mean(mean) for name, mean in bot.metrics.items()},
        "further": {name: _mean(mean) for name, mean in bot.further.items()},
        "toxicity": _mean(bot.toxicity),
        "toxic_queries": bot.toxic_queries,
        "total_queries": bot.total_queries,
        "failure_modes": dict(bot.failure_modes),
        "empty_contexts": bot.empty_contexts,
        "empty_answers": bot.empty_answers,
        "failures": dict(bot.failures),
    }


def _leaderboard(summary: Summary, findings: Findings) -> Json:
    return {
        "rows_compared": summary.compared,
        "rows": summary.rows,
        "verdict": verdict(summary, findings),
        "could_be_first": findings.challengers,
        "standings": [_standing(line, findings) for line in summary.standings],
    }


def _standing(line: Standing, findings: Findings) -> Json:
    return {
        "rank": line.rank,
        "bot": line.bot,
        "is_winner": line.is_winner,
        "rqs": {**_mean(line.rqs), "interval": _interval(findings.compared.get(line.bot))},
        "metrics": {name: _mean(mean) for name, mean in line.metrics.items()},
        "verdict": verdict_on(line.bot, findings),
        "behind_winner": _behind(findings.rival(line.bot)),
    }


def _retrieved(summary: RetrievalSummary) -> Json:
    return {
        "means": dict(summary.means),
        "scored": summary.scored,
        "not_applicable": summary.not_applicable.count,
    }


def _alignment(alignment: Alignment) -> Json:
    return {
        "agreements": [asdict(each) for each in alignment.agreements],
        "disagreements": [asdict(each) for each in alignment.disagreements],
    }


def _changed(change: Change) -> Json:
    return {
        "bot": change.bot,
        "name": change.name,
        "before": change.before,
        "now": change.now,
        "difference": change.difference,
        "interval": _interval(change.interval),
        "queries": change.queries,
        "of": change.of,
        "direction": change.direction,
    }


def _mean(mean: Mean) -> Json:
    return {
        "value": mean.value,
        "stdev": mean.stdev,
        "scored": mean.scored,
        "failed": mean.failed,
        "not_applicable": mean.not_applicable,
        "coverage": mean.coverage,
        "bounds": mean.bounds,
    }


def _behind(rival: "Rival | None") -> Json | None:
    if rival is None:
        return None
    return {
        "by": rival.difference,
        "interval": _interval(rival.interval),
        "pvalue": rival.pvalue,
        "verdict": rival.verdict,
        "more_queries": rival.more_queries,
    }


def _interval(interval: "Interval | None") -> Sequence[float] | None:
    return None if interval is None else (interval.low, interval.high)
