"""How much memory can an endpoint make a run take with answers that do not end, or that are made to be large?

    python benchmarks/reply_bounds.py [--workers 8] [--seconds 5]

Each kind of answer is sent by a server on loopback to a process of its own, whose workers all ask at once. What counts
is the peak of the process's memory above that of the same process after ordinary replies, for each worker.
"""

import argparse
import gzip
import json
import resource
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any

MOST_MB = 100.0
"""For each worker."""
_MB = 1_000_000
_BLANKS = b" " * _MB
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n"


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def _completion(content: str) -> bytes:
    document = {"choices": [{"finish_reason": "stop", "message": {"content": content}}]}
    return json.dumps(document).encode()


def _whole(body: bytes, *headers: bytes) -> Iterator[bytes]:
    yield _HEAD + b"".join(line + b"\r\n" for line in headers) + b"Content-Length: %d\r\n\r\n" % len(body)
    yield body


def _endless(piece: bytes, *headers: bytes) -> Iterator[bytes]:
    yield _CHUNKED + b"".join(line + b"\r\n" for line in headers) + b"\r\n"
    yield from repeat(_chunk(piece))


def _endless_deflate(encoding: bytes) -> Iterator[bytes]:
    yield _CHUNKED + b"Content-Encoding: " + encoding + b"\r\n\r\n"
    compressor = zlib.compressobj(wbits=31 if encoding == b"gzip" else 15)
    while True:
        if piece := compressor.compress(_BLANKS):
            yield _chunk(piece)


@cache
def _bomb(levels: int) -> bytes:
    """A gigabyte of blanks, compressed so many times."""
    compressor = zlib.compressobj(wbits=31)
    bomb = b"".join(compressor.compress(_BLANKS) for _ in range(1000)) + compressor.flush()
    for _ in range(levels - 1):
        bomb = gzip.compress(bomb)
    return bomb


def _nested(text: str) -> str:
    """As much of a text as just fits, as one JSON list."""
    return f"[{','.join(repeat(text, 1_950_000 // (len(text) + 1)))}]"


ANSWERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "ordinary": lambda: _whole(_completion('{"n": 1}')),
    "endless body": lambda: _endless(b" " * _MB),
    "endless body in small chunks": lambda: _endless(b" "),
    "endless body of known length": lambda: chain(
        [_HEAD + b"Content-Length: 99999999999\r\n\r\n"], repeat(_BLANKS)
    ),
    "endless error": lambda: chain([b"HTTP/1.1 500 No\r\n\r\n"], repeat(b"x" * _MB)),
    "gzip bomb": lambda: _whole(_bomb(1), b"Content-Encoding: gzip"),
    "endless gzip": lambda: _endless_deflate(b"gzip"),
    "endless deflate": lambda: _endless_deflate(b"deflate"),
    "gzip within gzip": lambda: _whole(_bomb(2), b"Content-Encoding: gzip, gzip"),
    "endless header": lambda: chain([_HEAD + b"X: "], repeat(b"x" * _MB)),
    "endless headers": lambda: chain([_HEAD], repeat(b"X: x\r\n" * 10_000)),
    "endless status line": lambda: chain([b"HTTP/1.1 200 "], repeat(b"x" * _MB)),
    "endless 100 Continue": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "endless chunk extension": lambda: chain([_CHUNKED + b"\r\n1;"], repeat(b"x" * _MB)),
    "endless trailers": lambda: chain([_CHUNKED + b"\r\n0\r\n"], repeat(b"X: x\r\n" * 10_000)),
    "2 MB of empty objects": lambda: _whole(_nested("{}").encode()),
    "2 MB of numbers": lambda: _whole(_nested("1.5").encode()),
    "2 MB of names": lambda: _whole(("{" + ",".join(f'"{n}":1' for n in range(180_000)) + "}").encode()),
    "a reply of 2 MB of empty objects": lambda: _whole(_completion(_nested("{}"))),
    "a reply of 2 MB of letters outside the BMP": lambda: _whole(
        json.dumps({"choices": [{"message": {"content": "\U0001f600" * 480_000}}]}, ensure_ascii=False).encode()
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="Deadline of a request.")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        _ask(given.ask, given.workers, given.seconds)
        return
    _bomb(1), _bomb(2)  # before anybody waits for them
    floor = 0.0
    worst = 0.0
    for name, answer in ANSWERS.items():
        with _Server(answer) as url:
            told = _in_a_process(url, given.workers, given.seconds)
        floor = floor or told["peak"]
        each = (told["peak"] - floor) / given.workers
        worst = max(worst, each)
        print(f"{name:<45} {told['peak']:6.0f} MB, {each:6.1f} MB a worker, {', '.join(told['codes'])}")
    print(f"{'Most':<45} {'':>6}     {worst:6.1f} MB a worker; {MOST_MB:g} MB are allowed")
    sys.exit(worst > MOST_MB)


def _in_a_process(url: str, workers: int, seconds: float) -> dict[str, Any]:
    command = [sys.executable, __file__, "--ask", url, "--workers", str(workers), "--seconds", str(seconds)]
    told: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return told


def _ask(url: str, workers: int, seconds: float) -> None:
    """Ask with all workers at once, and tell the codes that came of it and the peak of memory in MB."""
    from pydantic import BaseModel

    from rag_eval.errors import JudgeError, RunStoppedError
    from rag_eval.judge.calls import Call, Message
    from rag_eval.judge.endpoint import Endpoint
    from rag_eval.judge.transport import Transport

    class Rating(BaseModel):
        n: int

    class NoNotes:
        def note(self, name: str) -> str | None:
            return None

        def put_note(self, name: str, value: str) -> None:
            """Nothing is kept."""

    endpoint = Endpoint("openai", url, "key", "m", timeout_seconds=seconds, max_attempts=2, workers=workers)
    transport = Transport(endpoint, NoNotes(), sleep=lambda _: None)

    def code(number: int) -> str:
        try:
            transport.ask(Call("rating", (Message("user", str(number)),), Rating))
        except (JudgeError, RunStoppedError) as error:
            return error.code
        return "ok"

    with ThreadPoolExecutor(workers) as pool:
        codes = set(pool.map(code, range(workers)))
    transport.close()
    print(json.dumps({"codes": sorted(codes), "peak": _peak()}))


def _peak() -> float:
    """In MB. On Linux not by getrusage, which begins with the memory of the process that started this one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MB
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / _MB


class _Server:
    """Sends every request the same answer, until the client hangs up."""

    def __init__(self, answer: Callable[[], Iterator[bytes]]) -> None:
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)

    def __enter__(self) -> str:
        threading.Thread(target=self._serve, daemon=True).start()
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._send, args=(connection,), daemon=True).start()

    def _send(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client gives up
            _read_request(connection)
            for piece in self._answer():
                connection.sendall(piece)


def _read_request(connection: socket.socket) -> None:
    """All of it: to close a connection with something unread in it resets it."""
    with connection.makefile("rb") as file:
        length = 0
        while line := file.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        file.read(length)


if __name__ == "__main__":
    main()
