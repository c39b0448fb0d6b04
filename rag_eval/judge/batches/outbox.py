"""What is to be sent next: calls collected into files, each within the provider's limits for one batch."""

import math
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import takewhile
from typing import IO, Any

from rag_eval.errors import OutputError, RunStoppedError
from rag_eval.judge.attempt import Attempt
from rag_eval.judge.batches.lines import request_line
from rag_eval.judge.budget import Budget, Price
from rag_eval.judge.calls import Call
from rag_eval.judge.endpoint import Endpoint, request_body
from rag_eval.store.batch_records import CallRecord, CallState
from rag_eval.texts.tokens import most_tokens

_MARGIN = 2
"""Under a cap on the cost, a reply may have so many times the tokens of the longest one to its task so far …"""
_FEW = 10
"""… and more while there are only about so many of them."""
_FEWEST_TOKENS = 128
_TRIES = 3
"""With fewer, a reply that is cut would be lost."""
_TOKENS_AT_A_CUT = 16
"""More than a prompt can have because it is like another one in its beginning only."""
_PILOT = 5
"""The number of calls by which is found out what parameters a deployment takes, where it cannot be asked otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How batches are made. The sizes are those of one batch."""

    url: str
    """Of the requests, as their lines name it."""
    most_requests: int
    most_bytes: int
    most_tokens: int = 0
    """The number of tokens that may wait in the provider's queue; 0 if it is not known."""
    deployments: Mapping[str, str] = field(default_factory=dict)
    """The deployment that answers batches, by the name of the one that answers all other calls."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Of a call in a batch, by deployment."""

    def have_room(self, calls: int, size: int, tokens: int) -> bool:
        """Whether a batch of so many calls takes one more, with which it has so many bytes and tokens."""
        return calls < self.most_requests and size <= self.most_bytes and not 0 < self.most_tokens < tokens

    def cost(self, call: CallRecord) -> float:
        """What a call costs, or may cost at most while it has no answer; 0 if the price is not known."""
        price = self.prices.get(call.model)
        return price.of(call.prompt_tokens, call.completion_tokens) if price else 0.0


_Kind = tuple[str, str]
"""Deployment and task."""


def _longest(answered: Iterable[CallRecord]) -> dict[_Kind, int]:
    """The tokens that a reply may have, by what earlier replies to its task had."""
    found: defaultdict[_Kind, list[int]] = defaultdict(list)
    for call in answered:
        if call.state is CallState.ANSWERED:
            found[call.model, call.task].append(call.completion_tokens)
    return {
        kind: max(_FEWEST_TOKENS, math.ceil(max(tokens) * max(_MARGIN, 1 + _FEW / len(tokens))))
        for kind, tokens in found.items()
    }


def _text(call: Call[Any]) -> str:
    return "\n".join(message.text for message in call.messages)


@dataclass(slots=True, eq=False)
class Parcel:
    """The calls of one batch, and the file that is sent for them."""

    file: IO[bytes]
    calls: list[CallRecord] = field(default_factory=list)
    size: int = 0
    """In bytes."""
    tokens: int = 0
    """Of the prompts, estimated."""


class Outbox:
    """Takes the calls of one pass. Safe to use from several threads. As a context it lets go of its files."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: BatchLimits,
        budget: Budget,
        job: str,
        answered: Mapping[str, CallRecord] | None = None,
    ) -> None:
        """`answered` are calls of the job by key, if less is to be held back of a cap on the cost because of them.

        The cap holds nevertheless: no reply may then be much longer than those to its task so far. One that is cut is
        requested again.
        """
        self._answered = answered or {}
        self._longest = _longest(self._answered.values())
        self._shortest: dict[_Kind, tuple[int, str]] = {}
        self.parcels: list[Parcel] = []
        self.is_outdated = False
        """What was learned in the pass changes what is to be sent: it must be collected once more."""
        self.awaited: set[str] = set()
        """The batches in which calls of this pass are."""
        self.stopped: RunStoppedError | None = None
        """The cap that was reached."""
        self.held_back = False
        """Whether calls wait until the first ones are answered."""
        self.over_cap: dict[str, float] = {}
        """By key, what calls that a cap holds back may cost."""
        self._endpoint = endpoint
        self._limits = limits
        self._budget = budget
        self._job = job
        self._open: dict[str, Parcel] = {}
        self._known: set[str] = set()
        self._pilots: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._files = ExitStack()

    def __enter__(self) -> "Outbox":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    @property
    def calls(self) -> int:
        """The number of calls in the files."""
        return sum(len(parcel.calls) for parcel in self.parcels)

    def add(self, key: str, attempt: Attempt, *, is_settled: bool) -> None:
        """Collect a call, unless a cap of the job is reached.

        Of a deployment that is not settled, only the first calls are taken.
        """
        call, dialect = attempt.call, attempt.dialect
        model = attempt.deployment.name
        max_tokens = self._max_tokens(attempt)
        body = request_body(self._endpoint, dialect, call, max_tokens)
        body["model"] = self._limits.deployments.get(model, model)
        line = request_line(key, self._limits.url, body)
        record = CallRecord(
            key,
            "",
            self._job,
            call.task,
            model,
            prompt_tokens=self._most_prompt_tokens(attempt),
            completion_tokens=dialect.reply_limit(max_tokens),
        )
        with self._lock:
            if key in self._known:
                return
            if not is_settled and self._pilots[model] >= _PILOT:
                self.held_back = True
                return
            try:
                self._budget.book(self._limits.cost(record))
            except RunStoppedError as cap:  # results that are there are read nevertheless
                self.stopped = self.stopped or cap
                self.over_cap[key] = self._limits.cost(record)
                return
            self._known.add(key)
            self._pilots[model] += 1
            self._write(model, record, line, int(call.estimated_tokens) + 1)

    def learn(self, key: str, call: Call[Any], model: str) -> None:
        """How many tokens the provider counts in a prompt that it was sent before; every call of a pass is told."""
        record = self._answered.get(key)
        if record is None or record.state is not CallState.ANSWERED or call.refused:
            return
        known = self._shortest.get((model, call.task))
        if known is None or record.prompt_tokens < known[0]:
            self._shortest[model, call.task] = record.prompt_tokens, _text(call)

    def _most_prompt_tokens(self, attempt: Attempt) -> int:
        """No prompt has more than one like it, and one for each byte from where it differs from that."""
        call = attempt.call
        most = attempt.dialect.most_prompt_tokens(call)
        known = self._shortest.get((attempt.deployment.name, call.task))
        if known is None:
            return most
        tokens, other = known
        text = _text(call)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))
        return min(most, tokens + most_tokens(text[same:]) + _TOKENS_AT_A_CUT)

    def _max_tokens(self, attempt: Attempt) -> int:
        """The token limit of a reply: what an attempt asks for, unless shorter replies are expected."""
        call, most = attempt.call, attempt.max_tokens
        longest = self._longest.get((attempt.deployment.name, call.task))
        if longest is None or self._endpoint.max_attempts < _TRIES:
            return most
        if attempt.number:  # what was cut was cut at a limit of ours
            return min(most, max(call.max_tokens, 4 * attempt.cut_at)) if attempt.cut_at else most
        return min(most, math.ceil(longest * most / attempt.dialect.reply_limit(most)))

    def _write(self, model: str, record: CallRecord, line: bytes, tokens: int) -> None:
        parcel = self._open.get(model)
        if parcel is None or not self._limits.have_room(
            len(parcel.calls), parcel.size + len(line), parcel.tokens + tokens
        ):
            parcel = self._open[model] = Parcel(self._files.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115
            self.parcels.append(parcel)
        try:
            parcel.file.write(line)
            parcel.file.flush()
        except OSError as error:
            raise OutputError(
                f"{tempfile.gettempdir()}: the file of a batch cannot be written ({error.strerror or error}); free "
                "some space, or set TMPDIR to another folder"
            ) from error
        parcel.calls.append(record)
        parcel.size += len(line)
        parcel.tokens += tokens
