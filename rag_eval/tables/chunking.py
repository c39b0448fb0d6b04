"""One context cell to chunks, in rank order. Pure.

What `auto` does, in this order; the first that applies settles the cell:

1. A cell that is a JSON list, as a whole, holds one chunk an item.
2. `||` separates chunks where white space or the cell's edge stands on both of its sides and it does not read
   as an operator: not inside brackets or backticks, not beside another operator or a quoted literal, not in a
   statement. Alone on its line it always separates. `if (a || b)` and `first || ' ' || last` stay whole.
3. Blank lines separate chunks.

Any other delimiter is taken literally and nothing else is looked at.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_eval.errors import InputError
from rag_eval.texts.display import without_half_pairs

AUTO = "auto"


class Split(NamedTuple):
    """What one cell holds."""

    chunks: tuple[str, ...]
    """Without surrounding white space and without blank ones; () for a blank cell."""
    dropped: int
    """Items of a JSON list that hold nothing: null, and blank texts."""


def split_cell(text: str, delimiter: str = AUTO) -> Split:
    """The chunks of one cell. Raises InputError for a JSON list with an item that holds no text."""
    items = _json_list(text) if delimiter == AUTO else None
    if items is not None:
        texts = list(_item_texts(items))
        chunks = _stripped(texts)
        return Split(chunks, dropped=len(texts) - len(chunks))
    return Split(_stripped(_split_auto(text) if delimiter == AUTO else text.split(delimiter)), dropped=0)


def _stripped(parts: list[str]) -> tuple[str, ...]:
    return tuple(chunk for part in parts if (chunk := part.strip()))


def looks_like_broken_json(text: str) -> bool:
    """Whether the cell begins like a JSON list of texts but is none, for example because it was cut off."""
    return bool(_JSON_START.match(text)) and _json_list(text) is None


_JSON_START = re.compile(r"\s*\[[\s\[]*[\"'“{]")


def _split_auto(text: str) -> list[str]:
    parts = _split_at_pipes(text) if "||" in text else [text]
    if len(parts) > 1:
        return parts
    return _BLANK_LINES.split(text) if "\n" in text or "\r" in text else parts


# The possessive `?+` keeps a single Windows line end from being read as two line ends; the others save memory.
_BLANK_LINES = re.compile(r"(?:\r\n?+|\n)(?:[^\S\r\n]*+(?:\r\n?+|\n))++")


def _json_list(text: str) -> list[object] | None:
    """The cell as a JSON list, numbers kept as they are written; None when it is anything else."""
    if not text.lstrip().startswith("["):
        return None
    try:
        # The cell begins with a bracket, so whatever parses is a list.
        items: list[object] = json.loads(text.strip(), parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return items


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_TEXT_KEYS = ("text", "content", "page_content", "chunk", "body")


def _item_texts(items: list[object], nested: bool = False) -> Iterator[str]:
    for item in items:
        if isinstance(item, list):
            if nested:
                raise InputError("the JSON list holds lists within lists; expected a list of texts")
            yield from _item_texts(item, nested=True)
        elif isinstance(item, dict):
            yield without_half_pairs(_object_text(item))
        elif isinstance(item, bool):
            yield json.dumps(item)
        elif item is None:
            yield ""
        elif isinstance(item, str):
            yield without_half_pairs(item)


def _object_text(item: dict[str, object]) -> str:
    for key in _TEXT_KEYS:
        value = item.get(key)
        if isinstance(value, str):
            return value
    found = ", ".join(f"'{key[:40]}'" for key in list(item)[:10]) or "none"
    raise InputError(
        f"the JSON list holds an object without text; expected one of {', '.join(_TEXT_KEYS)}, found {found}"
    )


def _split_at_pipes(text: str) -> list[str]:
    starts = [0]
    ends = []
    prose = _CODE.sub(lambda code: "`" * len(code[0]), text)
    for mark in _open_marks(prose):
        if not _is_operator(prose, mark):
            ends.append(mark)
            starts.append(mark + len("||"))
    return [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]


_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
# A set of characters to begin with, because anything else is tried at every character of the text.
_TOKEN = re.compile(r"[|()\[\]{}](?:(?<=\|)\|)?")
_MARK = re.compile(r"(?<!\S)\|\|(?!\S)")
_OPENER = {")": "(", "]": "[", "}": "{"}


def _open_marks(text: str) -> list[int]:
    """Positions of every `||` between white space that no pair of brackets encloses."""
    marks: list[int] = []
    alone = {line.start(1) for line in _ALONE.finditer(text)}
    opened: dict[str, list[int]] = {"(": [], "[": [], "{": []}
    for token in _TOKEN.finditer(text):
        symbol = token[0]
        if symbol == "||" and _MARK.match(text, token.start()):
            marks.append(token.start())
            if token.start() in alone:
                for positions in opened.values():
                    positions.clear()
        elif symbol in opened:
            opened[symbol].append(token.start())
        elif symbol in _OPENER and opened[_OPENER[symbol]]:
            start = opened[_OPENER[symbol]].pop()
            while marks and marks[-1] > start:
                marks.pop()
    return marks


_ALONE = re.compile(r"^[^\S\n]*+(\|\|)[^\S\n]*+$", re.MULTILINE)
"""A line with nothing but white space around one `||`."""


_OPERATOR = r"&&|[=!<>]=|=>|:=|\s=\s|(?<!\w)!\w"
_LITERAL = r"\s*(?:'[^']*'|\"[^\"]*\")\s*"
_CODE_BEFORE = re.compile(
    rf"{_OPERATOR}|\A{_LITERAL}\Z|(?<!\w)'[^']*'\s*\Z|\A\s*(?:if|while|unless|return|select)\s+\S+\s*\Z", re.I
)
_CODE_AFTER = re.compile(rf"{_OPERATOR}|\A{_LITERAL}\Z|\A\s*'[^']*'(?!\w)|[;{{\\]\s*\Z")


def _is_operator(text: str, mark: int) -> bool:
    """Whether the `||` at `mark` reads as code, judged by what stands on its line up to the next `||`."""
    # Looked for from the mark on and no further than the next one, so that a cell of many marks is looked at once.
    last, following = text.rfind("||", 0, mark), text.find("||", mark + len("||"))
    before = text[0 if last < 0 else last + len("||") : mark].rpartition("\n")[2]
    after = text[mark + len("||") : None if following < 0 else following].partition("\n")[0]
    return any(
        _SIGN_OF_CODE.search(side) is not None and pattern.search(side) is not None
        for side, pattern in ((before, _CODE_BEFORE), (after, _CODE_AFTER))
    )


_SIGN_OF_CODE = re.compile(r"[&=!'\";{\\]|\A\s*(?:if|while|unless|return|select)\s", re.I)
"""What all of `_CODE_BEFORE` and `_CODE_AFTER` have at least; looked for first, because that is far faster."""
