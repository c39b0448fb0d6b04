"""Values as bytes: they come back equal, and what is damaged, cut or of another kind is no value."""

import functools
import io
import math
import random
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from types import MappingProxyType, NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_eval import records
from rag_eval.errors import OutputError
from rag_eval.records import Case, CaseResult, Outcome, Row, RunFacts, Score
from rag_eval.store.codec import (
    _BLOCK_ENTRIES,
    NumberTable,
    Spool,
    decode,
    encode,
    from_plain,
    read_record,
    record_of,
    to_plain,
    write_record,
)

TEXTS = st.text(st.characters() | st.sampled_from("\ud800\udfff\0é😀"), max_size=8)
NUMBERS = st.floats(allow_nan=False) | st.sampled_from([math.inf, -math.inf, -0.0, 5e-324])
KINDS = [
    each
    for each in vars(records).values()
    if isinstance(each, type) and is_dataclass(each) and each.__module__ == records.__name__
]


@functools.cache
def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type, as a dataclass of ours has them."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType or NoneType in arguments:
        return st.one_of(map(of, arguments))
    if origin is tuple:
        if arguments[-1] is ...:
            return st.lists(of(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*map(of, arguments))
    if origin is Mapping:
        return st.dictionaries(*map(of, arguments), max_size=2)
    if is_dataclass(kind):
        hints = get_type_hints(kind, vars(records))
        return st.builds(kind, **{field.name: of(hints[field.name]) for field in fields(kind)})
    plain = {
        str: TEXTS,
        float: NUMBERS,
        int: st.integers(-(2**70), 2**70),
        Any: st.none() | TEXTS | st.booleans() | st.lists(NUMBERS, max_size=2),
        datetime: st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0)),
    }
    return plain[kind] if kind in plain else st.from_type(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_value_comes_back_equal_as_bytes_and_in_json(kind: Any, data: st.DataObject) -> None:
    value = data.draw(of(kind))
    again = decode(kind, encode(value))
    assert (again, repr(again)) == (value, repr(value))
    if kind is CaseResult:
        assert from_plain(kind, to_plain(value)) == value


def test_there_is_a_test_for_every_record() -> None:
    assert {CaseResult, Case, Row, Score, RunFacts, records.Usage, records.RubricOutcome} <= {*KINDS}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", b""),
        ([b"\xff", "half \ud83d"], [b"\xff", "half \ud83d"]),
        ({("a", 2): 2**70}, {("a", 2): 2**70}),
        (type("Text", (str,), {})("x" * 9), "x" * 9),
        (type("Text", (str,), {})("\ud800"), "\ud800"),
        (MappingProxyType({"a": Counter(b=1)}), {"a": {"b": 1}}),
        ((1, (None, True)), [1, [None, True]]),
        ("x" * 3_000_000, "x" * 3_000_000),
    ],
)
def test_plain_values_come_back_as_the_plainest_of_their_kind(given: Any, expected: Any) -> None:
    again = decode(Any, encode(given))
    assert (again, type(again)) == (expected, type(expected))


def test_a_number_that_is_none_stays_none() -> None:
    again = decode(Score, encode(Score("m", Outcome.SCORED, math.nan, samples=(math.nan,))))
    assert [math.isnan(each) for each in (again.value, *again.samples)] == [True, True]


@pytest.mark.parametrize(
    "wrong",
    [
        encode({"metric": "m", "outcome": "unheard of"}),
        encode({"metric": "m", "outcome": Outcome.SCORED, "value": "\ud800"}),
        encode({"outcome": Outcome.SCORED}),
        encode(Case(2, "A", "q", "a")),
        encode(Score.scored("m", 0.5))[:-1],
        encode(Score.scored("m", 0.5)) + b"\0",
        b"\xc1",
        b"",
    ],
)
def test_the_bytes_of_anything_else_are_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(Score, wrong)


def test_a_value_of_another_class_has_no_bytes() -> None:
    with pytest.raises(TypeError, match="a value of the class object has no bytes"):
        encode([object()])


# Records


PAYLOADS = (b"", b"one", bytes(range(256)), b"last")
WHOLE = b"".join(map(record_of, PAYLOADS))


def read_all(content: bytes) -> list[bytes]:
    file, found = io.BytesIO(content), list[bytes]()
    while (data := read_record(file)) is not None:
        found.append(data)
    return found


def test_a_file_of_records_can_be_appended_to() -> None:
    file = io.BytesIO()
    for data in PAYLOADS:
        write_record(file, data)
    assert file.getvalue() == WHOLE
    assert read_all(WHOLE) == [*PAYLOADS]


def test_what_stands_before_a_cut_is_usable_wherever_it_is() -> None:
    ends = [len(b"".join(map(record_of, PAYLOADS[:count]))) for count in range(5)]
    for length in range(len(WHOLE)):
        assert read_all(WHOLE[:length]) == [*PAYLOADS[: sum(end <= length for end in ends) - 1]]


def test_every_damaged_byte_is_an_error_and_never_another_record() -> None:
    for place in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[place] ^= 0x10
        with pytest.raises(ValueError, match=r"a record is damaged: its (head|bytes) "):
            read_all(bytes(damaged))


# Spools


def spool_of(count: int, length: int = 1_000) -> Spool[tuple[int, str]]:
    spool: Spool[tuple[int, str]] = Spool(tuple[int, str], "the values")
    for number in range(count):
        spool.add((number, "x" * length))
    return spool


@pytest.mark.parametrize(("count", "length"), [(0, 1), (3, 1), (3_000, 1_000), (5, 700_000)])
def test_a_spool_gives_its_values_in_order_singly_and_again_after_more_came(count: int, length: int) -> None:
    spool = spool_of(count, length)
    for _ in range(2):
        assert [number for number, _ in spool] == list(range(len(spool)))
        walks = zip(spool, spool, strict=True)  # two at the same time
        assert all(one == other for one, other in walks)
        spool.add((len(spool), "more"))
        assert spool.at(len(spool) - 1) == (len(spool) - 1, "more")
        assert spool.at(0)[0] == 0
    assert len(spool) == count + 2
    assert spool.size == sum(len(record_of(encode(value))) for value in spool)
    spool.close()


@pytest.mark.parametrize("place", [3, 15, 20])
def test_a_spool_that_was_damaged_says_so(place: int) -> None:
    spool = spool_of(3_000)
    assert spool.at(0) == (0, "x" * 1_000)
    spool._file.seek(place)
    spool._file.write(b"?")
    for read in (lambda: list(spool), lambda: spool.at(0)):
        with pytest.raises(
            OutputError, match=r"^reading the values from temporary disk space in .* failed: a record is"
        ):
            read()


def test_a_small_spool_makes_no_file() -> None:
    assert not spool_of(10)._file._rolled  # type: ignore[attr-defined]


def test_a_spool_finds_each_value_in_any_order() -> None:
    spool = spool_of(1_000, 300)
    for number in random.Random(1).sample(range(1_000), 300):
        assert spool.at(number) == (number, "x" * 300)
    for beyond in (-1, 1_000):
        with pytest.raises(IndexError, match=f"{beyond} of 1000 values"):
            spool.at(beyond)


# Columns of numbers


def filled(count: int, file: Spool[bytes]) -> NumberTable:
    table = NumberTable({"score": "d", "row": "I", "code": "B"}, file)
    for number in range(count):
        table.last["score"].append(number / 7)
        table.last["row"].append(number)
        table.last["code"].append(number % 3)
        table.end_entry()
    return table


@pytest.mark.parametrize(
    "count", [0, 1, _BLOCK_ENTRIES - 1, _BLOCK_ENTRIES, _BLOCK_ENTRIES + 1, 3 * _BLOCK_ENTRIES + 5]
)
def test_columns_keep_every_number_and_little_of_it_in_memory(count: int) -> None:
    file: Spool[bytes] = Spool(bytes, "the numbers")
    table, other = filled(count, file), filled(10, file)
    assert (len(table), len(other)) == (count, 10)
    assert table.column("score") == array("d", [number / 7 for number in range(count)])
    assert table.column("row") == array("I", range(count))
    assert bytes(table.column("code")) == bytes(number % 3 for number in range(count))
    assert len(table.last["row"]) == count % _BLOCK_ENTRIES
    assert other.column("row") == array("I", range(10))


def test_columns_of_parts_are_those_of_the_whole() -> None:
    table = NumberTable({"score": "d", "row": "I", "code": "B"}, Spool(bytes, "the numbers"))
    for count in (0, 5, 2 * _BLOCK_ENTRIES, 7):
        state = filled(count, Spool(bytes, "the numbers")).state()
        table.extend({**state, "code": bytearray(state["code"])})  # as it comes from a file
    rows = [*range(5), *range(2 * _BLOCK_ENTRIES), *range(7)]
    assert len(table) == len(rows)
    assert table.column("row") == array("I", rows)
    assert table.column("code") == array("B", [row % 3 for row in rows])


def test_a_column_may_have_fewer_numbers_than_the_others() -> None:
    table = NumberTable({"all": "d", "some": "d"}, Spool(bytes, "the numbers"))
    for number in range(_BLOCK_ENTRIES + 10):
        table.last["all"].append(number)
        table.last["some"].extend([number] * (number % 2))
        table.end_entry()
    assert table.column("some") == array("d", range(1, _BLOCK_ENTRIES + 10, 2))
