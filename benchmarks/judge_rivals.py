"""One rival's judgement of the rows of a file: what benchmarks/judge_throughput.py runs in a process of its own.

    python benchmarks/judge_rivals.py ragas-evaluate ROWS.json http://127.0.0.1:8000/v1 16

It needs the rival's packages and nothing else, so that it runs under the interpreter of their environment. It ends
with 1 when a score is missing, since work that was not done is not fast.
"""

import asyncio
import json
import math
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

MODEL = "gpt-4o"
EMBEDDING_MODEL = "text-embedding-3-small"
_AS_PUBLISHED = (0.75, 0.25)
"""Weights of ragas' answer correctness by default: statements, and similarity of the embeddings."""
_STATEMENTS_ALONE = (1.0, 0.0)
"""What ours is."""

Case = dict[str, Any]
"""query, response, reference and chunks of one bot in one row."""


def main(name: str, rows: str, url: str, workers: str) -> None:
    os.environ |= {"RAGAS_DO_NOT_TRACK": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "1", "OPENAI_API_KEY": "none"}
    warnings.simplefilter("ignore")  # deprecations inside the rivals
    cases = json.loads(Path(rows).read_text(encoding="utf-8"))
    scores = list(RIVALS[name](cases, url, int(workers)))
    missing = sum(score is None or math.isnan(score) for score in scores)
    print(f"{len(scores)} scores, {missing} missing")
    sys.exit(len(scores) != 5 * len(cases) or missing > 0)


def ragas_evaluate(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """Its evaluate() over the metrics that go with it, by the kind of model that it advises."""
    return _evaluate(cases, _ragas_model(url), _langchain_embeddings(url), workers)


def ragas_langchain(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """The same over its older wrapper of LangChain's model, which asks for three answers in one request."""
    from langchain_openai import ChatOpenAI
    from ragas.llms import LangchainLLMWrapper

    model = LangchainLLMWrapper(ChatOpenAI(model=MODEL, base_url=url))
    return _evaluate(cases, model, _langchain_embeddings(url), workers)


def ragas_default(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """The same with the model that it makes for itself when it is given none."""
    os.environ["OPENAI_BASE_URL"] = url
    return _evaluate(cases, None, _langchain_embeddings(url), workers)


def ragas_evaluate_local(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """evaluate() without any request for embeddings."""
    return _evaluate(cases, _ragas_model(url), _letters(), workers, weights=_STATEMENTS_ALONE)


def _evaluate(
    cases: list[Case], model: Any, embeddings: Any, workers: int, weights: Sequence[float] = _AS_PUBLISHED
) -> Iterable[float]:
    from ragas import EvaluationDataset, RunConfig, evaluate
    from ragas.metrics import (
        AnswerCorrectness,
        AnswerRelevancy,
        ContextPrecision,
        ContextRecall,
        Faithfulness,
    )

    dataset = EvaluationDataset.from_list(
        [
            {
                "user_input": case["query"],
                "response": case["response"],
                "reference": case["reference"],
                "retrieved_contexts": case["chunks"],
            }
            for case in cases
        ]
    )
    result = evaluate(
        dataset,
        [
            AnswerCorrectness(weights=list(weights)),
            Faithfulness(),
            AnswerRelevancy(),
            ContextPrecision(),
            ContextRecall(),
        ],
        llm=model,
        embeddings=embeddings,
        run_config=RunConfig(max_workers=workers),
        show_progress=False,
    )
    return [score for scores in result.scores for score in scores.values()]


def ragas_collections(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """Its newer metric classes, as many at a time as there are workers: each makes its calls one after another."""
    from ragas.embeddings import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(client=_client(url), model=EMBEDDING_MODEL)
    return _collections(cases, _ragas_model(url), embeddings, workers)


def ragas_collections_local(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """The newer classes without any request for embeddings."""
    return _collections(cases, _ragas_model(url), _letters(), workers, weights=_STATEMENTS_ALONE)


def _collections(
    cases: list[Case], model: Any, embeddings: Any, workers: int, weights: Sequence[float] = _AS_PUBLISHED
) -> Iterable[float]:
    from ragas.metrics import collections

    correctness = collections.AnswerCorrectness(llm=model, embeddings=embeddings, weights=list(weights))
    metrics: list[tuple[Any, dict[str, str]]] = [
        (correctness, _QUERY | _RESPONSE | _REFERENCE),
        (collections.Faithfulness(llm=model), _QUERY | _RESPONSE | _CHUNKS),
        (collections.AnswerRelevancy(llm=model, embeddings=embeddings), _QUERY | _RESPONSE),
        (collections.ContextPrecision(llm=model), _QUERY | _REFERENCE | _CHUNKS),
        (collections.ContextRecall(llm=model), _QUERY | _REFERENCE | _CHUNKS),
    ]

    async def score(metric: Any, case: Case, fields: dict[str, str]) -> float:
        result = await metric.ascore(**{theirs: case[ours] for theirs, ours in fields.items()})
        return float(result.value)

    jobs = [(metric, case, fields) for case in cases for metric, fields in metrics]
    return asyncio.run(_at_most(workers, [lambda job=job: score(*job) for job in jobs]))


_QUERY = {"user_input": "query"}
_RESPONSE = {"response": "response"}
_REFERENCE = {"reference": "reference"}
_CHUNKS = {"retrieved_contexts": "chunks"}


def deepeval(cases: list[Case], url: str, workers: int) -> Iterable[float]:
    """The nearest metrics that it has; answer correctness is G-Eval with its steps given, so that none are asked for.

    Without reasons, which would cost one more request a metric.
    """
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
    from deepeval.metrics import (
        AnswerRelevancyMetric,
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        FaithfulnessMetric,
        GEval,
    )
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    model = GPTModel(model=MODEL, base_url=url, api_key="none")
    compared = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT]
    steps = ["Compare the statements of the actual output with those of the expected output."]
    kinds = (AnswerRelevancyMetric, FaithfulnessMetric, ContextualPrecisionMetric, ContextualRecallMetric)
    result = evaluate(
        [
            LLMTestCase(
                input=case["query"],
                actual_output=case["response"],
                expected_output=case["reference"],
                retrieval_context=case["chunks"],
            )
            for case in cases
        ],
        [
            GEval(name="Correctness", evaluation_params=compared, evaluation_steps=steps, model=model),
            *(kind(model=model, include_reason=False) for kind in kinds),
        ],
        async_config=AsyncConfig(max_concurrent=workers),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(write_cache=False),
    )
    return [metric.score for each in result.test_results for metric in each.metrics_data]


RIVALS: dict[str, Callable[[list[Case], str, int], Iterable[float]]] = {
    "ragas-evaluate": ragas_evaluate,
    "ragas-evaluate-local": ragas_evaluate_local,
    "ragas-langchain": ragas_langchain,
    "ragas-default": ragas_default,
    "ragas-collections": ragas_collections,
    "ragas-collections-local": ragas_collections_local,
    "deepeval": deepeval,
}


async def _at_most(limit: int, jobs: list[Callable[[], Awaitable[float]]]) -> list[float]:
    semaphore = asyncio.Semaphore(limit)

    async def run(job: Callable[[], Awaitable[float]]) -> float:
        async with semaphore:
            return await job()

    return await asyncio.gather(*map(run, jobs))


def _ragas_model(url: str) -> Any:
    from ragas.llms import llm_factory

    return llm_factory(MODEL, client=_client(url))


def _client(url: str) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=url, api_key="none")


def _langchain_embeddings(url: str) -> Any:
    """The kind that evaluate() can use: its newer one lacks a method that its answer relevancy calls.

    Texts are sent as they are, because the tables of the tokenizer would be fetched from the internet.
    """
    from langchain_openai import OpenAIEmbeddings
    from ragas.embeddings import LangchainEmbeddingsWrapper

    model = OpenAIEmbeddings(model=EMBEDDING_MODEL, base_url=url, check_embedding_ctx_length=False)
    return LangchainEmbeddingsWrapper(model)


def _letters() -> Any:
    """Embeddings that cost no request: how often each letter occurs."""
    from ragas.embeddings.base import BaseRagasEmbedding

    class Letters(BaseRagasEmbedding):
        def embed_text(self, text: str, **_: Any) -> list[float]:
            return [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

        def embed_query(self, text: str) -> list[float]:
            return self.embed_text(text)

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.embed_texts(texts)

    return Letters()


if __name__ == "__main__":
    main(*sys.argv[1:])
