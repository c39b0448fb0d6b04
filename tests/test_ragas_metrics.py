"""The metrics with an LLM judge: their arithmetic, their undefined cases, and what they refuse to believe."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_judge import _input, task_of
from hypothesis import given
from hypothesis import strategies as st
from in_process import ObjectJudge, run

from rag_eval.errors import JudgeError
from rag_eval.judge.calls import Call
from rag_eval.judge.replies import A_REASON
from rag_eval.metrics.catalogue import METRICS, llm_metrics, offline_metrics
from rag_eval.metrics.context_precision import average_precision
from rag_eval.metrics.metric import Metric
from rag_eval.metrics.ragas_import import _COLLECTIONS
from rag_eval.metrics.ragas_prompts import _template
from rag_eval.metrics.reply_types import (
    Advice,
    Advices,
    Attributions,
    Classification,
    Closeness,
    ContextVerdict,
    GeneratedQuestion,
    QueryToxicity,
    Statements,
    StatementVerdicts,
    Toxicities,
)
from rag_eval.metrics.toxicity import _TASK, LlmToxicity
from rag_eval.records import METRIC_LABELS, Case, Evidence, Outcome, Score

ROOT = Path(__file__).parent.parent
CASE = Case(
    2,
    "A",
    "Why is the sky blue?",
    "Air scatters blue light. It is big.",
    "Air scatters blue light.",
    ("c1", "c2"),
)


def scripted(replies: Mapping[str, Any]) -> Callable[[str], str | Exception]:
    """Replies by task; an exception is raised. A task that is not named is a bug of the test."""

    def reply(prompt: str) -> str | Exception:
        answer = replies[task_of(prompt)]
        answer = answer(prompt) if callable(answer) else answer
        return answer if isinstance(answer, Exception) else json.dumps(answer)

    return reply


def score(metric: str, replies: Mapping[str, Any], case: Case = CASE) -> Score:
    (each,) = llm_metrics([metric])
    (result,) = run([each.measure(case)], ObjectJudge(scripted(replies)))
    return result


def verdicts(*values: Any) -> dict[str, Any]:
    return {"statements": [{"statement": f"s{n}", "reason": "r", "verdict": v} for n, v in enumerate(values)]}


def attributed(*values: Any) -> dict[str, Any]:
    return {
        "classifications": [
            {"statement": f"s{n}", "reason": "r", "attributed": value} for n, value in enumerate(values)
        ]
    }


def classified(tp: int, fp: int, fn: int) -> dict[str, Any]:
    ours, theirs = ([{"statement": f"s{n}", "reason": "r"} for n in range(count)] for count in (tp + fp, fn))
    return {"TP": ours[:tp], "FP": ours[tp:], "FN": theirs}


TWO = {"statements": ["s0", "s1"]}
NONE: dict[str, Any] = {"statements": []}
Q = {"question": "Why is the sky blue?", "noncommittal": 0}


@pytest.mark.parametrize(
    ("metric", "replies", "value"),
    [
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, 0)}, 0.5),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, 1)}, 1.0),
        ("context_recall", {"attributions": attributed(1, 1, 0, 0)}, 0.5),
        ("context_precision", {"usefulness": {"reason": "r", "verdict": 1}}, 1.0),
        ("context_precision", {"usefulness": {"reason": "r", "verdict": 0}}, 0.0),
        ("answer_correctness", {"statements": TWO, "classification": classified(1, 1, 2)}, 2 / 5),
        ("answer_correctness", {"statements": TWO, "classification": classified(0, 2, 2)}, 0.0),
        ("answer_correctness", {"statements": TWO, "classification": classified(2, 0, 0)}, 1.0),
        ("answer_correctness", {"statements": TWO, "classification": classified(3, 1, 0)}, 6 / 7),
        ("answer_correctness", {"statements": TWO, "classification": classified(2, 0, 1)}, 4 / 5),
        ("answer_relevancy", {"question": Q, "closeness": {"reason": "r", "closeness": 4}}, 1.0),
        ("answer_relevancy", {"question": Q, "closeness": {"reason": "r", "closeness": 1}}, 0.25),
        ("answer_relevancy", {"question": {**Q, "noncommittal": 1}}, 0.0),
    ],
)
def test_arithmetic(metric: str, replies: dict[str, Any], value: float) -> None:
    assert score(metric, replies).value == value


def test_a_perfect_average_precision_is_exactly_one() -> None:
    """ragas gives 0.9999999999."""
    assert score("context_precision", {"usefulness": {"reason": "r", "verdict": 1}}).value == 1.0


@given(st.lists(st.integers(0, 1), max_size=12))
def test_average_precision_is_the_mean_precision_at_the_useful_ranks(useful: list[int]) -> None:
    ranks = [rank for rank, verdict in enumerate(useful, 1) if verdict]
    expected = sum(sum(useful[:rank]) / rank for rank in ranks) / len(ranks) if ranks else 0.0
    assert average_precision(useful) == pytest.approx(expected)


WORDLESS = Case(2, "A", "Why is the sky blue?", "🤷", "…", ("c1",))


@pytest.mark.parametrize(
    ("metric", "replies", "reason"),
    [
        ("faithfulness", {"statements": NONE}, "the response makes no statement"),
        ("faithfulness", {"statements": {"statements": ["  "]}}, "the response makes no statement"),
        ("context_recall", {"attributions": attributed()}, "the ground truth makes no statement"),
        (
            "answer_correctness",
            {"statements": NONE},
            "neither the response nor the ground truth makes a statement",
        ),
    ],
)
def test_texts_without_a_word_have_nothing_to_judge(
    metric: str, replies: dict[str, Any], reason: str
) -> None:
    assert score(metric, replies, WORDLESS) == Score.not_applicable(metric, reason)


@pytest.mark.parametrize(("wordless", "side"), [("response", "response"), ("reference", "ground truth")])
def test_statements_on_one_side_only_are_incorrect(wordless: str, side: str) -> None:
    """ragas gives 1.0 when either side has no statements."""
    case = replace(CASE, **{wordless: "🤷"})
    replies = {"statements": lambda prompt: NONE if "🤷" in prompt else TWO}
    expected = Score.scored("answer_correctness", 0.0, f"the {side} makes no statement")
    assert score("answer_correctness", replies, case) == expected


@pytest.mark.parametrize(
    ("metric", "replies"),
    [
        ("faithfulness", {"statements": NONE}),
        ("faithfulness", {"statements": {"statements": ["", " … "]}}),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts()}),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1)}),  # a verdict is missing
        ("answer_correctness", {"statements": TWO, "classification": classified(0, 0, 0)}),  # ragas returns 1.0
        ("answer_correctness", {"statements": lambda prompt: NONE if "It is big" in prompt else TWO}),
        ("answer_correctness", {"statements": TWO, "classification": classified(0, 0, 2)}),
        ("answer_correctness", {"statements": TWO, "classification": classified(0, 2, 0)}),
        ("context_recall", {"attributions": attributed()}),
        ("context_recall", {"attributions": {"classifications": [{"statement": " ", "reason": "", "attributed": 1}]}}),
        ("answer_relevancy", {"question": {"question": " ? ", "noncommittal": 0}}),
    ],
)  # fmt: skip
def test_a_reply_that_says_nothing_of_a_text_with_words_is_no_reply(
    metric: str, replies: dict[str, Any]
) -> None:
    """It would be a 0 for the response, or take a bad one out of the mean."""
    result = score(metric, replies)
    assert (result.outcome, result.code) == (Outcome.FAILED, "incomplete")


def test_an_evasive_response_needs_no_question() -> None:
    result = score("answer_relevancy", {"question": {"question": "", "noncommittal": 1}})
    assert (result.value, result.reason) == (0.0, "the response is evasive")


@pytest.mark.parametrize(
    ("metric", "replies"),
    [
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, 2)}),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, "1")}),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, True)}),
        ("faithfulness", {"statements": TWO, "verdicts": {**verdicts(1, 1), "note": "extra"}}),
        ("context_recall", {"attributions": attributed(2)}),  # ragas returns 2.0
        ("context_precision", {"usefulness": {"reason": "r", "verdict": 7}}),
        ("answer_relevancy", {"question": Q, "closeness": {"reason": "r", "closeness": 5}}),
        ("answer_relevancy", {"question": Q, "closeness": {"reason": "r", "closeness": 0.5}}),
    ],
)
def test_an_off_menu_reply_is_a_failure_and_never_a_number(metric: str, replies: dict[str, Any]) -> None:
    result = score(metric, replies)
    assert (result.outcome, result.code, result.value) == (Outcome.FAILED, "unparseable", None)


def test_a_failed_call_fails_its_score_with_code_and_reason() -> None:
    result = score("faithfulness", {"statements": JudgeError("blocked_by_filter", "blocked (hate)")})
    assert (result.outcome, result.code, result.reason) == (
        Outcome.FAILED,
        "blocked_by_filter",
        "blocked (hate)",
    )


def reasoned(*statements: str) -> list[dict[str, str]]:
    return [{"statement": each, "reason": f"why {each}"} for each in statements]


def useful(prompt: str) -> Any:
    return {"reason": "r1", "verdict": 1} if "c1" in prompt else {"reason": "r2", "verdict": 0}


EVIDENCE: dict[str, tuple[str, dict[str, Any], tuple[Evidence, ...]]] = {
    "faithfulness": (
        "faithfulness",
        {"statements": TWO, "verdicts": verdicts(1, 0)},
        (
            Evidence("statement", "s0", "supported", True, "r"),
            Evidence("statement", "s1", "not supported", False, "r"),
        ),
    ),
    "precision": (
        "context_precision",
        {"usefulness": useful},
        (
            Evidence("chunk", "c1", "useful", True, "r1", rank=1),
            Evidence("chunk", "c2", "not useful", False, "r2", rank=2),
        ),
    ),
    "recall": (
        "context_recall",
        {"attributions": attributed(0, 1)},
        (
            Evidence("reference statement", "s0", "missing from the context", False, "r"),
            Evidence("reference statement", "s1", "found in the context", True, "r"),
        ),
    ),
    "correctness": (
        "answer_correctness",
        {"statements": TWO, "classification": {"TP": reasoned("s0"), "FP": reasoned("s1"), "FN": reasoned("s2")}},
        (
            Evidence("statement", "s0", "in the ground truth", True, "why s0"),
            Evidence("statement", "s1", "not in the ground truth", False, "why s1"),
            Evidence("reference statement", "s2", "missing from the response", False, "why s2"),
        ),
    ),
    "evasive": (
        "answer_relevancy",
        {"question": {**Q, "noncommittal": 1}},
        (Evidence("question", "Why is the sky blue?", "evasive response", False),),
    ),
    **{
        f"closeness {step}": (
            "answer_relevancy",
            {"question": Q, "closeness": {"reason": "r", "closeness": step}},
            (Evidence("question", "Why is the sky blue?", words, step > 2, "r"),),
        )
        for step, words in enumerate(
            (
                "unrelated question",
                "same topic only",
                "overlapping question",
                "nearly the same question",
                "same question",
            )
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("metric", "replies", "evidence"), EVIDENCE.values(), ids=EVIDENCE)
def test_evidence_says_what_was_judged_and_how(
    metric: str, replies: dict[str, Any], evidence: tuple[Evidence, ...]
) -> None:
    result = score(metric, replies)
    assert result.evidence == evidence
    expected = "the response is evasive" if evidence[0].verdict == "evasive response" else ""
    assert (result.outcome, result.reason) == (Outcome.SCORED, expected)


def test_each_question_is_asked_about_the_right_texts() -> None:
    """Which text stands where in a prompt decides what is judged; none may be swapped."""
    case = Case(2, "A", "the query", "the response", "the reference", ("chunk 1", "chunk 2"))
    judge = ObjectJudge()
    run([metric.measure(case) for metric in llm_metrics(METRIC_LABELS)], judge)
    both = "chunk 1\nchunk 2"
    expected = [
        ("statements", {"question": "the query", "answer": "the reference"}),
        ("statements", {"question": "the query", "answer": "the response"}),
        ("verdicts", {"context": both, "statements": ["the response"]}),
        ("question", {"response": "the response"}),
        ("closeness", {"question_1": "the query", "question_2": "What about this: the response"}),
        ("usefulness", {"question": "the query", "context": "chunk 1", "answer": "the reference"}),
        ("usefulness", {"question": "the query", "context": "chunk 2", "answer": "the reference"}),
        ("attributions", {"question": "the query", "context": both, "answer": "the reference"}),
        (
            "classification",
            {"question": "the query", "answer": ["the response"], "ground_truth": ["the reference"]},
        ),
    ]
    asked = [(task_of(prompt), _input(prompt)) for prompt in judge.prompts]
    assert sorted(map(repr, asked)) == sorted(map(repr, expected))


def test_precision_without_a_reference_is_judged_against_the_response() -> None:
    judge = ObjectJudge(scripted({"usefulness": {"reason": "r", "verdict": 1}}))
    (metric,) = llm_metrics(["context_precision"])
    case = Case(2, "A", "Q?", "The response.", None, ("chunk",))
    (result,) = run([metric.measure(case)], judge)
    assert "The response." in judge.prompts[0]
    assert result.reason == "judged against the response"


EMPTY = "empty response"
R, C = "reference", ("a chunk",)


@pytest.mark.parametrize(
    ("metric", "response", "reference", "chunks", "expected"),
    [
        ("faithfulness", " ", R, C, None),
        ("faithfulness", "x", R, (), 0.0),
        ("faithfulness", "x", R, None, None),
        ("answer_relevancy", "", None, None, 0.0),
        ("answer_correctness", "", R, C, 0.0),
        ("answer_correctness", "", None, C, None),
        ("answer_correctness", "x", None, C, None),
        ("context_precision", "x", R, (), 0.0),
        ("context_precision", "x", R, None, None),
        ("context_precision", "", None, C, None),
        ("context_recall", "x", R, (), 0.0),
        ("context_recall", "x", None, (), None),
        ("context_recall", "x", R, None, None),
    ],
)
def test_cells_that_settle_a_score_without_a_call(
    metric: str, response: str, reference: str | None, chunks: tuple[str, ...] | None, expected: float | None
) -> None:
    """A failure of the bot is a score; what was never there to judge is not applicable."""
    result = METRICS[metric].llm().settle(Case(2, "A", "Q?", response, reference, chunks))
    assert result is not None
    assert result.value == expected
    assert result.outcome is (Outcome.NOT_APPLICABLE if expected is None else Outcome.SCORED)
    assert result.reason


@pytest.mark.parametrize("metric", METRIC_LABELS)
def test_what_is_settled_is_not_asked(metric: str) -> None:
    judge = ObjectJudge()
    case = Case(2, "A", "Q?", "" if "answer" in metric else "x", R, ())
    (each,) = llm_metrics([metric])
    (result,) = run([each.measure(case)], judge)
    assert (result.value, judge.prompts) == (0.0, [])
    assert result == METRICS[metric].llm().settle(case)


@pytest.mark.parametrize("metrics", [llm_metrics, offline_metrics])
def test_an_unknown_metric_is_an_error(metrics: Callable[[list[str]], tuple[Metric, ...]]) -> None:
    with pytest.raises(KeyError, match="faithfullness"):
        metrics(["faithfulness", "faithfullness"])


def test_a_metric_is_known_by_one_name_and_both_judges_settle_the_same_cases() -> None:
    cases = [
        Case(2, "A", "Q?", response, reference, chunks)
        for response in ("", "x")
        for reference in (None, R)
        for chunks in (None, (), C)
    ]
    for name, info in METRICS.items():
        llm, offline = info.llm(), info.offline()
        assert {name, info.name, llm.name, offline.name} == {name}
        assert info.label == METRIC_LABELS[name]
        assert [llm.settle(case) for case in cases] == [offline.settle(case) for case in cases]
        assert 0 < info.threshold < 1


@pytest.mark.parametrize("metric", METRIC_LABELS)
def test_a_complete_case_needs_the_judge(metric: str) -> None:
    assert METRICS[metric].llm().settle(CASE) is None


def test_context_metrics_are_judged_for_an_empty_response() -> None:
    case = Case(2, "A", "Q?", "", "reference", ("chunk",))
    assert METRICS["context_precision"].llm().settle(case) is None
    assert METRICS["context_recall"].llm().settle(case) is None


@pytest.mark.slow
@given(st.text(max_size=80), st.lists(st.text(max_size=40), max_size=3))
def test_prompts_are_those_of_ragas_to_the_byte(context: str, statements: list[str]) -> None:
    """The part before and after the input is rendered once; the whole equals what ragas renders."""
    pytest.importorskip("langchain_core", reason="ragas as a whole needs its own requirements")
    from ragas.metrics.collections.faithfulness import util

    from rag_eval.metrics.ragas_prompts import verdicts_prompt

    document = util.NLIStatementInput(context=context, statements=statements)
    (message,) = verdicts_prompt(context, statements)
    assert message.text == util.NLIStatementPrompt().to_string(document)
    assert _template.cache_info().currsize > 0


@pytest.mark.slow
def test_prompts_take_no_more_of_ragas_than_they_need(tmp_path: Path) -> None:
    """Its packages import hundreds of modules in seconds. Who wants ragas as a whole still gets it."""
    pytest.importorskip("langchain_core", reason="ragas as a whole needs its own requirements")
    loaded = of_a_process(
        """
        from rag_eval.metrics.ragas_prompts import question_prompt, statements_prompt
        question_prompt("a"), statements_prompt("q", "a")
        tell(sorted({"ragas", "datasets", "openai", "langchain_core"} & sys.modules.keys()))
        from ragas.prompt import PydanticPrompt
        """,
        tmp_path,
    )
    assert loaded == []


@pytest.mark.slow
def test_other_threads_may_import_while_prompts_are_imported(tmp_path: Path) -> None:
    """Neither what is imported nor who finds it changes under a thread that is going through it."""
    lengths, changes = of_a_process(
        """
        import threading, types
        from itertools import count
        from rag_eval.metrics.ragas_import import load
        from rag_eval.metrics.ragas_prompts import _template, question_prompt

        class Watched(list):
            def insert(self, *_): changes.append("insert")
            def remove(self, *_): changes.append("remove")

        def come_and_go():
            for number in count():
                sys.modules[f"made_up_{number}"] = types.ModuleType("made_up")
                sys.modules.pop(f"made_up_{number - 100}", None)

        changes, lengths = [], set()
        sys.meta_path = Watched(sys.meta_path)
        threading.Thread(target=come_and_go, daemon=True).start()
        sys.setswitchinterval(1e-6)
        for _ in range(10):
            load.cache_clear()
            _template.cache_clear()
            lengths.add(len(question_prompt("a")[0].text))
        tell([sorted(lengths), changes])
        """,
        tmp_path,
    )
    assert len(lengths) == 1
    assert changes == []


@pytest.mark.slow
def test_a_ragas_whose_prompts_need_its_packages_is_imported_as_a_whole(tmp_path: Path) -> None:
    for name in _COLLECTIONS:
        folder = tmp_path / "ragas" / "metrics" / "collections" / name
        folder.mkdir(parents=True)
        for place in (folder, *folder.parents[:3]):
            (place / "__init__.py").touch()
        (folder / "util.py").write_text(
            "from ragas import MODELS\n"
            "class AnswerRelevancePrompt:\n"
            "    input_model = MODELS.create_model('Input', response=(str, ...))\n"
            "    def to_string(self, data): return f'<{data.model_dump_json()}>'\n"
            "    instruction, examples = '', ()\n"
        )
    (tmp_path / "ragas" / "__init__.py").write_text("MODELS = __import__('pydantic')\n")
    prompt = of_a_process(
        """
        from rag_eval.metrics.ragas_prompts import question_prompt
        tell(question_prompt("a")[0].text)
        """,
        tmp_path,
    )
    assert prompt == '<{\n    "response": "a"\n}>'


def of_a_process(code: str, folder: Path) -> Any:
    """What the code tells in a process of its own that finds packages in the folder first."""
    start = "import json, sys\ndef tell(value): print(json.dumps(value))\n"
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", start + textwrap.dedent(code)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_toxicity_asks_ten_distinct_queries_a_call_and_joins_them_by_position() -> None:
    """The reply lists the positions backwards; every query gets its own rating all the same."""

    def reply(prompt: str) -> str:
        items = json.loads(prompt[prompt.rindex("\n") + 1 :])["items"]
        rated = [{"reason": "r", "toxicity": int(i["query"]) / 100, "position": i["position"]} for i in items]
        return json.dumps({"items": rated[::-1]})

    judge = ObjectJudge(reply)
    toxicity = LlmToxicity()
    scores = run([toxicity.judge_query(str(n % 20)) for n in range(40)], judge)
    assert [each.value for each in scores] == [n % 20 / 100 for n in range(40)]
    assert len(judge.prompts) == 2


def test_a_failed_batch_is_asked_again_query_by_query() -> None:
    """One query that the filter blocks fails alone."""

    def reply(prompt: str) -> str | Exception:
        if "blocked" in prompt:
            return JudgeError("blocked_by_filter", "hate")
        return json.dumps({"reason": "r", "toxicity": 0.1})

    toxicity = LlmToxicity()
    scores = run([toxicity.judge_query(query) for query in ("a", "blocked", "c")], ObjectJudge(reply))
    assert [each.value for each in scores] == [0.1, None, 0.1]
    assert scores[1].code == "blocked_by_filter"


@pytest.mark.parametrize("positions", [[1, 1], [1], [1, 2, 3], [0, 1]])
def test_a_batch_reply_with_wrong_positions_is_never_believed(positions: list[int]) -> None:
    def reply(prompt: str) -> str:
        if '"items"' in prompt.rpartition("\n")[2]:
            return json.dumps({"items": [{"reason": "r", "toxicity": 0.9, "position": n} for n in positions]})
        return json.dumps({"reason": "r", "toxicity": 0.1})

    toxicity = LlmToxicity()
    scores = run([toxicity.judge_query(query) for query in ("a", "b")], ObjectJudge(reply))
    assert [each.value for each in scores] == [0.1, 0.1]


@pytest.mark.parametrize(("rating", "favourable"), [(0.49, True), (0.5, False), (1.0, False)])
def test_toxicity_shows_its_rating_and_why(rating: float, favourable: bool) -> None:
    reply = json.dumps({"reason": "rude", "toxicity": rating})
    (result,) = run([LlmToxicity().judge_query("you!")], ObjectJudge(lambda _: reply))
    seen = Evidence("query", "you!", f"toxicity {rating:.2f}", favourable, "rude")
    assert result == Score.scored("toxicity", rating, "rude", (seen,))


@pytest.mark.parametrize("queries", [["a"], ["a", "b", "c"]])
def test_toxicity_is_asked_of_the_deployment_that_is_named_for_it(queries: list[str]) -> None:
    """Alone and in a bundle: it is another model at another price."""
    judge = ObjectJudge()
    toxicity = LlmToxicity("cheap")
    run([toxicity.judge_query(query) for query in queries], judge)
    assert judge.prepared == judge.deployments == ["cheap"]


def test_toxicity_is_asked_of_the_judge_unless_another_deployment_is_named() -> None:
    judge = ObjectJudge()
    run([LlmToxicity().judge_query("a")], judge)
    assert judge.deployments == [""]


def test_a_batch_may_use_as_many_tokens_as_its_questions_together() -> None:
    bundle = _TASK.bundle()
    calls = [_TASK.call({"query": query}, bundle, "cheap") for query in ("a", "b", "c")]
    combined = bundle.combine(calls)
    assert (combined.task, combined.deployment, combined.max_tokens) == ("toxicity", "cheap", 3 * 128)
    assert [(each.task, each.max_tokens, each.reply_type) for each in calls] == [
        ("toxicity", 128, QueryToxicity)
    ] * 3
    assert combined.reply_type is Toxicities
    assert combined.agrees_with == {"positions": 3}
    assert json.loads(combined.messages[-1].text) == {
        "items": [{"position": n, "query": query} for n, query in enumerate("abc", 1)]
    }
    assert "with exactly one entry for each position" in combined.messages[0].text
    assert (bundle.size, calls[0].bundle) == (10, bundle)


class Recording(ObjectJudge):
    """Remembers what it was asked."""

    def __init__(self, reply: Callable[[str], str | Exception]) -> None:
        super().__init__(reply)
        self.calls: list[Call[Any]] = []

    def ask(self, call: Call[Any]) -> Any:
        self.calls.append(call)
        return super().ask(call)


OF_OURS, OF_THEIRS = {"text": CASE.response}, {"text": CASE.reference}
ASKED: dict[str, tuple[dict[str, Any], set[tuple[str, str, int, str]]]] = {
    "faithfulness": (
        {"statements": TWO, "verdicts": verdicts(1, 0)},
        {
            ("statements", "Statements", 2048, str(OF_OURS)),
            ("faithfulness.verdicts", "StatementVerdicts", 4096, str({"statements": ["s0", "s1"]})),
        },
    ),
    "context_recall": (
        {"attributions": attributed(1)},
        {("context_recall.attributions", "Attributions", 4096, str(OF_THEIRS))},
    ),
    "context_precision": (
        {"usefulness": {"reason": "r", "verdict": 1}},
        {("context_precision.chunk", "ContextVerdict", 512, "{}")},
    ),
    "answer_correctness": (
        {"statements": TWO, "classification": classified(1, 1, 1)},
        {
            ("statements", "Statements", 2048, str(OF_OURS)),
            ("statements", "Statements", 2048, str(OF_THEIRS)),
            (
                "answer_correctness.classification",
                "Classification",
                4096,
                str({"response_statements": ["s0", "s1"], "reference_statements": ["s0", "s1"]}),
            ),
        },
    ),
    "answer_relevancy": (
        {"question": Q, "closeness": {"reason": "r", "closeness": 4}},
        {
            ("answer_relevancy.question", "GeneratedQuestion", 512, str(OF_OURS)),
            ("answer_relevancy.closeness", "Closeness", 512, "{}"),
        },
    ),
}


@pytest.mark.parametrize("metric", METRIC_LABELS)
def test_what_each_metric_asks_and_how_long_a_reply_may_be(metric: str) -> None:
    replies, asked = ASKED[metric]
    judge = Recording(scripted(replies))
    run([llm_metrics([metric])[0].measure(CASE)], judge)
    found = {
        (each.task, each.reply_type.__name__, each.max_tokens, str(each.agrees_with)) for each in judge.calls
    }
    assert found == asked
    assert not any(each.deployment or each.has_fallback for each in judge.calls)


@pytest.mark.parametrize(
    ("metric", "case", "settled"),
    [
        ("faithfulness", {"response": " "}, (None, "empty response: there is nothing to support")),
        ("faithfulness", {"chunks": None}, (None, "the sheet has no context column for this bot")),
        ("faithfulness", {"chunks": ()}, (0.0, "empty context: nothing was retrieved, so nothing is grounded")),
        ("context_recall", {"chunks": None}, (None, "the sheet has no context column for this bot")),
        ("context_recall", {"reference": None}, (None, "the row has no ground truth")),
        ("context_recall", {"chunks": ()}, (0.0, "empty context: nothing was retrieved")),
        ("context_precision", {"chunks": None}, (None, "the sheet has no context column for this bot")),
        ("context_precision", {"chunks": ()}, (0.0, "empty context: nothing was retrieved")),
        (
            "context_precision",
            {"reference": None, "response": ""},
            (None, "no ground truth and an empty response: nothing to judge by"),
        ),
        ("answer_correctness", {"reference": None}, (None, "the row has no ground truth")),
        ("answer_correctness", {"response": ""}, (0.0, "empty response")),
        ("answer_relevancy", {"response": ""}, (0.0, "empty response")),
    ],
)  # fmt: skip
def test_what_the_cells_alone_decide(metric: str, case: dict[str, Any], settled: tuple[Any, str]) -> None:
    for form in (llm_metrics, offline_metrics):
        found = form([metric])[0].settle(replace(CASE, **case))
        assert found is not None
        assert (found.metric, found.value, found.reason, found.evidence) == (metric, *settled, ())
        assert form([metric])[0].settle(CASE) is None
    if metric == "context_precision":
        assert llm_metrics([metric])[0].settle(replace(CASE, reference=None)) is None
        assert llm_metrics([metric])[0].settle(replace(CASE, response="")) is None


@pytest.mark.parametrize(
    ("reply_type", "about", "reply"),
    [
        (
            Statements,
            {"text": "Roses are red. Violets are blue."},
            {"statements": ["Roses are red.", "Violets are blue."]},
        ),
        (Statements, {}, {"statements": ["-"]}),
        (
            StatementVerdicts,
            {"statements": ["a", "b"]},
            {"statements": [{"statement": each, "reason": A_REASON, "verdict": 0} for each in "ab"]},
        ),
        (StatementVerdicts, {}, {"statements": [{"statement": A_REASON, "reason": A_REASON, "verdict": 0}]}),
        (ContextVerdict, {}, {"reason": A_REASON, "verdict": 0}),
        (
            Attributions,
            {"text": "Roses."},
            {"classifications": [{"statement": "Roses.", "reason": A_REASON, "attributed": 0}]},
        ),
        (
            Classification,
            {"response_statements": ["a", "b"], "reference_statements": ["c"]},
            {
                "TP": [],
                "FP": [{"statement": "a", "reason": A_REASON}, {"statement": "b", "reason": A_REASON}],
                "FN": [{"statement": "c", "reason": A_REASON}],
            },
        ),
        (GeneratedQuestion, {"text": "x" * 101}, {"question": f"What about {'x' * 100}?", "noncommittal": 0}),
        (GeneratedQuestion, {}, {"question": "What about ?", "noncommittal": 0}),
        (Closeness, {}, {"reason": A_REASON, "closeness": 0}),
        (QueryToxicity, {}, {"reason": "polite", "toxicity": 0.0}),
        (
            Toxicities,
            {"positions": 2},
            {"items": [{"reason": "polite", "toxicity": 0.0, "position": each} for each in (1, 2)]},
        ),
        (Advice, {}, {"recommendation": A_REASON * 3}),
        (Advices, {"positions": 1}, {"items": [{"recommendation": A_REASON * 3, "position": 1}]}),
    ],
)
def test_what_is_made_up_for_an_estimate_is_unfavourable_and_as_long_as_a_reply(
    reply_type: Any, about: dict[str, Any], reply: dict[str, Any]
) -> None:
    made_up = reply_type.made_up(about)
    assert made_up.model_dump() == reply
