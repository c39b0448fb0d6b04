"""What a run would send and cost, found out without sending anything.

The real coroutines run over a judge that makes its replies up: as many statements as the text has sentences, and
every verdict unfavourable, so that every recommendation is asked for. Calls are therefore the most that are to
be expected; guards, duplicates and what the store knows already are taken into account exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from pydantic import BaseModel

from rag_eval.evaluators.chunk_precision import ChunkPrecisionResult, ChunkRelevance
from rag_eval.evaluators.context_recall import ChunkRecallEvaluation, ContextRecallResult
from rag_eval.judge.budget import Price
from rag_eval.judge.calls import Answer, Call, ReplyStore
from rag_eval.metrics import reply_types as replies
from rag_eval.records import Usage
from rag_eval.rubric.judge import RubricReply
from rag_eval.texts.tokens import estimated_tokens
from rag_eval.texts.words import sentences

_REASON = "A reason of one sentence, as judges give them when they are asked to explain a verdict."


@dataclass(frozen=True, slots=True)
class Range:
    """What is expected of tokens or money, and between which two figures it will probably be."""

    low: float
    expected: float
    high: float


@dataclass(slots=True)
class Estimate:
    """Calls by deployment and task, and tokens by deployment."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    prompts: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))
    """Estimated tokens."""
    replies: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))

    def add(self, deployment: str, call: Call[Any], reply: str) -> None:
        self.calls[deployment, call.task] += 1
        self.prompts[deployment] += call.estimated_tokens
        self.replies[deployment] += estimated_tokens(reply)

    @property
    def deployments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(deployment for deployment, _ in self.calls))

    def prompt_tokens(self, deployment: str) -> Range:
        """Of the prompts as they would be sent; vocabularies of models differ."""
        expected = self.prompts[deployment]
        return Range(expected * 0.8, expected, expected * 1.6)

    def completion_tokens(self, deployment: str) -> Range:
        """From made-up replies; judges write half or twice as much."""
        expected = self.replies[deployment]
        return Range(expected / 2, expected, expected * 2)

    def cost(self, prices: Mapping[str, Price]) -> Range | None:
        """In the currency of the prices; None when one of them is unknown."""
        if any(deployment not in prices for deployment in self.deployments):
            return None
        parts = [
            (prices[deployment], self.prompt_tokens(deployment), self.completion_tokens(deployment))
            for deployment in self.deployments
        ]
        return Range(
            sum(price.of(prompt.low, completion.low) for price, prompt, completion in parts),
            sum(price.of(prompt.expected, completion.expected) for price, prompt, completion in parts),
            sum(price.of(prompt.high, completion.high) for price, prompt, completion in parts),
        )


class _Keys(Protocol):
    def key(self, call: Call[Any]) -> str: ...


class EstimatingJudge:
    """Makes replies up, and counts what they would have taken. It sends nothing."""

    adaptations: tuple[str, ...] = ()

    def __init__(self, keys: _Keys, model: str) -> None:
        self.estimate = Estimate()
        self._keys = keys
        self._model = model

    def prepare(self, deployment: str) -> None:
        self.estimate.calls[deployment or self._model, "preflight"] += 1

    def key(self, call: Call[Any]) -> str:
        return self._keys.key(call)

    def ask(self, call: Call[Any]) -> Answer:
        reply = _made_up(call)
        text = reply.model_dump_json()
        self.estimate.add(call.deployment or self._model, call, text)
        return Answer(text, reply)

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        """Nothing is open."""


class DryRunStore:
    """A store of which only what was there before is real; what is put in is forgotten at the end."""

    def __init__(self, store: ReplyStore | None) -> None:
        self._store = store
        self._made_up: dict[str, str] = {}

    def reply(self, key: str) -> str | None:
        """What was made up comes first: it stands for a stored reply that would not be taken."""
        made_up = self._made_up.get(key)
        return made_up if made_up is not None or not self._store else self._store.reply(key)

    def failure(self, key: str) -> tuple[str, str] | None:
        return self._store.failure(key) if self._store else None

    def put_reply(self, key: str, *, reply: str, **paid: Any) -> None:
        self._made_up[key] = reply

    def put_failure(self, key: str, **failure: Any) -> None:
        """A made-up judge does not fail."""

    def note(self, name: str) -> str | None:
        return self._store.note(name) if self._store else None

    def put_note(self, name: str, value: str) -> None:
        """Nothing is found out about an endpoint that is not asked."""

    def end(self, *, keep: bool) -> None:
        if self._store:
            self._store.end(keep=True)


def _made_up(call: Call[Any]) -> BaseModel:
    if issubclass(call.reply_type, RubricReply):
        return call.reply_type.all_failed(_REASON)
    return _PLAUSIBLE[call.reply_type](call.agrees_with)


def _number_of(about: Mapping[str, object], what: str) -> int:
    count = about.get(what)
    return count if isinstance(count, int) else _length_of(about, what) or 1


def _sentences_of(about: Mapping[str, object]) -> list[str]:
    return sentences(str(about.get("text") or "")) or ["-"]


def _unsupported(about: Mapping[str, object]) -> BaseModel:
    verdict = replies.StatementVerdict(statement=_REASON, reason=_REASON, verdict=0)
    return replies.StatementVerdicts(statements=[verdict] * _number_of(about, "statements"))


def _unattributed(about: Mapping[str, object]) -> BaseModel:
    return replies.Attributions(
        classifications=[
            replies.Attribution(statement=each, reason=_REASON, attributed=0) for each in _sentences_of(about)
        ]
    )


def _incorrect(about: Mapping[str, object]) -> BaseModel:
    one = replies.ReasonedStatement(statement=_REASON, reason=_REASON)
    return replies.Classification(
        TP=[],
        FP=[one] * _number_of(about, "response_statements"),
        FN=[one] * _number_of(about, "reference_statements"),
    )


def _toxicities(about: Mapping[str, object]) -> BaseModel:
    positions = range(1, _number_of(about, "positions") + 1)
    return replies.Toxicities(
        items=[replies.NumberedToxicity(reason="polite", toxicity=0.0, position=n) for n in positions]
    )


def _advices(about: Mapping[str, object]) -> BaseModel:
    positions = range(1, _number_of(about, "positions") + 1)
    return replies.Advices(
        items=[replies.NumberedAdvice(recommendation=_REASON * 3, position=n) for n in positions]
    )


def _covered(about: Mapping[str, object]) -> BaseModel:
    chunks = [
        ChunkRecallEvaluation(id_chunk=number, is_relevant=True, is_included=False, missing_info=_REASON)
        for number in range(_length_of(about, "context"))
    ]
    return ContextRecallResult.model_validate({"evaluated_chunks": chunks}, context=dict(about))


def _relevant(about: Mapping[str, object]) -> BaseModel:
    chunks = [
        ChunkRelevance(id_chunk=number, reason=_REASON, score=True)
        for number in range(_length_of(about, "context"))
    ]
    return ChunkPrecisionResult.model_validate({"graded_chunks": chunks}, context=dict(about))


def _length_of(about: Mapping[str, object], what: str) -> int:
    items = about.get(what)
    return len(items) if isinstance(items, list) else 0


_PLAUSIBLE: Mapping[type[BaseModel], Callable[[Mapping[str, object]], BaseModel]] = {
    replies.Statements: lambda about: replies.Statements(statements=_sentences_of(about)),
    replies.StatementVerdicts: _unsupported,
    replies.ContextVerdict: lambda about: replies.ContextVerdict(reason=_REASON, verdict=0),
    replies.Attributions: _unattributed,
    replies.Classification: _incorrect,
    replies.GeneratedQuestion: lambda about: replies.GeneratedQuestion(
        question=f"What about {str(about.get('text') or '')[:100]}?", noncommittal=0
    ),
    replies.Closeness: lambda about: replies.Closeness(reason=_REASON, closeness=0),
    replies.QueryToxicity: lambda about: replies.QueryToxicity(reason="polite", toxicity=0.0),
    replies.Toxicities: _toxicities,
    replies.Advice: lambda about: replies.Advice(recommendation=_REASON * 3),
    replies.Advices: _advices,
    ContextRecallResult: _covered,
    ChunkPrecisionResult: _relevant,
}
