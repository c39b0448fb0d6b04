"""Files and batches obey the rules of every other request: credentials, proxy, sizes, second tries."""

import io
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, running_batches
from conftest import KEY
from fake_judge import Answer, error, json_answer
from test_outcomes import CALL
from test_transport import Notebook

from rag_eval.errors import RunStoppedError
from rag_eval.judge.attempt import Attempt, Deployment
from rag_eval.judge.batches.client import Batch, BatchClient, QueueFullError, UncertainError, _read
from rag_eval.judge.batches.lines import NOT_MADE, ResultLines, read_result, request_line
from rag_eval.judge.batches.outbox import BatchLimits, Outbox, Parcel
from rag_eval.judge.batches.queue import BatchQueue
from rag_eval.judge.budget import Budget, Price
from rag_eval.judge.connection import Response
from rag_eval.judge.endpoint import Dialect, Endpoint
from rag_eval.judge.limiter import Limiter
from rag_eval.judge.outcomes import Action, Completion, Fault
from rag_eval.judge.transport import Transport
from rag_eval.store.batch_records import (
    PAUSE,
    BatchRecord,
    BatchRecords,
    BatchState,
    CallRecord,
    CallState,
    JobRecord,
)
from rag_eval.store.reply_store import Store


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with running_batches() as running:
        yield running


@pytest.fixture
def client(server: BatchServer) -> Iterator[BatchClient]:
    transport = Transport(
        Endpoint("openai", f"{server.url}/v1", KEY, "m"), Notebook(), sleep=lambda seconds: None
    )
    yield BatchClient(transport, "/v1/chat/completions")
    transport.close()


def test_a_token_of_entra_is_sent_and_no_key(server: BatchServer) -> None:
    async def token() -> str:
        return "entra-token"

    endpoint = Endpoint("azure", server.url, "", "m", "2024-12-01-preview", token_provider=token)
    transport = Transport(endpoint, Notebook())
    batches = BatchClient(transport, "/chat/completions")
    with tempfile.TemporaryFile() as file:
        file.write(b"{}")
        name = batches.upload(file, 2)
    assert batches.is_ready(name)
    assert batches.delete(name)
    transport.close()
    for headers in server.headers:
        assert headers["authorization"] == "Bearer entra-token"
        assert "api-key" not in headers


def test_the_proxy_of_the_environment_is_used(server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "")
    said: list[str] = []
    transport = Transport(
        Endpoint("openai", "http://judge.invalid/v1", KEY, "m"), Notebook(), announce=said.append
    )
    assert BatchClient(transport, "/v1/chat/completions").batch("batch-1") is None
    transport.close()
    assert server.calls == ["GET http://judge.invalid/v1/batches/batch-1"]
    assert "go through the proxy" in said[0]


def test_a_download_is_no_longer_than_it_may_be(server: BatchServer, client: BatchClient) -> None:
    """What is within the limit is kept, and the line at the limit is cut."""
    text = b"\n".join([GOOD, GOOD])
    name = server.keep("out", text)
    for most, number in ((len(text), 2), (len(text) - 1, 1), (len(GOOD), 1), (0, 0)):
        lines = ResultLines(io.BytesIO(), "k")
        assert client.download(name, lines, most)
        assert [each.key for each in lines.results()] == ["k"] * number


def test_a_download_that_is_cut_begins_again(server: BatchServer, client: BatchClient) -> None:
    name = server.keep("out", GOOD)
    cuts = iter([Answer(200, b"y\n" + GOOD + b"\n" + GOOD, cut_after=len(GOOD) + 9), error(503, "", "busy")])
    server.hook = lambda event: next(cuts, None)
    lines = ResultLines(io.BytesIO(), "k")
    assert client.download(name, lines, 1000)
    assert [each.key for each in lines.results()] == ["k"]
    assert (lines.others, len(server.calls)) == (0, 3)


def test_a_file_that_is_gone_is_no_error(client: BatchClient) -> None:
    assert not client.download("out-9", ResultLines(io.BytesIO(), ""), 10)
    assert client.delete("out-9")
    assert client.batch("batch-9") is None


@pytest.mark.parametrize("refusal", [error(401, "invalid_api_key", "no"), error(400, "bad", "no")])
def test_a_file_that_is_refused_is_not_taken_for_gone(
    server: BatchServer, client: BatchClient, refusal: Answer
) -> None:
    name = server.keep("out", GOOD)
    server.hook = lambda event: refusal
    with pytest.raises(RunStoppedError):
        client.download(name, ResultLines(io.BytesIO(), "k"), 1000)


def test_an_endpoint_that_takes_no_expiry_gets_none(server: BatchServer, client: BatchClient) -> None:
    refusal = error(400, "unknown_parameter", "Unknown parameter: 'expires_after'.")
    refused = iter([refusal])
    server.hook = lambda event: next(refused, None)
    with tempfile.TemporaryFile() as file:
        file.write(
            b'{"custom_id": "a", "url": "/v1/chat/completions", "method": "POST", "body": {"model": "m"}}'
        )
        name = client.upload(file, 90)
    assert server.uploads == [{"purpose": "batch"}]
    others = iter([error(400, "unknown_parameter", "Unknown parameter: 'output_expires_after'.")])
    server.hook = lambda event: next(others, None)
    created = client.create(name, "token")
    assert "output_expires_after" not in server.batches[created.id].body
    assert server.batches[created.id].metadata == {"rag_eval": "token"}


@pytest.mark.parametrize(
    "document",
    [{}, {"id": 7}, {"id": "a/../b"}, {"id": "x" * 300}, {"id": "a?b=c"}, {"id": "a b"}],
    ids=str,
)
def test_a_name_that_is_none_gets_into_no_address(
    server: BatchServer, client: BatchClient, document: dict[str, object]
) -> None:
    server.hook = lambda event: json_answer(200, document)
    with tempfile.TemporaryFile() as file, pytest.raises(RunStoppedError, match="does not describe a file"):
        client.upload(file, 0)


BATCH = {
    "id": "batch-1",
    "status": "failed",
    "errors": {"data": [{"code": "c", "message": "m"}, 7, {"message": "n"}, {"code": "o"}, {"code": "p"}]},
    "output_file_id": "out-1",
    "error_file_id": "../err",
    "metadata": {"rag_eval": "t"},
    "expires_at": 5,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Batch("batch-1", "failed", ("out-1",), "c m; n; o", False, 5.0, "t")),
        ({"errors": [{"code": "c"}]}, Batch("batch-1", "failed", ("out-1",), "c", False, 5.0, "t")),
        ({"errors": "c"}, Batch("batch-1", "failed", ("out-1",), "", False, 5.0, "t")),
        ({"error_file_id": "err-1"}, Batch("batch-1", "failed", ("out-1", "err-1"), "c m; n; o", False, 5.0, "t")),
        ({"metadata": None, "errors": []}, Batch("batch-1", "failed", ("out-1",), "", False, 5.0, "")),
        ({"expires_at": 0, "errors": []}, Batch("batch-1", "failed", ("out-1",), "", False, 0.0, "t")),
        ({"expires_at": 1, "errors": []}, Batch("batch-1", "failed", ("out-1",), "", False, 1.0, "t")),
        ({"expires_at": 10**11 - 1, "errors": []}, Batch("batch-1", "failed", ("out-1",), "", False, 1e11 - 1, "t")),
        ({"expires_at": 10**11, "errors": []}, Batch("batch-1", "failed", ("out-1",), "", False, 0.0, "t")),
        ({"expires_at": "5", "errors": []}, Batch("batch-1", "failed", ("out-1",), "", False, 0.0, "t")),
        (
            {"errors": [{"code": "token_limit_exceeded"}]},
            Batch("batch-1", "failed", ("out-1",), "token_limit_exceeded", True, 5.0, "t"),
        ),
        (
            {"errors": [{"message": "Enqueued token limit"}]},
            Batch("batch-1", "failed", ("out-1",), "Enqueued token limit", True, 5.0, "t"),
        ),
        ({"errors": [{"code": "x" * 600}]}, Batch("batch-1", "failed", ("out-1",), "x" * 500, False, 5.0, "t")),
        ({"id": "x" * 201}, None),
        ({"id": 7}, None),
    ],
)  # fmt: skip
def test_what_a_provider_says_of_a_batch(changes: dict[str, Any], expected: Batch | None) -> None:
    found = Batch.read({**BATCH, **changes})
    assert found == expected
    assert getattr(found, "token", None) == getattr(expected, "token", None)


def test_what_describes_no_batch() -> None:
    assert [Batch.read(each) for each in (None, [], "batch-1", {})] == [None] * 4


@pytest.mark.parametrize("status", ["pending", "uploading", "running", "notRunning"])
def test_a_file_that_is_still_read_is_not_ready(
    server: BatchServer, client: BatchClient, status: str
) -> None:
    server.hook = lambda event: json_answer(200, {"id": "file-1", "status": status})
    assert not client.is_ready("file-1")


@pytest.mark.parametrize("status", ["error", "deleted", "deleting"])
def test_a_file_that_is_refused_stops_the_job(server: BatchServer, client: BatchClient, status: str) -> None:
    server.hook = lambda event: json_answer(200, {"id": "file-1", "status": status})
    with pytest.raises(RunStoppedError, match=f"refused \\(status {status}\\)") as caught:
        client.is_ready("file-1")
    assert caught.value.code == "batch_refused"


@pytest.mark.parametrize(
    "answer", [{"id": "file-1"}, {"status": "processed"}, {"status": "uploaded"}], ids=str
)
def test_any_other_file_is_ready(server: BatchServer, client: BatchClient, answer: dict[str, str]) -> None:
    server.hook = lambda event: json_answer(200, answer)
    assert client.is_ready("file-1")


@pytest.mark.parametrize(
    ("answer", "raised", "requests"),
    [
        (error(429, "429", "slow down"), RunStoppedError, 5),
        (error(500, "server_error", "oops"), UncertainError, 1),
        (Answer(is_reset=True), UncertainError, 1),
        (json_answer(200, {"id": "../x"}), UncertainError, 1),
        (Answer(200, b"<html>"), UncertainError, 1),
        (error(400, "token_limit_exceeded", "no"), QueueFullError, 1),
        (error(429, "429", "Enqueued token limit reached"), QueueFullError, 5),
        (error(400, "bad", "no"), RunStoppedError, 1),
    ],
    ids=["slow", "error", "reset", "name", "page", "queue", "queue_429", "refused"],
)
def test_a_batch_is_asked_for_again_only_if_it_was_certainly_not_created(
    server: BatchServer, client: BatchClient, answer: Answer, raised: type[Exception], requests: int
) -> None:
    server.hook = lambda event: answer
    with pytest.raises(raised):
        client.create("file-1", "token")
    assert server.calls == ["POST /batches"] * requests


@pytest.mark.parametrize(
    ("unknown", "raised"),
    [("POST /batches", UncertainError), ("", RunStoppedError)],
    ids=["the file", "batches"],
)
def test_an_endpoint_without_batches_has_no_list_of_them_either(
    server: BatchServer, client: BatchClient, unknown: str, raised: type[Exception]
) -> None:
    server.hook = lambda event: error(404, "not_found", "no") if unknown in event else None
    with pytest.raises(raised) as caught:
        client.create("file-1", "token")
    assert raised is UncertainError or "if it offers no batches, remove --batch" in str(caught.value)
    assert server.calls == ["POST /batches", "GET /batches"]


PAGES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "it is on the last page": (
        [
            {"data": [{"id": "a"}, {"id": "b"}], "has_more": True},
            {"data": [{"id": "c", "metadata": {"rag_eval": "t"}}], "has_more": False},
        ],
        2,
    ),
    "it is on no page": ([{"data": [{"id": "a"}], "has_more": True}, {"data": [{"id": "b"}]}], 2),
    "a page without batches": ([{"data": [], "has_more": True}], 1),
    "no list": ([{"data": "x", "has_more": True}], 1),
    "it has its name only": ([{"data": [{"id": "a"}, {"id": "c"}]}], 1),
    "the same page again": ([{"data": [{"id": "a"}], "has_more": True}] * 2, 2),
}


@pytest.mark.parametrize(("pages", "requests"), PAGES.values(), ids=PAGES)
def test_a_batch_is_looked_for_page_by_page(
    server: BatchServer, client: BatchClient, pages: list[dict[str, Any]], requests: int
) -> None:
    left = iter(pages)
    server.hook = lambda event: json_answer(200, next(left))
    found = client.find("t", "c")
    assert (found and found.id) == ("c" if "'c'" in str(pages) else None)
    assert len(server.calls) == requests


def test_the_next_page_begins_after_the_last_batch(server: BatchServer, client: BatchClient) -> None:
    server.page = 2
    server.files["file-0"] = request_line("x", "", {"model": ""})
    for number in range(5):
        body = {"input_file_id": "file-0", "endpoint": "", "metadata": {"rag_eval": f"t{number}"}}
        server.answer("POST", "/batches", {}, {}, json.dumps(body).encode())
        server.batches[f"batch-{number + 1}"].status = "completed"
    server.calls.clear()
    found = client.find("t0")
    assert found is not None
    assert (found.id, server.calls) == ("batch-1", ["GET /batches"] * 3)


@pytest.mark.parametrize(
    ("answers", "gone"),
    [
        ([json_answer(200, {"deleted": True})], True),
        ([error(404, "not_found", "no")], True),
        ([error(404, "DeploymentNotFound", "no")], True),
        ([error(500, "oops", "no")] * 5, False),
        ([error(400, "bad", "no")], False),
    ],
    ids=["deleted", "unknown", "no_deployment", "down", "refused"],
)
def test_a_file_counts_as_deleted_only_if_it_is_gone(
    server: BatchServer, client: BatchClient, answers: list[Answer], gone: bool
) -> None:
    left = iter(answers)
    server.hook = lambda event: next(left)
    assert client.delete("file-1") is gone
    assert next(left, None) is None


@pytest.mark.parametrize(
    ("answer", "is_quiet"),
    [
        (json_answer(200, {}), True),
        (error(400, "bad", "it has ended"), True),
        (error(404, "not_found", "no"), True),
        (error(401, "401", "no"), False),
        (error(500, "oops", "no"), False),
    ],
    ids=["done", "ended", "unknown", "key", "down"],
)
def test_a_batch_that_cannot_be_cancelled_any_more_is_left_alone(
    server: BatchServer, client: BatchClient, answer: Answer, is_quiet: bool
) -> None:
    server.hook = lambda event: answer
    if is_quiet:
        client.cancel("batch-1")
    else:
        with pytest.raises(RunStoppedError, match="Run the same command again later"):
            client.cancel("batch-1")
    assert set(server.calls) == {"POST /batches/batch-1/cancel"}


def test_a_large_file_may_take_longer_than_a_request(server: BatchServer) -> None:
    """A second for each 100,000 bytes that it may have."""
    endpoint = Endpoint("openai", f"{server.url}/v1", KEY, "m", timeout_seconds=0.5)
    transport = Transport(endpoint, Notebook(), sleep=lambda seconds: None)
    server.hook = lambda event: time.sleep(0.8) or Answer(body=GOOD)
    lines = ResultLines(io.BytesIO(), "k")
    assert BatchClient(transport, "").download("file-1", lines, 1_000_000)
    assert [each.key for each in lines.results()] == ["k"]
    transport.close()
    assert list(server.calls) == ["GET /files/file-1/content"]


def test_the_pause_that_the_endpoint_asks_for_is_made(server: BatchServer) -> None:
    pauses: list[float] = []
    transport = Transport(Endpoint("openai", f"{server.url}/v1", KEY, "m"), Notebook(), sleep=pauses.append)
    busy = error(503, "", "busy")
    answers = iter([Answer(503, busy.body, {**busy.headers, "retry-after": "7"}), busy])
    server.hook = lambda event: next(answers, None)
    assert BatchClient(transport, "").batch("batch-1") is None
    transport.close()
    assert pauses[0] == 7
    assert 0 < pauses[1] <= 2


def test_a_page_in_place_of_a_batch_is_no_batch_that_is_gone(
    server: BatchServer, client: BatchClient
) -> None:
    server.hook = lambda event: json_answer(200, {"id": "../x"})
    with pytest.raises(RunStoppedError, match="does not describe a batch"):
        client.batch("batch-1")


# Lines


def line(**result: object) -> str:
    return json.dumps({"custom_id": "k", **result})


COMPLETION = {"choices": [{"finish_reason": "stop", "message": {"content": "{}"}}]}
CUT = {"choices": [{"finish_reason": "length", "message": {"content": "{"}}]}
GOOD = line(response={"status_code": 200, "body": COMPLETION}).encode()


@pytest.mark.parametrize(
    ("text", "code", "unanswered"),
    [
        (line(response={"status_code": 200, "body": COMPLETION}), "", ""),
        (line(response={"status_code": 200, "body": json.dumps(COMPLETION)}), "", ""),
        (line(response={"status_code": 299, "body": COMPLETION}), "", ""),
        (line(response={"status_code": 300, "body": {}}), "redirect_refused", NOT_MADE),
        (line(response={"status_code": 199, "body": COMPLETION}), "bad_request", ""),
        (line(response={"status_code": 401, "body": {}}), "unauthorized", NOT_MADE),
        (line(response={"status_code": 429, "body": {}}), "rate_limited", "rate_limited"),
        (line(response={"status_code": 500, "body": {}}), "server_error", ""),
        (line(error={"code": "batch_expired"}), "batch_expired", "batch_expired"),
        (line(error={"code": "batch_cancelled"}), "batch_cancelled", "batch_cancelled"),
        (line(error={"code": "rate_limit_exceeded"}), "rate_limited", "rate_limited"),
        (line(error={"code": "invalid_request"}), "bad_request", ""),
        (line(error={"code": "bad_request"}), "bad_request", ""),
        (line(error={"code": "anything"}), "server_error", ""),
        (line(error="anything"), "server_error", ""),
        (line(response={"status_code": "200", "body": COMPLETION}), "", ""),
        (line(response={"status_code": " 429 ", "body": {}}), "rate_limited", "rate_limited"),
        (line(response={"status_code": None, "body": COMPLETION}), "", ""),
        (line(response={"status_code": True, "body": json.dumps(COMPLETION)}), "", ""),
        (line(response={"body": CUT}), "truncated", ""),
        (line(response={"body": {"error": {"code": "x"}}}), "server_error", ""),
        (line(response={"body": {}}, error={"code": "batch_expired"}), "batch_expired", "batch_expired"),
        (line(response={"status_code": 200, "body": COMPLETION}, error={"code": "batch_expired"}), "", ""),
        (line(response={"status_code": 200, "body": {}}, error={"code": "batch_expired"}), "batch_expired",
         "batch_expired"),
        (line(response={"status_code": 200, "body": {}}), "no_choices", ""),
        (line(response={"status_code": "200"}), "no_choices", ""),
        (line(response={"status_code": "ok"}), "server_error", ""),
        (line(response=[COMPLETION]), "server_error", ""),
        (line(), "server_error", ""),
    ],
)  # fmt: skip
def test_a_line_is_read_as_the_answer_of_a_single_request(text: str, code: str, unanswered: str) -> None:
    found = read_result(f" {text}\n")
    assert found is not None
    assert (found.key, found.text, found.unanswered) == ("k", text, unanswered)
    assert (found.outcome.code if isinstance(found.outcome, Fault) else "") == code
    if unanswered not in ("", NOT_MADE):
        assert isinstance(found.outcome, Fault)
        assert found.outcome.action is Action.RETRY


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "7", "{}", '{"custom_id": 7}', "[" * 100_000])
def test_a_line_that_is_no_result(text: str) -> None:
    assert read_result(text) is None


def test_lines_are_read_one_by_one_whatever_lies_between_them() -> None:
    long = b'{"custom_id": "k", "response": "' + b"x" * 5_000_000 + b'"}'
    quoted = json.dumps({"custom_id": "z", "response": {"body": GOOD.decode()}}).encode()
    broken = GOOD[:-1]
    others = [long, b"no JSON", GOOD.replace(b'"k"', b'"z"'), quoted, broken]
    text = b"\n".join([b"\xef\xbb\xbf" + GOOD, b"", b" \t\r", *others, GOOD + b"\r", *others, GOOD])
    for size in (997, len(text)):
        file = io.BytesIO()
        lines = ResultLines(file, {"k"})
        for start in range(0, len(text), size):
            lines.write(text[start : start + size])
        found = list(lines.results())
        assert [each.key for each in found] == ["k"] * 3
        assert all(isinstance(each.outcome, Completion) for each in found)
        assert lines.others == 2 * len(others)
        assert len(file.getvalue()) < 6 * len(GOOD), "what belongs to nobody is kept nowhere"


def test_a_line_is_utf_8_without_blanks() -> None:
    assert request_line("k", "/u", {"model": "ä"}) == (
        '{"custom_id":"k","method":"POST","url":"/u","body":{"model":"ä"}}\n'.encode()
    )


# Sizes


@pytest.mark.parametrize(
    ("calls", "size", "tokens", "most_tokens", "has_room"),
    [
        (1, 100, 50, 50, True),
        (2, 100, 50, 50, False),
        (1, 101, 50, 50, False),
        (1, 100, 51, 50, False),
        (1, 100, 51, 0, True),
        (1, 100, 2, 1, False),
    ],
)
def test_a_batch_takes_calls_up_to_its_limits(
    calls: int, size: int, tokens: int, most_tokens: int, has_room: bool
) -> None:
    limits = BatchLimits(url="", most_requests=2, most_bytes=100, most_tokens=most_tokens)
    assert limits.have_room(calls, size, tokens) is has_room


def test_a_call_costs_what_its_deployment_takes_for_batches() -> None:
    limits = BatchLimits(url="", most_requests=1, most_bytes=1, prices={"m": Price(2.0, 10.0)})
    call = CallRecord("k", "t", "j", "task", "m", prompt_tokens=1000, completion_tokens=100)
    assert limits.cost(call) == pytest.approx(0.003)
    assert BatchLimits(url="", most_requests=1, most_bytes=1).cost(call) == 0.0


# The queue


class Line:
    """A queue, with what it says and how long it rests."""

    def __init__(self, server: BatchServer, store: Store) -> None:
        self.now = 1000.0
        self.said: list[str] = []
        self.rests: list[float] = []
        self.files = ExitStack()
        self.endpoint = Endpoint("openai", f"{server.url}/v1", KEY, "m")
        self.transport = Transport(self.endpoint, Notebook(), sleep=lambda seconds: None)
        self.records = BatchRecords(store)
        self.queue = BatchQueue(
            BatchClient(self.transport, "/v1/chat/completions"), self.records, "here",
            announce=self.said.append, rest=self.rests.append, clock=lambda: self.now,
        )  # fmt: skip

    def outbox(self, *parcels: Parcel) -> Outbox:
        outbox = Outbox(self.endpoint, BatchLimits(url="", most_requests=1, most_bytes=1), Budget(), "job")
        outbox.parcels.extend(parcels)
        return outbox

    def parcel(self, *names: str, tokens: int) -> Parcel:
        file = self.files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the line
        for name in names:
            file.write(request_line(name, "/v1/chat/completions", {"model": "m", "messages": []}))
        file.flush()
        calls = [CallRecord(name, "", "job", "t", "m") for name in names]
        return Parcel(file, calls, file.tell(), tokens)


@pytest.fixture
def at(server: BatchServer, tmp_path: Path) -> Iterator[Line]:
    store = Store(tmp_path / "s")
    line = Line(server, store)
    with line.files:
        yield line
    line.transport.close()
    store.end(keep=True)


WAITING = BatchRecord("w", "other", "here", BatchState.SUBMITTED, "batch-9", ("file-9",), 3, 800, 5.0, 6.0)
FULL = error(400, "token_limit_exceeded", "no room")


def test_a_batch_is_recorded_with_what_it_holds(server: BatchServer, at: Line) -> None:
    job = at.queue.submit(at.outbox(at.parcel("a", "b", tokens=7)), JobRecord("job", batches=4))
    (batch,) = at.queue.batches()
    assert batch == BatchRecord(
        batch.token,
        "job",
        "here",
        BatchState.SUBMITTED,
        "batch-1",
        ("file-1",),
        2,
        7,
        1000.0,
        1000.0 + 86_400,
    )
    assert len(batch.token) == 32
    assert {key: call.token for key, call in at.records.calls_of_batch(batch.token).items()} == {
        "a": batch.token, "b": batch.token
    }  # fmt: skip
    assert (job.batches, at.records.job("job"), at.said, at.rests) == (5, job, [], [])


@pytest.mark.parametrize(
    ("names", "tokens", "is_other_waiting", "most"),
    [
        ("ab", 1001, False, 500),
        ("ab", 1001, True, 800),
        ("ab", 2000, True, 1000),
        ("a", 10, True, 800),
        ("ab", 1, False, 1),
    ],
)
def test_after_a_refusal_half_as_much_may_wait_or_as_much_as_does(
    server: BatchServer, at: Line, names: str, tokens: int, is_other_waiting: bool, most: int
) -> None:
    if is_other_waiting:
        at.records.put_batch(WAITING)
        at.records.put_batch(replace(WAITING, token="elsewhere", place="there", tokens=10**6))
    server.hook = lambda event: FULL if event == "POST /batches" else None
    job = at.queue.submit(at.outbox(at.parcel(*names, tokens=tokens)), JobRecord("job"))
    assert (job.most_tokens, at.records.job("job")) == (most, job)
    assert at.said == [
        f"The provider's quota of enqueued tokens is used up; at most about {most:,} tokens are submitted at a time."
    ]
    assert at.queue.batches() == ([WAITING] if is_other_waiting else [])
    assert server.files == {}


def test_after_a_refusal_nothing_is_sent_in_the_size_that_was_refused(server: BatchServer, at: Line) -> None:
    refusals = iter([FULL])
    server.hook = lambda event: next(refusals, None) if event == "POST /batches" else None
    parcels = at.parcel("a", "b", tokens=100), at.parcel("c", "d", tokens=100)
    job = at.queue.submit(at.outbox(*parcels), JobRecord("job"))
    assert (job.most_tokens, job.batches, len(server.uploads), server.batches) == (50, 1, 1, {})


def test_a_call_that_the_queue_does_not_take_alone_stops_the_job(server: BatchServer, at: Line) -> None:
    server.hook = lambda event: FULL if event == "POST /batches" else None
    with pytest.raises(RunStoppedError, match="has no room for even one call") as stop:
        at.queue.submit(at.outbox(at.parcel("a", tokens=10)), JobRecord("job"))
    assert (stop.value.code, at.queue.batches(), server.files) == ("batch_refused", [], {})


@pytest.mark.parametrize(("most", "sent"), [(900, 1), (899, 0), (0, 1)])
def test_no_more_tokens_wait_than_the_queue_takes(
    server: BatchServer, at: Line, most: int, sent: int
) -> None:
    at.records.put_batch(WAITING)
    at.queue.submit(at.outbox(at.parcel("a", tokens=100)), JobRecord("job", most_tokens=most))
    assert len(server.batches) == sent


def test_a_batch_that_is_too_large_is_sent_where_nothing_waits(server: BatchServer, at: Line) -> None:
    parcels = at.parcel("a", tokens=100), at.parcel("b", tokens=100)
    at.queue.submit(at.outbox(*parcels), JobRecord("job", most_tokens=50))
    assert len(server.batches) == 1


def test_a_file_that_is_not_ready_is_left_to_the_next_command(server: BatchServer, at: Line) -> None:
    server.hook = lambda event: (
        json_answer(200, {"id": "file-1", "status": "pending"}) if event == "GET /files/*" else None
    )
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=1)), JobRecord("job"))
    assert at.rests == [2.0, 4.0]
    assert [batch.state for batch in at.queue.batches()] == [BatchState.UPLOADED]
    server.hook = lambda event: None
    at.queue.collect(job)
    assert [batch.state for batch in at.queue.batches()] == [BatchState.SUBMITTED]
    assert len(server.uploads) == 1


def test_an_upload_that_fails_leaves_nothing_to_wait_for(server: BatchServer, at: Line) -> None:
    server.hook = lambda event: error(401, "401", "no")
    with pytest.raises(RunStoppedError):
        at.queue.submit(at.outbox(at.parcel("a", tokens=1)), JobRecord("job"))
    assert (at.queue.batches(), at.records.calls_of_job("job")) == ([], [])


def test_what_came_of_each_call_is_recorded(server: BatchServer, at: Line) -> None:
    """An answer with its tokens, an attempt that was not made, and no line at all."""
    job = at.queue.submit(
        at.outbox(at.parcel("a", "b", "c", tokens=1)), JobRecord("job", models={"m": ["x"]})
    )
    answer = {**COMPLETION, "model": "m-1", "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    lines = [
        {"custom_id": "a", "response": {"status_code": 200, "body": answer}},
        {"custom_id": "b", "error": {"code": "batch_expired"}},
        {"custom_id": "z"},
    ]
    (batch,) = server.batches.values()
    batch.output_file = server.keep("out", "\n".join(map(json.dumps, lines)).encode())
    batch.status, batch.counts = "expired", {"completed": 1, "failed": 0}
    job = at.queue.collect(job)
    assert job.models == {"m": ["m-1", "x"]}
    results = {key: at.records.attempts(key)[0] for key in "abc"}
    assert [(each.state, each.prompt_tokens, each.completion_tokens) for each in results.values()] == [
        (CallState.ANSWERED, 3, 2), (CallState.UNANSWERED, 0, 0), (CallState.UNANSWERED, 0, 0)
    ]  # fmt: skip
    assert json.loads(results["a"].result)["custom_id"] == "a"
    assert [results[key].result for key in "bc"] == ["batch_expired"] * 2
    assert {call.stored_at for call in results.values()} == {1000.0}
    assert at.said == ["Batch batch-1: 1 line matches no open call; ignored."]
    assert (at.queue.batches(), server.files) == ([], {})


NONE_DONE = {"total": 1, "completed": 0, "failed": 0}
ENDS: dict[str, tuple[str, Any, int, str]] = {
    "completed": ("completed", NONE_DONE, 3, "batch_incomplete"),
    "expired": ("expired", NONE_DONE, 1, "batch_expired"),
    "cancelled": ("cancelled", NONE_DONE, 1, "batch_cancelled"),
    "failed": ("failed", NONE_DONE, 1, NOT_MADE),
    "a result is counted": ("expired", {"completed": 1}, 3, "batch_expired"),
    "a failure is counted": ("expired", {"completed": 0, "failed": 1}, 3, "batch_expired"),
    "only what is completed is counted": ("expired", {"completed": 0}, 1, "batch_expired"),
    "nothing is counted": ("expired", None, 3, "batch_expired"),
    "counts of another kind": ("cancelled", [0, 0], 3, "batch_cancelled"),
    "no numbers": ("cancelled", {"completed": "0", "failed": None}, 3, "batch_cancelled"),
    "true and false": ("cancelled", {"completed": False}, 3, "batch_cancelled"),
    "less than none": ("cancelled", {"completed": -1, "failed": 1}, 3, "batch_cancelled"),
    "more than were sent": ("expired", {"completed": 10**30}, 3, "batch_expired"),
}


@pytest.mark.parametrize(("status", "counts", "looks", "code"), ENDS.values(), ids=ENDS)
def test_a_call_without_a_line_ends_as_its_batch_did_at_once_only_if_the_counts_say_so(
    server: BatchServer, at: Line, status: str, counts: Any, looks: int, code: str
) -> None:
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    batch.status, batch.error_file, batch.counts = status, server.keep("err", b""), counts
    for look in range(1, looks + 1):
        assert len(server.files) == 2
        assert [call.state for call in at.records.attempts("a")] == [CallState.SENT]
        at.queue.collect(job)
        assert (look, len(server.files)) == (look, 2 if look < looks else 0)
        at.now += PAUSE + 60
    assert [call.result for call in at.records.attempts("a")] == [code]
    assert at.queue.batches() == []


GOOD_LINE: dict[str, Any] = {
    "response": {
        "status_code": 200,
        "body": {**COMPLETION, "usage": {"prompt_tokens": 7, "completion_tokens": 1}},
    }
}
BAD_LINE: dict[str, Any] = {"response": {"status_code": 500, "body": {}}}
REFUSED_LINE: dict[str, Any] = {"response": {"status_code": 401, "body": {}}}
LINES_OF_ONE_CALL = {
    "an error first": ([BAD_LINE, GOOD_LINE], 0),
    "a refusal first": ([REFUSED_LINE, GOOD_LINE], 0),
    "an error afterwards": ([GOOD_LINE, BAD_LINE], 1),
    "twice the same": ([GOOD_LINE, GOOD_LINE], 1),
    "an error between two": ([BAD_LINE, GOOD_LINE, GOOD_LINE], 1),
}


@pytest.mark.parametrize(("lines", "strange"), LINES_OF_ONE_CALL.values(), ids=LINES_OF_ONE_CALL)
def test_of_several_lines_for_one_call_the_completion_counts(
    server: BatchServer, at: Line, lines: list[dict[str, Any]], strange: int
) -> None:
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    batch.output_file = server.keep(
        "out", "\n".join(json.dumps({"custom_id": "a", **each}) for each in lines).encode()
    )
    batch.status = "completed"
    at.queue.collect(job)
    (attempt,) = at.records.attempts("a")
    assert (attempt.state, attempt.prompt_tokens) == (CallState.ANSWERED, 7)
    assert at.said == ["Batch batch-1: 1 line matches no open call; ignored."] * strange


def test_a_results_file_of_any_size_gives_what_is_in_it(server: BatchServer, at: Line) -> None:
    """The temporary file has only the lines of the batch: a larger one does not fit, as on a small disk."""
    job = at.queue.submit(at.outbox(at.parcel("a", "b", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    ours = [json.dumps({"custom_id": key, **GOOD_LINE}).encode() for key in "ab"]
    padding = b'{"custom_id": "z", "response": "' + b"x" * 1_000_000 + b'"}'
    batch.output_file = server.keep("out", b"\n".join([*[padding] * 30, ours[0], *[padding] * 30, ours[1]]))
    batch.status = "completed"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        at.queue.collect(job)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [at.records.attempts(key)[0].state for key in "ab"] == [CallState.ANSWERED] * 2
    assert at.said == ["Batch batch-1: 60 lines match no open call; ignored."]
    assert (at.queue.batches(), server.files) == ([], {})


def test_lines_that_arrive_bit_by_bit_are_stored_as_they_come_and_waited_for_anew(
    server: BatchServer, at: Line
) -> None:
    """What is already stored is not counted among the strange lines of the next look."""
    job = at.queue.submit(at.outbox(at.parcel("a", "b", "c", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    lines = [json.dumps({"custom_id": key, **GOOD_LINE}) for key in "abc"]
    batch.status, batch.output_file = "completed", server.keep("out", b"")
    misses = []
    for number in (0, 0, 1, 1, 2, 3):
        server.files[batch.output_file] = "\n".join(lines[:number]).encode()
        at.queue.collect(job)
        misses += [each.misses for each in at.queue.batches()]
        at.now += PAUSE + 60
    assert misses == [1, 2, 1, 2, 1]
    assert [at.records.attempts(key)[0].state for key in "abc"] == [CallState.ANSWERED] * 3
    assert [sentence.partition(" results")[0] for sentence in at.said] == [
        "Batch batch-1: 3 of 3", "Batch batch-1: 3 of 3", "Batch batch-1: 2 of 3", "Batch batch-1: 2 of 3",
        "Batch batch-1: 1 of 3",
    ]  # fmt: skip
    assert server.files == {}


def test_a_batch_that_was_made_twice_is_cancelled_and_cleared(server: BatchServer, at: Line) -> None:
    """Its results are deleted once it has ended, and the file that both read only with the other one."""

    def twice(event: str) -> None:
        if event == "created" and len(server.batches) == 1:
            (first,) = server.batches.values()
            server.batches["batch-9"] = replace(first, id="batch-9")

    server.hook = twice
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=5)), JobRecord("job"))
    assert {each.id: each.status for each in server.batches.values()} == {
        "batch-1": "in_progress",
        "batch-9": "cancelling",
    }
    assert "the other one, batch-9, is cancelled" in at.said[0]
    server.hook = lambda event: error(404, "not_found", "no") if event == "GET /batches/*" else None
    at.queue.collect(job)
    assert len(at.queue.batches()) == 2, "neither is believed to be gone at once"
    server.hook = lambda event: None
    server.judge.always = lambda request: json_answer(200, GOOD_LINE["response"]["body"])
    server.end_one(server.batches["batch-9"], "cancelled", done=1)
    assert len(server.files) == 3
    at.queue.collect(job)
    assert ([each.id for each in at.queue.batches()], list(server.files)) == (["batch-1"], ["file-1"])
    server.end()
    at.queue.collect(job)
    assert [call.state for call in at.records.attempts("a")] == [CallState.ANSWERED]
    assert (at.queue.batches(), server.files, len(at.said)) == ([], {}, 1)


def test_a_batch_whose_results_are_missing_waits_in_no_queue(server: BatchServer, at: Line) -> None:
    """The provider has finished it, so its tokens leave room for others."""
    at.records.put_batch(replace(WAITING, state=BatchState.ENDED))
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=100)), JobRecord("job", most_tokens=100))
    assert (len(server.batches), job.most_tokens) == (1, 100)
    server.batches.clear()
    at.records.withdraw(at.queue.batches()[1].token)
    server.hook = lambda event: FULL if event == "POST /batches" else None
    job = at.queue.submit(at.outbox(at.parcel("a", "b", tokens=100)), job)
    assert job.most_tokens == 50


def test_answers_outlive_a_batch_that_is_said_to_have_failed_later(server: BatchServer, at: Line) -> None:
    job = at.queue.submit(at.outbox(at.parcel("a", "b", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    batch.output_file = server.keep("out", json.dumps({"custom_id": "a", **GOOD_LINE}).encode())
    batch.status = "completed"
    at.queue.collect(job)
    batch.status, batch.output_file = "failed", None
    for _ in range(3):
        at.now += PAUSE + 60
        at.queue.collect(job)
    assert [at.records.attempts(key)[0].state for key in "ab"] == [CallState.ANSWERED, CallState.UNANSWERED]
    assert (at.queue.batches(), server.files) == ([], {})


def test_a_batch_that_is_found_again_has_missed_nothing(server: BatchServer, at: Line) -> None:
    """By its name, or in the list. Looks that found nothing before do not count later."""
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=1)), JobRecord("job"))
    hidden: set[str] = set()
    server.hook = lambda event: error(404, "not_found", "no") if event in hidden else None
    misses = []
    for each in (
        ("GET /batches", "GET /batches/*"),
        ("GET /batches/*",),
        ("GET /batches", "GET /batches/*"),
        (),
    ):
        hidden.clear()
        hidden.update(each)
        at.queue.collect(job)
        misses += [batch.misses for batch in at.queue.batches()]
        at.now += PAUSE + 60
    assert misses == [1, 0, 1, 0]


def test_results_are_read_though_the_batch_is_not_found_any_more(server: BatchServer, at: Line) -> None:
    job = at.queue.submit(at.outbox(at.parcel("a", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    batch.output_file, batch.status = "out-1", "completed"
    at.queue.collect(job)
    server.batches.clear()
    server.keep("out", json.dumps({"custom_id": "a", **GOOD_LINE}).encode())
    at.queue.collect(job)
    assert [call.state for call in at.records.attempts("a")] == [CallState.ANSWERED]


def test_an_uploaded_file_that_is_not_known_yet_is_kept(server: BatchServer, at: Line) -> None:
    """Also if the endpoint cannot be asked; a file that is not found for long is sent again."""
    answers = iter(
        [error(404, "not_found", "no")] * 3 + [error(401, "401", "no")] + [error(404, "not_found", "no")] * 6
    )
    server.hook = lambda event: next(answers, None) if event == "GET /files/*" else None
    job = at.queue.submit(at.outbox(at.parcel("a", "b", tokens=1)), JobRecord("job"))
    with pytest.raises(RunStoppedError):
        at.queue.collect(job)
    at.now += PAUSE + 60
    at.queue.collect(job)
    assert ([batch.misses for batch in at.queue.batches()], list(server.files)) == ([2], ["file-1"])
    at.now += PAUSE + 60
    with pytest.raises(
        RunStoppedError, match=r"does not find it; run .* again to send a new one or, if"
    ) as stop:
        at.queue.collect(job)
    assert stop.value.code == "batch_refused"
    assert (at.queue.batches(), at.records.calls_of_job("job"), server.files) == ([], [], {})
    assert at.said[-1] == (
        "The provider does not find file-1, the file of 2 calls (3 looks, at least 10 minutes apart); calls without a "
        "result are requested again."
    )


def test_a_batch_whose_calls_were_refused_stops_the_job_once(server: BatchServer, at: Line) -> None:
    """The others of the endpoint are taken in all the same."""
    job = at.queue.submit(at.outbox(at.parcel("a", "b", tokens=1)), JobRecord("job"))
    (batch,) = server.batches.values()
    lines = [{"custom_id": key, "response": {"status_code": 401, "body": {}}} for key in "ab"]
    batch.error_file = server.keep("err", "\n".join(map(json.dumps, lines)).encode())
    batch.status = "completed"
    with pytest.raises(RunStoppedError, match=r"^2 calls of batch batch-1 were refused: HTTP 401") as stop:
        at.queue.collect(job)
    assert stop.value.code == "batch_stopped"
    assert [at.records.attempts(key)[0].result for key in "ab"] == [NOT_MADE] * 2
    assert at.queue.collect(job) == job
    assert at.queue.batches() == []


def test_an_answer_without_an_end_is_refused() -> None:
    found = _read(Response(200, {}, "{}", "/v1/batches", is_whole=False), is_file=False)
    assert isinstance(found, Fault)
    assert (found.action, found.code) == (Action.REJECT, "oversized")
    assert _read(Response(200, {}, "{}", "/v1/batches"), is_file=False) == {}


@pytest.mark.parametrize(
    ("replies", "changes", "limit"),
    [
        ([], {}, 400),
        ([20], {}, 220),
        ([90] * 5, {}, 270),
        ([30] * 10, {}, 128),
        ([90] * 10, {}, 180),
        ([20, *[90] * 19], {}, 180),
        ([90] * 10, {"attempts": 3}, 180),
        ([90] * 10, {"attempts": 2}, 400),
        ([300], {}, 400),
        ([90] * 10, {"number": 1}, 400),
        ([90] * 10, {"number": 1, "room": 1600, "cut_at": 150}, 600),
        ([90] * 10, {"number": 1, "room": 1600, "cut_at": 50}, 400),
        ([9000], {"limit": "max_completion_tokens"}, 400),
        ([90] * 10, {"limit": "max_completion_tokens"}, 45),
    ],
)
def test_under_a_cap_replies_may_be_somewhat_longer_than_those_before(
    server: BatchServer, replies: list[int], changes: dict[str, Any], limit: int
) -> None:
    """`limit` is what is left for the reply itself if the model thinks before it writes."""
    endpoint = replace(Endpoint("openai", server.url, KEY, "m"), max_attempts=changes.get("attempts", 5))
    answered = {
        str(n): CallRecord(str(n), "", "job", CALL.task, "m", CallState.ANSWERED, "", 300 + n, tokens)
        for n, tokens in enumerate(replies)
    }
    dialect = Dialect(changes.get("limit", "max_tokens"))
    limiter = Limiter(1, sleep=lambda seconds: None, clock=lambda: 0.0)
    attempt = Attempt(
        replace(CALL, max_tokens=400), Deployment("m", dialect, limiter), number=changes.get("number", 0)
    )
    attempt.max_tokens, attempt.cut_at = changes.get("room", 400), changes.get("cut_at", 0)
    most = BatchLimits(url="/v1", most_requests=9, most_bytes=10_000)
    with Outbox(endpoint, most, Budget(), "job", answered) as outbox:
        for key in answered:
            outbox.learn(key, CALL, "m")
        outbox.add("key", attempt, is_settled=True)
        (parcel,) = outbox.parcels
        parcel.file.seek(0)
        sent = json.loads(parcel.file.read())["body"]
        (call,) = parcel.calls
    assert sent[dialect.token_limit] == call.completion_tokens == dialect.reply_limit(limit)
    assert call.prompt_tokens == (300 + 16 if replies else dialect.most_prompt_tokens(CALL))
