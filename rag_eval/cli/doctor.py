"""The command that looks at settings, installation and judge, and says what is wrong and what to do about it."""

import math
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_eval import __version__
from rag_eval.cli.console import command_line, hide, say, set_up_logging
from rag_eval.cli.options import Options, load, options
from rag_eval.errors import (
    ExitCode,
    InputError,
    JudgeError,
    RunStoppedError,
    SettingsError,
    how_to_install,
)
from rag_eval.judge.masking import is_loopback
from rag_eval.texts.display import counted

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.judge.endpoint import Endpoint
    from rag_eval.judge.transport import Transport


@click.command("doctor", short_help="Check settings and the endpoint.")
@options("doctor", judge="Judge to check; offline needs no API key.")
@click.option("--no-call", is_flag=True, help="Skip the small paid call to the judge.")
@click.option("--probe", "is_probed", is_flag=True, help="Let the judge score three known cases.")
@click.option("--all", "shows_all", is_flag=True, help="Also print the settings that have their default.")
def command(no_call: bool, is_probed: bool, shows_all: bool, **values: Any) -> None:
    """Check settings, installation and, with one small call, the judge; suggest fixes.

    A slow server on this computer gets up to three calls more, which measure its speed. --probe sends up to six calls.

    Exits with 0 if there is no problem, 2 if you must change something here, 4 if the judge gave no usable reply.
    """
    from rag_eval.configuration.effective import secrets_of

    set_up_logging(debug=False)
    given = Options(**values)
    try:
        loaded = load(given.config, given.overrides())
    except SettingsError as error:
        problems = map(_problem, error.problems)
        sys.exit(_report(chain(problems, _installation(has_llm=False), _environment())))
    hide(secrets_of(loaded.settings))
    has_llm = not loaded.settings.provider.is_offline
    calls = _Calls.NONE if no_call else _Calls.PROBE if is_probed else _Calls.ONE
    judge_findings = _judge(loaded, calls) if has_llm else _offline_judge(loaded.settings)
    code = _report(chain(_settings(loaded), _installation(has_llm), _environment(), judge_findings))
    _show_settings(loaded, shows_all=shows_all)
    sys.exit(code)


class _Calls(Enum):
    """How much of the judge is looked at."""

    NONE = 0
    ONE = 1
    PROBE = 2


class _State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Runs work, but their user should know."""
    PROBLEM = "problem"


_STYLES: dict[_State, dict[str, Any]] = {
    _State.OK: {},
    _State.WARNING: {"fg": "yellow"},
    _State.PROBLEM: {"fg": "red", "bold": True},
}


@dataclass(frozen=True, slots=True)
class _Finding:
    state: _State
    text: str
    code: ExitCode = ExitCode.COMPLETE


def _ok(text: str) -> _Finding:
    return _Finding(_State.OK, text)


def _warning(text: str) -> _Finding:
    return _Finding(_State.WARNING, text)


def _problem(text: str, code: ExitCode = ExitCode.USAGE) -> _Finding:
    return _Finding(_State.PROBLEM, text, code)


def _report(findings: Iterable[_Finding]) -> ExitCode:
    """Say each finding as soon as it is made. What can be put right here counts more than what the judge said."""
    found = []
    say("Findings:")
    for finding in findings:
        say(f"  {finding.state:<7}  {finding.text}", **_STYLES[finding.state])
        found.append(finding)
    states = [finding.state for finding in found]
    say(f"Problems: {states.count(_State.PROBLEM)}, warnings: {states.count(_State.WARNING)}")
    return min((finding.code for finding in found if finding.code), default=ExitCode.COMPLETE)


# Settings


def _show_settings(loaded: "LoadedSettings", *, shows_all: bool) -> None:
    from rag_eval.configuration.provenance import provenance
    from rag_eval.configuration.settings import Settings

    default = Settings()

    def differs(section: str, key: str) -> bool:
        ours, theirs = (getattr(settings, section) for settings in (loaded.settings, default))
        return bool(getattr(ours, key) != getattr(theirs, key))

    entries = [
        (section, key, entry)
        for section, values in provenance(loaded)["configuration"].items()
        for key, entry in values.items()
    ]
    shown = [entry for entry in entries if shows_all or differs(*entry[:2])]
    say("Settings, and where they come from:")
    for section, key, entry in shown:
        assignment = f"[{section}] {key} = {_shown(entry['value'])}"
        say(f"  {assignment:<48}  {entry['source']}")
    if hidden := len(entries) - len(shown):
        say(f"  {hidden} settings have their default; add --all to see them.")


def _shown(value: object) -> str:
    """As it is written in config.ini."""
    if value is None or value == "":
        return "(empty)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings(loaded: "LoadedSettings") -> Iterator[_Finding]:
    states = {True: "was read", False: "was not found", None: "was not needed"}
    for name, is_there in loaded.files.items():
        yield _ok(f"File: {name} {states[is_there]}")
    main, is_there = next(iter(loaded.files.items()))
    if not is_there:
        yield from _other_configurations(Path(main))
    yield from map(_warning, loaded.warnings)
    yield _cache(loaded.settings)
    yield from _columns(dict(loaded.settings.columns))
    if loaded.settings.rubric.file:
        yield from _rubric(loaded.settings.rubric.file)


def _other_configurations(main: Path) -> Iterator[_Finding]:
    """Files of the same name in the folders next to it, such as one that rag-eval init FOLDER wrote."""
    for path in sorted(main.parent.glob(f"*/{main.name}"))[:_MOST_CONFIGURATIONS]:
        option = command_line("--config", path.relative_to(main.parent))
        yield _warning(f"File: {path} is not used; to use it, add {option}")


_MOST_CONFIGURATIONS = 3


def _columns(columns: Mapping[str, str | tuple[str, ...]]) -> Iterator[_Finding]:
    """The section [columns]: what it names, and whether a column is to be two things."""
    from rag_eval.tables.names import squeezed

    given = [
        (key, name)
        for key, names in columns.items()
        for name in ((names,) if isinstance(names, str) else names)
        if name
    ]
    first: dict[str, str] = {}
    for key, name in given:
        other = first.setdefault(squeezed(name), key)
        if other != key:
            yield _problem(f"[columns] {other} and {key}: both name '{name[:60]}'; name it once")
    if given:
        listed = ", ".join(f"{key} = {name[:60]}" for key, name in given)
        yield _ok(f"Columns: {listed}; rag-eval FILE --show prints how a file is read")


def _rubric(file: Path) -> Iterator[_Finding]:
    from rag_eval.rubric import load_rubric

    try:
        rubric = load_rubric(file)
    except SettingsError as error:
        yield from map(_problem, error.problems)
    else:
        yield _ok(f"Rubric: {rubric.rubric_id}, criteria: {len(rubric.metrics)}")


def _cache(settings: "Settings") -> _Finding:
    folder = settings.cache.directory
    obstacle = _obstacle_to_writing(folder)
    if not settings.cache.enabled:
        writable = f"cannot be written to ({obstacle})" if obstacle else "can be written to"
        return _ok(f"Cache: off; {folder} {writable}")
    if obstacle:
        return _problem(
            f"Cache: {folder} cannot be written to ({obstacle}): name another folder in [cache] directory"
        )
    return _ok(f"Cache: on; {folder} can be written to")


def _obstacle_to_writing(folder: Path) -> str:
    """Why no file can be made in a folder or, before there is one, where it would be made; empty if one can."""
    place = folder.absolute()
    while not os.path.lexists(place):
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or type(error).__name__


# Installation and environment


def _installation(has_llm: bool) -> Iterator[_Finding]:
    yield _ok(f"python {platform.python_version()}")
    yield _ok(f"rag-eval {__version__}")
    for name in ("openai", "pydantic", "openpyxl", "xlsxwriter"):
        found = _version(name)
        yield _ok(f"{name} {found}") if found else _problem(f"{name} is not installed: {how_to_install()}")
    yield _ragas() if has_llm else _ok(f"ragas {_version('ragas') or 'is not installed'}, and not needed")


def _ragas() -> _Finding:
    """It is imported, since it works together with certain versions of other packages alone."""
    from rag_eval.configuration.settings import Settings
    from rag_eval.judge.null_judges import NoJudge, NoStore
    from rag_eval.run.judges import Judges

    try:
        Judges.llm(Settings(), NoJudge(), NoStore())
    except InputError as error:
        return _problem(str(error))
    return _ok(f"ragas {_version('ragas')}")


def _version(name: str) -> str:
    """Of an installed package; empty without it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _environment() -> Iterator[_Finding]:
    """Proxies by the names of their variables: the values may hold passwords."""
    variables = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    names = sorted(name for name, value in os.environ.items() if name.lower() in variables and value)
    yield _ok(f"Proxies: the environment sets {', '.join(names) or 'none'}")


# The judge


def _offline_judge(settings: "Settings") -> Iterator[_Finding]:
    yield _ok("Judge: offline, which needs no key and no network; no call was made")
    if settings.offline.embedding:
        yield _embedding(settings)
    yield _processes(settings)


def _embedding(settings: "Settings") -> _Finding:
    from rag_eval.run.judges import Judges

    try:
        Judges.offline(settings)
    except SettingsError as error:
        return _problem(str(error))
    return _ok(f"Embedding: {settings.offline.embedding}")


def _processes(settings: "Settings") -> _Finding:
    from rag_eval.run.parallel import most_processes, usable_cores

    set_, cores = settings.evaluation.processes, usable_cores()
    words = f"{set_}" if set_ else f"{most_processes()} for large inputs, 1 for others"
    text = f"Processes: {words}; this process may use {counted(cores, 'core')}"
    return (
        _warning(f"{text}, so more processes do not make a run faster") if (set_ or 1) > cores else _ok(text)
    )


def _judge(loaded: "LoadedSettings", calls: _Calls) -> Iterator[_Finding]:
    from rag_eval.configuration.effective import endpoint_of

    try:
        loaded.require_credentials()
        endpoint = replace(endpoint_of(loaded.settings), max_attempts=1)
    except InputError as error:
        yield from map(_problem, error.problems)
        return
    yield _ok(f"Credentials: {_credentials(loaded)}")
    yield from _caps(loaded.settings)
    try:
        yield from _place(endpoint, loaded.settings)
    except RunStoppedError as error:
        yield _problem(f"Judge: {error}")
        return
    if calls is _Calls.NONE:
        yield _ok("Call: skipped (--no-call)")
    else:
        yield from _call(endpoint, loaded.settings, is_probed=calls is _Calls.PROBE)


def _credentials(loaded: "LoadedSettings") -> str:
    from rag_eval.configuration.sources import Level

    provider = loaded.settings.provider
    place = f"{provider.url_key} from {loaded.sources[f'{provider.name}.{provider.url_key}']}"
    if provider.takes_tokens(loaded.settings.section):
        return f"{place}, a token of Microsoft Entra ID instead of a key"
    key_source = loaded.sources[f"{provider.name}.api_key"]
    is_needed = key_source.level is not Level.DEFAULT
    return f"{place}, api_key from {key_source}" if is_needed else f"{place}, no api_key (none is needed)"


def _caps(settings: "Settings") -> Iterator[_Finding]:
    from rag_eval.configuration.effective import budget_of

    try:
        budget_of(settings)
    except SettingsError as error:
        yield _problem(str(error))


def _place(endpoint: "Endpoint", settings: "Settings") -> Iterator[_Finding]:
    """Raises RunStoppedError if the environment names a proxy or certificates that cannot be used."""
    from rag_eval.judge.connection import Proxy, tls_context

    way = "through a proxy" if Proxy.of(endpoint.url) else "directly"
    tls_context(endpoint.url)
    yield _ok(f"Judge: {endpoint.description}, called {way}")
    if settings.metrics.toxicity and (other := settings.toxicity.deployment):
        yield _ok(f"Toxicity judge: {other} at the same endpoint; no call was made to it")


def _call(endpoint: "Endpoint", settings: "Settings", *, is_probed: bool) -> Iterator[_Finding]:
    """The outcome of one call, which takes another request for each parameter that the endpoint refuses."""
    from rag_eval.judge.endpoint import Dialect
    from rag_eval.judge.null_judges import NoStore
    from rag_eval.judge.transport import Transport
    from rag_eval.run.probing import timed_call

    transport = Transport(endpoint, NoStore())
    try:
        # Stricter than what goes ahead of a run: a run may hope that other calls fare better.
        try:
            timed = timed_call(transport)
        except (JudgeError, RunStoppedError) as error:
            yield _problem(f"Call: {error}", ExitCode.STOPPED)
            yield from map(_warning, transport.adaptations)
            return
        yield _ok(
            f"Call: answered in {timed.seconds:.1f} s, {timed.prompt_tokens} + {timed.reply_tokens} tokens"
        )
        yield from map(_warning, transport.adaptations)
        if not transport.adaptations:
            yield _ok(
                f"Parameters: structured_output = {Dialect.initial(endpoint).output}, "
                f"temperature = {endpoint.temperature:g} and max_tokens are accepted"
            )
        if endpoint.provider == "openai":
            yield from _context(transport)
            if is_loopback(endpoint.host) and timed.seconds >= _SLOW:
                yield from _speed(transport, settings)
        if is_probed:
            yield from _probe(transport, settings)
    finally:
        transport.close()


_SLOW = 0.5
"""Seconds of the first small call, in which the client starts as well."""
_FAST = 0.05
"""Seconds of the second one. A server that takes longer may need other settings than those made for a provider."""
_SHORT_CONTEXT = 4_096
"""Tokens. Prompts of ragas have up to 1,400 without the texts."""


def _context(transport: "Transport") -> Iterator[_Finding]:
    from rag_eval.run.probing import context_size, listed_models

    size = context_size(listed_models(transport), transport.endpoint.model)
    if size is None:
        return
    text = f"Context: {size:,} tokens for a prompt and its reply, by the server's account"
    if size < _SHORT_CONTEXT:
        yield _warning(f"{text}; long contexts will not fit, so give the model a larger one")
    else:
        yield _ok(text)


def _speed(transport: "Transport", settings: "Settings") -> Iterator[_Finding]:
    """How fast a slow server is, and the settings that suit it; nothing if it is slow in its first call only."""
    from rag_eval.run.probing import measured_speed, timed_call

    try:
        short = timed_call(transport)
        if short.seconds < _FAST:
            return
        speed = measured_speed(transport, short)
    except (JudgeError, RunStoppedError) as error:
        yield _warning(f"Speed: could not be measured ({error})")
        return
    if speed is None:
        yield _warning("Speed: could not be measured, since the server does not count tokens")
        return
    usual = speed.usual_call
    prompt, reply = _three_digits(speed.prompt), _three_digits(speed.reply)
    yield _ok(
        f"Speed: reads about {prompt} and writes about {reply} tokens a second; a usual call takes about "
        f"{_three_digits(usual)} s. For the time in --dry-run: "
        f"[judge] prompt_tokens_per_second = {prompt} and reply_tokens_per_second = {reply}"
    )
    if advice := _patience(usual, settings):
        yield _warning(f"Patience: a slow server needs {' and '.join(advice)}")


def _patience(usual: float, settings: "Settings") -> list[str]:
    """Settings that suit calls that usually take so many seconds."""
    if usual < _SLOW_CALL:
        return []
    workers = min(settings.evaluation.workers, _WORKERS_OF_A_SLOW_SERVER)
    # Calls at the same time share the processor; a call may be twice as long as a usual one.
    needed = 30 * math.ceil(2 * usual * workers / 30)
    return [
        *([f"[judge] timeout_seconds = {needed}"] if settings.judge.timeout_seconds < needed else []),
        *([f"[evaluation] max_workers = {workers}"] if settings.evaluation.workers > workers else []),
    ]


_SLOW_CALL = 10
"""Seconds of a usual call, from which on calls at the same time are in each other's way."""
_WORKERS_OF_A_SLOW_SERVER = 2


def _three_digits(value: float) -> str:
    """As config.ini takes it: never 0 for a value above 0."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if rounded >= 100 else f"{rounded:g}"


def _probe(transport: "Transport", settings: "Settings") -> Iterator[_Finding]:
    from rag_eval.run.probing import probe

    wrong = failed = 0
    try:
        for each in probe(settings, transport):
            value = each.score.value
            is_right = value == each.expected
            failed += value is None
            wrong += value is not None and not is_right
            found = f"no score, because {each.score.reason}" if value is None else f"faithfulness {value:g}"
            text = f"Probe: {each.name}: {found}; expected {each.expected:g}"
            yield _ok(text) if is_right else _warning(text)
    except RunStoppedError as error:
        yield _problem(f"Probe: {error}", ExitCode.STOPPED)
        return
    if failed:
        yield _problem(
            f"Probe: {failed} of 3 known cases got no score, for the reasons above; if they are about the judge's "
            "replies, use a larger model",
            ExitCode.STOPPED,
        )
    if wrong:
        yield _problem(
            f"Probe: {wrong} of 3 known cases were misjudged: this model is not fit to judge; use a larger one",
            ExitCode.STOPPED,
        )
