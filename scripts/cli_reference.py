"""Write the options of every command into docs/cli.md, from click: python scripts/cli_reference.py

The page groups the options by hand. This script replaces the text of each row, removes rows of options that are
gone, and adds new options to the last table of their command.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from rag_eval import cli

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
_TABLE = "| Option | What it does |\n|---|---|\n"


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its full name."""
    context = click.Context(group)
    for each in group.list_commands(context):
        found = group.get_command(context, each)
        if isinstance(found, click.Group):
            yield from commands(found, f"{name} {each}")
        elif found is not None:
            yield f"{name} {each}", found


def rows(command: click.Command) -> dict[str, str]:
    """The row of each option but --help, by the option's long name."""
    context = click.Context(command)
    found = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
            option, text = (re.sub(r"\s+", " ", part).replace("|", "\\|") for part in record)
            text = text.replace("<", "\\<")
            spelled = ", ".join(f"`{part}`" for part in option.split(", "))
            found[max(parameter.opts, key=len)] = f"| {spelled} | {text} |\n"
    return found


def renewed(page: str) -> str:
    """The page with the options that there are now."""
    parts = re.split(r"(?m)^(?=## )", page)
    for name, command in commands(cli.rag_eval, "rag-eval"):
        (place,) = (number for number, part in enumerate(parts) if part.startswith(f"## `{name}`\n"))
        parts[place] = _renewed_section(parts[place], rows(command))
    return "".join(parts)


def _renewed_section(section: str, options: dict[str, str]) -> str:
    left = dict(options)

    def row(found: re.Match[str]) -> str:
        return left.pop(max(re.findall(r"--[a-z][a-z-]*", found[1]), key=len), "")

    section = re.sub(r"(?m)^\| (`-[^|]*(?:\\\|[^|]*)*)\|.*\|\n", row, section)
    if left and _TABLE in section:
        before, table, after = section.rpartition(_TABLE)
        known = re.match(r"(?:\|.*\n)*", after)
        end = known.end() if known else 0
        section = before + table + after[:end] + "".join(left.values()) + after[end:]
    elif left:
        section += _TABLE + "".join(left.values()) + "\n"
    return section


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
