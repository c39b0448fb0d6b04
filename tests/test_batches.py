"""--batch from the outside: commands in a row, over real HTTP to a server that takes batches."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, running_batches
from conftest import KEY, TABLES, Ended, Run, read_sheet
from fake_judge import Answer, Request, completion, error, json_answer
from files import sheet_of

from rag_eval.configuration.effective import budget_of, endpoint_of, store_path
from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.settings import Settings
from rag_eval.judge.transport import Transport
from rag_eval.run.batches import BatchPlan, BatchRun, about_held_back, batch_limits_of
from rag_eval.store.batch_records import PAUSE, BatchRecords
from rag_eval.store.reply_store import Store
from rag_eval.tables.table import read_table


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with running_batches() as running:
        yield running


def openai(server: BatchServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}


def tables(path: Path) -> dict[str, Any]:
    return {name: read_sheet(path, name) for name in TABLES}


def azure(server: BatchServer) -> dict[str, str]:
    return {"AZURE_OPENAI_ENDPOINT": server.url, "AZURE_OPENAI_API_KEY": KEY}


def submit_under(limits: dict[str, int], server: BatchServer) -> int:
    """The first command of a run, under other limits of the provider; the number of calls that are submitted."""
    settings = load_settings(None, {"judge.provider": "openai"}, openai(server), Path()).settings
    target = Path("r.xlsx")
    store, budget = Store(store_path(settings, target)), budget_of(settings)
    plan = BatchPlan(
        settings,
        read_table(Path("in.csv")).rows,
        None,
        replace(batch_limits_of(settings), **limits),
        finish_online_below=0,
        can_ask_online=True,
        habits={},
        pairs=None,
    )
    transport = Transport(endpoint_of(settings), store, budget)
    run = BatchRun(
        plan, transport, store, budget, target, run="r", fresh=False, retry_errors=False, announce=print
    )
    try:
        return sum(batch.requests for batch in run.advance())
    finally:
        run.close()


def pass_time(journal: Path = Path("r.xlsx.journal"), seconds: float = PAUSE + 60) -> None:
    """The looks that missed something become older."""
    if not journal.exists():
        return
    store = Store(journal)
    records = BatchRecords(store)
    for batch in records.batches():
        if batch.misses:
            records.put_batch(replace(batch, missed_at=batch.missed_at - seconds))
    store.end(keep=True)


def sent_once(server: BatchServer) -> int:
    """How many lines were sent, each of which is another call."""
    names = [line["custom_id"] for line in server.lines]
    assert len(names) == len(set(names))
    return len(names)


RUN = ("in.csv", "-o", "r.xlsx", "--judge", "openai")


class Job:
    """A run of one row in batches, in the working folder."""

    def __init__(self, run_cli: Run, server: BatchServer) -> None:
        self._run_cli, self._server = run_cli, server
        self.sheet(1)

    def sheet(self, rows: int) -> None:
        sheet_of(Path("in.csv"), rows=rows)

    def configure(self, text: str) -> None:
        Path("config.ini").write_text(text)

    def command(self, *options: object, given: str = RUN[0]) -> Ended:
        return self._run_cli(given, *RUN[1:], *options, **openai(self._server))

    def run(self, *options: object) -> Ended:
        return self.command("--batch", *options)

    def through(self, *options: object, most: int = 12) -> list[int]:
        """Exit codes of the same command until it is not 75; all batches end in between, and time passes."""
        codes: list[int] = []
        while not codes or (codes[-1] == 75 and len(codes) < most):
            codes.append(self.run(*options).code)
            self._server.end()
            pass_time()
        return codes

    def online(self) -> dict[str, Any]:
        """What an online run over the same judge reports."""
        options = ("-o", "online.xlsx", "--judge", "openai")
        assert self._run_cli("in.csv", *options, **openai(self._server)).code in (0, 3)
        self._server.judge.requests.clear()
        return tables(Path("online.xlsx"))

    def tables(self) -> dict[str, Any]:
        return tables(Path("r.xlsx"))


@pytest.fixture
def job(run_cli: Run, server: BatchServer) -> Job:
    return Job(run_cli, server)


@pytest.mark.slow
def test_the_same_command_again_and_again_ends_in_the_report_of_an_online_run(
    job: Job, server: BatchServer
) -> None:
    job.sheet(3)
    expected = job.online()
    codes, sizes = [], []
    for _ in range(5):
        ended = job.run()
        codes.append(ended.code)
        if ended.code != 75:
            break
        sizes.append(sum(len(batch.lines) for batch in server.open()))
        assert "Waiting for 1 batch" in ended.out
        assert not Path("r.xlsx").exists()
        server.end()
    assert codes == [75, 75, 75, 0], ended.err
    assert sizes == [3 * 11, 3 * 6, 3 * 2]
    assert job.tables() == expected
    assert server.judge.tasks()["preflight"] == 1
    assert sent_once(server) == sum(sizes)
    assert server.files == {}, "the texts are deleted once stored"
    assert not Path("r.xlsx.journal").exists()


@pytest.mark.slow
def test_what_a_batch_answers_stays_for_the_run_that_sent_it(job: Job, server: BatchServer) -> None:
    """A run of fewer rows takes its results in, and is complete first."""
    job.sheet(3)
    assert job.run().code == 75
    server.end()
    *before, last = job.through("--rows", "2-2")
    assert (set(before), last) == ({75}, 0)
    assert Path("r.xlsx.journal").exists()
    assert job.through()[-1] == 0
    assert sent_once(server) == 3 * (11 + 6 + 2)
    assert not Path("r.xlsx.journal").exists()


@pytest.mark.slow
def test_a_run_in_batches_with_failures_keeps_what_it_has_paid(job: Job, server: BatchServer) -> None:
    """Another run of fewer rows into the same report is complete before the failures are asked for again."""
    job.sheet(3)
    server.judge.always = lambda request: (
        error(500, "server_error", "down")
        if request.task == "verdicts" and "Says 2." in request.prompt
        else None
    )
    assert job.through()[-1] == 3
    server.judge.always = None
    before = {line["custom_id"] for line in server.lines}
    assert job.through("--rows", "2-2") == [0]
    server.lines.clear()
    assert job.through("--retry-errors")[-1] == 0
    again = {line["custom_id"] for line in server.lines}
    assert 0 < len(again) < len(before) / 4
    assert not Path("r.xlsx.journal").exists()


@pytest.mark.slow
def test_pairs_of_responses_go_with_the_first_batch(job: Job, run_cli: Run, server: BatchServer) -> None:
    """In both orders, and a control for each query; the report is that of an online run."""
    job.sheet(3)
    words = ("--head-to-head",)
    sheets = ("Head to Head", "Pairs", *TABLES)
    assert run_cli(*RUN[:1], "-o", "online.xlsx", *RUN[3:], *words, **openai(server)).code == 0
    assert job.command(*words, "--batch").code == 75
    assert sum(len(batch.lines) for batch in server.open()) == 3 * 11 + 3 * 3
    server.end()
    assert job.through(*words)[-1] == 0
    for name in sheets:
        assert read_sheet(Path("r.xlsx"), name) == read_sheet(Path("online.xlsx"), name)


@pytest.mark.slow
def test_azure_answers_by_a_deployment_of_its_own_and_is_asked_nothing_else(
    job: Job, run_cli: Run, server: BatchServer
) -> None:
    """Five calls settle the parameters; the replies are stored as those of the deployment for single calls."""
    job.sheet(3)
    expected = job.online()
    server.takes_single = False
    job.configure("[batch]\ndeployment = gpt-4o-batch\n[cache]\nenabled = true\n")
    sizes = []
    for _ in range(6):
        ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "azure", "--batch", **azure(server))
        if ended.code != 75:
            break
        assert "expected by" in ended.out
        sizes.append(sum(len(batch.lines) for batch in server.open()))
        server.end()
    assert (ended.code, sizes[0], sum(sizes)) == (0, 5, 3 * 19), ended.err
    assert job.tables() == expected
    assert {line["body"]["model"] for line in server.lines} == {"gpt-4o-batch"}
    assert {line["url"] for line in server.lines} == {"/chat/completions"}
    assert all("api-key" in headers and "authorization" not in headers for headers in server.headers)
    server.takes_single = True
    server.judge.requests.clear()
    assert run_cli("in.csv", "-o", "again.xlsx", "--judge", "azure", **azure(server)).code == 0
    assert server.judge.requests == [], "the keys are those of [azure] deployment"


@pytest.mark.slow
def test_azure_parameters_are_settled_by_the_first_five_calls(
    job: Job, run_cli: Run, server: BatchServer
) -> None:
    job.sheet(2)
    job.configure("[batch]\ndeployment = b\n")

    def picky(request: Request) -> Answer | None:
        if "max_tokens" in request.body:
            return error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead.", "max_tokens")
        if "temperature" in request.body:
            return error(400, "unsupported_value", "temperature does not support 0", "temperature")
        return None

    server.judge.always = picky
    sizes = []
    for _ in range(9):
        ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "azure", "--batch", **azure(server))
        if ended.code != 75:
            break
        sizes.append(sum(len(batch.lines) for batch in server.open()))
        server.end()
    assert ended.code == 0, ended.err
    assert sizes[:3] == [5, 5, 5], "two parameters, then it fits"
    assert "does not accept a temperature" in ended.err
    assert sent_once(server)


@pytest.mark.slow
@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_a_batch_that_ends_early_keeps_what_is_done(job: Job, server: BatchServer, status: str) -> None:
    job.sheet(2)
    expected = job.online()
    assert job.run().code == 75
    server.end(status, done=7)
    second = job.run()
    assert second.code == 75
    assert ("was cancelled" in second.err) is (status == "cancelled")
    server.end()
    assert job.through()[-1] == 0
    assert job.tables() == expected
    assert sent_once(server) == 2 * 19


@pytest.mark.slow
def test_a_batch_that_expires_again_and_again_is_given_up_and_is_no_lasting_failure(
    job: Job, server: BatchServer
) -> None:
    job.configure("[judge]\nmax_attempts = 2\n")
    ended = []
    for _ in range(3):
        ended.append(job.run("--json", "r.json"))
        server.end("expired", done=0)
    assert [each.code for each in ended] == [75, 75, 3]
    assert all(row["Faithfulness"] is None for row in read_sheet(Path("r.xlsx"), "Per-Query Metrics"))
    usage = json.loads(Path("r.json").read_text())["end"]["usage"]
    assert (usage["failures"], usage["calls"], usage["requests"]) == ({"batch_expired": 11}, 0, 1)
    assert job.through()[-1] == 0, "the next command tries again"
    assert len(server.lines) == 19


LINES: dict[str, Any] = {
    "rate limited": error(429, "429", "slow down"),
    "server error": error(500, "server_error", "oops"),
    "no completion": json_answer(200, {"id": "x"}),
    "HTML": Answer(502, b"<html>bad gateway</html>"),
    "not the schema": lambda request: completion('{"verdict": "maybe"}', request),
    "truncated": lambda request: completion("{", request, "length"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_lines_with_errors_are_sent_again(job: Job, server: BatchServer, name: str) -> None:
    """With more room for a reply that was cut, and with as much for every other."""
    job.sheet(2)
    expected = job.online()
    assert job.run().code == 75
    server.judge.faults.extend([LINES[name]] * 4)
    server.end()
    assert job.run().code == 75
    assert job.through()[-1] == 0
    assert job.tables() == expected
    assert len(server.judge.requests) == 1 + 2 * 19 + 4
    room = defaultdict(list)
    for request in server.judge.requests:
        room[request.prompt].append(request.body["max_tokens"])
    again = [second / first for first, second in (each for each in room.values() if len(each) == 2)]
    if name == "not the schema":  # the call that says what was wrong is another one
        assert again == []
    else:
        assert all(each >= 4 for each in again) if name == "truncated" else again == 4 * [1]
        assert len(again) == 4


@pytest.mark.slow
def test_a_blocked_line_is_a_lasting_failure_and_is_not_paid_again(job: Job, server: BatchServer) -> None:
    job.sheet(2)

    def blocked(request: Request) -> Answer | None:
        if request.task != "usefulness":
            return None
        return error(400, "content_filter", "filtered")

    server.judge.always = blocked
    expected = job.online()
    assert job.through("--json", "r.json")[-1] in (0, 3)
    assert job.tables() == expected
    usage = json.loads(Path("r.json").read_text())["end"]["usage"]
    assert usage["failures"] == {"blocked_by_filter": 8}
    before = len(server.judge.requests)
    assert job.run().code in (0, 3)
    assert len(server.judge.requests) == before
    server.judge.always = None
    assert job.run("--retry-errors").code == 75
    server.end()
    assert job.through("--retry-errors")[-1] == 0, "takes effect once"
    server.judge.always = None


@pytest.mark.slow
def test_lines_in_any_order_with_strange_ones_among_them(job: Job, server: BatchServer) -> None:
    job.sheet(2)
    expected = job.online()
    unknown = json.dumps({"custom_id": "f" * 64, "response": {"status_code": 200, "body": {}}})
    strange = ["", "no JSON", "[]", '{"custom_id": 7}', unknown, '{"custom_id": "' + "x" * 3_000_000 + '"}']
    server.arrange = lambda lines: ["\ufeff" + lines[-1], *strange, *reversed(lines), lines[0]]
    ended = [job.run() for _ in range(4) if server.end() is None]
    assert [each.code for each in ended] == [75, 75, 75, 0]
    assert "lines match no open call" in ended[1].err
    assert job.tables() == expected
    assert sent_once(server)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"most_requests": 4}, {"most_bytes": 20_000}], ids=str)
def test_files_are_split(job: Job, server: BatchServer, limits: dict[str, int]) -> None:
    """By a provider whose limits are small enough for a test, and which refuses what is above them."""
    job.sheet(2)
    expected = job.online()
    server.most_lines, server.most_bytes = (
        limits.get("most_requests", 50_000),
        limits.get("most_bytes", 10**9),
    )
    assert submit_under(limits, server) == 22
    assert len(server.open()) > 4
    server.end()
    while submit_under(limits, server):
        server.end()
    assert job.run().code == 0
    assert job.tables() == expected
    assert sent_once(server)


@pytest.mark.slow
def test_a_full_queue_makes_smaller_batches(job: Job, server: BatchServer) -> None:
    job.sheet(2)
    expected = job.online()
    server.queue = 8
    codes = []
    for _ in range(30):
        codes.append(job.run().code)
        assert sum(len(batch.lines) for batch in server.open()) <= 8
        server.end()
        if codes[-1] != 75:
            break
    assert codes[-1] == 0
    assert job.tables() == expected
    assert sent_once(server) == 2 * 19


def test_a_queue_without_room_for_one_call_is_said(job: Job, server: BatchServer) -> None:
    server.queue = 0
    for _ in range(12):
        ended = job.run()
        if ended.code != 75:
            break
    assert ended.code == 4
    assert "has no room for even one call" in ended.err


@pytest.mark.slow
def test_a_refused_batch_is_said_and_bills_nothing(job: Job, server: BatchServer) -> None:
    assert job.run().code == 75
    (batch,) = server.open()
    batch.status, batch.errors = "failed", [{"code": "model_not_found", "message": "no such model"}]
    refused = job.run("--manifest", "m.json")
    assert refused.code == 4
    assert "model_not_found no such model" in refused.err
    assert not Path("r.xlsx").exists()
    assert job.through()[-1] == 0
    assert sent_once(server)


@pytest.mark.slow
def test_a_second_report_on_the_same_cache_waits_for_the_same_calls(
    job: Job, run_cli: Run, server: BatchServer
) -> None:
    job.sheet(2)
    expected = job.online()
    job.configure("[cache]\nenabled = true\n")
    other = ("in.csv", "-o", "other.xlsx", "--judge", "openai", "--batch")
    codes = []
    for _ in range(4):
        codes += [job.run().code, run_cli(*other, **openai(server)).code]
        server.end()
    assert codes == [75, 75, 75, 75, 75, 75, 0, 0]
    assert job.tables() == tables(Path("other.xlsx")) == expected
    assert sent_once(server) == 2 * 19


def test_a_batch_has_as_much_as_its_provider_documents() -> None:
    limits = {}
    for name in ("openai", "azure"):
        azure_there = {"endpoint": "https://x.openai.azure.com"}
        values = {"judge": {"provider": name}, "azure": azure_there, "batch": {"deployment": "b"}}
        settings = Settings.model_validate(values)
        found = batch_limits_of(settings)
        limits[name] = found.most_requests, found.most_bytes
    assert limits == {"openai": (50_000, 200_000_000), "azure": (100_000, 200_000_000)}


@pytest.mark.parametrize(
    ("costs", "left", "paid", "sent", "calls", "end"),
    [
        ([1.0], 5.0, [], [1.0], "1 call is", "."),
        ([1.0, 1.0], 5.0, [], [], "2 calls are", "."),
        ([1.0] * 3, 3.0, [1.0], [], "3 calls are", ": about 1 more round"),
        ([1.0] * 10, 4.0, [0.125], [], "10 calls are", ": about 3 more rounds"),
        ([0.5] * 1200, 512.0, [0.25], [], "1,200 calls are", ": about 2 more rounds"),
        ([1.0] * 2, 1.0, [0.0], [], "2 calls are", ": about 2 more rounds"),
        ([1.0], 0.5, [0.25, 0.75], [1.0], "1 call is", ": about 1 more round"),
        ([1.0], 0.5, [0.5], [], "1 call is", ". To judge all of them, it must be raised."),
        ([1.0] * 3, 0.5, [0.5], [1.0], "3 calls are", ". To judge all of them, it must be raised."),
        ([1.0, 3.0], 2.0, [1.0], [], "2 calls are", ". To judge all of them, it must be raised."),
        ([1.0, 3.0], 2.0, [0.0], [], "2 calls are", ": about 2 more rounds"),
    ],
)
def test_how_many_rounds_of_batches_a_cap_on_the_cost_takes(
    costs: list[float], left: float, paid: list[float], sent: list[float], calls: str, end: str
) -> None:
    """A round takes what is left by the most that calls may cost, and leaves what the answered ones did cost."""
    held_back = "held back by --max-cost, since an open call counts with its highest possible cost"
    fewer = " of batches. A higher limit takes fewer." if "round" in end else ""
    assert about_held_back(costs, left, paid, sent) == f"{calls} {held_back}{end}{fewer}"
