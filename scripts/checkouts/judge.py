"""The judge that both checkouts ask: one HTTP server on loopback, whose replies depend on the request alone.

It replies as `tests/fake_judge.py` of the new checkout does. The API key of a request says which side and scenario it
belongs to, so that all of them can use the server at the same time under the same address, which is part of the keys
of stored replies.
"""

import importlib.util
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, cast

_LEFT_OUT = frozenset({"host", "connection", "content-length"})
"""Headers that belong to the connection."""


class Conversation:
    """The requests of one scenario on one side, and what this scenario's endpoint is like."""

    def __init__(self, name: str, traits: frozenset[str]) -> None:
        self.key = sha256(name.encode()).hexdigest()[:40]
        self.traits = traits
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._times: Counter[bytes] = Counter()

    def note(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Keep a request; how often the same body came before."""
        kept = {
            name: value.replace(self.key, "<key>") for name, value in headers.items() if name not in _LEFT_OUT
        }
        request = {"path": path, "headers": kept, "body": body.decode("utf-8", "backslashreplace")}
        with self._lock:
            self._lines.append(json.dumps(request, ensure_ascii=False))
            self._times[body] += 1
            return self._times[body] - 1

    def write(self, target: Path) -> None:
        with self._lock:
            target.write_text("".join(f"{line}\n" for line in self._lines), encoding="utf-8")


class Judge:
    """The server's address, and the conversations that it holds."""

    def __init__(self, url: str, replies: ModuleType) -> None:
        self.url = url
        self.replies = replies
        self._conversations: dict[str, Conversation] = {}

    def conversation(self, name: str, traits: frozenset[str]) -> Conversation:
        begun = Conversation(name, traits)
        self._conversations[begun.key] = begun
        return begun

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        names = {name.lower(): value for name, value in headers.items()}
        key = names.get("api-key") or names.get("authorization", "").removeprefix("Bearer ")
        held = self._conversations.get(key)
        if held is None:
            return self.replies.error(401, "401", "Access denied due to invalid subscription key.")
        times = held.note(path, names, body)
        request = self.replies.Request(path, names, json.loads(body))
        return (
            self._refusal(held, request) or self._fault(request, times) or self._honest(held, request, times)
        )

    def _refusal(self, held: Conversation, request: Any) -> Any:
        """What an endpoint of this kind does not take."""
        error, body, traits = self.replies.error, request.body, held.traits
        form = body.get("response_format", {}).get("type")
        if "locked" in traits:
            return error(401, "401", "Access denied due to invalid subscription key.")
        if "no schema" in traits and form == "json_schema":
            return error(400, "BadRequest", "response_format json_schema is not supported", "response_format")
        if "no JSON mode" in traits and form == "json_object":
            return error(400, "BadRequest", "response_format json_object is not supported", "response_format")
        if "thinks" in traits and "max_tokens" in body:
            return error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead.", "max_tokens")
        if "thinks" in traits and "temperature" in body:
            return error(400, "unsupported_value", "'temperature' does not support 0.0.", "temperature")
        return None

    def _fault(self, request: Any, times: int) -> Any:
        """What a marker in the prompt asks for. Two markers: the first of this list."""
        fake, prompt = self.replies, request.prompt
        if "FAULT-filter" in prompt:
            return fake.error(400, "content_filter", "The response was filtered", "prompt")
        if "FAULT-down" in prompt:
            return fake.error(503, "503", "The service is down", retry_after_ms="5")
        if "FAULT-busy" in prompt and times == 0:
            return fake.error(429, "429", "Requests are limited", retry_after_ms="5")
        if "FAULT-cut" in prompt:
            return fake.completion('{"statements": ["One', request, "length")
        if "FAULT-refusal" in prompt:
            return fake.completion(None, request, refusal="I cannot help with that.")
        if "FAULT-prose" in prompt:
            return fake.completion("I would say that it is good.", request)
        return None

    def _honest(self, held: Conversation, request: Any, times: int) -> Any:
        fake = self.replies
        if fake.task_of(request.prompt) == "unknown":
            text = json.dumps(_example(_schema_of(request.body)))
        else:
            text = fake.honest_reply(request.prompt)
        if "varies" in held.traits:
            text = _varied(text, times)
        return fake.structured(text, request)


def _varied(text: str, times: int) -> str:
    """Another reply each time that the same is asked: verdicts turn, grades wander."""
    document = json.loads(text)
    if times % 3 == 1 and document.get("verdict") in (0, 1):
        document["verdict"] = 1 - document["verdict"]
    if "closeness" in document:
        document["closeness"] = (document["closeness"] + times) % 5
    if times % 2 and len(document.get("statements", ())) > 1:
        document["statements"] = document["statements"][:-1]
    return json.dumps(document)


def _schema_of(body: Mapping[str, Any]) -> Any:
    """Of the reply that is wanted."""
    if tools := body.get("tools"):
        return tools[0]["function"]["parameters"]
    return body.get("response_format", {}).get("json_schema", {}).get("schema", {})


def _example(schema: Mapping[str, Any]) -> Any:
    """A small value that fits a plain JSON Schema."""
    kind = schema.get("type")
    if kind == "object":
        return {name: _example(member) for name, member in schema.get("properties", {}).items()}
    return {"number": 0.5, "integer": 1, "boolean": True, "array": []}.get(kind or "", "an example")


@contextmanager
def running_judge(replies: Path) -> Iterator[Judge]:
    """A judge that replies as the module at the path says."""
    server = _Server(_loaded(replies))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.judge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _loaded(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("replies_of_the_judge", path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # connections that come at once, of which the usual 5 would turn some away

    def __init__(self, replies: ModuleType) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.judge = Judge(f"http://127.0.0.1:{self.server_address[1]}", replies)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = cast(_Server, self.server).judge.answer(self.path, dict(self.headers), body)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the client has gone

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
