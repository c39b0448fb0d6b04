"""The command that looks at settings, installation and endpoint, and says what is wrong and what to do about it."""

import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import BaseModel, ConfigDict

from rag_eval import __version__
from rag_eval.cli.console import hide, say, set_up_logging
from rag_eval.errors import ExitCode, InputError, JudgeError, RunStoppedError, SettingsError

if TYPE_CHECKING:
    from rag_eval.configuration import LoadedSettings
    from rag_eval.judge.calls import Call
    from rag_eval.judge.endpoint import Endpoint
    from rag_eval.judge.transport import Transport
    from rag_eval.settings import Settings

_PATH = click.Path(path_type=Path)


@click.command("doctor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", type=_PATH, help="The configuration file.  [default: ./config.ini, if it is there]")
@click.option(
    "--judge", type=click.Choice(["azure", "openai", "offline"]), help="Who judges; offline needs no key."
)
@click.option("--model", help="The judge's deployment (Azure) or model (OpenAI).")
@click.option("--no-call", is_flag=True, help="Leave out the one small call to the judge, which is paid.")
def command(config: Path | None, judge: str | None, model: str | None, no_call: bool) -> None:
    """Check settings, credentials, installation and, with one small call, the judge; say what to do where it fails.

    Ends with 0 when a run can begin, 2 when something here has to be changed, 4 when the judge gave no usable reply.
    """
    from rag_eval.configuration import load_settings

    set_up_logging(debug=False)
    overrides = {"judge.provider": judge, "model": model}
    try:
        loaded = load_settings(config, overrides, os.environ, Path.cwd())
    except SettingsError as error:
        findings = chain(map(_problem, error.problems), _installation(), _proxies())
    else:
        _hide_keys(loaded.settings)
        say("Settings, and where each comes from:")
        for line in _setting_lines(loaded):
            say(line)
        say("Findings:")
        findings = chain(_configuration(loaded), _installation(), _proxies(), _judge(loaded, not no_call))
    sys.exit(_report(findings))


class _State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """A run can begin, but its user should know."""
    PROBLEM = "problem"


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


def _report(findings: Iterator[_Finding]) -> ExitCode:
    """Say each finding as soon as it is made. What can be put right here counts before what the judge says."""
    codes = []
    for finding in findings:
        say(f"  {finding.state:<7}  {finding.text}")
        if finding.state is _State.PROBLEM:
            codes.append(finding.code)
    say(f"Problems: {len(codes)}")
    return min(codes, default=ExitCode.COMPLETE)


# Settings


def _hide_keys(settings: "Settings") -> None:
    """A key that was also put where it does not belong is not shown there. What is shorter is no real key."""
    for provider in (settings.azure, settings.openai):
        if len(key := provider.api_key.get_secret_value()) >= 8:
            hide(key)


def _setting_lines(loaded: "LoadedSettings") -> Iterator[str]:
    from rag_eval.report.circumstances import circumstances

    for section, values in circumstances(loaded)["configuration"].items():
        for key, entry in values.items():
            yield f"  {f'[{section}] {key} = {_shown(entry["value"])}':<48}  {entry['source']}"


def _shown(value: object) -> str:
    """As it is written in config.ini."""
    if value is None or value == "":
        return "(empty)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _configuration(loaded: "LoadedSettings") -> Iterator[_Finding]:
    found = [name for name, is_there in loaded.files.items() if is_there]
    absent = [name for name, is_there in loaded.files.items() if not is_there]
    yield _ok(f"Files read: {', '.join(found) or 'none'}; not there: {', '.join(absent) or 'none'}")
    yield from map(_warning, loaded.warnings)
    if loaded.settings.judge.provider != "offline":
        yield _credentials(loaded)
        yield from _caps(loaded.settings)
    yield _cache(loaded.settings)


def _credentials(loaded: "LoadedSettings") -> _Finding:
    try:
        loaded.require_credentials()
    except SettingsError as error:
        return _problem(str(error))
    provider = loaded.settings.judge.provider
    keys = ["endpoint" if provider == "azure" else "base_url", "api_key"]
    return _ok(
        "Credentials: " + ", ".join(f"{key} from {loaded.sources[f'{provider}.{key}']}" for key in keys)
    )


def _caps(settings: "Settings") -> Iterator[_Finding]:
    from rag_eval.runner import budget_of

    try:
        budget_of(settings)
    except SettingsError as error:
        yield _problem(str(error))


def _cache(settings: "Settings") -> _Finding:
    folder = settings.cache.directory
    problem = _write_problem(folder)
    if not settings.cache.enabled:
        can_be = f"cannot be written to ({problem})" if problem else "can be written to"
        return _ok(f"Cache: off, replies are kept for one run; its folder {folder} {can_be}")
    if problem:
        return _problem(
            f"Cache: {folder} cannot be written to ({problem}); name another folder in [cache] directory"
        )
    return _ok(f"Cache: on, {folder} can be written to")


def _write_problem(folder: Path) -> str:
    """Why no file can be made in a folder, or in the one in which it would be made itself; or empty."""
    place = folder.absolute()
    while not os.path.lexists(place):
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or type(error).__name__


# Installation


def _installation() -> Iterator[_Finding]:
    yield _ok(f"Python {platform.python_version()}, rag-eval {__version__}")
    for name in _NEEDED:
        if found := _version(name):
            yield _ok(f"{name} {found}")
        else:
            yield _problem(f"{name} is not installed: pip install {name}")
