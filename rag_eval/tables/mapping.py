"""What somebody says about columns, with --map or in [columns], as one thing."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from rag_eval.errors import InputError
from rag_eval.tables.column_uses import ROLES, Named
from rag_eval.tables.selection import nearest

_SEVERAL = {"bot": "bots", "ignore": "ignore"}
"""Roles of any number of columns, with the key of [columns] for them."""


def parse_map(entries: Sequence[str]) -> dict[str, str | tuple[str, ...]]:
    """The options --map COLUMN=ROLE, by key of [columns]. Raises InputError with all that is wrong with them."""
    found = _by_role(entries, ROLES)
    return {
        _SEVERAL.get(role, role): tuple(its) if role in _SEVERAL else its[0] for role, its in found.items()
    }


def roles_of(entries: Sequence[str], roles: Collection[str]) -> tuple[Named, ...]:
    """The options --map COLUMN=ROLE of a command that reads two files, which may call a role differently.

    Raises InputError as `parse_map` does, but not for two columns of one role: one file may not have both.
    """
    found = _by_role(entries, roles, of_several=roles)
    return tuple(
        Named(name, role, f"--map {name[:60]}={role}") for role, its in found.items() for name in its
    )


def _by_role(
    entries: Sequence[str], roles: Collection[str], of_several: Collection[str] = _SEVERAL
) -> dict[str, list[str]]:
    """`of_several` are the roles that several columns may have."""
    problems: list[str] = []
    found: dict[str, list[str]] = {}
    for entry in entries:
        column, sign, role = (part.strip() for part in entry.rpartition("="))
        if not (column and sign and role):
            problems.append(f"--map: {entry[:80]!r} has no COLUMN=ROLE; expected one such as answer=bot")
        elif role not in roles:
            problems.append(f"--map: {role[:40]!r} is not a role{nearest(role, roles, 'roles')}")
        elif column not in found.setdefault(role, []):
            found[role].append(column)
    for role, columns in found.items():
        if len(columns) > 1 and role not in of_several:
            listed = " and ".join(repr(column[:60]) for column in columns)
            problems.append(f"--map: the columns {listed} cannot both be the {role}; keep one of them")
    if problems:
        raise InputError(problems)
    return found


def named_columns(
    columns: Mapping[str, str | tuple[str, ...]], options: Sequence[str] = ()
) -> tuple[Named, ...]:
    """The section [columns] as names with their roles. `options` are the keys that were given with --map."""
    return tuple(_named(columns, options))


def _named(columns: Mapping[str, str | tuple[str, ...]], options: Sequence[str]) -> Iterator[Named]:
    words = {key: word for word, key in _SEVERAL.items()}
    for key, value in columns.items():
        role = words.get(key, key)
        for column in (value,) if isinstance(value, str) else value:
            if column:
                origin = f"--map {column[:60]}={role}" if key in options else f"[columns] {key}"
                yield Named(column, role, origin)
