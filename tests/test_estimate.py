"""What a run would take, to the number: made-up replies, their tokens and their price."""

from typing import Any

import pytest
from pydantic import BaseModel

from rag_eval.evaluators.ready_made import ChunkPrecisionResult, ContextRecallResult
from rag_eval.judge.batches.lines import request_line
from rag_eval.judge.batches.outbox import BatchLimits
from rag_eval.judge.budget import Price
from rag_eval.judge.calls import Call, Message, PendingError
from rag_eval.judge.endpoint import Dialect, Endpoint, request_body
from rag_eval.judge.transport import Transport
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.case_verdicts import CaseVerdicts
from rag_eval.run.estimate import DryRunStore, Estimate, EstimatingJudge, Range, Wave, WaveJudge
from rag_eval.store.reply_store import Store


class Keys:
    def key(self, call: Call[Any]) -> str:
        return f"key of {call.task}"


def call_of(
    reply_type: type[BaseModel] = replies.Advice,
    task: str = "t",
    deployment: str = "",
    prompt: str = "",
    **about: object,
) -> Call[Any]:
    messages = (Message("system", prompt), Message("user", prompt))
    return Call(task=task, messages=messages, reply_type=reply_type, agrees_with=about, deployment=deployment)


def test_calls_and_tokens_are_counted_by_deployment_and_task() -> None:
    estimate = Estimate()
    estimate.add("a", call_of(task="x", prompt="12345"), "1234")
    estimate.add("a", call_of(task="x", prompt="12345"), "1234")
    estimate.add("b", call_of(task="y", prompt="1" * 100), "1" * 8)
    estimate.add("a", call_of(task="y"), "")
    assert dict(estimate.calls) == {("a", "x"): 2, ("b", "y"): 1, ("a", "y"): 1}
    assert estimate.deployments == ("a", "b")
    assert estimate.prompt_tokens("a") == Range(4, 5, 8)
    assert estimate.completion_tokens("a") == Range(1, 2, 4)
    assert estimate.completion_tokens("b") == Range(1, 2, 4)
    prices = {"a": Price(1e6, 2e6), "b": Price(0, 1e6)}
    assert estimate.cost(prices) == Range(4 + 2 + 1, 5 + 4 + 2, 8 + 8 + 4)
    assert estimate.cost({"a": Price(1, 2)}) is None
    assert Estimate().cost({}) == Range(0, 0, 0)


def test_what_goes_ahead_and_what_is_asked_count_under_their_deployment() -> None:
    judge = EstimatingJudge(Keys(), "big")
    judge.prepare("")
    judge.prepare("small")
    answer = judge.ask(call_of(deployment="small", prompt="1234"))
    judge.ask(call_of())
    assert answer.text == answer.reply.model_dump_json()
    assert judge.key(call_of(task="x")) == "key of x"
    assert dict(judge.estimate.calls) == {
        ("big", "preflight"): 1, ("small", "preflight"): 1, ("small", "t"): 1, ("big", "t"): 1
    }  # fmt: skip
    assert judge.estimate.prompts == {"small": 2, "big": 0}
    assert judge.estimate.replies["small"] == len(answer.text) / 4
    assert (judge.usage().requests, judge.usage().calls) == (0, 0)


TEXT = "The library lends its books for four weeks. It is closed on Mondays and holidays."


@pytest.mark.parametrize(
    ("reply_type", "about", "counts"),
    [
        (replies.Statements, {"text": TEXT}, {"statements": 2}),
        (replies.Statements, {"text": ""}, {"statements": 1}),
        (replies.StatementVerdicts, {"statements": ["a", "b", "c"]}, {"statements": 3}),
        (replies.StatementVerdicts, {}, {"statements": 1}),
        (replies.Attributions, {"text": TEXT}, {"classifications": 2}),
        (
            replies.Classification,
            {"response_statements": ["a", "b", "c"], "reference_statements": ["d", "e"]},
            {"TP": 0, "FP": 3, "FN": 2},
        ),
        (replies.Toxicities, {"positions": 3}, {"items": 3}),
        (replies.Advices, {"positions": 2}, {"items": 2}),
        (ContextRecallResult, {"context": ["a", "b", "c"]}, {"evaluated_chunks": 3}),
        (ChunkPrecisionResult, {"context": ["a", "b"]}, {"graded_chunks": 2}),
        (ChunkPrecisionResult, {"context": []}, {"graded_chunks": 0}),
    ],
)
def test_made_up_lists_are_as_long_as_they_must_be(
    reply_type: type[BaseModel], about: dict[str, object], counts: dict[str, int]
) -> None:
    reply = EstimatingJudge(Keys(), "m").ask(call_of(reply_type, **about)).reply
    assert {name: len(getattr(reply, name)) for name in counts} == counts


def test_a_reply_type_that_cannot_be_made_up_says_so() -> None:
    class Politeness(replies.StrictReply):
        polite: bool

    with pytest.raises(NotImplementedError, match="Politeness has no made_up"):
        EstimatingJudge(Keys(), "m").ask(call_of(Politeness))


def verdicts(reply_type: type[BaseModel], **about: object) -> Any:
    return EstimatingJudge(Keys(), "m").ask(call_of(reply_type, **about)).reply


def test_made_up_verdicts_are_unfavourable_so_that_every_advice_is_asked_for() -> None:
    assert [
        each.verdict for each in verdicts(replies.StatementVerdicts, statements=["a", "b"]).statements
    ] == [0, 0]
    assert [each.attributed for each in verdicts(replies.Attributions, text=TEXT).classifications] == [0, 0]
    assert verdicts(replies.ContextVerdict).verdict == 0
    assert verdicts(replies.Closeness).closeness == 0
    assert verdicts(replies.QueryToxicity).toxicity == 0.0
    assert [(i.position, i.toxicity) for i in verdicts(replies.Toxicities, positions=2).items] == [
        (1, 0.0),
        (2, 0.0),
    ]
    assert [each.position for each in verdicts(replies.Advices, positions=2).items] == [1, 2]
    covered = verdicts(ContextRecallResult, context=["a", "b"]).evaluated_chunks
    assert [(each.id_chunk, each.is_relevant, each.is_included) for each in covered] == [
        (0, True, False), (1, True, False)
    ]  # fmt: skip
    assert [each.missing_info for each in covered] == 2 * [verdicts(replies.Closeness).reason]
    assert [
        (each.id_chunk, bool(each.score))
        for each in verdicts(ChunkPrecisionResult, context=["a"]).graded_chunks
    ] == [(0, True)]
    texts = {"ground_truth": {"1": "Bob.", "2": "Eve."}, "response": {"3": "Ada."}, "chunks": {"1": "c"}}
    case = verdicts(CaseVerdicts, query="Who?", **texts)
    assert [(each.sentence, each.chunk, each.in_other, bool(each.reason)) for each in case.claims] == [
        (1, 0, 0, False), (2, 0, 0, False), (3, 0, 0, True)
    ]  # fmt: skip
    assert (case.useful_chunks, case.useless_chunks, case.relevancy.closeness) == ([], [1], 0)
    question = verdicts(replies.GeneratedQuestion, text="t" * 101)
    assert (question.question, question.noncommittal) == (f"What about {'t' * 100}?", 0)
    assert len(verdicts(replies.Advice).recommendation) == 3 * len(verdicts(replies.Closeness).reason)


def test_a_made_up_reply_stands_for_a_stored_one_that_was_refused_and_is_forgotten(tmp_path: Any) -> None:
    store = Store(tmp_path / "replies.sqlite")
    store.put_reply("paid", task="t", reply="real", attempts=1, prompt_tokens=1, completion_tokens=1)
    dry = DryRunStore(store)
    dry.put_reply("paid", reply="made up")
    dry.put_reply("new", reply="made up")
    dry.put_failure("failed", code="x", message="y")
    dry.put_note("n", "v")
    assert [dry.reply(key) for key in ("paid", "new", "none")] == ["made up", "made up", None]
    assert DryRunStore(store).reply("paid") == "real"
    assert (dry.failure("failed"), dry.note("n")) == (None, None)
    dry.end(keep=False)
    assert (tmp_path / "replies.sqlite").exists()
    alone = DryRunStore(None)
    alone.put_reply("new", reply="made up")
    assert (alone.reply("new"), alone.reply("old"), alone.failure("x"), alone.note("n")) == (
        "made up",
        None,
        None,
        None,
    )
    alone.end(keep=True)


def transport() -> Transport:
    return Transport(Endpoint("openai", "http://127.0.0.1:1/v1", "key", "big"), DryRunStore(None))


def test_a_wave_holds_what_is_asked_before_any_reply_comes() -> None:
    """Its files are as many and as long as those that a run would send; each call is in them once."""
    store = DryRunStore(None)
    limits = BatchLimits(url="/u", most_requests=2, most_bytes=10**6)
    judge = WaveJudge(transport(), store, limits)
    judge.prepare("")
    assert not judge.end_wave()
    asked = [call_of(task=str(n), prompt=f"prompt {n}") for n in range(3)]
    asked.append(call_of(task="s", prompt="prompt", deployment="small"))
    for call in [*asked, asked[0]]:
        with pytest.raises(PendingError):
            judge.ask(call)
        assert store.reply(judge.key(call)) is None
    assert judge.end_wave()
    assert not judge.end_wave()
    size = sum(_size(judge, call) for call in asked)
    assert judge.waves == [Wave(calls=4, files=3, size=size)]
    assert dict(judge.estimate.calls) == {
        ("big", "0"): 1,
        ("big", "1"): 1,
        ("big", "2"): 1,
        ("small", "s"): 1,
    }
    assert all(store.reply(judge.key(call)) for call in asked)
    with pytest.raises(PendingError):
        judge.ask(call_of(task="next", prompt="next"))
    assert judge.end_wave()
    assert [(wave.calls, wave.files) for wave in judge.waves] == [(4, 3), (1, 1)]


def _size(judge: WaveJudge, call: Call[Any]) -> int:
    body = request_body(
        Endpoint("openai", "http://127.0.0.1:1/v1", "key", "big"),
        Dialect.initial(Endpoint("openai", "http://127.0.0.1:1/v1", "key", "big")),
        call,
        call.max_tokens,
    )
    return len(request_line(judge.key(call), "/u", body))


@pytest.mark.parametrize(
    ("limit", "files"), [("bytes", 1), ("bytes_less", 2), ("tokens", 1), ("tokens_less", 2)]
)
def test_a_file_of_a_wave_is_full_at_the_limit(limit: str, files: int) -> None:
    asked = [call_of(task=str(n), prompt=f"prompt {n}") for n in range(2)]
    probe = WaveJudge(
        transport(), DryRunStore(None), BatchLimits(url="/u", most_requests=9, most_bytes=10**6)
    )
    size = sum(_size(probe, call) for call in asked)
    tokens = sum(int(call.estimated_tokens) + 1 for call in asked)
    less = limit.endswith("less")
    limits = BatchLimits(
        url="/u",
        most_requests=9,
        most_bytes=size - less if "bytes" in limit else 10**6,
        most_tokens=tokens - less if "tokens" in limit else 0,
    )
    judge = WaveJudge(transport(), DryRunStore(None), limits)
    for call in asked:
        with pytest.raises(PendingError):
            judge.ask(call)
    judge.end_wave()
    assert judge.waves[0].files == files
