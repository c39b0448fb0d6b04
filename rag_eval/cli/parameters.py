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


class NumberRange(click.FloatRange):
    """A range of numbers. 'nan' is on neither side of a limit, so click takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"'{value}' is not a number", param, ctx)
        return number


PATH = _PathParameter(path_type=Path)
MINUTES = NumberRange(min=0.0)
