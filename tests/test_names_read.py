"""What the names of columns and single cells are read as, to the letter: roles, owners, units, amounts, chunks, ids.

`names_read.txt` has a line for each: how it is read, the text as JSON writes it, and what it is.
`python tests/test_names_read.py` writes the last part anew after a change that is wanted; read what differs before you
keep it.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from rag_eval.errors import InputError
from rag_eval.tables import names
from rag_eval.tables.cells import Measured, column_letter, parse_score, parse_verdict
from rag_eval.tables.chats import printed_messages
from rag_eval.tables.chunking import looks_like_broken_list, split_cell
from rag_eval.tables.columns import parse_map
from rag_eval.tables.document_ids import parse_documents, parse_ids, parse_query_id
from rag_eval.tables.names import COST, LATENCY
from rag_eval.tables.number_formats import as_seen, shown_unit
from rag_eval.tables.speakers import is_speaker, role_of, turns_of_text
from rag_eval.tables.spending import Amounts, amount_in, unit_of

RECORDED = Path(__file__).parent / "names_read.txt"
SAID: Mapping[str, Callable[[str], bool]] = {
    "an answer": names.is_answer,
    "may be the truth": names.may_be_truth,
    "says truth": names.says_truth,
    "names bots": names.names_bots,
    "may name bots": names.may_name_bots,
    "errors": names.names_errors,
    "a state": names.names_state,
    "several": names.holds_several,
    "a chat": names.is_chat,
    "a conversation": names.is_conversation,
    "speaks of sources": names.speaks_of_sources,
    "a passage": names.is_passage,
    "no bot": names.is_no_bot,
    "a label": names.is_label,
    "about": names.is_about,
}
"""What a name may say by itself."""
MISSING = tuple(names.FIRST)


def of_header(header: str) -> Iterator[str]:
    alone, prefixed = (names.meaning_of(header, has_prefixed=each) for each in (False, True))
    if alone:
        yield f"{alone.role} {alone.rank}{'' if alone == prefixed else ' without prefixed ones'}"
    if prefixed and prefixed != alone:
        yield f"{prefixed.role} {prefixed.rank} beside prefixed ones"
    yield from (
        f"{each.role} of {each.owner!r} in {each.unit!r} {each.rank}" for each in names.spendings_of(header)
    )
    yield from (said for said, is_so in SAID.items() if is_so(header))
    for word, found in (
        ("answer of", names.without_answer(header)),
        ("without numbers", names.without_numbers(header)),
        ("context", names.context_with_number(header)),
        ("after the prefix", names.after_prefix(header, "Bot_")),
        ("likely", names.likely_role(header, MISSING)),
    ):
        if found:
            yield f"{word} {found!r}"
    if " " in header:
        yield f"halves {[*names.halves_of(header)]}"


def of_headers(text: str) -> Iterator[str]:
    found = names.likely_bots(dict(enumerate(text.split(" | "))), "Bot_")
    yield from (f"{index} {kind}" for index, kind in found.items())
    if names.joins_by_bar(text.split(" | ")):
        yield "joined by a bar"


def of_amount(role: str, text: str) -> Iterator[str]:
    found = amount_in(text, role)
    yield str(found and (found.number, found.unit))


def of_column(role: str, text: str) -> Iterator[str]:
    """Unit of the header, `: ` and cells with ` | ` between them."""
    unit, _, cells = text.partition(": ")
    column = Amounts(role, unit)
    read = [column.add(row, cell) for row, cell in enumerate(cells.split(" | "), 2)]
    if problem := column.settle(has_commas=False):
        yield f"problem {problem}"
    yield f"in {column.base!r} ({column.unit!r}), decimals {column.decimals!r}"
    yield str([each and round(column.value(*each), 12) for each in read])
    yield from filter(None, [column.currency, column.missing(), *column.remarks(), "free" * column.is_free])


def of_unit(role: str, text: str) -> Iterator[str]:
    yield f"{names.unit_named(role, text)!r}, {unit_of(role, names.unit_named(role, text))!r}"


def of_format(text: str) -> Iterator[str]:
    unit = shown_unit(text)
    yield f"{unit!r}, {as_seen(Measured('0.255', 0.255, unit)) if unit else ''}"


def of_cell(text: str) -> Iterator[str]:
    found = split_cell(text)
    dropped = f", {found.dropped} dropped" if found.dropped else ""
    ids = f", ids {found.ids}" if found.ids else ""
    yield f"{found.kind} {list(found.chunks)}{dropped}{ids}{', broken' if looks_like_broken_list(text) else ''}"


def of_ids(text: str) -> Iterator[str]:
    yield f"{parse_ids(text)}, {parse_documents(text)}"


def of_speaker(text: str) -> Iterator[str]:
    yield f"{role_of(text)!r}, {is_speaker(text)}"


def of_printed(text: str) -> Iterator[str]:
    yield str(printed_messages(text))


def of_turns(text: str) -> Iterator[str]:
    yield str([f"{turn.role}: {turn.content}" for turn in turns_of_text(text)])


READERS: Mapping[str, Callable[[str], Iterator[str]]] = {
    "header": of_header,
    "headers": of_headers,
    LATENCY: partial(of_amount, LATENCY),
    COST: partial(of_amount, COST),
    "latencies": partial(of_column, LATENCY),
    "costs": partial(of_column, COST),
    "unit of latency": partial(of_unit, LATENCY),
    "unit of cost": partial(of_unit, COST),
    "format": of_format,
    "cell": of_cell,
    "ids": of_ids,
    "query id": lambda text: iter([parse_query_id(text)]),
    "score": lambda text: iter([str(parse_score(text))]),
    "verdict": lambda text: iter([str(parse_verdict(text))]),
    "speaker": of_speaker,
    "printed": of_printed,
    "turns": of_turns,
    "letter": lambda text: iter([column_letter(int(text))]),
    "map": lambda text: iter([str(parse_map(text.split(" ; ")))]),
}


def lines() -> Iterator[str]:
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition(": ")
        text, _ = json.JSONDecoder().raw_decode(rest)
        try:
            read = "; ".join(READERS[kind](text))
        except (ValueError, InputError) as error:
            read = f"refused: {error}"
        yield f"{kind}: {json.dumps(text, ensure_ascii=False)} = {' '.join(read.split())}".rstrip()


def test_names_and_cells_are_read_as_they_were() -> None:
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    assert [*difflib.unified_diff(recorded, [*lines()], "recorded", "now", n=0, lineterm="")] == []


if __name__ == "__main__":
    RECORDED.write_text("\n".join(lines()) + "\n", encoding="utf-8")
