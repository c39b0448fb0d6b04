"""The lines of a batch's files: requests on the way out, results on the way back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from rag_eval.judge.outcomes.bodies import read_body
from rag_eval.judge.outcomes.classes import LARGEST_BODY, Action, Completion, Fault
from rag_eval.judge.outcomes.statuses import read_status

NOT_MADE = "not_made"
"""Code of a call whose attempt does not count: nothing was wrong with it, and nothing was billed."""
_LONGEST_LINE = LARGEST_BODY + 100_000
_UNANSWERED = {
    "batch_expired": "the batch expired before this call's turn",
    "batch_cancelled": "the batch was cancelled before this call's turn",
    "batch_incomplete": "the batch ended without a result for this call",
    "rate_limited": "the batch deployment's rate limit was reached",
}
"""By code, why an attempt has no answer. All are transient: the same command sends the call again."""
_STATUSES = {"rate_limit_exceeded": 429, "invalid_request": 400, "bad_request": 400}
"""HTTP statuses of errors that a provider reports without one; 500 for all others."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of an output or error file."""

    key: str
    text: str
    outcome: Completion | Fault

    @property
    def unanswered(self) -> str:
        """The code of an attempt that was not made; empty if there is an answer of whatever kind."""
        if isinstance(self.outcome, Completion):
            return ""
        if self.outcome.action is Action.STOP:
            return NOT_MADE
        return self.outcome.code if is_unanswered(self.outcome.code) else ""


def request_line(key: str, url: str, body: dict[str, Any]) -> bytes:
    """UTF-8 without a byte order mark, which Azure refuses."""
    line = {"custom_id": key, "method": "POST", "url": url, "body": body}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def results(file: IO[bytes]) -> Iterator[Result | None]:
    """The lines of a results file in its order; None for one that is not a result. Blank lines are left out."""
    while line := file.readline(_LONGEST_LINE):
        if not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
            _skip_line(file)
            yield None
        elif line.strip(b"\xef\xbb\xbf\r\n\t "):
            yield read_result(line.decode("utf-8-sig", "replace"))


def read_result(text: str) -> Result | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("custom_id"), str):
        return None
    response, error = document.get("response"), document.get("error")
    return Result(document["custom_id"], text.strip(), _outcome(response, error))


def is_unanswered(code: str) -> bool:
    """Whether a code says that an attempt had no answer, of whatever kind."""
    return code in _UNANSWERED


def unanswered(code: str) -> Fault:
    """The outcome of an attempt that was not answered, by its code."""
    return Fault(Action.RETRY, code, f"{_UNANSWERED[code]}; run the same command again to request it again")


def _outcome(response: Any, error: Any) -> Completion | Fault:
    if isinstance(error, dict) and error.get("code") in _UNANSWERED:
        return unanswered(str(error["code"]))
    if isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
        body = response.get("body")
        text = body if isinstance(body, str) else json.dumps(body)
        return read_body(text) if 200 <= status < 300 else read_status(status, {}, text)
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return read_status(_STATUSES.get(code, 500), {}, json.dumps({"error": error}))


def _skip_line(file: IO[bytes]) -> None:
    while (rest := file.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass
