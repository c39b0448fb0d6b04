"""What an answer can turn out to be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, ClassVar

from rag_eval.texts.display import without_half_pairs

TRUNCATED = "truncated"
LOOP = "loop"
LOADING = "loading"
LARGEST_BODY = 2_000_000
"""Bytes that are read of an answer, counted as they are decompressed; several times the longest reply asked for."""
LONGEST_WAIT = 120.0
"""Seconds. An endpoint that asks for a longer pause is not waited for."""


class Action(Enum):
    RETRY = "retry"
    REJECT = "reject"
    ADAPT = "adapt"
    STOP = "stop"


class Parameter(StrEnum):
    """Parts of a request that some endpoints do not take."""

    MAX_TOKENS = "max_tokens"
    TEMPERATURE = "temperature"
    RESPONSE_FORMAT = "response_format"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The provider's own counts for one answer."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    """Those of the prompt that the provider had cached."""
    are_counted: bool = field(default=True, compare=False)
    """False for an answer that was billed, though it comes without a count."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the judge wrote, not yet read."""

    content: str
    tokens: Tokens = Tokens()
    is_unfiltered: bool = False
    """The provider's content filter was down, and says so. The reply is as good as any."""
    model: str = field(default="", compare=False)
    """The model that wrote it, by the name that the provider gives."""
    possibly_billed: ClassVar[bool] = False
    """It was billed without a doubt."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that is not a usable reply."""

    action: Action
    code: str
    message: str
    wait: float | None = None
    """Seconds that the endpoint asks to wait before the next try."""
    parameter: Parameter | None = None
    """What to adapt."""
    possibly_billed: bool = False
    """The request may have been answered and charged, though no answer and no count of tokens arrived."""
    most_attempts: int = 100
    """So many attempts at this fault are worth it, however many are allowed."""
    tokens: Tokens = Tokens()
    reply: str | None = None
    """The whole reply, if it is one that is not taken; `message` is then what is wrong with it."""
    cut: str = ""
    """What there is of a reply that was cut."""
    thinks: bool = False
    """The reply was cut while the model was still thinking."""
    left: tuple[int, int] | None = None
    """Tokens that a request wanted for its reply, and those that the model's context has left, if these are fewer."""

    @classmethod
    def truncated(
        cls, message: str, tokens: Tokens = Tokens(), *, cut: str = "", thinks: bool = False
    ) -> "Fault":
        """A reply that was cut: requested again with more tokens, as long as there are more."""
        return cls(Action.RETRY, TRUNCATED, message, tokens=tokens, cut=cut, thinks=thinks)


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def one_line(text: str) -> str:
    return " ".join(without_half_pairs(text).split())
