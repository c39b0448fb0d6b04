"""The ratings of two raters from two files, with one row per response and one column per criterion."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from rag_eval.errors import TableError
from rag_eval.rubric.definition import EvaluationRubric
from rag_eval.tables.cells import Cell, is_blank, parse_verdict
from rag_eval.tables.document_ids import QUERY_ID_NAMES, parse_query_id
from rag_eval.tables.record_files import AS_FOUND, ReadOptions, Records, check_named, open_records
from rag_eval.tables.selection import EVERYTHING

Verdicts = Mapping[str, bool]
"""By criterion; a criterion that does not apply to the response is absent."""

_ID = "id"


@dataclass(frozen=True, slots=True)
class _RatingPairs:
    """The verdicts of both raters on the responses that both have rated."""

    pairs: Sequence[tuple[Verdicts, Verdicts]]
    """In the order of the first file."""
    only_a: Sequence[str]
    """Ids of the responses that only rater A has rated."""
    only_b: Sequence[str]
    """Ids of the responses that only rater B has rated."""


def pair_ratings(
    path_a: Path, path_b: Path, rubric: EvaluationRubric, reading: ReadOptions = AS_FOUND
) -> _RatingPairs:
    """Pair the rows of two files by their column `id`, or by their order if neither has one.

    What `reading` selects are rows of the first file, which then needs ids; other responses of the second are not told.
    Raises TableError with all problems of both files, and if the two do not fit together.
    """
    a, b = _read_both((path_a, path_b), rubric, reading)
    if a.has_ids != b.has_ids:
        lacking, other = (path_b, path_a) if a.has_ids else (path_a, path_b)
        raise TableError(
            f"{lacking.name}: has no column '{_ID}', but {other.name} has one; add it to both files or to neither"
        )
    if not a.has_ids and len(a.rows) != len(b.rows):
        raise TableError(
            f"{path_a.name} has {len(a.rows)} rows and {path_b.name} {len(b.rows)}; without a column '{_ID}' they are "
            "paired by order, so both need equally many rows"
        )
    if not a.has_ids:
        _require_same_order(path_a, path_b, a, b)
    common = [id_ for id_ in a.rows if id_ in b.rows]
    if not common:
        raise TableError(
            f"{path_a.name} and {path_b.name} have no response in common; use the same ids in both"
        )
    return _RatingPairs(
        pairs=[(a.rows[id_], b.rows[id_]) for id_ in common],
        only_a=[id_ for id_ in a.rows if id_ not in b.rows],
        only_b=[] if reading.selection else [id_ for id_ in b.rows if id_ not in a.rows],
    )


@dataclass(frozen=True, slots=True)
class _Ratings:
    rows: Mapping[str, Verdicts]
    """By id; by position, counted from 1, in a file without ids."""
    has_ids: bool
    queries: Sequence[str]
    """The cells of the column with query ids, row by row; empty without such a column."""


def _require_same_order(path_a: Path, path_b: Path, a: _Ratings, b: _Ratings) -> None:
    """Raises TableError if the columns with query ids show that the files are in different orders.

    Rows cannot be paired by these columns, because several bots may have answered one query.
    """
    for number, (one, other) in enumerate(zip(a.queries, b.queries, strict=False), 1):
        if one != other:
            raise TableError(
                f"{path_a.name} has query {one!r} in its row {number}, where {path_b.name} has {other!r}; without a "
                f"column '{_ID}' they are paired by order: sort both alike, or add ids"
            )


def _read_both(paths: Sequence[Path], rubric: EvaluationRubric, reading: ReadOptions) -> Sequence[_Ratings]:
    """Of A, whose rows may be selected, and of B."""
    ratings: list[_Ratings] = []
    problems: list[str] = []
    files: list[Records] = []
    for path, wanted in zip(paths, (reading, replace(reading, selection=EVERYTHING)), strict=True):
        try:
            with open_records(path, wanted) as records:
                files.append(records)
                ratings.append(_read(records, rubric))
        except TableError as error:
            problems.extend(error.problems)
    if problems:
        raise TableError(problems)
    check_named(reading, *files)
    return ratings


def _read(records: Records, rubric: EvaluationRubric) -> _Ratings:
    rows: dict[str, Verdicts] = {}
    numbers = map(str, count(1))
    queries: list[str] = []
    id_column, columns = _columns(records, rubric)
    if id_column is None and records.is_selected:
        raise TableError(
            f"{records.place}: has no column '{_ID}', which --where, --rows and --random-rows need to pair the rows; "
            "add it to both files, or name it with --map"
        )
    query_column = _query_column(records, {*columns, id_column})
    records.tell([(id_column, _ID), *zip(columns, (metric.id for metric in rubric.metrics), strict=True)])
    further = [column for column in (id_column, query_column) if column is not None]
    for number, cells in records.rows([*columns, *further], "" if id_column is not None else _BLANK):
        id_ = (
            next(numbers) if id_column is None else _id(records, number, id_column, cells[len(columns)], rows)
        )
        rows[id_] = {
            metric.id: bool(verdict)
            for metric, column, cell in zip(rubric.metrics, columns, cells, strict=False)
            if not (metric.applies_to and is_blank(cell))
            and (verdict := records.parsed(number, column, cell, parse_verdict)) is not None
        }
        if query_column is not None:
            queries.append(str(cells[-1]).strip())
    return _Ratings(rows, has_ids=id_column is not None, queries=queries)


_BLANK = f"is blank; without a column '{_ID}' it would shift all pairs below; fill it in, or add ids"


def _columns(records: Records, rubric: EvaluationRubric) -> tuple[int | None, list[int]]:
    """Positions of the column of ids, if there is one, and of each criterion's column."""
    ids = [metric.id for metric in rubric.metrics]
    found = [records.column(id_, [id_]) for id_ in ids]
    if None in found:
        missing = [id_ for id_, position in zip(ids, found, strict=True) if position is None]
        raise TableError(
            f"{records.place}: has no column for the criteria {', '.join(missing)}; rename one, or add "
            f"--map COLUMN={missing[0]} (found: {records.columns()})"
        )
    columns = [position for position in found if position is not None]
    _refuse_shared(records, dict(zip(ids, columns, strict=True)))
    id_column = records.column(_ID, [_ID])
    return (None if id_column in columns else id_column), columns


def _refuse_shared(records: Records, columns: Mapping[str, int]) -> None:
    """Raises TableError if one column could have the verdicts of two criteria."""
    wanting: dict[int, list[str]] = defaultdict(list)
    for id_, position in columns.items():
        wanting[position].append(id_)
    problems = [
        f"{records.place}: the column {records.called(position)} fits each of the criteria "
        f"{', '.join(map(repr, ids))}; give each criterion a column with its id as the name"
        for position, ids in wanting.items()
        if len(ids) > 1
    ]
    if problems:
        raise TableError(problems)


def _query_column(records: Records, taken: Collection[int | None]) -> int | None:
    """Position of the first column with a name for query ids that is not in `taken`; None without one."""
    found = (records.column("", [name]) for name in QUERY_ID_NAMES[0])
    return next((position for position in found if position not in {None, *taken}), None)


def _id(records: Records, number: int, column: int, cell: Cell, rows: Mapping[str, Verdicts]) -> str:
    id_ = records.parsed(number, column, cell, parse_query_id)
    if id_ in rows:
        records.report(number, f"{id_!r} occurs more than once; keep one row of it", column)
    return id_ or ""
