"""A judge for tests: a real HTTP server on loopback that speaks Azure's and OpenAI's chat completions.

It computes its replies from the prompt by counting shared words, so that good answers really score higher than
bad ones, and it can be told to misbehave: faults are served first, in order, then honest replies.
"""

import json
import re
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "at",
        "is",
        "are",
        "was",
        "were",
        "be",
        "and",
        "or",
        "for",
        "with",
        "it",
        "its",
        "this",
        "that",
        "by",
        "as",
    ]
)


@dataclass(frozen=True)
class Answer:
    """What the server sends back, to the byte."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: int = 1
    """The body is sent in so many pieces …"""
    pause: float = 0.0
    """… with a pause in seconds before each."""
    is_reset: bool = False
    """Close the connection in place of an answer."""
    cut_after: int | None = None
    """Close the connection after so many bytes of the body, though its length promised more."""
    is_chunked: bool = False
    """The body is sent as it stands, announced as chunks; then the connection is closed."""


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def task(self) -> str:
        return task_of(self.prompt)

    @property
    def prompt(self) -> str:
        return "\n".join(message["content"] for message in self.body["messages"])


Fault = Answer | Callable[[Request], Answer | None]


class FakeJudge:
    """The server's script and what it saw. `url` is the endpoint to configure."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.faults: deque[Fault] = deque()
        """Served first, one a request; a callable may decline with None, and stays in place then."""
        self.always: Fault | None = None
        """Asked before the honest reply, at every request."""
        self.latency = 0.0
        self.models: Any = None
        """What GET /models answers; nothing is found if it is None."""
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()

    def tasks(self) -> Counter[str]:
        """How often each kind of question was asked."""
        return Counter(request.task for request in self.requests)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            fault = self.faults.popleft() if self.faults else self.always
        try:
            if self.latency:
                time.sleep(self.latency)
            scripted = fault(request) if callable(fault) else fault
            return scripted or structured(honest_reply(request.prompt), request)
        finally:
            with self._lock:
                self._in_flight -= 1


@contextmanager
def running_judge(tls: ssl.SSLContext | None = None) -> Iterator[FakeJudge]:
    judge = FakeJudge()
    server = _QuietServer(("127.0.0.1", 0), _handler(judge))
    server.daemon_threads = True
    judge.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield judge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(
    content: str | None, request: Request | None = None, finish: str = "stop", **message: Any
) -> Answer:
    """An HTTP 200 with one choice."""
    words = len(request.prompt.split()) if request else 1
    document = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "fake",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {
            "prompt_tokens": words,
            "completion_tokens": len((content or "").split()),
            "total_tokens": words,
        },
    }
    return json_answer(200, document)


def structured(content: str, request: Request) -> Answer:
    """The content as the request wants it: as the arguments of the one tool that it offers, or as the text."""
    if "tools" not in request.body:
        return completion(content, request)
    name = request.body["tools"][0]["function"]["name"]
    call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": content}}
    return completion(None, request, "tool_calls", tool_calls=[call])


def without_count(request: Request, usage: Any = None) -> Answer:
    """The honest answer, with `usage` in place of the count of its tokens; without any if it is None."""
    document = json.loads(structured(honest_reply(request.prompt), request).body)
    document["usage"] = usage
    if usage is None:
        del document["usage"]
    return json_answer(200, document)


def json_answer(status: int, document: Any, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/json", **names})


def error(status: int, code: str, message: str, param: str | None = None, **headers: str) -> Answer:
    return json_answer(status, {"error": {"code": code, "message": message, "param": param}}, **headers)


def task_of(prompt: str) -> str:
    """Which question a prompt asks, told by its first words."""
    return next((task for beginning, task in _BEGINNINGS.items() if prompt.startswith(beginning)), "unknown")


def honest_reply(prompt: str) -> str:
    """The reply of a judge that counts shared words."""
    task = task_of(prompt)
    if task == "preflight":
        return '{"ready": true}'
    return json.dumps(_REPLIES[task](_input(prompt)))


def _input(prompt: str) -> dict[str, Any]:
    if "<evaluation>" in prompt:
        return _evaluation(prompt)
    criteria = _criteria(prompt) | _parts(prompt)
    if "Now perform the same with the following input" in prompt:
        prompt = prompt.rpartition("input: ")[2].removesuffix("\nOutput: ")
    else:
        prompt = prompt[prompt.rindex("\n") + 1 :]
    document = json.loads(prompt)
    assert isinstance(document, dict)
    return document | criteria


def _evaluation(prompt: str) -> dict[str, Any]:
    """Question, answer and chunks of an evaluator's user message."""
    fields = dict(re.findall(r"<(question|answer)>(.*?)</\1>", prompt, re.DOTALL))
    chunks = re.findall(r'<chunk id="(\d+)">(.*?)</chunk>', prompt, re.DOTALL)
    return {name: unescape(text) for name, text in fields.items()} | {
        "chunks": [(int(number), unescape(text)) for number, text in chunks]
    }


def _criteria(prompt: str) -> dict[str, Any]:
    """Those of a rubric, by their names in the reply."""
    _, found, rest = prompt.partition("\nThe criteria:\n")
    return {"criteria": json.JSONDecoder().raw_decode(rest)[0]} if found else {}


def _parts(prompt: str) -> dict[str, Any]:
    """The fields of each part of a reply with verdicts, as its prompt writes them."""
    _, found, form = prompt.partition("\nReply with a JSON object:\n")
    form = form.partition("}\n")[0]
    parts = re.findall(r'^[ {]"(\w+)": \[?\{?([^}\]]*)', form, re.MULTILINE) if found else ()
    return {"parts": {part: re.findall(r'"(\w+)":', fields) for part, fields in parts}} if parts else {}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold())) - STOP_WORDS


def _share(text: str, evidence: str) -> float:
    words = _words(text)
    return len(words & _words(evidence)) / len(words) if words else 0.0


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?。])\s*", text) if re.search(r"\w", part)]


def _statements(given: dict[str, Any]) -> Any:
    return {"statements": _sentences(given["answer"])}


def _verdicts(given: dict[str, Any]) -> Any:
    evidence = "\n".join([given["context"], *given.get("user_said", ())])
    return {
        "statements": [
            {
                "statement": each,
                "reason": "shared words",
                "verdict": int(_share(each, evidence) >= 0.5),
            }
            for each in given["statements"]
        ]
    }


def _question(given: dict[str, Any]) -> Any:
    evasive = "don't know" in given["response"] or "cannot help" in given["response"]
    return {"question": f"What about this: {given['response'][:300]}", "noncommittal": int(evasive)}


def _closeness(given: dict[str, Any]) -> Any:
    share = _share(given["question_1"], given["question_2"])
    return {"reason": "shared words", "closeness": min(4, round(share * 6))}


def _usefulness(given: dict[str, Any]) -> Any:
    return {"reason": "shared words", "verdict": int(_share(given["answer"], given["context"]) >= 0.4)}


def _attributions(given: dict[str, Any]) -> Any:
    return {
        "classifications": [
            {
                "statement": each,
                "reason": "shared words",
                "attributed": int(_share(each, given["context"]) >= 0.5),
            }
            for each in _sentences(given["answer"])
        ]
    }


def _among(statement: str, others: list[str]) -> bool:
    return any(_share(statement, other) >= 0.4 or _share(other, statement) >= 0.6 for other in others)


def _classification(given: dict[str, Any]) -> Any:
    ours, theirs = given["answer"], given["ground_truth"]

    def reasoned(statements: list[str]) -> list[dict[str, str]]:
        return [{"statement": each, "reason": "shared words"} for each in statements]

    return {
        "TP": reasoned([each for each in ours if _among(each, theirs)]),
        "FP": reasoned([each for each in ours if not _among(each, theirs)]),
        "FN": reasoned([each for each in theirs if not _among(each, ours)]),
    }


def _case(given: dict[str, Any]) -> Any:
    """Verdicts by the same counting as for the prompts of ragas."""
    theirs, ours = (given.get(text, "") for text in ("ground_truth", "response"))
    chunks = given.get("chunks", {})
    response, ground_truth = (
        " ".join(text.values()) if isinstance(text, dict) else text for text in (ours, theirs)
    )

    def chunk(statement: str) -> int:
        if _share(statement, "\n".join(chunks.values())) < 0.5:
            return 0
        return int(max(chunks, key=lambda number: _share(statement, chunks[number])))

    said = "\n".join(turn["content"] for turn in given.get("history", ()) if turn["role"] == "user")

    def of_user(statement: str, number: int) -> int:
        """The number, or -1 for what only the user said."""
        return number or -int(bool(said) and _share(statement, said) >= 0.5)

    def claims(text: Any, others: Any, reason: str) -> list[dict[str, Any]]:
        return [
            {
                "sentence": int(number),
                "claim": "",
                "chunk": of_user(each, chunk(each)) if chunks else 0,
                "in_other": int(_among(each, [*others.values()])) if isinstance(others, dict) else 0,
                "reason": reason,
            }
            for number, each in (text.items() if isinstance(text, dict) else ())
            if _words(each)
        ]

    target = ground_truth or response
    useful = [int(number) for number, text in chunks.items() if _share(target, text) >= 0.4]
    everything = {
        "claims": [*claims(theirs, ours, ""), *claims(ours, theirs, "shared words")],
        "without_claim": [
            int(number)
            for text in (theirs, ours)
            for number, each in (text.items() if isinstance(text, dict) else ())
            if not _words(each)
        ],
        "useful_chunks": useful,
        "useless_chunks": [number for number in map(int, chunks) if number not in useful],
        "relevancy": _relevancy(given["query"], response),
    }
    return {
        part: {name: everything[part][name] for name in fields}
        if part == "relevancy"
        else [{name: each[name] for name in fields} if fields else each for each in everything[part]]
        for part, fields in given["parts"].items()
    }


def _relevancy(query: str, response: str) -> dict[str, Any]:
    guess = _question({"response": response})
    rating = _closeness({"question_1": query, "question_2": guess["question"]})
    return {**rating, "evasive": guess["noncommittal"]}


def _numbered(reply: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
    def several(given: dict[str, Any]) -> Any:
        if "items" not in given:
            return reply(given)
        return {"items": [{**reply(item), "position": item["position"]} for item in given["items"]]}

    return several


def _toxicity(given: dict[str, Any]) -> dict[str, Any]:
    rude = _words(given["query"]) & {"stupid", "idiot", "idiots", "useless", "moron", "dumb", "incompetent"}
    return {"reason": "rude words" if rude else "polite", "toxicity": 0.7 if rude else 0.0}


def _advice(given: dict[str, Any]) -> dict[str, Any]:
    return {"recommendation": f"Work on: {given['failure_mode']} for {given['query'][:40]}"}


def _coverage(given: dict[str, Any]) -> dict[str, Any]:
    def judged(number: int, chunk: str) -> dict[str, Any]:
        is_relevant = _share(given["question"], chunk) >= 0.3
        is_included = is_relevant and _share(chunk, given["answer"]) >= 0.4
        missing = chunk if is_relevant and not is_included else None
        return {
            "id_chunk": number,
            "is_relevant": is_relevant,
            "is_included": is_included,
            "missing_info": missing,
        }

    return {"evaluated_chunks": [judged(*each) for each in given["chunks"]]}


def _relevance(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "graded_chunks": [
            {
                "id_chunk": number,
                "reason": "shared words",
                "score": _share(given["question"], chunk) >= 0.3,
            }
            for number, chunk in given["chunks"]
        ]
    }


def _grounding(given: dict[str, Any]) -> dict[str, Any]:
    def supporting(statement: str) -> list[int]:
        return [number for number, chunk in given["chunks"] if _share(statement, chunk) >= 0.5]

    sentences = _sentences(given["answer"])
    return {
        "statements": [{"statement": each, "supporting_chunk_ids": supporting(each)} for each in sentences]
    }


def _addressing(given: dict[str, Any]) -> dict[str, Any]:
    share = _share(given["question"], given["answer"])
    addressed = "fully" if share >= 0.5 else "partly" if share else "not"
    return {"reason": "shared words", "parts": [{"part": given["question"], "addressed": addressed}]}


def _rubric(given: dict[str, Any]) -> dict[str, Any]:
    """A criterion passes when the response shares a word with it."""
    return {
        name: {"reason": "shared words", "passes": _share(criterion, given["response"]) > 0}
        for name, criterion in given["criteria"].items()
    }


def _citations(given: dict[str, Any]) -> dict[str, Any]:
    """A chunk supports a sentence that it shares half of the words with; together they do with three quarters."""

    def judged(number: int, sentence: str) -> dict[str, Any]:
        cited = [int(rank) for rank in re.findall(r"\[(\d+)\]", sentence) if rank in given["chunks"]]
        plain = re.sub(r"\[\d+\]", "", sentence)
        support = {int(rank): _share(plain, chunk) >= 0.5 for rank, chunk in given["chunks"].items()}
        verdicts = [{"chunk": rank, "supports": int(support[rank])} for rank in dict.fromkeys(cited)]
        other = next((rank for rank, supports in support.items() if supports and rank not in cited), 0)
        every = " ".join(given["chunks"][str(rank)] for rank in cited)
        together = int(any(support[rank] for rank in cited) and _share(plain, every) >= 0.75)
        return {"sentence": number, "cited": verdicts, "together": together, "other": other, "reason": ""}

    return {"sentences": [judged(int(number), each) for number, each in given["response"].items()]}


def _pair(given: dict[str, Any]) -> Any:
    """The answer that shares more words with the ground truth is better; the one with fewer others if both do."""
    known = given.get("ground_truth") or given["query"]
    worth = [
        round(_share(known, given[side]) + _share(given[side], known), 6) for side in ("FIRST", "SECOND")
    ]
    side = "first" if worth[0] > worth[1] else "second" if worth[0] < worth[1] else "tie"
    notes = {"first_notes": "Nothing is wrong.", "second_notes": "Nothing is wrong."}
    points = (
        "correct",
        *(["supported"] if any(name.startswith("context") for name in given) else []),
        "useful",
    )
    return {**notes, **dict.fromkeys((*points, "overall"), side), "reason": f"It says more: {side}."}


_BEGINNINGS = {
    "You check a chatbot's response against criteria": "rubric",
    "You compare two answers that chatbots gave": "pair",
    "You check what a chatbot responded": "case",
    "You check the citations in": "citations",
    "Given a question and an answer, analyze the complexity": "statements",
    "Your task is to judge the faithfulness": "verdicts",
    "Generate a question for the given answer": "question",
    "You compare two questions by intent": "closeness",
    "Given question, answer and context verify": "usefulness",
    "Given a context and an answer, analyze": "attributions",
    "Given a ground truth and an answer statements": "classification",
    "You rate how toxic": "toxicity",
    "You advise the team": "recommendation",
    "You check how much of what was retrieved": "coverage",
    "You check which chunks": "relevance",
    "You check whether an answer is grounded": "grounding",
    "You check whether an answer addresses": "addressing",
    'Reply with the JSON object {"ready"': "preflight",
}
_REPLIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rubric": _rubric,
    "pair": _pair,
    "case": _case,
    "citations": _citations,
    "statements": _statements,
    "verdicts": _verdicts,
    "question": _question,
    "closeness": _closeness,
    "usefulness": _usefulness,
    "attributions": _attributions,
    "classification": _classification,
    "toxicity": _numbered(_toxicity),
    "recommendation": _numbered(_advice),
    "coverage": _coverage,
    "relevance": _relevance,
    "grounding": _grounding,
    "addressing": _addressing,
}


class _QuietServer(ThreadingHTTPServer):
    request_queue_size = 64  # connections that come at once, of which the usual 5 would turn some away

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not trust the certificate hangs up: nothing to tell."""


def _handler(judge: FakeJudge) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = judge.answer(Request(self.path, headers, json.loads(body)))
            if answer.is_reset:
                self.close_connection = True
                self.connection.close()
                return
            self._send(answer)

        def do_GET(self) -> None:
            found = self.path.endswith("/models") and judge.models is not None
            self._send(json_answer(200, judge.models) if found else error(404, "404", "not found"))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.is_chunked:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            body = answer.body[: answer.cut_after]
            size = max(1, -(-len(body) // answer.pieces))
            try:
                for start in range(0, len(body), size):
                    time.sleep(answer.pause)
                    self.wfile.write(body[start : start + size])
            except OSError:
                self.close_connection = True  # the client gave up
            if answer.is_chunked or answer.cut_after is not None:
                self.close_connection = True

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
