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
    """The number of requests in a row that were larger than the rate limit."""
    is_held_back: bool = False
    """Whether requests had to wait for its rate limits, which is announced once."""


@dataclass(slots=True)
class Attempt:
    """The state of one call under retry."""

    call: Call[Any]
    deployment: Deployment
    retry_only: frozenset[str] | None = None
    """Codes of the faults after which another try is made; None for every transient one."""
    number: int = 0
    dialect: Dialect = field(init=False)
    """That of the last request: meanwhile, another worker may have adapted the deployment's."""
    max_tokens: int = field(init=False)
    tokens: Tokens = field(default_factory=Tokens)
    met: Counter[str] = field(default_factory=Counter)
    """The number of faults by code."""

    def __post_init__(self) -> None:
        self.dialect = self.deployment.dialect
        self.max_tokens = self.call.max_tokens

    @property
    def estimated_tokens(self) -> int:
        """Prompt and longest reply: providers book both against tokens per minute when a request arrives."""
        return int(self.call.estimated_tokens) + self.deployment.dialect.reply_limit(self.max_tokens)

    def add(self, tokens: Tokens) -> None:
        self.tokens = Tokens(self.tokens.prompt + tokens.prompt, self.tokens.completion + tokens.completion)

    def wants_another(self, outcome: "Answer | Fault", most: int) -> bool:
        """Whether to send the call again after `outcome`. `most` attempts are allowed.

        Rate limits are counted apart: waiting for them uses up no try of another fault.
        """
        if isinstance(outcome, Answer):
            return False
        if outcome.action is Action.ADAPT:
            return True
        self.met[outcome.code] += 1
        if outcome.action is not Action.RETRY or (self.retry_only and outcome.code not in self.retry_only):
            return False
        limited = self.met["rate_limited"]
        tries = limited if outcome.code == "rate_limited" else self.met.total() - limited
        worth = (
            _WITH_FALLBACK
            if outcome.code == "unparseable" and self.call.has_fallback
            else outcome.most_attempts
        )
        return tries < most and self.met[outcome.code] < worth


_WITH_FALLBACK = 2
"""The number of unusable replies after which a caller that has another way takes it."""
