"""Who may be asked: an Instructor client, or a judge of ours."""

import inspect
from collections.abc import Callable
from typing import Any, TypeGuard

from rag_eval.judge.calls import Judge


class ValidationContext(dict[str, Any]):
    """For validators, and for nobody else.

    Instructor renders all messages as Jinja2 templates with any context that is true. Ours are finished texts,
    and those in them that others wrote must not be run; so this context is never true, even with content.
    """

    def __bool__(self) -> bool:
        return False


def is_judge(client: object) -> TypeGuard[Judge]:
    return not _creates(client) and all(callable(getattr(client, name, None)) for name in ("ask", "prepare"))


def creator(client: Any, *, is_async: bool) -> Callable[..., Any]:
    """The client's `create`; TypeError when it is no Instructor client, or one of the other kind."""
    if not _creates(client):
        raise TypeError(f"{_described(client)} cannot be asked: {_REMEDY}")
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


def _described(client: object) -> str:
    return "None" if client is None else f"a {type(client).__module__}.{type(client).__qualname__}"


_REMEDY = (
    "expected an Instructor client, such as instructor.from_openai(OpenAI(), model=...), or a "
    "rag_eval.judge.calls.Judge; on a Scheduler, run the coroutine evaluator.ask(question, answer, context)"
)
