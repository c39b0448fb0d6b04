"""Calls over HTTP, through the openai package: to Azure OpenAI, OpenAI or any server that speaks like them.

The package's own retries are off. The one retry layer is here; what it meets is named in `outcomes`.
"""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict
from tenacity import RetryCallState, Retrying, retry_if_exception

from rag_eval.errors import JudgeError, RunStoppedError
from rag_eval.judge import outcomes
from rag_eval.judge.calls import Answer, Call, Message
from rag_eval.judge.endpoint import Dialect, Endpoint, connect, request_body, request_key
from rag_eval.judge.outcomes import Action, Completion, Fault, FaultError, Parameter
from rag_eval.judge.replies import first_problem, read_reply, strip_fence
from rag_eval.records import Usage

if TYPE_CHECKING:
    from openai import OpenAI

log = logging.getLogger(__name__)


class Notes(Protocol):
    """Where an endpoint's dialect is remembered from run to run, so that keys stay the same."""

    def note(self, name: str) -> str | None: ...
    def put_note(self, name: str, value: str) -> None: ...


class Transport:
    """Answers calls over HTTP. Safe to use from several threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        notes: Notes,
        *,
        announce: Callable[[str], None] = lambda sentence: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.adaptations: list[str] = []
        self._notes = notes
        self._announce = announce
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._dialects: dict[str, Dialect] = {}
        self._not_before: dict[str, float] = {}
        self._meter: Counter[str] = Counter()
        self._client: OpenAI | None = None

    def prepare(self, deployment: str) -> None:
        """One minimal call: a wrong key, address or name stops the run here, and parameters are settled."""
        check = Call(
            task="preflight",
            messages=(
                Message("system", 'Reply with the JSON object {"ready": true}.'),
                Message("user", "Ready?"),
            ),
            reply_type=_Ready,
            max_tokens=16,
            deployment=deployment,
        )
        try:
            self._ask(_Attempt(check, self._model(check), check.max_tokens, retry_only=_RETRIED_AT_PREFLIGHT))
        except JudgeError as error:
            if error.code in _FATAL_AT_PREFLIGHT:
                raise RunStoppedError(error.code, f"{self.endpoint.description}: {error}") from error
            log.debug("preflight ended with %s: the endpoint answers", error.code)

    def key(self, call: Call[Any]) -> str:
        return request_key(self.endpoint, self._dialect(self._model(call)), call)

    def ask(self, call: Call[Any]) -> Answer:
        return self._ask(_Attempt(call, self._model(call), call.max_tokens))

    def usage(self) -> Usage:
        """What was sent so far. Tokens are the provider's counts."""
        with self._lock:
            return Usage(
                requests=self._meter["requests"],
                prompt_tokens=self._meter["prompt_tokens"],
                completion_tokens=self._meter["completion_tokens"],
            )

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    # Attempts

    def _ask(self, attempt: "_Attempt") -> Answer:
        retrying = Retrying(
            retry=retry_if_exception(attempt.is_worth_repeating),
            stop=lambda state: state.attempt_number >= self._most_attempts(state),
            wait=_wait_seconds,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(self._try, attempt)
        except FaultError as error:
            raise self._final(error.fault) from None

    def _try(self, attempt: "_Attempt") -> Answer:
        attempt.number += 1
        self._wait_for_turn(attempt.model)
        dialect = self._dialect(attempt.model)
        found = self._post(request_body(self.endpoint, dialect, attempt.call, attempt.max_tokens))
        if isinstance(found, Completion):
            return self._accept(found, attempt)
        log.debug("%s: %s (attempt %d)", attempt.call.task, found.code, attempt.number)
        if found.parameter is not None:
            self._adapt(found, found.parameter, attempt.model, dialect)
            return self._try(attempt)
        if found.code == "truncated":
            attempt.max_tokens *= 4
        if found.code == "rate_limited" and found.wait:
            self._pause(attempt.model, found.wait)
        raise FaultError(self._second_thought(found, attempt))

    def _post(self, body: Mapping[str, Any]) -> Completion | Fault:
        import openai

        self._count("requests")
        try:
            answer = self._connection().chat.completions.with_raw_response.create(**body)
        except openai.APIStatusError as error:
            return outcomes.read_status(error.status_code, error.response.headers, error.response.text)
        except openai.APITimeoutError:
            return outcomes.timed_out(self.endpoint.timeout_seconds)
        except openai.APIConnectionError as error:
            return outcomes.unreachable(error)
        if answer.status_code != 200:
            return outcomes.read_status(answer.status_code, answer.headers, answer.text)
        return outcomes.read_body(answer.text)

    def _accept(self, completion: Completion, attempt: "_Attempt") -> Answer:
        self._count("answers")
        self._count("prompt_tokens", completion.prompt_tokens)
        self._count("completion_tokens", completion.completion_tokens)
        text = strip_fence(completion.content)
        try:
            reply = read_reply(text, attempt.call)
        except ValueError as error:
            raise FaultError(outcomes.unparseable(first_problem(error))) from None
        return Answer(text, reply, attempt.number, completion.prompt_tokens, completion.completion_tokens)

    def _second_thought(self, fault: Fault, attempt: "_Attempt") -> Fault:
        """A deployment that answered before is sometimes missing for a moment: it gets two more tries."""
        if fault.code == "deployment_not_found" and self._meter["answers"] and attempt.number < 3:
            return replace(fault, action=Action.RETRY)
        return fault

    def _most_attempts(self, state: RetryCallState) -> int:
        error = state.outcome.exception() if state.outcome else None
        most = error.fault.most_attempts if isinstance(error, FaultError) else 1
        return min(self.endpoint.max_attempts, most)

    def _final(self, fault: Fault) -> JudgeError | RunStoppedError:
        key = self.endpoint.api_key
        message = fault.message.replace(key, "[key]") if key else fault.message
        if fault.action is Action.STOP:
            return RunStoppedError(fault.code, f"{self.endpoint.description}: {message}")
        return JudgeError(fault.code, message)

    # Dialects

    def _adapt(self, fault: Fault, parameter: Parameter, model: str, used: Dialect) -> None:
        """Learn, once for the run, that the endpoint does not take a parameter, and say so."""
        with self._lock:
            known = self._dialects[model]
            if known != used:
                return  # another worker was faster
            changed = None if self._is_fixed(parameter) else known.adapted(parameter)
            if changed is None:
                raise FaultError(replace(fault, action=Action.STOP))
            self._dialects[model] = changed
        self._notes.put_note(self._note_name(model), changed.to_json())
        self.adaptations.append(_ADAPTATIONS[parameter].format(model=model))
        self._announce(self.adaptations[-1])

    def _is_fixed(self, parameter: Parameter) -> bool:
        chosen = self.endpoint.structured_output != "auto"
        return chosen and parameter in (Parameter.JSON_SCHEMA, Parameter.JSON_OBJECT)

    def _dialect(self, model: str) -> Dialect:
        with self._lock:
            if model not in self._dialects:
                self._dialects[model] = self._remembered(model)
            return self._dialects[model]

    def _remembered(self, model: str) -> Dialect:
        text = self._notes.note(self._note_name(model))
        dialect = Dialect.from_json(text) if text else Dialect()
        wanted = self.endpoint.structured_output
        return dialect if wanted == "auto" else replace(dialect, output=wanted)

    def _note_name(self, model: str) -> str:
        return f"dialect {self.endpoint.url.rstrip('/')} {self.endpoint.api_version} {model}"

    def _model(self, call: Call[Any]) -> str:
        return call.deployment or self.endpoint.model

    # Pace and accounts

    def _wait_for_turn(self, model: str) -> None:
        while (wait := self._not_before.get(model, 0.0) - self._clock()) > 0:
            self._sleep(wait)

    def _pause(self, model: str, seconds: float) -> None:
        """Everyone waits when a deployment asks for a pause, not just the one who was told."""
        with self._lock:
            self._not_before[model] = max(self._not_before.get(model, 0.0), self._clock() + seconds)

    def _count(self, name: str, amount: int = 1) -> None:
        with self._lock:
            self._meter[name] += amount

    def _connection(self) -> "OpenAI":
        with self._lock:
            if self._client is None:
                self._client = connect(self.endpoint, self._clock)
            return self._client


_RETRIED_AT_PREFLIGHT = frozenset({"rate_limited", "server_error", "no_choices"})
_FATAL_AT_PREFLIGHT = _RETRIED_AT_PREFLIGHT | {"unreachable", "not_json", "timeout"}
_ADAPTATIONS = {
    Parameter.MAX_TOKENS: "{model} takes max_completion_tokens in place of max_tokens.",
    Parameter.TEMPERATURE: "{model} takes no temperature: the judge is sampled at the model's default "
    "temperature, so scores vary from run to run.",
    Parameter.JSON_SCHEMA: "{model} does not take a JSON schema: replies are asked for as plain JSON and "
    "checked here.",
    Parameter.JSON_OBJECT: "{model} has no JSON mode: the form of a reply is asked for in the prompt and "
    "checked here.",
}


@dataclass(slots=True)
class _Attempt:
    """The state of one call under retry."""

    call: Call[Any]
    model: str
    max_tokens: int
    retry_only: frozenset[str] | None = None
    """Codes that are worth another try; None for every transient one."""
    number: int = 0

    def is_worth_repeating(self, error: BaseException) -> bool:
        if not isinstance(error, FaultError) or error.fault.action is not Action.RETRY:
            return False
        return self.retry_only is None or error.fault.code in self.retry_only


class _Ready(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    ready: bool


def _wait_seconds(state: RetryCallState) -> float:
    """What the endpoint asked for; otherwise exponential backoff with full jitter, up to a minute."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, FaultError):
        if error.fault.wait is not None:
            return error.fault.wait
        if error.fault.code in ("unparseable", "truncated"):
            return 0.0
    return random.uniform(0, min(60.0, 0.5 * 2**state.attempt_number))  # noqa: S311 - jitter, not a secret
