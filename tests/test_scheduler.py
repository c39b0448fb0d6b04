"""The scheduler: unique calls once, results in order, nothing counted before it is stored, stops that lose nothing."""

import gc
import json
import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from conftest import wait_for
from in_process import DictStore, ObjectJudge, run
from pydantic import BaseModel

from rag_eval.errors import JudgeError, RefusedReplyError, RunStoppedError, StoreError
from rag_eval.judge.calls import Answer, Bundle, Call, Message, PendingError, gather
from rag_eval.judge.scheduler import BREAKER_LIMIT, Scheduler, _CallCounts
from rag_eval.records import TaskUsage, Usage


class Number(BaseModel):
    n: int


def call(n: int, task: str = "t", deployment: str = "") -> Call[Number]:
    return Call(task, (Message("user", str(n)),), Number, deployment=deployment)


def echo(prompt: str) -> str:
    return json.dumps({"n": int(prompt.split()[0])})


async def ask(n: int) -> int:
    return (await call(n)).n


async def ask_several(numbers: list[int]) -> list[int]:
    return [reply.n for reply in await gather([call(n) for n in numbers])]


async def outcome(n: int) -> int | str:
    try:
        return (await call(n)).n
    except JudgeError as error:
        return error.code


def test_results_come_in_the_order_of_the_coroutines() -> None:
    judge = ObjectJudge(echo, seconds=0.001)
    assert run([ask(n) for n in range(50)], judge, workers=8, window=20) == list(range(50))


def test_identical_calls_are_made_once() -> None:
    judge = ObjectJudge(echo, seconds=0.01)
    assert run([ask(7) for _ in range(50)], judge, workers=8) == [7] * 50
    assert judge.prompts == ["7"]


def test_known_replies_never_become_work() -> None:
    store = DictStore()
    run([ask(n) for n in range(5)], ObjectJudge(echo), store)
    again = ObjectJudge(echo)
    assert run([ask(n) for n in range(5)], again, store) == list(range(5))
    assert again.prompts == []
    assert again.prepared == []


def test_a_stored_reply_that_does_not_fit_any_more_is_asked_for_again() -> None:
    store = DictStore()
    judge = ObjectJudge(echo)
    store.replies[judge.key(call(3))] = '{"m": 3}'
    scheduler = Scheduler(judge, store, workers=1)
    assert list(scheduler.run([ask(3), ask(3), ask(4), ask(5)], window=1)) == [3, 3, 4, 5]
    scheduler.close()
    assert [prompt.split()[0] for prompt in judge.prompts] == ["3", "4", "5"]
    assert scheduler.counts.outdated == 1, "the new calls and the repeated one are not"


def test_what_waits_for_a_reply_at_another_time_has_no_result_in_this_run() -> None:
    later = {"2"}
    judge = ObjectJudge(lambda prompt: PendingError() if prompt.split()[0] in later else echo(prompt))
    scheduler = Scheduler(judge, DictStore(), workers=1, in_batches=True)
    assert list(scheduler.run([ask(1), ask(2), ask_several([2, 3]), ask(4)], window=3)) == [1, 4]
    later.clear()
    assert list(scheduler.run([ask(2), ask_several([2, 3])], window=3)) == [2, [2, 3]]
    scheduler.close()


def test_meanwhile_is_while_a_reply_is_awaited() -> None:
    stepped = threading.Event()

    def late(prompt: str) -> str:
        assert stepped.wait(10)
        return echo(prompt)

    scheduler = Scheduler(ObjectJudge(late), DictStore(), workers=1)
    scheduler.meanwhile = iter(stepped.set, "never")
    assert list(scheduler.run([ask(1)], window=1)) == [1]
    scheduler.close()


def three_at_a_time() -> Any:
    """A judge that answers three calls once all of them are there."""
    barrier = threading.Barrier(3, timeout=60)

    def answer(prompt: Any) -> Any:
        barrier.wait()
        return echo(prompt)

    return answer


def test_gather_waits_for_all_at_once_and_keeps_the_order() -> None:
    judge = ObjectJudge(three_at_a_time())
    assert run([ask_several([3, 1, 2])], judge, workers=3) == [[3, 1, 2]]
    assert judge.most_in_flight == 3


def test_gather_nests_and_takes_coroutines() -> None:
    async def tree() -> list[list[int]]:
        return await gather([ask_several([1, 2]), ask_several([]), ask_several([3])])

    assert run([tree()], ObjectJudge(echo)) == [[[1, 2], [], [3]]]


def test_never_more_calls_in_flight_than_workers() -> None:
    judge = ObjectJudge(three_at_a_time())
    run([ask(n) for n in range(39)], judge, workers=3)
    assert judge.most_in_flight == 3


def test_at_most_a_window_of_coroutines_is_under_way() -> None:
    """Rows are read as they are needed, so memory does not grow with the sheet."""
    begun: list[int] = []

    def source() -> Any:
        for n in range(100):
            begun.append(n)
            yield ask(n)

    scheduler = Scheduler(ObjectJudge(echo), DictStore(), workers=2)
    results = scheduler.run(source(), window=10)
    next(results)
    assert len(begun) <= 20
    assert list(results) == list(range(1, 100))
    scheduler.close()


@pytest.mark.slow
def test_a_result_that_was_given_out_is_not_kept() -> None:
    """Nor are the parts that it was made of."""

    async def part(n: int) -> Number:
        return await call(n)

    async def whole(n: int) -> Number:
        (reply,) = await gather([part(n)])
        made.append(weakref.ref(reply))
        return reply

    made: list[weakref.ref[Number]] = []
    scheduler = Scheduler(ObjectJudge(echo), DictStore(), workers=2)
    for number, result in enumerate(scheduler.run(map(whole, range(30)), window=2)):
        assert result.n == number
    del result
    gc.collect()
    assert sum(reply() is not None for reply in made) <= 2
    scheduler.close()


def test_earlier_coroutines_go_first() -> None:
    """A long sheet is finished row by row, not column by column."""

    async def two_steps(n: int) -> int:
        await call(n)
        await call(n + 1000)
        return n

    judge = ObjectJudge(echo)
    run([two_steps(n) for n in range(40)], judge, workers=1)
    assert judge.prompts.index("1000") < judge.prompts.index("20")


def test_a_reply_that_cannot_be_stored_is_not_counted() -> None:
    class Full(DictStore):
        def put_reply(self, key: str, *, reply: str, **paid: Any) -> None:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        run([ask(1)], ObjectJudge(echo), Full())


def test_a_failure_is_journaled_and_ends_its_own_coroutine_alone() -> None:
    def reply(prompt: str) -> str | Exception:
        return JudgeError("refused", "no") if prompt == "2" else echo(prompt)

    store = DictStore()
    assert run([outcome(n) for n in range(4)], ObjectJudge(reply), store) == [0, 1, "refused", 3]
    assert list(store.failures.values()) == ["refused"]


def test_of_several_failures_the_first_in_order_is_told_whichever_came_first() -> None:
    def reply(prompt: str) -> Exception:
        if prompt == "1":
            wait_for(lambda: bool(store.failures))
        return JudgeError("refused", f"{prompt} is refused")

    async def told() -> str:
        with pytest.raises(JudgeError) as caught:
            await ask_several([1, 2])
        return str(caught.value)

    store = DictStore()
    assert run([told()], ObjectJudge(reply), store, workers=2) == ["1 is refused"]


@pytest.mark.parametrize(
    ("code", "asked"),
    [("blocked_by_filter", 0), ("output_filtered", 0), ("refused", 0), ("too_long", 0), ("truncated", 0),
     ("loop", 0), ("unparseable", 1), ("timeout", 1), ("server_error", 1), ("rate_limited", 1), ("not_run", 1)],
)  # fmt: skip
def test_a_journaled_failure_that_would_come_again_is_served_and_another_is_asked_again(
    code: str, asked: int
) -> None:
    store = DictStore()
    judge = ObjectJudge(echo)
    store.failures[judge.key(call(3))] = code
    assert run([outcome(3)], judge, store) == [code if not asked else 3]
    assert len(judge.prompts) == asked


def test_a_journaled_failure_is_counted_and_does_not_stop_the_run() -> None:
    judge, store = ObjectJudge(echo), DictStore()
    store.failures = {judge.key(call(n)): "refused" for n in range(BREAKER_LIMIT + 5)}
    scheduler = Scheduler(judge, store, workers=1)
    list(scheduler.run([outcome(n) for n in range(BREAKER_LIMIT + 5)], window=1))
    scheduler.close()
    assert scheduler.stopped is None
    assert scheduler.counts.failures == {"refused": BREAKER_LIMIT + 5}


# Replies that are refused


def told(prompt: str) -> list[str]:
    """What the prompt says of earlier replies."""
    return re.findall(r"earlier repl.* could not be used.*?: (.*?)\. Reply again", prompt)


class Answers:
    """Replies to the question "1" one after the other, the last one from then on."""

    def __init__(self, *texts: str) -> None:
        self.texts = [*texts]

    def __call__(self, prompt: str) -> str:
        return self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]


GOOD = '{"n": 7}'


@pytest.mark.parametrize(
    ("texts", "problems", "ends"),
    [
        ([GOOD], [[]], 7),
        (["one", GOOD], [[], ["Expecting value"]], 7),
        (['{"n": "x"}', "{", GOOD], [[], ["n: Input should be"], ["Expecting property name"]], 7),
        (["one", "two", "three", GOOD], [[], ["Expecting value"], ["Expecting value"]], "unparseable"),
        (["one"], [[], ["Expecting value"]], "unparseable"),  # byte for byte: no third
        (["one", "two", "one"], [[], ["Expecting value"], ["Expecting value"]], "unparseable"),
        (["", GOOD], [[], ["it is empty"]], 7),
    ],
)
def test_a_repeat_says_what_was_wrong_and_none_follows_the_same_bytes(
    texts: list[str], problems: list[list[str]], ends: int | str
) -> None:
    judge, store = ObjectJudge(Answers(*texts)), DictStore()
    assert run([outcome(1)], judge, store) == [ends]
    assert len(judge.prompts) == len(set(judge.prompts)) == len(problems)
    for prompt, expected in zip(judge.prompts, problems, strict=True):
        assert len(told(prompt)) == len(expected)
        assert all(part in problem for part, problem in zip(expected, told(prompt), strict=True))
    # Each reply is stored under the key of its own request, refused ones too; nothing is asked for again.
    assert [store.replies[f"/Number/{prompt}"] for prompt in judge.prompts] == texts[
        : len(judge.prompts)
    ] or (len(texts) < len(judge.prompts))
    again = ObjectJudge(Answers("never"))
    assert run([outcome(1)], again, store) == [ends]
    assert again.prompts == []


def test_a_correction_is_part_of_the_system_message_if_there_is_one() -> None:
    """The user message holds what others wrote, and nothing there is an instruction."""
    messages = (Message("system", "Reply with JSON."), Message("user", '{"query": "x"}'))
    first = Call("t", messages, Number)
    second = first.corrected(RefusedReplyError("unparseable", "it is empty", ""))
    assert second is not None
    assert [message.text for message in second.messages[1:]] == ['{"query": "x"}']
    assert told(second.messages[0].text) == ["it is empty"]
    third = second.corrected(RefusedReplyError("echo", "it is about an example", "{}"))
    assert third is not None
    assert told(third.messages[0].text) == ["it is about an example"]  # of the last reply only
    assert third.corrected(RefusedReplyError("echo", "it is about an example", "x")) is None


@pytest.mark.parametrize("tries", [1, 2, 3, 20])
def test_no_more_tries_than_max_attempts_allows(tries: int) -> None:
    numbers = count()
    judge = ObjectJudge(lambda prompt: f"no {next(numbers)}")
    scheduler = Scheduler(judge, DictStore(), workers=1, tries=tries)
    assert list(scheduler.run([outcome(1)], window=1)) == ["unparseable"]
    scheduler.close()
    assert len(judge.prompts) == min(tries, 3)
    assert scheduler.counts.refused == {"unparseable": min(tries, 3)}
    assert scheduler.counts.failures == {"unparseable": 1}


def test_who_waits_for_a_refused_reply_waits_for_the_next_one() -> None:
    judge = ObjectJudge(Answers("one", GOOD), seconds=0.01)
    scheduler = Scheduler(judge, DictStore(), workers=2)
    assert list(scheduler.run([outcome(1) for _ in range(5)], window=5)) == [7] * 5
    scheduler.close()
    assert (len(judge.prompts), scheduler.counts.refused, scheduler.counts.failures) == (
        2,
        {"unparseable": 1},
        {},
    )


def test_a_chain_that_was_cut_goes_on_where_it_ended() -> None:
    """After a kill, what was refused is not paid for again."""
    judge, store = ObjectJudge(Answers("one", "two", GOOD)), DictStore()
    run([outcome(1)], judge, store)
    _, second, third = judge.prompts
    del store.replies[f"/Number/{third}"]
    again = ObjectJudge(Answers(GOOD))
    assert run([outcome(1)], again, store) == [7]
    assert again.prompts == [third]
    del store.replies[f"/Number/{second}"], store.replies[f"/Number/{third}"]
    store.failures.pop(f"/Number/{second}")
    again = ObjectJudge(Answers(GOOD))
    assert run([outcome(1)], again, store) == [7]
    assert again.prompts == [second]


def test_failures_that_are_to_be_retried_begin_again_and_replies_that_helped_are_kept() -> None:
    judge, store = ObjectJudge(Answers("one", "two", "three")), DictStore()
    run([outcome(1)], judge, store)
    store.failures.clear()  # as with --retry-errors
    again = ObjectJudge(Answers(GOOD))
    assert run([outcome(1) for _ in range(3)], again, store) == [7] * 3
    assert again.prompts == judge.prompts[:1]
    judge, store = ObjectJudge(Answers("one", GOOD)), DictStore()
    run([outcome(1)], judge, store)
    store.failures.clear()
    again = ObjectJudge(Answers("never"))
    assert run([outcome(1)], again, store) == [7]
    assert again.prompts == []


def test_a_retry_that_is_refused_again_comes_to_its_end() -> None:
    judge, store = ObjectJudge(Answers("one", "two", "three")), DictStore()
    run([outcome(1)], judge, store)
    store.failures.clear()
    again = ObjectJudge(Answers("one"))
    assert run([outcome(1)], again, store) == ["unparseable"]
    assert again.prompts == judge.prompts[:1]


def test_a_call_that_fails_in_the_same_way_again_counts_as_one_failure() -> None:
    """The retry meets the stored, refused reply a second time when its new first reply is refused as well."""
    judge, store = ObjectJudge(Answers("one", "two", "three")), DictStore()
    run([outcome(1)], judge, store)
    for clears in (True, False, False):
        if clears:
            store.failures.clear()  # as with --retry-errors
        scheduler = Scheduler(ObjectJudge(Answers("one")), store, workers=1)
        assert list(scheduler.run([outcome(1), outcome(1)], window=1)) == ["unparseable"] * 2
        scheduler.close()
        usage = scheduler.usage()
        assert (usage.failed, usage.failures) == (1, {"unparseable": 1})


def test_a_code_without_a_failure_is_not_listed() -> None:
    usage = _CallCounts(failures=Counter(late=0, refused=1), refused=Counter(empty=0)).added_to(Usage())
    assert (usage.failures, usage.refused) == ({"refused": 1}, {})


def test_a_stored_reply_that_is_no_longer_taken_is_followed_by_a_call_that_says_why() -> None:
    judge, store = ObjectJudge(Answers(GOOD)), DictStore()
    store.replies["/Number/1"] = '{"n": null}'
    scheduler = Scheduler(judge, store, workers=1)
    assert list(scheduler.run([outcome(1)], window=1)) == [7]
    scheduler.close()
    assert [len(told(prompt)) for prompt in judge.prompts] == [1]
    assert scheduler.counts.outdated == 1


def test_the_failure_of_a_batch_is_not_journaled_for_its_parts() -> None:
    """One blocked text must not keep its neighbours from being asked again after a kill."""

    def combine(calls: Any) -> Call[Any]:
        return Call("t", (Message("user", "+".join(each.messages[0].text for each in calls)),), Number)

    def reply(prompt: str) -> str | Exception:
        blocked = "+" in prompt or prompt == "2"
        return JudgeError("blocked_by_filter", "hate") if blocked else echo(prompt)

    bundle = Bundle(2, combine, lambda reply, parts: [reply] * parts)

    async def bundled(n: int) -> int | str:
        try:
            return (await Call("t", (Message("user", str(n)),), Number, bundle=bundle)).n
        except JudgeError as error:
            return error.code

    judge, store = ObjectJudge(reply), DictStore()
    assert run([bundled(1), bundled(2)], judge, store, workers=1) == [1, "blocked_by_filter"]
    assert judge.prompts[0] == "1+2"
    assert len(store.failures) == 1


def test_a_bug_in_a_metric_ends_the_run() -> None:
    async def broken() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        run([broken()])


def test_a_bug_leaves_no_coroutine_unfinished() -> None:
    """Python would warn of each of them later, somewhere else."""
    ended: list[str] = []

    async def waits() -> None:
        try:
            await call(1)
        finally:
            ended.append("waits")

    async def broken() -> None:
        await call(2)
        raise KeyError("bug")

    with pytest.raises(KeyError):
        run([waits(), broken()], ObjectJudge(lambda prompt: (time.sleep(0.05), echo(prompt))[1]), workers=1)
    assert ended == ["waits"]


def test_awaiting_anything_else_than_calls_is_a_bug() -> None:
    import asyncio

    async def sleeps() -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match="judge calls only"):
        run([sleeps()])


def test_a_judge_that_cannot_be_reached_stops_the_run_after_one_look() -> None:
    judge = ObjectJudge(echo)
    judge.refuses_at_first = RunStoppedError("unauthorized", "wrong key")
    assert run([outcome(n) for n in range(100)], judge) == ["not_run"] * 100
    assert (judge.prepared, judge.prompts) == ([""], [])


def test_a_stop_request_is_heard_while_the_endpoint_does_not_answer_at_first() -> None:
    class Silent(ObjectJudge):
        def prepare(self, deployment: str) -> None:
            answer.wait(10)

    answer = threading.Event()
    judge = Silent(echo)
    scheduler = Scheduler(judge, DictStore(), workers=1)
    threading.Timer(0.05, scheduler.request_stop, [RunStoppedError("interrupted", "by the user")]).start()
    began = time.monotonic()
    assert list(scheduler.run([outcome(1), outcome(2)], window=2)) == ["not_run", "not_run"]
    assert time.monotonic() - began < 5
    assert judge.prompts == []
    answer.set()
    scheduler.close()


def test_each_deployment_is_prepared_once() -> None:
    async def elsewhere(n: int) -> int:
        return (await call(n, deployment="cheap")).n

    judge = ObjectJudge(echo)
    run([ask(1), elsewhere(2), ask(3), elsewhere(4)], judge)
    assert sorted(judge.prepared) == ["", "cheap"]


def test_coroutines_go_on_to_their_first_call_while_the_endpoint_answers_and_nothing_is_sent() -> None:
    class Waiting(ObjectJudge):
        def prepare(self, deployment: str) -> None:
            assert all_came.wait(10)
            self.asked_too_early = list(self.prompts)

    async def come(n: int) -> int:
        coming.append(n)
        if len(coming) == 20:
            all_came.set()
        return await ask(n)

    coming: list[int] = []
    all_came = threading.Event()
    judge = Waiting(echo)
    assert run([come(n) for n in range(20)], judge) == list(range(20))
    assert judge.asked_too_early == []


def test_calls_that_waited_for_preparing_are_looked_up_under_the_key_that_it_settles() -> None:
    class Settling(ObjectJudge):
        parameters = "as configured"

        def prepare(self, deployment: str) -> None:
            super().prepare(deployment)
            self.parameters = "as settled"

        def key(self, call: Call[Any]) -> str:
            return f"{self.parameters}: {super().key(call)}"

    store = DictStore()
    assert run([ask(n) for n in range(5)], Settling(echo), store) == list(range(5))
    assert {key.partition(":")[0] for key in store.replies} == {"as settled"}
    again = Settling(echo)
    assert run([ask(n) for n in range(5)], again, store) == list(range(5))
    assert (again.prepared, again.prompts) == ([""], [])


def test_one_deployment_answers_while_another_is_prepared() -> None:
    class Slow(ObjectJudge):
        def prepare(self, deployment: str) -> None:
            if deployment == "slow":
                assert answered.wait(10)

        def ask(self, call: Call[Any]) -> Answer:
            answer = super().ask(call)
            answered.set()
            return answer

    async def elsewhere(n: int) -> int:
        return (await call(n, deployment="slow")).n

    answered = threading.Event()
    assert run([elsewhere(1), ask(2)], Slow(echo)) == [1, 2]


def test_a_fatal_answer_stops_the_run_and_keeps_what_is_done() -> None:
    def reply(prompt: str) -> str | Exception:
        return RunStoppedError("insufficient_quota", "spent") if int(prompt) >= 5 else echo(prompt)

    judge = ObjectJudge(reply)
    results = run([outcome(n) for n in range(300)], judge, workers=1)
    assert results[:5] == [0, 1, 2, 3, 4]
    assert set(results[5:]) == {"not_run"}
    assert len(judge.prompts) <= 5 + 2


def test_a_stopped_run_still_serves_what_the_store_knows() -> None:
    store = DictStore()
    run([ask(n) for n in range(10, 20)], ObjectJudge(echo), store)
    judge = ObjectJudge(lambda prompt: RunStoppedError("unauthorized", "key"))
    assert run([outcome(n) for n in range(20)], judge, store, workers=1)[10:] == list(range(10, 20))


def test_equal_failures_in_a_row_stop_the_run() -> None:
    judge = ObjectJudge(lambda prompt: JudgeError("server_error", "HTTP 500"))
    results = run([outcome(n) for n in range(100)], judge, workers=1)
    begun = BREAKER_LIMIT + 1  # one more may be with the worker when the limit is reached
    assert results[:BREAKER_LIMIT] == ["server_error"] * BREAKER_LIMIT
    assert results[begun:] == ["not_run"] * (100 - begun)


def test_failures_of_the_content_never_stop_the_run() -> None:
    """A sheet of toxic queries is no reason to believe that the endpoint is broken."""
    judge = ObjectJudge(lambda prompt: JudgeError("blocked_by_filter", "hate"))
    assert run([outcome(n) for n in range(50)], judge) == ["blocked_by_filter"] * 50


def test_a_stop_request_ends_the_run_at_once_and_stores_what_was_in_flight() -> None:
    judge, store = ObjectJudge(echo, seconds=0.005), DictStore()
    scheduler = Scheduler(judge, store, workers=2)
    results: list[int | str] = []
    for result in scheduler.run([outcome(n) for n in range(200)], window=10):
        results.append(result)
        if len(results) == 10:
            scheduler.request_stop(RunStoppedError("interrupted", "by the user"))
    scheduler.close()
    assert len(results) == 200
    assert "not_run" in results
    assert len(store.replies) == len(judge.prompts) < 30
    assert str(scheduler.stopped) == "by the user"


def test_calls_in_flight_are_waited_for_only_so_long() -> None:
    both_begun, are_answered = threading.Barrier(2), threading.Event()

    def reply(prompt: str) -> str:
        if both_begun.wait(60) == 0:
            scheduler.request_stop(RunStoppedError("interrupted", "by the user"))
        are_answered.wait(60)
        return echo(prompt)

    scheduler = Scheduler(ObjectJudge(reply), DictStore(), workers=2, grace_seconds=0.01)
    assert list(scheduler.run(map(outcome, (1, 2, 3)), window=3)) == ["not_run"] * 3
    are_answered.set()
    scheduler.close()


def test_counts_tell_answered_from_stored_and_failed() -> None:
    def reply(prompt: str) -> str | Exception:
        return JudgeError("refused", "no") if prompt == "9" else echo(prompt)

    judge, store = ObjectJudge(reply), DictStore()
    store.replies[judge.key(call(7))] = echo("7")
    scheduler = Scheduler(judge, store, workers=1)
    coroutines: list[Coroutine[Any, Any, Any]] = [outcome(1), outcome(7), outcome(9)]
    list(scheduler.run(coroutines, window=1))
    scheduler.close()
    usage = scheduler.usage()
    assert (usage.calls, usage.cached, usage.failed, usage.failures) == (1, 1, 1, {"refused": 1})
    assert usage.by_task == {"t": TaskUsage(calls=1, cached=1)}


@pytest.mark.parametrize("cost", [None, 0.5])
def test_a_task_without_a_request_costs_nothing_if_prices_are_known(cost: float | None) -> None:
    counts = _CallCounts(Counter(t=2), Counter(t=1, u=3), Counter(refused=1, late=2))
    sent = Usage(
        requests=4, cost=cost, by_task={"t": TaskUsage(0, 0, 7, 8, cost), "w": TaskUsage(0, 0, 1, 1, cost)}
    )
    usage = counts.added_to(sent)
    assert (usage.requests, usage.calls, usage.cached, usage.failed, usage.cost) == (4, 2, 4, 3, cost)
    assert usage.failures == {"refused": 1, "late": 2}
    assert list(usage.by_task.items()) == [
        ("t", TaskUsage(2, 1, 7, 8, cost)),
        ("u", TaskUsage(0, 3, 0, 0, None if cost is None else 0.0)),
        ("w", TaskUsage(0, 0, 1, 1, cost)),
    ]


def test_calls_that_are_shared_count_once_from_the_store_too() -> None:
    """A dry run would promise more replies than there are. What was just paid for is no reply from the store either."""

    def reply(prompt: str) -> str | Exception:
        return JudgeError("refused", "no") if prompt == "9" else echo(prompt)

    store = DictStore()
    usages = []
    for numbers in ([1, 1, 9, 9], [1, 1, 2, 2, 9, 9]):
        scheduler = Scheduler(ObjectJudge(reply), store, workers=1)
        list(scheduler.run([outcome(n) for n in numbers], window=1))
        scheduler.close()
        usages.append(scheduler.usage())
    counts = [(usage.calls, usage.cached, usage.failed) for usage in usages]
    assert counts == [(1, 0, 1), (1, 1, 1)]
    assert usages[1].by_task == {"t": TaskUsage(calls=1, cached=1)}


def test_usage_by_task_counts_joined_calls_and_batches_once() -> None:
    """Three coroutines that ask the same, and two parts of one bundle: a call each."""

    def combine(calls: Any) -> Call[Any]:
        return replace(calls[0], task="bundled", bundle=None)

    bundle = Bundle(2, combine, lambda reply, parts: [reply] * parts)

    async def bundled(n: int) -> int:
        return (await replace(call(n, "bundled"), bundle=bundle)).n

    scheduler = Scheduler(ObjectJudge(echo), DictStore(), workers=1)
    list(scheduler.run([ask(1), ask(1), ask(1), bundled(2), bundled(3)], window=5))
    scheduler.close()
    assert scheduler.usage().by_task == {"t": TaskUsage(calls=1), "bundled": TaskUsage(calls=1)}
    assert scheduler.usage().calls == 2


@pytest.mark.parametrize("bad", ["1", "2", "3"])
def test_a_part_of_a_batch_that_cannot_be_stored_keeps_no_other_from_it(bad: str) -> None:
    """All of them are paid for; the run stops all the same."""

    class Picky(DictStore):
        def put_reply(self, key: str, *, reply: str, **paid: Any) -> None:
            if key.endswith(bad):
                raise StoreError("too long")
            super().put_reply(key, reply=reply)

    def combine(calls: Sequence[Call[Any]]) -> Call[Any]:
        return replace(calls[0], bundle=None)

    bundle = Bundle(3, combine, lambda reply, parts: [reply] * parts)

    async def bundled(n: int) -> int:
        return (await replace(call(n), bundle=bundle)).n

    store = Picky()
    with pytest.raises(JudgeError, match=r"^not judged: the run stopped \(too long\)"):
        run([bundled(n) for n in (1, 2, 3)], ObjectJudge(echo), store, workers=1)
    assert sorted(key[-1] for key in store.replies) == sorted({"1", "2", "3"} - {bad})


def test_an_incomplete_batch_is_sent_when_a_worker_has_nothing_to_do() -> None:
    def combine(calls: Sequence[Call[Any]]) -> Call[Any]:
        return replace(calls[0], messages=(Message("user", str(len(calls))),), bundle=None)

    bundle = Bundle(5, combine, lambda reply, parts: [reply] * parts)

    async def bundled(n: int) -> int:
        return (await replace(call(n), bundle=bundle)).n

    judge = ObjectJudge(echo)
    assert run([bundled(7), bundled(8), bundled(9)], judge, workers=1) == [3, 3, 3]
    assert judge.prompts == ["3"]


def test_after_a_stop_no_call_is_begun_that_waits_for_a_worker() -> None:
    """The pool has more than one of them by then."""
    is_asked, may_answer = threading.Event(), threading.Event()

    def slow(prompt: str) -> str:
        is_asked.set()
        may_answer.wait(60)
        return echo(prompt)

    judge = ObjectJudge(slow)
    scheduler = Scheduler(judge, DictStore(), workers=1, grace_seconds=60)
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(lambda: list(scheduler.run([outcome(n) for n in range(5)], window=5)))
        is_asked.wait(60)
        scheduler.request_stop(RunStoppedError("interrupted", "by the user"))
        while scheduler.stopped is None:
            time.sleep(0.001)
        may_answer.set()
        assert results.result() == [0, "not_run", "not_run", "not_run", "not_run"]
    scheduler.close()
    assert judge.prompts == ["0"]
