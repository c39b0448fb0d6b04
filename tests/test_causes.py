"""Why a bot fails: causes that were planted are found, in their order, and none without evidence."""

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure, write_sheet
from fake_judge import FakeJudge
from report_cases import THRESHOLDS, facts_of, plain_result

from rag_eval.records import METRIC_LABELS, CaseResult, Evidence, FailureMode, Score
from rag_eval.results.causes import BotCauses, Cause, CauseTally, cause_words, fix_words
from rag_eval.results.scoring import failure_modes
from rag_eval.results.tallies import Tallies

MISSING = {"context_recall": "reference statement", "context_precision": "chunk"}
UNSUPPORTED = {"faithfulness": "statement"}
LEFT_OUT = {"answer_correctness": "reference statement"}


def case(row: int, low: Mapping[str, str], value: float = 0.1, bot: str = "A", **texts: Any) -> CaseResult:
    """A good case, but for the metrics `low`, whose evidence is one unfavourable item with that subject."""
    good = plain_result(row, bot, 0.9, **texts)
    scores = {
        name: Score.scored(name, value, "", (Evidence(subject, "Text.", "no", False),))
        for name, subject in low.items()
    }
    every = {**good.scores, **scores}
    return replace(good, scores=every, rqs=row / 100, failure_modes=failure_modes(every, THRESHOLDS))


def counted(results: Sequence[CaseResult], thresholds: Mapping[str, float] = THRESHOLDS) -> BotCauses:
    tally = CauseTally(["A"], thresholds)
    for result in results:
        tally.add(result)
    (causes,) = tally.causes()
    return causes


def shape(causes: BotCauses) -> list[tuple[str, int, int, tuple[int, ...]]]:
    return [(cause.name, cause.count, cause.of, tuple(cause.rows)) for cause in causes.causes]


MIXED = [
    case(9, MISSING | LEFT_OUT),  # retrieval explains what the response leaves out
    case(4, UNSUPPORTED),
    case(5, MISSING | UNSUPPORTED | LEFT_OUT),
    case(6, {}),
    case(7, UNSUPPORTED, response="", chunks=()),
    case(8, LEFT_OUT),
]


def test_each_failure_counts_for_its_first_cause() -> None:
    causes = counted(MIXED)
    assert shape(causes) == [
        ("missing_from_chunks", 2, 5, (5, 9)),
        ("no_response", 1, 5, (7,)),
        ("unsupported", 1, 5, (4,)),
        ("incomplete", 1, 5, (8,)),
    ]
    assert (causes.failures, causes.worst_row, causes.worst_rqs) == (5, 4, 0.04)
    first = causes.first_fix
    assert first is not None
    assert first.share == 0.4
    assert cause_words(first) == "2 of 5 failures: the chunks do not contain the whole answer (rows 5, 9)"
    assert (
        fix_words(causes)
        == "Improve the retrieval: the chunks do not contain the whole answer (2 of 5 failures)"
    )


@pytest.mark.parametrize("split", range(len(MIXED) + 1))
def test_tallies_of_parts_are_the_tally_of_the_whole(split: int) -> None:
    first, second = CauseTally(["A", "B"], THRESHOLDS), CauseTally(["A", "B"], THRESHOLDS)
    other = case(3, LEFT_OUT, bot="B")
    for result in MIXED[:split]:
        first.add(result)
    for result in [*MIXED[split:], other]:
        second.add(result)
    first.merge(second.state())
    a, b = first.causes()
    assert a == counted(MIXED)
    assert b == BotCauses(
        "B",
        1,
        (
            Cause(
                "incomplete",
                "the response leaves out parts of the ground truth",
                "make the bot answer completely",
                1,
                1,
                array("q", [3]),
            ),
        ),
        3,
        0.03,
    )


def test_a_failure_without_evidence_has_no_cause_and_still_counts() -> None:
    bare = plain_result(2, "A", 0.1)
    causes = counted([bare, case(3, UNSUPPORTED)])
    assert shape(causes) == [("unsupported", 1, 2, (3,))]
    unknown = counted([bare])
    assert (unknown.failures, unknown.causes, fix_words(unknown)) == (1, (), "No evidence names a cause")


@pytest.mark.parametrize(
    ("value", "threshold", "names"),
    [
        (0.4, 0.3, ["missing_from_chunks"]),  # less than half of the ground truth is in the chunks
        (0.5, 0.3, ["incomplete"]),  # half of it is: what the response leaves out counts
        (0.5, 0.6, ["missing_from_chunks"]),
    ],
)
def test_slight_evidence_does_not_explain_a_failure(value: float, threshold: float, names: list[str]) -> None:
    result = case(2, {"context_recall": "reference statement"}, value)
    failed = case(2, LEFT_OUT)
    both = replace(failed, scores={**failed.scores, "context_recall": result.scores["context_recall"]})
    causes = counted([both], {**THRESHOLDS, "context_recall": threshold})
    assert [cause.name for cause in causes.causes] == names


def test_a_bot_without_failures_has_the_causes_of_its_weaker_cases() -> None:
    causes = counted([case(2, UNSUPPORTED, 0.7), case(3, {}), case(4, LEFT_OUT, 0.6), case(5, LEFT_OUT, 0.6)])
    assert shape(causes) == [("incomplete", 2, 3, (4, 5)), ("unsupported", 1, 3, (2,))]
    assert causes.failures == 0
    assert fix_words(causes) == (
        "Make the bot answer completely: the response leaves out parts of the ground truth "
        "(2 of 3 cases with a score below 0.8)"
    )
    perfect = counted([case(3, {})])
    assert (perfect.causes, fix_words(perfect), fix_words(None)) == ((), "", "")


def test_cases_that_were_not_judged_are_no_failures() -> None:
    result = plain_result(2)
    failed = {**result.scores, "faithfulness": Score.failed("faithfulness", "truncated", "cut")}
    lost = replace(
        result, case=replace(result.case, bot="A"), scores=failed, rqs=None,
        failure_modes=(FailureMode.NOT_JUDGED,),
    )  # fmt: skip
    causes = counted([lost])
    assert (causes.failures, causes.causes, causes.worst_row) == (0, (), None)


def test_rows_are_named_up_to_three() -> None:
    causes = counted([case(row, UNSUPPORTED) for row in range(2, 7)])
    assert cause_words(causes.causes[0]).endswith("(rows 2, 3, 4 …)")
    one = counted([case(2, UNSUPPORTED)])
    assert cause_words(one.causes[0]) == "1 of 1 failure: the chunks do not support the response (row 2)"


def test_causes_reach_the_findings_by_the_thresholds_of_the_run() -> None:
    tallies = Tallies(facts_of("A", 1, thresholds=dict.fromkeys(METRIC_LABELS, 0.7)))
    tallies.add(replace(case(2, UNSUPPORTED, 0.6), failure_modes=(FailureMode.HALLUCINATION,)))
    findings = tallies.findings(tallies.summary())
    (causes,) = findings.causes
    assert findings.causes_of("A") is causes
    assert findings.causes_of("B") is None
    assert [cause.name for cause in causes.causes] == ["unsupported"]


ABOUT = "The harbour ferry to Kelso leaves at seven in the morning and returns before midnight on weekdays."
OTHER = "Bamboo flooring scratches easily unless the varnish contains aluminium oxide particles."
LIE = "Volcanic glaciers produce turquoise marmalade whenever seventeen accountants whistle loudly."
QUERY = "When does the harbour ferry to Kelso leave and return on weekdays?"
PLANTED = {  # what the response is, and what the context is
    "missing_from_chunks": ("Bamboo flooring of the harbour ferry to Kelso scratches easily.", [OTHER]),
    "unsupported": (LIE, [ABOUT]),
    "no_response": ("", [ABOUT]),
    "empty_context": (ABOUT, []),
    "evasive": ("I'm sorry, I don't know that and I cannot help.", [ABOUT]),
}
BOTS = {
    "Lost": {"missing_from_chunks": 4, "no_response": 2, "evasive": 1},
    "Liar": {"unsupported": 4, "empty_context": 3, "evasive": 2, "no_response": 1},
}


def planted_sheet(path: Path) -> dict[str, dict[str, list[int]]]:
    """Ten rows; what is planted is found in these rows, by bot and cause."""
    kinds = {
        bot: [kind for kind, count in planted.items() for _ in range(count)] for bot, planted in BOTS.items()
    }
    lines: list[list[str]] = []
    rows: dict[str, dict[str, list[int]]] = {
        bot: {kind: [] for kind in planted} for bot, planted in BOTS.items()
    }
    for index in range(10):
        texts: list[str] = []
        for bot, of_bot in kinds.items():
            response, chunks = ABOUT, [ABOUT]
            if index < len(of_bot):
                response, chunks = PLANTED[of_bot[index]]
                rows[bot][of_bot[index]].append(index + 2)
            texts += [response, json.dumps(chunks) if chunks else ""]
        lines.append([QUERY, ABOUT, *texts])
    headers = ["Query", "Ground_Truth", "Bot_Lost", "Lost_Context", "Bot_Liar", "Liar_Context"]
    write_sheet(path, headers, *lines)
    return rows


@pytest.mark.parametrize("is_offline", [True, False])
def test_planted_causes_are_found_in_their_order(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, is_offline: bool
) -> None:
    planted = planted_sheet(tmp_path / "in.xlsx")
    variables = {} if is_offline else azure(judge)
    arguments = ["--judge", "offline"] if is_offline else []
    assert run_cli("in.xlsx", "--json", "run.json", *arguments, **variables).code == 0
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    found = {each["bot"]: each for each in document["causes"]}
    for bot, kinds in planted.items():
        assert [(cause["name"], cause["count"], cause["rows"]) for cause in found[bot]["causes"]] == [
            (kind, len(rows), rows) for kind, rows in kinds.items()
        ]
        assert {cause["of"] for cause in found[bot]["causes"]} == {sum(map(len, kinds.values()))}


def test_gold_documents_that_were_not_retrieved_matter_only_if_the_chunks_may_lack_the_answer() -> None:
    documents = {"gold_ids": ("d1", "d2"), "retrieved_ids": ("d3",)}
    elsewhere = case(2, UNSUPPORTED)  # context recall 0.9: other documents contain the answer
    lacking = case(3, MISSING)
    decided = replace(case(4, UNSUPPORTED), failure_modes=(FailureMode.RETRIEVAL_FAILURE,))
    unknown = case(5, UNSUPPORTED)
    unknown = replace(unknown, scores={"faithfulness": unknown.scores["faithfulness"]})
    results = [
        replace(each, case=replace(each.case, **documents)) for each in (elsewhere, lacking, decided, unknown)
    ]
    assert shape(counted(results)) == [
        ("missing_documents", 3, 4, (3, 4, 5)),
        ("unsupported", 1, 4, (2,)),
    ]
