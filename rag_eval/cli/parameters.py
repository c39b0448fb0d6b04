"""Types of parameters that several commands have."""

import math
from pathlib import Path
from typing import Any

import click


class _PathParameter(click.Path):
    """A path. Empty text would be the current folder, which an unset variable of the shell must not become."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty; name a file or folder", param, ctx)
        return super().convert(value, param, ctx)


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
NAME = _NameParameter()
MINUTES = NumberRange(min=0.0)
