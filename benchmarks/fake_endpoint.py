"""A chat-completions endpoint in a process of its own: python benchmarks/fake_endpoint.py --latency 0.2

It answers every prompt of this project, of ragas and of deepeval after a fixed or lognormal latency with a reply of
the right form, and counts what it was sent. GET /stats gives requests, bytes and the most in flight as JSON, GET
/reset sets them to 0. It is one asyncio loop without a framework, so that it is no bottleneck: --self-test shows how
many requests a second it takes without latency.
"""

import argparse
import asyncio
import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fake_judge import honest_reply, task_of


class Endpoint:
    def __init__(self, latency: float, sigma: float, seed: int) -> None:
        self._latency = latency
        self._sigma = sigma
        self._random = random.Random(seed)
        self.reset()

    def reset(self) -> None:
        self.requests = self.bytes = self.in_flight = self.most_in_flight = 0
        self.busy_seconds = 0.0

    def stats(self) -> dict[str, float]:
        return {
            "requests": self.requests,
            "bytes": self.bytes,
            "most_in_flight": self.most_in_flight,
            "latency_seconds": self.busy_seconds,
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
        self.requests += 1
        self.bytes += len(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        seconds = self._draw()
        self.busy_seconds += seconds
        began = time.perf_counter()
        reply = json.dumps(completion(json.loads(body))).encode()
        await asyncio.sleep(max(0.0, seconds - (time.perf_counter() - began)))
        self.in_flight -= 1
        return reply

    def _draw(self) -> float:
        """Seconds; lognormal around the latency as its mean when sigma is not 0."""
        if not self._sigma:
            return self._latency
        return self._latency * self._random.lognormvariate(-(self._sigma**2) / 2, self._sigma)


def completion(body: dict[str, Any]) -> dict[str, Any]:
    prompt = "\n".join(str(message["content"]) for message in body["messages"])
    content = honest_reply(prompt) if task_of(prompt) != "unknown" else other_reply(prompt)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if body.get("tools"):  # instructor's way of asking for a form
        call = {"name": body["tools"][0]["function"]["name"], "arguments": content}
        tools = [{"id": "1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": tools}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": math.ceil(len(prompt) / 4),
            "completion_tokens": math.ceil(len(content) / 4),
            "total_tokens": math.ceil((len(prompt) + len(content)) / 4),
        },
    }


def other_reply(prompt: str) -> str:
    """One form that the prompts of deepeval's metrics accept, whichever they are."""
    return json.dumps(
        {
            "truths": ["a truth"],
            "claims": ["a claim", "another claim"],
            "statements": ["a statement", "another"],
            "verdicts": [{"verdict": "yes", "reason": "so", "statement": "a statement"}] * 2,
            "reason": "so",
            "score": 8,
            "steps": ["compare"],
        }
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.2, help="mean seconds before an answer")
    parser.add_argument("--sigma", type=float, default=0.0, help="of a lognormal latency; 0 for a fixed one")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    endpoint = Endpoint(options.latency, options.sigma, options.seed)
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", options.port, backlog=512, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
