"""One context cell to chunks, in rank order. Pure.

What `auto` does, in this order; the first that applies settles the cell:

1. A cell that is a list as a whole, of JSON, as Python writes it or as NumPy prints it, holds one chunk an item. Of
   items that all are a text and a number, as a search with scores returns, the text is the chunk.
2. `||` separates chunks where it does not read as an operator: not inside brackets or backticks, not beside another
   operator or a quoted literal, not in a statement or in a row of a Markdown table. Alone on its line it always
   separates. `if (a || b)` and `first || ' ' || last` stay whole.
3. Blank lines separate chunks. If each then begins with its number, [1], [2] and so on, the numbers go. Without blank
   lines, such numbers at the beginnings of lines separate chunks. Those of a list, `1.` and `2.`, may be of one chunk.
   Between blank lines, a line such as `---` is no chunk.

Any other delimiter is taken literally and nothing else is looked at.
"""

import ast
import json
import re
import tokenize
import warnings
from collections.abc import Iterator
from io import StringIO
from typing import Any, NamedTuple

from rag_eval.errors import InputError
from rag_eval.tables.cells import EXCEL_LIMIT
from rag_eval.texts.display import without_half_pairs

AUTO = "auto"

JSON_LIST, PYTHON_LIST, PRINTED_ARRAY = "JSON list", "Python list", "NumPy array"
PIPES, NUMBERED, PARAGRAPHS, WHOLE = "'||'", "numbered paragraphs", "paragraphs", "one chunk"
NUMBERED_LINES = "numbered lines"
DELIMITER, BLANK = "[context] delimiter", "blank"
LISTS = frozenset((JSON_LIST, PYTHON_LIST, PRINTED_ARRAY))


class _Split(NamedTuple):
    """What one cell holds."""

    chunks: tuple[str, ...]
    """Without surrounding white space and without blank ones; () for a blank cell."""
    dropped: int
    """Items of a list that hold nothing: null, and blank texts."""
    kind: str
    """By which rule it was read: one of the names above."""
    ids: tuple[str, ...] | None = None
    """Ids of the documents, where every item of a list is an object that has one."""


def split_cell(text: str, delimiter: str = AUTO) -> _Split:
    """The chunks of one cell. Raises InputError for a list with an item that holds no text, or that was shortened."""
    if delimiter != AUTO:
        chunks = _stripped(text.split(delimiter))
        return _Split(chunks, 0, DELIMITER if chunks else BLANK)
    found = _list(text)
    if found is not None:
        items, kind = _without_scores(found[0]), found[1]
        texts = list(_item_texts(items, kind))
        chunks = _stripped(texts)
        return _Split(chunks, len(texts) - len(chunks), kind, _item_ids(items))
    return _split_auto(text)


class _Number(str):
    """A number of JSON as it was written."""

    __slots__ = ()


def _without_scores(items: list[object]) -> list[object]:
    """The texts of a list of texts with their scores; any other list as it is."""
    pairs = [each for each in items if isinstance(each, list | tuple) and len(each) == 2]
    are_pairs = all(isinstance(text, dict | str) and _is_number(score) for text, score in pairs)
    numbers = [str(score) for _, score in pairs]
    # Years, counts and most prices next to texts are a part of them.
    are_scored = are_pairs and ("." in "".join(numbers) or {"0", "1"}.issuperset(numbers))
    return [text for text, _ in pairs] if are_scored and len(pairs) == len(items) else items


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | _Number) and not isinstance(value, bool)


def _stripped(parts: list[str]) -> tuple[str, ...]:
    return tuple(chunk for part in parts if (chunk := part.strip()))


def looks_like_broken_list(text: str) -> bool:
    """Whether the cell begins like a list of texts but is none, for example because it was cut off."""
    return bool(_LIST_START.match(text)) and _list(text) is None


_LIST_START = re.compile(r"\s*(?:\[[\s\[(]*(?:[\"'“{]|Document\()|array\()")


def why_broken(text: str) -> str:
    """What is wrong with a cell that looks like a list and is none, and what to do."""
    return _CUT_LIST if len(text) == EXCEL_LIMIT else _NOT_A_LIST


_CUT_LIST = (
    f"begins like a list and ends at {EXCEL_LIMIT:,} characters, where Excel cuts a text; export it again as .csv, "
    ".jsonl or .parquet"
)
_NOT_A_LIST = 'begins like a list and cannot be read as one; write it as JSON: ["chunk 1", "chunk 2"]'


def _split_auto(text: str) -> _Split:
    parts = _split_at_pipes(text) if "||" in text else [text]
    if len(parts) > 1:
        chunks = _stripped(parts)
        return _Split(chunks, 0, PIPES)
    if "\n" in text or "\r" in text:
        chunks = tuple(each for each in _stripped(_BLANK_LINES.split(text)) if not _RULE.fullmatch(each))
        if len(chunks) > 1:
            plain = _without_numbers(chunks)
            return _Split(plain or chunks, 0, NUMBERED if plain else PARAGRAPHS)
        if plain := _without_numbers(_stripped(_NUMBERED_LINES.split(text))):
            return _Split(plain, 0, NUMBERED_LINES)
    chunks = _stripped(parts)
    return _Split(chunks, 0, WHOLE if chunks else BLANK)


def _without_numbers(paragraphs: tuple[str, ...]) -> tuple[str, ...]:
    """The paragraphs without [1], [2] and so on before them; () if one of them lacks its number, or its text."""
    plain = []
    for number, paragraph in enumerate(paragraphs, 1):
        mark = f"[{number}]"
        rest = paragraph[len(mark) :].lstrip()
        if not (paragraph.startswith(mark) and rest):
            return ()
        plain.append(rest)
    return tuple(plain) if len(plain) > 1 else ()


def what_joins(text: str) -> str:
    """What may separate several chunks in a text that was read as one, and what to do, in words; '' for nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return ""
    numbers = range(1, len(lines) + 1)
    if all(line.startswith((f"{n}. ", f"{n}) ")) for n, line in zip(numbers, lines, strict=True)):
        return (
            "the lines of each cell are numbered 1., 2., … and were read as one chunk. If each line is a chunk, set "
            "delimiter = \\n in [context] of config.ini"
        )
    if rule := next((line for line in lines[1:-1] if _RULE.fullmatch(line)), ""):
        return (
            f"each cell has lines {rule[:60]} and was read as one chunk. If they separate chunks, set delimiter = "
            f"{rule[:60]} in [context] of config.ini"
        )
    heads = [found.groups() for line in lines if (found := _HEAD.match(line))]
    words = {word.casefold() for word, _ in heads}
    if len(words) == 1 < len(heads) and [int(n) for _, n in heads] == [*numbers][: len(heads)]:
        word = heads[0][0]
        return (
            f"lines of each cell begin with '{word} 1', '{word} 2', … and were read as one chunk. If these are chunks, "
            "put a blank line or || before each of them"
        )
    return ""


_RULE = re.compile(r"([-=*_~])\1{2,}")
"""A line that only separates."""
_HEAD = re.compile(r"[\[(<#*]*([^\W\d_]{3,20})[ #_.-]*(\d{1,3})(?!\d)[\])>:.*]")
"""`Document 1:`, `[Chunk 2]` and the like."""
_NUMBERED_LINES = re.compile(r"(?<![\r\n])[\r\n]++(?=\[\d{1,3}\]\s)")
# The possessive `?+` keeps a single Windows line end from being read as two line ends; the others save memory.
_BLANK_LINES = re.compile(r"(?:\r\n?+|\n)(?:[^\S\r\n]*+(?:\r\n?+|\n))++")


def _list(text: str) -> tuple[list[object], str] | None:
    """The cell as a list, and who writes lists so; None when it is anything else. Numbers of JSON stay as written."""
    start = text.lstrip()[:6]
    if start.startswith("["):
        try:
            # The cell begins with a bracket, so whatever parses is a list.
            items = json.loads(text.strip(), parse_int=_Number, parse_float=_Number, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return _python_list(text.strip())
        return items, JSON_LIST
    return _python_list(text.strip()) if start == "array(" else None


def _python_list(text: str) -> tuple[list[object], str] | None:
    """A list of texts and objects that Python or NumPy wrote."""
    if not _PYTHON_START.match(text):
        return None
    inner = _PRINTED_ARRAY.fullmatch(text)
    body = inner[1] if inner else text
    if _SPACED.fullmatch(body):  # Python would read two texts without a comma as one
        found = (each[0] for each in _TEXT_LITERAL.finditer(body))
        texts = [literal(text) if "\\" in text else text[1:-1] for text in found]
        return None if None in texts else (texts, PRINTED_ARRAY)
    items = literal(body)
    if isinstance(items, list) and not _lacks_comma(body):
        return list(map(_plain, items)), PRINTED_ARRAY if inner else PYTHON_LIST
    if body.endswith("]") and _SHORTENED.search(_TEXT_LITERAL.sub("''", body)):
        raise InputError(_SHORTENED_ARRAY)
    return None


def literal(text: str) -> object:
    """The value that Python reads in the text; None for what is no literal, as a set of objects: {{'text': 'x'}}."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes such as \\d, which Python keeps as they are
            tree = ast.parse(text, mode="eval")
        return ast.literal_eval(_AsLiterals().visit(tree) if _NO_LITERALS.search(text) else tree)
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


_NO_LITERALS = re.compile(r"nan|Document\(|np\.float")


class _AsLiterals(ast.NodeTransformer):
    """What data frames print that is no literal: a missing item as nan, a number of NumPy, a document of LangChain."""

    def visit_Name(self, node: ast.Name) -> Any:
        return ast.Constant(None) if node.id == "nan" else node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name == "Document" and not node.args and all(each.arg for each in node.keywords):
            keys: list[ast.expr | None] = [ast.Constant(each.arg) for each in node.keywords]
            return ast.Dict(keys, [each.value for each in node.keywords])
        is_number = name in ("np.float64", "np.float32") and len(node.args) == 1 and not node.keywords
        return node.args[0] if is_number else node


def _lacks_comma(text: str) -> bool:
    """Whether two texts follow each other with nothing between them, in what Python can read.

    Python takes them for one text; NumPy prints two so, and a comma may have been lost.
    """
    before = None
    for token in tokenize.generate_tokens(StringIO(text, newline=None).readline):
        if token.type == tokenize.STRING == before:
            return True
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
    return False


def _plain(item: object) -> object:
    """Numbers as JSON's are taken: as they are written."""
    return _Number(item) if isinstance(item, int | float) and not isinstance(item, bool) else item


_PYTHON_START = re.compile(r"(?:array\(\s*)?\[\s*(?:[\[(]\s*)?(?:[uUrR]?['\"]|[{\]]|None\b|nan\b|Document\()")
_PRINTED_ARRAY = re.compile(r"array\(\s*(\[.*\])\s*(?:,\s*dtype=[^()]{1,100})?\)", re.DOTALL)
_TEXT_LITERAL = re.compile(r"""'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+\"""", re.DOTALL)
_SPACED = re.compile(rf"\[\s*(?:{_TEXT_LITERAL.pattern})(?:\s+(?:{_TEXT_LITERAL.pattern}))++\s*\]", re.DOTALL)
_SHORTENED = re.compile(r"(?<![\w.])\.\.\.(?![\w.])")
_SHORTENED_ARRAY = (
    "contains an array that NumPy shortened with '...'; export the whole lists, for example as JSON"
)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_TEXT_KEYS = (
    "text",
    "content",
    "contents",
    "page_content",
    "pageContent",
    "chunk",
    "body",
    "passage",
    "document.content",
)
_ID_KEYS = ("doc_id", "document_id", "id", "document.id")


def _item_ids(items: list[object]) -> tuple[str, ...] | None:
    """Of every item the id that it has; None if one has none."""
    ids = []
    for item in items:
        found = [item.get(key) for key in _ID_KEYS] if isinstance(item, dict) else []
        id_ = next((str(each) for each in found if isinstance(each, str | int) and str(each).strip()), None)
        if id_ is None:
            return None
        ids.append(id_)
    return tuple(ids) or None


def _item_texts(items: list[object], kind: str, nested: bool = False) -> Iterator[str]:
    for item in items:
        if isinstance(item, list | tuple):
            if nested:
                raise InputError(f"the {kind} contains lists within lists; expected a list of texts")
            yield from _item_texts([*item], kind, nested=True)
        elif isinstance(item, dict):
            yield without_half_pairs(_object_text(item, kind))
        elif isinstance(item, bool):
            yield json.dumps(item)
        elif item is None:
            yield ""
        elif item is ...:
            raise InputError(_SHORTENED_ARRAY)
        elif isinstance(item, str):
            yield without_half_pairs(item)
        else:
            yield str(item)


def _object_text(item: dict[str, object], kind: str) -> str:
    """The text of a chunk, which some tools put into an object within the object: {"document": {"content": …}}."""
    for key in _TEXT_KEYS:
        value = item.get(key)
        if isinstance(value, str):
            return value
    inner = next((item[key] for key in ("document", "node") if isinstance(item.get(key), dict)), None)
    if isinstance(inner, dict):
        return _object_text({key: value for key, value in inner.items() if key in _TEXT_KEYS}, kind)
    found = ", ".join(f"'{key[:40]}'" for key in list(item)[:10]) or "none"
    raise InputError(
        f"the {kind} contains an object without text; expected one of {', '.join(_TEXT_KEYS)}, found {found}"
    )


def _split_at_pipes(text: str) -> list[str]:
    starts = [0]
    ends = []
    prose = _ROW.sub(lambda row: _TIGHT.sub("``", row[0]), _CODE.sub(lambda code: "`" * len(code[0]), text))
    for mark in _open_marks(prose):
        if not _is_operator(prose, mark):
            ends.append(mark)
            starts.append(mark + len("||"))
    return [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]


_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_ROW = re.compile(r"^[^\S\n]*+\|(?!\|\s)[^\n]*\|[^\S\n]*$", re.MULTILINE)
"""Of a table as Markdown or a wiki writes it: `|a||b|`, `||heading||`."""
_TIGHT = re.compile(r"(?<!\s)\|\||\|\|(?!\s)")
# A set of characters to begin with, because anything else is tried at every character of the text.
_TOKEN = re.compile(r"[|()\[\]{}](?:(?<=\|)\|)?")
_MARK = re.compile(r"(?<!\|)\|\|(?!\|)")
_OPENER = {")": "(", "]": "[", "}": "{"}


def _open_marks(text: str) -> list[int]:
    """Positions of every `||` that no pair of brackets encloses."""
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
    if any(
        _SIGN_OF_CODE.search(side) is not None and pattern.search(side) is not None
        for side, pattern in ((before, _CODE_BEFORE), (after, _CODE_AFTER))
    ):
        return True
    is_apart = text[mark - 1 : mark].isspace() and text[mark + 2 : mark + 3].isspace()
    return not is_apart and bool(_CALL_BEFORE.search(before) or _LITERAL_AFTER.match(after))


_CALL_BEFORE = re.compile(r"\w\([^()]{0,200}\)\Z|\b(?:SELECT|WHERE|VALUES|SET)\s")
_LITERAL_AFTER = re.compile(r"\{\}|\[\]|\w++\([^()]{0,200}\)(?:\Z|[;|])")
"""Beside a `||` without white space: a call, an empty literal, or SQL."""


_SIGN_OF_CODE = re.compile(r"[&=!'\";{\\]|\A\s*(?:if|while|unless|return|select)\s", re.I)
"""What all of `_CODE_BEFORE` and `_CODE_AFTER` have at least; looked for first, because that is far faster."""
