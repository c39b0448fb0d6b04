"""The ratings of two raters from two files, with one row per response and one column per criterion."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rag_eval.errors import TableError
from rag_eval.retrieval import QUERY_ID_NAMES
from rag_eval.rubric.criteria import MetricDefinition
from rag_eval.rubric.definition import EvaluationRubric
from rag_eval.tables.cells import cell_text
from rag_eval.tables.document_ids import parse_query_id
from rag_eval.tables.labels import parse_verdict
from rag_eval.tables.record_files import Problems, Records, find_column, listed, open_records, row_unit

Verdicts = Mapping[str, bool]
"""By criterion; a criterion that does not apply to the response is absent."""

_ID = "id"


@dataclass(frozen=True, slots=True)
class RatingPairs:
    """The verdicts of both raters on the responses that both have rated."""

    pairs: Sequence[tuple[Verdicts, Verdicts]]
    """In the order of the first file."""
    only_a: Sequence[str]
    """Ids of the responses that only rater A has rated."""
    only_b: Sequence[str]
    """Ids of the responses that only rater B has rated."""


def pair_ratings(path_a: Path, path_b: Path, rubric: EvaluationRubric) -> RatingPairs:
    """Pair the rows of two files by their column `id`, or by their order if neither has one.

    Raises TableError with all problems of both files, and if the two do not fit together.
    """
    a, b = _read_both((path_a, path_b), rubric)
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
    return RatingPairs(
        pairs=[(a.rows[id_], b.rows[id_]) for id_ in common],
        only_a=[id_ for id_ in a.rows if id_ not in b.rows],
        only_b=[id_ for id_ in b.rows if id_ not in a.rows],
    )


@dataclass(frozen=True, slots=True)
class _Ratings:
    rows: Mapping[str, Verdicts]
    """By id; by position, counted from 1, in a file without ids."""
    has_ids: bool
    queries: Sequence[str] = ()
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


def _read_both(paths: Sequence[Path], rubric: EvaluationRubric) -> Sequence[_Ratings]:
    ratings: list[_Ratings] = []
    problems: list[str] = []
    for path in paths:
        try:
            ratings.append(_read(path, rubric))
        except TableError as error:
            problems.extend(error.problems)
    if problems:
        raise TableError(problems)
    return ratings


def _read(path: Path, rubric: EvaluationRubric) -> _Ratings:
    problems = Problems()
    rows: dict[str, Verdicts] = {}
    numbers = map(str, count(1))
    queries: list[str] = []
    last = 0
    with open_records(path) as records:
        id_column, columns = _columns(path, records, rubric)
        query_column = _query_column(path, records, {*columns, id_column})
        further = [column for column in (id_column, query_column) if column is not None]
        for number, cells in records.rows([*columns, *further]):
            place = f"{path.name}, {row_unit(path)} {number}"
            id_ = next(numbers) if id_column is None else _id(place, cells[len(columns)], rows, problems)
            verdicts = zip(rubric.metrics, [records.names[c] for c in columns], cells, strict=False)
            rows[id_] = {
                metric.id: verdict
                for metric, name, cell in verdicts
                if (verdict := _verdict(metric, f"{place}, column {name!r}", cell, problems)) is not None
            }
            last = number
            if query_column is not None:
                queries.append(cell_text(cells[-1]).strip())
    for number in records.blank:
        if id_column is None and number < last:  # blank rows at the end of a file do no harm
            problems.add(f"{path.name}, {row_unit(path)} {number}: {_BLANK}")
    problems.raise_if_any()
    return _Ratings(rows, has_ids=id_column is not None, queries=queries)


_BLANK = f"is blank; without a column '{_ID}' it would shift all pairs below; fill it in, or add ids"


def _columns(path: Path, records: Records, rubric: EvaluationRubric) -> tuple[int | None, list[int]]:
    """Positions of the column of ids, if there is one, and of each criterion's column."""
    ids = [metric.id for metric in rubric.metrics]
    found = [_column(path, records.names, id_) for id_ in ids]
    if None in found:
        missing = ", ".join(id_ for id_, position in zip(ids, found, strict=True) if position is None)
        has = listed(records.names)
        raise TableError(f"{path.name}: has no column for the criteria {missing}; it has {has}")
    columns = [position for position in found if position is not None]
    _refuse_shared(path, records.names, dict(zip(ids, columns, strict=True)))
    id_column = find_column(path, records.names, [_ID])
    return (None if id_column in columns else id_column), columns


def _refuse_shared(path: Path, names: Sequence[str], columns: Mapping[str, int]) -> None:
    """Raises TableError if one column could have the verdicts of two criteria."""
    wanting: dict[int, list[str]] = defaultdict(list)
    for id_, position in columns.items():
        wanting[position].append(id_)
    problems = [
        f"{path.name}: the column {names[position]!r} fits each of the criteria {', '.join(map(repr, ids))}; "
        "give each criterion a column with its id as the name"
        for position, ids in wanting.items()
        if len(ids) > 1
    ]
    if problems:
        raise TableError(problems)


def _query_column(path: Path, records: Records, taken: Collection[int | None]) -> int | None:
    """Position of the first column with a name for query ids that is not in `taken`; None without one."""
    found = (find_column(path, records.names, [name]) for name in QUERY_ID_NAMES[0])
    return next((position for position in found if position not in {None, *taken}), None)


def _column(path: Path, names: Sequence[str], criterion: str) -> int | None:
    """Position of the column with exactly this name, or else with a name that differs in case and separators only."""
    if names.count(criterion) == 1:
        return names.index(criterion)
    return find_column(path, names, [criterion])


def _id(place: str, cell: object, rows: Mapping[str, Verdicts], problems: Problems) -> str:
    try:
        id_ = parse_query_id(cell)
    except ValueError:
        problems.add(f"{place}, column '{_ID}': {cell!r} is not an id")
        return ""
    if id_ in rows:
        problems.add(f"{place}, column '{_ID}': {id_!r} occurs more than once")
    return id_


def _verdict(metric: MetricDefinition, place: str, cell: object, problems: Problems) -> bool | None:
    """The verdict in a cell; None if it cannot be read, or is blank and the criterion need not apply."""
    text = cell_text(cell)
    if metric.applies_to and not text.strip():
        return None
    try:
        return bool(parse_verdict(text))
    except ValueError as error:
        problems.add(f"{place}: {error}")
        return None
