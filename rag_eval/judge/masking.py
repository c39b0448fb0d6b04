"""An API key does not get into what people read, though an endpoint quotes it.

A judge's reply is read and stored as it came: a key may look like one of its words or figures. Error texts are masked
in full; all other texts only where they contain the whole key. Addresses are shown without what may be secret in them.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from urllib.parse import urlsplit

from rag_eval.records import CaseResult, Evidence, PairVerdict, RubricOutcome, Score

_SHORTEST = 16
"""Characters of a secret. A shorter key may be a word of any text."""
_PIECE = 8
"""Characters of a secret that are hidden in an error where they are together, with a digit among them."""
_MASK = "[key]"


def secrets_in(key: str, url: str) -> frozenset[str]:
    """What of a provider's key and address must not be shown; the address may have a key in its path.

    A server on this computer is often given words in place of a key, such as 'sk-no-key-required': without a digit,
    that is not a secret.
    """
    host, path = _host_and_path(url)
    wanted = {segment for segment in path.split("/") if _has_digit(segment)}
    if _has_digit(key) or not is_loopback(host):
        wanted.add(key)
    return frozenset(secret for secret in wanted if len(secret) >= _SHORTEST)


def masked(text: str, secrets: Iterable[str]) -> str:
    """An error text with [key] in place of the secrets, and of pieces of them of 8 or more characters with a digit."""
    ordered = _longest_first(secrets)
    text = without_keys(text, ordered)
    for secret in ordered:
        text = _without_pieces(text, secret)
    return text


def without_keys(text: str, secrets: Iterable[str]) -> str:
    """Any other text, with [key] in place of the secrets that it contains as a whole."""
    for secret in _longest_first(secrets):
        text = text.replace(secret, _MASK)
    return text


def concealed(result: CaseResult, secrets: Collection[str]) -> CaseResult:
    """The result with [key] in place of each secret in its scores; the case's own texts stay as they are.

    For the report, which others read; only after everything was read and scored.
    """
    if not secrets:
        return result
    return replace(
        result,
        scores=_scores(result.scores, secrets),
        further=_scores(result.further, secrets),
        toxicity=_score(result.toxicity, secrets),
        rubric=None if result.rubric is None else _rubric(result.rubric, secrets),
        pairs=tuple(_pair(pair, secrets) for pair in result.pairs),
    )


def _pair(pair: PairVerdict, secrets: Collection[str]) -> PairVerdict:
    reasons = tuple(without_keys(text, secrets) for text in pair.reasons)
    return replace(pair, reasons=reasons, reason=without_keys(pair.reason, secrets))


def _scores(scores: Mapping[str, Score], secrets: Collection[str]) -> Mapping[str, Score]:
    return {name: _score(score, secrets) for name, score in scores.items()}


def _score(score: Score, secrets: Collection[str]) -> Score:
    reason = without_keys(score.reason, secrets)
    evidence = tuple(_evidence(each, secrets) for each in score.evidence)
    if reason == score.reason and evidence == score.evidence:
        return score
    return replace(score, reason=reason, evidence=evidence)


def _evidence(seen: Evidence, secrets: Collection[str]) -> Evidence:
    text, reason = without_keys(seen.text, secrets), without_keys(seen.reason, secrets)
    return replace(seen, text=text, reason=reason)


def _rubric(outcome: RubricOutcome, secrets: Collection[str]) -> RubricOutcome:
    verdicts = tuple(
        replace(verdict, reason=without_keys(verdict.reason, secrets)) for verdict in outcome.verdicts
    )
    return replace(outcome, verdicts=verdicts, reason=without_keys(outcome.reason, secrets))


def _longest_first(secrets: Iterable[str]) -> list[str]:
    """One may be a piece of another."""
    return sorted(secrets, key=len, reverse=True)


def _host_and_path(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path
    except ValueError:
        return "", ""


def _without_pieces(text: str, secret: str) -> str:
    pieces = _pieces(secret)
    if not any(piece in text for piece in pieces):
        return text
    kept, end = [], 0
    for start, stop in _runs(text, pieces):
        if _has_digit(text[start:stop]):
            kept += [text[end:start], _MASK]
            end = stop
    return "".join([*kept, text[end:]])


def _runs(text: str, pieces: frozenset[str]) -> list[tuple[int, int]]:
    """Where pieces of a secret are; those that overlap or touch are one."""
    runs: list[tuple[int, int]] = []
    for start in range(len(text) - _PIECE + 1):
        if text[start : start + _PIECE] in pieces:
            begin = runs.pop()[0] if runs and start <= runs[-1][1] else start
            runs.append((begin, start + _PIECE))
    return runs


@lru_cache(maxsize=8)
def _pieces(secret: str) -> frozenset[str]:
    return frozenset(secret[start : start + _PIECE] for start in range(len(secret) - _PIECE + 1))


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def is_loopback(host: str) -> bool:
    """Whether a host name or IP address is this computer's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def safe_url(url: str) -> str:
    """The address without user name, password, query and fragment, and with a shown path; '…' when it is not a URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return _HIDDEN
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return f"{parts.scheme}://{place}{safe_path(parts.path)}"


def safe_path(path: str) -> str:
    """The path with '…' in place of every segment that is neither a plain word nor a version."""
    return "/".join(part if _PLAIN.fullmatch(part) else _HIDDEN for part in path.split("/"))


_HIDDEN = "…"
_PLAIN = re.compile(r"(v\d{1,2}((alpha|beta)\d?)?|[a-z]{1,15}([-_][a-z]{1,15})?)?")
