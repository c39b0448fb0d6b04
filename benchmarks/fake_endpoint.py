"""An endpoint for chat completions and embeddings: python benchmarks/fake_endpoint.py --latency 0.2

It is a process of its own. It answers every prompt of this project, of ragas and of deepeval after a fixed or lognormal
latency with a reply of the right form, embeds texts as counts of letters, and counts what it was sent. GET /stats gives
the counts as JSON, GET /reset sets them to 0. It is one asyncio loop without a framework, and makes up the reply to a
prompt once, so that it is no bottleneck: --self-test says how many requests a second it answers without latency, and
how much later than wanted with it.
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
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fake_judge import honest_reply, task_of


class Endpoint:
    def __init__(self, latency: float, sigma: float, seed: int, embedding_latency: float) -> None:
        self._latency = latency
        self._embedding_latency = embedding_latency
        self._sigma = sigma
        self._seed = seed
        self.reset()

    def reset(self) -> None:
        """All counts are 0, and the latencies are drawn anew in the same order."""
        self._random = random.Random(self._seed)
        self.requests = self.embeddings = self.bytes = self.in_flight = self.most_in_flight = 0
        self.latency_seconds = 0.0
        self.first = self.last = 0.0

    def stats(self) -> dict[str, float]:
        """Preflights count as requests, but the span begins with the first real question."""
        return {
            "requests": self.requests,
            "embeddings": self.embeddings,
            "bytes": self.bytes,
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
        reply = json.dumps((embedding if is_embedding else completion)(document)).encode()
        if not self.first and (is_embedding or task_of(_texts(document)[0]) != "preflight"):
            self.first = began
        await asyncio.sleep(max(0.0, began + seconds - time.perf_counter()))
        self.in_flight -= 1
        self.last = time.perf_counter()
        return reply

    def _draw(self, latency: float) -> float:
        """Seconds; lognormal around the latency as its mean when sigma is not 0."""
        if not self._sigma:
            return latency
        return latency * self._random.lognormvariate(-(self._sigma**2) / 2, self._sigma)


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """As many choices as are asked for, all the same."""
    prompt, content = "\n".join(_texts(body)), _reply(_texts(body))
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
    parser.add_argument("--self-test", action="store_true", help="say how fast it is, and end")
    options = parser.parse_args()
    if options.self_test:
        await self_test()
        return
    embedding_latency = options.latency if options.embedding_latency is None else options.embedding_latency
    endpoint = Endpoint(options.latency, options.sigma, options.seed, embedding_latency)
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", options.port, backlog=512, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
