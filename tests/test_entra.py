"""Azure resources that take a token of Microsoft Entra ID instead of a key."""

import asyncio
import sys
from pathlib import Path

import pytest
from conftest import Run
from fake_judge import FakeJudge, error
from files import write_table
from in_process import DictStore
from test_transport import Notebook

from rag_eval.errors import InputError, RunStoppedError
from rag_eval.judge.calls import Call, Message
from rag_eval.judge.connection import _Writer
from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.providers import token_provider
from rag_eval.judge.scheduler import Scheduler
from rag_eval.judge.transport import Transport
from rag_eval.metrics.reply_types import GeneratedQuestion


async def ask() -> str:
    task = "Generate a question for the given answer\nNow perform the same with the following input\n"
    prompt = task + 'input: {"response": "Paris."}\nOutput: '
    return (await Call("t", (Message("user", prompt),), GeneratedQuestion)).question


def test_the_token_is_sent_and_no_key(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that lies about in the environment is not sent either."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "stray-key-from-the-environment")

    async def token() -> str:
        return "entra-token"

    transport = Transport(
        Endpoint("azure", judge.url, "", "m", "2024-12-01-preview", token_provider=token), Notebook()
    )
    scheduler = Scheduler(transport, DictStore(), workers=1)
    assert list(scheduler.run([ask()], window=1))
    scheduler.close()
    transport.close()
    for request in judge.requests:
        assert request.headers["authorization"] == "Bearer entra-token"
        assert "api-key" not in request.headers


def test_an_error_that_quotes_the_token_is_shown_without_it(judge: FakeJudge) -> None:
    secret = "eyJ0eXAi.QiLCJhbGciOi.0123456789"

    async def token() -> str:
        return secret

    judge.always = error(401, "401", f"Bearer {secret} ({secret[:14]}...) has expired")
    transport = Transport(Endpoint("azure", judge.url, "", "m", "v", token_provider=token), Notebook())
    with pytest.raises(RunStoppedError, match=r"Bearer \[key\] \(\[key\]\.\.\.\) has expired"):
        transport.prepare("")
    transport.close()


def test_requests_that_come_at_once_need_one_token() -> None:
    asked: list[str] = []

    async def token() -> str:
        asked.append("token")
        await asyncio.sleep(0.01)
        return "entra-token"

    async def several() -> set[str]:
        writer = _Writer(Endpoint("azure", "https://x.openai.azure.com", "", "m", "v", token_provider=token))
        heads = await asyncio.gather(*(writer.head("m") for _ in range(20)))
        return {head.headers["authorization"] for head in heads}

    assert asyncio.run(several()) == {"Bearer entra-token"}
    assert asked == ["token"]


def test_no_token_stops_the_run_before_any_request(judge: FakeJudge) -> None:
    async def none() -> str:
        raise RunStoppedError("unauthorized", "Microsoft Entra ID gives no token")

    transport = Transport(Endpoint("azure", judge.url, "", "m", "v", token_provider=none), Notebook())
    with pytest.raises(RunStoppedError, match="no token"):
        transport.prepare("")
    transport.close()
    assert judge.requests == []


def test_the_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "azure.identity.aio", None
    )  # how Python spells a package that is not there
    with pytest.raises(InputError, match=r"pip install '\.\[entra\]' in RAG"):
        token_provider()


@pytest.mark.slow
def test_without_a_credential_the_reason_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real package, on a machine that is signed in nowhere; it may not look for one over the network."""
    pytest.importorskip("azure.identity")
    for name in ("AZURE_TOKEN_CREDENTIALS",):
        monkeypatch.setenv(name, "EnvironmentCredential")
    with pytest.raises(RunStoppedError, match="Microsoft Entra ID gives no token") as stopped:
        asyncio.run(token_provider()())  # type: ignore[arg-type]
    assert "\n" not in str(stopped.value)


def test_entra_needs_no_key_but_an_endpoint(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[azure]\nauth = entra\n")
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "a"])
    ended = run_cli("in.xlsx")
    assert ended.code == 2
    assert "endpoint not set" in ended.err
    assert "api_key" not in ended.err
