"""config.ini, .env, the environment and the command line become one Settings.

Precedence, highest first: command line, environment variable, .env file, config file, default. Every value
keeps its source, and everything that is wrong is reported at once, by place. A secret is never shown: not in
a message, not in a `repr`.
"""

import configparser
import difflib
import ipaddress
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pydantic import ValidationError

from rag_eval.errors import SettingsError
from rag_eval.records import METRIC_LABELS
from rag_eval.settings import Settings


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
class LoadedSettings:
    """The settings of a run, and how they came about."""

    settings: Settings
    sources: Mapping[str, Source]
    """Of every value, by 'section.key'."""
    files: Mapping[str, bool]
    """Every file that was looked for, in search order, and whether it was there and read."""
    warnings: tuple[str, ...]

    def require_credentials(self) -> None:
        """Raise SettingsError unless the chosen provider has all that it needs to be called."""
        name = self.settings.judge.provider
        if name == "offline":
            return
        chosen, provider = getattr(self.settings, name), _PROVIDERS[name]
        needed = [provider.url_key]
        if name != "azure" or self.settings.azure.auth == "key":
            needed.append("api_key")
        if missing := [key for key in needed if not getattr(chosen, key)]:
            raise SettingsError(_describe_missing(name, missing, self.files))


def _describe_missing(name: str, missing: list[str], files: Mapping[str, bool]) -> str:
    variables = " and ".join(v for v, key in _VARIABLES.items() if key in {f"{name}.{m}" for m in missing})
    looked_in = [file if found else f"{file} (not there)" for file, found in files.items()]
    keys = " and ".join(missing)
    return (
        f"{_PROVIDERS[name].title} credentials not found: {keys} not set. "
        f"Looked for {keys} in section [{name}] of {looked_in[0]}, and for {variables} in the environment "
        f"and in {', '.join(looked_in[1:])}. Set {keys} in section [{name}] of {next(iter(files))}, "
        f"or set {variables}; --judge offline needs no credentials."
    )


@dataclass(frozen=True, slots=True)
class _Provider:
    """What differs between the providers that need credentials."""

    title: str
    url_key: str
    model_key: str
    pasted: re.Pattern[str]
    """The part of a URL's path that the client appends by itself."""


_PROVIDERS = {
    "azure": _Provider(
        "Azure OpenAI", "endpoint", "deployment", re.compile(r"/openai/.+|/chat/completions.*")
    ),
    "openai": _Provider(
        "OpenAI", "base_url", "model", re.compile(r"/openai/deployments/.*|/chat/completions.*")
    ),
}
_VARIABLES = {
    "AZURE_OPENAI_ENDPOINT": "azure.endpoint",
    "AZURE_OPENAI_API_KEY": "azure.api_key",
    "AZURE_OPENAI_API_VERSION": "azure.api_version",
    "OPENAI_BASE_URL": "openai.base_url",
    "OPENAI_API_KEY": "openai.api_key",
}
_OPTIONS = {
    "weights.answer_correctness": "--alpha",
    "weights.faithfulness": "--beta",
    "weights.answer_relevancy": "--gamma",
    "judge.provider": "--judge",
    "privacy.redact": "--redact",
    "evaluation.samples": "--samples",
    "limits.max_calls": "--max-calls",
    "limits.max_cost": "--max-cost",
    "limits.max_minutes": "--max-minutes",
    "model": "--model",
    "temperature": "--temperature",
}
_FIELDS = {
    f"{section}.{key}": info
    for section, model in Settings()
    for key, info in type(model).model_fields.items()
}
_DEFAULT = Source(Level.DEFAULT)


def load_settings(
    config: Path | None, overrides: Mapping[str, object], environ: Mapping[str, str], cwd: Path
) -> LoadedSettings:
    """The settings of a run, from everything that may set them.

    `config` is the file that the user named, None for `config.ini` in `cwd` if there is one. `overrides` are
    the command line's, by 'section.key', where 'model' and 'temperature' mean the chosen provider's; None
    counts as not given. Raises SettingsError with every problem found.
    """
    loading = _Loading(cwd)
    loading.read_files(config)
    loading.read_variables(environ)
    loading.read_overrides(overrides)
    loading.check_names()
    loading.check_provider()
    settings = loading.build()
    sources = {key: loading.source(key) for key in _FIELDS}
    return LoadedSettings(settings, sources, loading.files, tuple(loading.warnings))


@dataclass(frozen=True, slots=True)
class _Given:
    value: object = field(repr=False)
    source: Source


class _Loading:
    """What has been read so far. Values of higher precedence are read later and replace lower ones."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.given: dict[str, _Given] = {}
        self.files: dict[str, bool] = {}
        self.warnings: list[str] = []
        self.problems: list[tuple[Source, str]] = []

    def read_files(self, config: Path | None) -> None:
        """Read the config file, then the .env files. A file that does not parse ends it: its values are unknown."""
        main = self.cwd / (config or "config.ini")
        folders = dict.fromkeys((main.parent, self.cwd, self.cwd / "backend"))
        unreadable: list[str] = []
        found = []
        for path, parse in [(main, _parse_ini), *((folder / ".env", _parse_dotenv) for folder in folders)]:
            try:
                found.append(self._read_file(path, parse, required=path == main and config is not None))
            except SettingsError as error:
                unreadable.extend(error.problems)
        if unreadable:
            raise SettingsError(unreadable)
        ini, *dotenvs = found
        for given in (ini, *reversed(dotenvs)):
            self.given.update(given)

    def _read_file(
        self, path: Path, parse: Callable[[str, str], dict[str, _Given]], *, required: bool
    ) -> dict[str, _Given]:
        name = str(path.relative_to(self.cwd) if path.is_relative_to(self.cwd) else path)
        # Unlike Path.is_file, this is False, and no error, in a folder that is closed to us.
        self.files[name] = required or os.path.isfile(path)
        if not self.files[name]:
            return {}
        given = parse(_read_text(path, name), name)
        holds_key = any(key.endswith(".api_key") and entry.value for key, entry in given.items())
        if holds_key and os.name == "posix" and path.stat().st_mode & 0o044:
            self.warnings.append(f"{name} holds an API key and other users can read it: chmod 600 {name}")
        return given

    def read_variables(self, environ: Mapping[str, str]) -> None:
        for variable, key in _VARIABLES.items():
            if environ.get(variable, "").strip():
                self.given[key] = _Given(environ[variable], Source(Level.ENVIRONMENT, variable))

    def read_overrides(self, overrides: Mapping[str, object]) -> None:
        given = {
            key: _Given(value, Source(Level.COMMAND_LINE, _OPTIONS.get(key, "")))
            for key, value in overrides.items()
            if value is not None
        }
        neutral = {key: given.pop(key) for key in ("model", "temperature") if key in given}
        self.given.update(given)
        for key, entry in neutral.items():
            if provider := _PROVIDERS.get(self._provider_name()):
                own_key = provider.model_key if key == "model" else key
                self.given[f"{self._provider_name()}.{own_key}"] = entry
            else:
                self.warnings.append(f"--{key} has no effect with the offline judge")

    def _provider_name(self) -> str:
        return str(self._value("judge.provider"))

    def _value(self, key: str) -> object:
        return self.given[key].value if key in self.given else _FIELDS[key].default

    def source(self, key: str) -> Source:
        return self.given[key].source if key in self.given else _DEFAULT

    def check_names(self) -> None:
        """Set aside every value whose section or key does not exist."""
        for key in [key for key in self.given if key not in _FIELDS]:
            self._add_problem(key, _describe_unknown(key))
            del self.given[key]

    def _add_problem(self, key: str, problem: str) -> None:
        section, _, name = key.partition(".")
        source = self.source(key)
        self.problems.append((source, f"{source.heading}, {f'[{section}] {name}'.rstrip()}: {problem}"))

    def check_provider(self) -> None:
        """Check URL and key of the chosen provider; those of the others do no harm."""
        name = self._provider_name()
        provider = _PROVIDERS.get(name)
        if provider is None:
            return
        url, key = f"{name}.{provider.url_key}", f"{name}.api_key"
        self._check_credential(url, lambda text: _find_url_problem(text, provider))
        self._check_credential(key, _find_key_problem)
        if self.problems:
            return
        if name == "openai" and not self._value(key) and _is_loopback(urlsplit(str(self._value(url)))):
            self.given[key] = _Given("not-needed", _DEFAULT)
        self._warn_if_parted(key, url)

    def _check_credential(self, key: str, find_problem: Callable[[str], str | None]) -> None:
        if key not in self.given:
            return
        given = self.given[key]
        text = _unwrap(str(given.value))
        if text != given.value:
            self.given[key] = replace(given, value=text)
            self.warnings.append(f"{given.source}: white space or quotes around {key} were removed")
        if text and (problem := find_problem(text)):
            self._add_problem(key, problem)

    def _warn_if_parted(self, key: str, url: str) -> None:
        """A key may be sent only where its owner meant it to go."""
        is_set = self._value(key) and self._value(url)
        owners = {self.source(key).owner, self.source(url).owner}
        if is_set and len(owners) > 1 and _DEFAULT.owner not in owners:
            self.warnings.append(
                f"{key} comes from {self.source(key)}, but {url}, to which it is sent, "
                f"from {self.source(url)}: set both in one place if this is not meant"
            )

    def build(self) -> Settings:
        """The validated settings, or a SettingsError with every problem, in the order of the lines."""
        values: dict[str, dict[str, object]] = defaultdict(dict)
        for dotted, given in self.given.items():
            section, key = dotted.split(".")
            values[section][key] = given.value
        if isinstance(delimiter := values["context"].get("delimiter"), str):
            values["context"]["delimiter"] = _decode_escapes(delimiter)
        try:
            settings = Settings.model_validate(values)
        except ValidationError as error:
            self._add_value_problems(error)
        else:
            self._check_weights(settings)
        if self.problems:
            ordered = sorted(self.problems, key=lambda problem: problem[0].line)
            raise SettingsError(text for _, text in ordered)
        return settings

    def _check_weights(self, settings: Settings) -> None:
        """Whatever is judged must count, or nobody would have an RQS."""
        judged = [name for name in METRIC_LABELS if getattr(settings.metrics, name)]
        if not judged or any(getattr(settings.weights, name) for name in judged):
            return
        source = self.source(f"weights.{judged[0]}")
        advice = f"give one of them a weight above 0 ({', '.join(judged)})"
        self.problems.append(
            (
                source,
                f"{source.heading}: the metrics that are switched on have no weight, so there is no RQS; {advice}",
            )
        )

    def _add_value_problems(self, error: ValidationError) -> None:
        for details in error.errors(include_url=False):
            section, *keys = map(str, details["loc"])
            if keys:
                key = f"{section}.{keys[0]}"
                shown = _show(self.given[key].value)
                self._add_problem(key, f"{shown} is not allowed; expected {_FIELDS[key].description}")
            else:  # the values of the section do not go together
                first = next(key for key in self.given if key.startswith(f"{section}."))
                source = self.source(first)
                self.problems.append((source, f"{source.heading}, [{section}]: {details['ctx']['error']}"))


def _read_text(path: Path, name: str) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{name}: no such file") from None
    except OSError as error:
        raise SettingsError(f"{name}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{name}, line {line}: {_NOT_UTF8}") from None
    if "\0" in text:
        raise SettingsError(f"{name}, line 1: {_NOT_UTF8}")
    return text


_NOT_UTF8 = "not UTF-8 text; save the file as UTF-8 (not as UTF-16 or Windows-1252)"


def _parse_ini(text: str, name: str) -> dict[str, _Given]:
    """The values of a config file by 'section.key', unknown names included; 'section.' for an unknown section."""
    parser = configparser.ConfigParser(
        interpolation=None,
        strict=False,  # _find_unclear_lines finds every duplicate, the strict parser only the first
        delimiters=("=",),
        inline_comment_prefixes=("#", ";"),
        default_section="",  # no header can be empty: [DEFAULT] is an unknown section like any other
    )
    try:
        parser.read_string(text)
    except configparser.MissingSectionHeaderError as error:
        raise SettingsError(f"{name}, line {error.lineno}: stands before the first [section]") from None
    except configparser.ParsingError as error:
        raise SettingsError(f"{name}, line {line}: {_NO_ASSIGNMENT}" for line, _ in error.errors) from None
    lines = _find_lines(text)
    if unclear := _find_unclear_lines(parser, lines):
        raise SettingsError(f"{name}, line {line}{problem}" for line, problem in unclear)
    return {
        f"{section}.{key}": _Given(value, Source(Level.CONFIG_FILE, name, lines[section, key][0]))
        for section, key, value in _items(parser)
    }


_NO_ASSIGNMENT = "is not of the form key = value (a key is plain words, and ':' does not stand for '=')"
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
            unclear.append((first, f"{name}: the value goes on in an indented line below; remove the indent"))
        else:
            unclear += [(line, f"{name}: stands already in line {first}") for line in more]
    return sorted(unclear)


def _parse_dotenv(text: str, name: str) -> dict[str, _Given]:
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
        elif binding.key in _VARIABLES and (binding.value or "").strip():
            given[_VARIABLES[binding.key]] = _Given(binding.value, Source(Level.DOTENV, name, line))
    if unreadable:
        raise SettingsError(unreadable)
    return given


def _describe_unknown(dotted: str) -> str:
    section, _, key = dotted.partition(".")
    if section in Settings.model_fields:
        kind, name = "key", key
        known = [field.removeprefix(f"{section}.") for field in _FIELDS if field.startswith(f"{section}.")]
    else:
        kind, name, known = "section", section, list(Settings.model_fields)
    nearest = difflib.get_close_matches(name.lower(), known, n=1)
    return f"unknown {kind} ({f'did you mean {nearest[0]!r}?' if nearest else 'known: ' + ', '.join(known)})"


def _show(value: object) -> str:
    """The value as a message may show it. A long one may be a misplaced secret; allowed ones are short."""
    length = len(str(value))
    return repr(value) if length <= 20 else f"a value of {length} characters"


def _decode_escapes(text: str) -> str:
    meanings = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
    return re.sub(r"\\([ntr\\])", lambda match: meanings[match[1]], text)


def _unwrap(text: str) -> str:
    """`text` without white space and one pair of quotes around it."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].strip()
    return text


def _find_key_problem(key: str) -> str | None:
    """What is wrong with an API key, in words that do not show it; None when nothing is."""
    if any(character.isspace() for character in key):
        return "the key has white space inside"
    if not (key.isascii() and key.isprintable()):
        return "the key holds an invisible or non-ASCII character; copy it again"
    if _PLACEHOLDER.fullmatch(key):
        return "this is a placeholder, not a key"
    return None


_PLACEHOLDER = re.compile(
    r"""<.*> | \$\{.*\} | \$\w+ | \{\{.*\}\} | %\w+%   # a template that nobody filled in
    | (sk-)?(x{3,} | \*+ | \.{3,})
    | change[-_]?me | todo | (your|insert|enter|paste|replace)[-_].* | .*[-_]here""",
    re.IGNORECASE | re.VERBOSE,
)


def _find_url_problem(url: str, provider: _Provider) -> str | None:
    """What is wrong with an endpoint, in words that show its host at most; None when nothing is."""
    if not re.fullmatch(r"[!-\[\]-~]+", url):
        return "the URL holds white space, a backslash or a non-ASCII character"
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        origin = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "this is not a URL"
    if not parts.hostname or parts.scheme not in ("https", "http"):
        return "the URL must begin with https:// and name a host"
    if parts.scheme == "http" and not _is_loopback(parts):
        return "the URL must begin with https://; http is only for localhost, 127.0.0.0/8 and ::1"
    if "@" in parts.netloc:
        return "the URL must not hold a user name or password"
    if re.search(r"[<>]|\byour[-_]resource", parts.netloc, re.IGNORECASE):
        return "this is a placeholder, not the URL of a resource"
    if pasted := provider.pasted.search(parts.path):
        return f"this is the URL of a request; keep only {origin}{parts.path[: pasted.start()] or '/'}"
    if "?" in url or "#" in url:
        return "the URL must not hold a query (?…) or fragment (#…)"
    return None


def _is_loopback(url: SplitResult) -> bool:
    if url.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(url.hostname or "").is_loopback
    except ValueError:
        return False
