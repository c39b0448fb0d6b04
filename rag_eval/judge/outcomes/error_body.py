"""What endpoints say when they refuse, in the forms that they say it in."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_eval.judge.outcomes.classes import Parameter, mapping, one_line


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What can be made out of an error body; servers wrap it in `error`, or do not, or send no JSON at all."""

    code: str = ""
    message: str = ""
    parameter: str = ""
    type: str = ""
    filtered: tuple[str, ...] = ()
    """The content filter's categories that were hit."""
    is_filtered: bool = False
    context: int | None = None
    """Tokens that the model can read and write together, where a prompt did not fit."""
    prompt: int | None = None
    """Tokens of that prompt."""
    reply: int | None = None
    """Tokens that were wanted for the reply, if that is told apart."""

    @classmethod
    def parse(cls, body: str) -> "ErrorBody":
        try:
            return cls.of(json.loads(body))
        except (ValueError, RecursionError):
            return cls(message=re.sub(r"<[^>]*>", " ", body[:5000]))

    @classmethod
    def of(cls, document: Any) -> "ErrorBody":
        error = mapping(document).get("error") or document
        if not isinstance(error, dict):
            return cls(message=str(error) if error else "")
        inner = mapping(_first(error, "innererror", "inner_error"))
        results = mapping(_first(inner, "content_filter_result", "content_filter_results"))
        context, prompt, reply = _lengths(error)
        return cls(
            code=str(_first(error, "code")),
            message=str(_first(error, "message", "detail")),
            parameter=str(_first(error, "param")),
            type=str(_first(error, "type")),
            filtered=tuple(str(name) for name, hit in results.items() if mapping(hit).get("filtered")),
            is_filtered="content_filter" in (error.get("code"), error.get("type"))
            or inner.get("code") == "ResponsibleAIPolicyViolation",
            context=context,
            prompt=prompt,
            reply=reply,
        )

    @property
    def kinds(self) -> set[str]:
        """Code and type: servers put the same words into one or the other."""
        return {self.code.lower(), self.type.lower()}

    @property
    def exceeds_context(self) -> bool:
        """Whether the prompt, or prompt and reply together, are too long for the model."""
        return self.context is not None or bool(
            self.kinds & {"context_length_exceeded", "exceed_context_size_error"}
        )

    def quoted(self) -> str:
        """The code and message for an error line; empty when there is neither."""
        words = " ".join(part for part in (self.code, self.message) if part.strip())
        return f" ({one_line(words)[:300]})" if words else ""

    def refused_parameter(self) -> Parameter | None:
        """Which part of the request is not taken at all; a value that is merely too large is another matter."""
        text = self.message.lower()
        is_unsupported = (
            "unsupported" in self.code
            or re.search(r"(\bnot|n't) (\w+ )?support|unsupported", text) is not None
        )
        if re.search(r"use ['\"`]?max_completion_tokens", text):
            return Parameter.MAX_TOKENS
        if self.parameter == "max_tokens" and is_unsupported:
            return Parameter.MAX_TOKENS
        if "temperature" in (self.parameter or text) and is_unsupported:
            return Parameter.TEMPERATURE
        if any(
            word in f"{self.parameter} {text}" for word in ("response_format", "json_schema", "json_object")
        ):
            return Parameter.RESPONSE_FORMAT
        return None


def _first(error: Mapping[str, Any], *names: str) -> Any:
    """The first of these members that says anything; '' for none."""
    return next(filter(None, map(error.get, names)), "")


def _lengths(error: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Tokens of the model's context, of the prompt and of the reply, as far as they are told.

    llama.cpp has fields for the first two, other servers have sentences.
    """
    if isinstance(context := error.get("n_ctx"), int):
        prompt = error.get("n_prompt_tokens")
        return context, prompt if isinstance(prompt, int) else None, None
    text = str(_first(error, "message", "detail"))[:1000]
    if not (found := _CONTEXT.search(text)):
        return None, None, None
    prompt, reply = (form.search(text) for form in (_PROMPT, _REPLY))
    return int(found[1]), int(prompt[1]) if prompt else None, int(reply[1]) if reply else None


_CONTEXT = re.compile(
    r"(?:maximum context length is|context length is only|maximum model length of|available context size \(|"
    r"context window of) ?(\d{1,9})",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?:messages resulted in|request has|requested tokens \(|request \(|you passed|prompt contains at least|"
    r"prompt \(length|prompt length of|tokens \((?=\d+ in the messages)) ?(\d{1,9})",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"(?:in the messages,|requested|max_completion_tokens'? is too large:) (\d{1,9})(?= in the completion| output|\.)",
    re.IGNORECASE,
)
