"""Types of options, and the command whose help has a section for each group of options."""

import math
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click


class _PathParameter(click.Path):
    """A path. Empty text would be the current folder, which an unset variable of the shell must not become."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty; name a file or folder", param, ctx)
        return super().convert(value, param, ctx)


class _PageParameter(_PathParameter):
    """A path of a page, which may be next to the report: `./page.html` is in the current folder all the same."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        return path.absolute() if os.path.dirname(value) == "." else path


class _NameParameter(click.types.StringParamType):
    """A name. Empty text would be no name, which an unset variable of the shell must not become."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name = super().convert(value, param, ctx)
        if not name.strip():
            self.fail("the name is empty; give one, or leave the option out", param, ctx)
        return name


class NumberRange(click.FloatRange):
    """A range of numbers. 'nan' is on neither side of a limit, so click takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"'{value}' is not a number", param, ctx)
        return number


PATH = _PathParameter(path_type=Path)
PAGE = _PageParameter(path_type=Path)
NAME = _NameParameter()
MINUTES = NumberRange(min=0.0)


GROUPS = ("Judge", "Cost", "Output", "Gates", "Human labels", "Input", "Shards", "Other")
"""The sections of --help, and of the options of `rag-eval run` in docs/cli.md."""


def default_targets(input_path: Path, kind: str, html: Path | None) -> tuple[Path, Path | None]:
    """Workbook and page of a run without --output: next to the input, the page unless it was given with a folder."""
    stem = "stdin" if str(input_path) == "-" else input_path.stem
    target = input_path.with_name(f"{stem}_{kind}.xlsx")
    return target, target.with_name(html.name) if html and html.parent == Path() else html


class Option(click.Option):
    """An option with its place in the help."""

    def __init__(self, *args: Any, group: str = GROUPS[-1], is_usual: bool = True, **attributes: Any) -> None:
        """`is_usual` for one that most users need: --help shows it, not only --help-all."""
        super().__init__(*args, **attributes)
        self.group = group
        self.is_usual = is_usual


class GroupedCommand(click.Command):
    """A command with many options: --help has those that most users need, --help-all has all."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.append(
            Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_all,
                help="Show all options and exit.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A word after an option whose value may be left out is its value only if it can be: a file name is none."""
        return super().parse_args(ctx, [*_spelled_out(args, self.get_params(ctx))])

    def groups(self, ctx: click.Context) -> Iterator[tuple[str, list[click.Option]]]:
        """The options of each group that has some."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        for group in GROUPS:
            if found := [each for each in options if getattr(each, "group", GROUPS[-1]) == group]:
                yield group, found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        hidden = 0
        for group, options in self.groups(ctx):
            shown = [each for each in options if _ALL in ctx.meta or getattr(each, "is_usual", True)]
            hidden += len(options) - len(shown)
            if shown:
                with formatter.section(group):
                    formatter.write_dl([record for each in shown if (record := each.get_help_record(ctx))])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more options: {ctx.command_path} --help-all")


def _spelled_out(args: Sequence[str], params: Sequence[click.Parameter]) -> Iterator[str]:
    """With the value in place where it was left out."""
    short = {
        name: option
        for option in params
        if isinstance(option, click.Option) and option.flag_value and isinstance(option.type, click.Choice)
        for name in option.opts
    }
    for argument, following in pairwise([*args, ""]):
        option = short.get(argument)
        is_word = following.isalpha() and not os.path.exists(following)
        if option and not is_word:
            yield f"{argument}={option.flag_value}"
        else:
            yield argument


_ALL = f"{__name__}.all"
"""Set in a context whose help has all options."""


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def long_name(option: click.Option) -> str:
    """The name with two dashes."""
    return max(option.opts, key=len)
