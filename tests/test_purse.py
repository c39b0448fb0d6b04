"""The caps of a run, handed out to its shards."""

import pytest
from report_cases import facts_of

from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError
from rag_eval.records import Usage
from rag_eval.shards.folder import RunFolder
from rag_eval.shards.judge_shard import GRANT_USED, ShardOutcome, judge_shard
from rag_eval.shards.purse import Purse
from rag_eval.shards.spec import ShardSpec, plain_facts, plain_settings


def spec(number: int) -> ShardSpec:
    return ShardSpec(
        number=number, source="a", rows=1, input="", judging="", counting="", settings={}, facts={}
    )


def capped(**limits: object) -> Settings:
    return Settings.model_validate({"limits": limits})


def test_each_of_the_workers_gets_a_part_of_what_is_left() -> None:
    purse = Purse(capped(max_calls=100, max_cost=8.0), slots=4)
    given = [purse.fill(spec(number)) for number in range(4)]
    assert [each.max_calls for each in given if each] == [25, 25, 25, 25]
    assert [each.max_cost for each in given if each] == [2.0, 2.0, 2.0, 2.0]
    assert len({each.grant for each in given if each}) == 4
    assert purse.fill(spec(4)) is None, "everything is handed out"
    purse.settle(ShardOutcome(1, 1, done=True, requests=5, cost=0.5))
    fifth = purse.fill(spec(4))
    assert fifth is not None
    assert (fifth.max_calls, fifth.max_cost) == (20, 1.5)


def test_no_more_than_the_caps_is_ever_handed_out() -> None:
    purse = Purse(capped(max_calls=10), slots=3)
    sent = 0
    for number in range(50):
        given = purse.fill(spec(number))
        if given is None:
            break
        sent += given.max_calls or 0
        purse.settle(ShardOutcome(number, 1, done=True, requests=given.max_calls or 0))
    assert sent == 10
    assert "10 of 10 requests are sent (--max-calls)" in str(purse.reached())


def test_what_a_dead_worker_was_given_counts_as_spent() -> None:
    purse = Purse(capped(max_calls=10, max_cost=1.0), slots=2)
    first = purse.fill(spec(0))
    assert first is not None
    assert first.max_calls == 5
    purse.settle(ShardOutcome(0, 1, done=False, code=GRANT_USED))
    again = purse.fill(spec(0))
    assert again is not None
    assert (again.max_calls, again.max_cost) == (3, 0.25)


def test_what_was_handed_out_by_an_earlier_run_counts_as_it_says() -> None:
    purse = Purse(capped(max_calls=10, max_cost=1.0), slots=1)
    purse.settle(ShardOutcome(7, 1, done=True, requests=4, cost=0.25))
    given = purse.fill(spec(0))
    assert given is not None
    assert (given.max_calls, given.max_cost, given.max_minutes) == (6, 0.75, None)
    assert len(given.grant) == 16


def test_the_last_requests_are_rounded_up_and_go_to_one() -> None:
    purse = Purse(capped(max_calls=3), slots=2)
    given = [purse.fill(spec(number)) for number in range(3)]
    assert [each and each.max_calls for each in given] == [2, 1, None]


def test_a_grant_is_for_requests_and_money_alone() -> None:
    for limits, has_grant in (
        ({"max_minutes": 1}, False),
        ({}, False),
        ({"max_calls": 1}, True),
        ({"max_cost": 1}, True),
    ):
        given = Purse(capped(**limits), slots=1).fill(spec(0))
        assert given is not None
        assert bool(given.grant) is has_grant


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_calls": 2000}, "1,500 of 2,000 requests are sent (--max-calls)"),
        ({"max_cost": 1.5}, "0.2500 of 1.5 is spent (--max-cost)"),
        ({"max_minutes": 1}, "the limit is 1 minute (--max-minutes)"),
        ({"max_minutes": 2.5}, "the limit is 2.5 minutes (--max-minutes)"),
        (
            {"max_calls": 2000, "max_minutes": 2},
            "1,500 of 2,000 requests are sent (--max-calls), the limit is 2 minutes (--max-minutes)",
        ),
    ],
)
def test_why_nothing_more_is_handed_out(limits: dict[str, object], said: str) -> None:
    purse = Purse(capped(**limits), slots=1)
    purse.settle(ShardOutcome(0, 1, done=True, requests=1500, cost=0.25))
    reason = purse.reached()
    assert reason.code == "limits"
    assert str(reason) == f"the limits of the run are reached: {said}; run the same command again to continue"


def test_time_is_that_of_the_run() -> None:
    now = [0.0]
    purse = Purse(capped(max_minutes=2), slots=2, clock=lambda: now[0])
    first = purse.fill(spec(0))
    assert first is not None
    assert first.max_minutes == pytest.approx(2)
    now[0] = 90.0
    second = purse.fill(spec(1))
    assert second is not None
    assert second.max_minutes == pytest.approx(0.5)
    now[0] = 120.0
    assert purse.fill(spec(2)) is None


def test_a_share_of_the_limits_is_that_of_the_worker() -> None:
    settings = Settings.model_validate(
        {
            "limits": {"requests_per_minute": 60, "tokens_per_minute": 1000, "max_calls": 9},
            "evaluation": {"max_workers": 8},
        }
    )
    shared = spec(0).model_copy(update={"settings": plain_settings(settings), "share": 4, "max_calls": 2})
    ours = shared.settings_of_shard()
    assert (ours.limits.requests_per_minute, ours.limits.tokens_per_minute) == (15, 250)
    assert ours.evaluation.workers == 2
    assert ours.limits.max_calls == 2


def test_what_is_counted_while_a_run_is_judged_is_not_written_down_before() -> None:
    facts = facts_of(["A"], 2, flags={(2, "A"): ("mark",)}, cut_contexts={(2, "A"): "cut"})
    plain = plain_facts(facts)
    assert plain.keys().isdisjoint({"flags", "cut_contexts", "usage"})
    again = spec(0).model_copy(update={"facts": plain}).facts_of_run()
    assert (again.flags, again.cut_contexts, again.usage) == ({}, {}, Usage())
    assert again.weights == facts.weights


def test_settings_are_written_down_as_they_were_given_without_keys() -> None:
    settings = Settings.model_validate(
        {
            "judge": {"provider": "openai"},
            "openai": {"api_key": "canary-key-0123456789abcdef"},
            "azure": {"api_key": "canary-2", "endpoint": "https://canary-3.example"},
            "thresholds": {"faithfulness": 0.7},
        }
    )
    plain = plain_settings(settings)
    assert "canary" not in str(plain)
    again = Settings.model_validate(plain)
    assert again.thresholds.model_fields_set == {"faithfulness"}
    assert again.judge == settings.judge
    hidden = settings.model_copy(
        update={"rubric": settings.rubric.model_copy(update={"file": "canary-key-0123456789abcdef"})}
    )
    with pytest.raises(InputError, match="a key outside of api_key"):
        plain_settings(hidden)


def test_a_grant_is_used_once(tmp_path: object) -> None:
    """A worker that begins with the grant of one that died is sent back, before it sends anything."""
    from pathlib import Path

    from rag_eval.shards.folder import write_rows

    folder = RunFolder(Path(str(tmp_path)))
    digest = write_rows(folder.input(0), [])
    wanted = spec(0).model_copy(update={"input": digest, "grant": "abc"})
    folder.grant("abc").parent.mkdir()
    folder.grant("abc").touch()
    outcome = ShardOutcome(
        **judge_shard({"folder": str(folder.root), "spec": wanted.model_dump(mode="json")})
    )
    assert (outcome.done, outcome.code) == (False, GRANT_USED)
