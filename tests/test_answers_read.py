"""What an endpoint's answers are taken for, to the letter: what is done next, its code, its words and its waits.

`answers_read.txt` has it. `python tests/test_answers_read.py` writes it anew after a change that is wanted; read what
differs before you keep it.
"""

import difflib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from provider_cases import CASES
from test_outcomes import CALL

from rag_eval.errors import RefusedReplyError
from rag_eval.judge.answers import read_body, read_status, refused_reply
from rag_eval.judge.calls import Call, Message
from rag_eval.judge.outcomes import Completion, Fault, oversized, timed_out, unreachable
from rag_eval.judge.quota import asked_wait, read_quotas
from rag_eval.judge.replies import json_of, read_reply

RECORDED = Path(__file__).parent / "answers_read.txt"
STATUSES = (
    301,
    308,
    400,
    401,
    402,
    403,
    404,
    405,
    407,
    408,
    409,
    410,
    413,
    418,
    422,
    425,
    429,
    500,
    503,
    599,
)
MESSAGES = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (8000 in the messages, 300 "
    "in the completion).",
    "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (8128 in the messages, 172 "
    "in the completion).",
    "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (8129 in the messages, 171 "
    "in the completion).",
    "This model's maximum context length is 4096 tokens. However, you requested 500 output tokens and your prompt "
    "contains at least 3597 input tokens.",
    "the request exceeds the available context size (2048), try increasing it",
    "'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens and your request "
    "has 40 input tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "temperature does not support 0.2 with this model",
    "temperature must be at most 2",
    "response_format is not supported",
    "json_schema is invalid",
    "Could not finish the message because max_tokens or model output limit was reached.",
    "Request too large for gpt-4o: limit 30000, requested 40000",
    "Rate limit reached. Please try again in 1m2.5s.",
    "Please retry after 9 seconds.",
    "Try again in 120ms.",
    "retry after 1h2m3s",
    "Loading model",
    "<html><b>Bad</b> gateway</html>",
    "a\n  b\u2028c" + " long" * 100,
)
FIELDS: tuple[dict[str, Any], ...] = (
    {"code": "content_filter", "innererror": {"content_filter_result": {"hate": {"filtered": True}, "self_harm": {}}}},
    {"inner_error": {"code": "ResponsibleAIPolicyViolation"}, "message": "no"},
    {"type": "insufficient_quota"}, {"code": "DeploymentNotFound"}, {"code": "model_not_found", "message": " "},
    {"param": "max_tokens", "code": "unsupported_parameter"}, {"param": "temperature", "code": "unsupported_value"},
    {"param": "response_format"}, {"n_ctx": 2048, "n_prompt_tokens": 3000}, {"n_ctx": 2048}, {"n_ctx": "2048"},
    {"code": "context_length_exceeded"}, {"detail": "no such route"}, {"message": None}, {"message": " "}, {},
)  # fmt: skip
HEADERS = (
    {"retry-after": "7"}, {"retry-after": "60"}, {"retry-after": "61"}, {"retry-after-ms": "1500", "retry-after": "9"},
    {"retry-after": "6m0s"}, {"retry-after": "1h2m3.5s"}, {"retry-after": "120ms"}, {"retry-after": "soon"},
    {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:27:30 GMT"},
    {"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:27:30 GMT"},
    {"x-request-id": "r-1"}, {"apim-request-id": "a" * 61, "x-request-id": "r-1"},
)  # fmt: skip
LIMITS = (
    {
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": "10s",
        "x-ratelimit-limit-requests": "10",
    },
    {
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m",
        "x-ratelimit-limit-tokens": "600",
    },
    {"x-rate-limit-remaining-tokens": "40", "x-rate-limit-reset-tokens": "30"},
    {"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "30"},
    {"x-ratelimit-remaining-tokens": "40", "x-ratelimit-reset-tokens": "0"},
    {"x-ratelimit-reset-requests": "2m"},
)
CHOICES: tuple[dict[str, Any], ...] = (
    {"message": {"content": '{"n": 1}'}, "finish_reason": "stop"}, {"message": {"content": None}}, {"message": None},
    {"message": {"content": [1]}}, {"message": {"refusal": "I will not.\n" * 30}},
    {"message": {"content": "half"}, "finish_reason": "content_filter"},
    {"message": {"content": "x"}, "content_filter_results": {"error": {"code": "content_filter_error"}}},
    {"message": {"content": '{"n": '}, "finish_reason": "length"},
    {"message": {"content": " "}, "finish_reason": "length"},
    {"message": {"content": "<think>so"}, "finish_reason": "length"},
    {"message": {"content": "<think>so</think>{"}, "finish_reason": "length"},
    {"message": {"reasoning_content": "thoughts"}, "finish_reason": "length"},
    {"message": {"reasoning": "the very same words again, " * 3}, "finish_reason": "length"},
    {"message": {"content": None, "reasoning_content": '\n{"n": 1}'}, "finish_reason": "stop"},
    {"message": {"content": "", "reasoning": "```json\n{}\n```"}, "finish_reason": "stop"},
    {"message": {"content": " ", "reasoning": "So it is 1."}, "finish_reason": "stop"},
    {"message": {"content": "{}", "reasoning_content": '{"n": 1}'}, "finish_reason": "stop"},
    {"message": {"content": "a" * 59}, "finish_reason": "length"},
    {"message": {"content": "a" * 60}, "finish_reason": "length"},
    {"message": {"content": "{" + "the same again, " * 3}, "finish_reason": "length"},
    {"message": {"content": "{" + "the very same words again, " * 3}, "finish_reason": "length"},
    {"message": {"content": "{" + "the very same words again, " * 2}, "finish_reason": "length"},
    {"message": {"content": "x", "reasoning_content": "the very same words again, " * 3}, "finish_reason": "length"},
)  # fmt: skip
USAGES: tuple[Any, ...] = (
    {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
    {"prompt_tokens": 11, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 40}},
    {"prompt_tokens": 0, "completion_tokens": 5}, {"prompt_tokens": -1, "completion_tokens": 10**12}, None, [],
)  # fmt: skip
BODIES = (
    "", " ", "<html>", "text", "[]", "{}", '{"choices": []}', '{"choices": [1]}', '{"error": "no"}', '{"n_ctx": 5}',
    "[" * 100_000,
)  # fmt: skip
REPLIES = (
    '{"n": 3}', "", '{"n": 6}', '{"n": -1}', '{"n": "3"}', '{"n": 3.0}', '{"n": true}',
    '{"n": 3, "n": 4}', '{"n": 3, "x": 1}',
    '{"n": NaN}', '{"n": 1e999}', "Sure: {}", "no", "[]", '```json\n{"n": 3}\n```', '```\n{"n": 3}```',
    '<think>6</think> {"n": 3}', '<think>{"n": 3}',
    '{"n": 3, "parts": [{"share": 2}, {"share": "half"}]}', '{"parts": []}', '{"n": 3} {"n": 4}',
    '{"is_sure": false, "n": 0}', "[" * 50_000, '{"n": 3, "parts": [{"share": 1, "' + "y" * 300 + '": 2}]}',
)  # fmt: skip


def words(found: Completion | Fault) -> str:
    """The fields that say something."""
    parts = {name: value for name, value in asdict(found).items() if value not in (None, "", False, (), 100)}
    tokens = parts.pop("tokens")
    if any(tokens.values()):
        parts["tokens"] = [*tokens.values()]
    return ", ".join(f"{name} {str(value)[:420]}" for name, value in parts.items())


def told() -> Iterator[str]:
    for case in CASES:
        found = (
            read_body(case.text)
            if case.status == 200
            else refused_reply(case.status, case.text)
            or read_status(case.status, case.headers, case.text, "/v1")
        )
        yield f"{case.id}: {words(found)}"
    for status in STATUSES:
        yield f"{status}: {words(read_status(status, {}, '', '/v1/chat'))}"
    for message in MESSAGES:
        for status in (400, 429, 503):
            found = read_status(status, {}, json.dumps({"error": {"message": message}}))
            yield f"{status} {message[:50]!r}: {words(found)}"
    for fields in FIELDS:
        for status in (400, 404, 429):
            yield f"{status} {fields}: {words(read_status(status, {}, json.dumps({'error': fields})))}"
    for headers in HEADERS:
        yield f"429 {headers}: {words(read_status(429, headers, 'busy'))}"
        yield f"wait {asked_wait(headers, 'try again in 3s')}"
        yield f"500 {headers}: {words(read_status(500, headers, '[1, 2]'))}"
    for headers in LIMITS:
        for is_refused in (False, True):
            quotas = read_quotas(headers, is_refused=is_refused)
            waits = {
                name: [quota.wait(wanted, age) for wanted in (1, 5, 6, 400) for age in (0, 4, 30)]
                for name, quota in quotas.items()
            }
            yield f"{headers} {is_refused}: {quotas} {waits}"
    for choice in CHOICES:
        body = {"choices": [choice], "usage": USAGES[0], "model": "m-1"}
        yield f"{str(choice)[:90]}: {words(read_body(json.dumps(body)))}"
    for usage in USAGES:
        for choice in CHOICES[:2]:
            yield f"{usage} {choice['message']}: {words(read_body(json.dumps({'choices': [choice], 'usage': usage})))}"
    yield from (f"{body[:20]!r}: {words(read_body(body))}" for body in BODIES)
    for reply in REPLIES:
        try:
            said = repr(read_reply(json_of(reply), CALL))
        except RefusedReplyError as error:
            said = f"{error.code}: {error}"
        yield f"{reply[:60]!r}: {said}"
    for messages in ((Message("user", "Rate it."),), (Message("system", "Rate."), Message("user", "It."))):
        call: Call[Any] | None = replace(CALL, messages=messages, tries=4)
        for text in ("one", "two", "three", "four"):
            call = call and call.corrected(RefusedReplyError("unparseable", f"{text} is no number", text))
            yield f"after {text}: {call and ([message.text for message in call.messages], call.refused)}"
    once = CALL.corrected(RefusedReplyError("unparseable", "no", "same"))
    yield f"the same again: {once and once.corrected(RefusedReplyError('unparseable', 'no', 'same'))}"
    yield words(timed_out(2.5))
    yield words(oversized(2_500_000))
    for error in (
        ConnectionRefusedError(111, "refused"),
        OSError(),
        ExceptionGroup("all", [TimeoutError("slow"), OSError()]),
    ):
        yield words(unreachable(error))


def test_answers_are_taken_for_what_they_were() -> None:
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    now = [" ".join(line.split()) for line in told()]
    assert [*difflib.unified_diff(recorded, now, "recorded", "now", n=0, lineterm="")] == []


if __name__ == "__main__":
    RECORDED.write_text("".join(f"{' '.join(line.split())}\n" for line in told()), encoding="utf-8")
