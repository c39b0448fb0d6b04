"""The metrics with an LLM judge: their arithmetic, their undefined cases, and what they refuse to believe."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_judge import task_of
from hypothesis import given
from hypothesis import strategies as st
from in_process import ObjectJudge, run

from rag_eval.errors import JudgeError
from rag_eval.metrics.base import settle_without_judge
from rag_eval.metrics.ragas_metrics import average_precision, ragas_metrics
from rag_eval.metrics.ragas_prompts import _COLLECTIONS, _template
from rag_eval.metrics.toxicity import LlmToxicity
from rag_eval.records import METRIC_LABELS, Case, Outcome, Score

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
    (each,) = ragas_metrics([metric])
    (result,) = run([each.measure(case)], ObjectJudge(scripted(replies)))
    return result


def verdicts(*values: Any) -> dict[str, Any]:
    return {"statements": [{"statement": f"s{n}", "reason": "r", "verdict": v} for n, v in enumerate(values)]}


def attributed(*values: Any) -> dict[str, Any]:
    return {"classifications": [{"statement": "s", "reason": "r", "attributed": value} for value in values]}


def classified(tp: int, fp: int, fn: int) -> dict[str, Any]:
    one = {"statement": "s", "reason": "r"}
    return {"TP": [one] * tp, "FP": [one] * fp, "FN": [one] * fn}


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


@pytest.mark.parametrize(
    ("metric", "replies", "reason"),
    [
        ("faithfulness", {"statements": NONE}, "no statement"),
        ("faithfulness", {"statements": {"statements": ["  "]}}, "no statement"),
        ("context_recall", {"attributions": attributed()}, "no statement"),
        ("answer_correctness", {"statements": NONE}, "neither"),
    ],
)
def test_nothing_to_judge_is_not_applicable(metric: str, replies: dict[str, Any], reason: str) -> None:
    result = score(metric, replies)
    assert result.outcome is Outcome.NOT_APPLICABLE
    assert reason in result.reason


def test_statements_on_one_side_only_are_incorrect() -> None:
    """ragas gives 1.0 when either side has no statements."""
    no_response = {"statements": lambda prompt: NONE if "It is big" in prompt else TWO}
    assert score("answer_correctness", no_response).value == 0.0


@pytest.mark.parametrize(
    ("metric", "replies"),
    [
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1)}),  # a verdict is missing
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, 2)}),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, "1")}),
        ("faithfulness", {"statements": TWO, "verdicts": verdicts(1, True)}),
        ("faithfulness", {"statements": TWO, "verdicts": {**verdicts(1, 1), "note": "extra"}}),
        ("context_recall", {"attributions": attributed(2)}),  # ragas returns 2.0
        ("context_precision", {"usefulness": {"reason": "r", "verdict": 7}}),
        (
            "answer_correctness",
            {"statements": TWO, "classification": classified(0, 0, 0)},
        ),  # ragas returns 1.0
        ("answer_relevancy", {"question": Q, "closeness": {"reason": "r", "closeness": 5}}),
        ("answer_relevancy", {"question": Q, "closeness": {"reason": "r", "closeness": 0.5}}),
    ],
)
def test_r36_an_off_menu_reply_is_a_failure_and_never_a_number(metric: str, replies: dict[str, Any]) -> None:
    result = score(metric, replies)
    assert (result.outcome, result.code, result.value) == (Outcome.FAILED, "unparseable", None)


def test_a_failed_call_fails_its_score_with_code_and_reason() -> None:
    result = score("faithfulness", {"statements": JudgeError("blocked_by_filter", "blocked (hate)")})
    assert (result.outcome, result.code, result.reason) == (
        Outcome.FAILED,
        "blocked_by_filter",
        "blocked (hate)",
    )


def test_evidence_holds_statements_verdicts_and_reasons() -> None:
    result = score("faithfulness", {"statements": TWO, "verdicts": verdicts(1, 0)})
    assert [(each.text, each.verdict, each.favourable, each.reason) for each in result.evidence] == [
        ("s0", "supported", True, "r"),
        ("s1", "not supported", False, "r"),
    ]


def test_precision_without_a_reference_is_judged_against_the_response() -> None:
    judge = ObjectJudge(scripted({"usefulness": {"reason": "r", "verdict": 1}}))
    (metric,) = ragas_metrics(["context_precision"])
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
def test_r27_cells_that_settle_a_score_without_a_call(
    metric: str, response: str, reference: str | None, chunks: tuple[str, ...] | None, expected: float | None
) -> None:
    """A failure of the bot is a score; what was never there to judge is not applicable."""
    result = settle_without_judge(metric, Case(2, "A", "Q?", response, reference, chunks))
    assert result is not None
    assert result.value == expected
    assert result.outcome is (Outcome.NOT_APPLICABLE if expected is None else Outcome.SCORED)
    assert result.reason


@pytest.mark.parametrize("metric", METRIC_LABELS)
def test_a_complete_case_needs_the_judge(metric: str) -> None:
    assert settle_without_judge(metric, CASE) is None


def test_context_metrics_are_judged_for_an_empty_response() -> None:
    case = Case(2, "A", "Q?", "", "reference", ("chunk",))
    assert settle_without_judge("context_precision", case) is None
    assert settle_without_judge("context_recall", case) is None


@given(st.text(max_size=80), st.lists(st.text(max_size=40), max_size=3))
def test_prompts_are_those_of_ragas_to_the_byte(context: str, statements: list[str]) -> None:
    """The part before and after the input is rendered once; the whole equals what ragas renders."""
    from ragas.metrics.collections.faithfulness import util

    from rag_eval.metrics.ragas_prompts import verdicts_prompt

    document = util.NLIStatementInput(context=context, statements=statements)
    (message,) = verdicts_prompt(context, statements)
    assert message.text == util.NLIStatementPrompt().to_string(document)
    assert _template.cache_info().currsize > 0


def test_prompts_take_no_more_of_ragas_than_they_need(tmp_path: Path) -> None:
    """Its packages import hundreds of modules in seconds. Who wants ragas as a whole still gets it."""
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


def test_other_threads_may_import_while_prompts_are_imported(tmp_path: Path) -> None:
    """Neither what is imported nor who finds it changes under a thread that is going through it."""
    lengths, changes = of_a_process(
        """
        import threading, types
        from itertools import count
        from rag_eval.metrics.ragas_prompts import _template, load, question_prompt

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
