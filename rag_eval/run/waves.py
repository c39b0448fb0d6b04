"""What a run in batches would send: which calls go together, in how many files of what size."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rag_eval.judge.attempt import Attempt
from rag_eval.judge.batches.lines import request_line
from rag_eval.judge.batches.outbox import BatchLimits
from rag_eval.judge.calls import Answer, Call, PendingError
from rag_eval.judge.endpoint import request_body
from rag_eval.judge.transport import Transport
from rag_eval.run.estimate import DryRunStore, EstimatingJudge


@dataclass(slots=True)
class Wave:
    """Calls that are sent at the same time: none needs the reply to another."""

    calls: int = 0
    files: int = 0
    size: int = 0
    """In bytes, of all files together."""


class WaveJudge(EstimatingJudge):
    """Replies to a call only in the evaluation after the one that made it."""

    def __init__(self, transport: Transport, store: DryRunStore, limits: BatchLimits) -> None:
        super().__init__(transport, transport.endpoint.model)
        self.waves: list[Wave] = []
        self._transport = transport
        self._store = store
        self._limits = limits
        self._made_up: dict[str, str] = {}
        self._wave = Wave()
        self._files: dict[str, Counter[str]] = {}

    def prepare(self, deployment: str) -> None:
        """What one call costs in advance is left out."""

    def ask(self, call: Call[Any]) -> Answer:
        key = self.key(call)
        if key not in self._made_up:
            self._made_up[key] = super().ask(call).text
            self._add(key, call)
        raise PendingError

    def end_wave(self) -> bool:
        """Reply to what was asked since the last wave; False if that is nothing."""
        if not self._made_up:
            return False
        for key, reply in self._made_up.items():
            self._store.put_reply(key, reply=reply)
        self.waves.append(self._wave)
        self._made_up, self._wave, self._files = {}, Wave(), {}
        return True

    def _add(self, key: str, call: Call[Any]) -> None:
        attempt = self._transport.replay(call, ())
        assert isinstance(attempt, Attempt)  # noqa: S101 - without an outcome there is no answer
        body = request_body(self._transport.endpoint, attempt.dialect, call, attempt.max_tokens)
        size = len(request_line(key, self._limits.url, body))
        tokens = int(call.estimated_tokens) + 1
        file = self._files.get(attempt.deployment.name)
        if file is None or not self._limits.have_room(
            file["calls"], file["size"] + size, file["tokens"] + tokens
        ):
            file = self._files[attempt.deployment.name] = Counter()
            self._wave.files += 1
        file.update(calls=1, size=size, tokens=tokens)
        self._wave.calls += 1
        self._wave.size += size
