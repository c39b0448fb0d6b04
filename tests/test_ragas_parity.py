"""For the same replies, our five metrics give what ragas' own classes give, with fewer requests."""

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fake_judge import honest_reply, task_of
from in_process import ObjectJudge, run

from rag_eval.metrics.catalogue import llm_metrics
from rag_eval.metrics.ragas_import import load
from rag_eval.records import METRIC_LABELS, Case, Score

pytestmark = pytest.mark.filterwarnings("ignore")

CASES = {
    "good": Case(
        2,
        "A",
        "What is the capital of France?",
        "Paris is the capital of France. It lies on the Seine.",
        "Paris is the capital of France.",
        (
            "Berlin is the capital of Germany.",
            "Paris is the capital of France and lies on the Seine.",
            "Tea.",
        ),
    ),
    "bad": Case(
        3,
        "A",
        "What is the capital of France?",
        "London has many red buses. The Thames flows there.",
        "Paris is the capital of France. Two million people live there.",
        ("Paris is the capital of France.", "Cheese is made of milk."),
    ),
    "mixed": Case(
        4,
        "A",
        "How long does a loan last?",
        "A loan lasts four weeks. Coffee is free for members.",
        "A loan lasts four weeks and can be extended twice.",
        (
            "A loan lasts four weeks. It can be extended twice.",
            "Members may bring dogs.",
            "Coffee costs two euros.",
        ),
    ),
}


class CountingLlm:
    """Answers ragas' prompts with the replies that our judge gives, and keeps the prompts."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def generate(self, prompt: str, response_model: Any) -> Any:
        self.prompts.append(prompt)
        return response_model.model_validate_json(honest_reply(prompt))

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        return self.generate(prompt, response_model)


@pytest.fixture(scope="module")
def ragas() -> Any:
    """ragas' metrics, which take the counting model for one of theirs."""
    load()  # with telemetry off and its warnings kept to itself
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas.llms.base import InstructorBaseRagasLLM
        from ragas.metrics import collections
    InstructorBaseRagasLLM.register(CountingLlm)
    return collections


def by_ragas(ragas: Any, metric: str, case: Case, llm: CountingLlm) -> float:
    """The value of ragas' own class, run by ragas."""
    build: dict[str, Callable[[], Any]] = {
        "faithfulness": lambda: ragas.Faithfulness(llm=llm),
        "context_precision": lambda: ragas.ContextPrecisionWithReference(llm=llm),
        "context_recall": lambda: ragas.ContextRecall(llm=llm),
        "answer_correctness": lambda: ragas.AnswerCorrectness(llm=llm, weights=[1.0, 0.0]),
    }
    fields = {
        "user_input": case.query,
        "response": case.response,
        "reference": case.reference,
        "retrieved_contexts": list(case.chunks or ()),
    }
    wanted = {
        "faithfulness": ("user_input", "response", "retrieved_contexts"),
        "context_precision": ("user_input", "reference", "retrieved_contexts"),
        "context_recall": ("user_input", "reference", "retrieved_contexts"),
        "answer_correctness": ("user_input", "response", "reference"),
    }[metric]
    result = asyncio.run(build[metric]().ascore(**{name: fields[name] for name in wanted}))
    return float(result.value)


def ours(metric: str, case: Case, judge: ObjectJudge) -> Score:
    (each,) = llm_metrics([metric])
    (score,) = run([each.measure(case)], judge)
    return score


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "metric", ["faithfulness", "context_precision", "context_recall", "answer_correctness"]
)
def test_values_and_prompts_equal_those_of_ragas(ragas: Any, metric: str, name: str) -> None:
    llm, judge = CountingLlm(), ObjectJudge()
    expected = by_ragas(ragas, metric, CASES[name], llm)
    score = ours(metric, CASES[name], judge)
    assert score.value == pytest.approx(expected, abs=1e-9)  # ragas' epsilon lies below this
    assert sorted(judge.prompts) == sorted(set(llm.prompts))


def test_the_cases_tell_the_metrics_apart() -> None:
    """Parity on values that are all 0 or all 1 would prove little."""
    values = {ours(metric, case, ObjectJudge()).value for metric in METRIC_LABELS for case in CASES.values()}
    assert len(values) >= 5


def test_relevancy_asks_what_ragas_asks_and_compares_without_embeddings(ragas: Any) -> None:
    """ragas' three repeats of one prompt are one request here; the comparison is one request of our own."""

    judge = ObjectJudge()
    score = ours("answer_relevancy", CASES["good"], judge)
    prompt = ragas.answer_relevancy.util.AnswerRelevancePrompt()
    asked = prompt.to_string(
        ragas.answer_relevancy.util.AnswerRelevanceInput(response=CASES["good"].response)
    )
    assert [task_of(each) for each in judge.prompts] == ["question", "closeness"]
    assert judge.prompts[0] == asked
    assert score.value is not None
