"""Where the value of a setting came from."""

from dataclasses import dataclass, field
from enum import StrEnum

from rag_eval.judge.providers import PROVIDERS

VARIABLES = {
    variable: f"{provider.name}.{key}"
    for provider in PROVIDERS.values()
    for variable, key in provider.variables.items()
}
"""The key that each environment variable sets, as 'section.key'."""


class Level(StrEnum):
    """The kinds of places a value may come from, lowest precedence first."""

    DEFAULT = "default"
    CONFIG_FILE = "config file"
    DOTENV = ".env file"
    ENVIRONMENT = "environment variable"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from."""

    level: Level
    name: str = ""
    """The file, the variable or the option."""
    line: int = 0
    """Counted from 1; 0 for anything but a file."""

    def __str__(self) -> str:
        return f"{self.name} line {self.line}" if self.line else f"{self.level} {self.name}".rstrip()

    @property
    def heading(self) -> str:
        """How a message about a value from here begins."""
        return f"{self.name}, line {self.line}" if self.line else str(self)

    @property
    def owner(self) -> str:
        """What must be trusted for this value: one file, the environment or the command line."""
        return self.name if self.line else str(self.level)


@dataclass(frozen=True, slots=True)
class Given:
    value: object = field(repr=False)
    source: Source
