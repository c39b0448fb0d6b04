"""Why a bot fails: causes that were planted are found, in their order, and every failure has one."""

import itertools
import json
import os
import random
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure
from fake_judge import FakeJudge
from files import write_table
from report_cases import THRESHOLDS, facts_of, plain_result

from rag_eval.metrics.diagnosis import diagnose, limits_from
from rag_eval.metrics.recommendations import NO_ACTION, advice_by_rule
from rag_eval.records import (
    FAILURES,
    METRIC_LABELS,
    NO_CITATIONS,
    NO_SUCH_CHUNK,
    WRONG_CHUNK,
    Case,
    CaseResult,
    Evidence,
    FailureMode,
    Score,
)
from rag_eval.results.causes import BotCauses, Cause, CauseTally, cause_words, fix_words
from rag_eval.results.scoring import doc_recall, failure_modes
from rag_eval.results.tallies import Tallies

SAMPLE = Path(__file__).parents[1] / "sample_rag_input.xlsx"
FIXTURES = os.environ.get("RAG_EVAL_FIXTURES", "")
"""A folder with the labelled examples that docs/background/offline-judge-quality.md describes."""
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


def test_a_failure_without_evidence_has_the_cause_that_its_scores_show() -> None:
    bare = plain_result(2, "A", 0.1)
    causes = counted([bare, case(3, UNSUPPORTED)])
    assert shape(causes) == [("missing_from_chunks", 1, 2, (2,)), ("unsupported", 1, 2, (3,))]
    # Where only faithfulness is low, the words of the response tell whether it is in the ground truth.
    for response, cause in (
        ("The harbour opens at nine.", "in_reference_only"),
        ("Tea is sold.", "unsupported"),
    ):
        good = plain_result(2, "A", 0.9, response=response, reference="The harbour opens at nine.")
        every = {**good.scores, "faithfulness": Score.scored("faithfulness", 0.1)}
        low = replace(good, scores=every, failure_modes=failure_modes(every, THRESHOLDS))
        assert shape(counted([low])) == [(cause, 1, 1, (2,))]
    # Of scores that are all good, by another threshold than the run's.
    other = counted([replace(plain_result(2, "A", 0.9), failure_modes=(FailureMode.LOW_QUALITY,))])
    assert fix_words(other) == "Check the red cells: another score is below its threshold (1 of 1 failure)"


OWN_CAUSES = {
    FailureMode.RETRIEVAL_FAILURE: {
        "empty_context", "missing_documents", "missing_from_chunks", "useless_chunks", "ranking",
    },
    FailureMode.HALLUCINATION: {"no_response", "empty_context", "unsupported", "in_reference_only"},
    FailureMode.LOW_QUALITY: {
        "no_response", "evasive", "incomplete", "not_in_reference", "off_topic", "different",
    },
}  # fmt: skip
SUBJECTS = {
    "answer_correctness": ("statement", "reference statement"),
    "faithfulness": ("statement", "sentence"),
    "answer_relevancy": ("question",),
    "context_precision": ("chunk",),
    "context_recall": ("reference statement",),
}
TEXTS = ("Loans last four weeks.", "Dogs are not allowed.", "No.", "")
SHARES = (0.0, 0.25, 0.5, 0.85, 1.0)


def any_result(chance: random.Random) -> tuple[CaseResult, dict[str, float]]:
    """What a judge, a JSON file or somebody's thresholds might make of a case, and the thresholds."""
    thresholds = {name: chance.choice(SHARES) for name in METRIC_LABELS}
    documents = chance.choice([None, (), ("d1",), ("d2", "d3")])
    about = Case(
        2, "A", "How long?", chance.choice(TEXTS), chance.choice([None, *TEXTS]), chance.choice([None, (), ("c", "d")]),
        gold_ids=None if documents is None else ("d1", "d2"), retrieved_ids=documents,
    )  # fmt: skip
    scores = {}
    for name in chance.sample(list(METRIC_LABELS), chance.randint(1, 5)):
        value = chance.choice(SHARES)
        evidence = tuple(
            Evidence(
                chance.choice(SUBJECTS[name]), chance.choice(TEXTS), "", chance.random() < 0.5, chance.choice(TEXTS),
                rank=1,
            )
            for _ in range(chance.randint(0, 2))
        )  # fmt: skip
        samples = chance.choice([(), (value, value)])
        scores[name] = replace(Score.scored(name, value, "", evidence), samples=samples)
    modes = failure_modes(scores, thresholds, doc_recall(about))
    nothing = Score.not_applicable("toxicity", "switched off")
    return CaseResult(case=about, rqs=None, failure_modes=modes, scores=scores, toxicity=nothing), thresholds


def test_every_failure_mode_has_a_cause_of_its_own_and_advice() -> None:
    """By any scores, evidence, thresholds and metrics."""
    chance = random.Random(24)
    met: Counter[FailureMode] = Counter()
    for result, thresholds in (any_result(chance) for _ in range(2_000)):
        modes = FAILURES.intersection(result.failure_modes)
        met.update(modes)
        found = {each.kind.name.lower() for each in diagnose(result, limits_from(thresholds, 0.5))}
        assert all(found & OWN_CAUSES[mode] for mode in modes), result
        if modes:
            assert [(cause.count, cause.of) for cause in counted([result], thresholds).causes] == [(1, 1)]
            assert advice_by_rule(result, thresholds) not in ("", NO_ACTION)
    assert min(met[mode] for mode in FAILURES) > 300


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
    assert causes.first_fix
    assert causes.first_fix.fix == "make the bot answer completely"
    assert fix_words(causes) == "", "there is nothing to fix first"
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
    assert (
        cause_words(one.causes[0]) == "1 of 1 failure: the chunks do not support the whole response (row 2)"
    )


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
    write_table(path, headers, *lines)
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


RESPONSES = (ABOUT, LIE, f"{ABOUT} {LIE}", "", "I'm sorry, I don't know that and I cannot help.")
CONTEXTS = ([ABOUT], [OTHER], [OTHER, ABOUT.replace("leaves at", "departs at")], [])
EVERYTHING_IS_RED = "[thresholds]\n" + "".join(f"{name} = 1.0\n" for name in METRIC_LABELS)


def mixed_sheet(path: Path) -> None:
    """Every response with every context, with and without a ground truth, and with documents of all sorts."""
    documents = itertools.cycle(["", "d1", "d2", "d1 || d2"])
    lines = [
        [QUERY, truth, response, json.dumps(chunks) if chunks else "", "d1 || d2", next(documents)]
        for truth, response, chunks in itertools.product((ABOUT, ""), RESPONSES, CONTEXTS)
    ]
    write_table(path, ["Query", "Ground_Truth", "Bot_A", "Context", "Gold_Docs", "Retrieved_Docs"], *lines)


def assert_explained(document: dict[str, Any], *, is_advised_by_rule: bool = True) -> None:
    """Each failure of each bot is counted for exactly one cause, and its advice says what to do."""
    failing: dict[str, list[int]] = {bot["bot"]: [] for bot in document["causes"]}
    for each in document["cases"]:
        if not FAILURES.isdisjoint(each["failure_modes"]):
            failing[each["bot"]].append(each["row"])
            assert not is_advised_by_rule or each["recommendation"] not in ("", NO_ACTION)
    assert any(failing.values())
    for bot in document["causes"]:
        assert bot["failures"] == len(failing[bot["bot"]])
        if bot["failures"]:
            assert sorted(row for cause in bot["causes"] for row in cause["rows"]) == failing[bot["bot"]]
            assert all(cause["count"] == len(cause["rows"]) for cause in bot["causes"])
            assert "low_score" not in [cause["name"] for cause in bot["causes"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "config"),
    [
        (["--judge", "offline"], ""),
        (["--judge", "offline"], EVERYTHING_IS_RED),
        (["--judge", "offline"], "[diagnostics]\ngold_ids = true\n"),
        (["--judge", "offline"], "[metrics]\ncontext_precision = false\nanswer_correctness = false\n"),
        (["--judge", "offline"], "[metrics]\nfaithfulness = false\ncontext_recall = false\n"),
        (["--judge", "offline"], "[weights]\nfaithfulness = 0\ncontext_recall = 0\ncontext_precision = 0\n"),
        (["--prompts", "merged"], ""),
        (["--prompts", "single"], EVERYTHING_IS_RED),
        (["--prompts", "single", "--samples", "2"], EVERYTHING_IS_RED),
        (["--prompts", "ragas"], ""),
    ],
)
def test_causes_cover_failures(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, options: list[str], config: str
) -> None:
    """In the run, and in a report that is made of its JSON with other thresholds."""
    mixed_sheet(tmp_path / "in.xlsx")
    (tmp_path / "config.ini").write_text(config, encoding="utf-8")
    assert run_cli("in.xlsx", "--json", "run.json", "-q", *options, **azure(judge)).code == 0
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert_explained(document, is_advised_by_rule="ragas" not in options)
    (tmp_path / "other.ini").write_text(config if "[thresholds]" in config else EVERYTHING_IS_RED)
    again = ("run.json", "--report-only", "--config", "other.ini", "-o", "again.xlsx", "--json", "again.json")
    assert run_cli(*again, "-q").code == 0
    document = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert_explained(document, is_advised_by_rule="ragas" not in options)


PARAPHRASED = [  # a query, its ground truth, and a chunk that says it in other words
    (
        "How long is a loan?",
        "A loan lasts for a month, with at most two renewals for anybody who asks in time.",
        "Each loan: books may be kept for four weeks; readers can extend that two times if they apply early.",
    ),
    (
        "When does the museum open?",
        "The museum opens its doors early each morning, but stays shut on Mondays in winter.",
        "The museum opens for visitors at nine, and it is closed on Mondays from November to March.",
    ),
    (
        "Who may use the gym?",
        "Members older than sixteen may use the gym whenever somebody on duty supervises the room.",
        "Use of the gym is restricted to members above the age of sixteen while employees watch.",
    ),
    (
        "Who pays for damage?",
        "Tenants bear the cost of damage by carelessness, landlords that of ordinary wear and ageing.",
        "Damage resulting from carelessness is charged to tenants; the owner pays for normal use.",
    ),
    (
        "What is the dress code?",
        "Staff wear a blue shirt and black trousers.",
        "The uniform of staff: black trousers with a shirt in blue.",
    ),
]
KNOWN = "the response is in the ground truth, but not found in the chunks in these words"


def test_a_response_that_equals_the_ground_truth_is_not_called_unsupported(
    run_cli: Run, tmp_path: Path
) -> None:
    """The offline judge does not find paraphrases. That is what is said, and the retrieval is not blamed."""
    lines = [
        [query, truth, truth if row < 4 else "Staff may wear whatever pyjamas they own.", chunk]
        for row, (query, truth, chunk) in enumerate(PARAPHRASED)
    ]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Context"], *lines)
    ended = run_cli("in.xlsx", "--judge", "offline", "--json", "run.json")
    assert "Failures: 5 of 5 queries (Hallucination 5, Low Quality 1; some queries have several)" in ended.out
    assert "  First fix: check whether the chunks say so\n" in ended.out
    assert f"    4 of 5 failures: {KNOWN} (rows 2, 3, 4 …)\n" in ended.out
    assert "    1 of 5 failures: the chunks do not support the whole response (row 6)\n" in ended.out
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert_explained(document)
    assert all(KNOWN[1:] in each["recommendation"] for each in document["cases"][:4])


@pytest.mark.parametrize("form", ["ragas", "merged", "single"])
def test_a_statement_that_is_only_in_the_ground_truth_is_told_from_a_made_up_one(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, form: str
) -> None:
    """As an LLM judge says: of the first response it is in the ground truth, of the second it is not."""
    write_table(
        tmp_path / "in.xlsx",
        ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"],
        [QUERY, f"{ABOUT} {OTHER}", f"{ABOUT} {OTHER}", f"{ABOUT} {LIE}", ABOUT],
    )
    (tmp_path / "config.ini").write_text("[thresholds]\nfaithfulness = 0.9\n", encoding="utf-8")
    options = ("--prompts", form, "--json", "run.json")
    assert run_cli("in.xlsx", *options, **azure(judge)).code == 0
    a, b = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["causes"]
    assert [cause["name"] for cause in a["causes"]] == ["in_reference_only"]
    assert [cause["name"] for cause in b["causes"]] == ["unsupported"]
    assert "places" not in a["causes"][0], "it is one file"


def test_causes_cover_failures_of_the_sample(run_cli: Run, tmp_path: Path) -> None:
    assert run_cli(SAMPLE, "-o", "out.xlsx", "--judge", "offline", "--json", "run.json", "-q").code == 0
    assert_explained(json.loads((tmp_path / "run.json").read_text(encoding="utf-8")))


@pytest.mark.skipif(not FIXTURES, reason="set RAG_EVAL_FIXTURES to the folder of the labelled examples")
@pytest.mark.parametrize(
    "name", ["answer_correctness", "answer_relevancy", "context_precision", "context_recall", "faithfulness"]
)
def test_causes_cover_failures_of_the_labelled_examples(run_cli: Run, tmp_path: Path, name: str) -> None:
    """Of the labelled responses, and of a bot that knows the ground truth."""
    lines = (Path(FIXTURES) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    has_context = any(json.loads(line).get("contexts") for line in lines)
    with (tmp_path / "in.jsonl").open("w", encoding="utf-8") as file:
        for each in map(json.loads, lines):
            truth = each.get("ground_truth") or ""
            row = {
                "Query": each["question"] or "?",
                "Ground_Truth": truth,
                "Bot_A": each.get("answer") or "",
                "Bot_B": truth,
            }
            file.write(
                json.dumps(row | ({"Context": each.get("contexts") or []} if has_context else {})) + "\n"
            )
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 5000\n", encoding="utf-8")
    assert run_cli("in.jsonl", "--judge", "offline", "--json", "run.json", "-q").code == 0
    assert_explained(json.loads((tmp_path / "run.json").read_text(encoding="utf-8")))


def test_a_bot_that_repeats_the_query_is_told_so(run_cli: Run, tmp_path: Path) -> None:
    headers = ["Query", "Ground_Truth", "Bot_Parrot", "Context"]
    echoes = [QUERY, f"Regarding “{QUERY}”:", "You asked when the harbour ferry to Kelso leaves."]
    write_table(tmp_path / "in.xlsx", headers, *([QUERY, ABOUT, echo, ABOUT] for echo in echoes))
    assert run_cli("in.xlsx", "--json", "run.json", "--judge", "offline").code == 0
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    (found,) = document["causes"][0]["causes"]
    assert (found["name"], found["count"], found["rows"]) == ("repeats_query", 3, [2, 3, 4])
    assert (found["text"], found["fix"]) == (
        "the response only repeats the query",
        "make the bot answer the question",
    )


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


@pytest.mark.parametrize("verdict", [WRONG_CHUNK, NO_SUCH_CHUNK, NO_CITATIONS])
def test_what_is_wrong_with_citations_is_told_by_its_reason_or_else_its_text(verdict: str) -> None:
    seen = (
        Evidence("statement", "So it is [9].", verdict, False, "there are 2 chunks"),
        Evidence("a", "b", verdict, False),
    )
    result = replace(
        plain_result(), further={"citation_precision": Score.scored("citation_precision", 0.0, "", seen)}
    )
    *_, found = diagnose(result, limits_from(THRESHOLDS, 0.5))
    assert found.details == ["there are 2 chunks", "b"]
