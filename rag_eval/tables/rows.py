"""The rows of a file, kept on disk as they were read, and the rows of cases that are made of them."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from rag_eval.errors import TableError
from rag_eval.records import Case, Row, Turn
from rag_eval.store.codec import Spool
from rag_eval.tables.columns import Columns
from rag_eval.tables.spending import Amounts

_SHARED = 200
"""Characters from which on a value is worth sharing."""
_RECENT = 4_000_000
"""Characters of the values that may be shared with coming rows."""
_VALUE = "v"


class Lines:
    """Lists of texts, numbers, None, and lists of such; but no bare number in the place of a shared value.

    A long value that a line shares with one shortly before it is written once.
    """

    def __init__(self, name: str, file_size: int, *, shares: bool = False) -> None:
        """`name` is how messages call the input, `file_size` its size in bytes.

        `shares` says that a small file may hold one long value for many rows; looking for such ones takes time.
        """
        self._name = name
        self._shares = shares
        self._most = 1_000_000_000 + 40 * file_size
        self._spool: Spool[list[Any]] = Spool(list[Any], name)
        self._known: dict[tuple[str, str], int] = {}
        self._recent: deque[tuple[tuple[str, str], int]] = deque()
        self._recent_size = self._count = 0

    def __len__(self) -> int:
        return len(self._spool)

    def share(self, kind: str, found: Iterable[tuple[str, Any]]) -> list[Any]:
        """What stands in the next line for values, each given with the text that it comes from: it, or a reference.

        Values of one kind that come from the same text are the same.
        """
        if not self._shares:
            return [value for _, value in found]
        return [self._share((kind, text), value) for text, value in found]

    def _share(self, key: tuple[str, str], value: Any) -> Any:
        _, text = key
        if len(text) < _SHARED:
            return value
        if (known := self._known.get(key)) is not None:
            return known
        number = self._known[key] = self._count
        self._count += 1
        self._recent.append((key, number))
        self._recent_size += len(text)
        return {_VALUE: value}

    def add(self, values: list[Any]) -> None:
        """Raises TableError if the lines take far more than their file, and OutputError if the disk is full."""
        oldest = self._recent[0][1] if self._recent else self._count
        self._spool.add([oldest, *values] if self._shares else values)
        if self._spool.size > self._most:
            raise TableError(
                f"{self._name}: takes more than {self._most / 1e9:,.0f} GB when it is read, far more than its size on "
                "disk; split the file, or lower max_rows in [evaluation]"
            )
        while self._recent_size > _RECENT:
            key, _ = self._recent.popleft()
            self._recent_size -= len(key[1])
            del self._known[key]

    def __iter__(self) -> Iterator[list[Any]]:
        """The lines from the first on, each with the values it shares in place. Nothing is shared any more."""
        if not self._shares:
            yield from self._spool
            return
        self._known.clear()
        self._recent.clear()
        self._recent_size = 0
        values: dict[int, Any] = {}
        oldest = count = 0
        for first, *line in self._spool:
            for place, value in enumerate(line):
                if isinstance(value, dict):
                    its = value[_VALUE]
                    line[place] = values[count] = tuple(its) if isinstance(its, list) else its
                    count += 1
                elif isinstance(value, int) and place:
                    line[place] = values[value]
            for number in range(oldest, first):
                values.pop(number, None)
            oldest = first
            yield line

    def at(self, number: int) -> list[Any]:
        """One line, of those that share nothing."""
        return self._spool.at(number)


class Rows(Sequence[Row]):
    """The rows of a table, kept on disk. They can be walked over as often as wanted; each time they are made anew."""

    def __init__(self, lines: Lines, columns: Columns, amounts: Mapping[int, Amounts]) -> None:
        """`amounts` are the columns with latency and cost, by position; those without any values are absent."""
        self._lines = lines
        self._columns = columns
        self._amounts = amounts

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Row]:
        make = _RowMaker(self._columns, self._amounts).row
        return map(make, self._lines)

    def __getitem__(self, index: Any) -> Any:
        """Walks over all rows before it: for tests and for a look at the first ones."""
        if isinstance(index, slice) or index < 0:
            return tuple(self)[index]
        return next(islice(self, index, None))


class _RowMaker:
    """Makes rows of lines."""

    def __init__(self, columns: Columns, amounts: Mapping[int, Amounts]) -> None:
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
        self._amounts = amounts
        self._spent_of = [
            [(role, its[bot]) for role, its in columns.spent.items() if its.get(bot) in amounts]
            for bot in self._bots
        ]
        self._after_labels = self._after_kept + bool(self._metrics) if columns.spent else None

    def row(self, values: list[Any]) -> Row:
        number, query = values[:2]
        conversations, *histories = values.pop() or ([""],)
        turns = [tuple(Turn(*turn) for turn in each) for each in histories]
        for place in self._lists:
            values[place] = _tuple(values[place])
        reference = (values[2] or None) if self._has_reference else None
        first = 2 + self._has_reference
        gold = None if self._gold is None else values[self._gold]
        kept = dict(zip(self._kept, values[self._first_kept :], strict=False))
        humans, spent = self._humans(values), self._spendings(values)
        ids = values[-1] if self._takes_ids else ()
        cases = []
        for place, bot in enumerate(self._bots):
            is_missing = values[first + place] is None
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
                    response="" if is_missing else values[first + place],
                    reference=reference,
                    chunks=None if context is None or is_missing else values[context],
                    gold_ids=None if is_missing else gold,
                    retrieved_ids=None if is_missing else retrieved_ids,
                    human=humans[place],
                    columns=kept,
                    history=turns[place] if len(turns) > 1 else turns[0] if turns else (),
                    conversation=conversations[place if len(conversations) > 1 else 0],
                    is_missing=is_missing,
                    spent=spent[place],
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

    def _spendings(self, values: list[Any]) -> Sequence[dict[str, float]]:
        if self._after_labels is None:
            none: dict[str, float] = {}
            return [none] * len(self._bots)
        found = {
            index: self._amounts[index].value(number, unit)
            for index, number, unit in values[self._after_labels]
            if index in self._amounts
        }
        return [{role: found[index] for role, index in its if index in found} for its in self._spent_of]


def _tuple(value: Any) -> tuple[str, ...]:
    """A value that rows share stays one object."""
    return value if isinstance(value, tuple) else tuple(value)


def _position(indexes: Sequence[int], index: int | None, first: int) -> int | None:
    return None if index is None else first + indexes.index(index)
