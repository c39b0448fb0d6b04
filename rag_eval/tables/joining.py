"""Two tables with answers to the same queries as one: those of the second become further bots."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from rag_eval.errors import InputError
from rag_eval.records import SPENT_LABELS, TOXICITY, Row
from rag_eval.tables.names import HUMAN
from rag_eval.tables.spending import unit_of
from rag_eval.tables.table import Table

_OLD = " (old)"


def with_earlier_answers(table: Table, earlier: Table) -> Table:
    """The rows of `table` whose query is in both, with the bots of `earlier` under their names and '(old)'.

    Queries match if they differ in white space only, and so do the messages of the user before them if both files have
    earlier turns. The n-th row of a query joins the n-th one there. All bots of a row are judged by one ground truth
    and by the same gold documents: those of `table`, or else of `earlier`. Raises InputError if no query is in both.
    """
    key = _place if table.with_history and earlier.with_history else _query
    waiting: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in earlier.rows:
        waiting[key(row)].append(row)
    for found in waiting.values():
        found.reverse()
    require_same_units(table.path.name, table, earlier.path.name, earlier)
    rows = tuple(_joined(table, waiting, key))
    if not rows:
        raise InputError(
            f"--against {earlier.path}: none of its {len(earlier.rows):,} queries is in {table.path}; name a file with "
            "earlier answers to the same queries"
        )
    left = sum(map(len, waiting.values()))
    note = (
        f"--against {earlier.path.name}: {len(rows):,} of {len(table.rows):,} rows have the same query there and are "
        f"judged; left out: {len(table.rows) - len(rows):,} rows of {table.path.name}, {left:,} of {earlier.path.name}."
    )
    known = {use.role for use in table.columns}
    bots = tuple(f"{bot}{_OLD}" for bot in earlier.bots)
    return replace(
        table,
        rows=rows,
        columns=(
            *table.columns,
            *(use for use in earlier.columns if use.role in (*SPENT_LABELS, HUMAN) and use.role not in known),
        ),
        bots=(*table.bots, *bots),
        earlier_bots=bots,
        warnings=(*table.warnings, *(f"{earlier.path.name}: {each}" for each in earlier.warnings), note),
        has_documents=table.has_documents or earlier.has_documents,
    )


def require_same_units(first_name: str, first: Table, name: str, table: Table) -> None:
    """Raises InputError if a table has latency or cost in another unit than the first."""
    was, now = ({use.role: use for use in each.columns} for each in (first, table))
    for role in SPENT_LABELS:
        if role not in was or role not in now:
            continue
        units = [unit_of(role, uses[role].unit) for uses in (was, now)]
        if units[0] == units[1]:
            continue
        before, after = (f"in {unit}" if unit else "without a unit" for unit in units)
        remedy = (
            f"convert the amounts of one file, or delete its column {now[role]}"
            if all(units)
            else f"name the unit in both headers, or in [columns] {role}_unit"
        )
        raise InputError(f"{name}: has the {role} {after}, but {first_name} has it {before}; {remedy}")


_Key = Callable[[Row], tuple[str, ...]]


def _joined(table: Table, waiting: dict[tuple[str, ...], list[Row]], key: _Key) -> Iterator[Row]:
    for row in table.rows:
        if not (found := waiting.get(key(row))):
            continue
        first, its = row.cases[0], found.pop().cases
        reference = first.reference or its[0].reference
        of_query = {TOXICITY} & first.human.keys()  # what people said of the query is said once
        gold_ids = first.gold_ids or its[0].gold_ids or first.gold_ids
        cases = (
            replace(
                case,
                row=row.number,
                bot=f"{case.bot}{_OLD}",
                query=row.query,
                columns=first.columns,
                human={name: case.human[name] for name in case.human if name not in of_query},
                source=first.source,
                source_row=first.source_row,
            )
            for case in its
        )
        every = (replace(case, reference=reference, gold_ids=gold_ids) for case in (*row.cases, *cases))
        yield replace(row, cases=tuple(every))


def _query(row: Row) -> tuple[str, ...]:
    return (" ".join(row.query.split()),)


def _place(row: Row) -> tuple[str, ...]:
    """The query, and what the user said before it."""
    case = next((case for case in row.cases if not case.is_missing), row.cases[0])
    return (*_query(row), *(" ".join(text.split()) for text in case.user_said))
