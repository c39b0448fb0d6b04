"""The clients of an evaluator: an Instructor client, or a judge of this package."""

import inspect
from collections.abc import Callable
from typing import Any, TypeGuard

from rag_eval.judge.calls import Judge


class ValidationContext(dict[str, Any]):
    """A validation context that Instructor passes on to validators, but does not use itself.

    Instructor renders all messages as Jinja2 templates with any context that is true. Ours are finished texts,
    and those in them that others wrote must not be run; so this context is never true, even with content.
    """

    def __bool__(self) -> bool:
        return False


def is_judge(client: object) -> TypeGuard[Judge]:
    """Whether `client` is a judge of this package, and not an Instructor client."""
    return not _creates(client) and all(callable(getattr(client, name, None)) for name in ("ask", "prepare"))


def creator(client: Any, *, is_async: bool) -> Callable[..., Any]:
    """The client's `create`. Raises TypeError unless it is an Instructor client, asynchronous exactly if `is_async`."""
    if not _creates(client):
        kind = "None" if client is None else f"a {type(client).__module__}.{type(client).__qualname__}"
        raise TypeError(f"{kind} cannot be asked: {_REMEDY}")
    if inspect.iscoroutinefunction(client.create) and not is_async:
        raise TypeError(
            "the client is asynchronous: await agrade(...), or pass a synchronous client to grade"
        )
    if not inspect.iscoroutinefunction(client.create) and is_async:
        raise TypeError("the client is synchronous: use grade(...), or pass an asynchronous client to agrade")
    create: Callable[..., Any] = client.create
    return create


def _creates(client: object) -> bool:
    return callable(getattr(client, "create", None))


_REMEDY = (
    "expected an Instructor client, such as instructor.from_openai(OpenAI(), model=...), or a "
    "rag_eval.judge.calls.Judge; on a Scheduler, run the coroutine evaluator.ask(question, answer, context)"
)
