"""Imports ragas, and no more of it than the modules with its prompts. The only module that does so.

It is itself imported when the metrics of an LLM judge are made.
"""

import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from rag_eval.errors import InputError

_COLLECTIONS = (
    "answer_correctness",
    "answer_relevancy",
    "context_precision",
    "context_recall",
    "faithfulness",
)
_INSTALL = "python -m pip install --no-deps -r requirements-light.lock"
"""Installs ragas among others. Its prompts need pydantic and nothing else, so its requirements are left out."""


@cache
def load() -> Mapping[str, Any]:
    """The modules with prompts, by collection.

    Raises InputError when ragas is not there. Best called before threads begin, which may import other packages.
    """
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # read at import; its telemetry would block and phone home
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside ragas and langchain, none of them ours
            return _import_alone()
    except ImportError as error:
        raise InputError(
            f"an LLM judge needs the package ragas, which cannot be imported ({error}); in RAG Eval's folder run "
            f"{_INSTALL}, or use --judge offline"
        ) from error


def _import_alone() -> Mapping[str, Any]:
    """The modules without the packages around them, whose own imports take seconds.

    They are let go of again, so that whoever wants ragas as a whole gets it.
    """
    if "ragas" in sys.modules:
        return _imported()
    # A list of its own each time, since another thread may be going through the one that is there.
    sys.meta_path = [_Folders, *sys.meta_path]
    try:
        return _imported()
    except (ImportError, AttributeError):
        pass  # a ragas whose prompts need more of it, or none at all
    finally:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not _Folders]
        for each in list(sys.modules):  # other threads import meanwhile
            if each.partition(".")[0] == "ragas":
                del sys.modules[each]
    return _imported()


def _imported() -> Mapping[str, Any]:
    return {name: importlib.import_module(f"ragas.metrics.collections.{name}.util") for name in _COLLECTIONS}


class _Folders:
    """Finds the packages of ragas as mere folders: modules inside can be imported, and nothing else is."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name.partition(".")[0] == "ragas" else None
        if found is None or found.submodule_search_locations is None:
            return None
        folder = ModuleSpec(name, loader=None, is_package=True)
        folder.submodule_search_locations = found.submodule_search_locations
        return folder
