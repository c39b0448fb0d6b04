"""The key is the request: what can change the reply changes the key, and nothing else does."""

from dataclasses import replace

import pytest
from pydantic import BaseModel

from rag_eval.judge.calls import Call, Message
from rag_eval.judge.endpoint import Dialect, Endpoint, request_body, request_key


class Number(BaseModel):
    n: int


class Numbers(BaseModel):
    n: list[int]


ENDPOINT = Endpoint("azure", "https://a.example.com", "key", "judge", "2024-12-01-preview")
DIALECT = Dialect()
CALL = Call("task", (Message("system", "Rate."), Message("user", "text")), Number)
KEY = request_key(ENDPOINT, DIALECT, CALL)


@pytest.mark.parametrize(
    "key",
    [
        request_key(replace(ENDPOINT, provider="openai"), DIALECT, CALL),
        request_key(replace(ENDPOINT, url="https://b.example.com"), DIALECT, CALL),
        request_key(replace(ENDPOINT, model="other"), DIALECT, CALL),
        request_key(replace(ENDPOINT, api_version="2025-01-01"), DIALECT, CALL),
        request_key(replace(ENDPOINT, temperature=0.7), DIALECT, CALL),
        request_key(ENDPOINT, replace(DIALECT, takes_temperature=False), CALL),
        request_key(ENDPOINT, replace(DIALECT, output="json_object"), CALL),
        request_key(ENDPOINT, replace(DIALECT, token_limit="max_completion_tokens"), CALL),
        request_key(ENDPOINT, DIALECT, replace(CALL, messages=(Message("user", "Rate."), CALL.messages[1]))),
        request_key(ENDPOINT, DIALECT, replace(CALL, messages=(CALL.messages[0], Message("user", "text ")))),
        request_key(ENDPOINT, DIALECT, replace(CALL, messages=CALL.messages[::-1])),
        request_key(ENDPOINT, DIALECT, replace(CALL, reply_type=Numbers)),
        request_key(ENDPOINT, DIALECT, replace(CALL, max_tokens=7)),
        request_key(ENDPOINT, DIALECT, replace(CALL, deployment="cheap")),
    ],
)
def test_what_is_in_the_request_is_in_the_key(key: str) -> None:
    assert key != KEY


@pytest.mark.parametrize(
    "key",
    [
        request_key(replace(ENDPOINT, api_key="another"), DIALECT, CALL),
        request_key(replace(ENDPOINT, workers=64, timeout_seconds=5.0, max_attempts=1), DIALECT, CALL),
        request_key(replace(ENDPOINT, requests_per_minute=10.0), DIALECT, CALL),
        request_key(replace(ENDPOINT, url="https://a.example.com/"), DIALECT, CALL),
        request_key(ENDPOINT, DIALECT, replace(CALL, task="renamed", agrees_with={"statements": 2})),
    ],
)
def test_what_cannot_change_the_reply_is_not(key: str) -> None:
    """A new key, more workers or another name of the task must not pay for the same reply again."""
    assert key == KEY


def test_the_body_is_the_same_for_the_same_call() -> None:
    assert request_body(ENDPOINT, DIALECT, CALL, 9) == request_body(ENDPOINT, DIALECT, CALL, 9)
    assert len(KEY) == 64
