"""The groups in which --help and docs/cli.md list the options of commands that have many."""

from collections.abc import Iterator

import click

GROUPS = {
    "Judge": (
        "--a --b --judge --model --temperature --prompts --samples --processes --alpha --beta --gamma --redact"
    ),
    "Cost": (
        "--dry-run --max-calls --max-cost --max-minutes --fresh --retry-errors --strict-cache --batch --batch-wait "
        "--batch-cancel"
    ),
    "Output": "--output --html --html-no-texts --json --csv --manifest --report-only --wait",
    "Gates": "--fail-under --gate-on --baseline --fail-on-regression --junit --history",
    "Human labels": "--labels --calibrate",
    "Input": "--show --sheet --header-row --encoding --sep --format --map --bot-name --where --rows --random-rows",
    "Shards": "--shard-rows --engine --address",
    "Other": "--config --quiet --debug --version --help",
}
"""Every option of the command `run`, by group. Those for one of two judges have -a or -b at the end."""


class GroupedCommand(click.Command):
    """A command whose --help has a section for each group. An option without a group is in the last one."""

    def groups(self, ctx: click.Context) -> Iterator[tuple[str, list[click.Option]]]:
        """The options of each group that has some, in the order of GROUPS."""
        left = {long_name(each): each for each in self.get_params(ctx) if isinstance(each, click.Option)}
        *grouped, last = GROUPS.items()
        for group, names in grouped:
            spelled = [f"{name}{end}" for name in names.split() for end in ("", "-a", "-b")]
            if found := [left.pop(name) for name in spelled if name in left]:
                yield group, found
        yield last[0], list(left.values())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, options in self.groups(ctx):
            with formatter.section(group):
                formatter.write_dl([record for each in options if (record := each.get_help_record(ctx))])


def long_name(option: click.Option) -> str:
    """The name with two dashes."""
    return max(option.opts, key=len)
