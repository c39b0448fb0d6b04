"""What a run ran with: its settings and where they came from, without secrets, and the versions of the packages."""

import platform
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag_eval import __version__
from rag_eval.configuration.effective import secrets_of
from rag_eval.judge.addresses import shown_url
from rag_eval.judge.masking import without_keys

if TYPE_CHECKING:
    from rag_eval.configuration import LoadedSettings

_PACKAGES = {
    "aiohttp": "rag_eval.judge.transport",
    "instructor": "instructor",
    "numpy": "numpy",
    "openai": "rag_eval.judge.transport",
    "openpyxl": "openpyxl",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "python-calamine": "python_calamine",
    "ragas": "rag_eval.metrics.ragas_metrics",
    "xlsxwriter": "xlsxwriter",
}
"""Distributions that numbers or outputs may depend on, and the module that is imported when they are used.

Of those that judge it is our own: they themselves are imported only with the first call.
"""


def circumstances(loaded: "LoadedSettings", made_from: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Members "configuration" and "versions" of a run's JSON; "made_from" tells the same of the run it is made of."""
    ours = {"configuration": _configuration(loaded), "versions": _versions()}
    return ours if made_from is None else {**ours, "made_from": made_from}


def _configuration(loaded: "LoadedSettings") -> Mapping[str, Any]:
    secrets = secrets_of(loaded.settings)
    return {
        section: {
            key: {"value": _shown(key, value, secrets), "source": str(loaded.sources[f"{section}.{key}"])}
            for key, value in values
        }
        for section, values in loaded.settings
    }


def _shown(key: str, value: object, secrets: Collection[str]) -> object:
    """A setting as JSON may hold it: of a secret only whether there is one."""
    if isinstance(value, SecretStr):
        return "set" if value.get_secret_value() else "not set"
    if isinstance(value, tuple):
        value = ", ".join(value)
    if key in _URLS and value:
        return shown_url(str(value))
    return without_keys(str(value), secrets) if isinstance(value, str | Path) else value


_URLS = frozenset({"endpoint", "base_url"})
"""Those of providers that do not judge were not checked: they may contain a password."""


def _versions() -> Mapping[str, str]:
    """Of Python, of ourselves, and of the packages that the run has used."""
    return {"python": platform.python_version(), "rag-eval": __version__, **dict(_used())}


def _used() -> Iterator[tuple[str, str]]:
    for name, module in _PACKAGES.items():
        if module in sys.modules:
            with suppress(PackageNotFoundError):  # whoever needs it will say so, and what to do
                yield name, version(name)
