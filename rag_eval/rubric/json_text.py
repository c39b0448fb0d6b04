"""JSON that says one thing: no key twice, no NaN. ValueError for anything else."""

import json
import re
from collections import Counter
from typing import Any, NoReturn


def parse_json(text: str | bytes | bytearray) -> Any:
    """The JSON value that `text` is, alone or in one Markdown code fence. ValueError for anything else."""
    try:
        text = text if isinstance(text, str) else text.decode()
        fenced = re.fullmatch(r"\s*```\w*+(.*)```\s*", text, re.DOTALL)
        return load_json(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid JSON string: {error}") from error


def load_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_distinct_keys, parse_constant=_refuse_constant)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    if repeated := [key for key, count in counts.items() if count > 1]:
        raise ValueError(f"duplicate key {', '.join(map(repr, repeated))}; keep one of each")
    return dict(pairs)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
