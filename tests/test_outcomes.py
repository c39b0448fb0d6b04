"""What an endpoint's answer means, and what counts as a reply: pure, without a network."""

import json
import math
import re
import ssl
from itertools import pairwise
from typing import Annotated, Any

import aiohttp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from provider_cases import CASES, ProviderCase
from pydantic import BaseModel, Field

from rag_eval.errors import RefusedReplyError
from rag_eval.judge.answers import read_body, read_status, refused_reply
from rag_eval.judge.calls import Call, Message
from rag_eval.judge.outcomes import (
    Action,
    Completion,
    Fault,
    Parameter,
    Tokens,
    oversized,
    timed_out,
    unreachable,
)
from rag_eval.judge.replies import json_of, read_reply

ROWS_WITHOUT_AN_ANSWER = {"A17", "A18", "A19", "A20", "A21", "A22"}
"""Resets, timeouts, connections and keys: what there is to prove stands in test_transport.py."""


class Part(BaseModel):
    share: float = 0.5


class Rating(BaseModel):
    """Written as carelessly as a model can be: reading is strict all the same."""

    n: Annotated[int, Field(ge=0, le=5)]
    is_sure: bool = True
    parts: list[Part] = []


CALL = Call("rating", (Message("user", "Rate it."),), Rating)


def outcome(case: ProviderCase) -> Completion | Fault:
    if case.status == 200:
        found = read_body(case.text)
    else:
        path = "/deployments/m/chat/completions"
        found = refused_reply(case.status, case.text) or read_status(
            case.status, case.headers, case.text, path
        )
    if isinstance(found, Completion):
        try:
            read_reply(json_of(found.content), CALL)
        except RefusedReplyError as error:
            return Fault(Action.REJECT, error.code, str(error), reply=found.content)
    return found


# Answers


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_answer_falls_into_one_class_with_a_stable_code(case: ProviderCase) -> None:
    found = outcome(case)
    if case.action == "ok":
        assert isinstance(found, Completion)
        return
    assert isinstance(found, Fault)
    assert (found.action, found.code, found.wait) == (Action(case.action), case.code, case.wait)
    assert (found.parameter is not None) == (case.action == "adapt")
    assert case.told in found.message


def test_every_row_of_the_provider_table_has_a_case() -> None:
    assert {case.row for case in CASES} | ROWS_WITHOUT_AN_ANSWER == {f"A{n}" for n in range(1, 33)}


@pytest.mark.parametrize("case", [case for case in CASES if case.status >= 300], ids=lambda case: case.id)
def test_a_message_names_status_request_and_a_next_step_on_one_line(case: ProviderCase) -> None:
    message = read_status(case.status, case.headers, case.text).message
    assert message.startswith(f"HTTP {case.status}")
    assert f"[request id-{case.id}]" in message
    assert "\n" not in message
    assert case.code in ("truncated",) or ": " in message.partition("[request")[2]


def test_azures_own_request_id_comes_first() -> None:
    headers = {"apim-request-id": "azure-1", "x-request-id": "other"}
    assert "[request azure-1]" in read_status(500, headers, "").message


def test_the_categories_that_were_hit_are_named() -> None:
    case = next(case for case in CASES if case.id == "a05_content_filter")
    message = read_status(400, {}, case.text).message
    assert "(jailbreak)" in message
    assert "hate" not in message.rpartition(":")[2]


def test_a07_a_filter_that_was_down_is_noted() -> None:
    case = next(case for case in CASES if case.id == "a07_filter_down")
    assert read_body(case.text) == Completion('{"n": 1}', Tokens(11, 5), is_unfiltered=True)


def test_tokens_of_an_unusable_reply_are_counted() -> None:
    case = next(case for case in CASES if case.id == "a28_cut")
    found = read_body(case.text)
    assert isinstance(found, Fault)
    assert found.tokens == Tokens(11, 5)


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        (0, 0),
        (7, 7),
        (-5, 0),
        (-1, 0),
        (10**9, 10**9),
        (10**9 + 1, 10**9),
        (2**63, 10**9),
        (10**400, 10**9),
        (7.0, 7),
        (-7.0, 0),
        (1e308, 10**9),
        (math.nan, 0),
        (1.5, 0),
        ("7", 0),
        (None, 0),
        ([], 0),
    ],
)
def test_a_count_of_tokens_is_one_that_can_be_added_up_and_stored(given: Any, counted: int) -> None:
    document = {"choices": [{"message": {"content": "x"}}]}
    for name, expected in (("prompt_tokens", Tokens(counted, 3)), ("completion_tokens", Tokens(3, counted))):
        usage = {"prompt_tokens": 3, "completion_tokens": 3} | {name: given}
        assert read_body(json.dumps(document | {"usage": usage})) == Completion("x", expected)


@pytest.mark.parametrize("usage", [None, [], "x", {}])
def test_an_answer_without_counts_has_none(usage: Any) -> None:
    body = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage})
    assert read_body(body) == Completion("x", Tokens(0, 0))


@pytest.mark.parametrize(
    ("prompt", "reply", "message", "counted"),
    [
        (3, 3, {"content": "x"}, True),
        (3, 0, {"content": "x"}, False),
        (0, 3, {"content": "x"}, False),
        (3, 0, {"content": ""}, True),
        (3, 0, {"content": None, "reasoning_content": "Well"}, False),
        (0, 0, {"content": ""}, False),
    ],
)
def test_tokens_are_counted_on_both_sides_or_not_at_all(
    prompt: int, reply: int, message: Any, counted: bool
) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": reply}
    found = read_body(json.dumps({"choices": [{"message": message}], "usage": usage}))
    assert found.tokens.are_counted is counted


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"total_tokens": 515, "completion_tokens_details": {"reasoning_tokens": 500}}, Tokens(10, 505)),
        ({"total_tokens": 515, "prompt_tokens_details": {"cached_tokens": 4}}, Tokens(10, 505, 4)),
        ({"total_tokens": 515, "completion_tokens": None}, Tokens(10, 505)),
        ({"total_tokens": 15, "completion_tokens_details": {"reasoning_tokens": 4}}, Tokens(10, 5)),
        ({"total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 8}}, Tokens(10, 5, 8)),
        ({"total_tokens": 1015, "prompt_tokens_details": {"cached_tokens": 1000}}, Tokens(10, 5, 10)),
        ({"total_tokens": 1215, "prompt_tokens_details": {"cached_tokens": 1000}}, Tokens(10, 5, 10)),
        ({"total_tokens": 23, "prompt_tokens_details": {"cached_tokens": 8}}, Tokens(10, 5, 8)),
        ({"total_tokens": 12}, Tokens(10, 5)),
        ({"total_tokens": None}, Tokens(10, 5)),
        ({"total_tokens": "515"}, Tokens(10, 5)),
        ({"total_tokens": 300_015}, Tokens(10, 300_005)),
        ({"total_tokens": 300_016}, Tokens(10, 5)),
        ({"total_tokens": 10**30}, Tokens(10, 5)),
        ({"total_tokens": 515, "prompt_tokens": 0}, Tokens(0, 5)),
    ],
)
def test_thoughts_that_only_the_total_counts_are_part_of_the_reply_and_nothing_else_is(
    usage: Any, counted: Tokens
) -> None:
    """A total that is smaller, or larger than a reply can be, counts something else."""
    given = {"prompt_tokens": 10, "completion_tokens": 5} | usage
    assert (
        read_body(json.dumps({"choices": [{"message": {"content": "x"}}], "usage": given})).tokens == counted
    )


def test_every_status_without_a_body_has_its_code() -> None:
    named = {
        401: "unauthorized", 402: "insufficient_quota", 403: "forbidden", 404: "not_found", 405: "not_found",
        407: "proxy_refused", 408: "server_error", 409: "server_error", 410: "not_found", 413: "too_long",
        425: "server_error", 429: "rate_limited",
    }  # fmt: skip
    of_hundreds = {3: "redirect_refused", 4: "bad_request", 5: "server_error"}
    expected = {status: named.get(status, of_hundreds[status // 100]) for status in range(300, 600)}
    assert {status: read_status(status, {}, "").code for status in expected} == expected
    actions = {"bad_request": Action.REJECT, "too_long": Action.REJECT} | dict.fromkeys(
        ("server_error", "rate_limited"), Action.RETRY
    )
    for status, code in expected.items():
        assert read_status(status, {}, "").action is actions.get(code, Action.STOP), status


def test_messages_name_the_path_where_the_address_may_be_wrong() -> None:
    named = {
        status for status in range(300, 600) if " at /v1/x" in read_status(status, {}, "", "/v1/x").message
    }
    assert named == {301, 302, 303, 307, 308, 400, 404, 405, 410}


@pytest.mark.parametrize("place", ["code", "type"])
@pytest.mark.parametrize(
    "kind", ["insufficient_quota", "billing_not_active", "Billing_Hard_Limit_Reached", "budget_exceeded"]
)
def test_a_quota_that_is_used_up_is_told_by_code_or_type(place: str, kind: str) -> None:
    """OpenAI puts it in both, gateways in either one."""
    fault = read_status(429, {"retry-after": "1"}, json.dumps({"error": {place: kind, "message": "no"}}))
    assert (fault.action, fault.code) == (Action.STOP, "insufficient_quota")


def test_what_is_tried_again_only_so_often() -> None:
    """Exactly: an attempt more is paid for, an attempt fewer loses scores."""
    assert Fault.truncated("cut") == Fault(Action.RETRY, "truncated", "cut")
    for fault, attempts in ((timed_out(1.5), 3), (oversized(2_000_000), 2)):
        assert (fault.action, fault.most_attempts, fault.possibly_billed) == (Action.RETRY, attempts, True)
    assert "within 1.5 s" in timed_out(1.5).message
    assert "larger than 2 MB" in oversized(2_000_000).message
    assert Fault(Action.RETRY, "c", "m").most_attempts >= 20  # as many as max_attempts can be


BODY_KEYS = (
    "error code message innererror content_filter_result choices finish_reason content usage prompt_tokens "
    "param type refusal content_filter_results"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(BODY_KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(status=st.integers(300, 599), body=JSON.map(json.dumps) | st.text(), headers=st.text(max_size=30))
def test_no_body_whatsoever_raises(status: int, body: str, headers: str) -> None:
    told = {"retry-after": headers, "retry-after-ms": headers, "date": headers, "x-request-id": headers}
    fault = read_status(status, told, body)
    assert "\n" not in fault.message
    assert (fault.parameter is not None) == (fault.action is Action.ADAPT)
    assert isinstance(read_body(body), Completion | Fault)


@pytest.mark.parametrize("body", ["[" * 100_000, '{"error":' * 50_000, "9" * 5_000, "<" * 500_000])
def test_bodies_that_break_parsers(body: str) -> None:
    assert read_status(400, {}, body).code == "bad_request"
    assert isinstance(read_body(body), Fault)


@pytest.mark.parametrize(
    "finish", ["SAFETY", "safety", "content_filter: OTHER", "Content_Filter", "sensitive"]
)
def test_a_content_filter_is_known_by_the_reason_to_finish_in_any_case(finish: str) -> None:
    choice = {"finish_reason": finish, "message": {"content": '{"n": 1}'}}
    found = read_body(json.dumps({"choices": [choice]}))
    assert isinstance(found, Fault)
    assert (found.action, found.code) == (Action.REJECT, "output_filtered")


@pytest.mark.parametrize(
    "finish", ["stop", "STOP", "eos_token", "tool_calls", None, 5, ["SAFETY"], "safety first"]
)
def test_other_reasons_to_finish_leave_a_reply_what_it_is(finish: Any) -> None:
    choice = {"finish_reason": finish, "message": {"content": "finish_reason: SAFETY, content_filter, error"}}
    assert isinstance(read_body(json.dumps({"choices": [choice]})), Completion)


@pytest.mark.parametrize(("prompt", "is_billed"), [(11, False), (0, True), (None, True)])
@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ([{"finish_reason": "error", "message": {"content": '{"n": 1'}}], "server_error"),
        ([], "no_choices"),
        (None, "no_choices"),
    ],
)
def test_a_reply_that_broke_off_or_is_missing_is_paid_for_as_far_as_it_was_counted(
    choices: Any, code: str, prompt: Any, is_billed: bool
) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5}
    found = read_body(json.dumps({"choices": choices, "usage": usage}))
    assert isinstance(found, Fault)
    assert (found.code, found.possibly_billed) == (code, is_billed)
    assert found.tokens == (Tokens(11, 5) if prompt else Tokens())


@pytest.mark.parametrize(
    ("code", "said", "is_billed"),
    [
        (429, "rate_limited", False), ("401", "unauthorized", False), (404, "not_found", False),
        (400, "bad_request", False), (500, "no_choices", True), (200, "no_choices", True),
        ("rate limited", "no_choices", True), (None, "no_choices", True), (4290, "no_choices", True),
    ],
)  # fmt: skip
def test_an_error_in_an_http_200_is_the_refusal_that_its_code_says(
    code: Any, said: str, is_billed: bool
) -> None:
    found = read_body(json.dumps({"error": {"code": code, "message": "no"}}))
    assert isinstance(found, Fault)
    assert (found.code, found.possibly_billed) == (said, is_billed)


LATE = "x" * 300
"""Where a message may quote the prompt."""


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "Your input was flagged", "blocked_by_filter"),
        (403, f"Access denied. {LATE} Your input was flagged", "forbidden"),
        (400, "prompt triggering Microsoft's content management policy", "blocked_by_filter"),
        (400, f"Bad request: {LATE} ContentPolicyViolationError", "bad_request"),
        (400, "See our content management policy for limits of top_k", "bad_request"),
        (429, "Your input was flagged", "rate_limited"),
        (400, f"Bad request: {LATE} model 'm' not found", "bad_request"),
        (400, "The file of the model server is not found", "bad_request"),
        (404, "model llama3 not found", "deployment_not_found"),
        (404, "Model not found, inaccessible, and/or not deployed", "deployment_not_found"),
        (404, "models/gemma-3 is not found for API version v1", "deployment_not_found"),
        (404, "No such route on this model server: not found", "not_found"),
        (429, "model 'm' not found", "rate_limited"),
        (403, "Access denied due to Virtual Network/Firewall rules.", "forbidden"),
        (403, "API rate limit exceeded", "rate_limited"),
        (403, "Monthly quota exceeded", "insufficient_quota"),
        (400, "The header is invalid: API key not valid", "bad_request"),
        (400, "Invalid API key provided", "unauthorized"),
        (413, "on tokens per minute (TPM): Limit 6000", "exceeds_rate_limit"),
        (413, "Payload Too Large", "too_long"),
    ],
)
def test_only_how_servers_begin_to_say_what_is_wrong_is_read(status: int, message: str, code: str) -> None:
    assert read_status(status, {}, json.dumps({"error": {"message": message}})).code == code


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<html><style>body{color:red}</style><h1>502 Bad Gateway</h1></html>", "(502 Bad Gateway)"),
        ("<SCRIPT src=x>var a = '<b>';</SCRIPT >ERR", "(ERR)"),
        ("<p>Down<script>never closed " + "x" * 9000, "(Down)"),
        ("<style>" + "x" * 9000 + "</style>Down", "(Down)"),
        ("Use <styles> or <scripting>", "(Use or)"),
    ],
)
def test_of_a_web_page_only_what_it_shows_is_quoted(page: str, words: str) -> None:
    assert words in read_status(500, {}, page).message


@pytest.mark.parametrize("generation", ['{"n": ', "", None, 7, "not JSON"])
def test_a_reply_that_the_server_refuses_itself_is_refused_as_any_other(generation: Any) -> None:
    body = {"error": {"code": "json_validate_failed", "failed_generation": generation}}
    found = refused_reply(400, json.dumps(body))
    assert found
    assert not found.tokens.are_counted
    assert not is_reply(found.content)


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    "body",
    [
        "", "json_validate_failed", '["json_validate_failed"]', "[" * 9_000 + "json_validate_failed",
        '{"error": {"code": 400, "message": "json_validate_failed"}}',
        '{"error": {"code": 400, "failed_generation": "json_validate_failed"}}',
    ],
)  # fmt: skip
def test_words_of_a_refusal_make_no_reply_of_it(status: int, body: str) -> None:
    assert refused_reply(status, body) is None


# Waits

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "message", "expected"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, "retry after 30 seconds", 1.5),
        ({"retry-after": "9"}, "retry after 30 seconds", 9),
        ({"retry-after": "2.5"}, "", 2.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:42 GMT", "date": DATE}, "", 42),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:42 -0000", "date": DATE}, "", 42),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0),
        ({"retry-after": "soon"}, "Please retry after 30 seconds.", 30),
        ({"retry-after": "-1"}, "Please retry after 30 seconds.", 30),
        ({"retry-after": "nan"}, "", None),
        ({}, "Please retry after 750 milliseconds.", 0.75),
        ({}, "Please try again in 20s.", 20),
        ({}, "Please try again in 1m2.5s.", 62.5),
        ({}, "Quota will be replenished in 00:01:05.", 65),
        ({}, "It began in 00:01:05.", None),
        ({}, "Please retry later.", None),
        ({}, "", None),
    ],
)
def test_waits_in_all_their_forms(headers: dict[str, str], message: str, expected: float | None) -> None:
    fault = read_status(429, headers, json.dumps({"error": {"message": message}}))
    assert fault.wait == expected


def test_a_wait_above_the_cap_may_also_be_told_in_words() -> None:
    assert read_status(429, {}, '{"message": "Please try again in 6m0s."}').code == "exceeds_rate_limit"


@pytest.mark.parametrize(
    ("seconds", "code"),
    [("120", "rate_limited"), ("121", "exceeds_rate_limit"), ("9" * 12, "exceeds_rate_limit")],
)
def test_a_wait_above_the_cap_is_not_waited_for(seconds: str, code: str) -> None:
    assert read_status(429, {"retry-after": seconds}, "").code == code


# Parameters


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "Use 'max_completion_tokens' instead."}, Parameter.MAX_TOKENS),
        (
            {"message": "Unsupported", "param": "max_tokens", "code": "unsupported_parameter"},
            Parameter.MAX_TOKENS,
        ),
        ({"message": "temperature is not supported by this model"}, Parameter.TEMPERATURE),
        ({"message": "this model doesn't support temperature"}, Parameter.TEMPERATURE),
        ({"message": "`temperature` is deprecated for this model."}, Parameter.TEMPERATURE),
        ({"message": "invalid temperature: only 1 is allowed for this model"}, Parameter.TEMPERATURE),
        ({"message": "Unrecognized request argument supplied: temperature"}, Parameter.TEMPERATURE),
        ({"message": "temperature must be strictly positive"}, Parameter.TEMPERATURE),
        (
            {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "temperature"],
                        "msg": "Extra inputs",
                        "input": 0,
                    }
                ]
            },
            Parameter.TEMPERATURE,
        ),
        (
            {
                "detail": [
                    {
                        "type": "missing",
                        "loc": ["body", "user"],
                        "msg": "Field required",
                        "input": "temperature",
                    }
                ]
            },
            None,
        ),
        ({"message": "temperature must be between 0 and 1"}, None),
        ({"message": "temperature must be between 0.01 and 1"}, Parameter.TEMPERATURE),
        ({"detail": ["temperature is not supported", {"loc": None}]}, Parameter.TEMPERATURE),
        (
            {"detail": [{"loc": 5, "msg": "no"}, {"loc": "temperature", "msg": 3}, {"loc": [None]}, [], 7]},
            None,
        ),
        ({"message": "Unrecognized request argument supplied: max_tokens"}, Parameter.MAX_TOKENS),
        ({"message": "max_tokens must not exceed 4096, which is not allowed"}, None),
        ({"message": "structured output is not supported for this model"}, Parameter.RESPONSE_FORMAT),
        (
            {
                "message": "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'",
                "param": "messages",
            },
            Parameter.RESPONSE_FORMAT,
        ),
        (
            {"message": "Invalid schema for response_format 'Rating'", "param": "response_format"},
            Parameter.RESPONSE_FORMAT,
        ),
        (
            {
                "message": "Invalid 'temperature': above maximum value",
                "param": "temperature",
                "code": "invalid_value",
            },
            None,
        ),
        ({"message": "max_completion_tokens is too large: 99999", "param": "max_completion_tokens"}, None),
        (
            {"message": "Unsupported parameter: 'stop'", "param": "stop", "code": "unsupported_parameter"},
            None,
        ),
    ],
)
def test_only_parameters_that_are_refused_altogether_are_adapted(
    error: Any, expected: Parameter | None
) -> None:
    assert read_status(400, {}, json.dumps({"error": error})).parameter is expected


@pytest.mark.parametrize(
    ("message", "is_of_form"),
    [
        ("Failed to parse grammar", True),
        ("failed to convert JSON schema to grammar: unsupported keyword", True),
        ("Unable to compile the json_schema", True),
        ("The grammar of your question is fine, we are not", False),
        ("Internal server error", False),
    ],
)
def test_a_schema_of_which_a_server_can_make_no_grammar_is_left_out(message: str, is_of_form: bool) -> None:
    fault = read_status(
        500, {}, json.dumps({"error": {"code": 500, "message": message, "type": "server_error"}})
    )
    assert fault.parameter is (Parameter.RESPONSE_FORMAT if is_of_form else None)
    assert fault.action is (Action.ADAPT if is_of_form else Action.RETRY)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("prompt_too_long", None),
        ("decoder_prompt", None),
        ("input_too_long", None),
        ("reply_too_long", (6048, 5480)),
        ("max_tokens_too_large", (1000, 797)),
        ("partly_counted", (65535, 32767)),
    ],
)
def test_only_where_the_prompt_fits_there_is_room_left_for_a_reply(
    name: str, left: tuple[int, int] | None
) -> None:
    """With a prompt that was counted only until it was too long, half the reply is tried next."""
    case = next(case for case in CASES if case.id == f"a08_vllm_{name}")
    assert read_status(case.status, {}, case.text).left == left


# Connections


def caused(*errors: BaseException) -> BaseException:
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


REFUSED = ConnectionRefusedError(111, "refused")
UNTRUSTED = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
RESET = ConnectionResetError(104, "reset")


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (caused(OSError("all failed"), REFUSED), "unreachable", "nothing listens"),
        (caused(OSError("x"), ExceptionGroup("all", [REFUSED])), "unreachable", "nothing listens"),
        (caused(OSError("x"), UNTRUSTED), "unreachable", "SSL_CERT_FILE"),
        (caused(OSError("x"), aiohttp.ConnectionTimeoutError()), "unreachable", "VPN"),
        (caused(aiohttp.ClientOSError(104, "x"), RESET), "connection_lost", "ConnectionResetError"),
    ],
)
def test_the_root_cause_of_a_failed_connection_is_named(error: BaseException, code: str, told: str) -> None:
    fault = unreachable(error)
    assert (fault.action, fault.code) == (Action.RETRY, code)
    assert told in fault.message


def test_only_what_may_have_been_sent_is_possibly_billed() -> None:
    assert timed_out(3).possibly_billed
    assert unreachable(aiohttp.ServerDisconnectedError()).possibly_billed
    assert not unreachable(caused(OSError(), ConnectionRefusedError())).possibly_billed
    assert not read_status(500, {}, "").possibly_billed


# Replies


def is_reply(text: str) -> bool:
    try:
        read_reply(json_of(text), CALL)
    except RefusedReplyError:
        return False
    return True


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "text", "text": '{"n": 1}'}],
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Two?"}]},
            {"type": "text", "text": '{"n": 1}'},
        ],
        [{"type": "text", "text": '{"n"'}, {"type": "text", "text": ": 1}"}],
    ],
)
def test_a_reply_that_comes_in_parts_is_their_text(parts: list[Any]) -> None:
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    found = read_body(json.dumps(body))
    assert isinstance(found, Completion)
    assert is_reply(found.content)


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        ' \n{"n": 1}\n',
        '```json\n{"n": 1}\n```',
        '```\n{"n": 1}\n```',
        '```JSON\n{"n": 1}\n```',
        '```json {"n": 1} ```',
        '```json5\n{"n": 1}\n```',
        '```javascript\n{"n": 1}\n```',
        '<think>\nIs it {"n": 2}? No.\n</think>\n\n{"n": 1}',
        '<think></think>```json\n{"n": 1}\n```',
        'Is it {"n": 2}? No.\n</think>\n\n{"n": 1}',
        '<thinking>Two?</thinking>{"n": 1}',
        '{"n": 1, "parts": [{"share": 1}]}',
        '{"n": 1.0, "parts": [{"share": 1.0}, {"share": 0.25}]}',
        '{"n": 1.00}',
    ],
)
def test_one_object_in_at_most_one_fence_is_a_reply(text: str) -> None:
    assert is_reply(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "null",
        "[]",
        '{"n": 1}</think>',
        '{"n": 2}</think>{"n": 1}',
        '[{"n": 1}]',
        '{"n": 1}{"n": 2}',
        '{"n": 1} {"n": 1}',
        '```\n```json\n{"n": 1}\n```\n```',
        '```json\n{"n": 1}\n```\n```json\n{"n": 2}\n```',
        '{"n": 1, "n": 2}',
        '{"n": 1, "parts": [{"share": 0.1, "share": 0.2}]}',
        '{"n": 1, "m": 2}',
        '{"n": 1, "parts": [{"share": 0.1, "note": ""}]}',
        '{"n": true}',
        '{"n": "1"}',
        '{"n": "100%"}',
        '{"n": 1.5}',
        '{"n": 6.0}',
        '{"n": 1.0, "is_sure": 1.0}',
        '{"n": "1.0"}',
        '{"n": 6}',
        '{"n": -1}',
        '{"n": null}',
        '{"n": 1, "is_sure": 1}',
        '{"n": 1, "is_sure": "yes"}',
        '{"n": NaN}',
        '{"n": 1, "parts": [{"share": NaN}]}',
        '{"n": 1, "parts": [{"share": Infinity}]}',
        '{"n": 1, "parts": [{"share": 1e999}]}',
        '{"n": 1, "parts": [{"share": true}]}',
        "{'n': 1}",
        '{"n": 1,}',
        '{"n": ' + "[" * 100_000,
        '{"n": ' + "9" * 5_000 + "}",
    ],
)
def test_anything_else_is_unparseable(text: str) -> None:
    assert not is_reply(text)


@settings(max_examples=200, deadline=None)
@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_reply_is_never_searched_for(before: str, after: str) -> None:
    """Only white space and one fence may stand around the object."""
    assume(before.strip() or after.strip())
    assume(not (re.fullmatch(r"```\w*", before.strip()) and after.strip() == "```"))
    assert not is_reply(f'{before}{{"n": 1}}{after}')


def test_the_problem_is_told_without_quoting_the_reply() -> None:
    for reply, problem in (
        ('{"n": "secret text"}', "n: "),
        ('{"n": 1, "secret text": 2}', "reply: "),
        ('{"n": 1, "parts": [{}, {"secret text": 2}]}', "parts.1: "),
    ):
        with pytest.raises(RefusedReplyError) as caught:
            read_reply(reply, CALL)
        assert "secret text" not in str(caught.value)
        assert caught.value.problem.startswith(problem)
        assert (caught.value.code, caught.value.text) == ("unparseable", reply)


def test_a_reply_may_have_to_agree_with_its_call() -> None:
    """The call's own facts reach the validators."""
    from pydantic import ValidationInfo, field_validator

    class Counted(BaseModel):
        items: list[str]

        @field_validator("items")
        @classmethod
        def _count(cls, items: list[str], info: ValidationInfo) -> list[str]:
            if info.context is None or len(items) != info.context["count"]:
                raise ValueError("another number of items")
            return items

    call = Call("t", (), Counted, agrees_with={"count": 2})
    assert read_reply('{"items": ["a", "b"]}', call) == Counted.model_construct(items=["a", "b"])
    with pytest.raises(RefusedReplyError, match="another number"):
        read_reply('{"items": ["a"]}', call)
