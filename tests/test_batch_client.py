"""Files and batches obey the rules of every other request: credentials, proxy, sizes, second tries."""

import tempfile
from collections.abc import Iterator

import pytest
from batch_server import BatchServer, running_batches
from conftest import KEY
from fake_judge import Answer, error, json_answer
from test_transport import Notebook

from rag_eval.errors import RunStoppedError
from rag_eval.judge.batches.client import BatchClient
from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.transport import Transport


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with running_batches() as running:
        yield running


@pytest.fixture
def client(server: BatchServer) -> Iterator[BatchClient]:
    transport = Transport(
        Endpoint("openai", f"{server.url}/v1", KEY, "m"), Notebook(), sleep=lambda seconds: None
    )
    yield BatchClient(transport, "/v1/chat/completions")
    transport.close()


def test_a_token_of_entra_is_sent_and_no_key(server: BatchServer) -> None:
    async def token() -> str:
        return "entra-token"

    endpoint = Endpoint("azure", server.url, "", "m", "2024-12-01-preview", token_provider=token)
    transport = Transport(endpoint, Notebook())
    batches = BatchClient(transport, "/chat/completions")
    with tempfile.TemporaryFile() as file:
        file.write(b"{}")
        name = batches.upload(file, 2)
    assert batches.is_ready(name)
    assert batches.delete(name)
    transport.close()
    for headers in server.headers:
        assert headers["authorization"] == "Bearer entra-token"
        assert "api-key" not in headers


def test_the_proxy_of_the_environment_is_used(server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "")
    said: list[str] = []
    transport = Transport(
        Endpoint("openai", "http://judge.invalid/v1", KEY, "m"), Notebook(), announce=said.append
    )
    assert BatchClient(transport, "/v1/chat/completions").batch("batch-1") is None
    transport.close()
    assert server.calls == ["GET http://judge.invalid/v1/batches/batch-1"]
    assert "go through the proxy" in said[0]


def test_a_download_is_no_longer_than_it_may_be(server: BatchServer, client: BatchClient) -> None:
    name = server.keep("out", b"x" * 1000)
    with tempfile.TemporaryFile() as file:
        assert client.download(name, file, 1000)
        assert len(file.read()) == 1000
    with tempfile.TemporaryFile() as file, pytest.raises(RunStoppedError, match="longer than it can be"):
        client.download(name, file, 999)


def test_a_download_that_is_cut_begins_again(server: BatchServer, client: BatchClient) -> None:
    name = server.keep("out", b"x" * 1000)
    cuts = iter([Answer(200, b"y" * 1000, cut_after=500), error(503, "", "busy")])
    server.hook = lambda event: next(cuts, None)
    with tempfile.TemporaryFile() as file:
        assert client.download(name, file, 1000)
        assert file.read() == b"x" * 1000
    assert len(server.calls) == 3


def test_a_file_that_is_gone_is_no_error(client: BatchClient) -> None:
    with tempfile.TemporaryFile() as file:
        assert not client.download("out-9", file, 10)
    assert client.delete("out-9")
    assert client.batch("batch-9") is None


def test_an_endpoint_that_takes_no_expiry_gets_none(server: BatchServer, client: BatchClient) -> None:
    refusal = error(400, "unknown_parameter", "Unknown parameter: 'expires_after'.")
    refused = iter([refusal])
    server.hook = lambda event: next(refused, None)
    with tempfile.TemporaryFile() as file:
        file.write(
            b'{"custom_id": "a", "url": "/v1/chat/completions", "method": "POST", "body": {"model": "m"}}'
        )
        name = client.upload(file, 90)
    assert server.uploads == [{"purpose": "batch"}]
    others = iter([error(400, "unknown_parameter", "Unknown parameter: 'output_expires_after'.")])
    server.hook = lambda event: next(others, None)
    created = client.create(name, "token")
    assert "output_expires_after" not in server.batches[created.id].body
    assert server.batches[created.id].metadata == {"rag_eval": "token"}


@pytest.mark.parametrize(
    "document",
    [{}, {"id": 7}, {"id": "a/../b"}, {"id": "x" * 300}, {"id": "a?b=c"}, {"id": "a b"}],
    ids=str,
)
def test_a_name_that_is_none_gets_into_no_address(
    server: BatchServer, client: BatchClient, document: dict[str, object]
) -> None:
    server.hook = lambda event: json_answer(200, document)
    with tempfile.TemporaryFile() as file, pytest.raises(RunStoppedError, match="does not describe a file"):
        client.upload(file, 0)
