"""Write the options of every command into docs/cli.md, from click: python scripts/cli_reference.py

The page has a section for each command, and a subsection for each group of options of `rag-eval run`. This script
replaces the table of options of each, and adds those that are missing. An option that is the same as in `rag-eval run`
is only named.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from rag_eval import cli
from rag_eval.cli.options import KEYS
from rag_eval.cli.parameters import GroupedCommand, long_name
from rag_eval.judge.providers import PROVIDERS

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
_TABLE = "|Option|What it does|\n|---|---|\n"
_SHARED = "Options of [`rag-eval run`](#rag-eval-run)"
_BLOCK = re.compile(
    rf"(?m)^(?:\|Option\|.*\n\|---.*\n(?:\|.*\n)*|{re.escape(_SHARED)}[^|]*?:(?:.*\n)+?)(?:\n|\Z)"
)


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its full name."""
    context = click.Context(group)
    for each in group.list_commands(context):
        found = group.get_command(context, each)
        if isinstance(found, click.Group):
            yield from commands(found, f"{name} {each}")
        elif found is not None:
            yield f"{name} {each}", found


def renewed(page: str) -> str:
    """The page with the options that there are now."""
    parts = re.split(r"(?m)^(?=## )", page)
    every = dict(commands(cli.rag_eval, "rag-eval"))
    shared = _rows(every["rag-eval run"])
    for name, command in every.items():
        (place,) = (number for number, part in enumerate(parts) if part.startswith(f"## `{name}`\n"))
        if name == "rag-eval run" and isinstance(command, GroupedCommand):
            parts[place] = _grouped(parts[place], command)
        else:
            parts[place] = _with_block(parts[place], _block(_rows(command), shared))
    return "".join(parts).rstrip() + "\n"


def _rows(command: click.Command) -> dict[str, str]:
    """The row of each option but --help, by the option's long name."""
    context = click.Context(command)
    rows = {}
    for option in command.params:
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            rows[long_name(option)] = _row(*record, _key(long_name(option)))
    return rows


def _row(spelled: str, text: str, key: str) -> str:
    spelled, text = (re.sub(r"\s+", " ", part).replace("|", "\\|") for part in (spelled, text))
    text = text.replace("<", "\\<")
    names = ", ".join(f"`{part}`" for part in spelled.split(", "))
    return f"|{names}|{text}{key}|\n"


def _key(name: str) -> str:
    """The key that an option overrides."""
    section, _, key = KEYS.get(name, "").rpartition(".")
    if not key:
        return ""
    if section:
        return f" (`[{section}] {key}`)"
    remote = [each for each in PROVIDERS.values() if not each.is_offline]
    keys = [f"`[{each.name}] {each.model_key if key == 'model' else key}`" for each in remote]
    return f" ({', '.join(keys)})"


def _grouped(section: str, command: GroupedCommand) -> str:
    """A section with a subsection for each group."""
    rows = _rows(command)
    head, *parts = re.split(r"(?m)^(?=### )", section)
    by_group = {part.partition("\n")[0].removeprefix("### "): part for part in parts}
    for group, options in command.groups(click.Context(command)):
        table = _TABLE + "".join(rows.get(long_name(option), "") for option in options) + "\n"
        by_group[group] = _with_block(by_group.get(group, f"### {group}\n\n"), table)
    return head + "".join(by_group.values())


def _block(rows: Mapping[str, str], shared: Mapping[str, str]) -> str:
    """The table of a command's own options, and the names of the shared ones; for one judge, with -a or -b."""
    same = [name for name, row in rows.items() if shared.get(name) == row]
    ends = [name[:-2] for name in rows if name.endswith("-a") and f"{name[:-2]}-b" in rows]
    of_a_judge = [name for name in ends if name in shared]
    left = [row for name, row in rows.items() if name not in same and name[:-2] not in of_a_judge]
    block = _TABLE + "".join(left) + "\n" if left else ""
    if of_a_judge:
        block += _names(f"{_SHARED}, each with `-a` or `-b` at its end", of_a_judge)
    if same:
        block += _names(_SHARED, same)
    return block


def _names(begin: str, names: list[str]) -> str:
    text = f"{begin}: {', '.join(f'`{name}`' for name in names)}."
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n\n"


def _with_block(section: str, block: str) -> str:
    """The section with this block at the place of the one that it has, or at its end."""
    place = _BLOCK.search(section)
    cleared = _BLOCK.sub("", section)
    if not place:
        return f"{section.rstrip()}\n\n{block}"
    return cleared[: place.start()] + block + cleared[place.start() :]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
