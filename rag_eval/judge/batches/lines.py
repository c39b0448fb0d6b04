"""The lines of a batch's files: requests on the way out, results on the way back."""

import json
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import IO, Any

from rag_eval.judge.answers import read_body, read_status, refused_reply
from rag_eval.judge.outcomes import LARGEST_BODY, Action, Completion, Fault, mapping

NOT_MADE = "not_made"
"""Code of a call whose attempt does not count: nothing was wrong with it, and nothing was billed."""
_LONGEST_LINE = LARGEST_BODY + 100_000
_BLANK = b"\xef\xbb\xbf\r\n\t "
_KEY = re.compile(rb'"custom_id"\s*:\s*"([^"\\]*)"')
"""Quotes inside a text are escaped, so a reply that quotes such a member does not match."""
_UNANSWERED = {
    "batch_expired": "the batch expired before this call's turn",
    "batch_cancelled": "the batch was cancelled before this call's turn",
    "batch_incomplete": "the batch ended without a result for this call",
    "rate_limited": "the batch deployment's rate limit was reached",
}
"""By code, why an attempt has no answer. All are transient: the same command sends the call again."""
_NO_ANSWER = ("not_json", "no_choices")
"""Codes of bodies without anything that a model wrote."""
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


class ResultLines:
    """Takes a results file in pieces, and keeps in `file` only the lines of the calls with these `keys`.

    So neither memory nor disk is filled by a file that is larger than its batch can make it.
    """

    def __init__(self, file: IO[bytes], keys: Container[str]) -> None:
        self.others = 0
        """The number of lines that are left out. Blank lines do not count."""
        self._file = file
        self._keys = keys
        self._line = bytearray()

    def begin(self) -> None:
        """Forget what an attempt has brought that broke off."""
        self._file.seek(0)
        self._file.truncate()
        self._line.clear()
        self.others = 0

    def write(self, piece: bytes) -> None:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._extend(end)
            self._end_line()
        self._extend(rest)

    def results(self) -> Iterator[Result]:
        """In their order."""
        self._end_line()
        self._file.seek(0)
        for line in self._file:
            if result := read_result(line.decode("utf-8-sig", "replace")):
                yield result
            else:
                self.others += 1

    def _extend(self, part: bytes) -> None:
        self._line += part[: _LONGEST_LINE + 1 - len(self._line)]

    def _end_line(self) -> None:
        line = bytes(self._line).strip(_BLANK)
        self._line.clear()
        if not line:
            return
        found = (each.decode("utf-8", "replace") for each in _KEY.findall(line))
        if len(line) <= _LONGEST_LINE and any(key in self._keys for key in found):
            self._file.write(line + b"\n")
        else:
            self.others += 1


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
    """What a model wrote counts, whatever else the line says: it was paid for."""
    described, code = mapping(response), str(mapping(error).get("code"))
    status, body = _status(described.get("status_code")), described.get("body")
    text = body if isinstance(body, str) else json.dumps(body)
    if status is None or 200 <= status < 300:
        found = read_body(text)
        if isinstance(found, Completion) or found.code not in _NO_ANSWER:
            return found
        if status and code not in _UNANSWERED:
            return found
    if code in _UNANSWERED:
        return unanswered(code)
    if status:
        return refused_reply(status, text) or read_status(status, {}, text)
    return read_status(_STATUSES.get(code, 500), {}, json.dumps({"error": error}))


def _status(value: Any) -> int | None:
    """An HTTP status, also one that is written as text; None if there is none."""
    text = str(value).strip()
    return int(text) if re.fullmatch("[1-9][0-9]{2}", text, re.ASCII) else None
