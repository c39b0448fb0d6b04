"""The API key is shown nowhere, nothing goes where it should not, and nothing else leaves the machine.

Whatever a run writes is collected, reports unzipped, and searched for the key and every piece of 8 characters
of it, while the judge's endpoint throws the key back in every form that it can.
"""

import json
import logging
import os
import re
import socket
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ended, Run
from fake_judge import Answer, FakeJudge, Request, completion, error, honest_reply, json_answer, running_judge
from files import write_table

from rag_eval.cli import console
from rag_eval.configuration.effective import endpoint_of
from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError
from rag_eval.shards.spec import plain_settings

ROOT = Path(__file__).parent.parent
KEY = "Zq7-Canary_Vw9xKe3LpTn5RsYuHg"
PIECES = {KEY[start : start + 8].encode() for start in range(len(KEY) - 7)}
EVERY_OUTPUT = ("--json", "r.json", "--csv", "r")
CONFIG = """
[judge]
timeout_seconds = 0.5
max_attempts = 1
[cache]
enabled = true
"""


def variables(judge: FakeJudge) -> dict[str, str]:
    return {
        "AZURE_OPENAI_ENDPOINT": judge.url,
        "AZURE_OPENAI_API_KEY": KEY,
        "OPENAI_LOG": "debug",
    }


def sheet(folder: Path) -> None:
    chunks = '["Paris is the capital of France.", "Tea is a drink."]'
    write_table(
        folder / "in.xlsx",
        ["Query", "Ground_Truth", "Bot_A", "Context"],
        ["What is the capital of France?", "Paris.", "It is Paris. I think so.", chunks],
    )


def leaks(folder: Path, ended: Ended) -> list[str]:
    """Where the key or a piece of it stands in what a run wrote."""
    written = {"stdout": ended.out.encode(), "stderr": ended.err.encode()}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("config.ini", ".env"):
            written |= _contents(path)
        written[f"name of {path.name}"] = path.name.encode()
    return [name for name, content in written.items() if any(piece in content for piece in PIECES)]


def _contents(path: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes()}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            found |= {f"{path.name}/{name}": archive.read(name) for name in archive.namelist()}
    return found


def echo(status: int, **headers: str) -> Answer:
    """An error whose body throws the key back, whole and in pieces."""
    message = f"Incorrect API key provided: {KEY} ({KEY[:12]}*****{KEY[-9:]}), header api-key: '{KEY}'"
    return error(status, KEY, message, KEY, x_request_id=KEY, **headers)


def truncated(request: Request) -> Answer:
    return completion(honest_reply(request.prompt)[:-3], request)


FAULTS: dict[str, Answer | Callable[[Request], Answer]] = {
    "401": echo(401),
    "400": echo(400),
    "403 as a page": Answer(403, f"<html><b>{KEY}</b></html>".encode(), {"Content-Type": "text/html"}),
    "404": echo(404),
    "429": echo(429, retry_after="0"),
    "500": echo(500),
    "200 with an error": json_answer(200, {"error": {"message": f"key {KEY}"}}),
    "200 without JSON": Answer(200, f"<html>{KEY}</html>".encode()),
    "redirect": Answer(307, KEY.encode(), {"Location": f"http://127.0.0.1:9/{KEY}"}),
    "refusal": completion(None, refusal=f"I cannot, {KEY}"),
    "key in the reply": completion(f'{{"{KEY}": 1, "{KEY}": 2}}'),
    "reset": Answer(is_reset=True),
    "cut": Answer(200, KEY.encode() * 20, cut_after=50),
    "timeout": Answer(200, b"{}", pause=1.0),
    "truncated JSON": truncated,
}


@pytest.mark.slow
@pytest.mark.parametrize("when", ["from the start", "once the run has begun"])
@pytest.mark.parametrize("name", FAULTS)
def test_whatever_the_endpoint_answers_the_key_is_written_nowhere(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, name: str, when: str
) -> None:
    """With every debug log switched on that there is."""
    fault = FAULTS[name]

    def misbehave(request: Request) -> Any:
        if request.task == "preflight" and when != "from the start":
            return None
        return fault(request) if callable(fault) else fault

    judge.always = misbehave
    sheet(tmp_path)
    (tmp_path / "config.ini").write_text(CONFIG)
    ended = run_cli("in.xlsx", "--debug", *EVERY_OUTPUT, **variables(judge))
    assert {request.headers["api-key"] for request in judge.requests} == {KEY}
    assert ended.code in (3, 4)
    assert leaks(tmp_path, ended) == []
    assert "capital" not in ended.err.replace("in.xlsx", "")


@pytest.mark.parametrize("provider", ["azure", "openai"])
def test_a_run_that_succeeds_writes_no_key(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, provider: str
) -> None:
    sheet(tmp_path)
    (tmp_path / "config.ini").write_text(CONFIG)
    extra = {"OPENAI_BASE_URL": f"{judge.url}/v1", "OPENAI_API_KEY": KEY} if provider == "openai" else {}
    ended = run_cli("in.xlsx", "--debug", "--judge", provider, *EVERY_OUTPUT, **variables(judge) | extra)
    assert ended.code == 0, ended.err
    assert leaks(tmp_path, ended) == []
    assert "capital" not in ended.err


def test_a_key_that_the_endpoint_quotes_in_its_replies_is_not_passed_on(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """A gateway that throws headers back into the text of a completion; the report is what others get to see.

    The store, which its owner alone can read, keeps the reply as it came.
    """

    def quote(request: Request) -> Any:
        if request.task == "preflight":
            return None
        reply = honest_reply(request.prompt).replace("shared words", f"header api-key: {KEY}")
        return completion(reply.replace("Work on", f"Work on {KEY}"), request)

    judge.always = quote
    sheet(tmp_path)
    (tmp_path / "config.ini").write_text(CONFIG)
    ended = run_cli("in.xlsx", "--debug", *EVERY_OUTPUT, **variables(judge))
    assert ended.code == 0
    assert leaks(tmp_path, ended) == ["replies.sqlite"]
    assert "header api-key: [key]" in (tmp_path / "r.json").read_text()


WORDS_OF_KEYS = {
    "x": "x",
    "1": "1",
    "a deposit": "deposit",
    "a dummy of a local server": "sk-no-key-required",
    "16 letters of a local server": "requirednessabcd",
    "a piece of a real key": "Zq7-is-deposit-Vw9xKe",
    "a figure": "3333333333333333",
}


@pytest.mark.slow
@pytest.mark.parametrize("key", WORDS_OF_KEYS.values(), ids=WORDS_OF_KEYS)
def test_no_key_whatsoever_changes_a_reply_or_a_figure(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, key: str
) -> None:
    """What a judge wrote is parsed, scored, printed and reported as it came, whatever the key looks like."""

    def reported(key: str) -> tuple[Any, ...]:
        ended = run_cli(
            "in.xlsx",
            "--json",
            "r.json",
            "--manifest",
            "m.json",
            **variables(judge) | {"AZURE_OPENAI_API_KEY": key},
        )
        assert ended.code == 0, ended.err
        run, manifest = (json.loads((tmp_path / name).read_text()) for name in ("r.json", "m.json"))
        told = re.sub(r"[0-9.]+ s\b|in_report.*", "", ended.out)
        return run["cases"], run["bots"], manifest["judged"], manifest["usage"], manifest["run"], told

    def answer(request: Request) -> Any:
        reply = honest_reply(request.prompt).replace("shared words", "A deposit is required, of 0.3333")
        return None if request.task == "preflight" else completion(reply, request)

    judge.always = answer
    sheet(tmp_path)
    plain = reported("Q9wErTzUiOpAsDfGhJkL42")
    assert "A deposit is required, of 0.3333" in json.dumps(plain[0])
    assert reported(key) == plain


@pytest.mark.slow
def test_a_key_in_the_path_of_an_address_is_shown_nowhere(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Neither in JSON nor in the manifest, however short it is; and not in an error, if it looks like a key."""
    sheet(tmp_path)
    outputs = (*EVERY_OUTPUT, "--manifest", "m.json", "--debug")
    for secret in (KEY, "s3cr3t"):
        given = {"OPENAI_BASE_URL": f"{judge.url}/{secret}/v1", "OPENAI_API_KEY": "sk-other"}
        judge.always = None
        ended = run_cli("in.xlsx", "--judge", "openai", *outputs, **given)
        assert ended.code == 0, ended.err
        assert judge.requests[-1].path == f"/{secret}/v1/chat/completions"
        judge.always = error(404, "404", f"nothing at /{KEY}/v1")
        failed = run_cli("in.xlsx", "--judge", "openai", "--fresh", *outputs, **given)
        assert "HTTP 404 at /…/v1/chat/completions" in failed.err
        written = (
            "".join(path.read_text() for path in tmp_path.glob("*.json"))
            + ended.err
            + failed.err
            + failed.out
        )
        assert f"{judge.url}/…/v1" in written
        assert secret not in written
        assert leaks(tmp_path, failed) == []


@pytest.fixture
def _unforeseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package fails in a way that nobody foresaw, and quotes in its message what it found in the environment."""
    import xlsxwriter

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"unforeseen:\n{os.environ['AZURE_OPENAI_API_KEY']!r}\x1b[2J")

    monkeypatch.setattr(xlsxwriter.Workbook, "add_chart", fail)


@pytest.mark.usefixtures("_unforeseen")
def test_a_bug_is_one_harmless_line_and_its_traceback_is_for_debug(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet(tmp_path)
    ended = run_cli("in.xlsx", "--quiet", **variables(judge))
    assert (ended.code, ended.out) == (4, "")
    assert "internal error (RuntimeError" in ended.err
    assert "--debug" in ended.err
    assert "Traceback" not in ended.err
    told = run_cli("in.xlsx", "--debug", **variables(judge)).err
    assert "Traceback" in told
    assert "\x1b" not in ended.err + told
    assert not (tmp_path / "in_report.xlsx").exists()


@pytest.mark.usefixtures("_unforeseen")
def test_a_bug_does_not_tell_the_key(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet(tmp_path)
    ended = run_cli("in.xlsx", "--debug", **variables(judge))
    assert ended.code == 4
    assert leaks(tmp_path, ended) == []


def test_what_is_hidden_is_neither_said_nor_warned_of_nor_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.hide({KEY})
    console.set_up_logging(debug=True)
    console.say(f"the key {KEY}, not {KEY[3:14]}.")
    console.warn(f"a piece of it: {KEY[3:14]}")
    try:
        raise ValueError(f"a bug quotes {KEY}")
    except ValueError as bug:
        logging.getLogger("rag_eval.test").debug("internal %s", KEY[:9], exc_info=bug)
    out, err = capsys.readouterr()
    assert out == f"the key [key], not {KEY[3:14]}.\n"
    assert err.startswith("rag-eval: a piece of it: [key]\n")
    assert "ValueError: a bug quotes [key]" in err
    assert not [piece for piece in PIECES if piece.decode() in err]


BAD_KEYS = (
    f"{KEY}\n{KEY}",
    f"{KEY} {KEY}",
    f"Bearer {KEY}",
    f"{KEY}\u200b",
    f"<{KEY}>",
    f"{KEY}é",
    f"${{{KEY}}}",
)


@pytest.mark.parametrize("key", BAD_KEYS)
@pytest.mark.parametrize("source", ["environment", "config.ini", ".env"])
def test_a_key_that_cannot_be_one_is_refused_without_a_look_at_it(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, key: str, source: str
) -> None:
    if source == ".env" and "\n" in key:
        pytest.skip("a line break ends the variable")
    sheet(tmp_path)
    given = variables(judge) | {"AZURE_OPENAI_API_KEY": ""}
    if source == "environment":
        given["AZURE_OPENAI_API_KEY"] = key
    elif source == ".env":
        (tmp_path / ".env").write_text(f"AZURE_OPENAI_API_KEY={key}\n", "utf-8")
    else:
        (tmp_path / "config.ini").write_text(f"[azure]\napi_key = {key}\n", "utf-8")
    ended = run_cli("in.xlsx", "--debug", **given)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert judge.requests == []
    assert leaks(tmp_path, ended) == []


@pytest.mark.parametrize(
    ("arguments", "given", "told"),
    [
        (["--api-key", KEY], {}, "--api-key"),
        ([f"--key={KEY}"], {}, "--key"),
        ([], {"AZURE_OPENAI_ENDPOINT": f"https://user:{KEY}@127.0.0.1"}, "user name"),
        ([], {"AZURE_OPENAI_ENDPOINT": f"https://127.0.0.1/?api-key={KEY}"}, "query"),
        ([], {"AZURE_OPENAI_ENDPOINT": "http://example.com"}, "https://"),
        ([], {"AZURE_OPENAI_ENDPOINT": "http://127.0.0.1.example.com"}, "https://"),
        ([], {"AZURE_OPENAI_ENDPOINT": "file:///etc/passwd"}, "https://"),
        (["--judge", "openai"], {"OPENAI_BASE_URL": "http://[::ffff:1.2.3.4]/v1", "OPENAI_API_KEY": KEY}, "https://"),
    ],
)  # fmt: skip
def test_a_key_goes_only_where_it_is_safe_on_the_way(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, arguments: list[str], given: dict[str, str], told: str
) -> None:
    """Refused before anything is connected to, and without showing what the value may hide."""
    sheet(tmp_path)
    ended = run_cli("in.xlsx", *arguments, **variables(judge) | given)
    assert ended.code == 2
    assert told in ended.err
    assert judge.requests == []
    assert leaks(tmp_path, ended) == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(run_cli: Run, judge: FakeJudge, tmp_path: Path, status: int) -> None:
    """Neither key nor texts reach another address, even on the same host; the run stops and says why."""
    with running_judge() as elsewhere:
        judge.always = Answer(status, b"", {"Location": f"{elsewhere.url}/openai/{KEY}"})
        sheet(tmp_path)
        ended = run_cli("in.xlsx", **variables(judge))
        assert (ended.code, len(judge.requests), elsewhere.requests) == (4, 1, [])
    assert "redirect" in ended.err
    assert leaks(tmp_path, ended) == []


def test_the_password_of_a_proxy_is_told_nowhere(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """The endpoint lies behind a proxy that refuses; what is said names host and port of the proxy alone."""
    sheet(tmp_path)
    port = judge.url.rpartition(":")[2]
    ended = run_cli(
        "in.xlsx",
        "--debug",
        AZURE_OPENAI_ENDPOINT="https://resource.openai.azure.com",
        AZURE_OPENAI_API_KEY="0123456789abcdef" * 2,
        OPENAI_LOG="debug",
        HTTPS_PROXY=f"http://user:{KEY}@127.0.0.1:{port}",
    )
    assert ended.code == 4
    assert f"127.0.0.1:{port}" in ended.err
    assert leaks(tmp_path, ended) == []


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize("cached", [True, False])
def test_what_quotes_the_judged_texts_is_for_its_owner_alone(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, cached: bool
) -> None:
    """Cache or journal with all that SQLite puts beside it, looked at while the run is under way."""
    modes: dict[str, int] = {}

    def look(request: Request) -> Any:
        folder = tmp_path / ".nexus_cache" if cached else tmp_path
        for path in [folder, *folder.iterdir()] if cached else folder.glob("*.journal*"):
            modes[path.name] = stat.S_IMODE(path.stat().st_mode)

    judge.always = look
    sheet(tmp_path)
    (tmp_path / "config.ini").write_text(f"[cache]\nenabled = {cached}\n")
    before = os.umask(0)
    try:
        assert run_cli("in.xlsx", "-o", "r.xlsx", **variables(judge)).code == 0
    finally:
        os.umask(before)
    assert len(modes) >= 2
    assert set(modes.values()) <= {0o600, 0o700}
    assert [name for name, mode in modes.items() if mode == 0o700] == ([".nexus_cache"] if cached else [])


def test_settings_and_endpoint_show_themselves_without_the_key(tmp_path: Path) -> None:
    given = {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com", "AZURE_OPENAI_API_KEY": KEY}
    loaded = load_settings(None, {}, given, tmp_path)
    endpoint = endpoint_of(loaded.settings)
    assert endpoint.api_key == KEY
    shown = [
        repr(loaded),
        str(loaded),
        repr(loaded.settings),
        loaded.settings.model_dump_json(),
        repr(endpoint),
    ]
    shown += [
        str(endpoint),
        f"{endpoint}",
        f"{loaded.settings.azure!s}",
        json.dumps(loaded.settings.model_dump(), default=str),
    ]
    assert not [text for text in shown if any(piece.decode() in text for piece in PIECES)]


GUARD = """
import json, socket, sys, threading

allowed, path = json.loads(sys.argv.pop(1)), sys.argv.pop(1)
seen = []

def note(host):
    seen.append([str(host), threading.current_thread().name])
    with open(path, "w") as file:
        json.dump(seen, file)
    if host not in allowed:
        raise RuntimeError(f"connected to {host}")

def guarded(self, address, *more):
    if self.family != socket.AF_UNIX:
        note(address[0])
    return connect(self, address, *more)

def looked_up(host, *more, **named):
    if host not in (None, "127.0.0.1", "::1"):
        note(host)
    return look_up(host, *more, **named)

connect, look_up = socket.socket.connect, socket.getaddrinfo
socket.socket.connect = socket.socket.connect_ex = guarded
socket.socket.sendto = lambda self, *more: note("sendto")
socket.getaddrinfo = looked_up
from rag_eval import cli
try:
    cli.standalone()
finally:
    analytics = sys.modules.get("ragas._analytics")
    silent = analytics is None or analytics.do_not_track()
    print(json.dumps({"ragas": "ragas" in sys.modules, "openai": "openai" in sys.modules, "silent": silent}))
"""


def guarded_run(folder: Path, allowed: list[str], *arguments: str, **given: str) -> tuple[Any, list[Any]]:
    """Run the command line in a process where any other connection, look-up or datagram raises and is noted."""
    sheet(folder)
    driver = folder / "driver.py"
    driver.write_text(GUARD)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    ended = subprocess.run(
        [sys.executable, str(driver), json.dumps(allowed), "seen.json", "in.xlsx", *arguments],
        cwd=folder, env=environment | given, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    seen = folder / "seen.json"
    return json.loads(ended.stdout.splitlines()[-1]), json.loads(seen.read_text()) if seen.exists() else []


@pytest.mark.slow
def test_the_offline_judge_connects_to_nothing(tmp_path: Path) -> None:
    loaded, seen = guarded_run(tmp_path, [], "--judge", "offline")
    assert seen == []
    assert loaded == {"ragas": False, "openai": False, "silent": True}


@pytest.mark.slow
def test_an_llm_judge_connects_to_its_endpoint_alone(judge: FakeJudge, tmp_path: Path) -> None:
    """Of ragas only its prompts are loaded, and nothing phones home, from any thread."""
    traces = {"LANGCHAIN_TRACING_V2": "true", "LANGSMITH_TRACING": "true", "RAGAS_DO_NOT_TRACK": "false"}
    loaded, seen = guarded_run(tmp_path, ["127.0.0.1"], **variables(judge) | traces)
    assert loaded == {"ragas": False, "openai": True, "silent": True}
    assert {host for host, _ in seen} == {"127.0.0.1"}
    assert {thread for _, thread in seen} == {"judge-connection"}
    assert len(judge.requests) > 5


def test_what_a_request_tells_about_this_machine(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Headers are those that docs/security.md lists; no user, folder or file name is among what is sent."""
    sheet(tmp_path)
    assert run_cli("in.xlsx", **variables(judge)).code == 0
    document = (ROOT / "docs" / "security.md").read_text("utf-8").lower()
    sent = {name for request in judge.requests for name in request.headers}
    assert [
        name for name in sent if f"`{name}`" not in document and not name.startswith("x-stainless-")
    ] == []
    told = json.dumps([[request.headers, request.body, request.path] for request in judge.requests])
    private = (str(tmp_path), "in.xlsx", socket.gethostname(), "Bot_", "Ground_Truth")
    assert [text for text in private if text in told] == []


@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        ("v1", False),
        ("gw/AbC9xYz12345qQ/v1", True),
        ("gw/AbC9xYz12q/v1", True),
        ("gw/AbC9xYz12/v1", False),  # no key is so short
        ("gw/my-project-123/v1", False),
        ("gw/team_42.eu/v1", False),
        ("gw/abcdefghijklmno/v1", False),
        ("gw/abcdefghijklmnop/v1", True),
        ("gw/1234567890/v1", False),
        ("gw/12345-67890ab/v1", False),
        ("gw/aB3dE5gH7j/v1", False),  # the model
    ],
)
@pytest.mark.parametrize(
    ("provider", "url", "model", "variable"),
    [
        ("openai", "base_url", "model", "OPENAI_API_KEY"),
        ("azure", "endpoint", "deployment", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_an_address_that_may_hold_a_key_is_not_written_for_shards(
    provider: str, url: str, model: str, variable: str, path: str, is_refused: bool
) -> None:
    section = {url: f"https://judge.example.com/{path}", "api_key": KEY, model: "aB3dE5gH7j"}
    settings = Settings.model_validate({"judge": {"provider": provider}, provider: section})
    if not is_refused:
        assert plain_settings(settings)[provider][url] == section[url]
        return
    with pytest.raises(InputError) as refused:
        plain_settings(settings)
    assert f"[{provider}] {url}: https://judge.example.com/gw/…/v1 may hold a key" in str(refused.value)
    assert f"in the environment variable {variable}, or" in str(refused.value)
