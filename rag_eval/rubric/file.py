"""A rubric from a YAML or JSON file, with every problem of the file named by its place."""

import difflib
import reprlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rag_eval.errors import MOST_LISTED, SettingsError, first_of, how_to_install
from rag_eval.rubric.definition import EvaluationRubric, MetricDefinition
from rag_eval.tables.input_files import check_is_file, check_is_small
from rag_eval.texts.strict_json import parse_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from yaml import MarkedYAMLError, Node


def load_rubric(path: str | Path) -> EvaluationRubric:
    """The rubric in a YAML or JSON file. SettingsError names every problem with its place and the remedy."""
    path = Path(path)
    check_is_file(path, SettingsError)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise SettingsError(f"{path}: unknown kind of rubric file; expected {', '.join(_READERS)}")
    check_is_small(path, SettingsError)
    try:
        content = read(_read_file(path))
    except RecursionError as error:
        raise SettingsError(f"{path}: is nested too deeply; a rubric has only a list of metrics") from error
    except ValueError as error:
        raise SettingsError(f"{path}: {problem}" for problem in str(error).splitlines()) from error
    return _build_rubric(path, content)


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such rubric file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is not UTF-8 at byte {error.start}; save it as UTF-8") from error


def _load_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ValueError(
            f"reading YAML needs PyYAML; install it with {how_to_install('rubrics')}, or write the rubric as JSON"
        ) from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if _expanded_size(root, {}) > _LARGEST_EXPANDED:
            raise ValueError("its aliases expand to far more than the file contains; write the metrics out")
        if repeated := list(_repeated_yaml_keys(root, set())):
            raise ValueError("\n".join(first_of(repeated)))
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{_yaml_problem(error)}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _yaml_problem(error: "MarkedYAMLError") -> str:
    """The problem, with the remedy for its most frequent cause: a criterion without quotes."""
    if error.context == "expected a single document in the stream":
        return "a second document begins; a file has only one rubric"
    if str(error.problem).startswith(("could not determine", "found unhashable")):
        return str(error.problem)
    return f"{error.problem}; check the indentation, and put texts with signs such as : # * @ ' into double quotes"


def _expanded_size(node: "Node | None", sizes: dict[int, int]) -> int:
    """Values of a document with every alias written out; the aliases in a circle count once."""
    if node is None:
        return 0
    if id(node) not in sizes:
        sizes[id(node)] = 1
        parts = () if isinstance(node.value, str) else node.value
        children = [child for part in parts for child in (part if isinstance(part, tuple) else (part,))]
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes) for child in children)
    return sizes[id(node)]


_LARGEST_EXPANDED = 200_000
"""Values; a file of the allowed size has fewer without aliases."""


def _repeated_yaml_keys(node: "Node | None", seen: set[int]) -> Iterator[str]:
    """A line for each key that a mapping has twice: YAML readers keep the last one without a word.

    `seen` has the ids of the nodes visited so far, because anchors can share nodes and form cycles.
    """
    if node is None or isinstance(node.value, str) or id(node) in seen:
        return
    seen.add(id(node))
    keys: set[str] = set()
    for child in node.value:
        key, value = child if isinstance(child, tuple) else (None, child)
        if key is not None and isinstance(key.value, str):
            if key.value in keys:
                yield f"line {key.start_mark.line + 1}: duplicate key {key.value!r}; keep one of each"
            keys.add(key.value)
        yield from _repeated_yaml_keys(value, seen)


_READERS: Mapping[str, Callable[[str], Any]] = {
    ".yaml": _load_yaml,
    ".yml": _load_yaml,
    ".json": parse_json,
}


def _build_rubric(path: Path, content: Any) -> EvaluationRubric:
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: expected the keys {', '.join(EvaluationRubric.model_fields)}")
    try:
        return EvaluationRubric.model_validate(content)
    except ValidationError as error:
        found = error.errors()
        described = [problem for details in found[:MOST_LISTED] for problem in _describe(details)]
        problems = [*described, *first_of((), len(found))]
        raise SettingsError(f"{path}: {problem}" for problem in problems) from error


def _describe(details: "ErrorDetails") -> Iterator[str]:
    """One line for each problem that pydantic found at one place of the file, with the remedy."""
    kind, place = details["type"], _place(details["loc"])
    if kind == "value_error":
        yield from (f"{place}{line}" for line in str(details["ctx"]["error"]).splitlines())
    elif kind == "missing":
        yield f"{place}is missing; add it"
    elif kind == "extra_forbidden":
        yield f"{place}unknown key{_suggest(details['loc'])}"
    elif kind == "invalid_key":
        yield f"{place}a key must be text; known are {', '.join(_fields(details['loc']))}"
    elif kind in _EXPECTED:
        yield f"{place}{_shown(details['input'])} is not allowed; expected {_EXPECTED[kind]}"
    else:
        yield f"{place}{details['msg']}"


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # Python does not write a number of thousands of digits
        return "this number"


def _place(location: tuple[int | str, ...]) -> str:
    words = [str(part) for part in location]
    if len(words) > 1:  # The metrics are all that nests, so the second part is the place in their list.
        words[1] = f"entry {int(words[1]) + 1}"
    return f"{', '.join(words)}: " if words else ""


def _suggest(location: tuple[int | str, ...]) -> str:
    close = difflib.get_close_matches(str(location[-1]), _fields(location), n=1)
    return f" (did you mean '{close[0]}'?)" if close else f"; known are {', '.join(_fields(location))}"


def _fields(location: tuple[int | str, ...]) -> list[str]:
    """The known keys at the place of the last part of the location."""
    return list((EvaluationRubric if len(location) == 1 else MetricDefinition).model_fields)


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "column: value pairs",
    "greater_than_equal": "0 or more",
    "int_type": "a whole number",
    "is_instance_of": "a list of metrics",
    "model_type": "a metric with id and rubric",
    "sequence_str": "a list of metrics",
    "string_type": "text; put it in quotes",
}
"""What pydantic's error types ask for, in the words of a rubric file."""
