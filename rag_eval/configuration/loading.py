"""One Settings from all the places that may set it, or an error that names every problem."""

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

from pydantic import ValidationError

from rag_eval.configuration.effective import processes_problem
from rag_eval.configuration.settings import Settings
from rag_eval.configuration.sources import VARIABLES, Given, Level, Source, parse_dotenv, parse_ini, read_text
from rag_eval.errors import MOST_LISTED, SettingsError
from rag_eval.judge.masking import is_loopback, safe_url
from rag_eval.judge.providers import PROVIDERS, Provider
from rag_eval.records import METRIC_LABELS


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings of a run, and how they came about."""

    settings: Settings
    sources: Mapping[str, Source]
    """Of every value, by 'section.key'."""
    files: Mapping[str, bool | None]
    """Every file that was looked for, by its absolute path and in search order, and whether it was there and read.
    None: it was not needed."""
    warnings: tuple[str, ...]

    def require_credentials(self, *, to_call: bool = True) -> None:
        """Raise SettingsError unless the chosen provider has all that it needs to be called.

        Without `to_call`, only stored replies are wanted: they are found by the address, and need no key.
        """
        provider = self.settings.provider
        lacking = provider.lacking(self.settings.section, to_call=to_call)
        if not lacking:
            return
        keys = {f"{provider.name}.{key}" for key in lacking}
        variables = " and ".join(variable for variable, key in VARIABLES.items() if key in keys)
        looked_in = [file if is_there else f"{file} (not there)" for file, is_there in self.files.items()]
        raise SettingsError(
            f"{provider.title} credentials not found: {' and '.join(lacking)} not set. "
            f"Set {'it' if len(lacking) == 1 else 'them'} in section [{provider.name}] of {next(iter(self.files))}, "
            f"or set {variables} in the environment or in .env; --judge offline needs no credentials. "
            f"Looked in: the environment, {', '.join(looked_in)}."
        )


_FIELDS = {
    f"{section}.{key}": info
    for section, model in Settings()
    for key, info in type(model).model_fields.items()
}
_DEFAULT = Source(Level.DEFAULT)


def load_settings(
    config: Path | None,
    overrides: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    homes: Iterable[Path] = (),
) -> LoadedSettings:
    """The settings of a run, from everything that may set them.

    `config` is the file that the user named, None for `config.ini` in `cwd` if there is one. `overrides` are
    the command line's, by 'section.key', where 'model' and 'temperature' mean the chosen provider's; None counts as not
    given, and a `Given` names its option. If the judge's address or key is missing then, backend/.env next to the
    folders `homes` may have it. Raises SettingsError with every problem found.
    """
    loading = _Loading(cwd)
    loading.read_files(config)
    loading.read_variables(environ)
    loading.read_overrides(overrides)
    loading.check_names()
    loading.read_fallbacks(homes)
    loading.check_provider()
    settings = loading.build()
    sources = {key: loading.source(key) for key in _FIELDS}
    return LoadedSettings(settings, sources, loading.files, tuple(loading.warnings))


class _Loading:
    """What has been read so far. Values of higher precedence are read later and replace lower ones."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.given: dict[str, Given] = {}
        self._overridden: defaultdict[str, list[Given]] = defaultdict(list)
        self.files: dict[str, bool | None] = {}
        self.warnings: list[str] = []
        self.problems: list[tuple[Source, str]] = []

    def read_files(self, config: Path | None) -> None:
        """Read the config file, then the .env files. A file that does not parse ends it: its values are unknown."""
        main = self.cwd / (config or "config.ini")
        folders = dict.fromkeys((main.parent, self.cwd, self.cwd / "backend"))
        unreadable: list[str] = []
        found = []
        for path, parse in [(main, parse_ini), *((folder / ".env", parse_dotenv) for folder in folders)]:
            try:
                found.append(self._read_file(path, parse, required=path == main and config is not None))
            except SettingsError as error:
                unreadable.extend(error.problems)
        if unreadable:
            raise SettingsError(unreadable)
        ini, *dotenvs = found
        for given in (ini, *reversed(dotenvs)):
            self._update(given)

    def _update(self, given: Mapping[str, Given]) -> None:
        """Take values of higher precedence than all that were read before."""
        for key, entry in given.items():
            if key in self.given:
                self._overridden[key].append(self.given[key])
            self.given[key] = entry

    def _read_file(
        self, path: Path, parse: Callable[[str, str], dict[str, Given]], *, required: bool
    ) -> dict[str, Given]:
        name = self._name(path)
        # Unlike Path.is_file, this is False, and no error, in a folder that is closed to us.
        self.files[str(path)] = required or os.path.isfile(path)
        if not self.files[str(path)]:
            return {}
        given = parse(read_text(path, name), name)
        holds_key = any(key.endswith(".api_key") and entry.value for key, entry in given.items())
        if holds_key and os.name == "posix" and path.stat().st_mode & 0o044:
            self.warnings.append(
                f"{name}: contains an API key, and other users can read it; run chmod 600 {name}"
            )
        return given

    def _name(self, path: Path) -> str:
        """In sources of settings and messages on lines: relative in the current folder, unless that is the root."""
        is_here = path.is_relative_to(self.cwd) and self.cwd != self.cwd.parent
        return str(path.relative_to(self.cwd) if is_here else path)

    def read_variables(self, environ: Mapping[str, str]) -> None:
        self._update(
            {
                key: Given(environ[variable], Source(Level.ENVIRONMENT, variable))
                for variable, key in VARIABLES.items()
                if environ.get(variable, "").strip()
            }
        )

    def read_overrides(self, overrides: Mapping[str, object]) -> None:
        given = {
            key: value if isinstance(value, Given) else Given(value, Source(Level.COMMAND_LINE))
            for key, value in overrides.items()
            if value is not None
        }
        neutral = {key: given.pop(key) for key in ("model", "temperature") if key in given}
        self._update(given)
        for key, entry in neutral.items():
            provider = PROVIDERS.get(self._provider_name())
            if provider is None:
                continue  # reported as a value that is not allowed
            if provider.is_offline:
                self.warnings.append(f"--{key} has no effect with the offline judge.")
            else:
                self.given[f"{provider.name}.{provider.model_key if key == 'model' else key}"] = entry

    def _provider_name(self) -> str:
        return str(self._value("judge.provider"))

    def _value(self, key: str) -> object:
        return self.given[key].value if key in self.given else _FIELDS[key].default

    def source(self, key: str) -> Source:
        return self.given[key].source if key in self.given else _DEFAULT

    def check_names(self) -> None:
        """Set aside every value whose section or key does not exist."""
        unknown = [key for key in self.given if key not in _FIELDS]
        for number, key in enumerate(unknown):
            if number < MOST_LISTED:
                self._add_problem(key, _describe_unknown(key))
            elif number == MOST_LISTED:
                self._add_problem(
                    key, f"unknown; {len(unknown) - number - 1:,} more names are unknown as well"
                )
            del self.given[key]

    def _add_problem(self, key: str, problem: str) -> None:
        section, _, name = key.partition(".")
        source = self.source(key)
        self.problems.append((source, f"{source.heading}, {f'[{section}] {name}'.rstrip()}: {problem}"))

    def read_fallbacks(self, homes: Iterable[Path]) -> None:
        """backend/.env next to these folders, for what nothing else has set; it may belong to another program."""
        for home in homes:
            folder = Path(os.path.abspath(self.cwd / home)).parent
            path = folder / "backend" / ".env"
            if str(path) in self.files or _is_anybodys(folder):
                continue
            if not self._lacks_credentials():
                self.files[str(path)] = None
                continue
            for key, entry in self._read_file(path, parse_dotenv, required=False).items():
                if key in self.given and str(self.given[key].value).strip():
                    self._overridden[key].insert(0, entry)
                else:
                    self.given[key] = entry

    def _lacks_credentials(self) -> bool:
        provider = PROVIDERS.get(self._provider_name())
        if provider is None or provider.is_offline:
            return False
        keys = (provider.url_key, "api_key", "auth")
        section = {
            key: self._value(f"{provider.name}.{key}") for key in keys if f"{provider.name}.{key}" in _FIELDS
        }
        return bool(provider.lacking(SimpleNamespace(**section))) and not self._is_keyless(provider)

    def _is_keyless(self, provider: Provider) -> bool:
        """A server on this computer that needs no key, and for which none is set."""
        url = str(self._value(f"{provider.name}.{provider.url_key}"))
        if not provider.is_keyless_on_loopback or self._value(f"{provider.name}.api_key"):
            return False
        return not provider.url_problem(url) and is_loopback(urlsplit(url).hostname or "")

    def check_provider(self) -> None:
        """Check URL, key and models of the chosen provider; those of the others do no harm."""
        provider = PROVIDERS.get(self._provider_name())
        if provider is None or provider.is_offline:
            return
        url, key = f"{provider.name}.{provider.url_key}", f"{provider.name}.api_key"
        self._check_credential(url, provider.url_problem)
        self._check_credential(key, provider.key_problem)
        for name in (f"{provider.name}.{provider.model_key}", "toxicity.deployment"):
            self._check_credential(name, lambda text: None)
        if self.problems:
            return
        if self._is_keyless(provider):
            self.given[key] = Given("not-needed", _DEFAULT)
        self._warn_if_parted(key, url)
        for name in provider.variables.values():
            self._warn_of_others(f"{provider.name}.{name}", provider)

    def _check_credential(self, key: str, find_problem: Callable[[str], str | None]) -> None:
        if key not in self.given:
            return
        given = self.given[key]
        text = _unwrapped(str(given.value))
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
                f"from {self.source(url)}: set both in one place unless this is intended"
            )

    def _warn_of_others(self, key: str, provider: Provider) -> None:
        """Two places set a credential differently, and the one that is used may not be the one that was meant."""
        if key not in self.given:
            return
        used, value = self.given[key].source, str(self.given[key].value)
        for other in reversed(self._overridden[key]):
            text = _unwrapped(str(other.value))
            if not text or text == value:
                continue
            name = key.partition(".")[2]
            if name == "api_key":
                told = f"{used} and {other.source} contain different keys; the first is used"
            elif name != provider.url_key:
                told = f"{used} sets {_quoted(value)}, {other.source} sets {_quoted(text)}; the first is used"
            elif provider.url_problem(text) or _is_same_place(text, value):
                continue
            else:
                places = f"{used} names {safe_url(value)}, {other.source} names {safe_url(text)}"
                told = f"{places}; judge calls go to the first"
            self.warnings.append(f"{key}: {told}: remove one of them")

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
            if problem := processes_problem(settings):
                self._add_problem("evaluation.processes", problem)
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
                quoted = _quoted(self.given[key].value)
                self._add_problem(key, f"{quoted} is not allowed; expected {_FIELDS[key].description}")
            else:  # the values of the section do not go together
                first = next(key for key in self.given if key.startswith(f"{section}."))
                source = self.source(first)
                self.problems.append((source, f"{source.heading}, [{section}]: {details['ctx']['error']}"))


def _is_anybodys(folder: Path) -> bool:
    """Whether everybody may write to it, as to /tmp: a file in it may come from anybody."""
    return os.name == "posix" and os.path.exists(folder) and bool(os.stat(folder).st_mode & 0o002)


def _unwrapped(text: str) -> str:
    """The text without white space and one pair of quotes around it."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].strip()
    return text


def _is_same_place(url: str, other: str) -> bool:
    ours, theirs = (urlsplit(each.rstrip("/")) for each in (url, other))
    return (ours.scheme, ours.netloc.lower(), ours.path) == (
        theirs.scheme,
        theirs.netloc.lower(),
        theirs.path,
    )


def _describe_unknown(dotted: str) -> str:
    section, _, key = dotted.partition(".")
    if section in Settings.model_fields:
        kind, name = "key", key
        known = [field.removeprefix(f"{section}.") for field in _FIELDS if field.startswith(f"{section}.")]
    else:
        kind, name, known = "section", section, list(Settings.model_fields)
    if "embedding" in name.lower():
        return f"unknown {kind} (RAG Eval uses no embeddings; remove it)"
    if dotted in _RETIRED:
        return f"this key no longer has an effect ({_RETIRED[dotted]}); remove it"
    if hint := _OTHER_TOOLS.get(dotted.lower().rstrip(".")):
        return f"unknown {kind} ({hint})"
    nearest = difflib.get_close_matches(name.lower(), known, n=1)
    return f"unknown {kind} ({f'did you mean {nearest[0]!r}?' if nearest else 'known: ' + ', '.join(known)})"


_RETIRED = dict.fromkeys(
    ("batch.requests_per_file", "batch.mb_per_file"),
    "a batch has as many requests and bytes as its provider allows",
)
"""Keys of earlier versions, and what holds in their place."""

_OTHER_TOOLS = {
    "azure_openai": "use [azure]",
    "llm": "use [judge] provider with [azure] or [openai]",
    "rqs": "use [weights]",
    "weights.alpha": "use answer_correctness",
    "weights.beta": "use faithfulness",
    "weights.gamma": "use answer_relevancy",
    "judge.model": "use [azure] deployment or [openai] model",
    "judge.temperature": "use [azure] temperature or [openai] temperature",
    "azure.model": "use deployment",
    "azure.base_url": "use endpoint",
    "openai.deployment": "use model",
    "openai.endpoint": "use base_url",
    "toxicity.enabled": "use [metrics] toxicity",
    "toxicity.model": "use deployment",
    "evaluation.threads": "use max_workers",
    "evaluation.jobs": "use processes",
    "evaluation.workers": "use max_workers",
    "columns.ground_truth": "use reference",
    "columns.answer": "use bots",
    "columns.bot": "use bots; bot_name is the column that names the bot of each row",
    "columns.contexts": "use context",
    "cache.dir": "use directory",
    "cache.path": "use directory",
}
"""What sections and keys of similar tools are called here, where that cannot be told from how they are spelt."""


def _quoted(value: object) -> str:
    """The value as a message may show it. A long one may be a misplaced secret; allowed ones are short."""
    length = len(str(value))
    return repr(value) if length <= 20 else f"a value of {length} characters"


def _decode_escapes(text: str) -> str:
    meanings = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
    return re.sub(r"\\([ntr\\])", lambda match: meanings[match[1]], text)
