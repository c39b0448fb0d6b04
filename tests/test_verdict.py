"""The words of the verdict: every case that there is, made from data; its lines and the cells of its bots are recorded.

Run as a script to record them again, and read the difference.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from report_cases import bare_result, facts_of, failed_result, plain_result, results_of, summary_of

from rag_eval.cli.outcome import leaderboard_lines
from rag_eval.records import ALL_PAIRS, CaseResult, PlannedLook, RunFacts
from rag_eval.results.findings import Findings, find
from rag_eval.results.head_to_head import PairTally
from rag_eval.results.paired import Change, CommonQueries, Direction
from rag_eval.results.summary import Summary
from rag_eval.results.verdict import TOO_CLOSE, RunVerdict, verdict, verdict_on
from rag_eval.texts.display import decimals, digits_beside, digits_that_differ

RECORDED = Path(__file__).with_name("verdicts.txt")
Values = dict[str, list[float | None]]
OFFLINE = {"judge": "offline judge", "is_proxy": True}
LEAD: list[float | None] = [0.9, 0.8] * 15
BEHIND: list[float | None] = [0.5, 0.6] * 15
NOISE = [0.31, 0.93, 0.52, 0.77, 0.12, 0.88, 0.64, 0.45, 0.99, 0.23]


def said(
    results: Sequence[CaseResult], facts: RunFacts, **found: object
) -> tuple[RunVerdict, Summary, Findings]:
    summary = summary_of(results, facts)
    findings = replace(find(summary, None, None, facts.looks, facts.rows), **found)  # type: ignore[arg-type]
    return verdict(facts, summary, findings), summary, findings


def noisy(shift: float, rows: int = 20, turn: int = 0) -> list[float | None]:
    """Values that differ from row to row by more than the bots do."""
    return [max(0.0, min(1.0, NOISE[(row + turn) % 10] + shift)) for row in range(rows)]


def of_values(name: str, values: Values, code: str = "truncated", **changes: object) -> Iterator[str]:
    rows = len(next(iter(values.values())))
    yield from told(name, results_of(values, code), facts_of(list(values), rows, **changes))


def told(name: str, results: Sequence[CaseResult], facts: RunFacts, **found: object) -> Iterator[str]:
    words, summary, findings = said(results, facts, **found)
    yield f"## {name}"
    yield words.decision
    yield words.numbers
    yield from words.limits
    for bot in facts.bots:
        yield f"   {' '.join(bot.split())}: {verdict_on(bot, facts, summary, findings)}"
    yield ""


def planned(name: str, values: Values, **changes: object) -> Iterator[str]:
    """Of a run over 60 rows that came to fewer."""
    yield from told(name, results_of(values, "truncated"), facts_of(list(values), 60, **changes))


def spending(name: str, values: Values, spent: dict[str, Values], **changes: object) -> Iterator[str]:
    """`spent` are latencies or costs, by bot and row."""
    rows: Counter[str] = Counter()
    results = []
    for each in results_of(values):
        row = rows[each.case.bot]
        rows[each.case.bot] += 1
        its = {key: value for key, of in spent.items() if (value := of[each.case.bot][row]) is not None}
        results.append(replace(each, case=replace(each.case, spent=its)))
    facts = facts_of(list(values), len(next(iter(values.values()))), **changes)
    yield from told(name, results, facts)


def change(bot: str, difference: float, direction: Direction, common: CommonQueries) -> Change:
    return Change(
        bot=bot, name="rqs", before=0.5, now=0.5 + difference, queries=common.both,
        common=common, interval=None, direction=direction,
    )  # fmt: skip


def cases() -> Iterator[str]:
    """Every case, a few lines each."""
    two: Values = {"Atlas": LEAD, "Birch": BEHIND}
    close: Values = {"Atlas": noisy(0.02), "Birch": noisy(0, turn=3)}
    yield from of_values("two bots, significant", two)
    yield from of_values("two bots, not significant", {"Atlas": noisy(0), "Birch": noisy(-0.15, turn=3)})
    yield from of_values("offline judge, small lead", close, **OFFLINE)
    yield from of_values("offline judge, large lead", two, **OFFLINE)
    yield from of_values("equal to two decimals", {"Atlas": noisy(0.0004), "Birch": noisy(0, turn=3)})
    yield from of_values("a small lead that is significant", {
        "Atlas": [0.704 + row % 3 / 1000 for row in range(40)], "Birch": [0.7] * 40,
    })  # fmt: skip
    yield from of_values("a lead that two decimals contradict", {"Atlas": [0.694] * 6, "Birch": [0.536] * 6})
    yield from of_values("a tie", {"Atlas": LEAD, "Birch": LEAD})
    yield from of_values("three bots, two share the first place", {"A": LEAD, "B": LEAD, "C": BEHIND})
    yield from of_values("three bots that all tie", {"A": LEAD, "B": LEAD, "C": LEAD})
    five: Values = {"Atlas": LEAD, **dict.fromkeys(("Birch", "Cedar", "Elm", "Fir"), BEHIND)}
    yield from of_values("the best of five", five)
    some: Values = {
        "Atlas": noisy(0),
        "Birch": noisy(-0.04, turn=3),
        "Cedar": noisy(-0.06, turn=5),
        "Elm": [0.05] * 20,
    }
    yield from of_values("the best of four, two may be as good", some)
    yield from of_values("the best of four, three may be as good", {**some, "Elm": noisy(-0.05, turn=7)})
    many: Values = {f"Bot{n:02}": noisy(-0.01 * n, turn=n) for n in range(12)}
    yield from of_values("twelve bots, none beaten", many)
    yield from of_values("twelve bots, offline judge", many, **OFFLINE)
    yield from of_values("one bot", {"Atlas": [*LEAD[:17], 0.1, 0.2, 0.25]})
    yield from of_values("one bot that always passes, offline judge", {"Atlas": LEAD}, **OFFLINE)
    yield from of_values("one bot below its thresholds", {"Atlas": [0.1, 0.29, 0.2] * 7})
    yield from of_values("one bot, few rows", {"Atlas": [0.5, 0.9]})
    yield from of_values("one bot, some not judged", {"Atlas": [*LEAD[:10], None, None]}, "timeout")
    unmeasured = [replace(each, scores={}) for each in results_of({"Atlas": LEAD})]
    yield from told("one bot without scores of metrics", unmeasured, facts_of(["Atlas"], 30))
    yield from of_values("too few rows", {"Atlas": [0.9, 0.8, 0.9], "Birch": [0.4, 0.5, 0.4]})
    yield from of_values("few rows", {"Atlas": LEAD[:8], "Birch": BEHIND[:8]})
    yield from of_values("unjudged cases could change it", {
        "Atlas": [*LEAD[:10], *[None] * 5], "Birch": [*BEHIND[:10], *[0.7] * 5],
    }, "timeout")  # fmt: skip
    yield from of_values(
        "content failures differ", {"Atlas": [*LEAD, None], "Birch": [*BEHIND, 0.6]}, "refused"
    )
    yield from of_values("a tie that unjudged cases could end", {"Atlas": [0.5, None], "Birch": [0.5, None]})
    yield from of_values("only one of two ranked", {"Atlas": LEAD, "Birch": [None] * 30}, "timeout")
    yield from of_values("nothing judged", {"Atlas": [None] * 3, "Birch": [None] * 3}, "unauthorized")
    yield from of_values("no common query", {"Atlas": [0.5, None], "Birch": [None, 0.5]}, "timeout")
    yield from of_values("few are compared", {"A": noisy(0), "B": noisy(-0.1), "C": [0.7, 0.6, *[None] * 18]})
    yield from of_values("rows left out", two, cut_rows=420)
    partial = {"partial": "--max-calls 100 is reached"}
    stopped: Values = {"Atlas": [*LEAD[:12], *[None] * 8], "Birch": [*BEHIND[:12], *[None] * 8]}
    yield from of_values("stopped", stopped, "not_run", **partial)
    yield from of_values("stopped before anything was judged", {"Atlas": [None] * 4}, "not_run", **partial)
    yield from of_values("stopped when all was judged", two, **partial)
    yield from of_values(
        "stopped within the last row", {"Atlas": LEAD, "Birch": [*BEHIND[:29], None]}, "not_run", **partial
    )
    looks = {"looks": (PlannedLook(30, 0.0024), PlannedLook(60, 0.05)), "looks_taken": 1}
    yield from planned("clear at a look", two, **looks)
    yield from planned("clear at a look, five bots", five, **looks)
    yield from planned("gates clear at a look, one bot", {"Atlas": LEAD}, **looks)
    yield from planned(
        "not clear at a look by other weights",
        close | {"Atlas": noisy(0.02, 30), "Birch": noisy(0, 30, 3)},
        **looks,
    )
    at_end = {"looks": (PlannedLook(12, 0.0024), PlannedLook(30, 0.05)), "looks_taken": 2}
    yield from of_values("looks to the end", two, **at_end)
    bare = [bare_result(row, "Bare", value or 0) for row, value in enumerate(LEAD, 2)]
    full = [plain_result(row, "Full", value or 0) for row, value in enumerate(BEHIND, 2)]
    yield from told("other metrics", [*bare, *full], facts_of(("Bare", "Full"), 30))
    third = [bare_result(row, "Third", 0.2) for row in range(2, 32)]
    yield from told(
        "other metrics, three bots", [*bare, *full, *third], facts_of(("Bare", "Full", "Third"), 30)
    )
    common = CommonQueries(before=20, now=30, both=18)
    changes = (
        change("Atlas", 0.1, Direction.BETTER, common), change("Birch", -0.1, Direction.WORSE, common),
    )  # fmt: skip
    baseline = {"changes": changes, "common": {"Atlas": common, "Birch": common}}
    yield from told("with a baseline", results_of(two), facts_of(list(two), 30), **baseline)
    same = {**baseline, "changes": (change("Atlas", 0.0, Direction.UNDECIDED, common),)}
    yield from told("with a baseline, no change", results_of(two), facts_of(list(two), 30), **same)
    other = {**baseline, "not_comparable": "not comparable: the baseline was judged by another judge"}
    yield from told("with another baseline", results_of(two), facts_of(list(two), 30), **other)
    alike: Values = {"Atlas": noisy(0), "Birch": noisy(-0.15, turn=3)}
    dear: list[float | None] = [0.004, 0.005] * 10
    cheap: list[float | None] = [0.001, 0.00125] * 10
    yield from spending("cost known, a quarter", alike, {"cost": {"Atlas": dear, "Birch": cheap}})
    yield from spending(
        "cost known, but not of all queries",
        alike,
        {"cost": {"Atlas": [*dear[:18], None, None], "Birch": cheap}},
    )
    yield from spending(
        "cost known, and the best bot is cheaper", alike, {"cost": {"Atlas": cheap, "Birch": dear}}
    )
    yield from spending(
        "cost known, and the cheaper bot is worse", two, {"cost": {"Atlas": dear * 2, "Birch": cheap * 2}}
    )
    random_costs = {"Atlas": noisy(0, turn=1), "Birch": noisy(-0.05, turn=4)}
    yield from spending("cost known, no significant difference", alike, {"cost": random_costs})
    few = {bot: its[:4] for bot, its in alike.items()}
    yield from spending("cost known, too few rows", few, {"cost": {"Atlas": dear, "Birch": cheap}})
    yield from spending(
        "cost known, a tie",
        {"Atlas": LEAD[:20], "Birch": LEAD[:20]},
        {"cost": {"Atlas": dear, "Birch": [0.0] * 20}},
    )
    doubtful: Values = {"Atlas": [*LEAD[:10], *[None] * 5], "Birch": [*BEHIND[:10], *[0.7] * 5]}
    yield from spending(
        "cost known, and unjudged cases could change it", doubtful, {"cost": {"Atlas": dear, "Birch": cheap}}
    )
    yield from spending(
        "latency known", alike, {"latency": {"Atlas": [1000.0] * 20, "Birch": [430.0, 450.0] * 10}}
    )
    three = {"cost": {"Atlas": dear, "Birch": [0.003] * 20, "Cedar": [0.002] * 20, "Elm": cheap}}
    yield from spending("cost known of four bots", some, three, **OFFLINE)
    long = "A bot's name that goes on and on, with a full stop. And more than sixty characters of it"
    yield from of_values("long names", {long: LEAD, "Bär & Söhne\nGmbH": BEHIND})
    yield from of_values("names in Japanese", {"アトラス": noisy(0), "バーチ": noisy(-0.15, turn=3)})


@pytest.mark.slow
def test_the_words_of_every_case_are_what_they_were() -> None:
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    assert [*difflib.unified_diff(recorded, [*cases()], "recorded", "made", n=0, lineterm="")] == []


def test_a_bot_too_close_for_the_offline_judge_is_not_among_those_that_are_beaten() -> None:
    values = {"Atlas": [0.7] * 16, "Birch": [0.69] * 16, "Cedar": [0.5] * 16}
    lines = list(told("", results_of(values), facts_of(list(values), 16, **OFFLINE)))
    assert lines[1] == "Too close for the offline judge to decide: Atlas and Birch."
    assert lines[2].endswith("; better than 1 of the 2 others.")
    assert "   Atlas: better than 1 of the 2 others" in lines
    values["Cedar"] = [0.68] * 16
    lines = list(told("", results_of(values), facts_of(list(values), 16, **OFFLINE)))
    assert "   Atlas: too close to decide" in lines


def test_five_hundredths_are_not_too_close_for_the_offline_judge() -> None:
    values: Values = {"Atlas": [0.7] * 6, "Birch": [0.69] * 6, "Cedar": [0.65] * 6}
    facts = facts_of(list(values), 6, **OFFLINE)
    _, summary, findings = said(results_of(values), facts)
    comparison = findings.comparison
    assert comparison is not None
    birch, cedar = comparison.rivals
    for rivals, told in (
        ((birch, replace(cedar, difference=TOO_CLOSE)), [True, False]),
        ((replace(birch, difference=TOO_CLOSE), cedar), [False, False]),
    ):
        found = replace(findings, comparison=replace(comparison, rivals=rivals))
        cells = [verdict_on(rival.bot, facts, summary, found) for rival in rivals]
        assert [cell.endswith("too close") for cell in cells] == told


@pytest.mark.parametrize("atlas", [LEAD, [None] * 30], ids=["one is ranked", "none is ranked"])
def test_pairs_are_in_the_verdict_only_if_two_bots_are_ranked(atlas: list[float | None]) -> None:
    values: Values = {"Atlas": atlas, "Birch": [None] * 30}
    pairs = PairTally(list(values), ALL_PAIRS).head_to_head()
    words, _, _ = said(results_of(values, "timeout"), facts_of(list(values), 30), head_to_head=pairs)
    assert words.side_by_side == ""


def _recorded() -> Iterator[tuple[str, str, list[str]]]:
    """Name of a case, its decision, and the cells of its bots, with an X in place of a bot's name."""
    for block in RECORDED.read_text(encoding="utf-8").split("## ")[1:]:
        name, decision, *rest = block.splitlines()
        pairs = [line.split(": ", 1) for line in rest if line.startswith("   ")]
        for bot, _ in pairs:
            decision = re.sub(rf"{bot.strip()}\b", "X", decision)
        names = "|".join(rf"{bot.strip()}\b" for bot, _ in pairs)
        yield name, decision, [re.sub(names, "X", cell) for _, cell in pairs]


WORDED = [case for case in _recorded() if case[0] != "long names"]


@pytest.mark.parametrize(("name", "decision", "cells"), WORDED)
def test_decision_and_cells_are_short(name: str, decision: str, cells: list[str]) -> None:
    """At most 12 words, without statistics, and at most 8; names do not count."""
    assert len([word for word in decision.split() if word.strip(".,;") != "X"]) <= 12
    assert not re.search(r"CI|\d\.\d|signific|RQS 0", decision)
    assert cells
    for cell in cells:
        assert len([word for word in cell.split() if word.strip(".,;") != "X"]) <= 8, cell


@pytest.mark.parametrize("length", [61, 150])
def test_no_name_is_cut_in_the_decision(length: int) -> None:
    values: Values = {"A" * length: LEAD, "B" * length: BEHIND}
    words, _, _ = said(results_of(values), facts_of(list(values), 30))
    assert words.decision == f"{'A' * length} is better than {'B' * length}."
    assert "…" not in words.decision


@pytest.mark.parametrize(
    ("means", "digits"),
    [
        ([0.6, 0.5], 2),
        ([0.502, 0.501], 3),
        ([0.9, 0.5002, 0.5001], 3),
        ([0.50002, 0.50001], 2),
        ([0.6922, 0.5368], 3),  # 0.69 and 0.54 would seem to differ by 0.15, and the lead is 0.16
        ([0.5], 2),
    ],
)
def test_rqs_have_the_decimals_that_tell_them_apart(means: list[float], digits: int) -> None:
    values: Values = {f"Bot{number}": [mean] * 6 for number, mean in enumerate(means)}
    facts = facts_of(list(values), 6)
    words, summary, _ = said(results_of(values), facts)
    assert words.digits == digits
    for line, mean in zip(leaderboard_lines(summary, words.digits)[1:], means, strict=True):
        assert f"  {decimals(mean, digits)}  " in line


@pytest.mark.parametrize(
    ("threshold", "value", "digits"),
    [
        (0.62, 0.6196, 3),
        (0.62, 0.62, 2),
        (0.62, 0.614, 2),
        (0.62, 0.6249, 2),
        (0.625, 0.6249, 2),
        (0.625, 0.6251, 2),
    ],
)
def test_a_score_has_the_decimals_that_agree_with_its_colour(
    threshold: float, value: float, digits: int
) -> None:
    assert digits_beside(threshold, value) == digits


def test_a_number_that_is_not_0_is_not_shown_as_0() -> None:
    assert [digits_that_differ([(0.0, number)]) for number in (0.1, -0.004, 0.0004, 0.0, 1e-9)] == [
        2,
        3,
        4,
        2,
        2,
    ]


def test_failed_results_are_counted_with_their_reasons() -> None:
    results = [
        *results_of({"A": LEAD[:10], "B": BEHIND[:10]}),
        failed_result(12, "A", "timeout"),
        plain_result(12, "B"),
    ]
    words, _, _ = said(results, facts_of("AB", 11))
    assert words.limits[1].startswith("1 case was not judged (timeout)")


if __name__ == "__main__":
    RECORDED.write_text("\n".join(cases()) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("blocked", "doubt"), [(2, False), (3, True), (5, True)])
def test_content_failures_of_more_than_a_hundredth_of_the_queries_are_a_doubt(
    blocked: int, doubt: bool
) -> None:
    values = [0.8 + 0.01 * (row % 9) for row in range(200)]
    worse: list[float | None] = [value - 0.4 for value in values]
    worse[:blocked] = [None] * blocked
    facts = facts_of("AB", 200)
    found = find(summary_of(results_of({"A": values, "B": worse}, "blocked_by_filter"), facts))
    assert found.comparison
    (rival,) = found.comparison.rivals
    assert rival.doubt == (f"content failures differ: 0 and {blocked}" if doubt else "")
