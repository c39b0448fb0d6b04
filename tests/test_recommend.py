"""What a report advises, word for word: by rule, and what is asked of a judge that advises."""

import json
from dataclasses import replace

import pytest
from in_process import ObjectJudge, run
from report_cases import THRESHOLDS, result_of

from rag_eval.errors import JudgeError
from rag_eval.metrics.recommendations import NO_ACTION, LlmAdviser, RuleAdviser, advice_by_rule
from rag_eval.records import Case, CaseResult, Evidence, FailureMode, Score

GOOD = dict.fromkeys(("answer_correctness", "faithfulness", "answer_relevancy", "context_precision"), 0.9)
GOOD["context_recall"] = 0.9


def against(subject: str, *texts: str, rank: int | None = None) -> tuple[Evidence, ...]:
    items = [Evidence(subject, text, "no", False, "", rank=rank) for text in texts]
    return (*items, Evidence(subject, "All is well.", "yes", True))


def case_of(
    values: dict[str, float | None] | None = None,
    evidence: dict[str, tuple[Evidence, ...]] | None = None,
    **case: object,
) -> CaseResult:
    """A case with good scores, but for those given; None is a failed score."""
    texts = {"query": "q?", "response": "An answer.", "reference": "r", "chunks": ("c",), **case}
    scores = [
        Score.failed(name, "truncated", "cut")
        if value is None
        else Score.scored(name, value, "", (evidence or {}).get(name, ()))
        for name, value in (GOOD | (values or {})).items()
    ]
    return result_of(Case(2, "A", **texts), scores)  # type: ignore[arg-type]


ASKED = (Evidence("question", "What else?", "nearly the same question", True),)
EVADED = (Evidence("question", "What?", "evasive response", False),)


def settled(metric: str, reason: str) -> CaseResult:
    """As the offline judge scores a response that answers nothing."""
    result = case_of({metric: 0.0})
    return replace(result, scores={**result.scores, metric: replace(result.scores[metric], reason=reason)})


RECALL = "The chunks do not contain the whole answer (“A.”): improve the retrieval."
CHUNKS_ONLY = "make the bot answer from the chunks only."
UNSUPPORTED = f"The chunks do not support the whole response (“A.” and 2 more): {CHUNKS_ONLY}"
RELEVANCY = "The response does not fully address the query: make the bot answer the question directly."
RANKING = "Useful chunks rank below useless ones (chunk {}): rerank or filter the chunks."
USELESS = "No retrieved chunk is useful: improve the retrieval."
EMPTY = "No chunk was retrieved: check the index, its filters and the query rewriting."
NOTHING_SAID = "The bot gave no response: check the bot for timeouts, errors and filters."
EVASION = "The response declines to answer: check the prompt's rules for declining."
REPEATS = "the response only repeats the query"
ECHO = "The response only repeats the query: make the bot answer the question."
LEFT_OUT = "The response leaves out parts of the ground truth (“A.”): make the bot answer completely."
CHECK = "check whether the chunks say so."
KNOWN = f"The response is in the ground truth, but not found in the chunks in these words{{}}: {CHECK}"
DIFFERENT = "The response differs from the ground truth: compare the two."
EXTRA = "The response says more than the ground truth (“A.”{}): check these statements."


@pytest.mark.parametrize(
    ("result", "advice"),
    [
        (case_of(), NO_ACTION),
        (case_of({"faithfulness": 0.8}, {"faithfulness": against("statement", "A.")}), NO_ACTION),
        (case_of({"faithfulness": 0.79}), NO_ACTION),  # no evidence to quote
        (
            case_of({"faithfulness": 0.79}, {"faithfulness": against("statement", "A.", "B.", "C.")}),
            UNSUPPORTED,
        ),
        (
            case_of({"faithfulness": 0.5}, {"faithfulness": against("statement", "A.", "B.")}),
            UNSUPPORTED.replace("2 more", "1 more"),
        ),
        (case_of({"context_recall": 0.5}, {"context_recall": against("reference sentence", "A.")}), RECALL),
        (
            case_of({"context_precision": 0.5}, {"context_precision": against("chunk", "A.", rank=3)}),
            RANKING.format(3),
        ),
        (
            case_of({"context_precision": 0.0}, {"context_precision": against("chunk", *"abc", rank=1)[:-1]}),
            USELESS,
        ),
        (case_of({"answer_correctness": 0.5}, {"answer_correctness": against("reference", "A.")}), LEFT_OUT),
        (
            case_of({"answer_correctness": 0.5}, {"answer_correctness": against("response", "A.")}),
            EXTRA.format(""),
        ),
        (case_of({"answer_relevancy": 0.79}), NO_ACTION),  # no evidence
        (case_of({"answer_relevancy": 0.79}, {"answer_relevancy": ASKED}), RELEVANCY),
        (case_of({"answer_relevancy": 0.8}), NO_ACTION),
        (case_of({"answer_relevancy": 0.1}, response=""), NOTHING_SAID),
        (case_of({"answer_relevancy": 0.1}, {"answer_relevancy": ASKED}, chunks=()), f"{EMPTY} {RELEVANCY}"),
        (
            case_of({"faithfulness": None}),
            "Judge this case again: Faithfulness (truncated) could not be scored.",
        ),
        (
            case_of({"faithfulness": None, "answer_relevancy": None}),
            "Judge this case again: Faithfulness (truncated), Answer Relevancy (truncated) could not be scored.",
        ),
        (
            case_of(
                dict.fromkeys(GOOD, 0.1),
                {
                    "context_recall": against("reference sentence", "A."),
                    "context_precision": against("chunk", "A.", rank=1),
                    "faithfulness": against("statement", "A.", "B.", "C."),
                    "answer_relevancy": ASKED,
                },
            ),
            f"{RECALL} {UNSUPPORTED} {RELEVANCY}",
        ),
        (  # what the response says more of comes first if there is more of it
            case_of(
                {"answer_correctness": 0.5},
                {"answer_correctness": against("reference", "A.") + against("statement", "A.", "B.")},
            ),
            f"{EXTRA.format(' and 1 more')} {LEFT_OUT}",
        ),
        (case_of({"answer_relevancy": 0.0}, {"answer_relevancy": EVADED}), EVASION),
        (settled("answer_relevancy", "the response declines to answer"), EVASION),
        (settled("answer_relevancy", REPEATS), ECHO),
        (settled("answer_correctness", REPEATS), ECHO),  # the other metric may be off
        (
            case_of(gold_ids=("d1", "d2"), retrieved_ids=("d2", "d3")),
            NO_ACTION,  # no score leaves room, and gold documents did not decide
        ),
        (
            case_of({"context_recall": 0.7}, gold_ids=("d1", "d2"), retrieved_ids=("d2", "d3")),
            "Gold documents were not retrieved (“d1”): improve the retrieval.",
        ),
        # The score of a failure mode needs no evidence: it is what was seen.
        (case_of({"answer_correctness": 0.1}), DIFFERENT),
        (case_of({"answer_relevancy": 0.1}), RELEVANCY),
        (case_of({"faithfulness": 0.1}), UNSUPPORTED.replace(" (“A.” and 2 more)", "")),
        (case_of({"faithfulness": 0.1}, response="r"), KNOWN.format("")),
        (
            case_of({"context_recall": 0.1, "context_precision": 0.2}),
            f"{RECALL.replace(' (“A.”)', '')} {RANKING.replace(' (chunk {})', '')}",
        ),
        (
            case_of({"context_recall": 0.1, "context_precision": 0.0}),
            f"{RECALL.replace(' (“A.”)', '')} {USELESS}",
        ),
        (case_of({"faithfulness": 0.0, "context_precision": 0.0, "context_recall": 0.0}, chunks=()), EMPTY),
        (  # what speaks against a sentence that counts as supported
            case_of(
                {"faithfulness": 0.1},
                {"faithfulness": (Evidence("sentence", "A.", "supported", True, "not in the chunks: a"),)},
            ),
            UNSUPPORTED.replace(" and 2 more", ""),
        ),
        (  # the judge says of the same statement that it is in the ground truth
            case_of(
                {"faithfulness": 0.1, "answer_correctness": 0.9},
                {
                    "faithfulness": against("statement", "A.", "B."),
                    "answer_correctness": (
                        Evidence("statement", "A.", "in the ground truth", True),
                        Evidence("statement", "B.", "not in the ground truth", False),
                    ),
                },
                reference="B",
            ),
            f"{UNSUPPORTED.replace('“A.” and 2 more', '“B.”')} {KNOWN.format(' (“A.”)')}",
        ),
        (  # or the words say so; the chunks are useful, so the retrieval is not blamed
            case_of(
                {"faithfulness": 0.1, "context_recall": 0.1},
                {
                    "faithfulness": against("sentence", "Loans last four weeks."),
                    "context_recall": against("reference sentence", "Loans last four weeks."),
                },
                response="Loans last four weeks.",
                reference="Loans last four weeks.",
            ),
            KNOWN.format(" (“Loans last four weeks.”)"),
        ),
        (
            case_of(
                {"faithfulness": 0.1},
                {"faithfulness": against("sentence", "Loans last six weeks.")},
                reference="Loans last four weeks.",
            ),
            UNSUPPORTED.replace("“A.” and 2 more", "“Loans last six weeks.”"),
        ),
        (  # a response that is made up makes good chunks look useless: that it is made up comes first
            case_of(
                {"faithfulness": 0.1, "context_precision": 0.0},
                {
                    "faithfulness": against("statement", "A.", "B.", "C."),
                    "context_precision": against("chunk", "c", rank=1)[:-1],
                },
                reference=None,
            ),
            f"{UNSUPPORTED} {USELESS}",
        ),
        (replace(case_of(), case=replace(case_of().case, is_missing=True)), ""),
    ],
)
def test_advice_by_rule(result: CaseResult, advice: str) -> None:
    """The gravest cause first, and at most three sentences."""
    assert advice_by_rule(result, THRESHOLDS) == advice
    (asked,) = run([RuleAdviser(THRESHOLDS).advise(result)], ObjectJudge(lambda prompt: ""))
    assert asked == advice


@pytest.mark.parametrize(
    ("length", "end"),
    [(60, "xx”): make the bot answer completely."), (61, "xx…”): make the bot answer completely.")],
)
def test_a_long_quotation_is_cut(length: int, end: str) -> None:
    text = "x" * length
    result = case_of({"answer_correctness": 0.5}, {"answer_correctness": against("reference", text)})
    advice = advice_by_rule(result, THRESHOLDS)
    assert advice.endswith(end)
    assert len(advice) == len(LEFT_OUT.replace("A.", "")) + 60


def test_a_failure_mode_leaves_room_for_advice_though_every_score_is_good() -> None:
    """As when gold documents decide about retrieval, or a threshold is high."""
    result = replace(case_of(), failure_modes=(FailureMode.RETRIEVAL_FAILURE,))
    assert advice_by_rule(result, {}) == "Another score is below its threshold: check the red cells."
    high = advice_by_rule(result, {"context_recall": 1.0, "context_precision": 1.0})
    assert high == f"{RECALL.replace(' (“A.”)', '')} {RANKING.replace(' (chunk {})', '')}"
    (asked,) = run([LlmAdviser().advise(result)], ObjectJudge(lambda prompt: '{"recommendation": "Look."}'))
    assert asked == "Look."


def test_the_judge_is_told_the_case_and_cut_to_three_sentences() -> None:
    prompts: list[str] = []

    def reply(prompt: str) -> str:
        prompts.append(prompt)
        return json.dumps({"recommendation": "One. Two! Three? Four."})

    evidence = {"faithfulness": against("statement", *[f"{n} " + "y" * 400 for n in range(14)])}
    result = case_of({"faithfulness": 0.126}, evidence, query="q" * 1001, response="r" * 2001)
    (advice,) = run([LlmAdviser().advise(result)], ObjectJudge(reply))
    assert advice == "One. Two! Three?"
    (prompt,) = prompts
    told = json.loads(prompt[prompt.index('{"query"') :])
    assert told["query"] == "q" * 999 + "…"
    assert told["response"] == "r" * 1999 + "…"
    assert told["failure_mode"] == "Hallucination"
    assert told["scores"] == {
        "Answer Correctness": 0.9, "Faithfulness": 0.13, "Answer Relevancy": 0.9, "Context Precision": 0.9,
        "Context Recall": 0.9,
    }  # fmt: skip
    assert len(told["evidence"]) == 12
    assert told["evidence"][0] == "Faithfulness: no: 0 " + "y" * 297 + "…"


def test_nothing_is_asked_where_nothing_is_to_be_said() -> None:
    def reply(prompt: str) -> str:
        raise AssertionError("asked")

    results = [case_of(), case_of({"faithfulness": None})]
    advice = run([LlmAdviser().advise(result) for result in results], ObjectJudge(reply))
    assert advice == [NO_ACTION, "Judge this case again: Faithfulness (truncated) could not be scored."]


def test_a_failure_leaves_the_advice_empty() -> None:
    def reply(prompt: str) -> str:
        raise JudgeError("truncated", "cut")

    (advice,) = run([LlmAdviser().advise(case_of({"faithfulness": 0.1}))], ObjectJudge(reply))
    assert advice == ""


@pytest.mark.parametrize("text", ["…", "- ", " "])
def test_advice_without_words_is_asked_for_once_more(text: str) -> None:
    replies = iter([text, "Name the year."])
    judge = ObjectJudge(lambda prompt: json.dumps({"recommendation": next(replies)}))
    (asked,) = run([LlmAdviser().advise(case_of({"faithfulness": 0.1}))], judge)
    assert (asked, len(judge.prompts)) == ("Name the year.", 2)
