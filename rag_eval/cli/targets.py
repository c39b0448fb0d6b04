"""No file of a run is written over another one that the run reads or writes."""

from collections.abc import Mapping
from pathlib import Path

from rag_eval.errors import InputError


def check_targets(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Raise InputError for an output that is an input or another output.

    `outputs` are by the option that names them, `inputs` by what they are, such as "the input".
    """
    taken = {name: path for name, path in inputs.items() if path}
    for option, path in outputs.items():
        if path is None:
            continue
        for name, other in taken.items():
            if _is_same(path, other):
                raise InputError(f"{path}: is {name}; choose another name with {option}")
        taken["the report" if option == "--output" else f"what {option} writes"] = path


def _is_same(one: Path, other: Path) -> bool:
    """Also under two names, as by a link."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
