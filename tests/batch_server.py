"""A judge that takes batches: a real HTTP server on loopback with files, batches and single requests.

Its time is virtual: a batch goes on only when the test says so, or when it is looked at, if `is_fast`.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler
from typing import Any

from fake_judge import Answer, FakeJudge, Request, _QuietServer, error, json_answer, running_judge


@dataclass
class Batch:
    """One batch, in the provider's memory."""

    id: str
    input_file: str
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    status: str = "in_progress"
    output_file: str | None = None
    error_file: str | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    counts: Any = None

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id, "object": "batch", "endpoint": self.body["endpoint"], "status": self.status,
            "input_file_id": self.input_file, "completion_window": "24h", "metadata": self.metadata,
            "output_file_id": self.output_file, "error_file_id": self.error_file, "created_at": 1, "expires_at": None,
            "errors": {"object": "list", "data": self.errors} if self.errors else None, "request_counts": self.counts,
        }  # fmt: skip


@dataclass(frozen=True)
class Wrong:
    """One wrong answer of the server."""

    event: str
    """The request that gets it."""
    kind: str
    """One of KINDS."""
    is_done: bool = True
    """Whether the server does what it was asked for, though it says otherwise."""
    after: int = 0
    """The number of such requests that are answered well before."""


def _with(answer: Answer, **members: Any) -> Answer:
    """With other members in its document, or in all that it lists."""
    document = json.loads(answer.body)
    for each in document.get("data", [document]):
        each.update(members)
    return json_answer(answer.status, document)


def _half(answer: Answer) -> Answer:
    lines = answer.body.splitlines(keepends=True)
    return Answer(answer.status, b"".join(lines[: len(lines) // 2]), answer.headers)


def _cut_lines(answer: Answer) -> Answer:
    """Every second line lacks its end."""
    lines = answer.body.splitlines()
    cut = [line[: len(line) // 2] if number % 2 else line for number, line in enumerate(lines)]
    return Answer(answer.status, b"\n".join(cut), answer.headers)


KINDS: Mapping[str, Callable[[Answer], Answer]] = {
    "404": lambda answer: error(404, "not_found", "no such thing"),
    "500": lambda answer: error(500, "server_error", "oops"),
    "empty": lambda answer: Answer(200),
    "empty object": lambda answer: json_answer(200, {}),
    "null id": lambda answer: _with(answer, id=None),
    "null files": lambda answer: _with(answer, output_file_id=None, error_file_id=None),
    "half": _half,
    "cut file": lambda answer: Answer(200, answer.body[: len(answer.body) * 2 // 3], answer.headers),
    "cut lines": _cut_lines,
    "late": lambda answer: Answer(answer.status, answer.body, answer.headers, pause=1.0),
    "lost": lambda answer: Answer(is_reset=True),
}
"""What becomes of a good answer."""


class BatchServer:
    """What the server was sent, and what it is to do with it."""

    def __init__(self, judge: FakeJudge) -> None:
        self.judge = judge
        """Makes the replies, and counts what is billed: a line as well as a single request."""
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.uploads: list[dict[str, str]] = []
        """The fields of every form but the file."""
        self.deleted: list[str] = []
        self.lines: list[dict[str, Any]] = []
        """Every line that was answered with a completion, and is billed."""
        self.calls: list[str] = []
        """Method and path of every request about files and batches."""
        self.headers: list[dict[str, str]] = []
        self.is_fast = False
        """A batch is completed when it is looked at."""
        self.takes_single = True
        self.most_lines = 50_000
        self.most_bytes = 200_000_000
        self.queue: int | None = None
        """How many lines may wait at a time; more are refused after their batch was created."""
        self.page = 100
        self.arrange: Callable[[list[str]], list[str]] = lambda lines: lines
        """What becomes of the lines of an output file."""
        self.hook: Callable[[str], Answer | None] = lambda event: None
        """Called with what is about to happen, and may answer in its place."""
        self.wrong: list[Wrong] = []
        """The answers that are still to be wrong, each once."""
        self.counted: Callable[[dict[str, int]], Any] = lambda counts: counts
        """What becomes of the numbers of completed and failed requests."""
        self._lock = threading.RLock()
        self._numbers: Counter[str] = Counter()

    def name(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}-{self._numbers[kind]}"

    def open(self) -> list[Batch]:
        return [batch for batch in self.batches.values() if batch.status in ("in_progress", "cancelling")]

    def end(self, status: str = "completed", done: int | None = None) -> None:
        """All open batches end so, with `done` lines answered; with all unless given."""
        for batch in self.open():
            self.end_one(batch, status, done)

    def end_one(self, batch: Batch, status: str = "completed", done: int | None = None) -> None:
        answered = batch.lines if done is None else batch.lines[:done]
        good, bad = [], []
        for line in answered:
            answer = self.judge.answer(Request("", {}, line["body"]))
            body = json.loads(answer.body) if answer.body[:1] == b"{" else answer.body.decode()
            result = {"id": "r", "custom_id": line["custom_id"], "error": None,
                      "response": {"status_code": answer.status, "request_id": "q", "body": body}}  # fmt: skip
            (good if answer.status == 200 else bad).append(json.dumps(result))
            if answer.status == 200:
                self.lines.append(line)
        code = {"expired": "batch_expired", "cancelled": "batch_cancelled"}.get(status)
        if code:
            bad += [
                json.dumps({"id": "r", "custom_id": line["custom_id"], "response": None,
                            "error": {"code": code, "message": "not run"}})
                for line in batch.lines[len(answered):]
            ]  # fmt: skip
        batch.output_file = self.keep("out", "\n".join(self.arrange(good)).encode()) if good else None
        batch.error_file = self.keep("err", "\n".join(bad).encode())
        batch.status = status
        batch.counts = self.counted(
            {"total": len(batch.lines), "completed": len(good), "failed": len(answered) - len(good)}
        )

    def keep(self, kind: str, content: bytes) -> str:
        name = self.name(kind)
        self.files[name] = content
        return name

    # Requests

    def answer(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> Answer:
        with self._lock:
            self.calls.append(f"{method} {path}")
            self.headers.append(headers)
            event = f"{method} {re.sub(r'(file|out|err|batch)-[0-9]+', '*', path)}"
            scripted = self.hook(event)
            if scripted:
                return scripted
            wrong = self._wrong_at(event)
            if wrong is None:
                return self._do(method, path, query, headers, body)
            good = self._do(method, path, query, headers, body) if wrong.is_done else Answer()
            return KINDS[wrong.kind](good)

    def _wrong_at(self, event: str) -> Wrong | None:
        for place, wrong in enumerate(self.wrong):
            if wrong.event == event:
                if wrong.after:
                    self.wrong[place] = replace(wrong, after=wrong.after - 1)
                    return None
                return self.wrong.pop(place)
        return None

    def _do(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> Answer:
        match method, *path.strip("/").split("/"):
            case "POST", "files":
                return self._upload(headers, body)
            case "GET", "files", name if name in self.files:
                return json_answer(200, {"id": name, "object": "file", "status": "processed"})
            case "GET", "files", name, "content" if name in self.files:
                return Answer(200, self.files[name])
            case "DELETE", "files", name if name in self.files:
                del self.files[name]
                self.deleted.append(name)
                return json_answer(200, {"id": name, "deleted": True})
            case "POST", "batches":
                return self._create(json.loads(body))
            case "GET", "batches":
                return self._list(query.get("after"))
            case "GET", "batches", name if name in self.batches:
                if self.is_fast:
                    self.end()
                return json_answer(200, self.batches[name].document())
            case "POST", "batches", name, "cancel" if name in self.batches:
                if self.batches[name].status == "in_progress":
                    self.batches[name].status = "cancelling"
                return json_answer(200, self.batches[name].document())
        return error(404, "not_found", "there is no such thing")

    def _upload(self, headers: dict[str, str], body: bytes) -> Answer:
        message = message_from_bytes(
            b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body
        )
        fields = {}
        content = b""
        for part in message.get_payload():  # type: ignore[union-attr]
            name = re.search(r'name="([^"]*)"', str(part["Content-Disposition"]))  # type: ignore[index]
            payload = part.get_payload(decode=True)  # type: ignore[union-attr]
            assert name is not None
            if name[1] == "file":
                content = payload  # type: ignore[assignment]
            else:
                fields[name[1]] = payload.decode()  # type: ignore[union-attr]
        assert len(content) <= self.most_bytes
        self.uploads.append(fields)
        name_ = self.keep("file", content)
        return json_answer(200, {"id": name_, "object": "file", "bytes": len(content), "status": "processed"})

    def _create(self, body: dict[str, Any]) -> Answer:
        content = self.files[body["input_file_id"]]
        lines = (
            [] if content.startswith(b"\xef\xbb\xbf") else [json.loads(line) for line in content.splitlines()]
        )
        batch = Batch(self.name("batch"), body["input_file_id"], body.get("metadata") or {}, lines, body=body)
        waiting = sum(len(each.lines) for each in self.open())
        if not lines:
            batch.status, batch.errors = (
                "failed",
                [{"code": "invalid_json_line", "message": "no JSON", "line": 1}],
            )
        elif self.queue is not None and waiting + len(lines) > self.queue:
            batch.status = "failed"
            batch.errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
        names = [line["custom_id"] for line in lines]
        assert len(set(names)) == len(names) <= self.most_lines
        assert len({line["body"]["model"] for line in lines}) <= 1
        assert all(line["url"] == body["endpoint"] and line["method"] == "POST" for line in lines)
        self.batches[batch.id] = batch
        answer = json_answer(200, batch.document())
        return self.hook("created") or answer

    def _list(self, after: str | None) -> Answer:
        names = list(reversed(self.batches))
        names = names[names.index(after) + 1 :] if after else names
        page = [self.batches[name].document() for name in names[: self.page]]
        return json_answer(200, {"object": "list", "data": page, "has_more": len(names) > self.page})


@contextmanager
def running_batches() -> Iterator[BatchServer]:
    with running_judge() as judge:
        batches = BatchServer(judge)
        server = _QuietServer(("127.0.0.1", 0), _handler(batches))
        server.daemon_threads = True
        batches.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield batches
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _handler(batches: BatchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self._body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            path, _, query = self.path.partition("?")
            path = re.sub(r"^/(openai|v1)", "", path)
            if path.endswith("/chat/completions"):
                single = batches.judge.answer(Request(self.path, headers, json.loads(body)))
                answer = (
                    single
                    if batches.takes_single
                    else error(400, "OperationNotSupported", "no such operation")
                )
            else:
                pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
                answer = batches.answer(self.command, path, pairs, headers, body)
            time.sleep(answer.pause)
            if answer.is_reset:
                self.close_connection = True
                self.connection.close()
                return
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body[: answer.cut_after])
            except OSError:
                self.close_connection = True
            if answer.cut_after is not None:
                self.close_connection = True

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - http.server looks for these names

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
