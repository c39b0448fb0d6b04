"""Rows of cases, made again from what was spooled of them."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from rag_eval.records import Case, Row
from rag_eval.tables.columns import Columns
from rag_eval.tables.spool import Spool


class Rows(Sequence[Row]):
    """The rows of a table, kept on disk. They can be walked over as often as wanted; each time they are made anew."""

    def __init__(self, spool: Spool, columns: Columns) -> None:
        self._spool = spool
        self._columns = columns

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[Row]:
        make = _RowMaker(self._columns).row
        return map(make, self._spool)

    def __getitem__(self, index: Any) -> Any:
        """Walks over all rows before it: for tests and for a look at the first ones."""
        if isinstance(index, slice) or index < 0:
            return tuple(self)[index]
        return next(islice(self, index, None))


class _RowMaker:
    """Makes rows of what was spooled."""

    def __init__(self, columns: Columns) -> None:
        self._bots = tuple(columns.responses)
        contexts, documents = sorted({*columns.contexts.values()}), sorted(columns.documents)
        self._has_reference = columns.reference is not None
        self._first_context = 2 + self._has_reference + len(self._bots)
        first_document = self._first_context + len(contexts)
        self._context_of = [
            _position(contexts, columns.contexts.get(bot), self._first_context) for bot in self._bots
        ]
        self._gold = _position(documents, columns.gold, first_document)
        self._retrieved_of = [
            _position(documents, columns.retrieved.get(bot), first_document) for bot in self._bots
        ]
        self._lists = range(self._first_context, first_document + len(documents))
        self._first_kept = first_document + len(documents)
        self._kept = tuple(columns.kept)
        self._metrics = tuple(columns.human)
        self._after_kept = self._first_kept + len(self._kept)
        self._takes_ids = columns.gold is not None and not columns.retrieved

    def row(self, values: list[Any]) -> Row:
        number, query = values[:2]
        for place in self._lists:
            values[place] = None if values[place] is None else _tuple(values[place])
        reference = (values[2] or None) if self._has_reference else None
        first = 2 + self._has_reference
        gold = None if self._gold is None else values[self._gold]
        kept = dict(zip(self._kept, values[self._first_kept :], strict=False))
        humans = self._humans(values)
        ids = values[-1] if self._takes_ids else ()
        cases = []
        for place, bot in enumerate(self._bots):
            context, retrieved = self._context_of[place], self._retrieved_of[place]
            retrieved_ids = None if retrieved is None else values[retrieved]
            if ids and context is not None:
                of_chunks = ids[context - self._first_context]
                retrieved_ids = of_chunks if of_chunks is None else tuple(of_chunks)
            cases.append(
                Case(
                    row=number,
                    bot=bot,
                    query=query,
                    response=values[first + place],
                    reference=reference,
                    chunks=None if context is None else values[context],
                    gold_ids=gold,
                    retrieved_ids=retrieved_ids,
                    human=humans[place],
                    columns=kept,
                )
            )
        return Row(number, query, tuple(cases))

    def _humans(self, values: list[Any]) -> Sequence[dict[str, float]]:
        if not self._metrics:
            none: dict[str, float] = {}
            return [none] * len(self._bots)
        humans: list[dict[str, float]] = [{} for _ in self._bots]
        for bot, metric, label in values[self._after_kept]:
            humans[bot][self._metrics[metric]] = label
        return humans


def _tuple(value: Any) -> tuple[str, ...]:
    """A value that rows share stays one object."""
    return value if isinstance(value, tuple) else tuple(value)


def _position(indexes: Sequence[int], index: int | None, first: int) -> int | None:
    return None if index is None else first + indexes.index(index)
