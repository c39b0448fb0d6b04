"""The doctor: what it finds, what it advises, how it ends, and that it asks the judge once at most."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import pytest
from conftest import KEY, Ended, Run, azure
from fake_judge import Answer, FakeJudge, Request, completion, error, honest_reply, json_answer

from rag_eval import __version__
from rag_eval.cli.doctor import _patience, _three_digits
from rag_eval.configuration.settings import Settings
from rag_eval.run.probing import Speed, Timed, speed_of

ROOT = Path(__file__).parent.parent
PIECES = {KEY[start : start + 8] for start in range(len(KEY) - 7)}


@pytest.fixture
def doctor(rag_eval: Run) -> Run:
    """Run `rag-eval doctor`. The key must not stand in what it says."""

    def run(*arguments: object, **variables: str) -> Ended:
        ended = rag_eval("doctor", *arguments, **variables)
        assert [piece for piece in PIECES if piece in ended.out + ended.err] == []
        return ended

    return run


def findings(ended: Ended, state: str) -> list[str]:
    """The texts of the findings of a state: ok, warning or problem."""
    return re.findall(rf"^  {state} +(.*)$", ended.out.partition("Findings:")[2], re.MULTILINE)


def test_all_is_well(doctor: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """One request; every line of the findings has its word; nothing is left behind."""
    ended = doctor("--model", "judge-4", **azure(judge))
    assert (ended.code, ended.err, len(judge.requests)) == (0, "", 1)
    assert ended.out.startswith("Findings:\n")
    assert "Problems: 0, warnings: 0\n" in ended.out
    lines = ended.out.partition("Findings:\n")[2].partition("Problems")[0].splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    found = "\n".join(findings(ended, "ok"))
    assert f"rag-eval {__version__}" in found
    for name in ("python", "openai", "ragas", "pydantic", "openpyxl", "xlsxwriter"):
        assert re.search(rf"^{name} \d+\.\d+", found, re.MULTILINE)
    assert "endpoint from environment variable AZURE_OPENAI_ENDPOINT" in found
    assert "api_key from environment variable AZURE_OPENAI_API_KEY" in found
    assert "deployment judge-4, at 127.0.0.1, called directly" in found
    assert "structured_output = json_schema, temperature = 0 and max_tokens are accepted" in found
    assert re.search(r"answered in \d+\.\d s, [1-9]\d* \+ [1-9]\d* tokens", found)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_in_another_folder_is_named_with_the_option_that_uses_it(
    doctor: Run, rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    rag_eval("init", "my project")
    ended = doctor("--no-call", **azure(judge))
    path = tmp_path / "my project" / "config.ini"
    named = f"File: {path} is not used; to use it, add --config 'my project/config.ini'"
    assert named in findings(ended, "warning")
    ended = doctor("--no-call", "--config", "my project/config.ini", **azure(judge))
    assert f"File: {path} was read" in findings(ended, "ok")
    assert findings(ended, "warning") == []
    rag_eval("init")
    assert findings(doctor("--no-call", **azure(judge)), "warning") == []


def test_each_setting_stands_there_with_its_source(doctor: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "my.ini").write_text(
        "[evaluation]\nmax_rows = 7\nparallel = no\n[azure]\ndeployment = small\n"
    )
    (tmp_path / ".env").write_text(f"AZURE_OPENAI_API_KEY={KEY}\n")
    (tmp_path / ".env").chmod(0o600)
    arguments = ("--config", "my.ini", "--model", "large", "--no-call")
    ended = doctor(*arguments, "--all", AZURE_OPENAI_ENDPOINT=judge.url)
    listed = re.findall(r"^  \[(\w+)\] (\w+) = (.*?)  +(.*)$", ended.out, re.MULTILINE)
    assert [line[:2] for line in listed] == [
        (section, key) for section, values in Settings() for key, _ in values
    ]
    shown = {f"{section}.{key}": (value, source) for section, key, value, source in listed}
    assert shown["evaluation.max_rows"] == ("7", "my.ini line 2")
    assert shown["evaluation.parallel"] == ("false", "my.ini line 3")
    assert shown["evaluation.max_workers"] == ("2", "default")
    assert shown["azure.deployment"] == ("large", "command line --model")
    assert shown["azure.endpoint"] == (judge.url, "environment variable AZURE_OPENAI_ENDPOINT")
    assert shown["azure.api_key"] == ("set", ".env line 1")
    assert shown["openai.api_key"] == ("not set", "default")
    assert shown["limits.max_cost"] == ("(empty)", "default")
    assert f"File: {tmp_path / 'my.ini'} was read" in findings(ended, "ok")
    assert f"File: {tmp_path / 'backend' / '.env'} was not found" in findings(ended, "ok")
    assert [text for text in findings(ended, "ok") if text.startswith("Credentials")] == [
        "Credentials: endpoint from environment variable AZURE_OPENAI_ENDPOINT, api_key from .env line 1"
    ]


def test_only_settings_that_differ_from_their_default_are_shown_after_the_findings(
    doctor: Run, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text(
        "[evaluation]\nmax_rows = 7\nmax_workers = 2\n[limits]\nmax_cost =\n"
    )
    ended = doctor("--judge", "offline")
    listed = ended.out.partition("Settings, and where they come from:\n")[2].splitlines()
    assert [line.split()[:2] for line in listed[:-1]] == [
        ["[judge]", "provider"],
        ["[evaluation]", "max_rows"],
    ]
    count = sum(len(list(values)) for _, values in Settings())
    assert listed[-1] == f"  {count - 2} settings have their default; add --all to see them."
    assert "settings have their default" not in doctor("--judge", "offline", "--all").out


def test_no_call_sends_nothing(doctor: Run, judge: FakeJudge) -> None:
    ended = doctor("--no-call", **azure(judge))
    assert (ended.code, judge.requests) == (0, [])
    assert "Call: skipped (--no-call)" in findings(ended, "ok")


def test_the_offline_judge_needs_nothing_and_is_not_called(doctor: Run, judge: FakeJudge) -> None:
    ended = doctor("--judge", "offline", **azure(judge))
    assert (ended.code, judge.requests) == (0, [])
    assert [text for text in findings(ended, "ok") if "no call was made" in text]


def test_a_server_on_this_computer_needs_no_key(doctor: Run, judge: FakeJudge) -> None:
    ended = doctor("--judge", "openai", "--model", "local", OPENAI_BASE_URL=f"{judge.url}/v1")
    assert (ended.code, len(judge.requests)) == (0, 1)
    assert [text for text in findings(ended, "ok") if "no api_key (none is needed)" in text]
    assert "Judge: local at 127.0.0.1, called directly" in findings(ended, "ok")


@pytest.mark.parametrize(
    ("parameter", "message", "said"),
    [
        (
            "max_tokens",
            "Unsupported parameter: use 'max_completion_tokens' instead.",
            "expects max_completion_tokens",
        ),
        ("temperature", "temperature is not supported with this model.", "does not accept a temperature"),
        ("response_format", "json_schema is not supported.", "does not accept a JSON schema"),
    ],
)
def test_what_the_endpoint_does_not_take_is_said(
    doctor: Run, judge: FakeJudge, parameter: str, message: str, said: str
) -> None:
    """One more request settles it, and runs work all the same."""
    judge.faults.append(error(400, "unsupported_parameter", message, parameter))
    ended = doctor(**azure(judge))
    assert (ended.code, len(judge.requests)) == (0, 2)
    (warning,) = findings(ended, "warning")
    assert said in warning
    assert "are accepted" not in ended.out


LLAMA_CPP = {
    "object": "list",
    "data": [{"id": "/models/local.gguf", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}}],
}
VLLM = {
    "object": "list",
    "data": [{"id": "other", "max_model_len": 16}, {"id": "local", "max_model_len": 2048}],
}


@pytest.mark.parametrize(
    ("models", "state", "said"),
    [
        (LLAMA_CPP, "ok", "Context: 8,192 tokens"),
        (
            VLLM,
            "warning",
            "Context: 2,048 tokens for a prompt and its reply, by the server's account; long contexts",
        ),
        ({"data": [{"id": "local", "object": "model"}]}, "", ""),
        ({"data": "none"}, "", ""),
        (None, "", ""),
    ],
)
def test_the_context_is_what_the_server_says(
    doctor: Run, judge: FakeJudge, models: object, state: str, said: str
) -> None:
    judge.models = models
    ended = doctor("--judge", "openai", "--model", "local", OPENAI_BASE_URL=f"{judge.url}/v1")
    assert ended.code == 0
    assert ("Context:" in ended.out) == bool(said)
    assert not said or [text for text in findings(ended, state) if text.startswith(said)]


def at_speed(reading: float, writing: float, *, start: float = 0.6) -> Callable[[Request], Answer]:
    """A server of so many words a second, which takes longer for its first reply."""
    starts = [start]

    def reply(request: Request) -> Answer:
        content = json.dumps({"numbers": [*range(1, 61)]} if "numbers" in request.prompt else {"ready": True})
        seconds = len(request.prompt.split()) / reading + len(content.split()) / writing
        time.sleep(seconds + (starts.pop() if starts else 0))
        return completion(content, request)

    return reply


@pytest.mark.slow
def test_a_slow_server_is_measured_and_gets_the_settings_that_suit_it(
    doctor: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """At 1000 and 30 tokens a second, a usual call takes 11.4 s; how long the server starts does not matter."""
    judge.always = at_speed(1_000, 30)
    (tmp_path / "config.ini").write_text(
        "[evaluation]\nmax_workers = 8\n[judge]\nprovider = openai\ntimeout_seconds = 20\n"
    )
    ended = doctor("--model", "local", OPENAI_BASE_URL=f"{judge.url}/v1")
    assert (ended.code, len(judge.requests)) == (0, 4)
    (speed,) = [text for text in findings(ended, "ok") if text.startswith("Speed:")]
    reading, writing = re.findall(r"tokens_per_second = (\S+)", speed)
    assert (float(reading), float(writing)) == (
        pytest.approx(1_000, rel=0.15),
        pytest.approx(30, rel=0.15),
    )
    assert findings(ended, "warning") == [
        "Patience: a slow server needs [judge] timeout_seconds = 60 and [evaluation] max_workers = 2"
    ]


def test_a_server_that_only_starts_slowly_is_not_measured(doctor: Run, judge: FakeJudge) -> None:
    judge.always = at_speed(1e9, 1e9)
    ended = doctor("--judge", "openai", "--model", "local", OPENAI_BASE_URL=f"{judge.url}/v1")
    assert (ended.code, len(judge.requests), "Speed:" in ended.out) == (0, 2, False)


def uncounted(request: Request) -> Answer:
    content = '{"numbers": [1]}' if "numbers" in request.prompt else '{"ready": true}'
    return json_answer(200, {"choices": [{"message": {"content": content}}]})


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (uncounted, ", since the server does not count tokens"),
        (
            lambda request: error(400, "400", "no"),
            " (HTTP 400 at /v1/chat/completions (400 no): the endpoint does not accept this request)",
        ),
    ],
)
def test_a_speed_that_cannot_be_measured_is_no_problem(
    doctor: Run, judge: FakeJudge, later: Callable[[Request], Answer], why: str
) -> None:
    asked: list[Request] = []

    def reply(request: Request) -> Answer:
        asked.append(request)
        time.sleep(0.05 if asked[1:] else 0.5)
        return later(request) if asked[1:] else completion('{"ready": true}', request)

    judge.always = reply
    ended = doctor("--judge", "openai", "--model", "local", OPENAI_BASE_URL=f"{judge.url}/v1")
    assert (ended.code, findings(ended, "warning")) == (0, [f"Speed: could not be measured{why}"])


@pytest.mark.parametrize(
    ("usual", "timeout", "workers", "advice"),
    [
        (9.9, 1, 8, []),
        (10, 59, 8, ["[judge] timeout_seconds = 60", "[evaluation] max_workers = 2"]),
        (10, 60, 3, ["[evaluation] max_workers = 2"]),
        (10, 60, 2, []),
        (15, 29, 1, ["[judge] timeout_seconds = 30"]),
        (15.1, 59, 1, ["[judge] timeout_seconds = 60"]),
    ],
)
def test_a_slow_server_gets_as_much_time_as_it_needs_and_few_calls_at_once(
    usual: float, timeout: float, workers: int, advice: list[str]
) -> None:
    values = {"judge": {"timeout_seconds": timeout}, "evaluation": {"max_workers": workers}}
    assert _patience(usual, Settings.model_validate(values)) == advice
    assert Speed(700, 100).usual_call == 1_400 / 700 + 300 / 100


@pytest.mark.slow
def test_a_reply_that_is_cut_measures_the_speed_as_well(doctor: Run, judge: FakeJudge) -> None:
    def cut_numbers(request: Request) -> Answer:
        whole = answer(request)
        return completion(NUMBERS, request, finish="length") if "numbers" in request.prompt else whole

    judge.always, answer = cut_numbers, at_speed(10_000, 30)
    ended = doctor("--judge", "openai", "--model", "local", OPENAI_BASE_URL=f"{judge.url}/v1")
    assert (ended.code, len(judge.requests)) == (0, 4)
    (writing,) = re.findall(r"reply_tokens_per_second = (\S+)", ended.out)
    assert float(writing) == pytest.approx(30, rel=0.15)


NUMBERS = '{"numbers": ' + json.dumps([*range(1, 61)])[:-1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0123456, "0.0123"),
        (2.345, "2.35"),
        (19.96, "20"),
        (512.4, "512"),
        (2013.7, "2010"),
        (3e6, "3000000"),
    ],
)
def test_speeds_have_three_digits_and_are_never_0(value: float, shown: str) -> None:
    assert _three_digits(value) == shown


def supporting(verdict: Callable[[str], int]) -> Callable[[Request], Answer | None]:
    """A judge that gives the verdict on each statement."""

    def reply(request: Request) -> Answer | None:
        if request.task != "verdicts":
            return None
        sent = json.loads(request.prompt.rpartition("input: ")[2].removesuffix("\nOutput: "))["statements"]
        verdicts = [{"statement": each, "reason": "because", "verdict": verdict(each)} for each in sent]
        return completion(json.dumps({"statements": verdicts}), request)

    return reply


@pytest.mark.parametrize(
    ("verdict", "code", "right"),
    [(lambda text: int("nine" in text), 0, 3), (lambda text: 1, 4, 1), (lambda text: 0, 4, 2)],
    ids=["knows", "always yes", "always no"],
)
def test_a_probe_lets_the_judge_score_what_is_known(
    doctor: Run, judge: FakeJudge, verdict: Callable[[str], int], code: int, right: int
) -> None:
    judge.always = supporting(verdict)
    ended = doctor("--probe", **azure(judge))
    assert (ended.code, judge.tasks()) == (code, {"preflight": 2, "statements": 3, "verdicts": 3})
    assert len([text for text in findings(ended, "ok") if text.startswith("Probe: ")]) == right
    problems = [f"Probe: {3 - right} of 3 known cases were misjudged"] if right < 3 else []
    assert [text.rpartition(": this")[0] for text in findings(ended, "problem")] == problems


def test_a_probe_without_a_score_is_not_called_misjudged(doctor: Run, judge: FakeJudge) -> None:
    judge.always = lambda request: None if request.task == "preflight" else error(400, "400", "no")
    ended = doctor("--probe", **azure(judge))
    assert ended.code == 4
    assert findings(ended, "problem") == [
        "Probe: 3 of 3 known cases got no score, for the reasons above; if they are about the judge's replies, "
        "use a larger model"
    ]


def test_a_probe_of_a_judge_that_cannot_be_reached_is_code_4(doctor: Run, judge: FakeJudge) -> None:
    judge.always = lambda request: None if request.task == "preflight" else error(401, "401", "no")
    ended = doctor("--probe", **azure(judge))
    assert (ended.code, len(judge.requests)) == (4, 3)
    assert findings(ended, "problem")[0].startswith("Probe: ")


@pytest.mark.parametrize(
    ("short", "long_prompt", "long_reply", "speed"),
    [
        (Timed(20, 10, 1.2), Timed(1020, 10, 11.2), Timed(20, 110, 11.2), Speed(100, 10)),
        (Timed(20, 10, 1.2), Timed(1020, 30, 13.2), Timed(20, 110, 11.2), Speed(100, 10)),
        (Timed(20, 10, 2.0), Timed(1020, 10, 12.0), Timed(20, 11, 2.1), Speed(100, 5)),
        (Timed(20, 10, 1.0), Timed(1020, 10, 1.0), Timed(20, 110, 1.0), Speed(1e6, 1e5)),
        (Timed(20, 0, 1.0), Timed(1020, 0, 2.0), Timed(20, 0, 2.0), None),
        (Timed(0, 10, 1.0), Timed(0, 10, 2.0), Timed(0, 110, 2.0), None),
    ],
    ids=["both", "thinks", "writes no more", "no time", "no reply counted", "no prompt counted"],
)
def test_the_speed_comes_from_what_more_tokens_took_longer(
    short: Timed, long_prompt: Timed, long_reply: Timed, speed: Speed | None
) -> None:
    found = speed_of(short, long_prompt, long_reply)
    assert found == speed or (found and astuple(found) == pytest.approx(astuple(speed)))


def nonsense(request: Request) -> Answer:
    return completion("Yes, I am ready.", request)


def cut(request: Request) -> Answer:
    return completion(honest_reply(request.prompt)[:5], request, finish="length")


REFUSALS: dict[str, tuple[Answer | Callable[[Request], Answer], str]] = {
    "key": (error(401, KEY, f"Incorrect key {KEY}"), "check that it belongs to this endpoint"),
    "deployment": (error(404, "DeploymentNotFound", "none"), "check the deployment or model name"),
    "address": (error(404, "404", "Resource not found"), "check the endpoint's address"),
    "rate limit": (error(429, "429", "slow down", retry_after="0"), "rate limit is reached"),
    "server": (error(500, "500", "broken"), "the endpoint failed"),
    "request": (error(400, "OperationNotSupported", "no chat here"), "does not accept this request"),
    "page": (Answer(200, b"<html>sign in</html>"), "a web page instead of a completion"),
    "reply": (nonsense, "does not fit its schema"),
    "more than was asked": (completion('{"ready": true, "mood": "good"}'), "does not fit its schema"),
    "cut reply": (cut, "cut at its token limit"),
    "reset": (Answer(is_reset=True), "broke off"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_judge_without_a_usable_reply_is_code_4_after_one_request(
    doctor: Run, judge: FakeJudge, name: str
) -> None:
    """Some of these would not stop a run before it began; each is asked once, since it may be paid."""
    judge.always, advice = REFUSALS[name]
    ended = doctor(**azure(judge))
    assert (ended.code, len(judge.requests)) == (4, 1)
    (problem,) = findings(ended, "problem")
    assert advice in problem
    assert "are accepted" not in ended.out


def test_an_endpoint_that_is_not_there_is_code_4(doctor: Run) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = doctor(AZURE_OPENAI_ENDPOINT=f"http://127.0.0.1:{port}", AZURE_OPENAI_API_KEY=KEY)
    assert ended.code == 4
    (problem,) = findings(ended, "problem")
    assert "nothing listens at this address" in problem


def test_missing_credentials_are_code_2_in_the_words_of_a_run(
    doctor: Run, run_cli: Run, tmp_path: Path
) -> None:
    ended = doctor()
    (problem,) = findings(ended, "problem")
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq,a\n")
    assert f"rag-eval: {problem}" in run_cli("in.csv").err
    assert (ended.code, "endpoint and api_key not set. Set them" in problem) == (2, True)


def test_every_wrong_setting_is_a_finding_and_nothing_is_sent(
    doctor: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 0\n[thresholds]\nfaithfullness = 1\n")
    ended = doctor(**azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert [text.partition(":")[0] for text in findings(ended, "problem")] == [
        "config.ini, line 2, [evaluation] max_rows",
        "config.ini, line 4, [thresholds] faithfullness",
    ]
    assert ended.out.endswith("Problems: 2, warnings: 0\n")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            "[cache]\nenabled = true\ndirectory = file/cache\n",
            "Cache: file/cache cannot be written to (Not a directory): name another folder in [cache] directory",
        ),
        ("[limits]\nmax_cost = 1\n", "[limits] max_cost: the price of gpt-4o is not known"),
    ],
)
@pytest.mark.parametrize("is_answered", [True, False])
def test_what_would_stop_a_run_here_is_code_2_whatever_the_judge_says(
    doctor: Run, judge: FakeJudge, tmp_path: Path, config: str, said: str, is_answered: bool
) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "config.ini").write_text(config)
    judge.always = None if is_answered else error(500, "500", "broken")
    ended = doctor(**azure(judge))
    problems = findings(ended, "problem")
    assert (ended.code, len(problems), len(judge.requests)) == (2, 1 if is_answered else 2, 1)
    assert said in problems[0]


def test_the_folder_of_a_cache_is_looked_at_and_not_made(doctor: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\ndirectory = a/b\n")
    ended = doctor("--judge", "offline")
    assert "Cache: on; a/b can be written to" in findings(ended, "ok")
    assert [path.name for path in tmp_path.iterdir()] == ["config.ini"]


def test_a_cache_that_is_off_need_not_be_writable(doctor: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[cache]\ndirectory = config.ini/b\n")
    ended = doctor("--judge", "offline")
    assert ended.code == 0
    assert [text for text in findings(ended, "ok") if text.startswith("Cache: off; config.ini/b cannot be")]


def test_a_file_with_a_key_that_others_can_read_is_a_warning(doctor: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(f"[azure]\nendpoint = https://r.example.com\napi_key = {KEY}\n")
    (tmp_path / "config.ini").chmod(0o644)
    ended = doctor("--no-call")
    assert ended.code == 0
    assert [text for text in findings(ended, "warning") if "chmod 600 config.ini" in text]
    assert "Problems: 0, warnings: 1\n" in ended.out


def test_a_key_is_hidden_even_where_it_does_not_belong(doctor: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """The fixture looks for it; here it is in the names of the deployments as well."""
    (tmp_path / "config.ini").write_text(f"[toxicity]\ndeployment = {KEY}\n")
    ended = doctor("--model", KEY, "--no-call", **azure(judge))
    assert "deployment [key], at 127.0.0.1" in ended.out
    assert "Toxicity judge: [key] at the same endpoint" in ended.out


def test_proxies_are_named_by_their_variables_alone(doctor: Run, judge: FakeJudge) -> None:
    """Their values may hold passwords. This computer is asked directly, whatever they say."""
    proxy = {"HTTPS_PROXY": "http://me:hush@proxy.example:1", "no_proxy": "intranet.example", "ALL_PROXY": ""}
    ended = doctor(**azure(judge), **proxy)
    assert (ended.code, len(judge.requests)) == (0, 1)
    assert "Proxies: the environment sets HTTPS_PROXY, no_proxy" in findings(ended, "ok")
    assert [word for word in ("hush", "proxy.example", "intranet") if word in ended.out + ended.err] == []
    away = doctor(
        "--no-call", AZURE_OPENAI_ENDPOINT="https://r.example.com", AZURE_OPENAI_API_KEY=KEY, **proxy
    )
    assert [
        text for text in findings(away, "ok") if text.endswith("at r.example.com, called through a proxy")
    ]


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"SSL_CERT_FILE": "/nowhere/ca.pem"}, "SSL_CERT_FILE = /nowhere/ca.pem: cannot be read"),
        ({"SSL_CERT_FILE": "", "SSL_CERT_DIR": "/nowhere"}, "SSL_CERT_DIR = /nowhere: has no certificates"),
        (
            {"ALL_PROXY": "socks5://me:hush@proxy.example:1"},
            "ALL_PROXY = socks5://proxy.example:1: this proxy",
        ),
    ],
)
@pytest.mark.parametrize("option", [(), ("--no-call",)])
def test_a_proxy_or_certificates_that_cannot_be_used_are_code_2_as_in_a_run(
    doctor: Run, run_cli: Run, tmp_path: Path, variables: dict[str, str], told: str, option: tuple[str, ...]
) -> None:
    endpoint = {"AZURE_OPENAI_ENDPOINT": "https://judge.invalid", "AZURE_OPENAI_API_KEY": KEY}
    ended = doctor(*option, **endpoint, **variables)
    (problem,) = findings(ended, "problem")
    assert problem.startswith(f"Judge: {told}")
    assert (ended.code, "Problems: 1, warnings: 0\n" in ended.out) == (2, True)
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq,a\n")
    in_a_run = run_cli("in.csv", **endpoint, **variables)
    assert (in_a_run.code, f"rag-eval: {told}" in in_a_run.err, "hush" in in_a_run.err + ended.out) == (
        2,
        True,
        False,
    )


WITHOUT_RAGAS = "import sys; sys.modules['ragas'] = None"
WITHOUT_OPENPYXL = """
import importlib.metadata as metadata
found = metadata.version
def version(name):
    if name == "openpyxl":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
"""


WITHOUT_IDENTITY = "import sys; sys.modules['azure.identity.aio'] = None"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "arguments", "config", "said"),
    [
        (WITHOUT_RAGAS, ["--no-call"], "", "pip install --no-deps -r requirements-light.lock"),
        (WITHOUT_IDENTITY, [], "[azure]\nauth = entra\n", "pip install '.[entra]'"),
        (
            WITHOUT_OPENPYXL,
            ["--judge", "offline"],
            "",
            "openpyxl is not installed: pip install . in RAG Eval's folder",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    tmp_path: Path, damage: str, arguments: list[str], config: str, said: str
) -> None:
    (tmp_path / "config.ini").write_text(config)
    code = f"{damage}\nfrom rag_eval.cli import main\nmain()"
    environment = {
        "PYTHONPATH": str(ROOT),
        "AZURE_OPENAI_ENDPOINT": "https://r.example.com",
        "AZURE_OPENAI_API_KEY": KEY,
    }
    ran = subprocess.run(
        [sys.executable, "-c", code, "doctor", *arguments],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (problem,) = findings(Ended(ran.returncode, ran.stdout, ran.stderr), "problem")
    assert (ran.returncode, said in problem) == (2, True)


def test_a_second_judge_for_toxicity_is_named_and_not_called(
    doctor: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text("[toxicity]\ndeployment = small\n")
    ended = doctor(**azure(judge))
    assert (ended.code, [request.body["model"] for request in judge.requests]) == (0, ["gpt-4o"])
    assert [text for text in findings(ended, "ok") if text.startswith("Toxicity judge: small")]


def test_the_rubric_is_read(doctor: Run, tmp_path: Path) -> None:
    """What a run would refuse is said here, too."""
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n[rubric]\nfile = r.json\n")
    ended = doctor()
    assert ended.code == 2
    assert any("r.json: there is no such rubric file" in problem for problem in findings(ended, "problem"))
    (tmp_path / "r.json").write_text(
        '{"rubric_id": "tone", "passing_score_threshold": 0, "metrics": [{"id": "polite", "rubric": "It is polite."}]}'
    )
    ended = doctor()
    assert ended.code == 0
    assert "Rubric: tone, criteria: 1" in findings(ended, "ok")


def test_the_columns_that_the_configuration_names_are_shown_and_none_is_two_things(
    doctor: Run, tmp_path: Path
) -> None:
    config = tmp_path / "config.ini"
    config.write_text("[judge]\nprovider = offline\n[columns]\nquery = Frage\nbots = answer, model_*\n")
    ended = doctor()
    assert ended.code == 0
    assert findings(ended, "ok").count(
        "Columns: query = Frage, bots = answer, bots = model_*; rag-eval FILE --show prints how a file is read"
    )
    config.write_text("[judge]\nprovider = offline\n[columns]\nquery = Frage Nr\nreference = frage_nr\n")
    ended = doctor()
    assert (ended.code, findings(ended, "problem")) == (
        2,
        ["[columns] query and reference: both name 'frage_nr'; name it once"],
    )
