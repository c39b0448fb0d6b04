"""The provenance of a run: its settings with their sources, without secrets, and the versions of the packages."""

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
from rag_eval.judge.masking import safe_url, without_keys
from rag_eval.judge.providers import PROVIDERS

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings

_PACKAGES = {
    "aiohttp": "rag_eval.judge.transport",
    "instructor": "instructor",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "openai": "rag_eval.judge.transport",
    "openpyxl": "openpyxl",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "python-calamine": "python_calamine",
    "ragas": "rag_eval.metrics.ragas_import",
    "tokenizers": "rag_eval.metrics.embedding",
    "xlsxwriter": "xlsxwriter",
}
"""Distributions that numbers or outputs may depend on, each with a module that is imported only if it is used.

For packages that serve the judge it is a module of ours, because they are imported with the first call.
"""


def provenance(loaded: "LoadedSettings", made_from: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Members of a run's JSON: "configuration", by section and key, and "versions", by package.

    "made_from" has the same of the earlier run, if this report was made from the JSON of one.
    """
    versions = {"python": platform.python_version(), "rag-eval": __version__, **dict(_used())}
    ours = {"configuration": _configuration(loaded), "versions": versions}
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
    """The value for JSON; of a secret only whether it is set."""
    if isinstance(value, SecretStr):
        return "set" if value.get_secret_value() else "not set"
    if isinstance(value, tuple):
        value = ", ".join(map(str, value))
    if key in _URLS and value:
        return safe_url(str(value))
    return without_keys(str(value), secrets) if isinstance(value, str | Path) else value


_URLS = frozenset(provider.url_key for provider in PROVIDERS.values())
"""Settings that may contain a password: an address is only checked if its provider is the judge."""


def _used() -> Iterator[tuple[str, str]]:
    """Name and version of each package that the run has used."""
    for name, module in _PACKAGES.items():
        if module in sys.modules:
            with suppress(PackageNotFoundError):  # whoever needs it will say so, and what to do
                yield name, version(name)
