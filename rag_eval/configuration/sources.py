"""Where the value of a setting came from, and the files with such values: an .ini with line numbers, and a .env."""

import configparser
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from rag_eval.configuration.settings import Settings
from rag_eval.errors import SettingsError, first_of
from rag_eval.judge.providers import PROVIDERS
from rag_eval.tables.input_files import check_is_file, check_is_small

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


def read_text(path: Path, name: str) -> str:
    check_is_file(path, SettingsError, name)
    check_is_small(path, SettingsError, name)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path.absolute()}: there is no such file; correct --config") from None
    except OSError as error:
        raise SettingsError(f"{name}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{name}, line {line}: {_NOT_UTF8}") from None
    if (longest := max(map(len, text.split("\n")))) > _LONGEST_LINE:
        raise SettingsError(
            f"{name}: a line has {longest:,} characters, more than the {_LONGEST_LINE:,} allowed"
        )
    if "\0" in text:
        raise SettingsError(f"{name}, line 1: {_NOT_UTF8}")
    return text


_LONGEST_LINE = 4_000
"""Characters. The time that the parser takes for a line grows with the square of its blanks."""
_NOT_UTF8 = "not UTF-8 text; save the file as UTF-8 (not as UTF-16 or Windows-1252)"


def parse_ini(text: str, name: str) -> dict[str, Given]:
    """The values of a config file by 'section.key', unknown names included; 'section.' for an unknown section."""
    parser = configparser.ConfigParser(
        interpolation=None,
        strict=False,  # _find_unclear_lines finds every duplicate, the strict parser only the first
        delimiters=("=",),
        inline_comment_prefixes=("#", ";"),
        default_section="",  # no header can be empty: [DEFAULT] is an unknown section like any other
    )
    text = _MARK_DELIMITER.sub(r"\1\2", text)
    try:
        parser.read_string(text)
    except configparser.MissingSectionHeaderError as error:
        problem = (
            "a section is written [name]; add the missing ]"
            if error.line.startswith("[")
            else "comes before the first [section]; move it into a section"
        )
        raise SettingsError(f"{name}, line {error.lineno}: {problem}") from None
    except configparser.ParsingError as error:
        wrong = [f"{name}, line {line}: {_NO_ASSIGNMENT}" for line, _ in error.errors]
        raise SettingsError(first_of(wrong)) from None
    lines = _find_lines(text)
    if unclear := _find_unclear_lines(parser, lines):
        raise SettingsError(first_of([f"{name}, line {line}{problem}" for line, problem in unclear]))
    return {
        f"{section}.{key}": Given(value, Source(Level.CONFIG_FILE, name, lines[section, key][0]))
        for section, key, value in _items(parser)
    }


_NO_ASSIGNMENT = "is not of the form key = value (keys are plain words; ':' is not a separator)"
_MARK_DELIMITER = re.compile(
    r"^([^\S\n]*delimiter[^\S\n]*=)[^\S\n]+([#;][^\w\s]*)(?=[^\S\n]*$|[^\S\n]+[#;])",
    re.MULTILINE | re.IGNORECASE,
)
"""A delimiter such as ### or ;, which would be a comment. Without white space before it, the parser takes it."""
_NAME = re.compile(r"[\w -]{1,30}")
_COMMENT = re.compile(r"(?:^|\s)[#;]")


def _items(parser: configparser.ConfigParser) -> Iterable[tuple[str, str, str]]:
    for section in parser.sections():
        if section not in Settings.model_fields:
            yield section, "", ""
            continue
        for key, value in parser.items(section):
            yield section, key, value


def _find_lines(text: str) -> dict[tuple[str, str], list[int]]:
    """The numbers of the lines that hold each (section, key), and each header as (section, "")."""
    lines = defaultdict(list)
    section = ""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = _COMMENT.split(raw, maxsplit=1)[0].strip()
        if header := configparser.ConfigParser.SECTCRE.match(line):
            section = header["header"]
            lines[section, ""].append(number)
        elif "=" in line:
            lines[section, line.partition("=")[0].strip().lower()].append(number)
    return lines


def _find_unclear_lines(
    parser: configparser.ConfigParser, lines: Mapping[tuple[str, str], list[int]]
) -> list[tuple[int, str]]:
    """Lines that the parser takes, but perhaps not for what was meant; an odd name may be a secret: unshown."""
    unclear = []
    for (section, key), (first, *more) in lines.items():
        name = f", [{section}] {key}".rstrip()
        if not _NAME.fullmatch(key or section):
            unclear.append((first, f": {_NO_ASSIGNMENT if key else 'no such section'}"))
        elif "\n" in parser.get(section, key, fallback=""):
            unclear.append(
                (first, f"{name}: the value continues in an indented line below; remove the indent")
            )
        else:
            unclear += [(line, f"{name}: occurs already in line {first}; keep one of them") for line in more]
    return sorted(unclear)


def parse_dotenv(text: str, name: str) -> dict[str, Given]:
    """The values of the variables that we know, by 'section.key'. Nothing is expanded, nothing exported."""
    from io import StringIO

    from dotenv.parser import parse_stream  # dotenv_values only logs a line that it cannot parse

    given, unreadable = {}, []
    for binding in parse_stream(StringIO(text)):
        statement = binding.original.string
        blank_lines = statement[: len(statement) - len(statement.lstrip())].count("\n")
        line = binding.original.line + blank_lines
        if binding.error:
            unreadable.append(f"{name}, line {line}: is not of the form NAME=value")
        elif binding.key in VARIABLES and (binding.value or "").strip():
            given[VARIABLES[binding.key]] = Given(binding.value, Source(Level.DOTENV, name, line))
    if unreadable:
        raise SettingsError(first_of(unreadable))
    return given


# New values

_HEADER = re.compile(r"^\[(?P<name>[^\]]+)\]")
_KEY = re.compile(r"^(?P<key>[^=\s#;][^=]*?)\s*=")
_VALUE = re.compile(r"^(?P<before>[^=]*=[^\S\r\n]*)(?P<value>.*?)(?P<after>(?:\s+[#;].*)?\s*)$", re.DOTALL)


def check_editable(path: Path) -> None:
    """Raises SettingsError for a file that is there and is no valid config file. One that is missing is fine."""
    if path.exists():
        parse_ini(read_text(path, path.name), path.name)
    elif path.suffix.lower() != ".ini":
        raise SettingsError(f"{path}: there is no such file; name a config file, such as config.ini")


def with_values(path: Path, section: str, values: Mapping[str, str]) -> str:
    """The text of the file with other values of keys of one section: where they are set, else below its header.

    Comments, order and line ends stay. A missing section is added; of a missing file, this is the text.
    """
    text = ""
    if path.exists():
        check_editable(path)
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
    return _edited(text, section, values)


def _edited(text: str, section: str, values: Mapping[str, str]) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    left = dict(values)
    lines = text.splitlines(keepends=True)
    current, place = "", None
    for number, line in enumerate(lines):
        plain = line.removeprefix("\ufeff")
        if header := _HEADER.match(plain):
            current = header["name"]
            if current == section and place is None:
                place = number + 1
        elif current == section and (found := _KEY.match(plain)):
            key = found["key"].strip().lower()
            if key in left:
                lines[number] = _with_value(line, left.pop(key), end)
    added = [f"{key} = {value}{end}" for key, value in left.items()]
    if not added:
        return "".join(lines)
    if place is None:
        place = len(lines)
        added = [*([end] if lines else []), f"[{section}]{end}", *added]
    if place and not lines[place - 1].endswith("\n"):
        lines[place - 1] += end
    return "".join([*lines[:place], *added, *lines[place:]])


def _with_value(line: str, value: str, end: str) -> str:
    """The line with another value; a comment after it stays."""
    ending = end if line.endswith("\n") else ""
    found = _VALUE.match(line.rstrip("\r\n"))
    return f"{found['before']}{value}{found['after'].rstrip()}{ending}" if found else line
