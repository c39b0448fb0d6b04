"""An endpoint for chat completions and embeddings: python benchmarks/fake_endpoint.py --latency 0.2

It is a process of its own. It answers every prompt of this project, of ragas and of deepeval after a fixed or lognormal
latency with a reply of the right form, embeds texts as counts of letters, and counts what it was sent. GET /stats gives
the counts as JSON, GET /reset sets them to 0. It is one asyncio loop without a framework, and makes up the reply to a
prompt once, so that it is no bottleneck: --self-test says how many requests a second it answers without latency, and
how much later than wanted with it. With --realistic, replies are as long as those of real judges: sentences with two
parts are two statements, and reasons are sentences where a prompt asks for them.
"""

import argparse
import asyncio
import base64
import json
import math
import random
import statistics
import struct
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fake_judge import honest_reply, task_of


class Endpoint:
    def __init__(
        self, latency: float, sigma: float, seed: int, embedding_latency: float, *, is_realistic: bool = False
    ) -> None:
        self._is_realistic = is_realistic
        self._count = token_counter()
        self._latency = latency
        self._embedding_latency = embedding_latency
        self._sigma = sigma
        self._seed = seed
        self.reset()

    def reset(self) -> None:
        """All counts are 0, and the latencies are drawn anew in the same order."""
        self._random = random.Random(self._seed)
        self.requests = self.embeddings = self.bytes = self.in_flight = self.most_in_flight = 0
        self.prompt_tokens = self.reply_tokens = 0.0
        self.latency_seconds = 0.0
        self.first = self.last = 0.0

    def stats(self) -> dict[str, float]:
        """Preflights count as requests, but the span begins with the first real question."""
        return {
            "requests": self.requests,
            "embeddings": self.embeddings,
            "bytes": self.bytes,
            "prompt_tokens": self.prompt_tokens,
            "reply_tokens": self.reply_tokens,
            "most_in_flight": self.most_in_flight,
            "latency_seconds": self.latency_seconds,
            "span_seconds": self.last - self.first,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                reply = await self._answer(lines[0].split()[1], body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(reply), reply)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, body: bytes) -> bytes:
        if path.startswith("/stats"):
            return json.dumps(self.stats()).encode()
        if path.startswith("/reset"):
            self.reset()
            return b"{}"
        began = time.perf_counter()
        self.requests += 1
        self.bytes += len(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        is_embedding = path.endswith("/embeddings")
        self.embeddings += is_embedding
        seconds = self._draw(self._embedding_latency if is_embedding else self._latency)
        self.latency_seconds += seconds
        document = json.loads(body)
        if is_embedding:
            reply = json.dumps(embedding(document)).encode()
        else:
            answer = completion(document, is_realistic=self._is_realistic)
            self._bill(document, answer)
            reply = json.dumps(answer).encode()
        if not self.first and (is_embedding or task_of(_texts(document)[0]) != "preflight"):
            self.first = began
        await asyncio.sleep(max(0.0, began + seconds - time.perf_counter()))
        self.in_flight -= 1
        self.last = time.perf_counter()
        return reply

    def _bill(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count what a provider bills: texts, schemas and tools of the request, and the reply; not the preflight."""
        texts = [str(message["content"]) for message in request["messages"]]
        if task_of(texts[0]) == "preflight":
            return
        forms = [request[name] for name in ("response_format", "tools") if request.get(name)]
        texts += [json.dumps(form, separators=(",", ":")) for form in forms]
        self.prompt_tokens += sum(map(self._count, texts))
        for choice in answer["choices"]:
            message = choice["message"]
            calls = [call["function"]["arguments"] for call in message.get("tool_calls", ())]
            self.reply_tokens += sum(map(self._count, [message["content"] or "", *calls]))

    def _draw(self, latency: float) -> float:
        """Seconds; lognormal around the latency as its mean when sigma is not 0."""
        if not self._sigma:
            return latency
        return latency * self._random.lognormvariate(-(self._sigma**2) / 2, self._sigma)


def completion(body: dict[str, Any], *, is_realistic: bool = False) -> dict[str, Any]:
    """As many choices as are asked for, all the same."""
    texts = _texts(body)
    prompt, content = "\n".join(texts), _reply(texts)
    if is_realistic:
        reply = realistic(json.loads(content), texts)
        content = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if body.get("tools"):  # instructor's way of asking for a form
        call = {"name": body["tools"][0]["function"]["name"], "arguments": content}
        tools = [{"id": "1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": tools}
    count = body.get("n") or 1
    written = math.ceil(len(content) / 4) * count
    read = math.ceil(len(prompt) / 4)
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": n, "finish_reason": "stop", "message": message} for n in range(count)],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def embedding(body: dict[str, Any]) -> dict[str, Any]:
    """A vector for each text: how often each letter occurs in it."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vectors = map(_packed if body.get("encoding_format") == "base64" else _vector, texts)
    tokens = sum(math.ceil(len(text) / 4) for text in texts)
    return {
        "object": "list",
        "model": body["model"],
        "data": [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


@lru_cache(50_000)
def _packed(text: str) -> str:
    return base64.b64encode(struct.pack(f"<{_DIMENSIONS}f", *_vector(text))).decode()


def _vector(text: str) -> list[float]:
    counts = [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
    return counts + [0.0] * (_DIMENSIONS - len(counts))


_DIMENSIONS = 1536
"""As many as text-embedding-3-small has."""


def _texts(body: dict[str, Any]) -> tuple[str, ...]:
    """Ragas' older prompt for context recall has a comma where the newer one, which is known, has none."""
    texts = (str(message["content"]) for message in body["messages"])
    return tuple(
        text.replace("Given a context, and an answer", "Given a context and an answer", 1) for text in texts
    )


@lru_cache(50_000)
def _reply(texts: tuple[str, ...]) -> str:
    """To the first message that asks something known and what follows it; before it, instructor speaks of the form."""
    for start, text in enumerate(texts):
        if task_of(text) != "unknown":
            return honest_reply("\n".join(texts[start:]))
    return other_reply()


def token_counter() -> Callable[[str], float]:
    """Tokens of o200k_base, if its vocabulary is at hand; otherwise characters divided by four."""
    try:
        import tiktoken

        vocabulary = tiktoken.get_encoding("o200k_base")
    except Exception:  # noqa: BLE001 - not installed, or without the file that it downloads
        return lambda text: len(text) / 4
    return lambda text: len(vocabulary.encode(text, disallowed_special=()))


def realistic(reply: Any, prompt: Sequence[str]) -> Any:
    """The reply with statements and reasons as real judges write them."""
    if reply.get("TP") == reply.get("FN") == []:  # words say both, a judge would not
        reply = {**reply, "TP": reply["FP"][:1], "FP": reply["FP"][1:]}
    if "claims" not in reply:
        return _realistic(reply, is_short="relevancy" in reply or "useful_chunks" in reply)
    case = json.loads(prompt[-1])
    texts = [case[name] for name in ("ground_truth", "response") if isinstance(case.get(name), dict)]
    sentences = {number: sentence for text in texts for number, sentence in text.items()}
    ours = [claim for claim in reply["claims"] if str(claim["sentence"]) in case.get("response", {})]
    if ours and not any(claim.get("in_other", 1) for claim in ours):
        ours[0]["in_other"] = 1
    claims = []
    for claim in reply["claims"]:
        number = claim["sentence"]
        has_reason = not claim.get("chunk", 1) or (not claim.get("in_other", 1) and number % 3 == 0)
        reason = _SHORT_REASONS[number % 6] if has_reason and claim.get("reason") else ""
        parts = _parts(sentences[str(number)])
        for part in parts:
            words = " ".join(part.split()[:8]) if len(parts) > 1 else ""
            claims.append({**claim, "claim": words, **({"reason": reason} if "reason" in claim else {})})
    return {**_realistic(reply, is_short=True), "claims": claims}


def _realistic(value: Any, *, is_short: bool) -> Any:
    if isinstance(value, list):
        return [part for item in value for part in _split(_realistic(item, is_short=is_short))]
    if not isinstance(value, dict):
        return value
    found = {name: _realistic(member, is_short=is_short) for name, member in value.items()}
    if "reason" in found:
        reasons = _SHORT_REASONS if is_short or "toxicity" in found else _REASONS
        found["reason"] = reasons[len(json.dumps(found)) % 6]
    return found


def _split(item: Any) -> list[Any]:
    """A statement as its two parts, if it has two."""
    if isinstance(item, str):
        return _parts(item)
    if isinstance(item, dict) and "attributed" in item:
        return [{**item, "statement": part} for part in _parts(item["statement"])]
    return [item]


def _parts(sentence: str) -> list[str]:
    first, separator, second = sentence.partition(" and ")
    has_two = separator and min(len(first.split()), len(second.split())) >= 4
    return [first + ".", second[:1].upper() + second[1:]] if has_two else [sentence]


# Sentences of the length that judges give, written for this purpose.
_REASONS = (
    "The context states this directly: the opening hours and the days are listed in the second passage.",
    "There is no information in the context about this point, so the statement cannot be inferred from it.",
    "The ground truth mentions the same amount and the same period, although it uses other words for them.",
    "This detail is not part of the answer, which only speaks of the general rule and not of its exception.",
    "The statement is supported, because the text names both the person and the year in the same sentence.",
    "The passage was useful for arriving at the answer, since it contains the number that the answer gives.",
)
_SHORT_REASONS = (
    "no chunk mentions the fee",
    "the ground truth gives another year",
    "not in any chunk",
    "answers the query directly",
    "the name is missing from the texts",
    "contradicts the second chunk",
)


def other_reply() -> str:
    """One form that the prompts of deepeval's metrics accept, whichever they are."""
    return json.dumps(
        {
            "truths": ["a truth", "another truth"],
            "claims": ["a claim", "another claim"],
            "statements": ["a statement", "another"],
            "verdicts": [{"verdict": "yes", "reason": "so"}] * 4,
            "reason": "so",
            "score": 8,
        }
    )


async def self_test(requests: int = 3000) -> None:
    """Two processes: this one asks over 64 connections what a child of it answers."""
    for latency in (0.0, 0.2):
        child = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--latency", str(latency), stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        port = int(await child.stdout.readline())
        try:
            await _ask(
                port, 64, requests
            )  # the replies are made up now, as the runs of a benchmark repeat them
            began = time.perf_counter()
            seconds = await _ask(port, 64, requests)
            rate = requests / (time.perf_counter() - began)
        finally:
            child.kill()
            await child.wait()
        late = (statistics.median(seconds) - latency) * 1000
        print(
            f"latency {latency * 1000:.0f} ms, 64 connections: {rate:.0f} requests a second, the median answer "
            f"{late:.1f} ms after its latency"
        )


async def _ask(port: int, connections: int, requests: int) -> list[float]:
    """Seconds of each request."""
    numbers = iter(range(requests))

    async def one() -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        seconds = []
        for number in numbers:
            began = time.perf_counter()
            writer.write(_example(number))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.rpartition(b"Content-Length: ")[2]))
            seconds.append(time.perf_counter() - began)
        writer.close()
        return seconds

    return list(chain.from_iterable(await asyncio.gather(*(one() for _ in range(connections)))))


def _example(number: int) -> bytes:
    """A request as large as they are on average: some 4,000 bytes."""
    answer = f"This is answer {number}. " + "It has a few words more than that, and says so. " * 40
    task = "Given a question and an answer, analyze the complexity" + "." * 2000
    text = f"{task}\n{json.dumps({'answer': answer})}"
    body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": text}]}).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.2, help="mean seconds before an answer")
    parser.add_argument("--sigma", type=float, default=0.0, help="of a lognormal latency; 0 for a fixed one")
    parser.add_argument("--embedding-latency", type=float, help="mean seconds; those of an answer by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--realistic", action="store_true", help="replies as long as those of real judges")
    parser.add_argument("--self-test", action="store_true", help="say how fast it is, and end")
    options = parser.parse_args()
    if options.self_test:
        await self_test()
        return
    embedding_latency = options.latency if options.embedding_latency is None else options.embedding_latency
    endpoint = Endpoint(
        options.latency, options.sigma, options.seed, embedding_latency, is_realistic=options.realistic
    )
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", options.port, backlog=512, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
