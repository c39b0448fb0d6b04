"""--batch over several commands: kills, caps, and what is asked for once. The server's time is virtual."""

import json
import os
import re
import signal
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, Wrong, running_batches
from conftest import KEY, Run, read_sheet
from fake_judge import Answer, Request, completion, error, honest_reply, json_answer, without_count
from files import ROOT, sheet_of
from forking import Forker
from test_batches import (
    RUN,
    Job,
    azure,
    job,
    openai,
    pass_time,
    sent_once,
    server,
    submit_under,
)
from test_history import INSTALLED, as_cron_does
from test_store_damage import change

from rag_eval.cli.batching import poll_pauses, waiting_line
from rag_eval.store.batch_records import BatchRecord

__all__ = ["job", "server"]

UPLOAD, READY, DELETE = "POST /files", "GET /files/*", "DELETE /files/*"
CREATE, LIST, POLL = "POST /batches", "GET /batches", "GET /batches/*"
DOWNLOAD, CANCEL = "GET /files/*/content", "POST /batches/*/cancel"
LOST = Wrong(CREATE, "lost")


# Answers that are wrong once


SHORT_RUN = """[judge]
max_attempts = 1
timeout_seconds = 0.7
[metrics]
context_recall = false
answer_relevancy = false
answer_correctness = false
toxicity = false
[diagnostics]
enabled = no
"""
"""Fewer calls, in two waves; and no second try within a command, so that the next one deals with a wrong answer."""


@pytest.fixture(scope="module")
def undisturbed(forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int]:
    """What is reported of one row where nothing goes wrong, and the number of calls that are paid."""
    folder = tmp_path_factory.mktemp("undisturbed")
    sheet_of(folder / "in.csv", rows=1)
    (folder / "config.ini").write_text(SHORT_RUN)
    with running_batches() as server:
        while forker.run(folder, *RUN, "--batch", variables=openai(server)).code == 75:
            server.end()
    return read_sheet(folder / "r.xlsx", "Per-Query Metrics"), len(server.lines)


REFUSALS, SILENCE = ("404", "500"), ("empty", "empty object", "null id", "late", "lost")
SHORT = ("404", "500", "empty", "half", "cut file", "cut lines", "lost")
ONCE = [
    *(Wrong(event, kind) for event in (UPLOAD, CREATE, DELETE) for kind in REFUSALS + SILENCE),
    *(Wrong(event, kind, is_done=False) for event in (UPLOAD, CREATE, DELETE) for kind in REFUSALS),
    *(Wrong(CREATE, kind, is_done=False) for kind in ("lost", "empty object")),
    *(Wrong(READY, kind) for kind in REFUSALS + SILENCE),
    *(Wrong(LIST, kind) for kind in REFUSALS + SILENCE),
    *(Wrong(POLL, kind) for kind in REFUSALS + SILENCE + ("null files",)),
    *(Wrong(DOWNLOAD, kind) for kind in SHORT),
    *(Wrong(DOWNLOAD, kind, after=1) for kind in ("404", "half", "cut file", "lost")),
]  # fmt: skip
TWICE = [
    *([LOST, Wrong(LIST, kind)] for kind in REFUSALS + SILENCE),
    [Wrong(CREATE, "lost", is_done=False), Wrong(LIST, "404")],
    *([Wrong(POLL, "404"), Wrong(LIST, kind, after=1)] for kind in ("404", "empty object", "null id")),
    [Wrong(POLL, "null files"), Wrong(DOWNLOAD, "404")],
    [Wrong(POLL, "null files"), Wrong(DOWNLOAD, "cut file")],
    [Wrong(DOWNLOAD, "404"), Wrong(POLL, "null files", after=1)],
    [Wrong(POLL, "null files"), Wrong(POLL, "null files")],
    [Wrong(DOWNLOAD, "404"), Wrong(DOWNLOAD, "404")],
    [Wrong(DOWNLOAD, "half"), Wrong(DOWNLOAD, "cut lines")],
    [Wrong(DOWNLOAD, "half"), Wrong(POLL, "404", after=1), Wrong(LIST, "404", after=1)],
    [Wrong(DOWNLOAD, "cut file"), Wrong(DELETE, "500", is_done=False)],
    [LOST, Wrong(POLL, "404"), Wrong(LIST, "empty object", after=2)],
    [LOST, Wrong(POLL, "null files")],
    [Wrong(UPLOAD, "lost"), LOST],
    [Wrong(CREATE, "404"), Wrong(LIST, "empty object", after=1)],
    [Wrong(CREATE, "404"), Wrong(LIST, "500")],
]


def named(wrong: Wrong | list[Wrong]) -> str:
    each = [wrong] if isinstance(wrong, Wrong) else wrong
    return ", ".join(
        f"{one.event} {one.kind}{'' if one.is_done else ' undone'}{f' after {one.after}' * (one.after > 0)}"
        for one in each
    )


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [*([each] for each in ONCE), *TWICE], ids=named)
def test_answers_that_are_wrong_once_pay_nothing_twice(
    job: Job,
    server: BatchServer,
    undisturbed: tuple[Any, int],
    wrong: list[Wrong],
) -> None:
    job.configure(SHORT_RUN)
    server.wrong.extend(wrong)
    codes = []
    while not codes or codes[-1] in (75, 4):
        codes.append(job.run().code)
        server.end()
        pass_time()
        assert len(codes) < 12, codes
    assert_is_undisturbed(server, undisturbed)
    assert codes[-1] == 0
    if wrong[0].event == READY:
        assert len(server.uploads) == 2, "a file that is not seen once is not sent again"


def assert_is_undisturbed(server: BatchServer, undisturbed: tuple[Any, int]) -> None:
    assert server.wrong == [], "it was given"
    assert sent_once(server)
    assert (read_sheet(Path("r.xlsx"), "Per-Query Metrics"), len(server.lines)) == undisturbed
    assert server.open() == []


CANCELLED = [
    *([Wrong(CANCEL, kind)] for kind in REFUSALS + SILENCE),
    *([Wrong(CANCEL, kind, is_done=False)] for kind in (*REFUSALS, "lost")),
    [Wrong(POLL, "null files", after=1)],
    [Wrong(POLL, "404", after=1), Wrong(LIST, "404", after=1)],
    *([Wrong(DOWNLOAD, kind)] for kind in SHORT),
    [Wrong(DOWNLOAD, "404", after=1)],
    [Wrong(DOWNLOAD, "half", after=1)],
]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", CANCELLED, ids=named)
def test_answers_that_are_wrong_once_while_a_batch_is_cancelled_lose_no_finished_reply(
    job: Job, server: BatchServer, undisturbed: tuple[Any, int], wrong: list[Wrong]
) -> None:
    """Three calls are finished; the first look finds the batch being cancelled."""
    job.configure(SHORT_RUN)
    assert job.run().code == 75
    server.wrong.extend(wrong)
    codes = []
    while not codes or codes[-1] in (75, 4):
        codes.append(job.command("--batch-cancel").code)
        for batch in server.open():
            if batch.status == "cancelling":
                server.end_one(batch, "cancelled", done=3)
        pass_time()
        assert len(codes) < 12, codes
    assert (codes[-1], len(server.lines), server.files) == (0, 3, {})
    job.configure(SHORT_RUN.replace("max_attempts = 1", "max_attempts = 2"))
    assert job.through()[-1] == 0
    assert_is_undisturbed(server, undisturbed)


EXPIRED = [
    *(Wrong(DOWNLOAD, kind) for kind in ("404", "empty", "half", "cut file", "cut lines")),
    *(Wrong(DOWNLOAD, kind, after=1) for kind in ("404", "half", "cut lines")),
]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", EXPIRED, ids=named)
def test_a_file_that_is_wrong_once_after_a_batch_expired_pays_nothing_twice(
    job: Job, server: BatchServer, undisturbed: tuple[Any, int], wrong: Wrong
) -> None:
    """Three calls are finished, and the errors of the others are in a file of their own."""
    job.configure(SHORT_RUN.replace("max_attempts = 1", "max_attempts = 3"))
    assert job.run().code == 75
    server.end("expired", done=3)
    server.wrong.append(wrong)
    assert job.through()[-1] == 0
    assert_is_undisturbed(server, undisturbed)


CAP = "0.12"


@pytest.mark.slow
def test_ten_commands_under_one_cap_spend_no_more_than_it(job: Job, server: BatchServer) -> None:
    """The server's own sum of what it served, at the price of a batch, is within the cap and is what is reported."""
    job.sheet(3)
    job.configure("[prices]\ninput = 100\noutput = 10\n")
    codes = []
    for _ in range(10):
        codes.append(job.run("--max-cost", CAP, "--json", "r.json").code)
        server.end()
    assert codes[0] == 75
    assert codes[-1] == 4, codes
    lines = sum(_cost(server, line) for line in server.lines) / 2
    (preflight,) = [each for each in server.judge.requests if each.task == "preflight"]
    paid = lines + _cost_of(preflight.prompt, '{"ready": true}')
    assert float(CAP) / 10 < paid <= float(CAP)
    usage = json.loads(Path("r.json").read_text())["end"]["usage"]
    assert usage["cost"] == pytest.approx(paid)
    assert usage["calls"] == len(server.lines)
    sent = len(server.judge.requests)
    assert job.through("--max-cost", "1000")[-1] == 0, "and a higher cap goes on from there"
    assert sent_once(server) == 3 * 19
    assert len(server.judge.requests) == sent + 3 * 19 - usage["calls"]


@pytest.mark.slow
def test_a_cap_says_what_it_holds_back_and_holds_back_less_when_usage_is_known(
    job: Job, server: BatchServer
) -> None:
    """At 2.3 times the true cost. Without it, a wave is one batch."""
    job.sheet(4)
    job.configure("[prices]\ninput = 2.5\noutput = 10\n")
    assert job.through("--json", "r.json")[-1] == 0
    cost = json.loads(Path("r.json").read_text())["end"]["usage"]["cost"]
    served, before = len(server.lines), len(server.uploads)
    said, code = [], 75
    while code == 75:
        ended = job.run("--json", "r.json", "--max-cost", str(2.3 * cost))
        code = ended.code
        said += re.findall(
            r"^(\S+) calls? (?:is|are) held back by --max-cost, (.*)$", ended.out, re.MULTILINE
        )
        server.end()
    assert code == 0
    assert len(server.uploads) - before <= before + 2
    assert len(server.lines) == 2 * served
    assert said[0][1] == "since an open call counts with its highest possible cost."
    assert said[1][1].endswith(
        "highest possible cost: about 1 more round of batches. A higher limit takes fewer."
    )
    assert int(said[0][0]) > 10


@pytest.mark.slow
def test_replies_that_are_longer_than_all_before_exceed_no_cap_and_are_not_lost(
    job: Job, server: BatchServer
) -> None:
    """The provider cuts them at the limit that was held back for them; what was cut is requested with more room."""
    cut = []

    def wordy(request: Request) -> Answer | None:
        if not re.search(
            r"(question|number|Seine|costs|France|drink) [45]", request.prompt
        ) or request.task not in ("statements", "verdicts"):
            return None
        whole, most = honest_reply(request.prompt), request.body.get("max_tokens") or 10_000
        size = 300 + len(whole.split())
        is_cut = size > most
        reply = '{"statements": ["' + ", ".join(f"the {n}th" for n in range(most)) if is_cut else whole
        answer = completion(reply, request, "length" if is_cut else "stop")
        document = json.loads(answer.body)
        document["usage"]["completion_tokens"] = min(size, most)
        cut.append(is_cut)
        return json_answer(200, document)

    server.judge.always = wordy
    job.sheet(6)
    job.configure("[prices]\ninput = 2.5\noutput = 10\n")
    assert job.through("--json", "r.json", most=30)[-1] == 0
    cost = json.loads(Path("r.json").read_text())["end"]["usage"]["cost"]
    expected = job.tables()
    assert not any(cut)
    codes, cap = [75], f"{1.5 * cost:.6f}"
    while codes[-1] == 75:
        codes.append(job.run("--json", "r.json", "--max-cost", cap).code)
        server.end()
    assert any(cut)
    assert json.loads(Path("r.json").read_text())["end"]["usage"]["cost"] <= float(cap)
    if codes[-1] == 4:
        assert job.through("--max-cost", f"{5 * cost:.6f}", most=30)[-1] == 0
    assert job.tables() == expected


@pytest.mark.slow
def test_the_cost_of_batches_includes_that_of_commands_without_them(job: Job, server: BatchServer) -> None:
    """Each command reports what it sent or took in, next to what the run cost so far."""
    job.sheet(2)
    job.configure("[prices]\ninput = 100\noutput = 10\n")
    assert job.command("--json", "r.json", "--max-calls", "9").code == 4
    single = json.loads(Path("r.json").read_text())["end"]["usage"]
    assert single["requests"] == len(server.judge.requests) == 9
    ended = job.run("--json", "r.json")
    while ended.code == 75:
        before = len(server.lines)
        server.end()
        ended = job.run("--json", "r.json")
    assert ended.code == 0
    usage = json.loads(Path("r.json").read_text())["end"]["usage"]
    assert usage["requests"] == len(server.judge.requests)
    preflights = [each.prompt for each in server.judge.requests if each.task == "preflight"]
    assert usage["earlier_requests"] == 9 + 1 + before
    by_batches = sum(_cost(server, line) for line in server.lines) / 2
    total = single["cost"] + _cost_of(preflights[1], '{"ready": true}') + by_batches
    assert usage["cost"] == pytest.approx(total)
    now = sum(_cost(server, line) for line in server.lines[before:]) / 2
    assert usage["cost"] - usage["earlier_cost"] == pytest.approx(now)
    assert (usage["cached"], usage["calls"]) == (0, len(server.judge.requests) - len(preflights))
    assert f"{usage['cost']:.4f} USD (last command: {now:.4f})" in ended.out


@pytest.mark.slow
def test_every_option_that_the_guide_lists_with_batches_can_be_used_with_them(
    job: Job, server: BatchServer
) -> None:
    text = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    table = text.partition("|Option|With `--batch`|\n")[2].partition("\n\n")[0]
    options = [
        each for line in table.splitlines()[1:] for each in re.findall("`(--.*?)`", line.split("|")[1])
    ]
    assert len(options) > 4
    job.configure("[prices]\ninput = 1\noutput = 1\n")
    values = {"--batch-wait 120": "0.001", "--max-cost": "9", "--max-calls": "100"}
    for option in options:
        name, value = option.split()[0], values.get(option)
        ended = job.run(name, *filter(None, [value]))
        assert ended.code == (0 if name == "--batch-cancel" else 75), (option, ended.err)
        server.end()
    assert "use `--report-only` instead of `--batch`" in text
    assert job.command("--report-only").code == 4
    assert Path("r.xlsx").exists()


@pytest.mark.slow
def test_results_without_a_count_cost_the_most_that_they_can(job: Job, server: BatchServer) -> None:
    job.sheet(3)
    job.configure("[prices]\ninput = 100\noutput = 10\n")
    server.judge.always = without_count
    for _ in range(10):
        code = job.run("--max-cost", CAP, "--json", "r.json").code
        server.end()
    assert code == 4
    usage = json.loads(Path("r.json").read_text())["end"]["usage"]
    assert usage["uncounted_cost"] == pytest.approx(usage["cost"])
    assert 0 < usage["cost"] <= float(CAP)
    assert usage["uncounted"] == len(server.judge.requests)
    assert usage["prompt_tokens"] == usage["completion_tokens"] == 0
    assert usage["cost"] > sum(_cost(server, line) for line in server.lines) / 2


def _cost(server: BatchServer, line: dict[str, Any]) -> float:
    from fake_judge import honest_reply

    prompt = "\n".join(message["content"] for message in line["body"]["messages"])
    return _cost_of(prompt, honest_reply(prompt))


def _cost_of(prompt: str, reply: str) -> float:
    return (100 * len(prompt.split()) + 10 * len(reply.split())) / 1e6


@pytest.mark.slow
def test_a_batch_that_the_provider_has_lost_is_requested_again(job: Job, server: BatchServer) -> None:
    assert job.run().code == 75
    server.batches.clear()
    said = looks(job, server)
    assert [sentence.partition(" (")[0] for sentence in said] == [
        "Batch batch-1: the provider does not find it with this key"
    ] * 3
    assert (
        "(look 1 of 3). Nothing is deleted or requested again yet; for the next look, run the same" in said[0]
    )
    assert said[2].endswith(
        "(3 looks, at least 10 minutes apart); calls without a result are requested again."
    )
    assert [len(batch.lines) for batch in server.open()] == [11]
    assert job.through()[-1] == 0
    assert sent_once(server) == 19


@pytest.mark.slow
def test_results_that_the_provider_has_lost_are_requested_again(job: Job, server: BatchServer) -> None:
    assert job.run().code == 75
    server.end()
    (lost,) = [name for name in server.files if name.startswith("out-")]
    del server.files[lost]
    said = looks(job, server)
    assert all("Batch batch-1: 11 of 11 results are missing (" in sentence for sentence in said)
    assert job.through()[-1] == 0
    assert len(server.lines) == 11 + 19


def looks(job: Job, server: BatchServer) -> list[str]:
    """What three looks say that miss something. Until the last, nothing is sent or deleted, however often one looks."""
    said = []
    for number in (1, 2, 3):
        before = (len(server.uploads), [*server.files])
        ended = job.run("--manifest", "m.json")
        said.append(ended.err)
        assert ended.code == 75
        if number == 3:
            break
        assert "Missing or incomplete at the provider: 1 batch; next look at " in ended.out
        assert (
            "Missing or incomplete at the provider: 1 batch"
            in json.loads(Path("m.json").read_text())["reason"]
        )
        for _ in range(2):
            assert job.run().err == ended.err
        assert (len(server.uploads), [*server.files]) == before
        pass_time()
    return [sentence.removeprefix("rag-eval: ").strip() for sentence in said]


@pytest.mark.slow
def test_a_queue_that_takes_nothing_at_first_is_sent_less_at_once(job: Job, server: BatchServer) -> None:
    """The refusal comes with the request that creates the batch. Nothing waits then, and nothing is reported yet."""
    full = error(400, "token_limit_exceeded", "Enqueued token limit reached")
    refusals = iter([full, full])
    server.hook = lambda event: next(refusals, None) if event == "POST /batches" else None
    ended = job.run()
    assert ended.code == 75
    assert ended.err.count("The provider's quota of enqueued tokens is used up; at most about ") == 2
    assert not Path("r.xlsx").exists()
    (batch,) = server.open()
    assert 0 < len(batch.lines) < 11
    assert list(server.files) == [batch.input_file], "what was refused is deleted"
    assert job.through(most=30)[-1] == 0
    assert sent_once(server) == 19


def test_a_queue_that_refuses_even_one_call_stops_the_job(job: Job, server: BatchServer) -> None:
    full = error(400, "token_limit_exceeded", "Enqueued token limit reached")
    server.hook = lambda event: full if event == "POST /batches" else None
    ended = job.run()
    assert (ended.code, "has no room for even one call" in ended.err) == (4, True)
    assert (server.lines, server.files, Path("r.xlsx").exists()) == ([], {}, False)


@pytest.mark.slow
def test_a_queue_that_is_full_is_sent_nothing_more_by_this_command(job: Job, server: BatchServer) -> None:
    """Of eleven calls in three files, where the second finds the queue full."""
    full = error(400, "token_limit_exceeded", "Enqueued token limit reached")
    answers = iter([None, full])
    server.hook = lambda event: next(answers, None) if event == "POST /batches" else None
    assert submit_under({"most_requests": 4}, server) == 4
    assert server.calls.count("POST /files") == 2
    assert [len(batch.lines) for batch in server.open()] == [4]
    assert job.through(most=30)[-1] == 0
    assert sent_once(server) == 19


@pytest.mark.slow
def test_max_calls_counts_over_all_commands(job: Job, server: BatchServer) -> None:
    job.sheet(2)
    codes = [job.run("--max-calls", "25").code for _ in range(4) if not server.end()]
    assert codes == [75, 75, 4, 4]
    assert len(server.judge.requests) == 25


@pytest.mark.slow
@pytest.mark.parametrize(("most", "codes", "lines"), [(39, [0], 0), (38, [4, 4], 0), (20, [75, 4], 19)])
def test_what_is_sent_online_counts_once_and_over_all_commands(
    job: Job, server: BatchServer, most: int, codes: list[int], lines: int
) -> None:
    """Calls beyond the cap are more than the last ones, so they go into a batch."""
    job.sheet(2)
    job.configure("[batch]\nfinish_online_below = 1000\n")
    for code in codes:
        assert job.run("--max-calls", most).code == code
        server.end()
    assert (len(server.lines), len(server.judge.requests)) == (lines, most)


@pytest.mark.slow
def test_fresh_from_cron_comes_to_its_end(job: Job, server: BatchServer) -> None:
    job.configure("[cache]\nenabled = true\n")
    assert job.through() == [75, 75, 75, 0]
    for times in (2, 3):
        assert job.through("--fresh") == [75, 75, 75, 0], "every call is made again, and once"
        assert len(server.lines) == times * 19
    assert job.through() == [0]


@pytest.mark.slow
def test_a_dry_run_of_a_fresh_job_counts_what_is_left(job: Job, server: BatchServer) -> None:
    """Of a job in batches, and of a run that began online and goes on in batches."""
    job.configure("[cache]\nenabled = true\n")
    assert job.through() == [75, 75, 75, 0]
    for before, replies in ((), 11), (("--max-calls", "2"), 12):
        if before:
            assert job.command("--fresh", *before).code == 4
        assert job.run("--fresh").code == 75
        server.end()
        assert job.run().code == 75
        for options in ((), ("--fresh",), ("--batch",)):
            told = job.command("--dry-run", *options).out
            assert f"Cached replies: {replies}." in told, told
        assert job.through()[-1] == 0


@pytest.mark.slow
def test_what_batches_took_is_in_the_report_of_later_commands_without_them(
    job: Job, server: BatchServer
) -> None:
    """One of the replies so far, as often as it is made, and the one of a run that goes on online."""

    def told(*words: str) -> dict[str, Any]:
        job.command(*words, "--manifest", "m.json")
        usage: dict[str, Any] = json.loads(Path("m.json").read_text())["usage"]
        return usage

    job.sheet(2)
    job.configure("[prices]\ninput = 1\noutput = 10\n")
    assert job.run().code == 75
    server.end()
    assert job.run().code == 75
    first = len(server.lines)
    for _ in range(2):
        usage = told("--report-only")
        assert (usage["requests"], usage["earlier_requests"]) == (first + 1, first + 1)
        assert (usage["calls"], usage["cached"], usage["cost"] > 0) == (first, 0, True)
    cost = usage["cost"]
    while job.run("--batch-cancel").code == 75:
        server.end("cancelled", done=0)
    usage = told()
    assert (usage["earlier_requests"], usage["earlier_cost"]) == (first + 1, pytest.approx(cost))
    assert usage["requests"] == len(server.judge.requests)
    again = told()
    assert (again["requests"], again["earlier_requests"]) == (again["requests"], 0), "that is another run"


@pytest.mark.slow
def test_what_batches_took_counts_once_in_pairs_of_the_json(job: Job, server: BatchServer) -> None:
    """Compared into the report that the batches were sent for."""
    assert job.run().code == 75
    server.end()
    while job.run("--batch-cancel").code == 75:
        server.end("cancelled", done=0)
    assert job.command("--report-only", "--json", "p.json").code == 4
    taken = json.loads(Path("p.json").read_text())["end"]["usage"]["requests"]
    before = len(server.judge.requests)
    assert job.command("--head-to-head", "--json", "q.json", given="p.json").code == 3
    usage = json.loads(Path("q.json").read_text())["end"]["usage"]
    assert (taken > 10, usage["requests"] - taken) == (True, len(server.judge.requests) - before)


@pytest.mark.slow
def test_usage_by_task_is_that_of_all_commands(job: Job, server: BatchServer) -> None:
    job.sheet(2)
    job.configure("[prices]\ninput = 1\noutput = 10\n")
    assert job.through("--manifest", "m.json")[-1] == 0
    usage = json.loads(Path("m.json").read_text())["usage"]
    assert (usage["calls"], usage["cached"], usage["requests"]) == (2 * 19, 0, 2 * 19 + 1)
    tasks = {name: each["calls"] for name, each in usage["by_task"].items()}
    assert tasks["faithfulness.verdicts"] == 4
    assert sum(tasks.values()) == 2 * 19
    assert usage["prompt_tokens"] == sum(len(each.prompt.split()) for each in server.judge.requests)
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        assert sum(each[name] for each in usage["by_task"].values()) == pytest.approx(usage[name])


@pytest.mark.slow
def test_while_waiting_the_old_report_stays_and_the_manifest_says_why(job: Job, server: BatchServer) -> None:
    Path("r.xlsx").write_bytes(b"the old report")
    ended = job.run("--manifest", "m.json")
    assert ended.code == 75
    assert re.search(
        r"Waiting for 1 batch \(11 calls, submitted \d\d:\d\d, at the latest .*\d\d:\d\d\)\. Run the same",
        ended.out,
    )
    manifest = json.loads(Path("m.json").read_text())
    assert (manifest["status"], manifest["exit_code"]) == ("waiting", 75)
    assert manifest["reason"].startswith("Waiting for 1 batch")
    assert manifest["batches"][0] | {"submitted": ""} == {"id": "batch-1", "calls": 11, "submitted": ""}
    assert Path("r.xlsx").read_bytes() == b"the old report"
    server.end()
    assert job.run().code == 75
    only = job.command("--report-only")
    assert only.code == 4
    rows = read_sheet(Path("r.xlsx"), "Per-Query Metrics")
    assert rows[0]["Context Recall"] is not None
    assert rows[0]["Faithfulness"] is None
    assert job.through()[-1] == 0


def test_waiting_in_the_process(job: Job, server: BatchServer) -> None:
    """Each look at a batch completes it; the last look is when the time is up."""
    server.is_fast = True
    ended = job.run("--batch-wait", "0.005")
    assert ended.code == 75
    assert ended.out.count("Waiting for") == 2
    assert ended.out.count("Run the same command again") == 1
    assert list(islice(poll_pauses(), 8)) == [60, 90, 135, 202.5, 303.75, 455.625, 600, 600]


def test_the_line_says_the_day_where_it_is_another() -> None:
    now = datetime(2026, 3, 5, 15, 0)

    def line(submitted: datetime, place: str = "openai x") -> str:
        one = BatchRecord("t", "j", place, requests=330, submitted=submitted.timestamp())
        return waiting_line([one, one], now)

    assert "(1 call, submitted " in waiting_line([BatchRecord("t", "j", "openai x", requests=1, submitted=0)])
    today = "Waiting for 2 batches (660 calls, submitted 14:02, at the latest tomorrow 14:02)."
    assert line(datetime(2026, 3, 5, 14, 2)) == today
    assert "submitted yesterday 16:00, at the latest 16:00" in line(now - timedelta(hours=23))
    assert "submitted 2026-03-03 15:00, due yesterday 15:00" in line(now - timedelta(days=2))
    assert "expected by tomorrow" in line(datetime(2026, 3, 5, 14, 2), "azure x")
    moments = [datetime(2026, 3, 5, 14, 55, 30), datetime(2026, 3, 5, 14, 58), datetime(2026, 3, 5, 14, 59)]
    batches = [
        BatchRecord(
            "t",
            "j",
            "openai x",
            requests=1,
            submitted=now.timestamp(),
            misses=misses,
            missed_at=each.timestamp(),
        )
        for misses, each in zip((0, 1, 2), moments, strict=True)
    ]
    assert waiting_line(batches, now).endswith(
        ". Missing or incomplete at the provider: 2 batches; next look at 15:08 or later."
    )


@pytest.mark.slow
def test_cancelling_keeps_what_is_finished(job: Job, server: BatchServer) -> None:
    job.sheet(2)
    expected = job.online()
    assert job.run().code == 75
    first = job.command("--batch-cancel", "--manifest", "m.json")
    assert (first.code, "Cancelling 1 batch." in first.out) == (75, True)
    assert json.loads(Path("m.json").read_text())["status"] == "waiting"
    server.end("cancelled", done=10)
    second = job.command("--batch-cancel", "--quiet")
    assert (second.code, "No batch of this report is open." in second.out) == (0, True)
    assert (server.open(), server.files) == ([], {})
    with closing(sqlite3.connect("r.xlsx.journal")) as store:
        assert store.execute("SELECT count(*) FROM replies").fetchone() == (10,)
    assert job.through()[-1] == 0
    assert job.tables() == expected
    assert sent_once(server) == 2 * 19


@pytest.mark.slow
def test_the_last_calls_are_made_online(job: Job, server: BatchServer) -> None:
    job.sheet(2)
    expected = job.online()
    job.configure("[batch]\nfinish_online_below = 4\n[prices]\ninput = 1\noutput = 1\n")
    assert job.through("--json", "r.json") == [75, 75, 0]
    assert job.tables() == expected
    assert server.judge.tasks()["recommendation"] == 4
    assert len(server.lines) == 2 * 17
    assert json.loads(Path("r.json").read_text())["end"]["usage"]["calls"] == 2 * 19


@pytest.mark.slow
@pytest.mark.parametrize("is_created", [True, False])
def test_a_batch_of_which_it_is_not_known_whether_it_was_created(
    job: Job, server: BatchServer, is_created: bool
) -> None:
    """It is looked for among all that the server lists, page by page."""
    server.page = 2
    server.files["file-0"] = b'{"custom_id": "x", "url": "", "method": "POST", "body": {"model": ""}}'
    for _ in range(5):
        server.answer("POST", "/batches", {}, {}, b'{"input_file_id": "file-0", "endpoint": ""}')
    for batch in server.open():
        batch.status = "completed"
    others = len(server.batches)
    failing = "created" if is_created else "POST /batches"
    server.hook = lambda event: error(500, "server_error", "oops") if event == failing else None
    first = job.run()
    assert (first.code, len(server.batches) - others) == (75, int(is_created))
    assert (
        "may have a new batch of 11 calls, but does not list it (look 1 of 3)" in first.err
    ) is not is_created
    server.hook = lambda event: None
    assert ("The batch was not confirmed: HTTP 500" in first.err) is not is_created
    if not is_created:
        for _ in range(3):
            assert "(look 1 of 3)" in job.run().err
        assert len(server.batches) == others
    server.end()
    assert job.through()[-1] == 0
    assert sent_once(server) == 19


@pytest.mark.slow
def test_a_new_batch_that_is_listed_late_is_not_sent_again_meanwhile(job: Job, server: BatchServer) -> None:
    """Commands within seconds of each other count as one look."""
    server.wrong.extend([LOST, *[Wrong(LIST, "empty object")] * 4])
    first, *others = [job.run().err for _ in range(4)]
    what, why = first.splitlines()
    assert others == [f"{what}\n"] * 3
    assert what.startswith(
        "rag-eval: The provider may have a new batch of 11 calls, but does not list it (look 1 of 3). Nothing is "
    )
    assert why.startswith("rag-eval: The batch was not confirmed: the connection broke off")
    assert job.through()[-1] == 0
    assert (server.wrong, sent_once(server)) == ([], 19)


REFUSED = {
    "offline": (["--batch", "--judge", "offline"], "", "the offline judge makes no calls"),
    "waiting for nothing": (["--batch-wait", "5"], "", "--batch-wait: needs provider batches; add --batch"),
    "report only": (["--batch", "--report-only"], "", "--report-only: makes no calls"),
    "minutes": (["--batch", "--max-minutes", "5"], "", "--batch-wait MINUTES"),
    "minutes of the file": (["--batch"], "[limits]\nmax_minutes = 5\n", "[limits] max_minutes"),
    "cancelling dry": (["--batch-cancel", "--dry-run"], "", "--dry-run: has no effect with --batch-cancel"),
    "azure": (["--batch", "--judge", "azure"], "", "[batch] deployment: not set"),
    "azure, toxicity": (
        ["--batch", "--judge", "azure"],
        "[batch]\ndeployment = b\n[toxicity]\ndeployment = t\n",
        "[batch] toxicity_deployment: not set",
    ),
}


@pytest.mark.parametrize(("options", "config", "words"), REFUSED.values(), ids=REFUSED)
def test_options_that_cannot_be_used_together(
    job: Job, run_cli: Run, server: BatchServer, options: list[str], config: str, words: str
) -> None:
    job.configure(config)
    ended = run_cli(*RUN, *options, **openai(server), **azure(server))
    assert (ended.code, words in ended.err) == (2, True), ended.err
    assert (server.calls, server.judge.requests) == ([], [])


@pytest.mark.slow
def test_a_dry_run_shows_waves_files_and_the_lower_price(job: Job, server: BatchServer) -> None:
    job.sheet(50)
    job.configure("[prices]\ninput = 0.15\noutput = 0.6\n[batch]\nenqueued_tokens = 300000\n")
    whole = job.command("--dry-run")
    ended = job.command("--dry-run", "--batch")
    assert (ended.code, "open batches" in ended.out) == (0, False)
    assert re.findall(r"wave (\d): about (\d+) calls in (\d) files?, \d+\.\d MB", ended.out) == [
        ("1", "550", "2"), ("2", "300", "1"), ("3", "100", "1"),
    ]  # fmt: skip
    costs = [float(re.findall(r"about ([\d.]+) USD", each.out)[0]) for each in (whole, ended)]
    assert 0.4 < costs[1] / costs[0] < 0.65
    assert "Cached replies: 0." in ended.out
    assert "keeps the texts of a batch until its results are stored here, and at most 14 days." in ended.out
    assert (server.calls, server.judge.requests) == ([], [])


@pytest.mark.slow
def test_a_dry_run_does_not_count_calls_in_open_batches_again(job: Job, server: BatchServer) -> None:
    def planned(*words: str) -> tuple[list[int], int]:
        told = job.command("--dry-run", *words)
        assert told.code == 0
        awaited = re.findall(r"^Calls in open batches, which a run waits for: (\d+)\.$", told.out, re.M)
        return [int(each) for each in re.findall(r"about (\d+) calls in", told.out)], sum(map(int, awaited))

    first, *others = planned("--batch")[0]
    assert others
    assert planned("--batch") == ([first, *others], 0)
    assert job.run().code == 75
    assert len(server.open()[0].lines) == first
    assert planned("--batch") == (others, first)
    refused = job.command("--dry-run")
    assert "this report waits for 1 batch" in refused.err


HOSTILE = {
    "a redirect": ("POST /files", Answer(302, b"", {"Location": "http://127.0.0.1:1/elsewhere"}), "redirect"),
    "the key in an error": ("POST /files", error(400, "bad", f"your key {KEY} is bad"), "[key]"),
    "no batches here": ("POST /files", error(404, "not_found", "no"), "remove --batch"),
    "a name that leads elsewhere": (
        "POST /files",
        json_answer(200, {"id": "../../admin"}),
        "does not describe a file",
    ),
    "no JSON": ("POST /files", json_answer(200, ["x"]), "does not describe JSON"),
    "a key that does not fit": ("POST /batches", error(401, "401", "no"), "HTTP 401"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("event", "answer", "words"), HOSTILE.values(), ids=HOSTILE)
def test_what_a_server_may_answer_to_files_and_batches(
    job: Job, server: BatchServer, event: str, answer: Answer, words: str
) -> None:
    job.configure("[judge]\nmax_attempts = 1\n")
    server.hook = lambda what: answer if what == event else None
    ended = job.run()
    assert (ended.code, words in ended.err) == (4, True), ended.err
    assert KEY not in ended.err
    assert not Path("r.xlsx").exists()
    server.hook = lambda what: None
    assert job.through()[-1] == 0
    assert sent_once(server)


def test_files_expire_by_themselves_where_the_endpoint_takes_that(job: Job, server: BatchServer) -> None:
    assert job.run().code == 75
    assert server.uploads == [
        {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "1209600"}
    ]
    (batch,) = server.open()
    assert batch.body["output_expires_after"] == {"anchor": "created_at", "seconds": 1209600}
    assert batch.body["completion_window"] == "24h"


def test_two_models_behind_one_name_are_said(job: Job, server: BatchServer) -> None:

    def renamed(lines: list[str]) -> list[str]:
        return [line.replace('"fake"', f'"model-{number % 2}"') for number, line in enumerate(lines)]

    server.arrange = renamed
    for _ in range(4):
        ended = job.run()
        server.end()
    assert ended.code == 0
    assert "answered as several models (model-0, model-1)" in ended.out


@pytest.mark.slow
def test_the_cron_line_of_the_guide_runs_until_the_report_is_there(
    server: BatchServer, tmp_path: Path
) -> None:
    """As cron runs it, with % spelled \\%; the key is in .env."""
    guide = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\S+ \* \* \* \*  (cd .* --batch .*)$", guide, re.MULTILINE)
    command = line.replace("\\%", "%")
    for path, place in (("/srv/rag-eval/.venv/bin/rag-eval", INSTALLED), ("/srv/rag ", f"{tmp_path} ")):
        assert path in command
        command = command.replace(path, str(place))
    sheet_of(tmp_path / "answers.xlsx", rows=1)
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in openai(server).items()))
    (tmp_path / ".env").chmod(0o600)
    codes = []
    while not codes or (codes[-1] == 75 and len(codes) < 6):
        ended = as_cron_does(command)
        assert (ended.stdout, ended.stderr) == ("", "")
        codes.append(ended.returncode)
        server.end()
    assert codes == [75, 75, 75, 0]
    assert len(read_sheet(tmp_path / "report.xlsx", "Per-Query Metrics")) == 2


def test_a_report_that_is_there_while_batches_are_open_is_of_an_earlier_run(job: Job) -> None:
    assert "earlier run" not in job.run().out
    Path("r.xlsx").touch()
    waiting = job.run()
    written = f"{datetime.fromtimestamp(Path('r.xlsx').stat().st_mtime):%Y-%m-%d %H:%M}"
    assert (waiting.code, waiting.err) == (75, "")
    assert waiting.out.endswith(f"From an earlier run: r.xlsx ({written}).\n")
    assert job.run("-q").out == ""


@pytest.mark.slow
def test_an_online_run_does_not_pay_for_what_batches_have(
    job: Job, run_cli: Run, server: BatchServer
) -> None:
    assert job.run().code == 75
    sent = len(server.judge.requests)
    refused = job.command()
    assert (refused.code, len(server.judge.requests)) == (2, sent)
    assert "this report waits for 1 batch (11 calls); add --batch to continue" in refused.err
    assert run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline").code == 0
    server.end()
    assert job.through()[-1] == 0


def test_one_command_at_a_time_deals_with_the_batches_of_a_cache(job: Job, server: BatchServer) -> None:
    from rag_eval.store.lock import locked

    job.configure("[cache]\nenabled = true\n")
    Path(".nexus_cache").mkdir()
    with locked(Path(".nexus_cache") / "replies.sqlite.batches"):
        ended = job.run()
    assert (ended.code, "another command deals with its batches" in ended.err) == (75, True)
    assert server.calls == []


@pytest.mark.slow
def test_a_cap_does_not_hide_what_is_paid(job: Job, server: BatchServer) -> None:
    """The results of the last batch are in the partial report, though nothing more may be sent."""
    job.sheet(3)
    arguments = ("--batch", "--max-calls", "34", "--manifest", "m.json")
    assert job.command(*arguments).code == 75
    assert len(server.open()[0].lines) == 33, "and the preflight"
    server.end()
    assert job.command(*arguments).code == 4
    usage = json.loads(Path("m.json").read_text())["usage"]
    assert usage["calls"] == 33
    rows = read_sheet(Path("r.xlsx"), "Per-Query Metrics")
    assert all(row["Context Recall"] is not None for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["POST /batches", "GET /files/*"])
def test_what_is_not_created_yet_is_not_created_to_be_cancelled(
    forker: Forker, job: Job, server: BatchServer, tmp_path: Path, event: str
) -> None:

    def kill(what: str) -> Answer | None:
        if what == event:
            server.hook = lambda event: None
            os.kill(run.pid, signal.SIGKILL)
            return error(500, "server_error", "not created")
        return None

    server.hook = kill
    run = forker.start(tmp_path, *RUN, "--batch", variables=openai(server))
    assert run.wait().code == -9
    codes = [job.command("--batch-cancel").code for _ in range(3) if not pass_time()]
    assert codes[-1] == 0
    assert (server.batches, len(server.judge.requests)) == ({}, 1)
    assert job.through()[-1] == 0


@pytest.mark.slow
def test_a_batch_that_the_store_has_lost_is_not_waited_for(job: Job, server: BatchServer) -> None:
    assert job.run().code == 75
    change(Path("r.xlsx.journal"), "UPDATE batches SET value = '{}'")
    ended = job.run()
    assert (ended.code, "damaged rows (batches: 1)" in ended.err) == (75, True)
    assert len(server.open()) == 2
    assert job.through()[-1] == 0


@pytest.mark.slow
def test_samples_are_calls_of_their_own(job: Job, server: BatchServer) -> None:
    job.configure("[evaluation]\nsamples = 2\n[openai]\ntemperature = 0.5\n")
    expected = job.online()
    assert job.through() == [75, 75, 75, 0]
    assert job.tables() == expected
    assert sent_once(server) == 2 * 16 + 3


@pytest.mark.slow
def test_failures_are_retried_in_the_middle_of_a_job(job: Job, server: BatchServer) -> None:
    expected = job.online()
    assert job.run().code == 75
    server.judge.always = lambda request: (
        error(400, "content_filter", "filtered") if request.task == "usefulness" else None
    )
    server.end()
    server.judge.always = None
    assert job.run().code == 75
    assert len(server.open()[0].lines) == 6
    assert job.run("--retry-errors").code == 75
    assert sorted(len(batch.lines) for batch in server.open()) == [4, 6]
    server.end()
    assert job.through("--retry-errors")[-1] == 0
    assert job.tables() == expected
    assert sent_once(server)
