"""The base of evaluators: a prompt, the shape of the reply, and grades that are checked against the chunks."""

import asyncio
import inspect
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeGuard, TypeVar, cast, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import to_json

from rag_eval.evaluators.template import DEFAULT_TEMPLATE, check_template, render, shows_examples
from rag_eval.judge.calls import Call, Judge, Message, answered
from rag_eval.records import Turn

if TYPE_CHECKING:
    from instructor import AsyncInstructor, Instructor


ChunkId = Annotated[int, Field(strict=True, description="Id of a chunk of the context.")]


class _Graded(Protocol):
    """A judge's grade of one chunk."""

    @property
    def id_chunk(self) -> int: ...


T = TypeVar("T", bound=_Graded)


class MissingChunkWarning(UserWarning):
    """A judge left out chunks, which now count as the worst."""


def one_for_each_chunk(given: Sequence[T], info: ValidationInfo, stand_in: Callable[[int], T]) -> list[T]:
    """The grades in the order of the context, with a stand-in and a warning for each chunk without a grade.

    A grade with `graded=False` is also replaced by a stand-in. Raises ValueError for ids that are unknown or
    given twice.
    """
    ids = [each.id_chunk for each in given]
    refuse_repeated(ids)
    refuse_unknown(ids, info)
    count = _chunk_count(info)
    by_id = {each.id_chunk: each for each in given if getattr(each, "graded", True)}
    missing = [number for number in range(count) if number not in by_id]
    if missing and info.context and info.context.get("complete"):
        raise ValueError(f"chunk ids without a grade: {_listed(missing)}")
    if missing:
        warnings.warn(
            f"chunk ids without a grade, counted as the worst: {_listed(missing)}",
            MissingChunkWarning,
            stacklevel=2,
        )
    return [by_id[number] if number in by_id else stand_in(number) for number in range(count)]


def _chunk_count(info: ValidationInfo) -> int:
    """Number of chunks in the validation context. Raises ValueError if the context has no list of chunks."""
    given: Any = info.context
    chunks = given.get("context") if isinstance(given, Mapping) else None
    if not isinstance(chunks, list | tuple):
        raise ValueError(
            "the chunks are not known: validate with context={'context': [chunk, ...]}, a list of the chunks"
        )
    return len(chunks)


def refuse_repeated(ids: Iterable[int]) -> None:
    """Raises ValueError for an id that is given twice."""
    repeated = sorted(number for number, times in Counter(ids).items() if times > 1)
    if repeated:
        raise ValueError(f"chunk ids given more than once: {_listed(repeated)}")


def refuse_unknown(ids: Iterable[int], info: ValidationInfo) -> None:
    """Raises ValueError for ids of chunks that the context does not have, and without a context."""
    count = _chunk_count(info)
    unknown = sorted({number for number in ids if not 0 <= number < count})
    if unknown:
        known = f"ids from 0 to {count - 1}" if count else "no chunks"
        raise ValueError(f"unknown chunk ids: {_listed(unknown)}; the context has {known}")


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:10]))
    return f"{shown} and {len(ids) - 10} more" if len(ids) > 10 else shown


Result = TypeVar("Result", bound=BaseModel)


class ContextEvaluation(BaseModel, Generic[Result]):
    """Asks a judge about a question, an answer (or none) and numbered chunks, and returns a validated result.

    Chunks are numbered from 0 in the order given. Validators of the response model find them in pydantic's
    validation context, under the key 'context'.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    """Sent word for word as the system message; what is in it that looks like a template stays as it is."""
    examples: list[Any] | None = None
    """Put below the prompt word for word, texts as they are and everything else as JSON; or wherever
    `chunk_template` puts them, if it names them."""
    response_model: type[Result]
    chunk_template: str = DEFAULT_TEMPLATE
    """Jinja2, made into the user message. May use `question`, `answer`, `context`, a list of `id` and `chunk`, and
    `examples`, which is None without any, and `history`, a list of turns with `role` and `content`."""

    @field_validator("chunk_template")
    @classmethod
    def _check_template(cls, template: str) -> str:
        check_template(template)
        return template

    def grade(
        self,
        question: str,
        answer: str | None,
        context: Sequence[Any],
        client: "Instructor | Judge",
    ) -> Result:
        """The judge's result. Waits for it."""
        if _is_judge(client):
            return cast(Result, answered(client, self.call(question, answer, context)).reply)
        create = _creator(client, is_async=False)
        return cast(Result, create(**self._request(question, answer, context)))

    async def agrade(
        self,
        question: str,
        answer: str | None,
        context: Sequence[Any],
        client: "AsyncInstructor | Judge",
    ) -> Result:
        """As `grade`, without holding up the event loop."""
        if _is_judge(client):
            answer_given = await asyncio.to_thread(answered, client, self.call(question, answer, context))
            return cast(Result, answer_given.reply)
        create = _creator(client, is_async=True)
        return cast(Result, await create(**self._request(question, answer, context)))

    async def ask(self, question: str, answer: str | None, context: Sequence[Any], **settings: Any) -> Result:
        """The result, on the scheduler that runs this coroutine: stored, joined with equal calls, accounted for.

        Takes the settings of `call`. Raises JudgeError when no usable reply came.
        """
        return await self.call(question, answer, context, **settings)

    def call(
        self,
        question: str,
        answer: str | None,
        context: Sequence[Any],
        *,
        task: str = "",
        max_tokens: int = 4096,
        deployment: str = "",
        history: Sequence[Turn] = (),
    ) -> Call[Result]:
        """The question as a call to our own judge, which asks again for a reply that leaves out a chunk.

        Beside the chunks, validators then find the answer in their context, under the key 'answer'.

        `task` is what usage is accounted by; without it, the name of the response model. `history` are the turns of the
        conversation before the question.
        """
        return Call(
            task=task or self.response_model.__name__,
            messages=(
                Message("system", f"{self._instructions()}\n\n{_reply_form(self.response_model)}"),
                Message("user", self._material(question, answer, context, history)),
            ),
            reply_type=self.response_model,
            agrees_with={"context": list(context), "answer": answer, "complete": True},
            max_tokens=max_tokens,
            deployment=deployment,
        )

    def _request(self, question: str, answer: str | None, context: Sequence[Any]) -> dict[str, Any]:
        """The arguments of Instructor's `create`."""
        return {
            "messages": [
                {"role": "system", "content": self._instructions()},
                {"role": "user", "content": self._material(question, answer, context)},
            ],
            "response_model": self.response_model,
            "context": _ValidationContext(context=list(context)),
        }

    def _material(
        self, question: str, answer: str | None, context: Sequence[Any], history: Sequence[Turn] = ()
    ) -> str:
        return render(self.chunk_template, question, answer, context, self.examples or None, history)

    def _instructions(self) -> str:
        if not self.examples or shows_examples(self.chunk_template):
            return self.prompt
        examples = "\n".join(f"<example>\n{_as_text(each)}\n</example>" for each in self.examples)
        return f"{self.prompt}\n\n<examples>\n{examples}\n</examples>"


def _as_text(example: Any) -> str:
    return example if isinstance(example, str) else to_json(example, indent=2, fallback=str).decode()


def _reply_form(response_model: type[BaseModel]) -> str:
    schema = json.dumps(response_model.model_json_schema(), ensure_ascii=False)
    return f"Reply with one JSON object that fits this JSON Schema, and nothing else:\n{schema}"


class ContextValidationMixin:
    """For results with `graded_chunks`: there is exactly one grade for each chunk, in the order of the context.

    Unknown and repeated ids are errors. A chunk that the judge left out is added with score 0, `graded=False`
    and a MissingChunkWarning. Can be validated only with `context={'context': [chunk, ...]}`.
    """

    @field_validator("graded_chunks")
    @classmethod
    def validate_chunks_against_context(cls, chunks: list[Any], info: ValidationInfo) -> list[Any]:
        model: type[BaseModel] = cls  # type: ignore[assignment]  # only models have validators
        (chunk_type,) = get_args(model.model_fields["graded_chunks"].annotation)
        return one_for_each_chunk(chunks, info, partial(_worst, chunk_type))


def _worst(chunk_type: type[BaseModel], id_chunk: int) -> BaseModel:
    zero = False if chunk_type.model_fields["score"].annotation is bool else 0
    fields = {"id_chunk": id_chunk, "score": zero, "graded": False}
    known = {name: value for name, value in fields.items() if name in chunk_type.model_fields}
    try:
        return chunk_type.model_validate(known)
    except ValidationError:
        raise ValueError(
            f"chunk {id_chunk} has no grade, and {chunk_type.__name__} cannot be made from an id and score 0"
        ) from None


class ChunkScore(BaseModel):
    id_chunk: ChunkId
    score: float = Field(
        strict=True, ge=0.0, le=1.0, description="The chunk's grade, from 0 (worst) to 1 (best)."
    )
    graded: SkipJsonSchema[bool] = True
    """False for a chunk that the judge left out. Not asked of the judge."""


class ChunkBinaryScore(BaseModel):
    id_chunk: ChunkId
    score: bool = Field(strict=True, description="Whether the chunk passes.")
    graded: SkipJsonSchema[bool] = True
    """False for a chunk that the judge left out. Not asked of the judge."""


class ChunkGraded(BaseModel, ContextValidationMixin):
    graded_chunks: list[ChunkScore]

    @property
    def score(self) -> float | None:
        """Mean over the chunks, in 0..1; None without any chunk."""
        return mean([chunk.score for chunk in self.graded_chunks])


class ChunkGradedBinary(BaseModel, ContextValidationMixin):
    graded_chunks: list[ChunkBinaryScore]

    @property
    def score(self) -> float | None:
        """Share of the chunks that pass; None without any chunk."""
        return mean([chunk.score for chunk in self.graded_chunks])


def mean(values: Sequence[float]) -> float | None:
    """None without any value."""
    return math.fsum(values) / len(values) if values else None


class _ValidationContext(dict[str, Any]):
    """A validation context that Instructor passes on to validators, but does not use itself.

    Instructor renders all messages as Jinja2 templates with any context that is true. Ours are finished texts,
    and those in them that others wrote must not be run; so this context is never true, even with content.
    """

    def __bool__(self) -> bool:
        return False


def _is_judge(client: object) -> TypeGuard[Judge]:
    """Whether `client` is a judge of this package, and not an Instructor client."""
    return not _creates(client) and all(callable(getattr(client, name, None)) for name in ("ask", "prepare"))


def _creator(client: Any, *, is_async: bool) -> Callable[..., Any]:
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
