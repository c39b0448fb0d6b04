"""What the commands of jobs in batches say, what they ask the provider for, and what they remember, to the letter.

`batches.txt` has it. `python tests/test_batches_in_words.py` writes it anew after a change that is wanted; read what
differs before you keep it.
"""

import json
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from batch_server import KINDS, BatchServer, Wrong, running_batches
from conftest import KEY
from fake_judge import Request, completion, error, json_answer
from files import sheet_of
from test_batches import azure, openai, pass_time
from test_whole_report import VARYING

from rag_eval import cli
from rag_eval.store.batch_records import BatchRecords
from rag_eval.store.reply_store import Store

RECORDED = Path(__file__).parent / "batches.txt"
Act = Callable[[BatchServer], object]
OPENAI = "in.xlsx -o r.xlsx --judge openai --json r.json --manifest m.json"
AZURE = OPENAI.replace("openai", "azure")
BATCH = f"{OPENAI} --batch"
CACHED = f"{BATCH} --config cached.ini"
OTHER = CACHED.replace("in.xlsx -o r.xlsx", "other.xlsx -o s.xlsx")
INI = {
    "cached.ini": "[cache]\nenabled = yes\ndirectory = replies\n",
    "priced.ini": "[prices]\ninput = 3\noutput = 12\nbatch_factor = 0.25\n",
    "online.ini": "[batch]\nfinish_online_below = 3\n[prices]\ninput = 3\noutput = 12\n",
    "capped.ini": "[prices]\ninput = 3\noutput = 12\n[limits]\nmax_cost = 0.2\n",
}


def ended(status: str = "completed", done: int | None = None) -> Act:
    def end(server: BatchServer) -> None:
        server.end(status, done)
        pass_time()

    return end


def wrong(event: str, kind: str, *, is_done: bool = True, times: int = 1, after: int = 0) -> Act:
    return lambda server: server.wrong.extend([Wrong(event, kind, is_done, after)] * times)


def replies(answer: Callable[[Request], Any]) -> Act:
    return lambda server: setattr(server.judge, "always", answer)


def bad_lines(request: Request) -> Any:
    """One of each kind of answer that is no completion."""
    kinds = (
        error(429, "rate_limit_exceeded", "Slow down."),
        error(400, "content_filter", "The prompt was filtered."),
        error(500, "server_error", "oops"),
        error(401, "invalid_api_key", "no such key"),
        completion("Sorry."),
        completion('{"n": ', finish_reason="length"),
    )
    number = int(request.headers.get("number", 0)) or sum(map(ord, request.prompt))
    return kinds[number % 11] if number % 11 < len(kinds) else None


def picky(request: Request) -> Any:
    """Of the calls in batches alone, one parameter after the other is not accepted."""
    if request.task == "preflight":
        return None
    if "temperature" in request.body:
        return error(400, "unsupported_value", "temperature does not support 0", "temperature")
    if request.body.get("response_format", {}).get("type") == "json_schema":
        return error(400, "", "'response_format' of type 'json_schema' is not supported with this model.")
    return None


def strange(lines: list[str]) -> list[str]:
    """In another order, with a line twice and lines that are no results."""
    return [*reversed(lines), lines[0], "", "{", '{"custom_id": "nobody", "response": null}', "[]"]


def unready(server: BatchServer) -> None:
    def status(event: str) -> Any:
        return json_answer(200, {"id": "file-1", "status": "uploaded"}) if event == "GET /files/*" else None

    server.hook = status


def twice(server: BatchServer) -> None:
    """Whatever is created is created twice."""

    def create(event: str) -> Any:
        if event == "created":
            (*_, last) = server.batches.values()
            name = server.name("batch")
            server.batches[name] = type(last)(
                name, last.input_file, last.metadata, last.lines, body=last.body
            )
        return None

    server.hook = create


def as_before(server: BatchServer) -> None:
    server.hook = lambda event: None


JOBS: Mapping[str, Sequence[str | Act]] = {
    "all ends well": (
        f"{OPENAI} --dry-run --batch --config priced.ini", f"{BATCH} --config priced.ini", BATCH, OPENAI,
        f"{OPENAI} --batch-cancel --report-only", ended(), f"{BATCH} --config priced.ini", ended(),
        f"{BATCH} --config priced.ini -q", ended(), f"{BATCH} --config priced.ini", ended(), BATCH, "cache show",
    ),
    "the last calls go online": (
        f"{BATCH} --config online.ini", ended(), f"{BATCH} --config online.ini", ended(),
        f"{BATCH} --config online.ini",
    ),
    "a cap that all calls keep to": (
        f"{BATCH} --config capped.ini", ended(), f"{BATCH} --config capped.ini",
    ),
    "it is cancelled": (
        f"{OPENAI} --batch-cancel", BATCH, f"{OPENAI} --batch-cancel", ended("cancelled", 0),
        f"{OPENAI} --batch-cancel", f"{OPENAI} --batch-cancel", f"{OPENAI} --report-only", BATCH,
        ended("expired", 0), BATCH, ended(), BATCH, ended(), BATCH,
    ),
    "lines that are no completions": (
        replies(bad_lines), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(),
        f"{BATCH} --retry-errors", ended(), BATCH,
    ),
    "lines that belong to nothing": (
        lambda server: setattr(server, "arrange", strange), BATCH, ended(), BATCH, ended(), BATCH,
    ),
    "it is refused": (
        BATCH, ended("failed", 0), BATCH, wrong("POST /files", "404"), BATCH,
        wrong("POST /batches", "500", is_done=False, times=9), BATCH, wrong("GET /files/*", "404", times=3), BATCH,
        BATCH,
    ),
    "a file is not ready": (unready, BATCH, BATCH, as_before, BATCH, ended(), BATCH),
    "it is lost": (
        BATCH, lambda server: server.batches.clear(), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(),
        wrong("DELETE /files/*", "500", times=4), BATCH, ended(), BATCH, ended(), BATCH,
    ),
    "it is made twice": (twice, BATCH, as_before, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH),
    "it may have been made": (
        wrong("POST /batches", "lost"), BATCH, BATCH, ended(), wrong("POST /batches", "lost", is_done=False),
        wrong("GET /batches", "empty object"), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH,
    ),
    "Azure without deployments of its own": (f"{AZURE} --batch",),
    "parameters that are not accepted": (
        replies(picky), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH, ended(), BATCH,
    ),
    "two jobs with one cache": (
        CACHED, OTHER, f"{CACHED} -o t.xlsx", f"{OTHER} --batch-cancel", OTHER, ended(), CACHED, OTHER, ended(), OTHER,
        ended(), CACHED, OTHER, f"{CACHED} -o t.xlsx", "cache show --config cached.ini",
    ),
    **{
        f"an answer is wrong: {kind}": tuple(
            act
            for event in ("POST /files", "GET /files/*", "POST /batches", "GET /batches", "GET /batches/*",
                          "GET /files/*/content")
            for act in (wrong(event, kind), BATCH, ended())
        )
        for kind in KINDS
        if kind not in ("late", "half", "cut file", "cut lines")  # what is cut depends on the order of the lines
    },
}  # fmt: skip
HOW_IT_IS_READ = (
    r"in\.xlsx, sheet|  '|  context cells|Judge: |Weights in RQS|Rank +Bot|   \d  |Judged by|Good|Bad|$"
)
OWN = re.compile(r"\b[0-9a-f]{32}\b")
"""Tokens of batches, which are drawn at random."""


def asked(server: BatchServer, known: set[str]) -> Iterator[str]:
    """The requests since the last command, and the batches that are not known yet."""
    uploads = iter(server.uploads)
    for call, headers in zip(server.calls, server.headers, strict=True):
        assert headers.get("authorization", headers.get("api-key", "")).endswith(KEY)
        yield f"  > {call} {next(uploads, '') if call == 'POST /files' else ''}".rstrip()
    for batch in [each for each in server.batches.values() if each.id not in known]:
        known.add(batch.id)
        bodies = [line["body"] for line in batch.lines]
        tasks = Counter(Request("", {}, body).task for body in bodies)
        yield f"  {batch.id}: {batch.body} {dict(sorted(tasks.items()))}"
        yield from sorted(
            {
                f"    {body['model']}, {body['max_tokens']} tokens, {body.get('temperature')}"
                for body in bodies
            }
        )
    if server.judge.requests:
        yield f"  answered: {dict(sorted(server.judge.tasks().items()))}"
    for each in (server.calls, server.headers, server.uploads, server.judge.requests):
        each.clear()


def remembered(path: Path) -> Iterator[str]:
    """What the next command finds in the store: batches, the job, the states of calls, and the number of replies."""
    store = Store(path)
    records = BatchRecords(store)
    jobs = store.rows("jobs", "id")
    for batch in records.batches():
        hours = batch.due and round((batch.due - batch.submitted) / 3600)
        numbers = (
            f"requests {batch.requests}, tokens {batch.tokens}, due after {hours} h, misses {batch.misses}"
        )
        yield f"  = {batch.token} {batch.id} {batch.state} {batch.files} {numbers}"
    for (name,) in jobs:
        job = records.job(str(name))
        assert job
        yield f"  = job: {replace(job, id='', replies_since=0, failures_since=0, spent=round(job.spent, 9))}"
        calls = records.calls_of_job(job.id)
        states = Counter(
            f"{call.task} {call.state} {call.prompt_tokens}+{call.completion_tokens}" for call in calls
        )
        yield f"    {dict(sorted(states.items()))}"
    yield f"  = {len(store.rows('replies', 'key'))} replies"
    store.end(keep=True)


def noted(path: Path) -> Iterator[str]:
    """How a command ended, and what the job took, by its manifest."""
    if not path.exists():
        return
    manifest = json.loads(path.read_text(encoding="utf-8"))
    yield f"  = {manifest['status']}, {manifest['exit_code']}, {manifest.get('outputs')}"
    usage = manifest.get("usage", {})
    tasks = usage.pop("by_task", {})
    yield from (f"    {name}: {rounded(value)}" for name, value in usage.items() if value)
    for name, figures in tasks.items():
        yield f"    {name}: { {key: rounded(value) for key, value in figures.items()} }"


def rounded(value: Any) -> Any:
    """A sum depends on the order of the replies in its last digits."""
    return round(value, 9) if isinstance(value, float) else value


def said(name: str, folder: Path) -> Iterator[str]:
    """Every command of a job, with what it says, asks for and leaves."""
    sheet_of(folder / "in.xlsx", rows=1)
    sheet_of(folder / "other.xlsx", rows=2)
    for file, text in INI.items():
        (folder / file).write_text(text, encoding="utf-8")
    known: set[str] = set()
    before: list[str] = []
    with chdir(folder), running_batches() as server, pytest.MonkeyPatch.context() as patch:
        for variable, value in {**openai(server), **azure(server)}.items():
            patch.setenv(variable, value)
        for step in JOBS[name]:
            if callable(step):
                step(server)
                continue
            patch.setattr(sys, "argv", ["rag-eval", *shlex.split(step)])
            out = StringIO()
            with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as over:
                cli.main()
            about = [line for line in out.getvalue().splitlines() if not re.match(HOW_IT_IS_READ, line)]
            yield from (f"$ {step}", *about, f"exit {over.value.code}", *asked(server, known))
            found = [*remembered(Path("r.xlsx.journal"))] if Path("r.xlsx.journal").exists() else []
            yield from noted(Path("m.json"))
            yield from found if found != before else ()
            before = found


def lines_of(name: str, folder: Path) -> list[str]:
    text = "\n".join(said(name, folder)).replace(str(folder), "FOLDER")
    tokens = list(dict.fromkeys(OWN.findall(text)))
    text = OWN.sub(lambda match: f"TOKEN{tokens.index(match[0]) + 1}", text)
    for pattern, word in (*VARYING, (r"\b(?:(?:yesterday|tomorrow) )?\d\d:\d\d\b", "TIME")):
        text = re.sub(pattern, word, text)
    return text.splitlines()


def recorded(name: str) -> list[str]:
    parts = f"\n{RECORDED.read_text(encoding='utf-8')}".split("\n=== ")
    return next(part for part in parts if part.startswith(f"{name}\n")).rstrip("\n").splitlines()[1:]


def is_long(name: str) -> bool:
    return name == "it is lost" or name.startswith("an answer is wrong")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * is_long(name)) for name in JOBS]
)
def test_jobs_in_batches_go_on_as_they_did(tmp_path: Path, name: str) -> None:
    assert lines_of(name, tmp_path) == recorded(name)


if __name__ == "__main__":
    texts = []
    for job_name in JOBS:
        with tempfile.TemporaryDirectory() as there:
            texts.append("\n".join([f"=== {job_name}", *lines_of(job_name, Path(there).resolve())]))
    RECORDED.write_text("\n".join(texts) + "\n", encoding="utf-8")
