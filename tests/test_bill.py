"""What a run costs: how many calls a row takes, beside what ragas takes for the same scores, and what is in a call."""

import asyncio
import json
from collections import Counter
from itertools import product, takewhile
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure
from fake_judge import Answer, FakeJudge, Request, completion, honest_reply
from files import chunks_of, line_of, response_of, sheet_of_bots, write_table

ONCE_A_RUN = ("preflight", "toxicity", "recommendation")
SHAPES = list(product((1, 2, 3, 5), (1, 4)))


def bill_of(run_cli: Run, judge: FakeJudge) -> Counter[str]:
    """Calls by task of one run of the command over the sheet."""
    judge.requests.clear()
    assert run_cli("in.xlsx", **azure(judge)).code == 0
    return judge.tasks()


def for_rows(tasks: Counter[str]) -> int:
    """The calls that grow with rows, bots and chunks one by one, and are not asked several at a time."""
    return tasks.total() - sum(tasks[name] for name in ONCE_A_RUN)


@pytest.mark.slow
@pytest.mark.parametrize(("bots", "chunks"), SHAPES)
def test_a_row_takes_5b_plus_c_plus_2_calls_when_the_bots_share_their_context(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, bots: int, chunks: int
) -> None:
    """What does not depend on the bot is asked once: the reference's statements, recall, precision of each chunk."""
    sheet_of_bots(tmp_path, bots, chunks)
    tasks = bill_of(run_cli, judge)
    assert for_rows(tasks) == 5 * bots + chunks + 2
    assert tasks["statements"] == bots + 1
    assert (tasks["usefulness"], tasks["attributions"]) == (chunks, 1)
    assert {tasks[name] for name in ("verdicts", "question", "closeness", "classification")} == {bots}


@pytest.mark.slow
@pytest.mark.parametrize(("bots", "chunks"), SHAPES)
def test_a_row_takes_b_times_6_plus_c_plus_1_calls_when_every_bot_retrieved_for_itself(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, bots: int, chunks: int
) -> None:
    """Recall and precision are each bot's own then; the reference's statements are still asked once."""
    sheet_of_bots(tmp_path, bots, chunks, is_shared=False)
    tasks = bill_of(run_cli, judge)
    assert for_rows(tasks) == bots * (6 + chunks) + 1
    assert (tasks["usefulness"], tasks["attributions"]) == (bots * chunks, bots)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunks", [1, 4])
def test_ragas_takes_9_plus_c_calls_for_each_bot(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    """Its own metric classes on the same texts, over HTTP, as a run for each bot would: B · (9 + c) a row."""
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    judge.always = answer_to_ragas
    asyncio.run(scored_by_ragas(judge, response_of(0, 0), chunks_of(0, chunks)))
    assert len(judge.requests) == 9 + chunks


def answer_to_ragas(request: Request) -> Answer:
    """Its client says what form it wants before the prompt."""
    return completion(honest_reply(request.body["messages"][-1]["content"]), request)


async def scored_by_ragas(judge: FakeJudge, response: str, chunks: list[str]) -> None:
    from openai import AsyncOpenAI
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms import llm_factory
    from ragas.metrics import collections as ragas

    class Constant(BaseRagasEmbedding):  # type: ignore[misc]
        def embed_text(self, text: str, **_: Any) -> list[float]:
            return [1.0]

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return [1.0]

    query, reference = "Query 0?", "Paris is the capital, reference 0."
    async with AsyncOpenAI(base_url=f"{judge.url}/v1", api_key="none") as client:
        llm = llm_factory("judge", client=client)
        await ragas.Faithfulness(llm).ascore(query, response, chunks)
        await ragas.AnswerRelevancy(llm, Constant()).ascore(query, response)
        await ragas.ContextPrecision(llm).ascore(query, reference, chunks)
        await ragas.ContextRecall(llm).ascore(query, chunks, reference)
        await ragas.AnswerCorrectness(llm, weights=[1.0, 0.0]).ascore(query, response, reference)


@pytest.mark.slow
def test_what_is_asked_several_at_a_time_takes_a_call_for_ten_queries_and_for_five_cases(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Toxicity and recommendations of a run of one worker, which never has to choose between a small call and none.

    Every case leaves room for advice here.
    """
    (tmp_path / "config.ini").write_text("[evaluation]\nparallel = false\n")
    sheet_of_bots(tmp_path, bots=2, chunks=1, rows=20)
    tasks = bill_of(run_cli, judge)
    assert {name: tasks[name] for name in ONCE_A_RUN} == {
        "preflight": 1,
        "toxicity": 2,
        "recommendation": 8,
    }
    assert for_rows(tasks) == 20 * (5 * 2 + 1 + 2)


@pytest.mark.slow
def test_a_row_that_occurs_twice_is_paid_for_once(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    line = line_of(0, bots=2, chunks=4, is_shared=True)
    header = ["Query", "Ground_Truth", "Bot_0", "Bot_1", "Context"]
    write_table(tmp_path / "in.xlsx", header, line)
    alone = bill_of(run_cli, judge)
    write_table(tmp_path / "in.xlsx", header, line, line)
    assert bill_of(run_cli, judge) == alone


def test_bots_that_say_the_same_are_paid_for_as_one(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    query, reference, response, _, context = line_of(0, bots=2, chunks=4, is_shared=True)
    header = ["Query", "Ground_Truth", "Bot_0", "Bot_1", "Context"]
    write_table(tmp_path / "in.xlsx", header, [query, reference, response, response, context])
    assert for_rows(bill_of(run_cli, judge)) == 5 * 1 + 4 + 2


@pytest.mark.slow
def test_a_run_over_cached_replies_takes_no_call(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Not even the one that looks whether the endpoint answers."""
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    sheet_of_bots(tmp_path, bots=2, chunks=4, rows=3)
    assert bill_of(run_cli, judge).total() > 0
    assert bill_of(run_cli, judge).total() == 0


@pytest.mark.parametrize(
    ("cells", "calls"),
    [
        ({"Bot_0": ""}, {"usefulness": 2, "attributions": 1}),
        ({"Context": ""}, {"statements": 2, "question": 1, "closeness": 1, "classification": 1}),
        (
            {"Ground_Truth": ""},
            {"statements": 1, "verdicts": 1, "question": 1, "closeness": 1, "usefulness": 2},
        ),
        ({"Bot_0": "", "Context": ""}, {}),
    ],
)
def test_what_the_cells_settle_takes_no_call(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, cells: dict[str, str], calls: dict[str, int]
) -> None:
    sheet_of_bots(tmp_path, bots=1, chunks=2)
    full = dict(
        zip(["Query", "Ground_Truth", "Bot_0", "Context"], line_of(0, 1, 2, is_shared=True), strict=True)
    )
    row = full | cells
    write_table(tmp_path / "in.xlsx", list(row), list(row.values()))
    tasks = bill_of(run_cli, judge)
    assert tasks - Counter(dict.fromkeys(ONCE_A_RUN, 9)) == Counter(calls)


def test_an_evasive_response_takes_one_call_less(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Its relevancy is settled by the first of two calls."""
    query, reference, _, context = line_of(0, bots=1, chunks=1, is_shared=True)
    header = ["Query", "Ground_Truth", "Bot_0", "Context"]
    write_table(tmp_path / "in.xlsx", header, [query, reference, "I don't know.", context])
    tasks = bill_of(run_cli, judge)
    assert (tasks["question"], tasks["closeness"], for_rows(tasks)) == (1, 0, 5 + 1 + 2 - 1)


# What is in a call


def test_the_calls_of_two_bots_begin_alike(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Providers charge less for a beginning that they have just read: what is the same for all stands first.

    The order inside ragas' prompts is ragas' own. Of them, only the one with the whole context has it before
    what differs between the bots.
    """
    sheet_of_bots(tmp_path, bots=2, chunks=4)
    bill_of(run_cli, judge)
    verdicts, closeness = (
        common_beginning(*(request.prompt for request in judge.requests if request.task == task))
        for task in ("verdicts", "closeness")
    )
    assert json.dumps("\n".join(chunks_of(0, 4))) in verdicts
    assert closeness.endswith(
        '{"question_1": "Query 0?", "question_2": "What about this: Paris is the capital of France. So says bot '
    )


def common_beginning(first: str, second: str) -> str:
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["closeness", "toxicity", "recommendation"])
def test_our_own_instructions_are_the_same_in_every_call_and_stand_first(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, task: str
) -> None:
    """They are the system's message, which holds nothing of the sheet; asking for several is a form of its own."""
    sheet_of_bots(tmp_path, bots=2, chunks=1, rows=12)
    bill_of(run_cli, judge)
    systems: dict[bool, set[str]] = {}
    for request in judge.requests:
        if request.task == task:
            system, user = request.body["messages"]
            assert (system["role"], user["role"]) == ("system", "user")
            systems.setdefault("items" in json.loads(user["content"]), set()).add(system["content"])
    assert {len(found) for found in systems.values()} == {1}
    assert not any("Query" in text or "Paris" in text for found in systems.values() for text in found)


def test_the_form_of_the_reply_is_the_same_for_every_call_of_a_kind(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Providers put the schema before the messages, so a schema that differed would undo a common beginning."""
    sheet_of_bots(tmp_path, bots=2, chunks=4, rows=2)
    bill_of(run_cli, judge)
    forms: dict[str, set[str]] = {}
    for request in judge.requests:
        forms.setdefault(request.task, set()).add(json.dumps(request.body["response_format"]))
    assert {task: len(found) for task, found in forms.items() if task not in ONCE_A_RUN} == dict.fromkeys(
        ["statements", "verdicts", "question", "closeness", "usefulness", "attributions", "classification"], 1
    )


MOST_TOKENS = {
    "preflight": 16,
    "statements": 2048,
    "verdicts": 4096,
    "question": 512,
    "closeness": 512,
    "usefulness": 512,
    "attributions": 4096,
    "classification": 4096,
    "toxicity": 128 * 10,
    "recommendation": 256 * 5,
}
"""Providers count what a reply may have against the limit of tokens a minute before it is written."""


@pytest.mark.slow
def test_every_call_says_how_long_its_reply_may_be(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """A verdict on one thing 512 tokens, a list of statements 2,048, a list of verdicts with reasons 4,096."""
    sheet_of_bots(tmp_path, bots=2, chunks=4, rows=12)
    bill_of(run_cli, judge)
    sent: dict[str, int] = {}
    for request in judge.requests:
        assert request.body["max_tokens"] > 0
        sent[request.task] = max(sent.get(request.task, 0), request.body["max_tokens"])
    assert sent.keys() == MOST_TOKENS.keys()
    assert {task: limit for task, limit in sent.items() if limit > MOST_TOKENS[task]} == {}
