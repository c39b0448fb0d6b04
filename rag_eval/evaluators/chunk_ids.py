"""Checks of the chunk ids in a reply. Ids count from 0, in the order of the context.

The context is pydantic's validation context: `{"context": [chunk, …]}`. With `"complete": True` in it, a reply that
leaves out a chunk is refused, so that the judge is called again; otherwise the chunk gets the worst grade.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field, ValidationInfo

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
