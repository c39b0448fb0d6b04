"""JSON without surprises, for rubrics, results and replies."""

import json
import math
from collections import Counter
from typing import Any, NoReturn


def parse_json(text: str) -> Any:
    """The JSON value of `text`.

    Raises ValueError, with the reason, for text that is not JSON, and for JSON that readers understand differently: a
    key that occurs twice, NaN, infinity, a number beyond the range of floats. RecursionError for very deep nesting.
    """
    return json.loads(
        text, object_pairs_hook=distinct_keys, parse_float=_finite, parse_constant=_refuse_constant
    )


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, for `object_pairs_hook`. ValueError for a key that occurs twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = [key for key, count in counts.items() if count > 1]
        raise ValueError(f"duplicate key {', '.join(map(repr, repeated))}; keep one of each")
    return members


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:20]} is too large for a number")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
