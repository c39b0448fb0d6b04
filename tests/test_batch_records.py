"""What a store remembers of batches is there again when it is opened again, and what is damaged is not."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_store_damage import change

from rag_eval.store.batch_records import (
    BatchRecord,
    BatchRecords,
    BatchState,
    CallRecord,
    CallState,
    JobRecord,
)
from rag_eval.store.reply_store import Store

JOB = JobRecord("job", 1.5, 2.5, 3, 0.25, {"preflight": (7, 2, 0.25)}, 1000, 2)
BATCH = BatchRecord(
    "t1", "job", "here", BatchState.SUBMITTED, "batch_1", ("file-1",), 2, 900, 5.0, 6.0, 1, 7.0
)
CALLS = [
    CallRecord(
        key * 64, "t1", "job", "faithfulness.verdicts", "gpt-4o", prompt_tokens=300, completion_tokens=2048
    )
    for key in "ab"
]


def test_a_new_job_has_used_nothing() -> None:
    job = JobRecord("j")
    assert (job.requests, job.spent, job.batches, job.most_tokens) == (0, 0.0, 0, 0)
    assert (job.replies_since, job.failures_since, job.online, job.models) == (0.0, 0.0, {}, {})


def test_what_is_put_is_there_in_the_next_process(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    records = BatchRecords(store)
    records.put_job(JOB)
    records.put_batch(BATCH, CALLS)
    answered = replace(CALLS[0], state=CallState.ANSWERED, result='{"text": "\ud800"}', stored_at=9.0)
    records.put_calls([answered])
    store.end(keep=True)
    store = Store(tmp_path / "s")
    records = BatchRecords(store)
    assert records.job("job") is not None
    assert replace(records.job("job") or JOB, online={}) == replace(JOB, online={})
    assert records.job("other") is None
    assert records.batches() == [BATCH]
    found = records.calls_of_batch("t1")
    assert {key: (call.key, call.state) for key, call in found.items()} == {
        "a" * 64: ("a" * 64, CallState.ANSWERED), "b" * 64: ("b" * 64, CallState.SENT)
    }  # fmt: skip
    (attempt,) = records.attempts("a" * 64)
    assert attempt == replace(answered, result='{"text": "\\ud800"}')
    assert {(call.key, call.result) for call in records.calls_of_job("job")} == {
        ("a" * 64, ""),
        ("b" * 64, ""),
    }
    store.end(keep=True)


MOMENTS: dict[str, tuple[list[float], list[int]]] = {
    "seconds apart": ([0, 1, 2, 599], [1, 1, 1, 1]),
    "as announced": ([0, 600, 1200], [1, 2, 3]),
    "announced by the minute": ([1, 601, 659, 660, 1260], [1, 1, 1, 2, 3]),
    "by a cron job": ([0, 1800, 3600], [1, 2, 3]),
    "the clock is set back": ([5000, 100, 600, 720, 1320], [1, 1, 1, 2, 3]),
    "the clock is set back each time": ([5000, 4000, 3000, 3660, 4260], [1, 1, 1, 2, 3]),
    "the clock was years ahead": ([9e9, 0, 599, 600, 1200], [1, 1, 1, 2, 3]),
    "the clock jumps ahead": ([0, 86400, 86401, 86940], [1, 2, 2, 2]),
}


@pytest.mark.parametrize(("moments", "counts"), MOMENTS.values(), ids=MOMENTS)
def test_a_look_counts_only_minutes_after_the_last_one(moments: list[float], counts: list[int]) -> None:
    batch = BatchRecord("t1", "job", "here")
    seen = []
    for moment in moments:
        batch = batch.missed(moment)
        seen.append(batch.misses)
    assert (seen, batch.is_given_up) == (counts, counts[-1] == 3)


def test_a_batch_is_forgotten_alone_or_with_its_calls_and_a_job_with_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    records = BatchRecords(store)
    for token in ("t1", "t2"):
        records.put_batch(replace(BATCH, token=token), [replace(call, token=token) for call in CALLS])
    records.put_job(JOB)
    records.forget_batch("t1")
    assert [batch.token for batch in records.batches()] == ["t2"]
    assert [call.token for call in records.attempts("a" * 64)] == ["t1", "t2"]
    records.withdraw("t2")
    assert (records.batches(), [call.token for call in records.attempts("a" * 64)]) == ([], ["t1"])
    records.end_job("job")
    assert (records.job("job"), records.calls_of_job("job")) == (None, [])
    assert records.attempts("a" * 64) == []
    store.end(keep=True)


def test_an_answer_that_nobody_has_read_outlives_its_job(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    records = BatchRecords(store)
    records.put_batch(BATCH, [replace(call, state=CallState.ANSWERED, result="{}") for call in CALLS])
    store.put_reply("b" * 64, task="t", reply="{}", attempts=1, prompt_tokens=1, completion_tokens=1)
    records.end_job("job")
    assert [(call.job, call.result) for call in records.attempts("a" * 64)] == [("", "{}")]
    assert records.attempts("b" * 64) == []
    assert records.calls_of_job("job") == []
    store.end(keep=True)


def test_a_damaged_row_is_not_served(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    BatchRecords(store).put_batch(BATCH, CALLS)
    store.end(keep=True)
    change(tmp_path / "s", "UPDATE batch_calls SET result = '{}' WHERE id LIKE 'a%'")
    said: list[str] = []
    store = Store(tmp_path / "s", on_damage=said.append)
    assert BatchRecords(store).attempts("a" * 64) == []
    assert len(BatchRecords(store).attempts("b" * 64)) == 1
    assert "(batch_calls: 1)" in said[0]
    store.end(keep=True)


def test_replies_and_failures_of_earlier_can_be_ignored_from_now_on(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    paid = {"task": "t", "attempts": 1, "prompt_tokens": 1, "completion_tokens": 1}
    store.put_reply("a", reply="{}", **paid)  # type: ignore[arg-type]
    store.put_failure("b", task="t", code="refused", message="no")
    assert (store.reply("a"), store.failure("b")) == ("{}", ("refused", "no"))
    store.ignore_before(failures=4e9)
    assert (store.reply("a"), store.failure("b")) == ("{}", None)
    store.ignore_before(4e9)
    assert store.reply("a") is None
    store.end(keep=True)
