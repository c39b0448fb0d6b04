"""What made-up runs come to, to the letter: the terminal, the summary in Markdown, and every table with its notes.

`tables_of_runs.txt` has it, `looks_of_runs.txt` the look of some workbooks and what some pages show without a script.
`python tests/test_tables_of_runs.py` writes both anew after a change that is wanted; read what differs before you keep
it.
"""

import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from report_cases import bare_result, facts_of, failed_result, plain_result, random_results, result_of
from test_figures_unchanged import FACTS, made_results, past_run
from test_look import look_of

from rag_eval.cli.outcome import RunOutcome
from rag_eval.records import (
    ALL_PAIRS,
    MATCHING,
    METRIC_LABELS,
    TOXICITY,
    CaseResult,
    Outcome,
    PairVerdict,
    PlannedLook,
    RunFacts,
    Score,
    Turn,
)
from rag_eval.report.about import details
from rag_eval.report.ci_files import write_markdown
from rag_eval.report.column import AnyTable, Cell, Column, ReportTable, StreamedTable
from rag_eval.report.outputs import FinishedRun
from rag_eval.report.page.html_page import HtmlReport
from rag_eval.report.styles import Look
from rag_eval.report.tables import report_tables
from rag_eval.report.workbook import ExcelReport
from rag_eval.results.baseline import PastRun
from rag_eval.results.findings import Findings
from rag_eval.results.gates import GateOn, evaluate, parse_gates, regression_gates
from rag_eval.results.run_history import History, run_of
from rag_eval.results.summary import Summary
from rag_eval.results.tallies import Tallies
from rag_eval.results.verdict import verdict_on

RECORDED = Path(__file__).parent / "tables_of_runs.txt"
LOOKS = RECORDED.with_name("looks_of_runs.txt")
MOST_LINES = 15
"""Of one table."""
GATES = parse_gates(["rqs=0.6", "faithfulness=0.55"])
UPPER = parse_gates([], ["latency_median=1200", "latency_p95=2000", "cost=0.004"])
MOST_ARTICLES = 4
"""Cases of a page."""
PLAIN = frozenset((Look.TEXT, Look.WORD, Look.NAME, Look.SCORE, Look.COUNT, Look.PERCENT))


class MadeRun(NamedTuple):
    """Results, and what is known of their run."""

    facts: RunFacts
    results: Sequence[CaseResult]
    asked: frozenset[str] = frozenset()
    slice_by: str = ""
    past: PastRun | None = None
    days: int = 0
    """So many days ago its history begins, with one run a day."""


# Pairs

SIDES = {1.0: ("this", "this"), 0.5: ("this", "tie"), -0.5: ("tie", "other"), -1.0: ("other", "other")}


def pair(chance: random.Random, other: str, skill: float, *, first: float = 0.0) -> PairVerdict:
    """A verdict on a response that is better than the other one by this skill; `first` is what a position adds."""
    if chance.random() < 0.05:
        return PairVerdict(other, Outcome.FAILED, reason="it timed out", code="timeout")
    if chance.random() < 0.1:
        return PairVerdict(other, Outcome.SCORED, 0.0, reason="the responses are equal", rqs_gap=0.0)
    if chance.random() < first:
        value, orders = 0.0, ("this", "other")
    else:
        value = chance.choices((-1.0, -0.5, 0.0, 0.5, 1.0), (3 - 3 * skill, 1, 2, 1, 3 + 3 * skill))[0]
        orders = SIDES.get(value) or (("tie", "tie"), ("other", "this"))[chance.random() < 0.3]
    return PairVerdict(
        other,
        Outcome.SCORED,
        value,
        orders,
        criteria={"correct": value, "useful": 0.5} if chance.random() < 0.9 else {"supported": -value},
        reasons=("It says more.", "")[: 1 + (chance.random() < 0.5)],
        lengths=(50 + 10 * chance.randrange(5), 70),
        rqs_gap=round(skill * 0.2 + chance.random() - 0.5, 2),
    )  # fmt: skip


def labelled(chance: random.Random, said: PairVerdict, raters: Sequence[str]) -> PairVerdict:
    """With what people say, who mostly agree with the judge. They are not asked about what needed no judge."""
    if said.outcome is Outcome.SCORED and not said.orders:
        return said
    judge = said.preference or 0.0
    labels = {each: judge if chance.random() < 0.75 else chance.choice((-1.0, 0.0, 1.0)) for each in raters}
    return replace(said, labels=labels, is_drawn=chance.random() < 0.8)


def in_pairs(
    bots: Sequence[str],
    rows: int,
    choice: str,
    *,
    seed: int = 1,
    first: float = 0.0,
    skill: float = 0.3,
    turned: bool = False,
    raters: Sequence[str] = (),
    talks: int = 0,
    days: int = 0,
    **known: Any,
) -> MadeRun:
    """Bots of falling skill, each of whose responses are compared with those of bots to its right.

    Their RQS rises if it is `turned`.
    """
    chance = random.Random(seed)
    results = []
    for row in range(2, rows + 2):
        left = chance.sample(bots, len(bots))
        matched = {frozenset(left[n : n + 2]) for n in range(0, len(bots), 2)}
        for number, bot in enumerate(bots):
            rank = len(bots) - number if turned else number
            base = plain_result(row, bot, round(0.8 - 0.05 * rank + 0.3 * (chance.random() - 0.5), 3))
            said = [
                pair(chance, other, skill * (1 + bots.index(other) - number), first=first)
                for other in bots[number + 1 :]
                if choice == ALL_PAIRS or {bot, other} in matched
            ]
            if raters:
                said = [labelled(chance, each, raters) if row % 3 else each for each in said]
            if row % 7 == 0:
                said.append(PairVerdict(bot, Outcome.SCORED, float(chance.random() < first), ("this",)))
            talk = f"talk {row % talks}" if talks else ""
            results.append(replace(base, case=replace(base.case, conversation=talk), pairs=tuple(said)))
    facts = facts_of(bots, rows, head_to_head=choice, has_pair_labels=bool(raters), **known)
    return MadeRun(facts, results, frozenset(("history",) * bool(days)), days=days)


# Runs


def spending(rows: int, **costs: float) -> MadeRun:
    """Two bots with latency and cost, of which some are missing."""
    chance = random.Random(5)
    results = []
    for row in range(2, rows + 2):
        for bot, cost in costs.items():
            base = plain_result(row, bot, round(0.5 + 0.4 * chance.random(), 2))
            spent = {"latency": round(900 + 900 * chance.random()), "cost": cost * (1 + row % 3)}
            if row % 9 == 0:
                spent.pop(chance.choice(["latency", "cost"]))
            results.append(replace(base, case=replace(base.case, spent=spent)))
    return MadeRun(facts_of([*costs], rows, spent_units={"latency": "ms", "cost": "USD"}), results)


def of_one_bot() -> MadeRun:
    """Cases that fail in every way, of a run that was stopped."""
    good = [plain_result(row, "Atlas", 0.9 - 0.02 * row) for row in range(2, 20)]
    low = [
        plain_result(row, "Atlas", 0.1, response="" if row % 2 else "No.", chunks=()) for row in range(20, 27)
    ]
    toxic = [replace(good[0], case=replace(good[0].case, row=27), toxicity=Score.scored(TOXICITY, 0.5))]
    failed = [
        failed_result(row, "Atlas", code) for row, code in enumerate(("timeout", "not_run", "refused"), 28)
    ]
    facts = facts_of(["Atlas"], 29, partial="--max-calls 100 is reached", blank_rows=2, cut_rows=3, sheet="")
    return MadeRun(facts, [*good, *low, *toxic, *failed])


def of_many_bots() -> MadeRun:
    bots = [f"Bot {n:02}" for n in range(14)]
    return MadeRun(
        facts_of(bots, 8, diagnostics=False), random_results(bots, 8, words=6), frozenset(("side_by_side",))
    )


def of_other_metrics() -> MadeRun:
    """A bot without contexts, and one whose scores are all switched off but one."""
    bare = [bare_result(row, "Bare", 0.6 + 0.01 * (row % 5)) for row in range(2, 22)]
    full = [plain_result(row, "Full", 0.62 + 0.02 * (row % 7)) for row in range(2, 22)]
    none = [
        Score.not_applicable(name, "it was not asked for") for name in METRIC_LABELS if name != "faithfulness"
    ]
    only = [result_of(each.case, [each.scores["faithfulness"], *none]) for each in full[:4]]
    return MadeRun(facts_of(["Bare", "Full"], 20), [*bare, *full[4:], *only])


def of_a_bare_bot_behind() -> MadeRun:
    made = {"Full": (plain_result, 0.8), "Less": (plain_result, 0.5), "Bare": (bare_result, 0.3)}
    results = [
        make(row, bot, round(value + 0.01 * (row % 5), 2))
        for row in range(2, 14)
        for bot, (make, value) in made.items()
    ]
    return MadeRun(facts_of([*made], 12, diagnostics=False), results)


def of_retrieval() -> MadeRun:
    """Bots with gold and retrieved documents."""
    chance = random.Random(9)
    results = []
    for row in range(2, 14):
        for bot in ("Atlas", "Birch"):
            base = plain_result(row, bot, round(chance.random(), 2))
            found = tuple(f"d{chance.randrange(4)}" for _ in range(12))[: 2 + 10 * (bot == "Atlas")]
            gold = None if row == 5 else ("d1", "d2") if row % 2 else ("d1",)
            case = replace(
                base.case,
                gold_ids=gold,
                retrieved_ids=tuple(dict.fromkeys(found)),
                columns={"Kind": "ab"[row % 2]},
            )
            results.append(replace(base, case=case))
    facts = facts_of(["Atlas", "Birch"], 12, has_gold=True, gold_ids=True)
    return MadeRun(facts, results, frozenset(("slice_by", "evidence")), "Kind")


def of_several_files() -> MadeRun:
    """Cases with earlier turns, spending, what people thought, and contexts that were cut."""
    chance = random.Random(11)
    turns = (Turn("user", "Is it open?"), Turn("assistant", "On weekdays."))
    results = []
    for row in range(2, 26):
        for bot in THREE:
            base = plain_result(row, bot, round(chance.random(), 2))
            case = replace(
                base.case,
                source="ab"[row > 13] + ".csv",
                source_row=row if row < 14 else row - 12,
                history=turns[: 2 * (row % 2)],
                spent={"latency": 100 + 10 * row, "cost": 0.001 * row},
                human={"faithfulness": float(chance.random() < 0.5), "answer_correctness": chance.random()},
                columns={"Kind": "ab"[row % 3 == 0]},
            )
            results.append(replace(base, case=case))
    facts = facts_of(
        THREE,
        24,
        sources=("a.csv", "b.csv"),
        has_history=True,
        has_labels=True,
        spent_units={"latency": "ms", "cost": "USD"},
        flags={(3, "Atlas"): ("mark",), (14, "Birch"): ("mark", "another")},
        cut_contexts={(3, "Atlas"): "2 of 9 chunks were not seen", (5, "Cedar"): "cut"},
        prompts="single",
    )
    return MadeRun(facts, results, EVERYTHING - {"baseline"}, "Kind")


def of_close_labels(*, talks: int = 0) -> MadeRun:
    """People who never say something quite different from the judge."""
    chance = random.Random(13)
    results = []
    for row in range(2, 34):
        for bot in FIVE:
            base = plain_result(row, bot, round(0.2 + 0.6 * chance.random(), 2))
            human = {
                name: round((base.scores[name].value or 0) + 0.3 * chance.random() - 0.15, 2)
                for name in METRIC_LABELS
            }
            talk = f"talk {row % talks}" if talks else ""
            results.append(replace(base, case=replace(base.case, human=human, conversation=talk)))
    return MadeRun(facts_of(FIVE, 32, has_labels=True), results)


EVERYTHING = frozenset(("slice_by", "side_by_side", "evidence", "baseline"))
TWO, THREE = ("Atlas", "Birch"), ("Atlas", "Birch", "Cedar")
FIVE = (*THREE, "Dune", "Elm")
LOOKS_TAKEN = (PlannedLook(4, 0.01), PlannedLook(7, 0.05))
OFFLINE = {"is_proxy": True, "judge": "offline judge", "thresholds_from": "the defaults"}


def with_everything() -> MadeRun:
    past = past_run(made_results(2, 0.15, 44), judge=FACTS.judge)
    return MadeRun(FACTS, made_results(1), EVERYTHING, "Topic", past)


def since_another_judge() -> MadeRun:
    past = past_run(made_results(3, 0.1, 20), judge="another judge")
    return MadeRun(replace(FACTS, rows=20), made_results(3, rows=20), frozenset(("baseline",)), past=past)


def since_an_embedding() -> MadeRun:
    """By an offline judge, after one that compared meanings as well."""
    past = past_run(made_results(3, 0.1, 20), judge="offline judge with an embedding")
    facts = replace(FACTS, rows=20, judge="offline judge", is_proxy=True, prompts="")
    return MadeRun(facts, made_results(3, rows=20), frozenset(("baseline",)), past=past)


def since_other_metrics(*, has_more: bool) -> MadeRun:
    """Only one of the two runs has scores of faithfulness."""
    whole = [plain_result(row, bot, round(0.5 + 0.02 * (row % 7), 2)) for row in range(2, 10) for bot in TWO]
    none = Score.not_applicable("faithfulness", "it was not asked for")
    part = [result_of(each.case, ({**each.scores, "faithfulness": none}).values()) for each in whole]
    then, now = (part, whole) if has_more else (whole, part)
    facts = facts_of(TWO, 8, diagnostics=False)
    return MadeRun(facts, now, frozenset(("baseline",)), past=past_run(then, judge=facts.judge))


def with_a_history() -> MadeRun:
    past = past_run(made_results(2, 0.15, 44), judge=FACTS.judge)
    return MadeRun(replace(FACTS, rubric=""), made_results(4), frozenset(("history",)), past=past, days=5)


def of_equal_bots(*values: float, **known: Any) -> MadeRun:
    bots = dict(zip(FIVE, values, strict=False))
    results = [plain_result(row, bot, value) for row in range(2, 9) for bot, value in bots.items()]
    return MadeRun(facts_of([*bots], 7, **known), results)


RUNS: Mapping[str, Callable[[], MadeRun]] = {
    "everything at once": with_everything,
    "a baseline of another judge": since_another_judge,
    "a baseline of a judge with an embedding": since_an_embedding,
    "a baseline with more metrics": lambda: since_other_metrics(has_more=False),
    "a baseline with fewer metrics": lambda: since_other_metrics(has_more=True),
    "with a history": with_a_history,
    "latency and cost": lambda: spending(26, Atlas=0.004, Birch=0.0012),
    "latency and cost of few rows": lambda: spending(4, Atlas=0.004, Birch=0.0),
    "one bot, stopped": of_one_bot,
    "fourteen bots": of_many_bots,
    "other metrics": of_other_metrics,
    "a bot with other metrics behind others": of_a_bare_bot_behind,
    "retrieval": of_retrieval,
    "several files": of_several_files,
    "labels close to the scores": of_close_labels,
    "labels close to the scores in conversations": lambda: of_close_labels(talks=12),
    "equal bots": lambda: of_equal_bots(0.7, 0.7, 0.7, **OFFLINE),
    "two equal bots": lambda: of_equal_bots(0.7, 0.7, looks=LOOKS_TAKEN, looks_taken=1),
    "two equal bots of three": lambda: of_equal_bots(0.7, 0.6, 0.7),
    "stopped as planned": lambda: of_equal_bots(0.7, 0.69, looks=LOOKS_TAKEN, looks_taken=1),
    "pairs of two bots": lambda: in_pairs(TWO, 40, ALL_PAIRS),
    "pairs of three bots with labels": lambda: in_pairs(THREE, 60, ALL_PAIRS, seed=2, raters=("Ada", "Ben")),
    "pairs with the labels of one": lambda: in_pairs(TWO, 40, ALL_PAIRS, seed=4, raters=("Ada",)),
    "pairs in conversations": lambda: in_pairs(THREE, 40, ALL_PAIRS, seed=3, raters=("Ada",), talks=8),
    "pairs in few conversations": lambda: in_pairs(TWO, 20, ALL_PAIRS, seed=3, raters=("Ada",), talks=3),
    "few pairs": lambda: in_pairs(THREE, 4, ALL_PAIRS, seed=5, raters=("Ada",)),
    "pairs in a matching": lambda: in_pairs(FIVE, 60, MATCHING, seed=6),
    "pairs in a large matching": lambda: in_pairs(FIVE, 200, MATCHING, seed=9),
    "pairs of a matching in conversations": lambda: in_pairs(FIVE, 40, MATCHING, seed=6, talks=9),
    "a matching without pairs": lambda: of_equal_bots(0.7, 0.6, 0.5, head_to_head=MATCHING),
    "pairs in a small matching": lambda: in_pairs(FIVE, 5, MATCHING, seed=7, raters=("Ada", "Ben")),
    "pairs of a judge that prefers what is first": lambda: in_pairs(THREE, 30, ALL_PAIRS, seed=8, first=0.6),
    "pairs that contradict RQS": lambda: in_pairs(TWO, 30, ALL_PAIRS, seed=3, skill=0.9, turned=True),
    "pairs that say more than RQS": lambda: in_pairs(
        TWO, 30, ALL_PAIRS, seed=12, skill=0.9, turned=True, raters=("Ada",)
    ),
    "a matching against RQS": lambda: in_pairs(FIVE, 80, MATCHING, skill=0.2, turned=True),
    "pairs with a history": lambda: in_pairs((*FIVE, "Fir", "Gum"), 9, ALL_PAIRS, skill=0.14, days=5),
    "a matching by such a judge": lambda: in_pairs(FIVE, 30, MATCHING, seed=8, first=0.6),
}


# In words


def with_history(run: MadeRun, summary: Summary, findings: Findings) -> Findings:
    """Each earlier run was a little different: its judge, its bots, and how far it came."""
    if not run.days:
        return findings
    now = run_of("now", "hash", run.facts, summary, findings, "day 1")
    runs = [
        replace(
            now,
            id=f"day {day}",
            started=now.started - timedelta(days=day),
            changes=findings.changes or (),
            **changes,
        )
        for day, changes in zip(
            range(run.days, 0, -1),
            ({"judge": "another"}, {"bots": now.bots[1:]}, {"partial": "stopped"}, {}, {}),
            strict=True,
        )
    ]
    return replace(
        findings, history=History(Path("past"), (*runs, replace(now, changes=findings.changes or ())))
    )


def told(run: MadeRun) -> Iterator[str]:
    """All that is said of a run."""
    facts = run.facts
    tallies = Tallies(facts, run.slice_by, run.past)
    for each in run.results:
        tallies.add(each)
    summary = tallies.summary()
    findings = with_history(run, summary, tallies.findings(summary))
    lines: list[str] = []
    RunOutcome(summary, findings, facts, ()).tell(lambda line="", **look: lines.append(line), run.past)
    yield from lines
    for bot in facts.bots:
        yield f"{bot}: {verdict_on(bot, facts, summary, findings)}"
    yield from details(facts, summary, ("a sentence on the report",))
    gates = [*evaluate(GATES, summary, GateOn.INTERVAL, 0.9), *evaluate(GATES, summary, GateOn.MEAN, 0.5)]
    if facts.spent_units:
        gates += [
            *evaluate(UPPER, summary, GateOn.INTERVAL, 0.9),
            *evaluate(UPPER, summary, GateOn.MEAN, 0.5),
        ]
    if run.past:
        gates += regression_gates(findings, facts.bots, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        path = write_markdown(Path(folder) / "run.md", facts, summary, findings, gates, "before.json")
        yield from path.read_text(encoding="utf-8").splitlines()
    finished = FinishedRun(facts, summary, findings)
    for table in report_tables(facts, run.asked):
        yield from table_lines(table, finished, run.results)


def table_lines(table: AnyTable, run: FinishedRun, results: Sequence[CaseResult]) -> Iterator[str]:
    yield f"[{table.name}] {table.header_height:g} / {table.line_height:g}, {table.frozen} in sight"
    notes: Sequence[str] = ()
    if isinstance(table, ReportTable):
        columns, items, notes = table.columns(run), [*table.lines(run)], table.notes(run)
    else:
        assert isinstance(table, StreamedTable)
        columns, lines = table.columns(run.facts), table.lines(run.facts)
        items = [item for each in (*results, None) for item in lines(each)]
    yield " ".join(map(shape_of, columns))
    shown = [[column.header for column in columns]]
    shown += [[cell_words(column.cell(item)) for column in columns] for item in items[:MOST_LINES]]
    yield from (" | ".join(cells) for cells in shown)
    if len(items) > MOST_LINES:
        yield f"… {len(items)} lines"
    if counts := [column.count for column in columns if column.count]:
        of_lines = (" ".join(str(count(item)) for count in counts) for item in items[:MOST_LINES])
        yield f"counts: {' | '.join(of_lines)}"
    yield from notes


def shape_of(column: Column[Any]) -> str:
    """How wide a column is, and what is unusual of it."""
    marks = (column.is_hidden, "hidden"), (column.is_folded, "folded"), (column.count is not None, "counted")
    look = "" if column.header_look is Look.NUMBER_HEADER else column.header_look.name.lower()
    named = *(mark for is_so, mark in marks if is_so), column.threshold, look
    return "/".join((f"{column.width:g}", *filter(None, named)))


def cell_words(cell: Cell) -> str:
    """What a cell shows, how it looks if that is not plain, and what its note says."""
    value = (
        f"{cell.value:.6g}"
        if isinstance(cell.value, float)
        else str("" if cell.value is None else cell.value)
    )
    over = "" if cell.over is None else f" ({cell.over})"
    look = "" if cell.look in PLAIN else f" <{cell.look.name.lower()}>"
    note = f" {{{cell.note.text}}}" if cell.note else ""
    return " ".join(f"{value}{over}{look}{note}".split())


SHOWN = (
    "everything at once", "latency and cost", "one bot, stopped", "fourteen bots", "pairs of three bots with labels",
    "pairs in a matching", "retrieval",
)  # fmt: skip
"""Runs whose workbook and page are looked at."""


def looks(run: MadeRun, folder: Path) -> Iterator[str]:
    """How the workbook looks, tag by tag, and the page without what only a script shows."""
    facts = run.facts
    book = ExcelReport(folder / "run.xlsx", facts, run.asked)
    page = HtmlReport(folder / "run.html", facts, {}, run.asked, megabytes=1, slice_by=run.slice_by)
    tallies = Tallies(facts, run.slice_by, run.past)
    for each in run.results:
        for output in (book, page, tallies):
            output.add(each)
    summary = tallies.summary()
    findings = tallies.findings(summary)
    book.finish(summary, findings, facts)
    page.finish(summary, findings, facts)
    for part, look in look_of(folder).items():
        yield f"[{part}]"
        yield from (f"{number} {tag}" for tag, number in look.items())
    html = (folder / "run.html").read_text(encoding="utf-8")
    html = re.sub(r"(?s)<(script|style)\b[^>]*>.*?</\1>|sha256-[\w+/=]+", "", html)
    first, *articles = html.split("<article")
    few = "<article".join(
        [first, *articles[:MOST_ARTICLES], *(each.partition("</article>")[2] for each in articles[-1:])]
    )
    yield from re.sub(r">\s*<", ">\n<", few).splitlines()


def recorded(path: Path) -> dict[str, str]:
    parts = f"\n{path.read_text(encoding='utf-8')}".split("\n=== ")[1:]
    return {name: text.strip("\n") for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_comes_to_is_what_it_was(name: str) -> None:
    assert "\n".join(told(RUNS[name]())).strip("\n").splitlines() == recorded(RECORDED)[name].splitlines()


@pytest.mark.parametrize("name", SHOWN)
def test_workbook_and_page_of_a_run_look_as_they_did(name: str, tmp_path: Path) -> None:
    assert (
        "\n".join(looks(RUNS[name](), tmp_path)).strip("\n").splitlines()
        == recorded(LOOKS)[name].splitlines()
    )


def looks_of(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join([f"=== {name}", *looks(RUNS[name](), Path(folder))]).rstrip("\n")


if __name__ == "__main__":
    parts = ["\n".join([f"=== {name}", *told(run())]).rstrip("\n") for name, run in RUNS.items()]
    RECORDED.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    LOOKS.write_text("\n\n".join(map(looks_of, SHOWN)) + "\n", encoding="utf-8")
