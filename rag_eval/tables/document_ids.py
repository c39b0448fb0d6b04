"""Ids of queries and documents, read from cells and fields, and brought into a form that can be compared. Pure."""

import json
import math
import re
import warnings
from ast import literal_eval
from collections.abc import Iterable, Sequence
from numbers import Integral

QUERY_ID_NAMES = (("qid", "query_id", "question_id"), ("id",))
"""Names of attributes, keys and columns. The second group counts only if no name of the first is present."""


def parse_query_id(cell: object) -> str:
    """A query id as text, so that "01" is not "1". A whole number is taken by its digits."""
    try:
        return _identifier(cell)
    except ValueError:
        raise ValueError(f"{_shown(cell)} is not a query id") from None


def parse_ids(cell: object) -> tuple[str, ...]:
    """The ids that a cell or field holds, in its order; () when it is blank.

    Read are a list of texts, the text of a JSON or Python list, `id || id`, and one id alone. Anything else
    is a ValueError that says what was expected.
    """
    if hasattr(cell, "tolist"):
        cell = cell.tolist()  # a numpy array or scalar, as pandas gives for a list column of a Parquet file
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ()
    try:
        return tuple([_identifier(item) for item in _items(cell)])
    except (ValueError, RecursionError):
        expected = 'expected ["id", …] or id || id'
        raise ValueError(f"{_shown(cell)} is not a list of document ids; {expected}") from None


def _items(cell: object) -> Sequence[object]:
    if isinstance(cell, list | tuple):
        return cell
    if not isinstance(cell, str):
        return (cell,)
    text = cell.strip()
    if text.startswith("["):
        return _listed(text)
    if "||" in text:
        return text.split("||")
    if _NOT_ONE_ID.search(text):
        raise ValueError("several words")
    return (text,) if text else ()


_NOT_ONE_ID = re.compile(r"[\s,;\[\]{}]")
"""An id alone in a cell is one word: text with blanks is a passage, and text with commas another list format.
An id that has such characters must stand in a list."""


def _listed(text: str) -> list[object]:
    """The items of a list written as JSON or by Python's print."""
    if '"' not in text and "\\" not in text:
        text = text.replace("'", '"')  # what Python printed is then JSON, which is read far faster
    try:
        items: list[object] = json.loads(text)
    except ValueError:
        if not _PYTHON_LIST.fullmatch(text):
            raise
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes such as \\d, which Python keeps as they are
            items = [_python_text(found[0]) for found in re.finditer(_PYTHON_TEXT, text)]
    return items


def _python_text(literal: str) -> str:
    if "\\" not in literal:
        return literal[1:-1]
    try:
        return str(literal_eval(literal))
    except SyntaxError:  # an escape that is cut off
        raise ValueError(literal) from None


_PYTHON_TEXT = r"""(?:'(?:[^'\\\r\n]|\\.)*+'|"(?:[^"\\\r\n]|\\.)*+")"""
_PYTHON_LIST = re.compile(rf"\[\s*{_PYTHON_TEXT}(?:\s*,\s*{_PYTHON_TEXT})*+\s*\]")
"""Texts with commas between them and nothing else. Python would read `['a' 'b']`, which is how numpy prints
two ids, as the one id `ab`; this does not."""


def _identifier(value: object) -> str:
    """One id as text, without outer blanks. Numbers with a fraction, truth values and dates are no ids."""
    if isinstance(value, str):
        if _PLAIN_ID.fullmatch(value):
            return value
        text = value.strip()
        if text and not _UNUSABLE.search(text) and text.casefold() not in _NO_VALUE:
            return text
    elif isinstance(value, Integral) and not isinstance(value, bool):  # numpy's whole numbers as well
        return str(int(value))
    raise ValueError(value)


_PLAIN_ID = re.compile(r"[!-~]{9,}|[A-Za-z_-]*[0-9][\w-]*", re.ASCII)
"""Most ids: without a blank, and longer than any of the words that stand for no value or with a digit among letters."""
_UNUSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Line breaks and other control characters, and halves of characters, which no file can hold."""
_NO_VALUE = frozenset(
    ("none", "null", "nan", "n/a", "#n/a", "#value!", "#ref!", "#name?", "#div/0!", "#null!", "#num!")
)
"""How programs and spreadsheets write that a value is missing or wrong. As an id it would never be found."""


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text[:60]}…" if len(text) > 60 else text


def parse_documents(cell: object) -> tuple[str, ...]:
    """The documents behind the ids of a cell or field: what `rank_documents(parse_ids(cell))` returns.

    A list of UUIDs as URNs, which is what large corpora mostly have, is taken as a whole, several times faster.
    """
    if isinstance(cell, str) and _URN_LIST.fullmatch(cell):
        return tuple(dict.fromkeys([item[:36] for item in cell.lower().split("urn:uuid:")[1:]]))
    return rank_documents(parse_ids(cell))


def rank_documents(chunk_ids: Iterable[str]) -> tuple[str, ...]:
    """The documents that chunks belong to, normalised, each at the rank of its first chunk."""
    return tuple(dict.fromkeys(map(normalise_id, chunk_ids)))


def normalise_id(text: str) -> str:
    """The id of the document behind a chunk id or a gold id, so that both sides can be compared.

    `doc-<urn:uuid:…>::chunk-0`, `<urn:uuid:…>`, `urn:uuid:…` and the bare UUID are the same document,
    named by the UUID in lower case. Of other ids the wrapping `doc-<…>` and the ending `::chunk-0` go.
    """
    if uuid := _UUID_ID.fullmatch(text):
        return (uuid[1] or uuid[2]).lower()
    text = text.strip()
    if text and "<" not in text and "::" not in text:
        return text
    if other := _OTHER_ID.fullmatch(text):
        return other[1] or other[2]
    raise ValueError("a document id must not be blank")


_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_NAMED = f"(?:[uU][rR][nN]:[uU][uU][iI][dD]:)?({_UUID})"
_UUID_ID = re.compile(rf"\s*(?:doc-)?(?:<{_NAMED}>|{_NAMED})(?:::chunk-\d+)?\s*")
_OTHER_ID = re.compile(r"(?:doc-)?<([^<>]+)>(?:::chunk-\d+)?|(.+?)(?:::chunk-\d+)?", re.DOTALL)

_URN = rf"(?:doc-)?(?:<urn:uuid:{_UUID}>|urn:uuid:{_UUID})(?:::chunk-\d+)?"
_URN_LIST = re.compile("|".join(rf"\[{quote}{_URN}{quote}(?:, ?{quote}{_URN}{quote})*+\]" for quote in "'\""))
"""A list as JSON or Python write it, of nothing else than UUIDs as URNs, in small letters but for the digits."""
