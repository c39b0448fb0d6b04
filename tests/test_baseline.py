"""Changes since an earlier run: on matched queries, claimed only when chance would hardly make them."""

import json
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from conftest import Run, azure, read_boxes, read_sheet
from fake_judge import FakeJudge
from files import write_sheets, write_table
from jsonschema import Draft202012Validator
from openpyxl import load_workbook
from openpyxl.worksheet.worksheet import Worksheet
from report_cases import facts_of
from test_outputs import SCHEMA
from test_scoring import Value, flat, result

from rag_eval.errors import InputError
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS
from rag_eval.records import METRIC_LABELS
from rag_eval.report.baseline_sheet import change_lines
from rag_eval.results.baseline import NAMES, BaselineComparison, PastRun, read_past_run
from rag_eval.results.findings import Findings
from rag_eval.results.intervals import Interval, bootstrap_mean_interval
from rag_eval.results.paired import Change, CommonQueries, Direction, queries_words
from rag_eval.results.summary import RQS

THIS_RUN = facts_of("AB", 12, weights={})  # so that any RQS is one of its kind
FACTS = [f"The library opens at {n} in the morning on day {n}." for n in range(8, 20)]


def past(values: list[float], names: tuple[str, ...] = (RQS, "faithfulness")) -> PastRun:
    return PastRun(
        "old.xlsx", {(f"q{row}", "gt", "A", 0): dict.fromkeys(names, v) for row, v in enumerate(values, 2)}
    )


def compared(before: list[float], now: list[Value]) -> BaselineComparison:
    comparison = BaselineComparison(past(before), THIS_RUN)
    for row, value in enumerate(now, 2):
        comparison.add(result("A", row, flat(value)))
    return comparison


@pytest.mark.parametrize(
    ("before", "now", "direction"),
    [
        ([0.5] * 12, [0.8] * 12, Direction.BETTER),
        ([0.8] * 12, [0.5] * 12, Direction.WORSE),
        ([0.5, 0.7] * 6, [0.5, 0.7] * 6, Direction.SAME),
        ([0.5, 0.7] * 6, [0.7, 0.5] * 6, Direction.UNDECIDED),
        ([0.8] * 2, [0.5] * 2, Direction.UNDECIDED),  # two queries decide nothing
    ],
)
def test_a_change_is_claimed_only_when_it_is_sure(
    before: list[float], now: list[Value], direction: Direction
) -> None:
    (rqs, faithfulness) = compared(before, now).changes()
    assert (rqs.name, rqs.direction, faithfulness.name) == (RQS, direction, "faithfulness")
    assert rqs.before == pytest.approx(sum(before) / len(before))
    assert rqs.queries == len(before)


def test_only_queries_with_a_value_in_both_runs_are_compared() -> None:
    (rqs, _) = compared([0.5, 0.6, 0.7], [0.9, "failed", 0.8, 0.1]).changes()
    assert (rqs.queries, rqs.before, rqs.now) == (2, pytest.approx(0.6), pytest.approx(0.85))


def test_queries_that_differ_are_not_matched_and_it_is_said() -> None:
    comparison = BaselineComparison(PastRun("old.xlsx", {("another", "gt", "A", 0): {RQS: 0.5}}), THIS_RUN)
    comparison.add(result("A", 2, flat(0.5)))
    assert comparison.changes() == ()
    assert change_lines(Findings({}, {}, None, changes=()), THIS_RUN, "old.xlsx") == [
        "Compared with old.xlsx: no query is in both runs equally often."
    ]


@pytest.mark.parametrize(
    ("before", "both", "why"),
    [
        (0, 0, "no bot is in both runs"),  # as when the only bot has another name
        (12, 0, "no query is in both runs equally often"),
        (12, 12, "no query has a score in both runs"),
    ],
)
def test_why_nothing_is_compared(before: int, both: int, why: str) -> None:
    common = {"A": CommonQueries(before=before, now=12, both=both)}
    lines = change_lines(Findings({}, {}, None, changes=(), common=common), THIS_RUN, "old.xlsx")
    assert lines == [f"Compared with old.xlsx: {why}."]


def test_scores_that_all_failed_are_not_taken_for_other_weights_or_metrics() -> None:
    comparison = compared([0.5] * 12, ["failed"] * 12)
    assert comparison.changes() == ()
    sentence = "Not compared, because no query has a score of it in both runs: RQS, Faithfulness."
    assert sentence in comparison.differences()
    assert not [each for each in comparison.differences() if "differ from those" in each or "only: F" in each]


def test_where_not_all_lines_fit_what_changed_for_certain_comes_first() -> None:
    """For a pull request: eight bots without a change may not hide the one that is worse."""
    comparison = BaselineComparison(
        PastRun(
            "old.xlsx", {(f"q{row}", "gt", bot, 0): {RQS: 0.5} for row in range(2, 14) for bot in "ABCD"}
        ),
        facts_of("ABCDE", 12, weights={}),
    )
    for row in range(2, 14):
        for bot, now in {"A": 0.5, "B": 0.9, "C": 0.1, "D": 0.5, "E": 0.5}.items():
            comparison.add(result(bot, row, flat(now)))
    findings = Findings({}, {}, None, changes=comparison.changes(), beside_changes=comparison.differences())

    def told(most: int | None) -> list[str]:
        return [line.partition(":")[0] for line in change_lines(findings, THIS_RUN, "old.xlsx", most)[1:]]

    beside = ["In this run, but not in the baseline", "Judged in this run only"]
    assert told(None) == told(6) == ["A", "B", "C", "D", *beside]
    assert told(5) == ["C", "B", "A", "D", *beside]


@pytest.mark.parametrize(
    ("before", "now", "low", "high", "told"),
    [
        (0.5, 0.553, 0.0029, 0.153, "+0.053 (95% CI +0.003 to +0.153)"),  # "0.00" would not be better
        (0.5, 0.5, 0.0, 0.0, "0.00 (95% CI 0.00 to 0.00)"),
        (0.5, 0.4, -0.2, -0.1, "−0.10 (95% CI −0.20 to −0.10)"),
    ],
)
def test_no_limit_of_a_change_looks_like_0_that_is_not(
    before: float, now: float, low: float, high: float, told: str
) -> None:
    change = Change(
        bot="A", name=RQS, before=before, now=now, queries=12, common=CommonQueries(before=12, now=12, both=12),
        direction=Direction.BETTER, interval=Interval(low, high),
    )  # fmt: skip
    [_, line] = change_lines(Findings({}, {}, None, changes=(change,)), THIS_RUN, "old.xlsx")
    assert f" now, {told}: " in line


def test_changes_come_in_the_order_of_bots_and_columns() -> None:
    """Also when a bot's first query has no RQS."""
    values = {("q2", "gt", bot, 0): {RQS: 0.5, "faithfulness": 0.5} for bot in "BA"}
    values |= {("q3", "gt", bot, 0): {RQS: 0.5, "faithfulness": 0.5} for bot in "BA"}
    comparison = BaselineComparison(PastRun("old.xlsx", values), THIS_RUN)
    for row, failing in ((2, "B"), (3, "")):
        for bot in "BA":
            scores = (0.6, 0.6, 0.6, "failed", 0.6) if bot == failing else (0.6,) * 5
            comparison.add(result(bot, row, scores))
    assert [(change.bot, change.name) for change in comparison.changes()] == [
        ("B", RQS), ("B", "faithfulness"), ("A", RQS), ("A", "faithfulness")
    ]  # fmt: skip


def test_a_query_asked_three_times_is_matched_in_order() -> None:
    thrice = {("q2", "gt", "A", n): {RQS: value} for n, value in enumerate((0.2, 0.8, 0.5))}
    comparison = BaselineComparison(PastRun("old.xlsx", thrice), THIS_RUN)
    for value in (0.2, 0.8, 0.5):
        comparison.add(result("A", 2, flat(value)))
    (rqs,) = comparison.changes()
    assert (rqs.direction, rqs.queries, rqs.common.now) == (Direction.SAME, 3, 3)


@pytest.mark.parametrize("values", [(0.8,), (0.8, 0.5), (0.2, 0.8, 0.5, 0.1)])
def test_a_query_that_comes_more_often_in_one_of_the_runs_is_not_compared(values: Sequence[float]) -> None:
    """The same answers could be a regression: nothing tells which of the cases are the same."""
    before = {("q2", "gt", "A", n): {RQS: value} for n, value in enumerate((0.2, 0.8, 0.5))}
    comparison = BaselineComparison(
        PastRun("old.xlsx", {**before, ("q3", "gt", "A", 0): {RQS: 0.4}}), THIS_RUN
    )
    for value in values:
        comparison.add(result("A", 2, flat(value)))
    comparison.add(result("A", 3, flat(0.4)))
    (rqs,) = comparison.changes()
    assert (rqs.queries, rqs.common) == (1, CommonQueries(before=4, now=len(values) + 1, both=1))
    told = f"Not compared, because their query occurs another number of times in the baseline: {len(values)} case"
    assert [told in sentence for sentence in comparison.differences()].count(True) == 1


def test_a_query_three_times_in_an_earlier_report_is_three_cases(tmp_path: Path) -> None:
    path = report_of(tmp_path, ["RQS"], *([value] for value in (0.2, 0.8, 0.5)), queries=["q", "q", "q"])
    assert read_past_run(path).values == {
        ("q", "gt", "A", n): {RQS: value} for n, value in enumerate((0.2, 0.8, 0.5))
    }


def report_of(folder: Path, names: list[str], *rows: list[object], queries: list[str] | None = None) -> Path:
    """What an earlier tool wrote: these columns of bot A's queries q0, q1, … in the sheet with its scores."""
    asked = queries or [f"q{number}" for number in range(len(rows))]
    lines = [[query, "gt", "A", *row] for query, row in zip(asked, rows, strict=True)]
    table = [["Query", "Ground Truth", "Bot", *names], *lines]
    return write_sheets(folder / "old.xlsx", {"Per-Query Metrics": table})


TWO_WEIGHTS = {"answer_correctness": 0.6, "faithfulness": 0.4}
THIRDS = [(1 / 3, 0.9), (2 / 3, 0.8), (1.0, 1 / 7), (0.5, 0.75), (3 / 7, 5 / 9), (0.2, 1 / 9)]


def printed(folder: Path, decimals: int, decimals_of_metrics: int, weights: dict[str, float]) -> PastRun:
    rows = [
        [
            round(
                sum(weight * value for weight, value in zip(weights.values(), values, strict=True)), decimals
            ),
            *(round(value, decimals_of_metrics) for value in values),
        ]
        for values in THIRDS
    ]
    return read_past_run(report_of(folder, ["RQS", *(NAMES[name] for name in weights)], *rows))


@pytest.mark.parametrize(("decimals", "of_metrics"), [(17, 17), (4, 17), (4, 4), (3, 17), (2, 2), (17, 3)])
def test_an_rqs_printed_with_few_decimals_is_one_of_these_weights(
    tmp_path: Path, decimals: int, of_metrics: int
) -> None:
    past = printed(tmp_path, decimals, of_metrics, TWO_WEIGHTS)
    assert past.has_rqs_of(TWO_WEIGHTS)
    assert not past.has_rqs_of({"answer_correctness": 0.56, "faithfulness": 0.44})
    rounding = {17: 0.0, 4: 0.00005, 3: 0.0005, 2: 0.005}
    assert past.roundings[RQS] == pytest.approx(rounding[decimals])
    assert past.roundings["faithfulness"] == pytest.approx(rounding[of_metrics])


def test_scores_of_pass_and_fail_are_not_taken_for_rounded_ones(tmp_path: Path) -> None:
    past = read_past_run(report_of(tmp_path, ["RQS", "Faithfulness"], [1, 1], [0.0, 0.0], [1.0, 1.0]))
    assert past.roundings == {**dict.fromkeys(METRIC_LABELS, 0.005), RQS: 0.005}
    assert read_past_run(report_of(tmp_path, ["RQS"])).roundings[RQS] == 0.005


def test_the_rounding_of_the_earlier_report_is_no_change(tmp_path: Path) -> None:
    """Cut off instead of rounded, all would be a little lower then: 20 equal signs, and nothing happened."""
    values = [0.123449 + n / 50 for n in range(20)]
    path = report_of(tmp_path, ["RQS", "Faithfulness"], *([round(v, 4), round(v, 4)] for v in values))
    comparison = BaselineComparison(read_past_run(path), facts_of("A", 20, weights={"faithfulness": 1.0}))
    for number, value in enumerate(values):
        comparison.add(result("A", number, flat(value)))
    assert [change.direction for change in comparison.changes()] == [Direction.SAME] * 2
    assert not any("not compared" in sentence for sentence in comparison.differences())


@pytest.mark.parametrize(("decimals", "rounding"), [(8, 5e-9), (9, 5e-10), (10, 0.0)])
def test_scores_with_ten_decimals_were_not_rounded(tmp_path: Path, decimals: int, rounding: float) -> None:
    past = read_past_run(report_of(tmp_path, ["RQS"], [round(1 / 3, decimals)], [0.5]))
    assert past.roundings[RQS] == pytest.approx(rounding)


def test_a_difference_of_just_the_rounding_is_no_change(tmp_path: Path) -> None:
    path = report_of(tmp_path, ["Faithfulness"], *([0.1] for _ in range(8)), [0.1234])
    comparison = BaselineComparison(read_past_run(path), facts_of("A", 9, weights={"faithfulness": 1.0}))
    for number in range(8):
        comparison.add(result("A", number, flat(0.10005)))  # whose float is a little further from 0.1
    assert [change.direction for change in comparison.changes()] == [Direction.SAME]


def test_a_change_larger_than_the_rounding_is_one(tmp_path: Path) -> None:
    path = report_of(tmp_path, ["RQS", "Faithfulness"], *([0.1234 + n / 100] * 2 for n in range(20)))
    comparison = BaselineComparison(read_past_run(path), facts_of("A", 20, weights={"faithfulness": 1.0}))
    for number in range(20):
        comparison.add(result("A", number, flat(0.12346 + number / 100)))
    assert [change.direction for change in comparison.changes()] == [Direction.BETTER] * 2


@pytest.mark.parametrize(
    ("before", "now", "direction", "queries"),
    [
        ([0.5] * 12 + [0.1], [0.8] * 12 + ["failed"], Direction.BETTER, 0),
        ([0.5] * 12 + [0.9] * 4, [0.8] * 12 + ["failed"] * 4, Direction.UNDECIDED, 4),
        ([0.8] * 12 + [0.1] * 6, [0.5] * 12 + ["failed"] * 6, Direction.UNDECIDED, 6),
        ([0.8] * 12 + [0.9] * 6, [0.5] * 12 + ["failed"] * 6, Direction.WORSE, 0),
        ([0.5] * 12 + [None] * 4, [0.8] * 12 + [0.1] * 4, Direction.UNDECIDED, 4),
        ([0.5] * 12 + [None] * 4, [0.8] * 12 + [1.0] * 4, Direction.BETTER, 0),
        ([0.8] * 12 + [None], [0.5] * 12 + [0.9], Direction.UNDECIDED, 1),
        ([0.5] * 12 + [None] * 9, [0.8] * 12 + ["failed"] * 9, Direction.BETTER, 0),  # in neither of the runs
        ([0.5] * 12 + [0.9] * 9, [0.8] * 12 + [None] * 9, Direction.BETTER, 0),  # it does not apply any more
        ([0.5, 0.7] * 6 + [0.9], [0.7, 0.5] * 6 + ["failed"], Direction.UNDECIDED, 0),
    ],
)
def test_a_change_is_claimed_only_if_it_is_one_whatever_is_missing(
    before: list[float | None], now: list[Value], direction: Direction, queries: int
) -> None:
    """A run in which the bad answers could not be judged is not better."""
    values = {
        (f"q{row}", "gt", "A", 0): {} if value is None else {RQS: value}
        for row, value in enumerate(before, 2)
    }
    comparison = BaselineComparison(PastRun("old.xlsx", values), THIS_RUN)
    for row, value in enumerate(now, 2):
        comparison.add(result("A", row, flat(value)))
    (rqs,) = comparison.changes()
    assert (rqs.direction, rqs.is_reversible) == (direction, queries > 0)
    assert rqs.interval is not None
    assert (rqs.interval.low <= 0 <= rqs.interval.high) == (direction is Direction.UNDECIDED)
    told = [sentence for sentence in comparison.differences() if "not significant" in sentence]
    count = "1 query that has" if queries == 1 else f"{queries} queries that have"
    sentence = f"A: RQS is not significant because of {count} a value in only one of the two runs."
    assert told == ([sentence] if queries else [])


def test_lines_that_are_decided_do_not_make_the_others_less_strict_than_they_are() -> None:
    """Holm: of six lines the clearest is tested at 5 %/6; the next at 5 %/5; the interval of the rest is as wide."""
    names = tuple(NAMES)
    gains = {RQS: 0.3, "answer_correctness": 0.3, "faithfulness": 0.0}
    before = dict.fromkeys(names, 0.4)
    values = {(f"q{row}", "gt", "A", 0): before for row in range(2, 14)}
    comparison = BaselineComparison(PastRun("old.xlsx", values), THIS_RUN)
    for row in range(2, 14):
        shift = 0.1 * (row % 4) - 0.13
        scores = [0.4 + gains.get(name, shift) + 0.01 * (row % 3) for name in METRIC_LABELS]
        comparison.add(replace(result("A", row, tuple(scores)), rqs=0.7))
    changes = {change.name: change for change in comparison.changes()}
    assert {name: change.direction.value for name, change in changes.items()} == {
        RQS: "better",
        "answer_correctness": "better",
        "faithfulness": "better",
        "answer_relevancy": "not decided",
        "context_precision": "not decided",
        "context_recall": "not decided",
    }
    shifts = [0.1 * (row % 4) - 0.13 + 0.01 * (row % 3) for row in range(2, 14)]
    expected = bootstrap_mean_interval([round(shift, 12) for shift in shifts], confidence=1 - 0.05 / 3)
    assert expected is not None
    interval = changes["context_recall"].interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("names", "direction"),
    [((RQS,), Direction.BETTER), ((RQS, "faithfulness"), Direction.UNDECIDED)],
)
def test_missing_values_are_weighed_as_strictly_as_the_line_is_tested(
    names: tuple[str, ...], direction: Direction
) -> None:
    """14 gains outweigh 3 losses at 5 %, where RQS is the only line, and not at 5 %/2."""
    comparison = BaselineComparison(past([0.5] * 14 + [0.3] * 3, names), THIS_RUN)
    for row, value in enumerate([0.8] * 14 + ["failed"] * 3, 2):
        comparison.add(result("A", row, flat(value)))
    assert [(change.name, change.direction) for change in comparison.changes()] == [
        (name, direction) for name in names
    ]


def test_the_interval_of_an_undecided_change_begins_or_ends_at_0() -> None:
    """Six of six differences are positive, and the interval alone would be: 10 lines need more of them."""
    comparison = compared([0.5] * 6, [0.6, 0.7, 0.6, 0.7, 0.6, 0.65])
    rqs, _ = comparison.changes()
    assert rqs.direction is Direction.UNDECIDED
    assert rqs.interval is not None
    assert rqs.interval.low == 0.0
    assert rqs.interval.high == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize(("weight", "is_compared"), [(0.0, True), (0.1, False)])
def test_a_metric_without_weight_may_be_judged_in_one_run_only(weight: float, is_compared: bool) -> None:
    weights = {"faithfulness": 1.0 - weight, "context_recall": weight}
    comparison = BaselineComparison(past([0.5] * 3), facts_of("A", 3, weights=weights))
    for row in (2, 3, 4):
        comparison.add(result("A", row, flat(0.5)))
    assert ("rqs" in {change.name for change in comparison.changes()}) is is_compared


def test_equal_runs_are_seldom_told_apart() -> None:
    """Noise alone: over 40 comparisons of six means each, hardly one claims a change (5 % are allowed)."""
    drawn = random.Random(7)
    claims = 0
    for _ in range(40):
        before = [drawn.random() for _ in range(20)]
        changes = compared(before, [min(1.0, max(0.0, b + drawn.gauss(0, 0.1))) for b in before]).changes()
        claims += any(change.direction in (Direction.BETTER, Direction.WORSE) for change in changes)
    assert claims <= 5


def sheet_of(path: Path, *, good: bool) -> Path:
    rows = [
        [f"When does it open on day {n}?", fact, fact if good else "Dogs bark.", fact]
        for n, fact in enumerate(FACTS)
    ]
    return write_table(path, ["Query", "Ground_Truth", "Bot_A", "Context"], *rows)


@pytest.mark.parametrize("kind", ["xlsx", "json"])
def test_a_report_or_its_json_is_a_baseline(run_cli: Run, tmp_path: Path, kind: str) -> None:
    sheet_of(tmp_path / "good.xlsx", good=True)
    sheet_of(tmp_path / "bad.xlsx", good=False)
    run_cli("good.xlsx", "-o", "old.xlsx", "--json", "old.json", "--judge", "offline")
    ended = run_cli("bad.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", f"old.{kind}",
                    "--fail-on-regression", "--junit", "gates.xml")  # fmt: skip
    assert ended.code == 1
    assert f"Compared with old.{kind}:" in ended.out
    assert "worse than the baseline" in ended.err
    lines = {line["Metric"]: line for line in read_sheet(tmp_path / "new.xlsx", "vs Baseline")}
    assert lines["RQS"]["Verdict"] == "worse"
    assert lines["RQS"]["Change"] == pytest.approx(lines["RQS"]["Now"] - lines["RQS"]["Baseline"])
    assert lines["RQS"]["Queries compared"] == len(FACTS)
    assert 'name="no_regression"' in (tmp_path / "gates.xml").read_text()


def test_queries_that_a_stopped_run_did_not_come_to_are_in_no_count(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_workers = 1\nmin_common = 0.9\n")
    assert run_cli("in.xlsx", "-o", "old.xlsx", **azure(judge)).code == 0
    calls = len(judge.requests) // 2
    ended = run_cli("in.xlsx", "-o", "new.xlsx", "--baseline", "old.xlsx", "--fail-on-regression",
                    "--fresh", "--max-calls", calls, **azure(judge))  # fmt: skip
    lines = read_sheet(tmp_path / "new.xlsx", "vs Baseline")
    (count,) = {line["Queries compared"] for line in lines if line["Metric"] == "Answer Correctness"}
    assert 0 < count < len(FACTS)
    assert f"over {count} of its {len(FACTS)} queries" in ended.out
    assert f"not comparable: this run has {count} of the baseline's {len(FACTS)} queries" in ended.err


def test_a_bot_that_is_gone_since_the_baseline_is_named(run_cli: Run, tmp_path: Path) -> None:
    header = ["Query", "Ground_Truth", "Context"]
    rows = [[f"When does it open on day {n}?", fact, fact, fact] for n, fact in enumerate(FACTS)]
    write_table(tmp_path / "two.xlsx", [*header, "Bot_A", "Bot_B"], *([*row, row[1]] for row in rows))
    write_table(tmp_path / "one.xlsx", [*header, "Bot_A"], *rows)
    run_cli("two.xlsx", "-o", "old.xlsx", "--judge", "offline")
    ended = run_cli("one.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", "old.xlsx")
    assert "In the baseline, but not in this run: B." in ended.out
    ended = run_cli("two.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", "old.xlsx")
    assert "not in this run" not in ended.out


def test_the_same_run_again_is_no_regression(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    run_cli("in.xlsx", "-o", "old.xlsx", "--judge", "offline")
    ended = run_cli(
        "in.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", "old.xlsx", "--fail-on-regression"
    )
    assert ended.code == 0
    assert {line["Verdict"] for line in read_sheet(tmp_path / "new.xlsx", "vs Baseline")} == {"no change"}


@pytest.mark.parametrize("kind", ["xlsx", "json"])
def test_queries_are_found_again_whatever_a_cell_keeps_of_them(
    run_cli: Run, tmp_path: Path, kind: str
) -> None:
    """Control characters, line ends and texts longer than a cell of the earlier report holds."""
    queries = [
        "page\fbreak?",
        "bell\a?",
        "two\r\nlines?",
        "=1+1",
        "  spaces  ",
        "smile " + "\U0001f600" * 20_000,
        "x" * 40_000,
    ]
    write_table(tmp_path / "in.csv", ["Query", "Bot_A\v1"], *([query, "an answer"] for query in queries))
    run_cli("in.csv", "-o", "old.xlsx", "--json", "old.json", "--judge", "offline")
    run_cli("in.csv", "-o", "new.xlsx", "--judge", "offline", "--baseline", f"old.{kind}")
    lines = read_sheet(tmp_path / "new.xlsx", "vs Baseline")
    assert {line["Queries compared"] for line in lines} == {len(queries)}


@pytest.mark.parametrize("kind", ["xlsx", "json"])
def test_rqs_of_other_weights_is_not_compared(run_cli: Run, tmp_path: Path, kind: str) -> None:
    """Else other weights alone would fail the gate. Metrics that weigh nothing count for nothing."""
    sheet_of(tmp_path / "in.xlsx", good=True)
    base = ("--judge", "offline", "--baseline", f"old.{kind}", "--fail-on-regression")
    run_cli("in.xlsx", "-o", "old.xlsx", "--json", "old.json", "--judge", "offline")
    ended = run_cli("in.xlsx", "-o", "new.xlsx", "--alpha", "9", "--gamma", "0", "--json", "new.json", *base)
    assert ended.code == 0
    assert "RQS is not compared" in ended.out
    document = json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))
    Draft202012Validator(SCHEMA).validate(document)
    assert [change["name"] for change in document["changes"]] == list(METRIC_LABELS)
    assert document["beside_changes"] == [
        line for line in ended.out.splitlines() if line.startswith("RQS is not")
    ]
    assert ": RQS is not compared." in document["leaderboard"]["verdict_lines"]["limits"][-1]
    lines = read_sheet(tmp_path / "new.xlsx", "vs Baseline")
    assert [line["Metric"] for line in lines] == [*METRIC_LABELS.values()]
    shown = read_boxes(tmp_path / "new.xlsx")
    assert [line for line in document["beside_changes"] if line not in shown] == []
    sheet_of(tmp_path / "bad.xlsx", good=False)
    worse = run_cli("bad.xlsx", "-o", "worse.xlsx", "--alpha", "9", "--gamma", "0", *base)
    assert re.search(r"queries: RQS is not compared; worse: ([\w ]+ of A(, | and )?)+\.", worse.out)
    again = run_cli("in.xlsx", "-o", "new.xlsx", *base)
    assert "RQS is not compared" not in again.out
    assert "A: RQS 0" in again.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xlsx", "json"])
def test_other_metrics_are_named_and_rqs_is_not_compared(run_cli: Run, tmp_path: Path, kind: str) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    (tmp_path / "four.ini").write_text("[metrics]\ncontext_recall = no\n")
    command = ("in.xlsx", "--judge", "offline")
    run_cli(*command, "-o", "five.xlsx", "--json", "five.json")
    run_cli(*command, "-o", "four.xlsx", "--json", "four.json", "--config", "four.ini")
    fewer = run_cli(*command, "-o", "a.xlsx", "--baseline", f"five.{kind}", "--config", "four.ini")
    more = run_cli(*command, "-o", "b.xlsx", "--baseline", f"four.{kind}")
    assert "Judged in the baseline only: Context Recall." in fewer.out
    assert "Judged in this run only: Context Recall." in more.out
    for ended in (fewer, more):
        assert "RQS is not compared" in ended.out
        assert "A: RQS 0" not in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xlsx", "json"])
def test_another_judge_is_named(run_cli: Run, judge: FakeJudge, tmp_path: Path, kind: str) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    run_cli("in.xlsx", "-o", "old.xlsx", "--json", "old.json", "--judge", "offline")
    ended = run_cli("in.xlsx", "-o", "new.xlsx", "--baseline", f"old.{kind}", **azure(judge))
    assert "The baseline was judged by offline judge, this run by Azure OpenAI" in ended.out
    assert "A: RQS 0" in ended.out
    same = run_cli("in.xlsx", "-o", "new.xlsx", "--baseline", f"old.{kind}", "--judge", "offline")
    assert "judged by" not in same.out


def test_a_json_with_nonsense_for_its_judge_does_no_harm(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    run = {"judge": {"\x1b[2J": "\ud800"}}
    (tmp_path / "odd.json").write_text(json.dumps({"run": run, "cases": []}))
    ended = run_cli("in.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", "odd.json")
    assert (ended.code, "\x1b" in ended.out) == (0, False)


@pytest.mark.slow
def test_interval_and_verdict_never_contradict_each_other() -> None:
    """The interval is on one side of 0 exactly where the change is claimed, however many lines are tested."""
    drawn = random.Random(3)
    directions = set()
    for _ in range(60):
        size, gain = drawn.choice([(2, 0.1), (6, 0.09), (12, 0.03), (12, 0.09)])
        before = [drawn.uniform(0.0, 0.8) for _ in range(size)]
        now: list[Value] = [min(1.0, max(0.0, b + drawn.gauss(gain, 0.06))) for b in before]
        for change in compared(before, now).changes():
            assert (change.interval is None) is (size == 2)
            is_clear = change.interval is not None and (change.interval.low > 0 or change.interval.high < 0)
            assert is_clear == (change.direction in (Direction.BETTER, Direction.WORSE))
            directions.add(change.direction)
    assert {Direction.BETTER, Direction.UNDECIDED} <= directions


def test_the_more_is_compared_the_wider_the_intervals_are() -> None:
    before, now = [0.1 * n for n in range(9)], [0.1 * n + 0.02 * (n % 4) for n in range(9)]
    widths = []
    for names in ((RQS,), tuple(NAMES)):
        comparison = BaselineComparison(past(before, names), THIS_RUN)
        for row, value in enumerate(now, 2):
            comparison.add(result("A", row, flat(value)))
        interval = comparison.changes()[0].interval
        assert interval is not None
        widths.append(interval.high - interval.low)
    assert widths[0] < widths[1]


def test_queries_of_one_run_are_told_by_bot_only_where_bots_differ() -> None:
    most, least = CommonQueries(before=20, now=30, both=18), CommonQueries(before=12, now=9, both=9)
    told = "18 common queries, 2 only in the baseline, 12 only in this run."
    assert queries_words({"A": most, "C": most}, "the baseline") == [told]
    assert queries_words({"A": most, "B": least, "C": most}, "the baseline") == [
        f"A and C: {told}",
        "B: 9 common queries, 3 only in the baseline.",
    ]


@pytest.mark.slow
def test_how_many_queries_are_compared_is_said_beside_how_many_there_are(
    run_cli: Run, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    (tmp_path / "few.ini").write_text("[evaluation]\nmax_rows = 5\n")
    run_cli("in.xlsx", "-o", "old.xlsx", "--judge", "offline", "--config", "few.ini")
    ended = run_cli("in.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", "old.xlsx")
    assert ": no change (5 common queries)" in ended.out
    assert "5 common queries, 7 only in this run." in ended.out
    lines = read_sheet(tmp_path / "new.xlsx", "vs Baseline")
    columns = ("Queries compared", "Queries in all", "Only in baseline", "Only in this run")
    assert {tuple(line[column] for column in columns) for line in lines} == {(5, 12, 0, 7)}
    gate = ("--judge", "offline", "--baseline", "new.xlsx", "--fail-on-regression")
    few = run_cli("in.xlsx", "-o", "few.xlsx", *gate, "--config", "few.ini")
    assert few.code == 1
    assert (
        "Gate FAILED: A: not comparable: this run has 5 of the baseline's 12 queries, less than the share of 0.5 that "
        "[evaluation] min_common requires"
    ) in few.err
    assert "Compared with the baseline, over 5 of its 12 queries: no significant change of RQS." in few.out
    (tmp_path / "few.ini").write_text("[evaluation]\nmax_rows = 5\nmin_common = 0.4\n")
    assert run_cli("in.xlsx", "-o", "few.xlsx", *gate, "--config", "few.ini").code == 0


@pytest.mark.slow
def test_a_margin_lets_means_fall_and_the_gate_and_the_json_name_it(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    run_cli("in.xlsx", "-o", "old.xlsx", "--judge", "offline")
    sheet_of(tmp_path / "in.xlsx", good=False)
    gate = ("--judge", "offline", "--baseline", "old.xlsx", "--fail-on-regression", "--json", "run.json")
    assert run_cli("in.xlsx", "-o", "new.xlsx", *gate).code == 1
    (tmp_path / "margin.ini").write_text("[evaluation]\nregression_margin = 1\n")
    ended = run_cli("in.xlsx", "-o", "new.xlsx", *gate, "--config", "margin.ini")
    assert ended.code == 0
    assert (
        "no mean is significantly worse than the baseline by more than 1 ([evaluation] regression_margin)"
        in ended.out
    )
    used = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["configuration"]["evaluation"]
    assert used["regression_margin"]["value"] == 1


def test_nothing_to_compare_is_no_pass(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    write_table(
        tmp_path / "other.xlsx", ["Query", "Bot_A", "Context"], ["Another?", "An answer.", "An answer."]
    )
    run_cli("other.xlsx", "-o", "old.xlsx", "--judge", "offline")
    ended = run_cli(
        "in.xlsx", "-o", "new.xlsx", "--judge", "offline", "--baseline", "old.xlsx", "--fail-on-regression"
    )
    assert ended.code == 1
    assert "no query is in both runs" in ended.err


def test_what_is_no_report_is_named_before_anything_is_paid(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    (tmp_path / "broken.json").write_text("{")
    wrong = {
        "in.xlsx": "Per-Query Metrics",
        "broken.json": "cannot be read",
        "no.xlsx": "no such file",
        "a.csv": ".xlsx",
    }
    for name, words in wrong.items():
        ended = run_cli("in.xlsx", "--baseline", name, **azure(judge))
        assert (ended.code, words in ended.err) == (2, True), ended.err
    assert run_cli("in.xlsx", "--fail-on-regression", **azure(judge)).code == 2
    assert judge.requests == []


# What cannot be a baseline


EARLIER = Path(__file__).parent / "recorded" / "earlier.json"
OTHER = "or name another report (.xlsx) or run's JSON with --baseline"


def spoiled_json(folder: Path, *path: str | int, value: str) -> Path:
    """An earlier run's JSON in which one member has this text as its value."""
    document = json.loads(EARLIER.read_text(encoding="utf-8"))
    target = document
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = "@"
    text = json.dumps(document).replace('"@"', value)
    (folder / "old.json").write_text(text, encoding="utf-8")
    return folder / "old.json"


FAITHFULNESS = ("cases", 1, "scores", "faithfulness", "value")


NO_SCORES = {
    "NaN": "NaN", "1e999": "Infinity", "1e308": "1e+308", "-0.55": "-0.55", "1.7": "1.7", "1" * 400: f"{'1' * 39}…",
    "true": "true", '"0.5"': "0.5", "[[[]]]": "a list",
}  # fmt: skip
"""How each is shown."""


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        *(
            (FAITHFULNESS, value, f".faithfulness.value: {shown} is not a number")
            for value, shown in NO_SCORES.items()
        ),
        (FAITHFULNESS[:-1], "{}", ".faithfulness: an object is not a score with a value; correct it"),
        (FAITHFULNESS[:-1], "0.5", ".faithfulness: 0.5 is not a score with a value; correct it"),
        (("cases", 1, "rqs"), "-0.1", "rqs: -0.1 is not a number from 0 to 1; correct it"),
        (("cases", 1, "scores"), "null", "scores: null is not an object; correct it"),
    ],
)
def test_a_score_of_a_json_that_cannot_be_one_is_named(
    tmp_path: Path, path: tuple[str | int, ...], value: str, problem: str
) -> None:
    file = spoiled_json(tmp_path, *path, value=value)
    with pytest.raises(InputError) as caught:
        read_past_run(file)
    place = "scores" if problem.startswith(".") else ""
    assert str(caught.value).startswith(f"{file}, case 2 (row 2, bot Birch), {place}{problem}")
    assert str(caught.value).endswith(OTHER)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", ": cannot be read as a report of an earlier run (it is not whole JSON: line 1, column 2);"),
        ("[]", ": cannot be read as a report of an earlier run (it is not the object of a run);"),
        ("[" * 100_000, ": cannot be read as a report of an earlier run (its JSON is nested too deeply);"),
        ("1" * 5_000, ": cannot be read as a report of an earlier run (it has a number with too many digits);"),
        ("\udcff", ": cannot be read as a report of an earlier run (it is not a text file in UTF-8);"),
        ("{}", ": cannot be read as a report of an earlier run (it has no member run.judge);"),
        ('{"run": {"judge": ""}, "cases": {}}', ": cannot be read as a report of an earlier run (it has no list of"),
        ('{"run": {"judge": ""}, "cases": [7]}', ", case 1: 7 is not an object; correct it,"),
        (
            '{"run": {"judge": ""}, "cases": [{"row": 2}]}',
            ", case 1 (row 2, bot null): 'query' is missing; correct it,",
        ),
        (
            '{"format": "rag-eval-run/2", "run": {"judge": ""}, "cases": []}',
            ": cannot be read as a report of an earlier run (a later version of RAG Eval wrote it, in format "
            "rag-eval-run/2; this one reads rag-eval-run/1);",
        ),
        (
            '{"format": "mine"}',
            ": cannot be read as a report of an earlier run (its format is 'mine', expected 'rag-eval-run/1');",
        ),
    ],
)  # fmt: skip
def test_a_json_that_is_no_run_is_named_in_words(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "old.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError) as caught:
        read_past_run(path)
    assert str(caught.value).startswith(f"{path}{problem}")
    assert str(caught.value).endswith(OTHER.removeprefix("or "))


def test_a_json_with_a_byte_order_mark_or_without_a_format_is_read(tmp_path: Path) -> None:
    """As an editor on Windows saves it, and as the first versions wrote it."""
    document = json.loads(EARLIER.read_text(encoding="utf-8"))
    del document["format"]
    (tmp_path / "old.json").write_text(json.dumps(document), encoding="utf-8-sig")
    assert read_past_run(tmp_path / "old.json").values == read_past_run(EARLIER).values


def with_cell(path: Path, cell: str, xml: str) -> None:
    """Put this XML in place of a cell of the first sheet: what programs that are not ours can write."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    text, count = re.subn(rf'<c r="{cell}"[^>]*?(/>|>.*?</c>)', xml, parts[sheet].decode())
    assert count == 1
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, text.encode() if name == sheet else part)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        *(
            (
                value,
                f" (Faithfulness of A): {NO_SCORES.get(value, value)} is not a number from 0 to 1; correct it, {OTHER}",
            )
            for value in ("-0.55", "85", "1e999", "1e308", "1.00001")
        ),
        ("NaN", ": 'NaN' is not a number; correct the cell, or empty it"),
        ("9" * 5_000, f": '{'9' * 39}…' is not a number; correct the cell, or empty it"),
    ],
)
def test_a_cell_of_a_report_that_cannot_be_a_score_is_named(tmp_path: Path, value: str, problem: str) -> None:
    path = report_of(tmp_path, ["RQS", "Faithfulness"], [0.5, 0.25], [0.5, 0.75])
    with_cell(path, "E3", f'<c r="E3"><v>{value}</v></c>')
    with pytest.raises(InputError) as caught:
        read_past_run(path)
    message = str(caught.value)
    assert message.endswith(f"old.xlsx, sheet 'Per-Query Metrics', cell E3{problem}")
    assert len(message.splitlines()) == 1


def _note_above(sheet: Worksheet) -> None:
    sheet.insert_rows(1, 2)
    sheet["A1"] = "Checked by Ann"


def _note_below(sheet: Worksheet) -> None:
    sheet.append([])
    sheet.append(["Checked by Ann"])


def _mean_below(sheet: Worksheet) -> None:
    sheet.append(["Mean", None, None, "=AVERAGE(D2:D3)", 55])


def _column_moved(sheet: Worksheet) -> None:
    sheet.move_range("A1:A3", cols=20)


def _column_added(sheet: Worksheet) -> None:
    sheet["F1"], sheet["F2"] = "Weight", 17


@pytest.mark.parametrize("edit", [_note_above, _note_below, _mean_below, _column_moved, _column_added])
def test_a_report_that_a_person_edited_is_read_as_before(
    tmp_path: Path, edit: Callable[[Worksheet], None]
) -> None:
    path = report_of(tmp_path, ["RQS", "Faithfulness"], [0.5, 0.25], [0.5, 0.75])
    before = read_past_run(path)
    book = load_workbook(path)
    edit(book["Per-Query Metrics"])
    book.save(path)
    assert read_past_run(path) == before


NO_VALUES = (
    "-", "–", " — ", "n/a", "N/A", "Not applicable", "failed", "not judged", " ", "#DIV/0!", "#N/A", "=1/2",
)  # fmt: skip


@pytest.mark.parametrize("content", [None, *NO_VALUES])
def test_a_cell_that_is_empty_or_says_that_there_is_no_score_has_no_value(
    tmp_path: Path, content: str | None
) -> None:
    path = report_of(tmp_path, ["RQS", "Faithfulness"], [0.5, 0.25], [0.5, 0.75])
    book = load_workbook(path)
    book["Per-Query Metrics"]["E2"] = content
    book.save(path)
    assert list(read_past_run(path).values.values()) == [{RQS: 0.5}, {RQS: 0.5, "faithfulness": 0.75}]


@pytest.mark.parametrize("content", ["0.5", "0,5", " 50 % ", "1", "see my note", "high", "#1"])
def test_a_score_that_is_text_is_refused(tmp_path: Path, content: str) -> None:
    """A number that is stored as text would be left out of every mean in silence."""
    path = report_of(tmp_path, ["RQS", "Faithfulness"], [0.5, 0.25], [0.5, content])
    with pytest.raises(InputError) as caught:
        read_past_run(path)
    assert str(caught.value) == (
        f"{path}, sheet 'Per-Query Metrics', cell E3 (Faithfulness of A): '{content.strip()}' is text; the cell can "
        f"have a number from 0 to 1, or nothing; correct it, {OTHER}"
    )


def test_a_score_that_is_text_is_refused_in_rows_of_bots_only(tmp_path: Path) -> None:
    path = report_of(tmp_path, ["RQS", "Weight"], [0.5, "much"], [0.75, "little"])
    book = load_workbook(path)
    book["Per-Query Metrics"].append(["Checked by Ann", None, None, "all good"])
    book.save(path)
    assert list(read_past_run(path).values.values()) == [{RQS: 0.5}, {RQS: 0.75}]


def test_a_score_that_is_a_date_is_refused(tmp_path: Path) -> None:
    """What a spreadsheet makes of "1.5" in some languages."""
    path = report_of(tmp_path, ["RQS"], [datetime(2024, 5, 1)])
    with pytest.raises(
        InputError, match=r'cell D2 \(RQS of A\): "2024-05-01 00:00:00" is not a number from 0 to 1'
    ):
        read_past_run(path)


def test_a_json_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    document = json.loads(EARLIER.read_text(encoding="utf-8"))
    path = tmp_path / "old.json"
    score = document["cases"][1]["scores"]["faithfulness"]
    value = score["value"]
    path.write_text(json.dumps({**document, "cases": [*document["cases"], document["cases"][1]]}))
    with pytest.raises(InputError) as caught:
        read_past_run(path)
    number = len(document["cases"]) + 1
    assert str(caught.value) == (
        f"{path}, case {number} (row 2, bot Birch): case 2 has the same row and bot; correct it, {OTHER}"
    )
    score["outcome"] = "failed"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_past_run(path)
    assert str(caught.value) == (
        f"{path}, case 2 (row 2, bot Birch), scores.faithfulness: the outcome is failed, but the value is {value}; "
        f"correct it, {OTHER}"
    )


def test_a_report_of_an_unknown_kind_is_told(tmp_path: Path) -> None:
    path = tmp_path / "old.xlsx"
    path.write_bytes(b"\0\1\2\3" * 100)
    with pytest.raises(InputError, match="is a file of an unknown kind, not "):
        read_past_run(path)


def test_a_report_without_its_columns_is_named(tmp_path: Path) -> None:
    path = report_of(tmp_path, ["RQS"], [0.5])
    book = load_workbook(path)
    book["Per-Query Metrics"]["C1"] = "System"
    book.save(path)
    with pytest.raises(InputError, match="has no columns Query, Ground Truth and Bot"):
        read_past_run(path)


@pytest.mark.parametrize(
    "job",
    [
        ("in.xlsx", "-o", "new.xlsx"),
        ("in.xlsx", "-o", "new.xlsx", "--history", "kept"),
        ("in.xlsx", "-o", "new.xlsx", "--dry-run"),
        ("in.xlsx", "in2.xlsx", "-o", "new"),
        ("earlier.json", "--report-only", "-o", "new.xlsx"),
    ],
    ids=" ".join,
)
def test_a_baseline_that_cannot_be_compared_with_costs_no_call(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, job: tuple[str, ...]
) -> None:
    sheet_of(tmp_path / "in.xlsx", good=True)
    sheet_of(tmp_path / "in2.xlsx", good=True)
    (tmp_path / "earlier.json").write_bytes(EARLIER.read_bytes())
    spoiled_json(tmp_path, *FAITHFULNESS, value="NaN")
    with_cell(report_of(tmp_path, ["RQS"], [0.5]), "D2", '<c r="D2"><v>-0.55</v></c>')
    twice = json.loads(EARLIER.read_text(encoding="utf-8"))
    twice["cases"].append(twice["cases"][0])
    (tmp_path / "text").mkdir()
    (tmp_path / "twice.json").write_text(json.dumps(twice))
    report_of(tmp_path / "text", ["RQS"], ["0.5"])
    before = sorted(tmp_path.iterdir())
    for name, place in (
        ("old.json", "case 2 (row 2, bot Birch)"),
        ("old.xlsx", "cell D2"),
        ("text/old.xlsx", "cell D2"),
        ("twice.json", "has the same row and bot"),
    ):
        ended = run_cli(*job, "--baseline", name, **azure(judge))
        assert (ended.code, place in ended.err) == (2, True), ended.err
    assert judge.requests == []
    assert sorted(tmp_path.iterdir()) == before


def test_report_only_refuses_a_run_with_scores_that_cannot_be(run_cli: Run, tmp_path: Path) -> None:
    spoiled_json(tmp_path, *FAITHFULNESS, value="-0.55")
    ended = run_cli("old.json", "--report-only", "-o", "new.xlsx")
    assert ended.code == 2
    assert "row 2, bot Birch: scores.faithfulness.value: -0.55 is not a number from 0 to 1" in ended.err
    assert not (tmp_path / "new.xlsx").exists()


def test_a_report_without_numbers_is_read_as_one(tmp_path: Path) -> None:
    table = [["Query", "Ground Truth", "Bot", "RQS"], ["q", None, "A", None]]
    path = write_sheets(tmp_path / "r.xlsx", {"Per-Query Metrics": table})
    assert read_past_run(path).values == {("q", "", "A", 0): {}}
    with pytest.raises(InputError):
        read_past_run(tmp_path / "r.txt")


@pytest.mark.slow
def test_report_only_makes_a_new_report_without_any_call(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n[diagnostics]\nenabled = false\n")
    sheet_of(tmp_path / "in.xlsx", good=True)
    assert run_cli("in.xlsx", "-o", "a.xlsx", **azure(judge)).code == 0
    judge.requests.clear()
    ended = run_cli("in.xlsx", "-o", "b.xlsx", "--report-only", "--alpha", "2", **azure(judge))
    assert (ended.code, judge.requests) == (0, [])
    assert read_sheet(tmp_path / "b.xlsx", "Per-Query Metrics")


@pytest.mark.slow
def test_report_only_needs_the_address_of_stored_replies_and_no_key(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n[diagnostics]\nenabled = false\n")
    sheet_of(tmp_path / "in.xlsx", good=True)
    assert run_cli("in.xlsx", "-o", "a.xlsx", **azure(judge)).code == 0
    judge.requests.clear()
    again = "in.xlsx", "-o", "b.xlsx", "--report-only"
    ended = run_cli(*again)
    assert (ended.code, "credentials not found: endpoint not set. Set it in" in ended.err) == (2, True)
    ended = run_cli(*again, AZURE_OPENAI_ENDPOINT=judge.url)
    assert (ended.code, judge.requests) == (0, [])
    (tmp_path / "config.ini").write_text("[azure]\nauth = entra\n" + (tmp_path / "config.ini").read_text())
    assert run_cli(*again, AZURE_OPENAI_ENDPOINT=judge.url).code == 0


def test_report_only_says_what_is_missing(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    sheet_of(tmp_path / "in.xlsx", good=True)
    ended = run_cli("in.xlsx", "--report-only", **azure(judge))
    assert (ended.code, judge.requests) == (4, [])
    assert "--report-only" in ended.err
    for remedy in ("run without --report-only", "JSON of the run", "[cache] enabled"):
        assert remedy in ended.err


@pytest.mark.slow
def test_a_new_report_from_a_runs_json_has_the_same_scores_and_other_weights(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", good=False)
    assert run_cli("in.xlsx", "-o", "a.xlsx", "--json", "a.json", **azure(judge)).code == 0
    judge.requests.clear()
    same = run_cli("a.json", "-o", "b.xlsx", "--json", "b.json", "--report-only")
    assert (same.code, judge.requests) == (0, [])
    for name in ("Per-Query Metrics", "Bot Summary", "Leaderboard"):
        assert read_sheet(tmp_path / "a.xlsx", name) == read_sheet(tmp_path / "b.xlsx", name)
    other = run_cli("a.json", "-o", "c.xlsx", "--report-only", "--alpha", "9", "--baseline", "a.xlsx")
    assert other.code == 0
    before, now = (read_sheet(tmp_path / name, "Per-Query Metrics")[0] for name in ("a.xlsx", "c.xlsx"))
    assert before["Faithfulness"] == now["Faithfulness"]
    assert before["RQS"] != now["RQS"]
    assert (tmp_path / "c.xlsx").stat().st_mode == (tmp_path / "a.xlsx").stat().st_mode


def recorded(run_cli: Run, folder: Path, *, good: bool, settings: str = "") -> None:
    """run.json, of the offline judge."""
    (folder / "first.ini").write_text(settings)
    sheet_of(folder / "in.xlsx", good=good)
    run_cli("in.xlsx", "-o", "run.xlsx", "--json", "run.json", "--judge", "offline", "--config", "first.ini")


@pytest.mark.slow
def test_recommendations_fit_failure_modes_that_other_thresholds_change(run_cli: Run, tmp_path: Path) -> None:
    all_low = "[thresholds]\n" + "".join(f"{name} = 0\n" for name in METRIC_LABELS)
    recorded(run_cli, tmp_path, good=True, settings=all_low)
    lines = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    for case in lines["cases"]:
        assert case["failure_modes"] == ["OK"]
        case["recommendation"] = "As the judge said."
    lines["cases"][0]["scores"]["faithfulness"] |= {"value": 0.5}
    (tmp_path / "run.json").write_text(json.dumps(lines))
    (tmp_path / "config.ini").write_text("[thresholds]\nfaithfulness = 0.6\nanswer_relevancy = 0\n")
    ended = run_cli("run.json", "--report-only", "-o", "again.xlsx")
    changed, *others = read_sheet(tmp_path / "again.xlsx", "Per-Query Metrics")
    assert changed["Failure Mode"] == "Hallucination"
    assert changed["Recommendation"] not in ("", None, "As the judge said.")
    assert {line["Recommendation"] for line in others} == {"As the judge said."}
    assert "Recommendations recomputed by rule: 1." in ended.out


@pytest.mark.slow
def test_a_run_without_diagnostics_gets_them_by_rule(run_cli: Run, tmp_path: Path) -> None:
    recorded(run_cli, tmp_path, good=False, settings="[diagnostics]\nenabled = no\n")
    run_cli("run.json", "--report-only", "-o", "again.xlsx")
    assert all(line["Recommendation"] for line in read_sheet(tmp_path / "again.xlsx", "Per-Query Metrics"))
    same = run_cli(
        "run.json", "--report-only", "-o", "off.xlsx", "--config", "first.ini", "--json", "off.json"
    )
    assert "recomputed" not in same.out
    assert '"recommendation": ""' in (tmp_path / "off.json").read_text(encoding="utf-8")


def test_a_dry_run_makes_no_report_of_a_runs_json(run_cli: Run, tmp_path: Path) -> None:
    recorded(run_cli, tmp_path, good=True)
    before = sorted(tmp_path.iterdir())
    again = "run.json", "--report-only", "--dry-run", "-o", "again.xlsx"
    ended = run_cli(*again, "--json", "again.json")
    assert (ended.code, sorted(tmp_path.iterdir())) == (0, before)
    assert "again.xlsx would be rebuilt from run.json" in ended.out
    run_cli(*again, "--manifest", "m.json")
    assert json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))["exit_code"] == 0


def test_slices_of_a_runs_json_need_a_recorded_column(run_cli: Run, tmp_path: Path) -> None:
    recorded(run_cli, tmp_path, good=True, settings="[report]\nslice_by = Query\n")
    assert run_cli("run.json", "--report-only", "-o", "again.xlsx", "--config", "first.ini").code == 0
    (tmp_path / "config.ini").write_text("[report]\nslice_by = Nope\n")
    ended = run_cli("run.json", "--report-only", "-o", "other.xlsx")
    assert (ended.code, (tmp_path / "other.xlsx").exists()) == (2, False)
    assert "'Nope' is not a column of the recorded run (it has 'Query')" in ended.err


@pytest.mark.slow
def test_calibrated_thresholds_go_by_who_judged_the_run(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Not by who is set to judge now."""
    recorded(run_cli, tmp_path, good=True)
    run_cli("in.xlsx", "-o", "llm.xlsx", "--json", "llm.json", **azure(judge))
    (tmp_path / "config.ini").write_text("[offline]\nthresholds = calibrated\n")
    for name, judged_by in (("run", "azure"), ("llm", "offline")):
        ended = run_cli(
            f"{name}.json", "--report-only", "--judge", judged_by, "-o", "again.xlsx", "--json", "again.json"
        )
        assert ended.code == 0
        thresholds = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["run"]["thresholds"]
        assert (thresholds == CALIBRATED_THRESHOLDS) == (name == "run")


def test_options_that_could_do_nothing_for_a_runs_json_are_refused_together(
    run_cli: Run, tmp_path: Path
) -> None:
    recorded(run_cli, tmp_path, good=True)
    idle = {"--sheet": "x", "--encoding": "utf-8", "--sep": ";", "--model": "m", "--temperature": "0", "--samples": "2",
            "--max-calls": "1", "--max-cost": "1", "--max-minutes": "1", "--processes": "1"}  # fmt: skip
    flags = ("--redact", "--fresh", "--retry-errors", "--strict-cache")
    given = [part for option in idle.items() for part in option]
    ended = run_cli("run.json", "--report-only", "-o", "again.xlsx", *given, *flags)
    assert (ended.code, (tmp_path / "again.xlsx").exists()) == (2, False)
    assert len(ended.err.splitlines()) == 1
    assert all(option in ended.err for option in (*idle, *flags))


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_new_report_overwrites_nothing_that_is_read(
    run_cli: Run, tmp_path: Path, dry: tuple[str, ...]
) -> None:
    recorded(run_cli, tmp_path, good=True)
    (tmp_path / ".env").write_text("OTHER=1\n")
    again = "run.json", "--report-only", "-o", "again.xlsx", *dry
    over = run_cli(*again, "--json", ".env")
    assert (over.code, ".env, which is read" in over.err) == (2, True), over.err
    assert "--html-no-texts needs a page" in run_cli(*again, "--html-no-texts").err
    assert not (tmp_path / "again.xlsx").exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": "other"}', '{"format": "rag-eval-run/1", "cases": [1]}']
)
def test_json_that_is_no_run_is_named(run_cli: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    ended = run_cli("r.json", "--report-only")
    assert (ended.code, "r.json" in ended.err) == (2, True)
    assert len(ended.err.splitlines()) == 1
