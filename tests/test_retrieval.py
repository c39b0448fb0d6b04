"""Retrieval against gold ids: the measures by hand and by a second implementation, the ids, the files."""

import csv
import doctest
import json
import pickle
import re
import zipfile
from dataclasses import dataclass
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from files import write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval.errors import InputError, OutputError, TableError
from rag_eval.report.retrieval_report import write_retrieval
from rag_eval.retrieval import (
    GOLD_NAMES,
    LABELS,
    RETRIEVED_NAMES,
    ContextRecall,
    QueryIds,
    RetrievalScores,
    RetrievalTally,
    average_precision,
    document_f1,
    document_precision,
    document_recall,
    hit_rate_at_k,
    label_of,
    ndcg_at_k,
    normalise_id,
    parse_documents,
    parse_ids,
    parse_query_id,
    precision_at_k,
    rank_documents,
    recall_at_k,
    reciprocal_rank,
)
from rag_eval.retrieval.from_files import QueryDocuments, evaluate_files, read_documents
from rag_eval.tables import delimited
from rag_eval.tables.delimited import TextForm
from rag_eval.tables.record_files import ReadOptions, open_records
from rag_eval.tables.selection import Selection

UUID = "27c682dc-c97b-4c3e-b41c-999c65264a6d"
OTHER = "417fbc69-80f9-4b53-8b5c-1c9cdd2bb0e9"
IDEAL_2 = 1 + 1 / log2(3)

# ranking, gold: recall, precision, F1, reciprocal rank, average precision, recall@2, precision@2, hit rate@2, NDCG@10
BY_HAND = [
    ("ab", "ab", 1, 1, 1, 1, 1, 1, 1, 1, 1),
    ("ba", "ab", 1, 1, 1, 1, 1, 1, 1, 1, 1),
    ("a", "a", 1, 1, 1, 1, 1, 1, 1 / 2, 1, 1),
    ("xa", "a", 1, 1 / 2, 2 / 3, 1 / 2, 1 / 2, 1, 1 / 2, 1, 1 / log2(3)),
    ("axyz", "ab", 1 / 2, 1 / 4, 1 / 3, 1, 1 / 2, 1 / 2, 1 / 2, 1, 1 / IDEAL_2),
    ("xxa", "a", 1, 1 / 2, 2 / 3, 1 / 2, 1 / 2, 1, 1 / 2, 1, 1 / log2(3)),
    ("aab", "ab", 1, 1, 1, 1, 1, 1, 1, 1, 1),
    ("xyab", "ab", 1, 1 / 2, 2 / 3, 1 / 3, 5 / 12, 0, 0, 0, (1 / log2(4) + 1 / log2(5)) / IDEAL_2),
    ("xy", "ab", 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ("", "ab", 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ("ab", "", None, None, None, None, None, None, None, None, None),
    ("", "", None, None, None, None, None, None, None, None, None),
]


@pytest.mark.parametrize(("ranking", "gold", *"rpfmaqkhn"), BY_HAND)
def test_measures_have_the_values_computed_by_hand(ranking, gold, r, p, f, m, a, q, k, h, n):
    """Duplicates count once; nothing retrieved is 0; no gold is None; one of two gold documents is no 1.0."""
    ranking, gold = list(ranking), list(gold)
    assert document_recall(ranking, gold) == pytest.approx(r)
    assert document_precision(ranking, gold) == pytest.approx(p)
    assert document_f1(ranking, gold) == pytest.approx(f)
    assert reciprocal_rank(ranking, gold) == pytest.approx(m)
    assert average_precision(ranking, gold) == pytest.approx(a)
    assert recall_at_k(ranking, gold, 2) == pytest.approx(q)
    assert precision_at_k(ranking, gold, 2) == pytest.approx(k)
    assert hit_rate_at_k(ranking, gold, 2) == h
    assert ndcg_at_k(ranking, gold, 10) == pytest.approx(n)


def test_rank_ten_counts_in_ndcg_10_and_rank_eleven_does_not():
    filler = [f"x{number}" for number in range(20)]
    assert ndcg_at_k([*filler[:9], "a"], ["a"]) == pytest.approx(1 / log2(11))
    assert ndcg_at_k([*filler[:10], "a"], ["a"]) == 0
    twelve = [f"g{number}" for number in range(12)]
    assert ndcg_at_k(twelve[:10], twelve) == 1, "no ranking has room for more than ten in its first ten"


@pytest.mark.parametrize("k", [0, -1, 2.5])
@pytest.mark.parametrize("gold", [["a"], []])
def test_what_is_no_rank_is_refused_as_a_cutoff(k, gold):
    for measure in (recall_at_k, precision_at_k, ndcg_at_k, hit_rate_at_k):
        with pytest.raises(ValueError, match="from 1 upwards"):
            measure(["a"], gold, k)
    with pytest.raises(ValueError, match="from 1 upwards"):
        RetrievalTally([k])


def test_a_text_is_not_taken_for_a_list_of_letters():
    with pytest.raises(TypeError, match="list of document ids"):
        document_recall(["a"], "abc")
    with pytest.raises(TypeError, match="list of document ids"):
        document_recall("abc", ["a"])


# --- properties ---------------------------------------------------------------------------------------

ids = st.sampled_from([f"d{number}" for number in range(30)])
rankings = st.lists(ids, max_size=40)
gold_sets = st.sets(ids, min_size=1, max_size=15)
cutoffs = st.integers(1, 25)


@pytest.mark.slow
@given(rankings, gold_sets, cutoffs)
def test_every_measure_is_in_0_to_1_and_duplicates_change_nothing(ranking, gold, k):
    values = RetrievalScores.of("q", ranking, gold).values((k,))
    assert all(0 <= value <= 1 for value in values.values())
    assert RetrievalScores.of("q", dict.fromkeys(ranking), gold).values((k,)) == values


@pytest.mark.slow
@given(gold_sets, rankings)
def test_all_gold_on_top_is_exactly_one(gold, rest):
    """An exact 1.0, not 0.9999999999: no epsilon, and the same order of additions above and below."""
    ranking = [*gold, *rest]
    assert ndcg_at_k(ranking, gold) == 1.0
    assert average_precision(ranking, gold) == 1.0
    assert reciprocal_rank(ranking, gold) == 1.0


@given(rankings, gold_sets, cutoffs)
def test_a_longer_look_never_finds_less(ranking, gold, k):
    assert (
        recall_at_k(ranking, gold, k) <= recall_at_k(ranking, gold, k + 1) <= document_recall(ranking, gold)
    )
    assert hit_rate_at_k(ranking, gold, k) == (recall_at_k(ranking, gold, k) > 0)


@given(rankings, gold_sets, st.integers(0, 38))
def test_moving_a_gold_document_up_never_costs(ranking, gold, place):
    ranking = list(dict.fromkeys(ranking))
    if place + 1 < len(ranking) and ranking[place + 1] in gold:
        better = [*ranking]
        better[place], better[place + 1] = better[place + 1], better[place]
        for measure in (ndcg_at_k, average_precision, reciprocal_rank):
            assert measure(better, gold) >= measure(ranking, gold) - 1e-12


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(ids, max_size=40, unique=True), gold_sets), min_size=1, max_size=12))
def test_every_value_agrees_with_ir_measures(queries):
    """Second implementation: trec_eval's own code, by way of ir_measures, query by query and on average."""
    ir = pytest.importorskip("ir_measures")
    names = {
        ir.SetR: "doc_recall", ir.SetP: "doc_precision", ir.SetF: "doc_f1", ir.nDCG @ 10: "ndcg_10",
        ir.RR: "reciprocal_rank", ir.AP: "average_precision", ir.R @ 3: "recall_3", ir.P @ 3: "precision_3",
        ir.nDCG @ 3: "ndcg_3", ir.R @ 20: "recall_20", ir.P @ 20: "precision_20", ir.nDCG @ 20: "ndcg_20",
        ir.Success @ 3: "hit_rate_3", ir.Success @ 20: "hit_rate_20",
    }  # fmt: skip
    run = {str(n): {d: -float(rank) for rank, d in enumerate(r)} for n, (r, _) in enumerate(queries)}
    qrels = {str(n): dict.fromkeys(gold, 1) for n, (_, gold) in enumerate(queries)}
    theirs = {(v.query_id, names[v.measure]): v.value for v in ir.iter_calc(list(names), qrels, run)}

    tally = RetrievalTally((3, 20))
    for number, (ranking, gold) in enumerate(queries):
        scores = RetrievalScores.of(str(number), ranking, gold)
        tally.add(scores)
        for name, value in scores.values((3, 20)).items():
            assert value == pytest.approx(theirs[str(number), name], abs=1e-9), name
    for name, mean in tally.summary().means.items():
        their_mean = sum(value for (_, n), value in theirs.items() if n == name) / len(queries)
        assert mean == pytest.approx(their_mean, abs=1e-9), name


# --- ids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "document"),
    [
        (f"doc-<urn:uuid:{UUID}>::chunk-0", UUID),
        (f"doc-<urn:uuid:{UUID.upper()}>::chunk-17", UUID),
        (f"<urn:uuid:{UUID}>", UUID),
        (f"urn:uuid:{UUID}", UUID),
        (f"URN:UUID:{UUID}", UUID),
        (f"  {UUID.upper()} ", UUID),
        (f"doc-{UUID}", UUID),
        (f"{UUID}::chunk-3", UUID),
        (f"{UUID}-draft", f"{UUID}-draft"),
        (f"<{UUID}", f"<{UUID}"),
        ("doc-<handbook>::chunk-2", "handbook"),
        ("<handbook>", "handbook"),
        ("handbook::chunk-2", "handbook"),
        ("doc-12::chunk-2", "doc-12"),
        ("doc-12", "doc-12"),
        ("Handbook", "Handbook"),
        ("handbook::chunk-x", "handbook::chunk-x"),
        ("https://example.org/a?b=1::chunk-0", "https://example.org/a?b=1"),
        ("Ōe Kenzaburō", "Ōe Kenzaburō"),
    ],
)
def test_chunk_ids_and_gold_ids_of_a_document_become_the_same(text, document):
    assert normalise_id(text) == document
    assert normalise_id(document) == document, "a second time changes nothing"


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_is_no_document_id(blank):
    with pytest.raises(ValueError, match="blank"):
        normalise_id(blank)


def test_the_first_chunk_of_a_document_gives_its_rank():
    chunks = ["b::chunk-4", "a::chunk-1", "b::chunk-0", "c", "a"]
    assert rank_documents(chunks) == ("b", "a", "c")


class Array:
    """Stands for a numpy array, which is what pandas gives for a list column."""

    def tolist(self):
        return ["a", "b"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (f"['<urn:uuid:{UUID}>']", (f"<urn:uuid:{UUID}>",)),
        ('["a", "b"]', ("a", "b")),
        ("['a', 'b']", ("a", "b")),
        ("""["it's", 'b']""", ("it's", "b")),
        ("""['say "a"', "b"]""", ('say "a"', "b")),
        (r"""['a\\b', 'c']""", (r"a\b", "c")),
        ("[1, 2]", ("1", "2")),
        ("[1, 'b']", ("1", "b")),
        ([np.int64(1), np.str_("b")], ("1", "b")),
        ("[]", ()),
        (" [ ] ", ()),
        ('["Albert Einstein", "a, b"]', ("Albert Einstein", "a, b")),
        ("a || b", ("a", "b")),
        ("a||b", ("a", "b")),
        ("Albert Einstein || b", ("Albert Einstein", "b")),
        ("a", ("a",)),
        (f"doc-<urn:uuid:{UUID}>::chunk-0", (f"doc-<urn:uuid:{UUID}>::chunk-0",)),
        ("007", ("007",)),
        (7, ("7",)),
        (["a", 7], ("a", "7")),
        (("a", " b "), ("a", "b")),
        (Array(), ("a", "b")),
        ("", ()),
        ("  ", ()),
        (None, ()),
        (float("nan"), ()),
        ([], ()),
    ],
)
def test_ids_are_read_from_every_documented_form(cell, expected):
    assert parse_ids(cell) == expected


@pytest.mark.parametrize(
    "cell",
    [
        7.5, True, {"a": 1}, {"a"}, b"a", [7.5], [None], [""], [["a"]], ["a\nb"], ["\ud800"], ["nan"],
        "['a' 'b']", "['a'", '["a", 7.5]', '["a", null]', '["a"], ["b"]', '["a"] tail', "[a, b]", "('a', 'b')",
        '{"a": 1}', "a, b", "a;b", "a b", "a\nb", "A passage that somebody wrote.", "a || ", "|| a", "||",
        "None", "nan", "NULL", "N/A", "#N/A", "#REF!", "['a', __import__('os')]",
        "[" * 100_000, "['" + "\\" * 9 + "']",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_was_expected(cell):
    """Above all no iteration over characters, and no two ids glued into one as numpy's print invites."""
    with pytest.raises(
        ValueError, match=r'is not a list of document ids; expected \["id", …\] or id \|\| id$'
    ):
        parse_ids(cell)


safe_text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).filter(
    lambda text: (
        text.strip() == text and text[0] != "#" and text.casefold() not in {"none", "null", "nan", "n/a"}
    )
)


@pytest.mark.slow
@given(st.lists(safe_text))
def test_any_list_survives_json_and_pythons_print(texts):
    assert parse_ids(json.dumps(texts)) == tuple(texts)
    assert parse_ids(repr(texts)) == tuple(texts)


@given(st.text())
def test_no_text_does_anything_but_parse_or_be_refused(text):
    try:
        found = parse_ids(text)
    except ValueError:
        return
    assert all(normalise_id(one) for one in found)


UUIDS = st.uuids().map(str) | st.sampled_from([UUID, UUID.upper(), OTHER])
CHUNK_IDS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "doc-", "DOC-", "<"]),
    st.builds(
        str.format, st.sampled_from(["<urn:uuid:{}>", "urn:uuid:{}", "{}", "<URN:UUID:{}>", "<{}"]), UUIDS
    )
    | st.sampled_from(["handbook", "D12", "a b", "none", "", "<faq>", "a::b", "#N/A", "x_1", "#1"]),
    st.sampled_from(["", "::chunk-0", "::chunk-17", "::chunk-x", " "]),
    st.sampled_from(["", "", "", "'", " "]),
)
LISTS = st.lists(CHUNK_IDS, max_size=5)
CELLS = st.one_of(
    LISTS,
    LISTS.map(repr),
    LISTS.map(json.dumps),
    LISTS.map(" || ".join),
    LISTS.map(lambda ids: f"['{chr(39).join(ids)}']"),
    LISTS.map(lambda ids: str(ids).replace(", ", ",")),
    LISTS.map(lambda ids: str(ids).replace("']", "',]")),
    CHUNK_IDS,
    st.none(),
)


@pytest.mark.slow
@settings(max_examples=400)
@given(CELLS)
def test_the_short_way_from_a_cell_to_documents_is_the_long_one(cell):
    """Lists of URNs are taken as a whole, which must change neither what is found nor what is refused."""
    try:
        expected = rank_documents(parse_ids(cell))
    except ValueError as error:
        with pytest.raises(ValueError, match=f"^{re.escape(str(error))}$"):
            parse_documents(cell)
    else:
        assert parse_documents(cell) == expected


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_list_of_urns_is_one_document_each(quote):
    ids = [f"doc-<urn:uuid:{OTHER}>::chunk-3", f"urn:uuid:{UUID.upper()}", f"<urn:uuid:{OTHER}>"]
    assert parse_documents(f"[{', '.join(f'{quote}{one}{quote}' for one in ids)}]") == (OTHER, UUID)


@pytest.mark.parametrize(
    ("cell", "qid"),
    [("01", "01"), ("1", "1"), (1, "1"), (" q ", "q"), (0, "0"), (np.int64(7), "7"), (np.uint8(7), "7")],
)
def test_query_ids_are_text(cell, qid):
    assert parse_query_id(cell) == qid


@pytest.mark.parametrize(
    "cell", [None, "", " ", 1.0, True, np.bool_(True), np.float64(1), "nan", ["1"], float("nan")]
)
def test_what_is_no_query_id_is_refused(cell):
    with pytest.raises(ValueError, match="is not a query id"):
        parse_query_id(cell)


# --- the evaluator ------------------------------------------------------------------------------------


@dataclass
class Result:
    """The shape in which a RAG system hands over what it found: `context` holds the passages' text."""

    qid: str
    context: list[str]
    doc_ids: list[str]


@dataclass
class Reference:
    qid: str
    context: list[str]
    document_ids: list[str]


def test_context_recall_evaluates_objects():
    results = [
        Result("1", ["some text"], [f"doc-<urn:uuid:{OTHER}>::chunk-3", f"doc-<urn:uuid:{UUID}>::chunk-0"]),
        Result("2", ["some text"], ["x::chunk-0", "x::chunk-1"]),
    ]
    references = [
        Reference("1", ["gold text"], [f"<urn:uuid:{UUID.upper()}>"]),
        Reference("2", ["gold text"], ["x", "y"]),
    ]
    evaluation = ContextRecall().evaluate(results, references)
    assert evaluation.metrics["avg_context_recall"] == pytest.approx((1 + 1 / 2) / 2)
    assert evaluation.metrics["avg_context_precision"] == pytest.approx((1 / 2 + 1) / 2)
    assert evaluation.metrics["avg_context_f1"] == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert evaluation.metrics["ndcg_10"] == pytest.approx((1 / log2(3) + 1 / IDEAL_2) / 2)
    assert evaluation.metrics["mrr"] == pytest.approx((1 / 2 + 1) / 2)
    assert evaluation.metrics["map"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert evaluation.metrics["hit_rate_5"] == 1
    assert evaluation.metrics["scored_queries"] == 2
    second = evaluation.rows[1]
    assert (second.retrieved_docs_count, second.gold_docs_count, second.correct_docs_count) == (1, 2, 1)


@pytest.mark.parametrize(
    "field", ["doc_ids", "retrieved_docs", "retrieved_doc_ids", "retrieved_ids", "context"]
)
@pytest.mark.parametrize("gold", ["document_ids", "gold_docs", "gold_doc_ids", "gold_ids", "context"])
@pytest.mark.parametrize("qid", ["qid", "query_id", "question_id", "id"])
def test_mappings_do_as_well_under_every_documented_name(qid, field, gold):
    evaluation = ContextRecall().evaluate([{qid: "1", field: "a || b"}], [{qid: "1", gold: "['a']"}])
    assert evaluation.metrics["avg_context_recall"] == 1
    assert evaluation.metrics["avg_context_precision"] == 1 / 2


def test_what_does_not_match_is_counted_and_treated_as_documented():
    """Empty gold stays out of the means, a missing result is a 0, a result without reference is left out.

    Query 4 has neither gold documents nor a result: it is not scored, so it is not counted as scored 0.
    """
    results = [
        {"qid": "1", "doc_ids": ["a"]},
        {"qid": "01", "doc_ids": ["a"]},
        {"qid": "3", "doc_ids": ["a"]},
    ]
    references = [
        {"qid": "1", "gold_docs": ["a"]},
        {"qid": "2", "gold_docs": ["a"]},
        {"qid": "3", "gold_docs": []},
        {"qid": "4", "gold_docs": None},
    ]
    summary = ContextRecall().evaluate(results, references).summary
    assert summary.means["doc_recall"] == 1 / 2
    assert summary.scored == 2
    assert summary.not_applicable == QueryIds(2, ("3", "4"))
    assert summary.without_result == QueryIds(1, ("2",))
    assert summary.without_reference == QueryIds(1, ("01",))
    assert summary.queries == 4


def test_without_any_gold_there_is_no_mean():
    metrics = ContextRecall().evaluate([], [{"qid": "1", "gold_docs": []}]).metrics
    assert metrics["avg_context_recall"] is None
    assert metrics["ndcg_10"] is None
    assert metrics["scored_queries"] == 0


def test_a_result_with_an_empty_id_list_does_not_fall_back_to_its_passages():
    rows = ContextRecall().evaluate([Result("1", ["a"], [])], [Reference("1", ["t"], ["a"])]).rows
    assert rows[0].retrieved_docs_count == 0
    assert rows[0].recall == 0


def test_every_problem_is_reported_at_once():
    results = [{"qid": "1", "doc_ids": "a b"}, {"doc_ids": "a"}, {"qid": "2"}]
    references = [{"qid": "1", "gold_docs": "a"}, {"qid": 1, "gold_docs": "b"}, 7]
    with pytest.raises(InputError) as caught:
        ContextRecall().evaluate(results, references)
    assert caught.value.problems == (
        "result 1: 'a b' is not a list of document ids; expected [\"id\", …] or id || id",
        "result 2: has none of the fields qid, query_id, question_id, id; add one",
        "result 3: has none of the fields doc_ids, retrieved_docs, retrieved_doc_ids, retrieved_ids, context; add one",
        "reference 2: query id '1' occurs more than once",
        "reference 3: has none of the fields qid, query_id, question_id, id; add one",
    )


def test_examples_are_few_however_many_there_are():
    tally = RetrievalTally()
    for number in range(25):
        tally.add_without_reference(str(number))
    assert tally.summary().without_reference == QueryIds(25, tuple(map(str, range(10))))


@pytest.mark.slow
def test_means_of_many_patterns_of_hits_are_those_of_the_queries():
    """More patterns than are counted before they are summed up, and some of them often."""
    every = [
        RetrievalScores(str(number), (1 + number % 97,), 100 + number % 89, 1 + number % 3)
        for number in range(12_000)
    ]
    tally = RetrievalTally((5,))
    for scores in every:
        tally.add(scores)
    for name, mean in tally.summary().means.items():
        assert mean == pytest.approx(sum(one.values((5,))[name] for one in every) / len(every), abs=1e-12)
    assert tally.summary() == tally.summary()


@pytest.mark.slow
def test_a_tally_holds_few_patterns_of_hits_however_many_there_are():
    def size(patterns: int) -> int:
        tally = RetrievalTally((5,))
        for number in range(1, patterns + 1):
            tally.add(RetrievalScores("q", (number,), number, 1))
        return len(pickle.dumps(tally))

    assert size(5_000) < size(4_000)


def test_by_default_measures_are_taken_at_5_and_10():
    """The names are those of files and of `metrics`; hit rates come last, so that older names keep their places."""
    names = (
        *("doc_recall", "doc_precision", "doc_f1", "ndcg_10", "reciprocal_rank", "average_precision"),
        *("recall_5", "precision_5", "ndcg_5", "recall_10", "precision_10", "hit_rate_5", "hit_rate_10"),
    )
    assert tuple(RetrievalTally().summary().means) == names
    assert ContextRecall().cutoffs == (5, 10)
    public = {
        "doc_recall": "avg_context_recall", "doc_precision": "avg_context_precision", "doc_f1": "avg_context_f1",
        "reciprocal_rank": "mrr", "average_precision": "map",
    }  # fmt: skip
    assert tuple(ContextRecall().evaluate([], []).metrics) == (
        *(public.get(name, name) for name in names),
        *("scored_queries", "not_applicable_queries", "queries_without_result", "results_without_reference"),
    )


def test_the_measures_of_the_report_have_labels():
    assert set(LABELS) <= set(RetrievalScores.of("q", [], []).values())


# --- files --------------------------------------------------------------------------------------------

RESULTS = [("01", ["a::chunk-0", "b::chunk-1"]), ("1", ["b::chunk-0"]), ("z", ["a"]), ("e", [])]
REFERENCES = [("1", ["b", "c"]), ("01", ["b"]), ("e", ["a"]), ("m", ["a"]), ("n", [])]


def write_documents(path: Path, name: str, rows: list[tuple[str, list[str]]]) -> None:
    as_cell = {".csv": str, ".tsv": str, ".xlsx": " || ".join}.get(path.suffix, list)
    lines = [[None, qid, "several\nlines", as_cell(documents) or None] for qid, documents in rows]
    write_table(path, ["note", "QID", "Question", name], *lines)


def documents(path: Path, role: str = "retrieved_docs") -> list[QueryDocuments]:
    names = {"retrieved_docs": RETRIEVED_NAMES, "gold_docs": GOLD_NAMES}
    with open_records(path) as records:
        return list(read_documents(records, role, names[role]))


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".json", ".jsonl", ".xlsx", ".parquet"])
def test_every_format_gives_the_same_scores(tmp_path, suffix):
    """File to file equals the evaluation in memory, whatever the format and the order of the rows."""
    results, references, output = (tmp_path / name for name in (f"r{suffix}", f"g{suffix}", "scores.jsonl"))
    write_documents(results, "Doc IDs", RESULTS)
    write_documents(references, "Gold_Docs", REFERENCES)
    summary, place = write_retrieval(results, references, output)
    assert place == output
    expected = ContextRecall().evaluate(
        [{"qid": qid, "doc_ids": documents} for qid, documents in RESULTS],
        [{"qid": qid, "gold_docs": documents} for qid, documents in REFERENCES],
    )
    assert summary == expected.summary
    assert summary.means["doc_recall"] == pytest.approx((1 / 2 + 1 + 0 + 0) / 4)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["qid"] for line in lines] == [qid for qid, _ in REFERENCES]
    for line, row in zip(lines, expected.rows, strict=True):
        counts = {
            "qid": row.qid,
            "has_result": row.has_result,
            "retrieved_docs_count": row.retrieved_docs_count,
            "gold_docs_count": row.gold_docs_count,
            "correct_docs_count": row.correct_docs_count,
        }
        assert line == counts | dict(row.values())
    assert {path.name for path in tmp_path.iterdir()} == {results.name, references.name, output.name}


def test_rows_are_read_with_their_place_and_normalised(tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text(f"id\tcontext\n01\t['doc-<urn:uuid:{UUID}>::chunk-1', 'b']\n\n\t\n2\tb\n")
    assert [tuple(row) for row in documents(path)] == [
        (2, "01", (UUID, "b")),
        (5, "2", ("b",)),
    ]
    assert [row.documents for row in documents(path, "gold_docs")] == [(UUID, "b"), ("b",)]


@pytest.mark.slow
@given(st.lists(st.lists(st.text("a\"\t\r\n,' ", max_size=4), min_size=2, max_size=2), max_size=5))
def test_tabs_separate_cells_as_the_csv_module_has_it(rows):
    """Whatever the cells hold: the lines that are cut without the csv module are those that it would cut alike."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "r.tsv")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t").writerows([["qid", "doc_ids"], *rows])
        with path.open(newline="", encoding="utf-8") as file:
            expected = [(n, cells) for n, cells in enumerate(csv.reader(file, delimiter="\t"), 1) if cells]
        with delimited.open_records(path, TextForm()) as records:
            assert list(records.rows) == expected
            assert records.problems == []


def test_excel_rows_keep_their_numbers_across_blank_rows_and_numbers_are_digits(tmp_path):
    rows = documents(write_table(tmp_path / "r.xlsx", ["qid", "doc_ids"], [], [0], [], [1, 7]))
    assert [tuple(row) for row in rows] == [(3, "0", ()), (5, "1", ("7",))]


def test_rows_are_counted_as_in_every_other_input(tmp_path):
    """The header of a Parquet file is its first row; the objects of a .json file are counted from one."""
    gold = tmp_path / "gold.csv"
    gold.write_text("qid,gold_docs\na,x\n")
    for suffix, first in ((".parquet", 2), (".json", 1)):
        path = tmp_path / f"r{suffix}"
        write_documents(path, "doc_ids", [("a", ["x"]), ("b", ["y"]), ("a", ["z"])])
        assert [row.row for row in documents(path)] == [first, first + 1, first + 2]
        with pytest.raises(
            TableError,
            match=rf"^r{suffix}, rows {first} and {first + 2}: query id 'a' occurs more than once; write all",
        ):
            evaluate_files(path, gold)


def test_files_without_a_common_query_are_refused(tmp_path):
    """As those of a data frame whose ids became floats: all measures would be 0."""
    (tmp_path / "r.csv").write_text("qid,doc_ids\n1,a\n2,b\n")
    (tmp_path / "g.csv").write_text("qid,gold_docs\n1.0,a\n2.0,b\n")
    with pytest.raises(TableError) as caught:
        evaluate_files(tmp_path / "r.csv", tmp_path / "g.csv")
    assert str(caught.value) == (
        "r.csv and g.csv have no query in common; use the same ids in both (such as '1' and '1.0', which are compared "
        "as texts)"
    )
    (tmp_path / "g.csv").write_text("qid,gold_docs\n3,a\n2,b\n")
    assert evaluate_files(tmp_path / "r.csv", tmp_path / "g.csv").means["doc_recall"] == 0.5
    without_result = ReadOptions(selection=Selection.parse(None, None, ["qid = 3"]))
    assert (
        evaluate_files(tmp_path / "r.csv", tmp_path / "g.csv", reading=without_result).means["doc_recall"]
        == 0
    )


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_may_be_separated_by_semicolons(tmp_path, mark):
    """As Excel writes it in many countries. A header with a comma is separated by commas, whatever else it holds."""
    (tmp_path / "r.csv").write_text(
        mark + "qid;doc_ids\r\nq1;\"['a', 'b']\"\r\nq2;a || b\r\n", encoding="utf-8"
    )
    assert [row.documents for row in documents(tmp_path / "r.csv")] == [("a", "b")] * 2
    (tmp_path / "s.csv").write_text(mark + '"a;b",qid,doc_ids\n;,q1,a\n', encoding="utf-8")
    assert [row.documents for row in documents(tmp_path / "s.csv")] == [("a",)]


def test_a_formula_that_was_never_computed_is_not_taken_for_nothing_retrieved(tmp_path):
    """Its cell reads as blank. A result that is an empty text is a result, and other columns do not matter."""
    write_table(tmp_path / "r.xlsx", ["note", "qid", "doc_ids"], ["=1", "q1", "a"], ["=2", "q2", "=A2"])
    with pytest.raises(
        TableError,
        match=r"^r\.xlsx, sheet 'Sheet', row 3, column 'doc_ids' \(C\): a formula without a stored result; open .*$",
    ):
        list(documents(tmp_path / "r.xlsx"))
    with (
        zipfile.ZipFile(tmp_path / "r.xlsx") as made,
        zipfile.ZipFile(tmp_path / "s.xlsx", "w") as computed,
    ):
        for name in made.namelist():
            computed.writestr(name, made.read(name).replace(b'<c r="C3">', b'<c r="C3" t="str">'))
    assert [row.documents for row in documents(tmp_path / "s.xlsx")] == [("a",), ()]


def test_passages_in_a_context_column_do_not_hide_the_column_with_ids(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("id,qid,context,Doc-IDs\n1,q,A passage of text.,a\n")
    assert [tuple(row) for row in documents(path)] == [(2, "q", ("a",))]


BAD_FILES = [
    ("r.tsv", "qid\tdoc_ids\n1\ta b\n\ta\n3\tnan\n", [
        "r.tsv, row 2, column 'doc_ids' (B): 'a b' is not a list of document ids; expected [\"id\", …] or id || id",
        "r.tsv, row 3, column 'qid' (A): '' is not a query id",
        "r.tsv, row 4, column 'doc_ids' (B): 'nan' is not a list of document ids; expected [\"id\", …] or id || id",
    ]),
    ("r.csv", "qid,doc_ids\n1,a\n2,b\n1,c\n", [
        "r.csv, rows 2 and 4: query id '1' occurs more than once; write all documents of a query in one row, "
        "as id || id"
    ]),
    ("r.csv", "qid,doc_ids\n1,a,b\n", [
        "r.csv, row 2 (line 2): 3 cells, but the header has 2; "
        "put text that contains the separator or line ends between double quotes"
    ]),
    ("r.csv", 'qid,doc_ids\n1,"a\n', [
        "r.csv, row 2 (line 2): a text that begins with a double quote has no end; check the quotes"
    ]),
    ("r.csv", "qid,doc_ids\n", ["r.csv: contains no queries; add a row for each query"]),
    ("r.csv", "", [
        "r.csv: is an empty file; export or download it again"
    ]),
    ("r.csv", "qid,doc_ids\n1\n2,a\n", [
        "r.csv, row 2: has fewer cells than the header; add the missing ones, and put a text with line breaks in "
        "double quotes"
    ]),
    ("r.csv", "qid,Docs\n", [
        "r.csv: has none of the columns doc_ids, retrieved_docs, retrieved_doc_ids, retrieved_ids, context; "
        "rename one, or add --map COLUMN=retrieved_docs (found: 'qid' (A), 'Docs' (B))"
    ]),
    ("r.csv", "qid,doc_ids,Retrieved Docs\n", [
        "r.csv: the columns 'doc_ids' (B) and 'Retrieved Docs' (C) mean the same; keep one of them"
    ]),
    ("r.jsonl", '{"qid": 1, "doc_ids": "a"}\n{"qid": 2}\n', [
        "r.jsonl, row 2, column 'doc_ids' (B): is missing; write [] if there are no documents"
    ]),
    ("r.jsonl", "{}{}\n", [
        "r.jsonl, line 1: is not JSON (Extra data, column 3); write one record per line"
    ]),
    ("r.json", "{}", [
        "r.json: expected a list of records, or an object with one list of records such as results, data, rows, "
        "examples, samples (found: none); keep one list"
    ]),
    ("r.json", "[1]", [
        'r.json, record 1: is not an object with fields; expected {"query": …, "answer": …}'
    ]),
    ("r.xlsx", "no workbook", [
        "r.xlsx: is a text file, not an Excel workbook; rename it to .csv, "
        "or open it in a spreadsheet program and save it as .xlsx"
    ]),
    ("r.txt", "", [
        "r.txt: cannot read files of type '.txt'; use one of .xlsx .xlsm .xls .ods .csv .tsv .parquet .jsonl .ndjson "
        ".json"
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "problems"), BAD_FILES)
def test_a_bad_file_is_refused_with_place_value_and_remedy(tmp_path, name, text, problems):
    """All bad cells at once; nothing is written, and an older output stays as it was."""
    (tmp_path / name).write_text(text)
    (tmp_path / "gold.csv").write_text("qid,gold_docs\n1,a\n")
    output = tmp_path / "scores.jsonl"
    output.write_text("older")
    with pytest.raises(TableError) as caught:
        write_retrieval(tmp_path / name, tmp_path / "gold.csv", output)
    assert list(caught.value.problems) == problems
    assert output.read_text() == "older"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["r.tsv", "r.csv"])
def test_a_table_in_another_encoding_is_read_with_a_warning(tmp_path, name):
    """What a spreadsheet program saves as plain CSV."""
    path = tmp_path / name
    path.write_bytes(
        "qid\tdoc_ids\ncafé\ta\n".replace("\t", "," if name == "r.csv" else "\t").encode("cp1252")
    )
    told, warned = [], []
    with open_records(path, ReadOptions(tell=told.append, warn=warned.append)) as records:
        assert [row.qid for row in read_documents(records, "retrieved_docs", RETRIEVED_NAMES)] == ["café"]
    separator = "commas" if name == "r.csv" else "tabs"
    assert told == [
        f"{name} (separated by {separator}, Windows-1252): 'qid' (A) -> id of the query, "
        "'doc_ids' (B) -> retrieved documents"
    ]
    assert warned == [
        "The file is not UTF-8 and was read as Windows-1252; check accented letters in the report."
    ]


@pytest.mark.parametrize("name", ["r.json", "r.jsonl"])
def test_a_text_in_another_encoding_is_named_with_the_remedy(tmp_path, name):
    path = tmp_path / name
    path.write_bytes('{"qid": "café", "doc_ids": "a"}\n'.encode("cp1252"))
    with pytest.raises(TableError) as caught:
        list(documents(path))
    assert str(caught.value) == f"{name}: is not UTF-8; save it as UTF-8"


@pytest.mark.parametrize("suffix", [".tsv", ".json", ".jsonl", ".xlsx", ".parquet"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00junk", b"PK\x03\x04", b"[" * 100_000])
def test_a_missing_or_broken_file_is_one_sentence(tmp_path, suffix, content):
    path = tmp_path / f"r{suffix}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TableError, match=rf"^.*r{suffix}(:|, line 1:) .+"):
        list(documents(path))


def test_a_zip_that_is_no_workbook_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "r.xlsx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(TableError, match="is a zip archive, not an Excel workbook"):
        list(documents(tmp_path / "r.xlsx"))


def test_only_so_many_problems_are_spelled_out(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("qid,doc_ids\n" + "1,a b\n" * 1020)
    with pytest.raises(TableError) as caught:
        list(documents(path))
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1] == "and 1,000 more like these"


def test_a_long_passage_beside_the_ids_does_not_disturb(tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text(f"qid\tdoc_ids\tpassage\n1\ta\t{'word ' * 100_000}\n")
    assert [row.documents for row in documents(path)] == [("a",)]


def test_one_file_can_be_results_and_references(tmp_path):
    path = tmp_path / "both.jsonl"
    path.write_text('{"qid": 1, "doc_ids": "a", "gold_docs": "a"}\n')
    assert evaluate_files(path, path).means["doc_recall"] == 1


def test_each_query_is_handed_over_as_it_is_scored(tmp_path):
    write_documents(tmp_path / "r.jsonl", "doc_ids", RESULTS)
    write_documents(tmp_path / "g.jsonl", "gold_docs", REFERENCES)
    seen: list[RetrievalScores] = []
    evaluate_files(tmp_path / "r.jsonl", tmp_path / "g.jsonl", (1,), seen.append)
    assert [(one.qid, one.correct_docs_count, one.has_result) for one in seen] == [
        ("1", 1, True),
        ("01", 1, True),
        ("e", 0, True),
        ("m", 0, False),
        ("n", 0, False),
    ]


# --- what is written ----------------------------------------------------------------------------------


def scored(folder: Path, name: str, qids: list[str], cutoffs: tuple[int, ...] = (1,)) -> Path:
    """The scores of queries that all retrieved 'a' and 'b' and want 'b', and of a last one that wants nothing."""
    rows = [{"qid": qid, "doc_ids": ["a", "b"], "gold_docs": ["b"]} for qid in qids]
    rows.append({"qid": "last", "doc_ids": [], "gold_docs": []})
    (folder / "both.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_retrieval(folder / "both.jsonl", folder / "both.jsonl", folder / name, cutoffs)
    return folder / name


def test_query_ids_of_a_workbook_stay_text(tmp_path):
    """What else is on the sheets is in whole_report.txt, and how they look in look.json."""
    from openpyxl import load_workbook

    ids = ["01", "=1+1", "<r>x</r>"]
    book = load_workbook(scored(tmp_path, "scores.xlsx", ids, (1, 2)))
    assert [cell.value for cell in book["Retrieval"]["A"][1:]] == [*ids, "last"]
    assert {cell.data_type for cell in book["Retrieval"]["A"]} == {"s"}, "no formula comes from data"
    summary = {row[0]: row[1:] for row in book["Summary"].iter_rows(min_row=2, values_only=True)}
    assert summary["Doc Precision"] == (1 / 2, 3, None)
    assert summary["Not applicable, without gold documents"] == (None, 1, "last")


@pytest.mark.parametrize("qid", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1+1", "＋1", "－1", "＠x"])
def test_no_cell_of_a_csv_is_a_formula(tmp_path, qid):
    """With an apostrophe before it, as OWASP advises; other ids and all numbers stay as they are."""
    with scored(tmp_path, "scores.csv", [qid, "1=1"]).open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["qid"] for line in lines] == [f"'{qid}", "1=1", "last"]
    assert (lines[0]["doc_precision"], lines[0]["precision_1"], lines[0]["gold_docs_count"]) == (
        "0.5",
        "0.0",
        "1",
    )
    assert lines[2]["doc_precision"] == ""


def test_a_csv_of_scores_can_be_read_back_as_a_table(tmp_path):
    """Names of queries and scores are those of the JSON lines."""
    fields = scored(tmp_path, "scores.csv", ["1"]).read_text(encoding="utf-8-sig").splitlines()[0].split(",")
    assert fields == list(json.loads(scored(tmp_path, "scores.jsonl", ["1"]).read_text().splitlines()[0]))


def test_the_output_is_another_file_of_a_known_kind_in_a_folder(tmp_path):
    scored(tmp_path, "scores.csv", ["1"])
    path = tmp_path / "both.jsonl"
    with pytest.raises(InputError, match=r"^both\.jsonl: is an input; choose another name with --output$"):
        write_retrieval(path, path, path)
    with pytest.raises(InputError, match=r"^scores\.txt: .* ends in \.xlsx, \.csv or \.jsonl$"):
        write_retrieval(path, path, tmp_path / "scores.txt")
    with pytest.raises(OutputError, match="cannot be written"):
        write_retrieval(path, path, tmp_path / "scores.csv" / "scores.jsonl")


def test_an_older_output_stays_until_the_new_one_is_complete(tmp_path):
    """And its permissions stay even then."""
    for suffix in (".xlsx", ".csv", ".jsonl"):
        output = tmp_path / f"scores{suffix}"
        output.write_text("older")
        output.chmod(0o640)
        (tmp_path / "bad.csv").write_text("qid,doc_ids\n1,a b\n")
        with pytest.raises(TableError):
            write_retrieval(tmp_path / "bad.csv", tmp_path / "bad.csv", output)
        assert output.read_text() == "older"
        scored(tmp_path, output.name, ["1"])
        assert output.read_bytes() != b"older"
        assert output.stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob(".*"))


def test_a_measure_of_every_kind_has_a_heading():
    names = ("doc_f1", "ndcg_10", "recall_3", "precision_3", "ndcg_3", "hit_rate_3")
    headings = ["Doc F1", "NDCG@10", "Doc Recall@3", "Doc Precision@3", "NDCG@3", "Hit Rate@3"]
    assert [label_of(name) for name in names] == headings


# --- documentation ------------------------------------------------------------------------------------


def test_the_examples_of_the_documentation_run(tmp_path, monkeypatch):
    """Every block with a prompt is executed, in order and in one namespace, and prints what it shows."""
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
    section = text.partition("\n## Retrieval\n")[2]
    blocks = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", "python.md", 0)
    assert len(session.examples) >= 10
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(session, out=report.append)
    assert not report, "".join(report)
