"""Write all options into docs/cli.md, and all keys into docs/configuration.md: python scripts/reference.py

docs/cli.md has a section for each command, and a subsection for each group of options of `rag-eval run`. This script
replaces the table of options of each, and adds those that are missing. An option that is the same as in `rag-eval run`
is only named.

docs/configuration.md has a section for each section of the settings. This script writes keys, defaults and allowed
values. What a key does stays as it is written there; of a new key it is the comment in config.ini.example.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from pydantic import SecretStr

from rag_eval import cli
from rag_eval.cli.options import KEYS
from rag_eval.cli.parameters import GroupedCommand, long_name
from rag_eval.configuration.settings import Settings
from rag_eval.judge.providers import PROVIDERS

ROOT = Path(__file__).parent.parent
OPTIONS_PAGE, KEYS_PAGE = ROOT / "docs" / "cli.md", ROOT / "docs" / "configuration.md"
EXAMPLE = ROOT / "config.ini.example"
_TABLE = "|Option|What it does|\n|---|---|\n"
_SHARED = "Options of [`rag-eval run`](#rag-eval-run)"
_BLOCK = re.compile(
    rf"(?m)^(?:\|Option\|.*\n\|---.*\n(?:\|.*\n)*|{re.escape(_SHARED)}[^|]*?:(?:.*\n)+?)(?:\n|\Z)"
)


ROOT_CONTEXT = click.Context(cli.rag_eval, info_name="rag-eval", **cli.rag_eval.context_settings)


def contexts(
    group: click.Group = cli.rag_eval, above: click.Context = ROOT_CONTEXT
) -> Iterator[click.Context]:
    """One for every command that does something. Only below the root's has a command the option -h.

    The full name of a command is the `command_path` of its context.
    """
    for name in group.list_commands(above):
        if command := group.get_command(above, name):
            context = click.Context(command, above, name)
            if isinstance(command, click.Group):
                yield from contexts(command, context)
            else:
                yield context


def renewed(page: str) -> str:
    """The page with the options that there are now."""
    parts = re.split(r"(?m)^(?=## )", page)
    every = {context.command_path: context for context in contexts()}
    shared = _rows(every["rag-eval run"])
    for name, context in every.items():
        (place,) = (number for number, part in enumerate(parts) if part.startswith(f"## `{name}`\n"))
        if isinstance(context.command, GroupedCommand) and name == "rag-eval run":
            parts[place] = _grouped(parts[place], context.command, context)
        else:
            parts[place] = _with_block(parts[place], _block(_rows(context), shared))
    return "".join(parts).rstrip() + "\n"


def _rows(context: click.Context) -> dict[str, str]:
    """The row of each option but --help, by the option's long name."""
    rows = {}
    for option in context.command.params:
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


def _grouped(section: str, command: GroupedCommand, context: click.Context) -> str:
    """A section with a subsection for each group."""
    rows = _rows(context)
    head, *parts = re.split(r"(?m)^(?=### )", section)
    by_group = {part.partition("\n")[0].removeprefix("### "): part for part in parts}
    for group, options in command.groups(context):
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


_KEYS_TABLE = re.compile(r"(?m)^\|Key\|.*\n\|---.*\n(?:\|.*\n)*|\Z")


def renewed_keys(page: str, example: str) -> str:
    """The page with the keys that there are now. `example` is the text of config.ini.example."""
    words = page.partition("|Word|")[2].partition("\n\n")[0]
    spelled = {meaning: word for word, meaning in re.findall(r"(?m)^\|(\w+)\|(.+)\|$", words)}
    head, *parts = re.split(r"(?m)^(?=### `\[)", page.rstrip() + "\n\n")
    by_heading = {part.partition("\n")[0]: part for part in parts}
    for section, keys in Settings():
        heading = f"### `[{section}]`"
        part = by_heading.get(heading, f"{heading}\n\n")
        told = {cells[1]: cells[4] for line in part.splitlines() if len(cells := _CELL_END.split(line)) == 6}
        table = "|Key|Default|Allowed|What it does|\n|---|---|---|---|\n"
        for key, info in type(keys).model_fields.items():
            meaning, empty, rest = (info.description or "").partition(", or empty")
            allowed = spelled.get(meaning, meaning) + empty + rest
            about = told.get(f"`{key}`") or _comment(example, section, key)
            table += f"|`{key}`|{_default(info.default)}|{allowed}|{about}|\n"
        head += _KEYS_TABLE.sub(lambda _, table=table: table, part, count=1)
    return head.rstrip() + "\n"


_CELL_END = re.compile(r"(?<!\\)\|")


def _default(value: object) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, float):
        value = f"{value:g}"
    if isinstance(value, tuple):
        value = ", ".join(map(str, value))
    return "*(empty)*" if value in (None, ()) or str(value) == "" else f"`{value}`"


def _comment(example: str, section: str, key: str) -> str:
    """The comment on a key, which may be above the key before it."""
    above = example.partition(f"[{section}]\n")[2].partition(f"\n{key} =")[0]
    comments = re.findall(r"(?m)(?:^# .*\n?)+", above)
    return re.sub(r"\s*\n?# ", " ", comments[-1]).strip() if comments else ""


if __name__ == "__main__":
    options_page, keys_page = (path.read_text(encoding="utf-8") for path in (OPTIONS_PAGE, KEYS_PAGE))
    OPTIONS_PAGE.write_text(renewed(options_page), encoding="utf-8")
    KEYS_PAGE.write_text(renewed_keys(keys_page, EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
