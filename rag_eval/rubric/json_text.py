"""A judge's reply as JSON, with or without the Markdown code fence that some models put around it."""

import re
from typing import Any

from rag_eval.judge.replies import load_json


def parse_json(text: str | bytes | bytearray) -> Any:
    """The JSON value that `text` is, alone or in one Markdown code fence. ValueError for anything else."""
    try:
        text = text if isinstance(text, str) else text.decode()
        fenced = re.fullmatch(r"\s*```\w*+(.*)```\s*", text, re.DOTALL)
        return load_json(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid JSON string: {error}") from error
