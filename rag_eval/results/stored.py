"""What is known of a part of a run, as files that hold no code: the state of tallies, and results as lines of JSON."""

import json
from array import array
from collections.abc import Mapping
from typing import IO, Any

from pydantic import TypeAdapter

from rag_eval.records import CaseResult

State = Mapping[str, Any]
"""Values that JSON knows, numbers that are not finite included, arrays and bytearrays; nested as one likes."""

CASE_RESULT = TypeAdapter(CaseResult)
"""Turns a case with its scores into plain values, and back."""
_ARRAY = "\0array"
"""A key that no bot and no metric has as its name."""
_UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError)


def to_json(result: CaseResult) -> str:
    """A line of ASCII that `from_json` makes the same result of, whatever its texts hold."""
    return json.dumps(CASE_RESULT.dump_python(result, mode="json"), check_circular=False)


def from_json(line: str | bytes) -> CaseResult:
    """Raises ValueError for anything but a line of `to_json`."""
    return CASE_RESULT.validate_python(json.loads(line))


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
            kind = value.typecode if isinstance(value, array) else "B"
            arrays[name] = (
                np.frombuffer(value, dtype=np.dtype(kind)) if value else np.empty(0, np.dtype(kind))
            )
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
