"""The transport over real HTTP: every outcome, counted in requests, with a clock that only waiting moves."""

import gzip
import json
import logging
import socket
import ssl
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, Any

import pytest
from fake_judge import Answer, FakeJudge, Request, completion, error, json_answer, running_judge
from provider_cases import CASES, ProviderCase
from pydantic import BaseModel, Field

from rag_eval.errors import NOT_RUN, ExitCode, JudgeError, RefusedReplyError, RunStoppedError
from rag_eval.judge.calls import Call, Message, answered
from rag_eval.judge.connection import LARGEST_BODY, Proxy
from rag_eval.judge.endpoint import Dialect, Endpoint
from rag_eval.judge.limiter import Limiter
from rag_eval.judge.outcomes import LONGEST_WAIT, Parameter
from rag_eval.judge.quota import TOKENS, Quota
from rag_eval.judge.transport import Transport
from rag_eval.store.reply_store import Store

KEY = "CANARY-4f9d71c2e8"
ATTEMPTS = 4
OK = completion('{"n": 1}')
MISSING = error(404, "DeploymentNotFound", "The API deployment for this resource does not exist.")
TOO_MANY = error(429, "429", "slow down")


class Rating(BaseModel):
    n: Annotated[int, Field(ge=0, le=5)]


def call(text: str = "Rate it.", **more: Any) -> Call[Rating]:
    return Call("rating", (Message("system", "Reply as JSON."), Message("user", text)), Rating, **more)


class Timeline:
    """Time that passes only while someone waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def clock(self) -> float:
        with self._lock:
            return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.waits.append(seconds)
            until = self.now + seconds
        time.sleep(0.001)
        with self._lock:
            self.now = max(self.now, until)


class Notebook:
    """Notes in memory, where no second run is of interest."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def note(self, name: str) -> str | None:
        return self.notes.get(name)

    def put_note(self, name: str, value: str) -> None:
        self.notes[name] = value


Make = Callable[..., Transport]


@pytest.fixture(scope="module")
def server() -> Iterator[FakeJudge]:
    """Asked once beforehand: what the client does only the first time takes seconds that no test should count."""
    with running_judge() as running:
        running.always = OK
        first = Transport(Endpoint("openai", running.url, KEY, "m"), Notebook())
        first.ask(call())
        first.close()
        yield running


@pytest.fixture
def judge(server: FakeJudge) -> FakeJudge:
    server.requests.clear()
    server.faults.clear()
    server.always, server.latency, server.most_in_flight = OK, 0.0, 0
    return server


@pytest.fixture
def timeline() -> Timeline:
    return Timeline()


@pytest.fixture
def said() -> list[str]:
    return []


def self_signed(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key, in one file."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one authority that is trusted here, since reading the usual hundreds takes longer than most tests."""
    return self_signed(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def make(
    judge: FakeJudge, timeline: Timeline, said: list[str], authority: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """A transport to the fake judge; whatever is not given is as in a plain run."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    made: list[Transport] = []

    def build(notes: Any = None, url: str = "", provider: Any = "openai", **settings: Any) -> Transport:
        wanted = {
            "api_key": KEY,
            "model": "m",
            "api_version": "2024-10-21",
            "max_attempts": ATTEMPTS,
            **settings,
        }
        endpoint = Endpoint(provider, url or judge.url, **wanted)
        times = {"sleep": timeline.sleep, "clock": timeline.clock}
        made.append(Transport(endpoint, notes or Notebook(), announce=said.append, **times))
        return made[-1]

    yield build
    for transport in made:
        transport.close()


def failure(transport: Transport, wanted: Call[Any] | None = None) -> JudgeError | RunStoppedError:
    with pytest.raises((JudgeError, RunStoppedError)) as caught:
        transport.ask(wanted or call())
    assert isinstance(caught.value, JudgeError | RunStoppedError)
    return caught.value


# Every answer


@pytest.mark.parametrize("provider", ["azure", "openai"])
@pytest.mark.parametrize("case", [each for each in CASES if each.action != "adapt"], ids=lambda case: case.id)
def test_every_answer_costs_the_right_number_of_requests(
    case: ProviderCase, provider: str, make: Make, judge: FakeJudge
) -> None:
    """As many attempts as configured for what is transient, and one for everything else: no retry is nested."""
    judge.always = case.answer(elsewhere=judge.url + "/elsewhere")
    transport = make(provider=provider)
    if case.action == "ok":
        assert transport.ask(call()).text == '{"n": 1}'
        return
    raised = failure(transport)
    attempts = (case.attempts or ATTEMPTS) if case.action == "retry" else 1
    assert raised.code == case.code
    assert isinstance(raised, RunStoppedError) == (case.action == "stop")
    assert len(judge.requests) == transport.usage().requests == attempts
    assert case.told in str(raised)


@pytest.mark.parametrize("provider", ["azure", "openai"])
@pytest.mark.parametrize("case", [each for each in CASES if each.action == "adapt"], ids=lambda case: case.id)
def test_a_refused_parameter_costs_one_request_a_run(
    case: ProviderCase, provider: str, make: Make, judge: FakeJudge, said: list[str]
) -> None:
    judge.always = lambda request: case.answer() if case.objects_to(request.body) else OK
    transport = make(provider=provider)
    steps = 2 if case.refuses == "response_format" else 1  # json_schema, json_object, prompt
    assert transport.ask(call()).attempts == 1 + steps
    assert transport.ask(call("another")).attempts == 1
    assert len(judge.requests) == 2 + steps
    assert len(said) == steps
    assert transport.adaptations == (said[-1],)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(is_reset=True), id="reset"),
        pytest.param(Answer(body=b'{"choices": []}', cut_after=5), id="cut short of its length"),
        pytest.param(Answer(body=b"40\r\n{", is_chunked=True), id="cut within a chunk"),
        pytest.param(Answer(body=b"no gzip", headers={"Content-Encoding": "gzip"}), id="not what it says"),
    ],
)
def test_a17_r17_a_lost_connection_is_tried_again_and_possibly_billed(
    answer: Answer, make: Make, judge: FakeJudge
) -> None:
    judge.faults.extend([answer, answer])
    transport = make()
    assert transport.ask(call()).attempts == 3
    assert transport.possibly_billed == 2
    assert transport.adaptations[-1].endswith("that may still be billed: 2.")
    judge.always = answer
    assert failure(transport).code == "connection_lost"
    assert len(judge.requests) == 3 + ATTEMPTS


# Answers that do not end


@contextmanager
def flooding(pieces: Callable[[], Iterator[bytes]]) -> Iterator[tuple[str, list[int]]]:
    """A server that answers every request with these pieces until the client hangs up; how much it sent each time."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # closed
                while True:
                    connection, _ = listening.accept()
                    sent.append(0)
                    with connection, suppress(OSError):
                        connection.recv(65_536)
                        for piece in pieces():
                            sent[-1] += connection.send(piece)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", sent


HEAD = b"HTTP/1.1 200 OK\r\n"


def chunks(piece: bytes, header: bytes = b"") -> Iterator[bytes]:
    yield HEAD + header + b"Transfer-Encoding: chunked\r\n\r\n"
    yield from repeat(b"%x\r\n%s\r\n" % (len(piece), piece))


def bombs(encoding: bytes) -> Iterator[bytes]:
    yield HEAD + b"Transfer-Encoding: chunked\r\nContent-Encoding: " + encoding + b"\r\n\r\n"
    compressor = zlib.compressobj(wbits=31 if encoding == b"gzip" else 15)
    for _ in repeat(None):
        if piece := compressor.compress(b" " * 1_000_000):
            yield b"%x\r\n%s\r\n" % (len(piece), piece)


FLOODS: dict[str, tuple[Callable[[], Iterator[bytes]], str, int]] = {
    "body": (lambda: chunks(b" " * 100_000), "oversized", 2),
    "body that ends at once": (
        lambda: iter([HEAD + b"\r\n", *repeat(b" " * 100_000, 10_000)]),
        "oversized",
        2,
    ),
    "gzip": (lambda: bombs(b"gzip"), "oversized", 2),
    "deflate": (lambda: bombs(b"deflate"), "oversized", 2),
    "error": (lambda: chain([b"HTTP/1.1 500 No\r\n\r\n"], repeat(b"x" * 100_000)), "server_error", ATTEMPTS),
    "refusal": (lambda: chain([b"HTTP/1.1 401 No\r\n\r\n"], repeat(b"x" * 100_000)), "unauthorized", 1),
    "header": (lambda: chain([HEAD + b"X: "], repeat(b"x" * 100_000)), "connection_lost", ATTEMPTS),
    "headers": (lambda: chain([HEAD], repeat(b"X: x\r\n" * 1000)), "connection_lost", ATTEMPTS),
    "status": (lambda: chain([b"HTTP/1.1 200 "], repeat(b"x" * 100_000)), "connection_lost", ATTEMPTS),
}


@pytest.mark.parametrize(("pieces", "code", "attempts"), FLOODS.values(), ids=FLOODS)
def test_an_answer_without_end_is_hung_up_on(
    pieces: Callable[[], Iterator[bytes]], code: str, attempts: int, make: Make
) -> None:
    """No more is read than a reply can have, compressed or not, and what came of it has a name."""
    with flooding(pieces) as (url, sent):
        transport = make(url=url)
        assert failure(transport).code == code
        assert transport.usage().requests == len(sent) == attempts
        assert transport.possibly_billed == (0 if code in ("server_error", "unauthorized") else attempts)
    assert max(sent) < 12_000_000  # what is under way between the two counts as well


@pytest.mark.parametrize("too_much", [0, 1])
@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
def test_the_largest_answer_that_is_read(encoding: str, too_much: int, make: Make, judge: FakeJudge) -> None:
    compress = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    whole = OK.body + b" " * (LARGEST_BODY + too_much - len(OK.body))
    judge.always = Answer(body=compress(whole), headers={"Content-Encoding": encoding})
    transport = make()
    if not too_much:
        assert transport.ask(call()).attempts == 1
        return
    raised = failure(transport)
    assert (raised.code, len(judge.requests)) == ("oversized", 2)
    assert "larger than 2 MB" in str(raised)
    with pytest.raises(RunStoppedError, match="larger than 2 MB"):
        make().prepare("")
    judge.always = OK
    assert transport.ask(call()).attempts == 1


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", "idna", "undefined", "zlib", "no-such-thing", ""])
def test_json_is_utf_8_whatever_its_headers_say(charset: str, make: Make, judge: FakeJudge) -> None:
    raw = json.dumps({"choices": [{"message": {"content": '{"n":1,"é":"ü"}'}}]}, ensure_ascii=False)
    judge.always = Answer(
        body=b"\xef\xbb\xbf" + raw.encode(), headers={"Content-Type": f"application/json; charset={charset}"}
    )

    class Accented(BaseModel):
        n: int
        é: str

    asked = Call("t", (Message("user", "x"),), Accented)
    assert make().ask(asked).text == '{"n":1,"é":"ü"}'


def test_a_connection_that_was_lost_does_not_spoil_the_next(make: Make, judge: FakeJudge) -> None:
    transport = make(workers=2)
    for _ in range(5):
        judge.faults.append(Answer(is_reset=True))
        assert transport.ask(call()).attempts == 2


def test_a18_a_silent_server_is_given_up_after_three_tries(make: Make, judge: FakeJudge) -> None:
    judge.latency = 0.5
    transport = make(timeout_seconds=0.2)
    assert failure(transport).code == "timeout"
    assert (len(judge.requests), transport.possibly_billed) == (3, 3)
    time.sleep(0.3)  # the server ends its own waiting


@pytest.mark.parametrize("pieces", [20, 1], ids=["trickles", "stalls"])
def test_a19_r3_an_attempt_ends_in_total_time(pieces: int, make: Make, judge: FakeJudge) -> None:
    """Bytes that trickle in keep nobody waiting, and neither does a body that never comes."""
    judge.always = Answer(body=b" " * 20, pieces=pieces, pause=1.5 / pieces)
    began = time.monotonic()
    assert failure(make(timeout_seconds=0.4, max_attempts=1)).code == "timeout"
    assert time.monotonic() - began < 0.4 + 0.5


def test_headers_that_trickle_in_count_as_well(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):  # the client gives up
                for _ in range(10):
                    connection.sendall(b"H")
                    time.sleep(0.1)

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        assert failure(make(url=url, timeout_seconds=0.3, max_attempts=1)).code in (
            "timeout",
            "connection_lost",
        )
        assert time.monotonic() - began < 0.3 + 0.5
        thread.join()


@pytest.mark.slow
def test_many_timeouts_leave_connections_for_later(make: Make, judge: FakeJudge) -> None:
    transport = make(timeout_seconds=1.0, max_attempts=1, workers=8)
    judge.latency = 1.4
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: failure(transport).code, range(8))) == {"timeout"}
    time.sleep(0.3)
    judge.latency = 0.0
    assert transport.ask(call()).attempts == 1


# Waiting


@pytest.mark.parametrize(
    ("headers", "message", "expected"),
    [
        ({"retry_after_ms": "1500", "retry_after": "9"}, "", 1.5),
        ({"retry_after": "9"}, "retry after 30 seconds", 9.0),
        ({}, "Please retry after 30 seconds.", 30.0),
    ],
)
def test_what_the_endpoint_asks_for_is_waited(
    headers: dict[str, str], message: str, expected: float, make: Make, judge: FakeJudge, timeline: Timeline
) -> None:
    judge.faults.append(error(429, "429", message, **headers))
    assert make().ask(call()).attempts == 2
    assert timeline.waits == [expected]


def test_a_date_is_waited_for(make: Make, judge: FakeJudge, timeline: Timeline) -> None:
    at = datetime.now(UTC) + timedelta(seconds=40)
    judge.faults.append(error(429, "429", "", retry_after=at.strftime("%a, %d %b %Y %H:%M:%S GMT")))
    make().ask(call())
    assert timeline.waits == [pytest.approx(40, abs=3)]


def test_without_a_word_of_the_endpoint_waits_grow_and_vary(
    make: Make, judge: FakeJudge, timeline: Timeline
) -> None:
    judge.always = Answer(500)
    failure(make(max_attempts=8))
    assert len(timeline.waits) == 7
    assert all(0 <= wait <= min(60, 0.5 * 2**n) for n, wait in enumerate(timeline.waits, start=1))
    assert len(set(timeline.waits)) > 1


def test_a_pause_holds_for_all_workers_of_the_deployment(
    make: Make, judge: FakeJudge, timeline: Timeline
) -> None:
    seen: list[tuple[float, str]] = []

    def answer(request: Request) -> Answer:
        seen.append((timeline.clock(), request.body["model"]))
        return error(429, "429", "", retry_after="60") if len(seen) == 1 else OK

    judge.always = answer
    transport = make(workers=8)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(transport.ask, call("first"))
        while timeline.waits == [] and not first.done():
            time.sleep(0.001)  # until the pause has begun
        others = [pool.submit(transport.ask, call(f"{n}")) for n in range(20)]
        assert [each.result().reply for each in (first, *others)] == [Rating(n=1)] * 21
    assert all(at >= 1060 for at, _ in seen[1:])
    transport.ask(call(deployment="elsewhere"))
    assert len(judge.requests) == 23  # 21 calls, one of them twice, and one elsewhere


def test_a_pause_above_the_cap_is_not_slept(make: Make, judge: FakeJudge, timeline: Timeline) -> None:
    judge.always = error(429, "429", "Please retry after 86400 seconds.", retry_after="86400")
    assert failure(make()).code == "exceeds_rate_limit"
    assert (len(judge.requests), timeline.waits) == (1, [])


def test_a13_three_requests_in_a_row_that_exceed_the_limit_stop_the_run(make: Make, judge: FakeJudge) -> None:
    judge.always = error(429, "429", "Please retry after 86400 seconds.")
    transport = make()
    assert [type(failure(transport)) for _ in range(3)] == [JudgeError, JudgeError, RunStoppedError]
    judge.faults.append(OK)
    transport.ask(call())
    assert [type(failure(transport)) for _ in range(3)] == [JudgeError, JudgeError, RunStoppedError]


def test_a12_rate_limits_have_a_budget_of_their_own(make: Make, judge: FakeJudge) -> None:
    limit = error(429, "429", "", retry_after="1")
    judge.faults.extend([limit, Answer(500), limit, Answer(500), limit])
    assert make(max_attempts=4).ask(call()).attempts == 6


@pytest.mark.parametrize("headers", [{"retry_after": "0"}, {}])
def test_a_rate_limit_without_a_wait_is_not_hammered(
    headers: dict[str, str], make: Make, judge: FakeJudge, timeline: Timeline
) -> None:
    judge.faults.append(error(429, "429", "", **headers))
    make().ask(call())
    assert len(timeline.waits) == 1
    assert timeline.waits[0] > 0


# The same question once more


def test_a_deployment_that_answered_before_gets_two_more_tries(make: Make, judge: FakeJudge) -> None:
    transport = make()
    judge.faults.extend([OK, MISSING, MISSING])
    transport.ask(call())
    assert transport.ask(call()).attempts == 3
    judge.always = MISSING
    assert isinstance(failure(transport), RunStoppedError)
    assert len(judge.requests) == 4 + 3


@pytest.mark.parametrize(("provider", "key"), [("azure", "[azure] deployment"), ("openai", "[openai] model")])
def test_an_unknown_model_is_named_with_where_it_is_set(
    provider: str, key: str, make: Make, judge: FakeJudge
) -> None:
    judge.always = MISSING
    assert str(failure(make(provider=provider))).endswith(f" model name m, which {key} or --model sets")
    assert str(failure(make(provider=provider), call(deployment="t"))).endswith(" model name t")


def test_another_deployments_answers_do_not_count(make: Make, judge: FakeJudge) -> None:
    transport = make()
    transport.ask(call())
    judge.always = MISSING
    assert isinstance(failure(transport, call(deployment="other")), RunStoppedError)
    assert len(judge.requests) == 2


def test_a28_a_cut_reply_is_asked_for_once_more_with_more_room(make: Make, judge: FakeJudge) -> None:
    judge.faults.append(completion('{"n": 1', finish="length"))
    answer = make().ask(call(max_tokens=100))
    assert [request.body["max_tokens"] for request in judge.requests] == [100, 400]
    assert (answer.attempts, answer.completion_tokens) == (2, 4)  # both replies were paid for


def test_a28_more_room_comes_late_as_well(make: Make, judge: FakeJudge) -> None:
    """Other failures before do not use up the one try with more room."""
    judge.faults.extend([Answer(500), Answer(500), completion("{", finish="length")])
    assert make().ask(call()).attempts == 4


def test_a28_a_model_without_more_room_fails_as_truncated(make: Make, judge: FakeJudge) -> None:
    judge.faults.append(completion("{", finish="length"))
    judge.always = error(400, "invalid_value", "max_tokens is too large: 8192.", "max_tokens")
    assert failure(make()).code == "truncated"


def test_the_finish_reason_comes_before_the_content(make: Make, judge: FakeJudge) -> None:
    judge.always = completion('{"n": 1}', finish="length")
    assert failure(make()).code == "truncated"
    judge.always = completion('{"n": 1}', finish="content_filter")
    assert failure(make()).code == "output_filtered"


def test_a30_a_reply_that_the_server_refuses_is_asked_for_three_times(make: Make, judge: FakeJudge) -> None:
    """Each request says what was wrong, as with any reply that is not taken."""
    tries = [f'{{"n": {n}' for n in range(4)]

    def refused(request: Request) -> Answer:
        generation = tries[len(judge.requests) - 1]
        document = {"error": {"code": "json_validate_failed", "failed_generation": generation}}
        return json_answer(400, document)

    judge.always = refused
    transport = make()
    with pytest.raises(RefusedReplyError) as caught:
        answered(transport, call())
    assert (caught.value.code, len(judge.requests)) == ("unparseable", 3)
    assert "An earlier reply could not be used" in judge.requests[1].prompt
    assert transport.usage().uncounted == 3


def test_a30_a_refused_reply_is_handed_over_with_what_it_cost(make: Make, judge: FakeJudge) -> None:
    """The scheduler stores it, and decides on a further call, which says what was wrong."""
    judge.faults.extend([Answer(500), completion('{"n": 7}')])
    raised = failure(make())
    assert isinstance(raised, RefusedReplyError)
    assert (raised.text, raised.attempts, raised.completion_tokens) == ('{"n": 7}', 2, 2)
    assert len(judge.requests) == 2


FOREVER = "The loan is a loan that is a loan. " * 40
PAGES = "".join(f"Branch {n} of the library opens at {n}. " for n in range(22))[:800] * 4
VERDICTS = ", ".join(
    f'{{"statement": "Branch {n} of the library opens at {n}.", "reason": "It is in the context.", "verdict": 1}}'
    for n in range(40)
)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"reason": "' + FOREVER, "loop"),
        ('{"statements": [' + '"Albert was extended to four weeks.",\n' * 12, "loop"),
        ('{"reason": "' + PAGES, "loop"),
        ('{"statements": [' + VERDICTS, "truncated"),
        ("{", "truncated"),
        ("............ 1000000000000", "truncated"),
    ],
    ids=["a sentence", "a list", "800 characters", "equal reasons", "short", "dots"],
)
def test_a_reply_that_never_ends_gets_no_more_room(
    content: str, code: str, make: Make, judge: FakeJudge
) -> None:
    judge.always = completion(content, finish="length")
    assert failure(make(), call(max_tokens=100)).code == code
    limits = [request.body["max_tokens"] for request in judge.requests]
    assert limits == ([100] if code == "loop" else [100, 400])


@pytest.mark.parametrize("cut", ['[{"n": 1, "reason": "\\"n\\": 4"}, {"n": 3, "reas', '[], "n": [1, 2, 3'])
def test_a_reply_about_more_than_was_numbered_gets_no_more_room(
    cut: str, make: Make, judge: FakeJudge
) -> None:
    judge.always = completion('{"list": ' + cut, finish="length")
    codes = [failure(make(), call(max_tokens=100, numbered={"n": last})).code for last in (2, 3)]
    assert codes == ["loop", "truncated"]
    assert [request.body["max_tokens"] for request in judge.requests] == [100, 100, 400]


def cut_with(tokens: int, **message: Any) -> Answer:
    document = json.loads(completion('{"n": 1', finish="length").body)
    document["choices"][0]["message"].update(message)
    document["usage"] = {"prompt_tokens": 10, "completion_tokens": tokens}
    return json_answer(200, document)


def test_the_first_limit_is_what_is_enough_and_an_honest_cut_raises_it_for_all(
    make: Make, judge: FakeJudge
) -> None:
    """Not as large as it gets: most replies that reach a limit would reach any."""
    transport = make()
    judge.faults.extend([cut_with(50), cut_with(200), cut_with(500)])
    assert transport.ask(call(max_tokens=500, room=50)).attempts == 4
    transport.ask(call("another", max_tokens=500, room=60))
    transport.ask(call("a third", max_tokens=500))
    assert [request.body["max_tokens"] for request in judge.requests] == [50, 200, 800, 2000, 240, 500]


def test_room_is_no_part_of_the_key(make: Make) -> None:
    transport = make()
    assert transport.key(call(max_tokens=500, room=50)) == transport.key(call(max_tokens=500))
    assert transport.key(call(max_tokens=500)) != transport.key(call(max_tokens=400))


@pytest.mark.parametrize(
    "message",
    [{"content": ""}, {"content": "<think>Let me see"}, {"content": None, "reasoning_content": "Well"}],
)
def test_a_model_that_thinks_gets_all_the_room_at_once(
    message: dict[str, Any], make: Make, judge: FakeJudge
) -> None:
    judge.faults.append(cut_with(50, **message))
    transport = make()
    transport.ask(call(max_tokens=500, room=50))
    transport.ask(call("another", max_tokens=500, room=60))
    assert [request.body["max_tokens"] for request in judge.requests] == [50, 500, 500]


@pytest.mark.parametrize(
    "told",
    [
        "This model's maximum context length is 1000 tokens. However, you requested {total} tokens (900 in the "
        "messages, {wanted} in the completion).",
        "'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length is 1000 "
        "tokens and your request has 900 input tokens ({wanted} > 1000 - 900).",
        "You passed 900 input tokens and requested {wanted} output tokens. However, the model's context length is only "
        "1000 tokens, resulting in a maximum input length of {most} tokens.",
    ],
)
def test_a_reply_limit_that_does_not_fit_beside_the_prompt_is_lowered(
    make: Make, judge: FakeJudge, told: str
) -> None:
    """vLLM counts the limit of a reply as part of the context, and refuses a prompt that fits well."""

    def small_context(request: Request) -> Answer | None:
        wanted = request.body["max_tokens"]
        words = told.format(wanted=wanted, total=900 + wanted, most=1000 - wanted)
        return None if 900 + wanted <= 1000 else error(400, "", words)

    judge.always = lambda request: small_context(request) or OK
    assert make().ask(call(max_tokens=500)).attempts == 2
    assert [request.body["max_tokens"] for request in judge.requests] == [500, 100]
    judge.always = lambda request: small_context(request) or cut_with(100)
    raised = failure(make(), call(max_tokens=500))  # it would need more than there is
    assert (raised.code, len(judge.requests)) == ("truncated", 2 + 4)
    assert "the model's context is full (10 + 100 tokens)" in str(raised)


def test_the_reply_limit_is_halved_beside_a_prompt_that_was_not_counted_to_its_end(
    make: Make, judge: FakeJudge
) -> None:
    """By that much less which is known to be too much, hundreds of requests could follow."""

    def small_context(request: Request) -> Answer:
        wanted = request.body["max_tokens"]
        told = (
            f"This model's maximum context length is 1000 tokens. However, you requested {wanted} output tokens and "
            f"your prompt contains at least {1001 - wanted} input tokens, for a total of at least 1001 tokens."
        )
        return OK if wanted <= most else error(400, "", told)

    judge.always, most = small_context, 130
    assert make().ask(call(max_tokens=500)).attempts == 3
    most = 0
    assert failure(make(), call(max_tokens=500)).code == "too_long"
    assert [request.body["max_tokens"] for request in judge.requests] == [500, 250, 125, 500, 250, 125]


def test_a_server_that_loads_its_model_is_waited_for(
    make: Make, judge: FakeJudge, timeline: Timeline, said: list[str]
) -> None:
    """As long as that takes: it uses up no attempt, and is announced once."""
    loading = error(503, "", "Loading model")
    judge.faults.extend([loading] * 50)
    transport = make(max_attempts=2)
    transport.prepare("")
    assert transport.ask(call()).attempts == 1
    assert timeline.waits == [5.0] * 50
    assert said == ["m: the server is still loading its model; requests wait for it."]


def test_a_context_that_is_full_is_named_with_both_numbers(make: Make, judge: FakeJudge) -> None:
    """More room changes nothing where the server's own limit cuts the reply."""
    judge.always = cut_with(90)
    raised = failure(make(), call(max_tokens=1000))
    assert (raised.code, len(judge.requests)) == ("truncated", 2)
    assert "the model's context is full (10 + 90 tokens)" in str(raised)


# Preflight


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(401, "401", "Access denied"), "unauthorized"),
        (MISSING, "deployment_not_found"),
        (Answer(200, b"<html>Sign in</html>"), "not_json"),
        (Answer(307, b"", {"Location": "http://127.0.0.1:1/"}), "redirect_refused"),
        (error(429, "insufficient_quota", "spent"), "insufficient_quota"),
        (error(429, "429", "", retry_after="86400"), "exceeds_rate_limit"),
    ],
)
def test_what_cannot_work_costs_one_request(answer: Answer, code: str, make: Make, judge: FakeJudge) -> None:
    judge.always = answer
    transport = make()
    with pytest.raises(RunStoppedError) as caught:
        transport.prepare("")
    assert (caught.value.code, len(judge.requests)) == (code, 1)


@pytest.mark.parametrize(
    "answer",
    [completion("ready", finish="length"), completion("no JSON"), error(400, "content_filter", "filtered")],
)
def test_a_preflight_that_is_answered_at_all_lets_the_run_begin(
    answer: Answer, make: Make, judge: FakeJudge
) -> None:
    judge.always = answer
    make().prepare("")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("http://127.0.0.1:{port}", "nothing listens"),
        ("https://judge.invalid", "cannot be resolved"),
    ],
)
def test_a20_r23_the_cause_of_a_failed_connection_is_named(url: str, cause: str, make: Make) -> None:
    transport = make(url=url.format(port=free_port()))
    with pytest.raises(RunStoppedError, match=cause) as caught:
        transport.prepare("")
    assert (caught.value.code, transport.usage().requests) == ("unreachable", 1)
    assert transport.possibly_billed == 0


@pytest.mark.parametrize(
    "key", ["", "my secret", "secret\n", "sec\rret", "секрет", "secret\u200b", "“secret”"]
)
def test_a21_a22_a_key_that_no_header_can_carry_is_refused_before_any_request(
    key: str, make: Make, judge: FakeJudge
) -> None:
    with pytest.raises(RunStoppedError) as caught:
        make(api_key=key).prepare("")
    assert (caught.value.code, judge.requests) == ("unusable_key", [])
    assert "secret" not in str(caught.value)


# TLS, redirects and proxies


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("server"))


@pytest.fixture
def secured(certificate: Path) -> Iterator[FakeJudge]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with running_judge(context) as running:
        running.always = OK
        yield running


def test_an_untrusted_certificate_is_refused_and_explained(secured: FakeJudge, make: Make) -> None:
    transport = make(url=secured.url)
    with pytest.raises(RunStoppedError, match="SSL_CERT_FILE") as caught:
        transport.prepare("")
    assert "CERTIFICATE_VERIFY_FAILED" in str(caught.value)
    assert (secured.requests, transport.usage().requests) == ([], 1)


def test_a_certificate_can_be_trusted_by_name(
    secured: FakeJudge, make: Make, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert make(url=secured.url).ask(call()).attempts == 1


def test_a_folder_of_certificates_is_trusted_by_the_names_in_it(
    secured: FakeJudge, make: Make, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path / 'none'}:{tmp_path}")
    (tmp_path / "certificate.pem").write_bytes(certificate.read_bytes())
    with pytest.raises(RunStoppedError, match="openssl rehash") as caught:
        make(url=secured.url).prepare("")
    assert (caught.value.code, secured.requests) == ("unusable_certificates", [])
    (tmp_path / "5ed36f99.0").write_bytes(certificate.read_bytes())  # of another name: it is not found
    with pytest.raises(RunStoppedError, match="CERTIFICATE_VERIFY_FAILED"):
        make(url=secured.url).prepare("")


@pytest.mark.parametrize("content", [None, "", "no certificate", b"\x00\xff"])
def test_certificates_that_cannot_be_read_are_named_with_their_variable(
    content: str | bytes | None, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: FakeJudge
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(RunStoppedError, match=f"^SSL_CERT_FILE = {path}: .*; correct the path") as caught:
        make(url="https://judge.invalid").prepare("")
    assert (caught.value.code, caught.value.exit_code) == ("unusable_certificates", ExitCode.USAGE)
    assert make().ask(call()).attempts == 1, "an address without TLS needs none"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("provider", ["azure", "openai"])
def test_nothing_is_sent_to_where_an_endpoint_redirects(
    status: int, provider: str, make: Make, judge: FakeJudge
) -> None:
    with running_judge() as elsewhere:
        judge.always = Answer(status, b"", {"Location": f"{elsewhere.url}/chat/completions"})
        assert failure(make(provider=provider)).code == "redirect_refused"
        assert (len(judge.requests), elsewhere.requests) == (1, [])


def test_loopback_is_asked_directly(make: Make, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert make().ask(call()).attempts == 1


def test_a_proxy_is_used_and_said(
    make: Make, judge: FakeJudge, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", judge.url.replace("http://", "http://user:secret@"))
    monkeypatch.setenv("NO_PROXY", "")
    transport = make(url="http://judge.invalid")
    transport.ask(call())
    transport.ask(call("another"))
    assert judge.requests[0].path == "http://judge.invalid/chat/completions"
    assert said == [
        f"Judge calls go through the proxy {judge.url.removeprefix('http://')}, which the environment names."
    ]


def test_a_proxy_that_refuses_is_told_without_its_password(
    make: Make, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's own error quotes the proxy's address."""
    monkeypatch.setenv("HTTPS_PROXY", judge.url.replace("http://", "http://me:hush%3Ahush@"))
    monkeypatch.setenv("NO_PROXY", "")
    raised = failure(make(url="https://judge.invalid"))
    assert raised.code == "unreachable"
    assert f"through HTTPS_PROXY = {judge.url} (" in str(raised)
    assert "hush" not in str(raised) + "".join(traceback.format_exception(raised))


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("place", ["127.0.0.1:{port}", "proxy.invalid:{port}"])
def test_a_proxy_that_cannot_be_reached_is_named_with_its_variable_and_not_the_endpoint(
    variable: str, place: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place.format(port=free_port())
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, f"http://me:hush@{place}")
    with pytest.raises(RunStoppedError, match="cannot be reached") as caught:
        make(url="https://judge.example").prepare("")
    assert caught.value.code == "unreachable"
    assert f": {variable} = http://{place}: this proxy cannot be reached (" in str(caught.value)
    assert "hush" not in str(caught.value)
    assert "endpoint" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HTTPS_PROXY": "http://user:secret@proxy.example:8080"}, "proxy.example:8080"),
        ({"HTTPS_PROXY": "proxy.example:8080"}, "proxy.example:8080"),
        ({"ALL_PROXY": "http://proxy.example"}, "proxy.example"),
        ({"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "judge.example"}, ""),
        ({"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "*"}, ""),
        ({"HTTP_PROXY": "http://proxy.example"}, ""),
    ],
)
def test_the_proxy_is_named_without_its_password(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (proxy.place if (proxy := Proxy.of("https://judge.example/v1")) else "") == expected


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("HTTPS_PROXY", "gopher://user:secret@proxy.example", "gopher://proxy.example"),
        ("ALL_PROXY", "socks5://user:secret@proxy.example:1080", "socks5://proxy.example:1080"),
        ("HTTPS_PROXY", "user:secret@proxy.example:808080", "…"),
    ],
)
def test_a_proxy_that_cannot_be_used_stops_the_run(
    variable: str, value: str, shown: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(RunStoppedError, match=f"^{variable} = {shown}: ") as caught:
        make(url="https://judge.invalid").prepare("")
    assert (caught.value.code, caught.value.exit_code) == ("unusable_proxy", ExitCode.USAGE)
    assert "secret" not in str(caught.value)


# Requests


def test_azure_is_asked_with_its_own_header_path_and_version(make: Make, judge: FakeJudge) -> None:
    make(provider="azure").ask(call(deployment="gpt-x"))
    (request,) = judge.requests
    assert request.path == "/openai/deployments/gpt-x/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers


def test_azures_key_wins_over_a_token_in_the_environment(
    make: Make, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "stale-token")
    make(provider="azure").ask(call())
    assert judge.requests[0].headers["api-key"] == KEY
    assert "authorization" not in judge.requests[0].headers


def test_openai_is_asked_with_a_bearer_token(make: Make, judge: FakeJudge) -> None:
    make(url=judge.url + "/v1/").ask(call())
    (request,) = judge.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert "api-key" not in request.headers


@pytest.mark.parametrize("provider", ["azure", "openai"])
def test_no_other_credential_of_the_environment_goes_along(
    make: Make, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """Names of an account belong to OpenAI's own host, and a key for its administration to nobody."""
    found = {name: f"found-{name}" for name in ("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    make(provider=provider).ask(call())
    assert [value for value in judge.requests[0].headers.values() if "found-" in value] == []


def test_a_request_holds_what_it_must_and_nothing_else(make: Make, judge: FakeJudge) -> None:
    make(temperature=0.25).ask(call(max_tokens=77))
    body = judge.requests[0].body
    assert body.pop("messages") == [
        {"role": "system", "content": "Reply as JSON."},
        {"role": "user", "content": "Rate it."},
    ]
    schema = body.pop("response_format")
    assert (schema["type"], schema["json_schema"]["strict"]) == ("json_schema", True)
    assert schema["json_schema"]["schema"]["additionalProperties"] is False
    assert schema["json_schema"]["schema"]["required"] == ["n"]
    assert body == {"model": "m", "max_tokens": 77, "temperature": 0.25}


def test_halves_of_surrogate_pairs_do_not_end_the_run(make: Make, judge: FakeJudge) -> None:
    make().ask(call("bad \ud83d text, good \ud83d\ude00"))
    assert judge.requests[0].body["messages"][1]["content"] == "bad \ufffd text, good \U0001f600"


# Parameters


def particular(request: Request) -> Answer:
    """A reasoning model: another name for the token limit, no temperature, and thinking that costs tokens."""
    body = request.body
    if "max_tokens" in body:
        return error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead.", "max_tokens")
    if "temperature" in body:
        return error(
            400, "unsupported_value", "'temperature' does not support 0.0 with this model.", "temperature"
        )
    limit = body["max_completion_tokens"]
    return OK if limit >= 1000 else cut_with(limit, content=None)


def test_a_reasoning_model_under_any_name_just_works(make: Make, judge: FakeJudge, said: list[str]) -> None:
    judge.always = particular
    transport = make(model="our-judge")
    transport.prepare("")
    settled = len(judge.requests)
    assert transport.ask(call(max_tokens=300)).attempts == 1
    assert transport.ask(call(max_tokens=100)).attempts == 2
    assert len(judge.requests) == settled + 3
    assert transport.adaptations == tuple(said)
    assert "our-judge expects max_completion_tokens instead of max_tokens" in said[0]
    assert "does not accept a temperature: its default applies, so scores vary" in said[1]


@pytest.mark.parametrize("chosen", ["auto", "json_schema", "json_object", "prompt"])
def test_the_form_of_output_falls_back_only_if_it_was_not_chosen(
    chosen: str, make: Make, judge: FakeJudge
) -> None:
    refusal = error(400, "BadRequest", "response_format is not supported", "response_format")
    judge.always = lambda request: refusal if "response_format" in request.body else OK
    transport = make(structured_output=chosen)
    if chosen in ("auto", "prompt"):
        transport.ask(call())
    else:
        assert isinstance(failure(transport), RunStoppedError)
    forms = [request.body.get("response_format", {}).get("type", "prompt") for request in judge.requests]
    assert forms == (["json_schema", "json_object", "prompt"] if chosen == "auto" else [chosen])


def test_a_parameter_that_is_refused_again_fails_its_call_alone(make: Make, judge: FakeJudge) -> None:
    judge.always = error(400, "unsupported_value", "temperature is not supported", "temperature")
    raised = failure(make())
    assert (type(raised), raised.code, len(judge.requests)) == (JudgeError, "unsupported_temperature", 2)


def test_workers_that_meet_a_refusal_together_adapt_once(
    make: Make, judge: FakeJudge, said: list[str]
) -> None:
    judge.always, judge.latency = particular, 0.01
    transport = make(workers=8)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: transport.ask(call(str(n))), range(24)))
    assert len(said) == 2


def test_what_was_found_out_is_remembered_with_the_same_keys(
    make: Make, judge: FakeJudge, said: list[str], tmp_path: Path
) -> None:
    judge.always = particular
    store = Store(tmp_path / "replies.sqlite")
    first = make(store)
    first.prepare("")
    learned, sentences = first.key(call()), list(said)
    judge.requests.clear()
    again = make(store)
    assert again.key(call()) == learned != make().key(call())
    assert again.ask(call()).attempts == 1
    assert "max_completion_tokens" in judge.requests[0].body
    assert again.adaptations == first.adaptations
    assert said == sentences * 2  # a second run tells of it as well
    store.end(keep=False)


@pytest.mark.parametrize("note", ["", "no JSON", "{}", '{"output": "xml"}', '{"from": "the future"}'])
def test_a_note_of_another_version_does_no_harm(note: str) -> None:
    endpoint = Endpoint("openai", "http://127.0.0.1", KEY, "m")
    assert Dialect.remembered(note, endpoint) == Dialect()
    assert Dialect.remembered('{"takes_temperature":false}', endpoint) == Dialect(takes_temperature=False)


def test_every_parameter_can_be_adapted_only_so_often() -> None:
    for parameter, steps in (
        (Parameter.MAX_TOKENS, 1),
        (Parameter.TEMPERATURE, 1),
        (Parameter.RESPONSE_FORMAT, 2),
    ):
        dialect: Dialect | None = Dialect()
        for _ in range(steps):
            assert dialect is not None
            dialect = dialect.adapted(parameter)
        assert dialect is not None
        assert dialect.adapted(parameter) is None


# Secrets


@pytest.mark.parametrize(
    "answer",
    [
        error(401, "401", f"Incorrect API key provided: {KEY}."),
        error(400, "BadRequest", f"header api-key: {KEY[:12]}*** is odd"),
        json_answer(500, {"error": {"message": f"Bearer {KEY}"}}, x_request_id=KEY),
        Answer(502, f"<html>{KEY}</html>".encode()),
        completion(None, refusal=f"I cannot, {KEY}"),
        Answer(is_reset=True),
        completion("no JSON"),
    ],
)
@pytest.mark.parametrize("provider", ["azure", "openai"])
def test_the_key_and_the_prompt_are_told_nowhere(
    answer: Answer,
    provider: str,
    make: Make,
    judge: FakeJudge,
    said: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge.always = answer
    with caplog.at_level(logging.DEBUG):
        transport = make(provider=provider)
        raised = failure(transport, call("a confidential text"))
        failure(transport, call("the same again"))
    shown = [
        str(raised),
        repr(raised),
        repr(transport.endpoint),
        repr(transport),
        *said,
        *transport.adaptations,
    ]
    shown += ["".join(traceback.format_exception(raised)), caplog.text, *map(str, caplog.records)]
    everything = "\n".join(shown)
    assert not [
        KEY[start : start + 8] for start in range(len(KEY) - 7) if KEY[start : start + 8] in everything
    ]
    assert "a confidential text" not in everything


def test_what_the_packages_log_for_their_own_developers_is_not_logged(
    make: Make, judge: FakeJudge, caplog: pytest.LogCaptureFixture
) -> None:
    packages = ("openai", "httpx2", "httpcore2")
    for name in ("", *packages):
        caplog.set_level(logging.DEBUG, logger=name)
    make().ask(call("a confidential text"))
    logged = [record for record in caplog.records if record.name.startswith(packages)]
    assert [record.getMessage() for record in logged if record.levelno < logging.INFO] == []


# Pace


def test_requests_in_flight_shrink_under_refusals_and_recover(make: Make, judge: FakeJudge) -> None:
    """A server that takes three at a time: what is sent settles there, and rises again when it takes more."""
    capacity, in_flight, lock, most = [3], [0], threading.Lock(), [0]

    def limited(request: Request) -> Answer:
        with lock:
            in_flight[0] += 1
            most[0] = max(most[0], in_flight[0])
            is_refused = in_flight[0] > capacity[0]
        time.sleep(0.02)
        with lock:
            in_flight[0] -= 1
        return TOO_MANY if is_refused else OK

    judge.always = limited
    transport = make(workers=12, max_attempts=20)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: transport.ask(call(str(n))), range(60)))
        refused = len(judge.requests) - 60
        capacity[0], most[0] = 100, 0
        list(pool.map(lambda n: transport.ask(call(str(n))), range(60, 180)))
    assert refused < 40
    assert 6 <= most[0] <= 12


def held(limiter: Limiter, most: int) -> int:
    """How many turns the limiter gives out at once."""
    inside, go = threading.Semaphore(0), threading.Event()

    def take() -> None:
        with limiter.turn(1):
            inside.release()
            go.wait()

    threads = [threading.Thread(target=take) for _ in range(most)]
    for thread in threads:
        thread.start()
    count = 0
    while inside.acquire(timeout=0.03):
        count += 1
    go.set()
    for thread in threads:
        thread.join()
    return count


def test_halved_once_a_round_and_one_more_a_round(timeline: Timeline) -> None:
    limiter = Limiter(8, sleep=timeline.sleep, clock=timeline.clock)
    assert held(limiter, 12) == 8
    with limiter.turn(1) as turn:
        for _ in range(8):
            limiter.shrink(turn)  # eight refusals of one round
    assert held(limiter, 12) == 4
    for _ in range(8):
        with limiter.turn(1) as turn:
            limiter.shrink(turn)
    assert held(limiter, 12) == 1
    limiter.grow()
    assert held(limiter, 12) == 2
    for _ in range(200):
        limiter.grow()
    assert held(limiter, 12) == 8


@pytest.mark.parametrize(
    ("limits", "tokens", "seconds"),
    [
        ({}, 500, 0),
        ({"requests_per_minute": 120}, 500, 0.5),
        ({"tokens_per_minute": 60_000}, 500, 0.5),
        ({"requests_per_minute": 60, "tokens_per_minute": 60_000}, 500, 1),
    ],
)
def test_requests_are_spaced_evenly_by_a_known_limit(
    limits: dict[str, float], tokens: int, seconds: float, timeline: Timeline
) -> None:
    limiter = Limiter(4, sleep=timeline.sleep, clock=timeline.clock, **limits)
    sent: list[float] = []
    for _ in range(5):
        with limiter.turn(tokens):
            sent.append(timeline.now - 1000)
    assert sent == pytest.approx([seconds * n for n in range(5)])


@pytest.mark.parametrize("slowed_by", ["pace", "pause", "nothing"])
def test_only_a_rate_limit_that_is_used_up_holds_requests_back(slowed_by: str, timeline: Timeline) -> None:
    limiter = Limiter(
        4,
        requests_per_minute=60 if slowed_by == "pace" else None,
        sleep=timeline.sleep,
        clock=timeline.clock,
    )
    if slowed_by == "pause":
        limiter.pause(5.0)
    for _ in range(3):
        with limiter.turn(100) as turn:
            assert not turn.is_held_back
    assert timeline.now - 1000 == pytest.approx({"pace": 2, "pause": 5, "nothing": 0}[slowed_by])


@pytest.mark.parametrize(("seconds", "waited"), [(LONGEST_WAIT, LONGEST_WAIT), (LONGEST_WAIT + 0.001, 0)])
def test_a_limit_is_waited_for_up_to_the_longest_wait(
    seconds: float, waited: float, timeline: Timeline
) -> None:
    limiter = Limiter(4, sleep=timeline.sleep, clock=timeline.clock)
    with limiter.turn(100) as turn:
        limiter.learn(turn, {TOKENS: Quota(remaining=0, whole_after=seconds)})
    with limiter.turn(1):
        assert timeline.now - 1000 == pytest.approx(waited)


@pytest.mark.parametrize("late", [False, True])
def test_of_two_answers_the_one_to_the_later_request_counts(late: bool, timeline: Timeline) -> None:
    """Answers overtake each other: the earlier one does not know what was sent meanwhile."""
    limiter = Limiter(4, sleep=timeline.sleep, clock=timeline.clock)
    with limiter.turn(10) as first, limiter.turn(10) as second:
        answers = [
            (first, Quota(remaining=90, whole_after=60)),
            (second, Quota(remaining=30, whole_after=60)),
        ]
        for turn, quota in reversed(answers) if late else answers:
            limiter.learn(turn, {TOKENS: quota})
    with limiter.turn(30) as turn:
        assert not turn.is_held_back
    with limiter.turn(1) as turn:
        assert turn.is_held_back


def test_a_request_that_is_held_back_stays_so_while_it_waits_for_more(timeline: Timeline) -> None:
    limiter = Limiter(4, sleep=timeline.sleep, clock=timeline.clock)
    with limiter.turn(100) as turn:
        limiter.learn(turn, {TOKENS: Quota(remaining=50, whole_after=10)})

    def wait(seconds: float) -> None:
        if not timeline.waits:
            limiter.pause(seconds + 20)  # another worker is told so meanwhile
        timeline.sleep(seconds)

    limiter._sleep = wait
    with limiter.turn(50) as turn:
        assert not turn.is_held_back  # so much is left
    with limiter.turn(1) as turn:
        assert turn.is_held_back
    assert timeline.now - 1000 == pytest.approx(30)
    with limiter.turn(1) as turn:
        assert not turn.is_held_back


def test_a_known_pace_is_kept_without_a_word(
    make: Make, judge: FakeJudge, timeline: Timeline, said: list[str]
) -> None:
    transport = make(requests_per_minute=60)
    for number in range(3):
        transport.ask(call(str(number)))
    assert (said, timeline.now) == ([], 1002)


def test_a_known_limit_holds_for_all_workers(make: Make, judge: FakeJudge, timeline: Timeline) -> None:
    transport = make(workers=6, requests_per_minute=600)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: transport.ask(call(str(n))), range(30)))
    assert timeline.now - 1000 >= 2.9 - 1e-6


class Bucket:
    """A provider's rate limit: it tells what is left with every answer, and refuses what goes beyond."""

    def __init__(self, timeline: Timeline, counted: str, limit: float, a_second: float) -> None:
        self.refusals, self.used = 0, 0
        self._timeline, self._counted = timeline, counted
        self._limit, self._a_second = limit, a_second
        self._level, self._at = limit, timeline.clock()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        cost = 1 if self._counted == "requests" else request.body["max_tokens"] + len(request.prompt) // 4
        with self._lock:
            now = self._timeline.clock()
            self._level = min(self._limit, self._level + (now - self._at) * self._a_second)
            self._at = now
            is_refused = cost > self._level
            self.refusals += is_refused
            self._level -= 0 if is_refused else cost
            self.used += 0 if is_refused else cost
            headers = self._headers()
        time.sleep(0.002)
        answer = TOO_MANY if is_refused else OK
        return replace(answer, headers={**answer.headers, **headers})

    def _headers(self) -> dict[str, str]:
        until_whole = (self._limit - self._level) / self._a_second
        return {
            f"x-ratelimit-limit-{self._counted}": f"{self._limit:g}",
            f"x-ratelimit-remaining-{self._counted}": f"{int(self._level)}",
            f"x-ratelimit-reset-{self._counted}": f"{until_whole // 60:.0f}m{until_whole % 60:.3f}s",
        }


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize(("counted", "limit", "a_second"), [("requests", 20, 10), ("tokens", 10_000, 2_000)])
def test_what_is_left_of_a_rate_limit_is_not_exceeded(
    make: Make, judge: FakeJudge, timeline: Timeline, counted: str, limit: int, a_second: int, workers: int
) -> None:
    """Nobody has to set the limit: a hundred calls take about the time that it needs, and none is refused.

    Of requests that overtake each other, the answer to one does not know the other: with eight workers, some are
    refused, and more on a busy machine. Without any knowledge of the limit it would be most of them.
    """
    bucket = judge.always = Bucket(timeline, counted, limit, a_second)
    transport = make(workers=workers)
    transport.ask(call("first", max_tokens=500))  # as the preflight does
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda n: transport.ask(call(str(n), max_tokens=500)), range(99)))
    needed, taken = (bucket.used - limit) / a_second, timeline.now - 1000
    assert needed > 7
    assert needed * 0.99 <= taken
    if workers == 1:
        assert (bucket.refusals, taken <= needed * 1.3 + 1) == (0, True)
    else:
        assert bucket.refusals <= 40


def test_a_refusal_that_tells_the_time_by_its_rate_limit_is_waited_for(
    make: Make, judge: FakeJudge, timeline: Timeline, said: list[str]
) -> None:
    """Azure OpenAI sometimes says so instead of Retry-After."""
    transport = make()
    for number in range(2):
        judge.faults.append(replace(TOO_MANY, headers={"x-rate-limit-reset-tokens": "55"}))
        transport.ask(call(str(number)))
    assert 110 <= timeline.now - 1000 < 114
    assert len([sentence for sentence in said if "rate limit is nearly used up" in sentence]) == 1


def test_a_limit_that_takes_too_long_is_left_to_the_endpoint(
    make: Make, judge: FakeJudge, timeline: Timeline
) -> None:
    """Nobody waits a day for requests of a day; the endpoint's own refusal says how to go on."""
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "24h0m0s"}
    judge.always = replace(OK, headers={**OK.headers, **headers})
    transport = make()
    for text in ("one", "two"):
        transport.ask(call(text))
    assert timeline.now == 1000


# The end


def test_closing_ends_calls_in_flight_and_waiting_ones(judge: FakeJudge) -> None:
    """Nobody waits for a slow endpoint, or out a pause, after the run has ended."""
    transport = Transport(Endpoint("openai", judge.url, KEY, "m", workers=2), Notebook())
    judge.faults.append(error(429, "429", "", retry_after="100"))
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(failure, transport, call("first"))]
        while not judge.requests and not asked[0].done():
            time.sleep(0.001)
        time.sleep(0.05)  # the pause begins
        asked += [pool.submit(failure, transport, call(str(n))) for n in range(2)]
        began = time.monotonic()
        transport.close()
        assert {each.result().code for each in asked} == {NOT_RUN}
        assert time.monotonic() - began < 1
    assert failure(transport).code == NOT_RUN
    transport.close()


def test_closing_cancels_what_is_under_way(judge: FakeJudge) -> None:
    transport = Transport(Endpoint("openai", judge.url, KEY, "m"), Notebook())
    judge.latency = 0.5
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(failure, transport)
        while not judge.requests and not asked.done():
            time.sleep(0.001)
        began = time.monotonic()
        transport.close()
        assert asked.result().code == NOT_RUN
        assert time.monotonic() - began < 0.3
    judge.latency = 0.0
    time.sleep(0.4)


def test_usage_counts_every_request_and_every_token(make: Make, judge: FakeJudge) -> None:
    judge.always = lambda request: completion('{"n": 1}', request)
    judge.faults.extend([Answer(500), completion("{", finish="length")])
    transport = make()
    answer = transport.ask(call())
    usage = transport.usage()
    assert (usage.requests, usage.prompt_tokens, usage.completion_tokens) == (3, 6, 3)
    assert (answer.attempts, answer.prompt_tokens, answer.completion_tokens) == (3, 6, 3)


def test_a07_replies_while_the_filter_was_down_are_kept_and_counted(make: Make, judge: FakeJudge) -> None:
    case = next(each for each in CASES if each.id == "a07_filter_down")
    judge.always = case.answer()
    transport = make()
    transport.ask(call())
    assert transport.adaptations == ("Replies that came while the provider's content filter was down: 1.",)
