"""Calls over HTTP: to Azure OpenAI, OpenAI or any server that speaks like them.

The openai package writes the head of a request, aiohttp sends it, and neither tries again. The one retry layer is
here; what it meets is named in `outcomes`.
"""

import logging
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict
from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential

from rag_eval.errors import EXCEEDS_RATE_LIMIT, NOT_RUN, JudgeError, RefusedReplyError, RunStoppedError
from rag_eval.judge.answers import read_body, read_status, refused_reply
from rag_eval.judge.attempt import Attempt, Deployment
from rag_eval.judge.budget import Budget
from rag_eval.judge.calls import Answer, Call, Message, ReplyStore
from rag_eval.judge.connection import Connection, Proxy, Response
from rag_eval.judge.endpoint import (
    Dialect,
    Endpoint,
    request_body,
    request_key,
)
from rag_eval.judge.limiter import Admission, Limiter
from rag_eval.judge.masking import masked, without_keys
from rag_eval.judge.outcomes import (
    LARGEST_BODY,
    LOADING,
    LOOP,
    TRUNCATED,
    Action,
    Completion,
    Fault,
    Parameter,
    Tokens,
    oversized,
    timed_out,
    unreachable,
)
from rag_eval.judge.providers import PROVIDERS
from rag_eval.judge.quota import read_quotas
from rag_eval.judge.replies import json_of, read_reply
from rag_eval.records import TaskUsage, Usage

log = logging.getLogger(__name__)


class Transport:
    """Answers calls over HTTP. Safe to use from several threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        store: ReplyStore,
        budget: Budget | None = None,
        *,
        announce: Callable[[str], None] = lambda sentence: None,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sleep` is for tests; without it, waits end early when the transport is closed."""
        self.endpoint = endpoint
        self._store = store
        self._budget = budget or Budget()
        self._announce = announce
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._clock = clock
        self._lock = threading.Lock()
        self._deployments: dict[str, Deployment] = {}
        self._meter: Counter[str] = Counter()
        self._by_task: defaultdict[str, TaskUsage] = defaultdict(TaskUsage)
        self._connection: Connection | None = None
        self.models: defaultdict[str, set[str]] = defaultdict(set)
        """By deployment, the models that answered, by their own names."""

    def prepare(self, deployment: str) -> None:
        """Send one minimal call: a wrong key, address or name stops the run here, and the dialect is settled."""
        check = Call(
            task="preflight",
            messages=ARE_YOU_READY,
            reply_type=_Ready,
            max_tokens=16,
            deployment=deployment,
        )
        try:
            self._ask(Attempt(check, self._deployment(check), _RETRIED_AT_PREFLIGHT))
        except JudgeError as error:
            if error.code in _FATAL_AT_PREFLIGHT:
                raise RunStoppedError(error.code, f"{self.endpoint.description}: {error}") from None
            log.debug("preflight ended with %s: the endpoint answers", error.code)

    def key(self, call: Call[Any]) -> str:
        return request_key(self.endpoint, self._deployment(call).dialect, call)

    def ask(self, call: Call[Any]) -> Answer:
        return self._ask(Attempt(call, self._deployment(call)))

    def replay(self, call: Call[Any], outcomes: Iterable[Completion | Fault]) -> Answer | Attempt:
        """What the outcomes of a call, which was sent otherwise, come to: its answer, or what is to be sent next.

        Raises what `ask` raises when the last fault is final.
        """
        attempt = Attempt(call, self._deployment(call))
        final: Fault | None = None
        for outcome in outcomes:
            attempt.number += 1
            attempt.add(outcome.tokens)
            meaning = self._meaning(outcome, attempt)
            if isinstance(meaning, Answer):
                return meaning
            final = None if attempt.wants_another(meaning, self.endpoint.max_attempts) else meaning
        if final:
            raise self.error(final, attempt)
        attempt.dialect = attempt.deployment.dialect
        return attempt

    def continue_with(self, attempt: Attempt) -> Answer:
        """Send a call whose first attempts were sent otherwise."""
        return self._ask(attempt)

    def usage(self) -> Usage:
        """What was sent so far. Tokens are the provider's counts, those of unusable replies included."""
        with self._lock:
            return Usage(
                requests=self._meter["requests"],
                prompt_tokens=self._meter["prompt_tokens"],
                completion_tokens=self._meter["completion_tokens"],
                possibly_billed=self._meter["possibly_billed"],
                uncounted=self._meter["uncounted"],
                uncounted_cost=self._budget.kept,
                cost=self._budget.spent,
                by_task=dict(self._by_task),
            )

    @property
    def possibly_billed(self) -> int:
        """The number of requests without an answer, as after a timeout, on which the endpoint may have begun."""
        return self._meter["possibly_billed"]

    @property
    def adaptations(self) -> tuple[str, ...]:
        """Sentences on how the endpoint took the calls, for readers of the scores."""
        initial = Dialect.initial(self.endpoint)
        with self._lock:
            deployments = list(self._deployments.values())
        sentences = [each for one in deployments for each in one.dialect.differences(initial, one.name)]
        remarks = [text.format(count) for name, text in _REMARKS.items() if (count := self._meter[name])]
        if forfeited := self._budget.forfeited:
            remarks.append(_FORFEITED.format(forfeited))
        return (*sentences, *remarks)

    def close(self) -> None:
        """End all waits and close the connections; calls in flight fail as not run."""
        self._closed.set()
        with self._lock:
            connection = self._connection
        if connection is not None:
            connection.close()

    # Attempts

    def _ask(self, attempt: Attempt) -> Answer:
        """Send the call until it is answered or its fault is final: the only place where anything is retried."""
        retrying = Retrying(
            retry=retry_if_result(lambda outcome: attempt.wants_another(outcome, self.endpoint.max_attempts)),
            wait=_wait_before_next,
            sleep=self.rest,
        )
        outcome = retrying(self._try, attempt)
        if isinstance(outcome, Answer):
            return outcome
        raise self.error(outcome, attempt)

    def _try(self, attempt: Attempt) -> Answer | Fault:
        """Send one request.

        What its answer says of the rate limits is taken in before the turn ends, so that the next request obeys it.
        """
        limiter = attempt.deployment.limiter
        with limiter.turn(attempt.estimated_tokens) as turn:
            if turn.is_held_back:
                self._announce_once(attempt.deployment, _HELD_BACK)
            attempt.dialect = dialect = attempt.deployment.dialect
            held = self._budget.reserve(
                attempt.deployment.name,
                dialect.most_prompt_tokens(attempt.call),
                dialect.reply_limit(attempt.max_tokens),
            )
            attempt.number += 1
            began = self._clock()
            outcome = self._post(attempt, turn)
            seconds = self._clock() - began
            if outcome.possibly_billed and not outcome.tokens.prompt:
                cost = self._budget.forfeit(held)
            elif not outcome.tokens.are_counted:
                cost = self._budget.keep(held)
            else:
                tokens = outcome.tokens
                cost = self._budget.settle(held, tokens.prompt, tokens.completion, tokens.cached)
            self._account(outcome, attempt, cost)
            if isinstance(outcome, Completion):
                limiter.grow()
            elif outcome.code == "rate_limited":
                limiter.shrink(turn)
                limiter.pause(outcome.wait or random.uniform(0, min(60.0, 0.5 * 2**attempt.number)))  # noqa: S311 - jitter
            elif outcome.wait:
                limiter.pause(outcome.wait)
                if outcome.code == LOADING:
                    self._announce_once(attempt.deployment, _IS_LOADING)
        result = self._meaning(outcome, attempt)
        _log(attempt, result, seconds, outcome.tokens)
        return result

    def _post(self, attempt: Attempt, turn: Admission) -> Completion | Fault:
        import aiohttp

        outcome: Completion | Fault
        body = request_body(self.endpoint, attempt.dialect, attempt.call, attempt.max_tokens)
        try:
            response = self.connected().post(body)
        except aiohttp.ClientError as error:
            return self.unreachable(error)
        except TimeoutError:
            return timed_out(self.endpoint.timeout_seconds)
        except CancelledError:
            raise _not_run() from None
        if 200 <= response.status < 300 and not response.is_whole:
            outcome = oversized(LARGEST_BODY)
        elif 200 <= response.status < 300:
            outcome = read_body(response.text)
        else:
            outcome = refused_reply(response.status, response.text) or read_status(
                response.status, response.headers, response.text, response.path
            )
        self._heed(response, outcome, attempt.deployment, turn)
        return outcome

    def _heed(
        self, response: Response, outcome: Completion | Fault, deployment: Deployment, turn: Admission
    ) -> None:
        """Take in what the headers say of the rate limits, unless the endpoint asks for a certain pause."""
        if isinstance(outcome, Completion) or outcome.wait is None:
            is_refused = isinstance(outcome, Fault) and outcome.code == "rate_limited"
            deployment.limiter.learn(turn, read_quotas(response.headers, is_refused=is_refused))

    def _announce_once(self, deployment: Deployment, sentence: str) -> None:
        """Say once per deployment why the run is slower than its workers could be."""
        with self._lock:
            is_known = sentence in deployment.announced
            deployment.announced.add(sentence)
        if not is_known:
            self._announce(f"{deployment.name}: {sentence}")

    def _account(self, outcome: Completion | Fault, attempt: Attempt, cost: float | None) -> None:
        attempt.add(outcome.tokens)
        spent = TaskUsage(0, 0, outcome.tokens.prompt, outcome.tokens.completion, cost)
        with self._lock:
            self._by_task[attempt.call.task] += spent
            self._meter["requests"] += 1
            self._meter["prompt_tokens"] += outcome.tokens.prompt
            self._meter["completion_tokens"] += outcome.tokens.completion
            self._meter["uncounted"] += not outcome.tokens.are_counted
            if isinstance(outcome, Completion):
                attempt.deployment.has_answered = True
                attempt.deployment.refusals_for_size = 0
                self._meter["unfiltered"] += outcome.is_unfiltered
                self.models[attempt.deployment.name].add(outcome.model)
            else:
                self._meter["possibly_billed"] += outcome.possibly_billed

    def _meaning(self, outcome: Completion | Fault, attempt: Attempt) -> Answer | Fault:
        read = self._read(outcome, attempt) if isinstance(outcome, Completion) else outcome
        return read if isinstance(read, Answer) else self._second_thought(read, attempt)

    def _read(self, completion: Completion, attempt: Attempt) -> Answer | Fault:
        text = json_of(completion.content, [each.text for each in attempt.call.messages])
        try:
            reply = read_reply(text, attempt.call)
        except RefusedReplyError as error:
            return Fault(Action.REJECT, error.code, error.problem, tokens=completion.tokens, reply=text)
        return Answer(text, reply, attempt.number, attempt.tokens.prompt, attempt.tokens.completion)

    def _second_thought(self, fault: Fault, attempt: Attempt) -> Fault:
        """The fault, changed where earlier faults show that it means something else."""
        if fault.action is Action.ADAPT:
            return self._adapt(fault, attempt)
        if fault.code == "deployment_not_found":
            fault = self._with_model(fault, attempt.deployment.name)
        if (
            fault.code == "deployment_not_found"
            and attempt.deployment.has_answered
            and attempt.met[fault.code] < 2
        ):
            return replace(fault, action=Action.RETRY)  # it is sometimes missing for a moment
        if fault.code == EXCEEDS_RATE_LIMIT and self._is_refused_for_size_again(attempt.deployment):
            return replace(fault, action=Action.STOP)
        if fault.code == "bad_request" and attempt.met[TRUNCATED]:
            return replace(fault, code=TRUNCATED)  # the larger limit was more than the model allows
        return self._cut(fault, attempt) if fault.code == TRUNCATED else fault

    def _with_model(self, fault: Fault, name: str) -> Fault:
        """The fault with the model's name, and where it is set if it is the judge's own."""
        provider = PROVIDERS[self.endpoint.provider]
        is_own = name == self.endpoint.model
        place = f", which [{provider.name}] {provider.model_key} or --model sets" if is_own else ""
        return replace(fault, message=f"{fault.message} {name}{place}")

    @staticmethod
    def _cut(fault: Fault, attempt: Attempt) -> Fault:
        """A larger limit of the reply that changed nothing shows that the model's context is full."""
        if attempt.call.is_passed_by(fault.cut):
            advice = "the judge's reply goes on after all that was asked, until its token limit"
            return replace(fault, action=Action.REJECT, code=LOOP, message=advice)
        before, attempt.cut_at = attempt.cut_at, fault.tokens.completion
        if not before or before != attempt.cut_at:
            return fault
        full = f"the model's context is full ({fault.tokens.prompt:,} + {attempt.cut_at:,} tokens)"
        return replace(fault, action=Action.REJECT, message=f"{fault.message}: {full}; give it a larger one")

    def _is_refused_for_size_again(self, deployment: Deployment) -> bool:
        with self._lock:
            deployment.refusals_for_size += 1
            return deployment.refusals_for_size >= _MOST_REFUSALS_FOR_SIZE

    def error(self, fault: Fault, attempt: Attempt | None = None) -> JudgeError | RunStoppedError:
        """The final fault of an attempt as an error that quotes no secret."""
        tokens = self._connection.tokens if self._connection else frozenset()
        message = masked(fault.message, self.endpoint.secrets | tokens)
        if fault.action is Action.STOP:
            return RunStoppedError(fault.code, f"{self.endpoint.description}: {message}")
        if fault.reply is None:
            return JudgeError(fault.code, message)
        refusal = RefusedReplyError(fault.code, message, without_keys(fault.reply, self.endpoint.secrets))
        if attempt:
            refusal.attempts = attempt.number
            refusal.prompt_tokens, refusal.completion_tokens = (
                attempt.tokens.prompt,
                attempt.tokens.completion,
            )
        return refusal

    # Deployments

    def _adapt(self, fault: Fault, attempt: Attempt) -> Fault:
        """Learn, once for the run, that the endpoint does not take a parameter, and say so."""
        assert fault.parameter is not None  # noqa: S101 - every such fault names one
        deployment, used = attempt.deployment, attempt.dialect
        is_fixed = fault.parameter is Parameter.RESPONSE_FORMAT and (
            self.endpoint.structured_output != "auto"
        )
        with self._lock:
            if deployment.dialect != used:
                return fault  # another worker was faster
            changed = None if is_fixed else used.adapted(fault.parameter)
            if changed is None:
                return replace(fault, action=Action.STOP if is_fixed else Action.REJECT)
            deployment.dialect = changed
        self._store.put_note(self.note_name(deployment.name), changed.to_json())
        for sentence in changed.differences(used, deployment.name):
            self._announce(sentence)
        return fault

    def _deployment(self, call: Call[Any]) -> Deployment:
        name = call.deployment or self.endpoint.model
        with self._lock:
            if name in self._deployments:
                return self._deployments[name]
            deployment = self._deployments[name] = self._new_deployment(name)
        for sentence in deployment.dialect.differences(Dialect.initial(self.endpoint), name):
            self._announce(sentence)
        return deployment

    def _new_deployment(self, name: str) -> Deployment:
        limiter = Limiter(
            self.endpoint.workers,
            requests_per_minute=self.endpoint.requests_per_minute,
            tokens_per_minute=self.endpoint.tokens_per_minute,
            sleep=self.rest,
            clock=self._clock,
        )
        return Deployment(
            name, Dialect.remembered(self._store.note(self.note_name(name)), self.endpoint), limiter
        )

    def note_name(self, name: str) -> str:
        """The name of the note on a deployment."""
        return f"dialect {self.endpoint.url.rstrip('/')} {self.endpoint.api_version} {name}"

    def connected(self) -> Connection:
        """The connection, opened when it is first needed. Raises CancelledError when the transport is closed."""
        with self._lock:
            if self._closed.is_set():
                raise CancelledError
            if self._connection is not None:
                return self._connection
            connection = self._connection = Connection(self.endpoint)
        if proxy := Proxy.of(self.endpoint.url):
            self._announce(f"Judge calls go through the proxy {proxy.place}, which the environment names.")
        return connection

    def unreachable(self, error: BaseException) -> Fault:
        """A connection to the endpoint that failed."""
        proxy = Proxy.of(self.endpoint.url)
        return unreachable(error, proxy.named if proxy else "")

    def rest(self, seconds: float) -> None:
        """Wait, at most until the transport is closed."""
        if seconds > 0:
            self._sleep(seconds)
        if self._closed.is_set():
            raise _not_run()


def _wait_before_next(state: RetryCallState) -> float:
    """Seconds before the next try: 0 if the limiter makes everyone wait, or if the next request differs."""
    fault = state.outcome.result() if state.outcome else None
    if not isinstance(fault, Fault) or fault.action is Action.ADAPT or fault.wait:
        return 0.0
    return (
        0.0 if fault.code in ("rate_limited", TRUNCATED) else _BACKOFF(state)
    )  # for that one, the limiter waits


def _log(attempt: Attempt, result: Answer | Fault, seconds: float, tokens: Tokens) -> None:
    """One line a request, without any text of it."""
    call = attempt.call
    log.debug(
        "%s: %s, %.0f ms, %d + %d tokens, attempt %d",
        f"{call.task}, {call.origin}" if call.origin else call.task,
        result.code if isinstance(result, Fault) else "answered",
        1000 * seconds,
        tokens.prompt,
        tokens.completion,
        attempt.number,
    )


_BACKOFF = wait_random_exponential(max=60)
"""Seconds: exponential with full jitter."""
_RETRIED_AT_PREFLIGHT = frozenset({"rate_limited", LOADING, "server_error", "no_choices", "connection_lost"})
_FATAL_AT_PREFLIGHT = _RETRIED_AT_PREFLIGHT | {
    "unreachable",
    "not_json",
    "oversized",
    "timeout",
    EXCEEDS_RATE_LIMIT,
}
_MOST_REFUSALS_FOR_SIZE = 3
"""The number of requests in a row, each larger than the rate limit, that stops the run."""
_HELD_BACK = "its rate limit is nearly used up; requests wait until enough is left."
_IS_LOADING = "the server is still loading its model; requests wait for it."
_REMARKS = {
    "uncounted": "Replies without a count of their tokens: {}. If prices are set, the cost includes the most that each "
    "can have cost.",
    "possibly_billed": "Requests without an answer that may still be billed: {}.",
    "unfiltered": "Replies that came while the provider's content filter was down: {}.",
}
_FORFEITED = "The cost includes {:.4f} for requests without an answer, the most that they can have cost."


ARE_YOU_READY = (Message("system", 'Reply with the JSON object {"ready": true}.'), Message("user", "Ready?"))


class _Ready(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    ready: bool


def _not_run() -> JudgeError:
    return JudgeError(NOT_RUN, "not judged: the run ended before the answer came")
