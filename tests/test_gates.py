"""Quality gates: exit 1 when a bot misses one, never passed on nothing judged, and readable for CI systems."""

from pathlib import Path

import pytest
from conftest import Run, azure
from defusedxml import ElementTree
from fake_judge import FakeJudge, Request, error
from files import write_table
from report_cases import facts_of
from test_scoring import FAILED, flat, result, summarise

from rag_eval.errors import InputError
from rag_eval.results.baseline import BaselineComparison, PastRun
from rag_eval.results.findings import Findings
from rag_eval.results.gates import Gate, GateOn, evaluate, parse_gates, regression_gates
from rag_eval.results.paired import Change, CommonQueries, Direction

LEVELS = [flat(value) for value in (0.6, 0.8, 0.7, 0.75, 0.65, 0.7, 0.72, 0.68)]


@pytest.mark.parametrize(
    ("gate_on", "least", "passed"),
    [
        (GateOn.MEAN, 0.7, True),
        (GateOn.INTERVAL, 0.7, False),
        (GateOn.INTERVAL, 0.6, True),
        (GateOn.MEAN, 0.71, False),
    ],
)
def test_a_gate_looks_at_the_mean_or_at_the_lower_end_of_its_interval(
    gate_on: GateOn, least: float, passed: bool
) -> None:
    (result,) = evaluate([Gate("rqs", least)], summarise({"A": LEVELS}), gate_on, 0.95)
    assert result.passed is passed
    assert result.reason.startswith("rqs 0.7000 (")


@pytest.mark.parametrize(
    ("value", "least", "passed", "shown"),
    [
        (0.81666, 0.8167, False, "rqs 0.81666 (95% CI 0.81666 to"),
        (0.81674, 0.8167, True, "rqs 0.8167 (95% CI 0.8167 to"),
        (0.69999999, 0.7, False, "rqs 0.69999999 (95% CI 0.69999999 to"),
        (0.7 - 2e-16, 0.7, True, "rqs 0.7000 (95% CI 0.7000 to"),
        (0.5, 0.50000001, False, "the lower limit must be at least 0.50000001 (--gate-on interval)"),
    ],
)
def test_a_gate_is_not_missed_by_nothing(value: float, least: float, passed: bool, shown: str) -> None:
    """A figure that rounds to what is wanted has as many decimals as show that it is below; a rounding error
    of the arithmetic is no reason to fail."""
    (result,) = evaluate([Gate("rqs", least)], summarise({"A": [flat(value)] * 5}), GateOn.INTERVAL, 0.95)
    assert (result.passed, shown in result.reason) == (passed, True), result.reason


def test_every_bot_must_reach_every_gate() -> None:
    results = evaluate(
        [Gate("rqs", 0.5), Gate("faithfulness", 0.5)],
        summarise({"A": LEVELS, "B": [flat(0.1)] * 8}),
        GateOn.MEAN,
        0.95,
    )
    assert [(each.bot, each.gate.name, each.passed) for each in results] == [
        ("A", "rqs", True),
        ("B", "rqs", False),
        ("A", "faithfulness", True),
        ("B", "faithfulness", False),
    ]


@pytest.mark.parametrize("gate_on", GateOn)
@pytest.mark.parametrize(
    "values", [[flat(FAILED)] * 5, [flat(None)] * 5, [flat(0.9)] * 5 + [flat(FAILED)] * 5]
)
def test_a_gate_never_passes_on_what_was_not_judged(
    gate_on: GateOn, values: list[tuple[object, ...]]
) -> None:
    (result,) = evaluate([Gate("rqs", 0.0)], summarise({"A": values}), gate_on, 0.95)  # type: ignore[dict-item]
    assert not result.passed


def test_one_query_gives_no_interval_and_so_does_not_pass() -> None:
    (result,) = evaluate([Gate("rqs", 0.1)], summarise({"A": [flat(0.9)]}), GateOn.INTERVAL, 0.95)
    assert (result.passed, "too few" in result.reason) == (False, True)


@pytest.mark.parametrize(
    ("values", "gate_on", "min_coverage", "passed", "reason"),
    [
        (
            [flat(0.9)] * 5,
            GateOn.MEAN,
            0.95,
            True,
            "rqs 0.9000 (5 of 5 queries); the mean must be at least 0.7 (--gate-on mean)",
        ),
        (
            [flat(0.6)] * 5,
            GateOn.MEAN,
            0.95,
            False,
            "rqs 0.6000 (5 of 5 queries); the mean must be at least 0.7 (--gate-on mean)",
        ),
        (
            [flat(0.9)] * 5,
            GateOn.INTERVAL,
            0.95,
            True,
            "rqs 0.9000 (95% CI 0.9000 to 0.9000, 5 of 5 queries); the lower limit must be at least 0.7 "
            "(--gate-on interval)",
        ),
        (
            [flat(0.9), flat(FAILED)],
            GateOn.MEAN,
            0.5,
            True,
            "rqs 0.9000 (1 of 2 queries); the mean must be at least 0.7 (--gate-on mean)",
        ),
        (
            [flat(0.9), flat(FAILED)],
            GateOn.MEAN,
            0.51,
            False,
            "rqs 0.9000 (1 of 2 queries): too few queries were judged",
        ),
        ([flat(0.9)], GateOn.INTERVAL, 0.5, False, "rqs 0.9000 (1 of 1 query): too few for an interval"),
        ([flat(FAILED)], GateOn.MEAN, 0.0, False, "rqs was not scored for any query"),
    ],
)
def test_the_figures_that_decide_a_gate_are_told(
    values: list[tuple[float | str | None, ...]],
    gate_on: GateOn,
    min_coverage: float,
    passed: bool,
    reason: str,
) -> None:
    (result,) = evaluate([Gate("rqs", 0.7)], summarise({"A": values}), gate_on, min_coverage)
    assert (result.passed, result.reason, result.gate.title) == (passed, reason, "rqs >= 0.7")


def test_a_gate_names_its_queries_where_the_leaderboard_compares_others() -> None:
    """One bot has two means then: over its own queries, and over those of all bots."""
    summary = summarise({"A": [flat(0.9)] * 6, "B": [flat(0.8)] * 5 + [flat(None)]})
    reasons = [each.reason for each in evaluate([Gate("rqs", 0.7)], summary, GateOn.MEAN, 0.95)]
    assert reasons[0].startswith(
        "rqs 0.9000 (6 of 6 queries of this bot; the Leaderboard compares 5); the mean"
    )
    assert reasons[1].startswith("rqs 0.8000 (5 of 5 queries); the mean")


def test_a_gate_on_a_metric_looks_at_its_own_interval() -> None:
    values = [(0.9, 0.1 * n, 0.9, 0.9, 0.9) for n in range(10)]
    (result,) = evaluate([Gate("faithfulness", 0.3)], summarise({"A": values}), GateOn.INTERVAL, 0.95)
    assert (result.passed, "faithfulness 0.4500 (95% CI" in result.reason) == (False, True)
    (result,) = evaluate([Gate("faithfulness", 0.2)], summarise({"A": values}), GateOn.INTERVAL, 0.95)
    assert result.passed


def _change(
    bot: str,
    name: str,
    difference: float,
    direction: Direction,
    units: int = 0,
    *,
    is_reversible: bool = False,
) -> Change:
    return Change(
        bot=bot,
        name=name,
        before=0.5,
        now=0.5 + difference,
        interval=None,
        queries=max(3, units),
        common=CommonQueries(before=5, now=4, both=3),
        direction=direction,
        is_reversible=is_reversible,
        units=units,
    )


@pytest.mark.parametrize(
    ("before", "both", "changes", "passed", "reason"),
    [
        (5, 3, [("rqs", -0.125, Direction.WORSE), ("faithfulness", -0.25, Direction.WORSE)], False,
         "significantly worse than the baseline: RQS −0.1250 (3 common queries), Faithfulness −0.2500 (3 common "
         "queries)"),
        (5, 3, [("rqs", 0.2, Direction.BETTER), ("context_recall", -0.3, Direction.UNDECIDED)], True,
         "no mean is significantly worse than the baseline (3 of the baseline's 5 queries)"),
        (7, 3, [("rqs", -0.2, Direction.WORSE)], False,
         "not comparable: this run has 3 of the baseline's 7 queries, less than the share of 0.5 that [evaluation] "
         "min_common requires"),
        (6, 3, [("rqs", 0.0, Direction.SAME)], True,
         "no mean is significantly worse than the baseline (3 of the baseline's 6 queries)"),
        (5, 0, [], False, "not comparable: no query is in both runs equally often"),
        (0, 0, [], False, "not comparable: the baseline does not have this bot"),
        (5, 3, [], False, "no query has a score in both runs"),
    ],
)  # fmt: skip
def test_a_bot_without_a_worse_mean_passes_if_enough_of_the_baseline_is_compared(
    before: int, both: int, changes: list[tuple[str, float, Direction]], passed: bool, reason: str
) -> None:
    findings = Findings(
        {}, {}, None, changes=tuple(_change("A", *each) for each in changes),
        common={"A": CommonQueries(before=before, now=9, both=both)},
    )  # fmt: skip
    (result,) = regression_gates(findings, "A", 0.5)
    assert (result.passed, result.reason, result.gate.title) == (passed, reason, "no_regression")


def test_a_bot_on_which_the_judge_failed_everywhere_has_not_passed() -> None:
    """Though another mean, such as the latency or a single metric, is as it was."""
    change = _change("A", "context_recall", 0.0, Direction.SAME)
    findings = Findings({}, {}, None, changes=(change,), common={"A": CommonQueries(before=9, now=9, both=9)})
    assert [gate.passed for gate in regression_gates(findings, "A", 0.5)] == [True]
    (gate,) = regression_gates(findings, "A", 0.5, unscored="A")
    assert (gate.passed, gate.reason) == (False, "no query has an RQS, since the judge failed")


_WITHOUT_WORSE = "no mean is significantly worse than the baseline (40 of the baseline's 40 queries)"


@pytest.mark.parametrize(
    ("changes", "passed", "reason"),
    [
        ([("rqs", -0.5, Direction.UNDECIDED, 4)], False,
         "could not be decided: RQS −0.5000 (4 common queries): too few queries for a conclusion"),
        ([("rqs", -0.5, Direction.UNDECIDED, 2), ("faithfulness", 0.0, Direction.SAME, 2)], False,
         "could not be decided: RQS −0.5000 (3 common queries): too few conversations for a conclusion"),
        ([("rqs", -0.5, Direction.UNDECIDED, 4), ("faithfulness", -0.5, Direction.SAME, 4)], False,
         "could not be decided: RQS −0.5000 (4 common queries): too few queries for a conclusion"),
        ([("rqs", -0.05, Direction.UNDECIDED, 4)], True,
         f"{_WITHOUT_WORSE}; 4 common queries cannot show that one is"),
        ([("rqs", 0.5, Direction.UNDECIDED, 4)], True,
         f"{_WITHOUT_WORSE}; 4 common queries cannot show that one is"),
        ([("rqs", -0.5, Direction.UNDECIDED, 5)], True,
         f"{_WITHOUT_WORSE}; 5 common queries cannot show that one is"),
        ([("rqs", -0.5, Direction.UNDECIDED, 6)], True, _WITHOUT_WORSE),
        ([("rqs", -0.5, Direction.UNDECIDED, 6), ("faithfulness", 0.0, Direction.SAME, 6)], True,
         f"{_WITHOUT_WORSE}; 6 common queries cannot show that one is"),
        ([("rqs", 0.1, Direction.UNDECIDED, 40), ("answer_correctness", -0.5, Direction.UNDECIDED, 4)], True,
         f"{_WITHOUT_WORSE}; not tested: Answer Correctness −0.5000 (4 common queries): too few queries"),
    ],
)  # fmt: skip
def test_fewer_than_five_queries_or_conversations_are_no_proof_that_nothing_is_worse(
    changes: list[tuple[str, float, Direction, int]], passed: bool, reason: str
) -> None:
    """The same rule for both: a fall fails if no mean of the bot can be tested, and a sparse metric is only named."""
    findings = Findings(
        {}, {}, None, changes=tuple(_change("A", *each) for each in changes),
        common={"A": CommonQueries(before=40, now=40, both=40)},
    )  # fmt: skip
    (result,) = regression_gates(findings, "A", 0.5, 0.05)
    words = " by more than 0.05 ([evaluation] regression_margin)"
    assert (result.passed, result.reason.replace(words, "")) == (passed, reason)


@pytest.mark.parametrize(
    ("difference", "margin", "passed"),
    [
        (-0.04, 0.05, True),
        (-0.05, 0.05, True),  # as computed from 0.5 − 0.45 it is a little more
        (-0.06, 0.05, False),
        (-0.001, 0.0, False),
    ],
)
def test_a_mean_may_fall_by_the_margin(difference: float, margin: float, passed: bool) -> None:
    findings = Findings(
        {}, {}, None,
        changes=(
            _change("A", "rqs", difference, Direction.WORSE), _change("A", "faithfulness", -0.9, Direction.SAME)
        ),
        common={"A": CommonQueries(before=3, now=3, both=3)},
    )  # fmt: skip
    (result,) = regression_gates(findings, "A", 0.5, margin)
    assert result.passed is passed
    words = " by more than 0.05 ([evaluation] regression_margin)" if margin else ""
    assert f"significantly worse than the baseline{words}" in result.reason


@pytest.mark.parametrize(("difference", "passed"), [(-0.04, True), (-0.06, False)])
def test_a_fall_that_may_be_worse_than_the_margin_is_not_decided(difference: float, passed: bool) -> None:
    change = _change("A", "rqs", difference, Direction.UNDECIDED, is_reversible=True)
    findings = Findings({}, {}, None, changes=(change,), common={"A": CommonQueries(before=3, now=3, both=3)})
    (result,) = regression_gates(findings, "A", 0.5, 0.05)
    assert result.passed is passed
    assert ("could not be decided" in result.reason) is not passed


def test_scores_that_failed_now_are_no_evidence_against_worse() -> None:
    """12 of 20 are worse, and 8 failed: if these were perfect, nothing would be worse."""
    names = {(f"q{row}", "gt", "A", 0): {"rqs": 0.8} for row in range(2, 22)}
    comparison = BaselineComparison(PastRun("old.xlsx", names), facts_of("A", 20, weights={}))
    for row in range(2, 22):
        comparison.add(result("A", row, flat(0.7 - row / 1000 if row < 14 else FAILED)))
    findings = Findings({}, {}, None, changes=comparison.changes(), common=comparison.common)
    (gate,) = regression_gates(findings, "A", 0.5)
    assert not gate.passed
    assert gate.reason == (
        "could not be decided: RQS −0.1075 (12 common queries) would be significantly worse than the baseline, but "
        "scores that only one of the two runs has could change that"
    )


@pytest.mark.parametrize(("text", "least"), [("rqs=0", 0.0), ("rqs=1", 1.0)])
def test_a_gate_may_want_everything_or_nothing(text: str, least: float) -> None:
    assert parse_gates([text]) == (Gate("rqs", least),)


def test_every_wrong_gate_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_gates(["speed=0.5", "rqs=0.5", "rqs=high"])
    told = str(caught.value)
    assert (
        "unknown metric 'speed'" in told,
        "must be a number between 0 and 1 such as 0.7, not 'high'" in told,
    ) == (
        True,
        True,
    )
    assert "rqs=0.5" not in told


@pytest.mark.parametrize("text", ["rqs", "rqs=", "rqs=1.5", "rqs=nan", "speed=0.5", "=0.5"])
def test_a_gate_that_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(InputError, match="--fail-under"):
        parse_gates([text])


def test_gates_are_named_as_in_the_report_or_in_the_configuration() -> None:
    assert parse_gates(["RQS=0.5", "Answer Correctness=.6", "context-recall = 1"]) == (
        Gate("rqs", 0.5),
        Gate("answer_correctness", 0.6),
        Gate("context_recall", 1.0),
    )


def sheet_of(path: Path) -> Path:
    facts = [f"The shop is open on day {n}." for n in range(6)]
    lines = [[f"Is the shop open on day {n}?", fact, "A museum.", fact] for n, fact in enumerate(facts)]
    return write_table(path, ["Query", "Bot_Good", "Bot_B<a>d", "Context"], *lines)


def test_a_missed_gate_ends_with_1_and_stands_in_the_junit_file(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli(
        "in.xlsx", "--judge", "offline", "--fail-under", "faithfulness=0.5", "--junit", "gates.xml"
    )
    assert ended.code == 1
    assert "FAILED: B<a>d" in ended.err
    suite = ElementTree.parse(tmp_path / "gates.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed = [case.get("classname") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["B<a>d"]


def test_gates_that_are_reached_end_with_0(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--judge", "offline", "--fail-under", "faithfulness=0", "--gate-on", "mean")
    assert ended.code == 0
    assert ended.out.count("Gate passed") == 2


def test_low_coverage_comes_before_a_missed_gate(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    def block(request: Request) -> object:
        return error(400, "content_filter", "filtered") if request.task == "verdicts" else None

    judge.always = block  # type: ignore[assignment]
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--fail-under", "rqs=0.5", **azure(judge))
    assert ended.code == 3
    assert "FAILED" in ended.err


def test_a_wrong_gate_costs_nothing(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--fail-under", "rqs=high", **azure(judge))
    assert (ended.code, judge.requests) == (2, [])


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        (
            "in.txt/gates.xml",
            "part of the path is a file, not a folder; choose another place with --junit",
        ),
        ("folder", "name a file, not a folder, with --junit"),
    ],
)
def test_a_place_where_no_gates_can_be_written_costs_nothing(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, place: str, remedy: str
) -> None:
    """It is found out before the first call, as that of the report is, and no report is left without its gates."""
    sheet_of(tmp_path / "in.xlsx")
    (tmp_path / "folder").mkdir()
    (tmp_path / "in.txt").touch()
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--fail-under", "rqs=0.5", "--junit", place, **azure(judge))
    assert (ended.code, judge.requests) == (5, [])
    assert f"{place}: " in ended.err
    assert remedy in ended.err
    assert not (tmp_path / "r.xlsx").exists()


def test_rows_that_no_gate_looked_at_are_told_in_quiet_too(run_cli: Run, tmp_path: Path) -> None:
    """By default 200 rows are judged; a gate that passed over them says nothing about the others."""
    lines = [[f"Is the shop open on day {n}?", "It is open."] for n in range(230)]
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], *lines)
    ended = run_cli("in.xlsx", "--judge", "offline", "--quiet", "--fail-under", "rqs=0")
    assert (ended.code, ended.out) == (0, "")
    assert "30 rows beyond the first 200 left out; raise max_rows" in ended.err
