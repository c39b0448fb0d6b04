"""One call under retry, and what is known of the deployment that answers it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rag_eval.judge.calls import Answer, Call
from rag_eval.judge.endpoint import Dialect
from rag_eval.judge.limiter import Limiter
from rag_eval.judge.outcomes import LOADING, TRUNCATED, Action, Fault, Tokens


@dataclass(slots=True)
class Deployment:
    """What is known about one deployment in this run."""

    name: str
    dialect: Dialect
    limiter: Limiter
    has_answered: bool = False
    refusals_for_size: int = 0
    """The number of requests in a row that were larger than the rate limit."""
    announced: set[str] = field(default_factory=set)
    """Sentences on it that were said; each is said once."""
    more_room: int = 1
    """What `Call.room` is multiplied by, since replies that need more than is enough have been cut."""

    def room(self, call: Call[Any]) -> int:
        """The token limit of the first request of a call."""
        if call.room is None or self.dialect.thinks:
            return call.max_tokens
        return min(call.max_tokens, call.room * self.more_room)


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
    cut_at: int = 0
    """Tokens of the last reply that was cut."""
    met: Counter[str] = field(default_factory=Counter)
    """The number of faults by code."""

    def __post_init__(self) -> None:
        self.dialect = self.deployment.dialect
        self.max_tokens = self.deployment.room(self.call)

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
        if outcome.code == LOADING:
            return self.met[LOADING] < _MOST_LOOKS_AT_LOADING
        if outcome.left and outcome.left[0] == self.dialect.reply_limit(self.max_tokens):
            self.max_tokens = outcome.left[1]  # the prompt fits, only the limit of the reply does not
            return True
        if outcome.code == TRUNCATED and not self._gets_more_room(outcome):
            return False
        if outcome.action is not Action.RETRY or (self.retry_only and outcome.code not in self.retry_only):
            return False
        limited = self.met["rate_limited"]
        tries = limited if outcome.code == "rate_limited" else self.met.total() - limited
        return tries < most and self.met[outcome.code] < outcome.most_attempts

    def _gets_more_room(self, cut: Fault) -> bool:
        """Raise the limit of the next request after a reply that was cut; False if it was as large as it gets."""
        largest = _MORE_ROOM * self.call.max_tokens
        if self.max_tokens >= largest:
            return False
        if self.max_tokens < self.call.max_tokens:
            self.deployment.more_room = max(self.deployment.more_room, _MORE_ROOM)
            if cut.thinks:
                self.deployment.more_room = self.max_tokens = self.call.max_tokens
                return True
        self.max_tokens = min(largest, _MORE_ROOM * self.max_tokens)
        return True


_MOST_LOOKS_AT_LOADING = 180
"""A quarter of an hour: large models are read from slow disks."""
_MORE_ROOM = 4
"""A reply that was cut is requested again with its token limit multiplied by this."""
