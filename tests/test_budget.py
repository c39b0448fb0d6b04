"""Estimates send nothing, caps are kept, and a capped run goes on where it stopped."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure, read_boxes, read_sheet
from fake_judge import (
    Answer,
    FakeJudge,
    Request,
    completion,
    honest_reply,
    json_answer,
    structured,
    without_count,
)
from files import write_table

from rag_eval.cli.terminal import duration
from rag_eval.configuration.effective import prices_of
from rag_eval.configuration.loading import load_settings
from rag_eval.errors import RunStoppedError
from rag_eval.judge.answers import read_body
from rag_eval.judge.budget import Budget, Price, minutes
from rag_eval.store.reply_store import Store

ROOT = Path(__file__).parent.parent
HEADER = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]
PRICES = "[prices]\ninput = 2.5\noutput = 10\n"


def sheet_of(path: Path, rows: int = 3) -> Path:
    lines = [
        [
            f"What is the capital of France, question {n}?",
            f"Paris is the capital of France. It is number {n}.",
            f"Paris is the capital. It lies on the Seine {n}.",
            f"London has red buses. Coffee costs {n} euros.",
            f"Paris is the capital of France {n}. || Tea is a drink {n}.",
        ]
        for n in range(rows)
    ]
    return write_table(path, HEADER, *lines)


def planned(text: str) -> dict[str, int]:
    return {task: int(count) for task, count in re.findall(r"^  ([a-z_.]+): (\d+)$", text, re.MULTILINE)}


def test_a_dry_run_makes_no_request_and_writes_nothing(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--dry-run", **azure(judge))
    assert (ended.code, judge.requests) == (0, [])
    assert [path.name for path in tmp_path.iterdir()] == ["in.xlsx"]
    for words in ("3 rows", "2 bots", "127.0.0.1", "Cost: unknown", "Ground_Truth", "prompt tokens"):
        assert words in ended.out


def test_a_dry_run_says_how_long_a_judge_of_a_known_speed_takes(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx")
    (tmp_path / "config.ini").write_text(
        "[judge]\nprompt_tokens_per_second = 100\nreply_tokens_per_second = 10\n"
    )
    out = run_cli("in.xlsx", "--dry-run").out
    (prompt,), (reply,) = (
        re.findall(rf"^  {name} tokens: about ([\d,]+)", out, re.MULTILINE) for name in ("prompt", "reply")
    )
    seconds = int(prompt.replace(",", "")) / 100 + int(reply.replace(",", "")) / 10
    assert f"Time: about {duration(seconds)} (" in out
    assert "Time:" not in run_cli("in.xlsx", "--dry-run", "--judge", "offline").out


@pytest.mark.parametrize(
    ("ini", "place", "lacking"),
    [
        ("", "the judge", "endpoint and api_key"),
        ("[azure]\nendpoint = https://r.example.com/\n", "r.example.com", "api_key"),
        ("[judge]\nprovider = openai\n", "api.openai.com", "api_key"),
        (
            "[judge]\nprovider = openai\n[openai]\nbase_url = http://localhost:1/v1\n",
            "localhost (this computer)",
            "",
        ),
    ],
)
def test_a_dry_run_needs_no_credentials_and_says_which_the_run_will(
    run_cli: Run, tmp_path: Path, ini: str, place: str, lacking: str
) -> None:
    (tmp_path / "config.ini").write_text(ini)
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--dry-run")
    assert ended.code == 0
    assert planned(ended.out)["statements"] == 9
    columns = "Query, Ground_Truth, Bot_A, Bot_B, Context"
    assert f"A run would send the columns {columns} to {place}. This dry run sent nothing.\n" in ended.out
    assert "Sent to" not in ended.out
    said = [line for line in ended.err.splitlines() if line.startswith("rag-eval: A run would stop here: ")]
    assert len(said) == bool(lacking)
    assert all(f"credentials not found: {lacking} not set." in line for line in said)


@pytest.mark.slow
def test_a_dry_run_needs_no_package_that_gets_tokens(tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx")
    (tmp_path / "config.ini").write_text("[azure]\nauth = entra\nendpoint = https://r.example.com/\n")
    code = "import sys; sys.modules['azure.identity.aio'] = None; from rag_eval.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "in.xlsx", "--dry-run"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Calls to gpt-4o: about " in ended.stdout


def test_a_dry_run_plans_the_calls_that_a_run_makes(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """All but recommendations, which the plan takes every case to need."""
    sheet_of(tmp_path / "in.xlsx")
    plan = planned(run_cli("in.xlsx", "--dry-run", **azure(judge)).out)
    run_cli("in.xlsx", **azure(judge))
    made = judge.tasks()
    assert plan.pop("recommendation") == 2  # of 6 cases, five a call
    made.pop("recommendation")
    assert sum(plan.values()) == made.total()
    assert plan["statements"] == made["statements"]


def test_counts_of_tokens_that_no_database_can_hold_lose_nothing(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    usage = {"prompt_tokens": 2**63, "completion_tokens": 10**30}
    judge.always = lambda request: json_answer(
        200, json.loads(completion(honest_reply(request.prompt)).body) | {"usage": usage}
    )
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    sheet_of(tmp_path / "in.xlsx")
    assert run_cli("in.xlsx", **azure(judge)).code == 0
    asked = len(judge.requests)
    assert run_cli("in.xlsx", **azure(judge)).code == 0
    assert len(judge.requests) == asked
    store = Store(tmp_path / ".nexus_cache" / "replies.sqlite")
    assert all(0 < each.prompt_tokens <= asked * 10**9 for each in store.overview())
    store.end(keep=True)


@pytest.mark.slow
def test_a_dry_run_says_how_many_stored_replies_are_asked_for_again(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Replies without content, which earlier versions took; the run asks for just these, and says so in its report."""
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n[diagnostics]\nenabled = false\n")
    sheet_of(tmp_path / "in.xlsx")
    first = run_cli("in.xlsx", "--json", "first.json", **azure(judge))
    assert "again" not in run_cli("in.xlsx", "--dry-run", **azure(judge)).out
    path = tmp_path / ".nexus_cache" / "replies.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        keys = connection.execute("SELECT key FROM replies WHERE task = 'statements'").fetchall()
    store, emptied = Store(path), len(keys)
    for (key,) in keys:
        paid = {"attempts": 1, "prompt_tokens": 1, "completion_tokens": 1}
        store.put_reply(key, task="statements", reply='{"statements": []}', **paid)
    store.end(keep=True)
    plan = run_cli("in.xlsx", "--dry-run", **azure(judge)).out
    assert f"Stored replies that are empty or unusable and would be requested again: {emptied}." in plan
    assert planned(plan)["statements"] == emptied
    judge.requests.clear()
    ended = run_cli("in.xlsx", "--json", "again.json", **azure(judge))
    assert (first.code, ended.code) == (0, 0)
    assert judge.tasks() == {"preflight": 1, "statements": emptied}
    old, new = (json.loads((tmp_path / name).read_text()) for name in ("first.json", "again.json"))
    assert new["cases"] == old["cases"]
    assert new["end"]["notes"] == [
        f"Stored replies that were empty or unusable and were requested again: {emptied}."
    ]


def test_a_dry_run_knows_what_is_stored(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n" + PRICES)
    sheet_of(tmp_path / "in.xlsx")
    run_cli("in.xlsx", **azure(judge))
    ended = run_cli("in.xlsx", "--dry-run", **azure(judge))
    assert planned(ended.out) == {}
    assert "Cost: about 0.00 USD" in ended.out


@pytest.mark.slow
def test_a_dry_run_and_a_run_count_the_replies_that_are_stored_and_no_look_up_twice(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """The bots share their context, and the metrics their statements."""
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    sheet_of(tmp_path / "in.xlsx")
    assert "Cached replies: 0." in run_cli("in.xlsx", "--dry-run", **azure(judge)).out
    first = run_cli("in.xlsx", **azure(judge))
    assert ", 0 cached, 0 failed" in first.out
    store = Store(tmp_path / ".nexus_cache" / "replies.sqlite")
    stored = sum(task.replies for task in store.overview())
    store.end(keep=True)
    plan = run_cli("in.xlsx", "--dry-run", **azure(judge)).out
    assert f"Cached replies: {stored}." in plan
    assert f"Judge calls: 0 answered, {stored} cached, 0 failed" in run_cli("in.xlsx", **azure(judge)).out


def test_a_dry_run_plans_what_the_same_options_would_ask_for_anew(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """--fresh is everything; --retry-errors is what failed for good; without them neither is asked again."""
    judge.always = lambda request: completion("no JSON") if request.task == "verdicts" else None
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    sheet_of(tmp_path / "in.xlsx")
    everything = planned(run_cli("in.xlsx", "--dry-run", **azure(judge)).out)
    run_cli("in.xlsx", **azure(judge))
    judge.requests.clear()
    assert planned(run_cli("in.xlsx", "--dry-run", **azure(judge)).out) == {}
    again = planned(run_cli("in.xlsx", "--dry-run", "--retry-errors", **azure(judge)).out)
    assert again["faithfulness.verdicts"] == everything["faithfulness.verdicts"]
    assert again.keys() <= {"faithfulness.verdicts", "preflight", "recommendation"}
    assert planned(run_cli("in.xlsx", "--dry-run", "--fresh", **azure(judge)).out) == everything
    assert not judge.requests


def test_the_planned_range_of_tokens_holds_what_is_used(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """The fake judge counts words as tokens, and a token is no longer than a word on average."""
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx")
    text = run_cli("in.xlsx", "--dry-run", **azure(judge)).out
    found = re.search(r"prompt tokens: about ([\d,]+) \(([\d,]+) to ([\d,]+)\)", text)
    assert found is not None
    expected, low, high = (int(number.replace(",", "")) for number in found.groups())
    assert low < expected < high
    run_cli("in.xlsx", **azure(judge))
    assert sum(len(request.prompt.split()) for request in judge.requests) < high
    assert re.search(r"Cost: about 0\.\d\d USD \(", text)


@pytest.mark.slow
def test_max_calls_is_never_exceeded_and_the_run_goes_on_later(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--max-calls", "20", **azure(judge))
    assert (ended.code, len(judge.requests)) == (4, 20)
    assert "--max-calls" in ended.err
    assert (judged := re.search(r"^(\d) of 3 rows finished", ended.err, re.MULTILINE))
    cases = json.loads((tmp_path / "r.json").read_text())["cases"]
    not_run = {
        case["row"] for case in cases if "not_run" in (each["code"] for each in case["scores"].values())
    }
    assert int(judged[1]) == len({case["row"] for case in cases} - not_run) < 3
    assert (tmp_path / "r.xlsx").exists()
    before = judge.tasks()
    assert run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).code == 0
    assert judge.tasks()["statements"] == 9
    assert before["statements"] > 0
    assert all(case["RQS"] is not None for case in read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics"))


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["false", "true"])
def test_the_cost_of_a_run_is_that_of_all_its_commands(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, cache: str
) -> None:
    """The server's own counts are what is reported, each call once; the same report of other rows is another run."""
    (tmp_path / "config.ini").write_text(f"{PRICES}[cache]\nenabled = {cache}\n")
    sheet_of(tmp_path / "in.xlsx")
    command = ("in.xlsx", "-o", "r.xlsx", "--json", "r.json")
    sent, cost, calls = 0, 0.0, 0
    for code in (4, 4, 0):
        ended = run_cli(*command, *(("--max-calls", "20") if code else ()), **azure(judge))
        assert ended.code == code, ended.err
        used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
        assert used["requests"] == len(judge.requests)
        assert used["prompt_tokens"] == sum(len(request.prompt.split()) for request in judge.requests)
        assert used["cost"] == pytest.approx(
            Price(2.5, 10.0).of(used["prompt_tokens"], used["completion_tokens"])
        )
        assert sum(each["cost"] for each in used["by_metric"].values()) == pytest.approx(used["cost"])
        assert (used["earlier_requests"], used["earlier_cost"]) == (sent, pytest.approx(cost))
        assert used["cached"] == 0, "an earlier command of this run paid for them"
        assert used["calls"] == sum(request.task != "preflight" for request in judge.requests) > calls
        now = used["cost"] - cost
        told = f"{used['cost']:.4f} USD" + (f" (last command: {now:.4f})" if sent else "")
        assert f"cost {told}. Duration" in ended.out
        assert f"Cost {told}. Duration" in read_boxes(tmp_path / "r.xlsx")
        sent, cost, calls = used["requests"], used["cost"], used["calls"]

    judge.requests.clear()
    assert run_cli(*command, **azure(judge)).code == 0
    used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
    assert used["earlier_requests"] == 0, "that run is complete"
    assert used["requests"] == len(judge.requests)
    assert (used["cost"] == 0) == (cache == "true")
    assert run_cli(*command, "--fresh", "--max-calls", "20", **azure(judge)).code == 4
    judge.requests.clear()
    sheet_of(tmp_path / "in.xlsx", rows=4)
    assert run_cli(*command, **azure(judge)).code == 0
    used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
    assert (used["earlier_requests"], used["requests"]) == (0, len(judge.requests))


@pytest.mark.parametrize(
    ("details", "cached_input", "price"),
    [
        ({"cached_tokens": 8}, "1.25", Price(2.5, 10.0, 1.25)),
        ({"cached_tokens": 8}, "0", Price(2.5, 10.0, 0.0)),
        ({"cached_tokens": 8}, "", Price(2.5, 10.0)),
        ({"cached_tokens": -8}, "1.25", Price(2.5, 10.0)),
        ({"cached_tokens": "8"}, "1.25", Price(2.5, 10.0)),
        (None, "1.25", Price(2.5, 10.0)),
    ],
)
def test_cached_prompt_tokens_have_their_own_price(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, details: Any, cached_input: str, price: Price
) -> None:
    def cached(request: Request) -> Answer:
        document = json.loads(structured(honest_reply(request.prompt), request).body)
        document["usage"]["prompt_tokens_details"] = details
        return json_answer(200, document)

    judge.always = cached
    (tmp_path / "config.ini").write_text(f"{PRICES}cached_input = {cached_input}\n")
    sheet_of(tmp_path / "in.xlsx", rows=1)
    assert run_cli("in.xlsx", "--json", "r.json", **azure(judge)).code == 0
    used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
    is_saved = price.cached is not None
    tokens = used["prompt_tokens"], used["completion_tokens"], 8 * len(judge.requests) * is_saved
    assert used["cost"] == pytest.approx(price.of(*tokens))
    assert (used["cost"] < Price(2.5, 10.0).of(*tokens[:2])) == is_saved


def test_thoughts_in_the_total_are_paid_for_and_count_against_the_cap(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    def thinking(request: Request) -> Answer:
        document = json.loads(structured(honest_reply(request.prompt), request).body)
        usage = document["usage"]
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"] + 500
        return json_answer(200, document)

    judge.always = thinking
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx", rows=1)
    assert run_cli("in.xlsx", "--json", "r.json", **azure(judge)).code == 0
    used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
    assert used["completion_tokens"] > 500 * used["requests"] > 0
    assert used["cost"] == pytest.approx(
        Price(2.5, 10.0).of(used["prompt_tokens"], used["completion_tokens"])
    )
    assert run_cli("in.xlsx", "--fresh", "--max-cost", "0.04", **azure(judge)).code == 4


def test_more_cached_tokens_than_the_prompt_has_are_those_of_the_prompt() -> None:
    body = structured('{"ready": true}', Request("/", {}, {"messages": [{"content": "a b c"}]})).body
    document = json.loads(body)
    document["usage"]["prompt_tokens_details"] = {"cached_tokens": 99}
    assert read_body(json.dumps(document)).tokens.cached == 3


@pytest.mark.parametrize("text", ["cached_input = 1", "input = 1\noutput = 1\ncached_input = 1.5"])
def test_a_price_of_cached_tokens_above_that_of_others_is_refused(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, text: str
) -> None:
    """What is held back of a cap would be too little."""
    (tmp_path / "config.ini").write_text(f"[prices]\n{text}\n")
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert "config.ini" in ended.err
    assert "[prices]: cached_input needs input, and must not be above it" in ended.err


def test_max_cost_is_never_exceeded(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--max-cost", "0.05", **azure(judge))
    assert ended.code == 4
    assert "--max-cost" in ended.err
    tokens = [len(request.prompt.split()) for request in judge.requests]
    assert 0 < sum(tokens) * 2.5 / 1e6 < 0.05


def test_a_cap_on_an_unknown_price_is_an_error_and_no_silent_no_op(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--max-cost", "5", **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    remedy = (
        "the price of gpt-4o is not known; add the lines 'input = PRICE' and 'output = PRICE' to section [prices] of "
        "config.ini, per million tokens (0 if the server is your own)"
    )
    assert ended.err == f"rag-eval: [limits] max_cost: {remedy}\n"
    assert f"Cost: unknown; {remedy}.\n" in run_cli("in.xlsx", "--dry-run", **azure(judge)).out
    lines = "".join(f"{line.replace('PRICE', '0.5')}\n" for line in re.findall("'(.*?)'", remedy))
    (tmp_path / "config.ini").write_text(f"[prices]\n{lines}")
    assert run_cli("in.xlsx", "--max-cost", "5", **azure(judge)).code == 0


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ("[judge]\nprovider = openai\n", "see https://openai.com/api/pricing/"),
        (
            "[judge]\nprovider = openai\n[openai]\nbase_url = https://llm.example.org/v1\n",
            "see the price list of llm.example.org",
        ),
        (
            "[judge]\nprovider = azure\n[azure]\nendpoint = https://x.openai.azure.com\n",
            "see https://azure.microsoft.com/pricing/details/cognitive-services/openai-service/",
        ),
    ],
)
def test_an_unknown_price_comes_with_the_place_that_lists_it(
    run_cli: Run, tmp_path: Path, settings: str, place: str
) -> None:
    (tmp_path / "config.ini").write_text(settings)
    sheet_of(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--dry-run")
    assert f"per million tokens ({place}).\n" in ended.out


def test_the_price_of_another_toxicity_deployment_must_be_known_too(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    for known, lines in (
        ("", "'toxicity_input = PRICE' and 'toxicity_output = PRICE'"),
        ("toxicity_input = 1\n", "'toxicity_output = PRICE'"),
    ):
        (tmp_path / "config.ini").write_text(f"{PRICES}{known}[toxicity]\ndeployment = cheap\n")
        ended = run_cli("in.xlsx", "--max-cost", "5", **azure(judge))
        assert ended.code == 2
        assert f"the price of cheap is not known; add the lines {lines} to section [prices]" in ended.err


def test_max_minutes_stops_before_the_next_request() -> None:
    now = [1_000.0]
    budget = Budget(max_minutes=1, clock=lambda: now[0])
    budget.reserve("m", 100, 10)
    now[0] = 1_059.9
    budget.reserve("m", 100, 10)
    now[0] = 1_060.0
    with pytest.raises(RunStoppedError, match=r"the time limit of 1 minute is reached \(--max-minutes\)"):
        budget.reserve("m", 100, 10)


@pytest.mark.parametrize(("number", "words"), [(1, "1 minute"), (2, "2 minutes"), (0.5, "0.5 minutes")])
def test_minutes_are_counted_in_words(number: float, words: str) -> None:
    assert minutes(number) == words


def test_what_is_in_flight_is_held_back_at_its_most() -> None:
    """Two calls that could cost 0.6 each do not fit into 1.0, whatever the first comes to in the end."""
    price = {"m": Price(0.0, 0.6)}
    budget = Budget(price, max_cost=1.0)
    held = budget.reserve("m", 0, 1_000_000)
    told = r"0\.0000 of 1 is spent, open requests may cost 0\.6000; one more request could cost up to 0\.6000"
    with pytest.raises(RunStoppedError, match=told):
        budget.reserve("m", 0, 1_000_000)
    budget.settle(held, 0, 100_000)
    assert (budget.spent, budget.forfeited) == (pytest.approx(0.06), 0.0)
    budget.reserve("m", 0, 1_000_000)


def test_a_request_that_may_have_been_billed_counts_at_its_most() -> None:
    budget = Budget({"m": Price(0.0, 0.6)}, max_cost=1.0)
    budget.forfeit(budget.reserve("m", 0, 1_000_000))
    assert (budget.spent, budget.forfeited) == (pytest.approx(0.6), pytest.approx(0.6))
    with pytest.raises(
        RunStoppedError, match=r"0\.6000 of 1 is spent; one more request could cost up to 0\.6000"
    ):
        budget.reserve("m", 0, 1_000_000)


@pytest.mark.slow
def test_what_is_only_possibly_billed_is_told_from_the_rest_of_the_cost(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """It is far more than what the tokens cost, because a reply of the greatest length is counted."""
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx")
    lost = [Answer(is_reset=True)] * 2
    judge.always = lambda request: lost.pop() if lost and request.task == "verdicts" else None
    ended = run_cli("in.xlsx", **azure(judge))
    assert ended.code == 0
    (total,) = re.findall(r"cost (\S+) USD", ended.out)
    (possible,) = re.findall(r"The cost includes (\S+) for requests without an answer, the most", ended.out)
    tokens = re.search(r"requests, (\d+) \+ (\d+) tokens", ended.out)
    assert tokens is not None
    billed = Price(2.5, 10.0).of(int(tokens[1]), int(tokens[2]))
    assert float(possible) > 0.01
    assert float(total) == pytest.approx(billed + float(possible), abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, "none"])
def test_a_reply_without_a_count_of_its_tokens_costs_what_was_held_back(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, usage: Any
) -> None:
    """Otherwise such a server would cost nothing, and no cap would hold."""
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx")
    judge.always = lambda request: without_count(request, usage)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", **azure(judge))
    assert ended.code == 0
    used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
    assert used["uncounted"] == used["requests"] == len(judge.requests)
    assert used["cost"] == pytest.approx(used["uncounted_cost"])
    assert used["cost"] > 2.5e-6 * sum(len(request.prompt.split()) for request in judge.requests)
    told = f"cost at least 0.0000, at most {used['cost']:.4f} USD"
    assert told in ended.out
    about = read_boxes(tmp_path / "r.xlsx")
    assert told[1:] in about
    assert f"Replies without a count of their tokens: {len(judge.requests)}." in about

    judge.requests.clear()
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--fresh", "--max-cost", "0.1", **azure(judge))
    assert ended.code == 4, ended.err
    assert 0 < len(judge.requests) < used["requests"]
    (most,) = re.findall(r"at most (\S+) USD", ended.out)
    assert 0 < float(most) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": 9}, {"prompt_tokens": 9, "completion_tokens": 0}, {"completion_tokens": 9}],
    ids=["prompt alone", "no reply", "reply alone"],
)
def test_half_a_count_of_the_tokens_is_none(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, usage: Any
) -> None:
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx")
    judge.always = lambda request: without_count(request, usage)
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", **azure(judge)).code == 0
    used = json.loads((tmp_path / "r.json").read_text())["end"]["usage"]
    assert used["uncounted"] == used["requests"] == len(judge.requests)
    assert used["cost"] == pytest.approx(used["uncounted_cost"])


def test_some_replies_without_a_count_leave_the_cost_of_the_others_exact(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text(PRICES)
    sheet_of(tmp_path / "in.xlsx")
    judge.always = lambda request: without_count(request, None) if request.task == "verdicts" else None
    ended = run_cli("in.xlsx", **azure(judge))
    assert ended.code == 0
    tokens = re.search(r"requests, (\d+) \+ (\d+) tokens", ended.out)
    assert tokens is not None
    (least,) = re.findall(r"cost at least (\S+), at most", ended.out)
    assert float(least) == pytest.approx(Price(2.5, 10.0).of(int(tokens[1]), int(tokens[2])), abs=1e-4)
    assert float(least) > 0.001


def test_the_cost_is_unknown_without_prices() -> None:
    assert Budget().spent is None
    assert Budget(prices={"m": Price(1, 1)}).spent == 0.0


def test_what_was_requested_otherwise_counts_against_the_caps() -> None:
    """By earlier commands, and in batches; it is no cost of this run."""
    budget = Budget({"m": Price(1.0, 0.0)}, max_calls=4, max_cost=1.0)
    budget.carry(1, 0.5)
    budget.book(0.25)
    with pytest.raises(
        RunStoppedError, match=r"0\.7500 of 1 is spent; one more request could cost up to 0\.2501"
    ):
        budget.book(0.2501)
    held = budget.reserve("m", 250_000, 0)
    assert budget.settle(held, 100_000, 0) == pytest.approx(0.1)
    assert budget.spent == pytest.approx(0.1)
    budget.book(0.0)
    with pytest.raises(
        RunStoppedError, match=r"^4 requests were sent \(--max-calls\); raise the limit, which is that of all"
    ) as stop:
        budget.book(0.0)
    assert stop.value.code == "max_calls"
    budget.carry(0, 0.0)
    budget.reserve("m", 900_000, 0)


def test_what_is_spent_at_most_is_told_before_each_request_and_after_its_answer() -> None:
    told: list[tuple[int, float]] = []
    budget = Budget({"m": Price(1.0, 2.0)})
    budget.report_to(lambda requests, most: told.append((requests, round(most, 6))))
    first = budget.reserve("m", 100_000, 100_000)
    second = budget.reserve("m", 0, 100_000)
    budget.settle(first, 50_000, 0)
    assert budget.forfeit(second) == pytest.approx(0.2)
    free = budget.reserve("other", 10**6, 10**6)
    assert (budget.settle(free, 1, 1), budget.forfeit(free)) == (None, None)
    assert told == [(1, 0.3), (2, 0.5), (2, 0.25), (2, 0.25), (3, 0.25), (3, 0.25), (3, 0.25)]
    assert (budget.spent, budget.forfeited) == (pytest.approx(0.25), pytest.approx(0.2))


def test_a_cost_that_is_just_the_cap_is_allowed() -> None:
    budget = Budget({"m": Price(1.0, 0.0)}, max_cost=0.5)
    budget.settle(budget.reserve("m", 500_000, 0), 500_000, 0)
    with pytest.raises(RunStoppedError, match=r"^0\.5000 of 0\.5 is spent; one more") as stop:
        budget.reserve("m", 1, 0)
    assert stop.value.code == "max_cost"


@pytest.mark.parametrize("option", [("--max-calls", "0"), ("--max-cost", "-1"), ("--max-minutes", "0")])
def test_a_cap_that_makes_no_sense_is_refused(run_cli: Run, tmp_path: Path, option: tuple[str, str]) -> None:
    sheet_of(tmp_path / "in.xlsx")
    assert run_cli("in.xlsx", *option).code == 2


@pytest.mark.parametrize(
    ("is_on", "deployment", "known"),
    [(True, "t", {"m": 3.0, "t": 5.0}), (True, "m", {"m": 3.0}), (False, "t", {"m": 3.0})],
)
def test_a_deployment_of_its_own_has_its_own_price(
    is_on: bool, deployment: str, known: dict[str, float]
) -> None:
    overrides = {
        "judge.provider": "openai", "openai.model": "m", "toxicity.deployment": deployment, "metrics.toxicity": is_on,
        "prices.input": 3.0, "prices.output": 4.0, "prices.toxicity_input": 5.0, "prices.toxicity_output": 6.0,
    }  # fmt: skip
    prices = prices_of(load_settings(None, overrides, {}, Path()).settings)
    assert {name: price.prompt for name, price in prices.items()} == known
