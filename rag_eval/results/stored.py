"""What is known of a run, or of a part of it, as files that hold no code: the run's JSON, and the state of tallies."""

import json
import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from rag_eval.records import CaseResult
from rag_eval.store.codec import to_plain
from rag_eval.texts.display import shorten

State = Mapping[str, Any]
"""Values that JSON knows, numbers that are not finite included, arrays and bytearrays; nested as one likes."""

_ARRAY = "\0array"
"""A key that no bot and no metric has as its name."""
_UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError)


RUN_FORMAT = "rag-eval-run/1"
"""Member `format` of a run's JSON."""


def read_run_document(path: Path) -> dict[str, Any]:
    """The object in a run's JSON. Raises ValueError, in words, for anything else, and OSError."""
    try:
        document = json.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not a text file in UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not whole JSON: line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except ValueError:  # what Python says of an integer with more digits than it reads
        raise ValueError("it has a number with too many digits") from None
    if not isinstance(document, dict):
        raise ValueError("it is not the object of a run")
    found = document.get("format", RUN_FORMAT)
    if isinstance(found, str) and (later := _LATER_RUN.fullmatch(found)):
        raise ValueError(
            f"a later version of RAG Eval wrote it, in format {later[0]}; this one reads {RUN_FORMAT}"
        )
    if found != RUN_FORMAT:
        shown = f"'{shorten(found, 40)}'" if isinstance(found, str) else "not a text"
        raise ValueError(f"its format is {shown}, expected '{RUN_FORMAT}'")
    return document


_LATER_RUN = re.compile(r"rag-eval-run/(?:[2-9]|[1-9]\d{1,9})")


def is_score(value: float) -> bool:
    """Whether a number is one from 0 to 1, but for the rounding of a mean; NaN is not."""
    return -_ROUNDING_ERROR <= value <= 1 + _ROUNDING_ERROR


_ROUNDING_ERROR = 1e-9


def save_state(file: IO[bytes], state: State) -> None:
    """Write an .npz of arrays of numbers; one of them is the JSON of everything else."""
    import numpy as np

    arrays: dict[str, Any] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(name): plain(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [plain(each) for each in value]
        if isinstance(value, array | bytearray):
            name = f"a{len(arrays)}"
            arrays[name] = np.asarray(value)
            return {_ARRAY: name}
        return value

    text = json.dumps(plain(state)).encode("ascii")
    try:
        np.savez_compressed(file, state=np.frombuffer(text, dtype=np.uint8), **arrays)
    except ValueError as error:  # of the ZIP file that an interruption has left open
        raise error.__context__ if isinstance(error.__context__, KeyboardInterrupt) else error from None


def load_state(file: IO[bytes]) -> State:
    """What `save_state` wrote. Raises ValueError for anything else; nothing in the file is ever run."""
    import zipfile
    import zlib

    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:

            def full(value: Any) -> Any:
                if isinstance(value, dict):
                    if _ARRAY in value:
                        return _array(archive[value[_ARRAY]])
                    return {name: full(each) for name, each in value.items()}
                return [full(each) for each in value] if isinstance(value, list) else value

            state: State = full(json.loads(archive["state"].tobytes()))
    except (*_UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"not a stored state ({error})") from error
    return state


def _array(values: Any) -> "array[Any] | bytearray":
    data = values.tobytes()
    return bytearray(data) if values.dtype.char == "B" else array(values.dtype.char.replace("l", "q"), data)


def plain_verdicts(result: CaseResult, *, has_labels: bool) -> list[dict[str, Any]]:
    """The verdicts on a case in values that JSON knows, without the members for labels in a run that has none."""
    plain: list[dict[str, Any]] = [to_plain(verdict) for verdict in result.pairs]
    for verdict in plain if not has_labels else ():
        del verdict["labels"], verdict["is_drawn"]
    return plain
