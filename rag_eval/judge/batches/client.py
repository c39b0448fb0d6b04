"""The provider's interface for files and batches, over the connection of the judge's other calls."""

import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import IO, Any, TypeGuard

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from rag_eval.errors import RunStoppedError
from rag_eval.judge.answers import read_status
from rag_eval.judge.batches.lines import ResultLines
from rag_eval.judge.connection import Response
from rag_eval.judge.outcomes import Action, Fault, mapping, one_line, timed_out
from rag_eval.judge.transport import Transport
from rag_eval.texts.strict_json import parse_json

KEPT_SECONDS = 1_209_600
"""14 days: the shortest that Azure takes. After it, the provider removes what a killed command left there."""
_FIRST_PAGE = {"limit": "100"}
_MOST_PAGES = 1_000
_BYTES_PER_SECOND = 100_000
"""A slower line than this is given up."""
_NAME = re.compile(r"[\w.:-]{1,200}", re.ASCII)
"""Of a file or a batch. Whatever else a server sends does not get into an address."""
_TOKEN = "rag_eval"  # noqa: S105 - the name of an entry of a batch's metadata
_QUEUE_IS_FULL = re.compile("token_limit_exceeded|enqueued token", re.IGNORECASE)


class UncertainError(Exception):
    """Whether a batch was created is not known. The message is what the endpoint answered."""


class QueueFullError(Exception):
    """The provider does not let so many tokens wait in its queue."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider describes it."""

    id: str
    status: str
    files: tuple[str, ...] = ()
    """The names of its output and error file, as far as there are any."""
    problem: str = ""
    """Why it failed."""
    is_queue_full: bool = False
    expires_at: float = 0.0
    token: str = ""
    completed: int | None = None
    """The number of its requests that it has completed; None if the provider does not say."""
    failed: int = 0

    @classmethod
    def read(cls, document: Any) -> "Batch | None":
        """None for what does not describe a batch."""
        described = mapping(document)
        if not _is_name(described.get("id")):
            return None
        expires = described.get("expires_at")
        files = [described.get("output_file_id"), described.get("error_file_id")]
        counts = mapping(described.get("request_counts"))
        words = _words_of(described.get("errors"))
        return cls(
            described["id"],
            str(described.get("status")),
            tuple(filter(_is_name, files)),
            one_line(words)[:500],
            bool(_QUEUE_IS_FULL.search(words)),
            float(expires) if isinstance(expires, int) and 0 < expires < 10**11 else 0.0,
            str(mapping(described.get("metadata")).get(_TOKEN, "")),
            _count(counts.get("completed")),
            _count(counts.get("failed")) or 0,
        )

    @property
    def did_nothing(self) -> bool:
        """Whether it failed before any of its requests was answered."""
        return self.status == "failed" and not self.files and not self.completed


class BatchClient:
    """Files and batches of one endpoint. Every method raises RunStoppedError when the endpoint cannot be used."""

    def __init__(self, transport: Transport, url: str) -> None:
        """`url` is that of the requests in a batch."""
        self._transport = transport
        self._url = url

    def upload(self, file: IO[bytes], size: int) -> str:
        """Returns the file's name there. It expires by itself, where the endpoint takes such a request."""

        found = self._upload(file, size, expires=True)
        if isinstance(found, Fault) and found.code == "bad_request" and "expires_after" in found.message:
            found = self._upload(file, size, expires=False)
        if isinstance(found, Fault):
            raise self._stopped(found)
        return self._name_in(found, "a file")

    def _upload(self, file: IO[bytes], size: int, *, expires: bool) -> "Mapping[str, Any] | Fault":
        return self._try("POST", "/files", form=lambda: _form(file, expires=expires), seconds=_seconds(size))

    def is_ready(self, file: str) -> bool | None:
        """Whether a batch can be made of a file; None if the endpoint does not know it (yet).

        Raises RunStoppedError for a file that the endpoint refuses.
        """
        document = self._known(f"/files/{file}")
        if document is None:
            return None
        status = document.get("status")
        if status in ("error", "deleted", "deleting"):
            raise RunStoppedError(
                "batch_refused", f"{self._where}: the file of the batch was refused (status {status})"
            )
        return status not in ("pending", "uploading", "running", "notRunning")

    def create(self, file: str, token: str) -> Batch:
        """Raises UncertainError when there is no telling whether it was created, and QueueFullError.

        An endpoint that answers 404, but has a list of batches, may not know the file yet.
        """
        expires = {"anchor": "created_at", "seconds": KEPT_SECONDS}
        body: dict[str, Any] = {
            "input_file_id": file,
            "endpoint": self._url,
            "completion_window": "24h",
            "metadata": {_TOKEN: token},
            "output_expires_after": expires,
        }
        document = self._try("POST", "/batches", body=body, codes=_NOT_CREATED)
        if isinstance(document, Fault) and "output_expires_after" in document.message:
            del body["output_expires_after"]
            document = self._try("POST", "/batches", body=body, codes=_NOT_CREATED)
        if isinstance(document, Fault):
            if _QUEUE_IS_FULL.search(document.message):
                raise QueueFullError
            if document.code == "not_found":
                listed = self._try("GET", "/batches", query=_FIRST_PAGE)
                is_uncertain = not isinstance(listed, Fault) or listed.code != "not_found"
            else:
                is_uncertain = document.action is Action.RETRY and document.code not in _NOT_CREATED
            if is_uncertain:
                raise UncertainError(str(self._transport.error(document)))
            raise self._stopped(document)
        batch = Batch.read(document)
        if batch is None:
            raise UncertainError(str(self._transport.error(_no_json("a batch"))))
        return batch

    def find(self, token: str, name: str = "") -> Batch | None:
        """The batch that was created with the token, or has the name, among all that the endpoint lists."""
        return next((each for each in self._listed() if each.token == token or each.id == name), None)

    def duplicates(self, token: str, name: str) -> list[Batch]:
        """Other batches that were created with the token, among the newest that the endpoint lists, if it does."""
        page = self._try("GET", "/batches", query=_FIRST_PAGE, codes=frozenset())
        found = [] if isinstance(page, Fault) else _batches_on(page)
        return [each for each in found if each.token == token and each.id != name]

    def batch(self, name: str) -> Batch | None:
        """None if the endpoint does not know it (any more)."""
        document = self._known(f"/batches/{name}")
        if document is None:
            return None
        batch = Batch.read(document)
        if batch is None:
            raise self._stopped(_no_json("a batch"))
        return batch

    def cancel(self, name: str) -> None:
        """One that has ended meanwhile, or is being cancelled, stays as it is."""
        fault = self._try("POST", f"/batches/{name}/cancel", body={})
        if isinstance(fault, Fault) and fault.action is not Action.REJECT and fault.code not in _GONE:
            raise self._stopped(fault)

    def download(self, name: str, into: ResultLines, most: int) -> bool:
        """Read a file, of at most `most` bytes: the rest is left out. False if there is no such file."""
        document = self._try("GET", f"/files/{name}/content", into=into, most=most, seconds=_seconds(most))
        if isinstance(document, Fault):
            if document.code in _GONE:
                return False
            raise self._stopped(document)
        return True

    def delete(self, name: str) -> bool:
        """Whether the file is gone."""
        document = self._try("DELETE", f"/files/{name}")
        return not isinstance(document, Fault) or document.code in _GONE

    def masked(self, text: str) -> str:
        """What the endpoint says, without secrets."""
        return str(self._transport.error(Fault(Action.REJECT, "", text)))

    def _listed(self) -> Iterator[Batch]:
        query, seen = _FIRST_PAGE, set()
        for _ in range(_MOST_PAGES):
            page = self._known("/batches", query=query) or {}
            found = _batches_on(page)
            yield from found
            if not page.get("has_more") or not found or found[-1].id in seen:
                return
            seen.add(found[-1].id)
            query = {**_FIRST_PAGE, "after": found[-1].id}

    def _known(self, path: str, **request: Any) -> Mapping[str, Any] | None:
        """What the endpoint answers; None if it says that there is no such thing."""
        document = self._try("GET", path, **request)
        if isinstance(document, Fault):
            if document.code == "not_found":
                return None
            raise self._stopped(document)
        return document

    def _try(
        self, method: str, path: str, *, codes: frozenset[str] | None = None, **request: Any
    ) -> "Mapping[str, Any] | Fault":
        """Send a request, again while its fault is transient and among `codes`; None stands for all codes."""
        retrying = Retrying(
            retry=retry_if_result(
                lambda found: (
                    isinstance(found, Fault)
                    and found.action is Action.RETRY
                    and (codes is None or found.code in codes)
                )
            ),
            stop=stop_after_attempt(self._transport.endpoint.max_attempts),
            wait=_pause,
            sleep=self._transport.rest,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        found: Mapping[str, Any] | Fault = retrying(self._send, method, path, **request)
        return found

    def _send(self, method: str, path: str, **request: Any) -> "Mapping[str, Any] | Fault":
        import aiohttp

        into: ResultLines | None = request.pop("into", None)
        if into:
            into.begin()
        try:
            response = self._transport.connected().send(
                method, path, take=into.write if into else None, **request
            )
        except aiohttp.ClientError as error:
            return self._transport.unreachable(error)
        except TimeoutError:
            return timed_out(self._transport.endpoint.timeout_seconds)
        except CancelledError:
            raise RunStoppedError("not_run", "the run ended before the answer came") from None
        return _read(response, is_file=into is not None)

    def _name_in(self, document: Mapping[str, Any], what: str) -> str:
        name = document.get("id")
        if not _is_name(name):
            raise self._stopped(_no_json(what))
        return str(name)

    @property
    def _where(self) -> str:
        return self._transport.endpoint.description

    def _stopped(self, fault: Fault) -> RunStoppedError:
        advice = "; if it offers no batches, remove --batch" if fault.code == "not_found" else ""
        return RunStoppedError(
            fault.code,
            f"{self._where}: {self._transport.error(fault)}{advice}. Run the same command again later",
        )


_GONE = frozenset({"not_found", "deployment_not_found"})
_NOT_CREATED = frozenset({"rate_limited"})
"""Codes of transient faults after which it is certain that nothing was created."""


def _read(response: Response, *, is_file: bool) -> "Mapping[str, Any] | Fault":
    if not 200 <= response.status < 300:
        return read_status(response.status, response.headers, response.text, response.path)
    if is_file:
        return {}
    if not response.is_whole:
        return Fault(Action.REJECT, "oversized", "the endpoint's answer is longer than it can be")
    try:
        document = parse_json(response.text)
    except (ValueError, RecursionError):
        document = None
    return document if isinstance(document, dict) else _no_json("JSON")


def _batches_on(page: Mapping[str, Any]) -> list[Batch]:
    listed = page.get("data")
    return [batch for each in listed if (batch := Batch.read(each))] if isinstance(listed, list) else []


def _no_json(what: str) -> Fault:
    return Fault(
        Action.RETRY, "not_json", f"the endpoint answered with something that does not describe {what}"
    )


def _form(file: IO[bytes], *, expires: bool) -> Any:
    import aiohttp

    form = aiohttp.FormData()
    form.add_field("purpose", "batch")
    if expires:
        form.add_field("expires_after[anchor]", "created_at")
        form.add_field("expires_after[seconds]", str(KEPT_SECONDS))
    content = os.fdopen(os.dup(file.fileno()), "rb")  # the client closes it
    content.seek(0)
    form.add_field("file", content, filename="rag-eval.jsonl", content_type="application/jsonl")
    return form


def _pause(state: RetryCallState) -> float:
    """Seconds until the next try: those that the endpoint asks for, or more each time."""
    found = state.outcome.result() if state.outcome else None
    return found.wait if isinstance(found, Fault) and found.wait else _BACKOFF(state)


_BACKOFF = wait_random_exponential(max=60)


def _seconds(size: int) -> float:
    return size / _BYTES_PER_SECOND


def _words_of(errors: object) -> str:
    """The first errors of a batch: a list, or an object that has it as `data`."""
    listed = mapping(errors).get("data", errors)
    problems = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return "; ".join(f"{each.get('code') or ''} {each.get('message') or ''}".strip() for each in problems[:3])


def _count(value: object) -> int | None:
    """None for what is not a count. JSON's true is an int here."""
    return value if type(value) is int and value >= 0 else None


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None and ".." not in value
