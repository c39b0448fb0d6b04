"""One call under retry, and what is known of the deployment that answers it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rag_eval.judge.calls import Answer, Call
from rag_eval.judge.endpoint import Dialect
from rag_eval.judge.limiter import Limiter
from rag_eval.judge.outcomes import Action, Fault, Tokens


@dataclass(slots=True)
class Deployment:
    """What is known about one deployment in this run."""

    name: str
    dialect: Dialect
    limiter: Limiter
    has_answered: bool = False
    refusals_for_size: int = 0
    """In a row."""
    is_held_back: bool = False
    """Requests had to wait for its rate limits, and it was said."""


@dataclass(slots=True)
class Attempt:
    """The state of one call under retry."""

    call: Call[Any]
    deployment: Deployment
    retry_only: frozenset[str] | None = None
    """Codes that are worth another try; None for every transient one."""
    number: int = 0
    dialect: Dialect = field(init=False)
    """What the last request was written in."""
    max_tokens: int = field(init=False)
    tokens: Tokens = field(default_factory=Tokens)
    met: Counter[str] = field(default_factory=Counter)
    """Faults by code."""

    def __post_init__(self) -> None:
        self.dialect = self.deployment.dialect
        self.max_tokens = self.call.max_tokens

    @property
    def estimated_tokens(self) -> int:
        """As providers estimate on arrival: the prompt, and all that the reply may have."""
        return int(self.call.estimated_tokens) + self.deployment.dialect.reply_limit(self.max_tokens)

    def add(self, tokens: Tokens) -> None:
        self.tokens = Tokens(self.tokens.prompt + tokens.prompt, self.tokens.completion + tokens.completion)

    def wants_another(self, found: "Answer | Fault", most: int) -> bool:
        """Whether tries are left after a fault; being told to slow down has a budget of its own."""
        if isinstance(found, Answer):
            return False
        if found.action is Action.ADAPT:
            return True
        return self._has_tries_left(found, most)

    def _has_tries_left(self, fault: Fault, most: int) -> bool:
        self.met[fault.code] += 1
        if fault.action is not Action.RETRY or (self.retry_only and fault.code not in self.retry_only):
            return False
        limited = self.met["rate_limited"]
        tries = limited if fault.code == "rate_limited" else self.met.total() - limited
        return tries < most and self.met[fault.code] < fault.most_attempts
