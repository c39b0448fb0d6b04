"""The whole run as one strict JSON document, described by docs/report.schema.json.

A case, its scores, the facts of the run and its usage have in JSON the fields of their dataclasses (rag_eval.records),
in the same order: a field that is added there is written, and read by `recorded`, without a line more. Only what is
nested differently or computed is spelled out.
"""

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.records import CaseResult, PlannedLook, RunFacts, TaskUsage, Usage
from rag_eval.report.column import ReportTable
from rag_eval.report.outputs import FinishedRun
from rag_eval.report.tables import TABLES
from rag_eval.results.causes import BotCauses
from rag_eval.results.findings import Findings
from rag_eval.results.human_alignment import Alignment
from rag_eval.results.paired import Change, Direction
from rag_eval.results.pass_rates import BotPassRates
from rag_eval.results.stored import RUN_FORMAT, plain_verdicts
from rag_eval.results.summary import BotSummary, Mean, Slice, Standing, Summary
from rag_eval.results.verdict import verdict, verdict_on
from rag_eval.retrieval import RetrievalSummary
from rag_eval.store.codec import to_json, to_plain
from rag_eval.store.replacement import Replacement, output_errors

if TYPE_CHECKING:
    from rag_eval.results.comparison import Rival
    from rag_eval.results.intervals import Interval

Json = dict[str, Any]
# Nothing in a run contains itself; not looking for it saves a tenth of the time.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
    default=lambda value: _PLAIN.get(type(value), array.tolist)(value),
)
_ONLY_AT_THE_END = (
    "partial", "notes", "seconds", "usage", "flags", "cut_contexts", "fallbacks", "left_out", "looks_taken",
)  # fmt: skip
"""Facts of a run that are not among those of its start: they follow in `end`, or in the cases."""
_FIRST = ("bots", "leaderboard", "causes", "slices", "rubric", "retrieval", "alignment", "noise", "flagged")
"""Members in the order of earlier versions, for who reads the document as it comes; the others follow."""


class JsonReport:
    """A document that is being written. The target stays as it is until `finish` replaces it.

    The facts known at the start come first, then the cases as they are judged, then the summary, so memory does not
    grow with the run. Texts are never cut.
    """

    def __init__(self, target: Path, facts: RunFacts, provenance: Mapping[str, Any]) -> None:
        self._target = target
        self._facts = facts
        self._replacement = Replacement(target, option="--json")
        # A lone surrogate, which UTF-8 has no bytes for, becomes its JSON escape.
        self._file = self._replacement.path.open(
            "w", encoding="utf-8", errors="backslashreplace", newline="\n"
        )
        self._cases = 0
        optional = ("has_pair_labels", "requirements", "earlier_bots")
        unused = [name for name in optional if not getattr(facts, name)]
        run = _fields(facts, without=[*_ONLY_AT_THE_END, *unused]) | {"started": facts.started.isoformat()}
        start = {"format": RUN_FORMAT, "run": run, **provenance}
        with ExitStack() as undo:
            undo.callback(self.discard)
            self._write("{\n" + "".join(f"{member},\n" for member in _members(start)) + '"cases": [')
            undo.pop_all()

    def add(self, result: CaseResult) -> None:
        """Write one case. Raises OutputError if the disk is full."""
        key = result.case.row, result.case.bot
        members = to_plain(result)
        for score in (*members["scores"].values(), *members["further"].values(), members["toxicity"]):
            del score["metric"]  # it is the key that the score is under
        if not self._facts.head_to_head:
            del members["pairs"]
        else:
            members["pairs"] = plain_verdicts(result, has_labels=self._facts.has_pair_labels)
        if not result.case.is_missing:
            del members["case"]["is_missing"]
        marks = {"flags": self._facts.flags_of(result), "cut_context": self._facts.cut_contexts.get(key, "")}
        line = to_json(members.pop("case") | members | marks, is_spaced=True).decode()
        self._write((",\n" if self._cases else "\n") + line)
        self._cases += 1

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write the summary and move the document to the target. Returns its path. Raises OutputError."""
        run = FinishedRun(facts, summary, findings)
        found = {
            "bots": [_bot(bot, findings) for bot in summary.bots],
            "leaderboard": _leaderboard(facts, summary, findings),
            "causes": [_causes(each) for each in findings.causes],
            "spent": [_spent(each) for each in findings.spent],
            "noise": dict(findings.noise),
            "flagged": [
                {"row": each.case.row, "bot": each.case.bot, "rqs": each.rqs} for each in findings.flagged
            ],
            **{
                name: value(run)
                for table in TABLES
                if isinstance(table, ReportTable)
                for name, value in table.json.items()
            },
            "end": _end(facts),
        }
        end = {name: found[name] for name in (*_FIRST, *found)}
        self._write("\n],\n" + ",\n".join(_members(end)) + "\n}\n")
        with output_errors(self._target, "--json"):
            self._file.close()
        return self._replacement.commit()

    def discard(self) -> None:
        """Remove the unfinished document."""
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
    return _ENCODER.encode(value)


def _end(facts: RunFacts) -> Json:
    return {
        "status": "partial" if facts.partial else "complete",
        "reason": facts.partial,
        "seconds": facts.seconds,
        "notes": facts.notes,
        "fallbacks": dict(facts.fallbacks),
        "left_out": facts.left_out,
        "looks_taken": facts.looks_taken,
        "usage": _usage(facts.usage),
    }


def _usage(usage: Usage) -> Json:
    """The tasks of a metric together: those with the same name before the dot."""
    metrics: defaultdict[str, TaskUsage] = defaultdict(TaskUsage)
    for task, used in usage.by_task.items():
        metrics[task.partition(".")[0]] += used
    by_metric = {metric: asdict(used) for metric, used in metrics.items()}
    return _fields(usage, without=["by_task"]) | {"by_metric": by_metric}


def _bot(bot: BotSummary, findings: Findings) -> Json:
    summary = _bot_summary(bot)
    return summary | {"rqs": {**summary["rqs"], "interval": _interval(findings.own[bot.bot])}}


def _causes(each: BotCauses) -> Json:
    """Places are only told in a run over several files."""
    members = asdict(each)
    if each.worst_place is None:
        del members["worst_place"]
    for cause in members["causes"]:
        if not cause["places"]:
            del cause["places"]
    return members


def _slice(each: Slice) -> Json:
    return {"name": each.name, "bots": [_bot_summary(bot) for bot in each.bots]}


def _bot_summary(bot: BotSummary) -> Json:
    """How many queries the bot was not asked is only told where it is some."""
    inner = ["full_modes", "rqs_values", "metric_values", "clusters", "failed_by_content", "spent"]
    if not bot.not_asked:
        inner.append("not_asked")
    return _fields(bot, without=inner) | {
        "rqs": _mean(bot.rqs),
        "metrics": _means(bot.metrics),
        "further": _means(bot.further),
        "toxicity": _mean(bot.toxicity),
        "spent": {name: _fields(spent, without=["values", "clusters"]) for name, spent in bot.spent.items()},
    }


def _leaderboard(facts: RunFacts, summary: Summary, findings: Findings) -> Json:
    said = verdict(facts, summary, findings)
    side = {"side_by_side": said.side_by_side} if said.side_by_side else {}
    return {
        "rows_compared": summary.compared,
        "rows": summary.rows,
        "verdict": " ".join(said.lines),
        "verdict_lines": {"decision": said.decision, "numbers": said.numbers, **side, "limits": said.limits},
        "could_be_first": findings.challengers,
        "standings": [
            _standing(line, verdict_on(line.bot, facts, summary, findings), findings)
            for line in summary.standings
        ],
    }


def _standing(line: Standing, words: str, findings: Findings) -> Json:
    return _fields(line) | {
        "rqs": {**_mean(line.rqs), "interval": _interval(findings.compared.get(line.bot))},
        "metrics": _means(line.metrics),
        "verdict": words,
        "behind_winner": _behind(findings.rival(line.bot)),
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


def _changed(change: Change) -> Json:
    return {
        "bot": change.bot,
        "name": change.name,
        "before": change.before,
        "now": change.now,
        "difference": change.difference,
        "interval": _interval(change.interval),
        "queries": change.queries,
        "of": change.common.now,
        "only_before": change.common.only_before,
        "only_now": change.common.only_now,
        "direction": change.direction,
    }


def _spent(each: Change) -> Json:
    """How this bot differs from the best one."""
    is_clear = each.direction in (Direction.BETTER, Direction.WORSE)
    return {
        "bot": each.bot,
        "name": each.name,
        "mean": each.now,
        "of_winner": each.before,
        "difference": each.difference,
        "interval": _interval(each.interval),
        "queries": each.queries,
        "is_significant": is_clear,
    }


def _retrieval(each: RetrievalSummary) -> Json:
    return {
        "means": dict(each.means),
        "scored": each.scored,
        "not_applicable": each.not_applicable.count,
    }


def _means(means: Mapping[str, Mean]) -> Json:
    return {name: _mean(mean) for name, mean in means.items()}


def _mean(mean: Mean) -> Json:
    return _fields(mean) | {"coverage": mean.coverage, "bounds": mean.bounds}


def _interval(interval: "Interval | None") -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


def _without_clusters(rates: Json) -> Json:
    for rate in (rates["overall"], *rates["criteria"].values()):
        del rate["clusters"]
    return rates


def _without_single(alignment: Json) -> Json:
    """The number of conversations only where one of them has several cases."""
    for line in alignment["agreements"]:
        if line["conversations"] is None:
            del line["conversations"]
    return alignment


def _fields(record: Any, without: Collection[str] = ()) -> Json:
    """The record's fields in their order, each as it is."""
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name not in without}


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    Alignment: lambda alignment: _without_single(asdict(alignment)),
    BotPassRates: lambda rates: _without_clusters(asdict(rates)),
    Change: _changed,
    PlannedLook: asdict,
    RetrievalSummary: _retrieval,
    Slice: _slice,
}
"""What tables are made of, in values that JSON knows."""
