"""The offline judge's exact values, function by function, and how much a small change may move a score."""

import asyncio
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_eval.configuration.effective import describe_thresholds, effective_thresholds, idle_thresholds
from rag_eval.configuration.settings import Settings, Thresholds
from rag_eval.metrics.answer_correctness import lenient
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS, METRICS, offline_metrics
from rag_eval.metrics.context_precision import chunk_relevance
from rag_eval.metrics.offline.brief import declines, declines_rightly, given_names, has_no_answer
from rag_eval.metrics.offline.grounding import NOTHING_UNDERSTOOD, ground, ground_part
from rag_eval.metrics.offline.kinds import expected_kind
from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.metrics.offline.support import _Faults, denies, find_denied, support
from rag_eval.metrics.offline.wording import find_exactly, find_similar, raised
from rag_eval.metrics.toxicity import OfflineToxicity
from rag_eval.records import METRIC_LABELS, Case, Outcome, Score
from rag_eval.texts.words import read, read_all, read_claim

DOCS = Path(__file__).parent.parent / "docs" / "background" / "offline-judge-quality.md"
FIXTURES = os.environ.get("RAG_EVAL_FIXTURES", "")
"""A folder with the labelled examples that docs/background/offline-judge-quality.md describes."""


def score(
    metric: str, response: str, *, query: str = "", reference: str | None = None, chunks: tuple[str, ...] = ()
) -> Score:
    subject = Case(2, "bot", query, response, reference, chunks or None)
    return asyncio.run(offline_metrics([metric])[0].judge(subject))


def value(
    metric: str, response: str, *, query: str = "", reference: str | None = None, chunks: tuple[str, ...] = ()
) -> float:
    found = score(metric, response, query=query, reference=reference, chunks=chunks).value
    assert found is not None
    return found


# Thresholds


def test_the_calibrated_thresholds_are_the_documented_ones() -> None:
    rows = re.findall(r"^\| (\w+) \| .*? \| (0\.\d\d) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {metric: float(threshold) for metric, threshold in rows if metric in METRIC_LABELS}
    assert documented == CALIBRATED_THRESHOLDS
    assert CALIBRATED_THRESHOLDS == {
        "answer_correctness": 0.48,
        "faithfulness": 0.62,
        "answer_relevancy": 0.35,
        "context_precision": 0.47,
        "context_recall": 0.54,
    }


ALL_USUAL = Thresholds(**dict.fromkeys(METRIC_LABELS, 0.3))


@pytest.mark.parametrize(
    ("mode", "thresholds", "faithfulness", "others_are_calibrated", "words", "is_idle"),
    [
        ("auto", Thresholds(), 0.62, True, "calibrated for the offline judge", False),
        (
            "auto",
            Thresholds(faithfulness=0.3),
            0.3,
            True,
            "calibrated for the offline judge, except faithfulness from [thresholds]",
            False,
        ),
        (
            "auto",
            ALL_USUAL,
            0.3,
            False,
            "from [thresholds], not those calibrated for the offline judge",
            True,
        ),
        ("calibrated", ALL_USUAL, 0.62, True, "calibrated for the offline judge", False),
        (
            "configured",
            Thresholds(),
            0.3,
            False,
            "from [thresholds], not those calibrated for the offline judge",
            True,
        ),
        (
            "configured",
            Thresholds(faithfulness=0.5),
            0.5,
            False,
            "from [thresholds], not those calibrated for the offline judge",
            False,
        ),
    ],
)
def test_which_thresholds_apply_and_in_which_words(
    mode: str,
    thresholds: Thresholds,
    faithfulness: float,
    others_are_calibrated: bool,
    words: str,
    is_idle: bool,
) -> None:
    settings = Settings(offline={"thresholds": mode}, thresholds=thresholds)
    others = CALIBRATED_THRESHOLDS if others_are_calibrated else dict.fromkeys(METRIC_LABELS, 0.3)
    expected = {**others, "faithfulness": faithfulness}
    assert effective_thresholds(settings, is_proxy=True) == expected
    assert describe_thresholds(settings, is_proxy=True) == words
    assert bool(idle_thresholds(settings, is_proxy=True)) is is_idle
    assert effective_thresholds(settings, is_proxy=False) == thresholds.model_dump()
    assert describe_thresholds(settings, is_proxy=False) == "from [thresholds]"
    assert idle_thresholds(settings, is_proxy=False) == ""


# Words


@pytest.mark.parametrize(
    ("wanted", "given", "missing", "alike", "share"),
    [
        ({"tower"}, {"tower"}, set(), set(), 1.0),
        ({"tower", "bridg"}, {"tower"}, {"bridg"}, set(), 0.5),
        ({"photosynthesi", "light"}, {"photosynthetic", "light"}, set(), {"photosynthesi"}, 0.9),
        ({"building"}, {"buildingsxx"}, set(), {"building"}, 0.8),
        ({"building"}, {"buildingsxxx"}, {"building"}, set(), 0.0),
        ({"abc"}, {"abcd"}, {"abc"}, set(), 0.0),
        ({"abcd"}, {"abce"}, {"abcd"}, set(), 0.0),
        ({"abcde"}, {"abcdf"}, set(), {"abcde"}, 0.8),
    ],
)
def test_words_are_found_as_they_are_or_by_their_beginning(
    wanted: set[str], given: set[str], missing: set[str], alike: set[str], share: float
) -> None:
    found = find_similar(wanted, given)
    assert (found.missing, found.alike) == (missing, alike)
    assert found.share == pytest.approx(share)


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"a1", "a2", "n1", "n2"}, 1.0),
        ({"n1", "n2"}, 1.0),
        ({"a1", "a2"}, 1 / 3),
        ({"n1"}, (2 * 0.5 + 0.5 * (2 - 2 * 0.5)) / 3),
        ({"a1", "n1"}, (2 * 0.5 + 0.5 * (2 - 1 * 0.5)) / 3),
        (set(), 0.0),
    ],
)
def test_words_of_the_query_weigh_less_and_are_understood(given: set[str], share: float) -> None:
    found = find_similar({"a1", "a2", "n1", "n2"}, given)
    assert found.share_beside({"a1", "a2", "x"}, 0.5) == pytest.approx(share)


def test_words_in_another_form_count_less_of_the_query_and_of_the_rest() -> None:
    found = find_similar(
        {"photosynthesi", "building", "tower", "bridg", "arch"}, {"photosynthetic", "buildings", "tower"}
    )
    assert (found.missing, found.alike) == ({"bridg", "arch"}, {"photosynthesi", "building"})
    assert found.share == pytest.approx(1 - 2.4 / 5)
    assert (found.exactly().missing, found.exactly().alike) == (found.missing | found.alike, set())
    assert find_exactly(found.wanted, {"tower", "buildings"}) == (
        found.wanted,
        found.wanted - {"tower"},
        set(),
    )
    asked = {"bridg", "building", "x"}
    found_new = 1 - 1.2 / 3
    assert found.share_beside(asked, 0.5) == pytest.approx(
        (3 * found_new + 0.5 * (2 - 1.2 * (1 - found_new))) / (3 + 0.5 * 2)
    )


def test_with_words_of_the_query_only_or_none_of_them_all_weigh_the_same() -> None:
    found = find_similar({"a1", "a2"}, {"a1"})
    assert found.share_beside({"a1", "a2"}, 0.5) == found.share_beside(set(), 0.5) == 0.5


def test_shares_are_raised_between_nothing_and_everything() -> None:
    assert [raised(share, 1.0) for share in (0.0, 0.5, 1.0)] == [0.0, pytest.approx(2 / 3), 1.0]
    assert [lenient(0.5, length) for length in (0, 2, 52, 102, 500)] == pytest.approx(
        [0.5, 0.5, 2 / 3, 0.75, 0.75]
    )


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("How many towers are there?", "number"),
        ("How deep is it?", "number"),
        ("What percentage is left?", "number"),
        ("When was it built?", "date"),
        ("Which year was it?", "date"),
        ("Who built it?", "name"),
        ("Which city is it in?", "name"),
        ("Why was it built?", None),
        ("Whoever whenever", None),
    ],
)
def test_the_kind_of_answer_is_told_by_the_wording(query: str, kind: str | None) -> None:
    found = expected_kind(query)
    assert (found and found.name) == kind


@pytest.mark.parametrize(
    ("query", "response", "is_given"),
    [
        ("How many?", "330", True),
        ("How many?", "about twenty", True),
        ("How many?", "a few", False),
        ("How many?", "a few [1]", False),
        ("How many?", "330 [1, 2]", True),
        ("Wie viele?", "einige [12]", False),
        ("When?", "in March", True),
        ("When?", "in 1889", True),
        ("When?", "long ago", False),
        ("When?", "long ago [2]", False),
        ("Who?", "Gustave Eiffel", True),
        ("Who?", "gustave eiffel", False),
        ("Who built Paris?", "Paris", False),
        ("Who built Paris?", "The Romans", True),
        ("Who?", "The", False),
        ("Who?", "густав", True),
        ("Who is McDonald's boss?", "McDonald", False),
    ],
)
def test_an_answer_of_the_kind_is_recognised(query: str, response: str, is_given: bool) -> None:
    kind = expected_kind(query)
    assert kind is not None
    assert kind.is_given(response, query) is is_given


# Evidence


def test_grounding_counts_words_two_thirds_and_pairs_one_third() -> None:
    claim, evidence = read("green tower fell"), read("green tower stood")
    found = ground(claim, (evidence,))
    assert found.share == pytest.approx(2 / 3 * 2 / 3 + 1 / 3 * 1 / 2)
    assert found.missing == {"fell"}
    assert found.missing_pairs == {("tower", "fell")}
    assert ground(read("tower"), (evidence,)).share == 1.0
    assert ground(read("tower not"), (evidence,)).missing == set()
    assert ground(read("The Who"), (read("who are you"),)).share == 0.5
    assert ground(read("…"), (evidence,)).share == 0.0
    assert ground_part(read("not"), found, NOTHING_UNDERSTOOD).share == 1.0
    assert ground_part(read("fell not"), found, NOTHING_UNDERSTOOD).share == pytest.approx(2 / 3 * 0 + 1 / 3)


def test_pairs_between_which_the_chunks_always_negate() -> None:
    chunks = ("The old tower not stands here. Birds never fly home.", "Tower stands. Fish swim.")
    assert find_denied(chunks) == {("bird", "fly")}
    assert find_denied(("Fish swim.",)) == set()
    assert find_denied(("not",)) == set()
    assert find_denied(("Cats never chase dogs nor fish. Birds not",)) == {("cat", "chas"), ("dog", "fish")}
    assert find_denied(("not a cat", "cat not")) == set()


@pytest.mark.parametrize(
    ("text", "chunk", "share_left", "reason"),
    [
        ("The big tower fell down", "The big tower fell down", 1.0, ""),
        ("The big tower not fell", "The big tower fell", 0.5, "negated here, but not in the chunks"),
        ("The big tower fell", "The big tower not fell", 0.5, "negated in the chunks, but not here"),
        ("It weighs 42 stones", "It weighs 43 stones", 0.5, "not in the chunks: 42"),
        ("We met Anna there 42", "We met Berta there 42", 0.5, "not in the chunks: Anna"),
        ("We met Anna 42", "We met Berta 43", 0.25, "not in the chunks: Anna, 42"),
    ],
)
def test_each_fault_halves_what_is_left(text: str, chunk: str, share_left: float, reason: str) -> None:
    found = support(text, (chunk,))
    assert found.value == pytest.approx(found.share * share_left)
    assert found.sentences[0].evidence("sentence", "good", "bad").reason.endswith(reason)


@pytest.mark.parametrize(
    ("faults", "left"),
    [
        (_Faults(0, 0, 0, 0, 1, 0, 0), 1.0),
        (_Faults(4, 3, 0, 0, 2, 0, 0), 1 - 0.5 * 3 / 4),
        (_Faults(0, 0, 3, 2, 2, 0, 0), 1 - 0.5 * 2 / 3),
        (_Faults(0, 0, 0, 0, 4, 2, 1), 1 - 0.5 * 3 / 4),
        (_Faults(2, 1, 4, 3, 4, 1, 1), 0.75 * 0.75 * (1 - 0.5 * 3 / 4)),
    ],
)
def test_what_faults_leave_is_exact(faults: _Faults, left: float) -> None:
    assert faults.factor == pytest.approx(left)


@pytest.mark.parametrize(
    ("sentence", "chunks", "is_denied"),
    [
        ("dogs not chase cats", ("dogs chase cats",), True),
        ("dogs not chase cats", ("old dogs chase", "fish swim"), True),
        ("old dogs not chase", ("old chase",), True),
        ("dogs not chase cats", ("dogs cats",), True),
        ("dogs not chase cats", ("chase cats", "dogs"), True),
        ("dogs not chase cats", ("chase cats",), False),
        ("dogs not chase cats", ("chase fish cats dogs",), False),
        ("dogs not chase cats", ("dogs not chase cats", "dogs chase cats"), False),
        ("dogs not chase cats", ("not chase", "dogs chase"), False),
        ("dogs not chase cats", ("dogs not", "dogs chase"), False),
        ("not chase cats", ("chase cats",), False),
        ("dogs not", ("dogs",), False),
        ("a1 not b1 c1 not d1", ("c1 d1",), True),
        ("dogs chase cats", ("dogs chase cats",), False),
    ],
)
def test_what_a_sentence_denies(sentence: str, chunks: tuple[str, ...], is_denied: bool) -> None:
    assert denies(read(sentence), read_all(chunks)) is is_denied


def test_a_fault_counts_by_its_share_of_the_sentences() -> None:
    found = support(
        "The big tower not fell. The small tower fell.", ("The big tower fell. The small tower fell.",)
    )
    assert found.value == pytest.approx(found.share * 0.75)
    assert [one.faults.denials for one in found.sentences] == [1, 0]
    stated = support("It weighs 42 stones", ("It weighs 43 stones",), stated={"42"})
    assert stated.value == stated.share


def test_a_sentence_at_fault_is_worth_less_than_its_share() -> None:
    (found,) = support("The big tower not fell", ("The big tower fell",)).sentences
    assert found.value == pytest.approx(found.grounding.share * 0.5)
    assert found.grounding.share < 1


def test_a_sentence_is_supported_from_a_half_on() -> None:
    (half,) = support("tower fell", ("tower stood",)).sentences
    assert half.value == pytest.approx(1 / 3)
    (whole,) = support("tower", ("tower stood",)).sentences
    (just,) = support("red blue green pink grey brown white", ("red blue green pink",)).sentences
    assert just.value == pytest.approx(2 / 3 * 4 / 7 + 1 / 3 * 3 / 6)
    verdicts = [one.evidence("sentence", "good", "bad") for one in (half, whole, just)]
    expected = [("bad", False), ("good", True), ("good", True)]
    assert [(one.verdict, one.favourable) for one in verdicts] == expected


# Metrics


@pytest.mark.parametrize(
    ("response", "reference", "expected"),
    [
        ("Paris", "Paris", 1.0),
        ("It is Paris, the big one on the river", "Paris", 1.0),
        ("London", "Paris", 0.0),
        ("red", "red blue", 0.5),
        ("red blue green", "red blue green", 1.0),
        ("red blue", "red blue green", 0.6756),
        ("red blue green pink grey brown", "red blue green", 0.9822),
        ("", "red blue", 0.0),
    ],
)
def test_answer_correctness_is_exact(response: str, reference: str, expected: float) -> None:
    assert value("answer_correctness", response, reference=reference) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("metric", "texts", "seen"),
    [
        (
            "answer_correctness",
            {"reference": "The Who"},
            ("only partly in the response", False, "not in the response: the"),
        ),
        ("answer_correctness", {"reference": "Who"}, ("found", True, "")),
        ("answer_relevancy", {"query": "Red who?"}, ("partly addressed", False, "not taken up: Red")),
    ],
)
def test_the_evidence_says_what_is_missing(
    metric: str, texts: dict[str, str], seen: tuple[str, bool, str]
) -> None:
    (found,) = score(metric, "who blue", **texts).evidence
    assert (found.verdict, found.favourable, found.reason) == seen


def test_answer_correctness_of_a_text_is_its_balance_raised() -> None:
    reference = " ".join(f"{first}{second}mnoq" for first in "abcdef" for second in "vwxyz")
    half = " ".join(reference.split()[:15])
    recall = 2 / 3 * 0.5 + 1 / 3 * 14 / 29
    balance = min(2 * recall / (1 + recall), 1.4 * recall)
    assert value("answer_correctness", half, reference=reference) == pytest.approx(raised(balance, 28 / 50))


def test_what_a_long_response_lacks_limits_the_balance() -> None:
    reference = " ".join(f"{first}{second}mnoq" for first in "abcdef" for second in "vwxyz")
    recall = 2 / 3 * 1 / 30
    found = value("answer_correctness", reference.split()[0], reference=reference)
    assert found == pytest.approx(raised(1.4 * recall, 28 / 50))


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        ("tower paris", 1.0),
        ("tower", 0.5 * (0.25 * 1 + 0.75 * 0) + 0.5 * min(1, 1.5 * 1 / 2**0.5)),
        ("banana", 0.0),
        ("…", 0.0),
        ("tower paris " + " ".join(f"x{letter}q" for letter in "abcdefghijklmnop"), 0.5 + 0.5 * 1.5 / 3),
    ],
)
def test_the_relevance_of_a_chunk_is_exact(chunk: str, expected: float) -> None:
    assert chunk_relevance("tower?", "paris", [chunk]) == pytest.approx([expected])


def test_words_of_the_query_count_once_unless_the_target_has_no_others() -> None:
    assert chunk_relevance("tower?", "tower paris", ["paris"]) == pytest.approx(
        [0.5 * 0.75 * 0.5 + 0.5 * min(1, 1.5 / 2**0.5)]
    )
    assert chunk_relevance("tower?", "tower", ["tower"]) == [1.0]
    assert chunk_relevance("tower?", "The", ["the tower"]) == pytest.approx([0.5 * 0.25 + 0.5])


def test_the_relevance_of_a_chunk_without_a_target_is_by_the_query() -> None:
    assert chunk_relevance("tower paris", None, ["tower fell"]) == pytest.approx([0.5 * 0.5 + 0.5 * 1.5 / 2])
    assert chunk_relevance("?", None, ["tower"]) == [0.0]


def test_a_sentence_of_the_target_with_three_new_words_is_sought_on_its_own() -> None:
    chunk = "red blue green"
    long, short = "Red blue green. Pink grey brown.", "Red blue. Pink grey brown."
    assert chunk_relevance("tower", long, [chunk])[0] > 0.55
    assert chunk_relevance("tower", short, [chunk])[0] < 0.5


def test_relevancy_is_exact() -> None:
    assert value("answer_relevancy", "The tower fell", query="Why did the tower fall down?") == 0.5
    assert value("answer_relevancy", "towers fell", query="tower bridge arch") == pytest.approx(1 / 3)
    chunks = ("The tower bridge opened in 1894. Fish swim.",)
    response = "1894"
    assert value("answer_relevancy", response, query="When opened the tower bridge?", chunks=chunks) == 1.0
    value_of = value("answer_relevancy", "1894 sky", query="When opened the tower bridge?", chunks=chunks)
    assert value_of == pytest.approx(1 / 1.4)  # "sky" is in no chunk
    nine = "1894 b1 c d2 e3 f4 g5 h6 i7"
    assert value("answer_relevancy", nine, query="When opened the tower bridge?", chunks=chunks) == 0.0


def test_relevancy_of_character_pairs_is_raised() -> None:
    found = value("answer_relevancy", "東京", query="東京大阪")
    assert found == 0.0  # an echo
    assert value("answer_relevancy", "東京駅", query="東京大阪") == pytest.approx(raised(1 / 3, 0.5))


OPPOSITE = [
    ("-250 euros", "250 euros"),
    ("−250 euros", "250 euros"),
    ("minus 250 euros", "250 euros"),
    ("-€250", "€250"),
    ("-EUR 250", "250 EUR"),
    ("-3.2%", "+3.2%"),
    ("-1,250.50", "1250.5"),
    ("moins 10 degrés", "10 degrés"),
    ("−250ユーロ", "250ユーロ"),
    ("-12 million euros", "12 million euros"),
    ("−1,2 Mio. Euro", "1,2 Mio. Euro"),
]
NOT_OF_DIRECTION = """
    Bei welcher Temperatur soll der Impfstoff gelagert werden? | Welches Ergebnis hatte das Unternehmen?
    What is the rate of the savings account? | What does the description say? | When does the alarm go off?
    What did the strategy return? | What is the lower limit? | Qual é o saldo da caixa?
    Welke winst maakte de onderneming? | Quel est le tarif de la souscription ? | Wie kalt ist das Lager?
    What is the policy on the stock shortage? | What does the sign in the red room say? | What is it, in short?
"""
EQUAL = [
    ("-250 euros", "−250 euros"),
    ("-250 euros", "minus 250 euros"),
    ("-12 million euros", "minus 12 million euros"),
    ("-€250", "-250 €"),
    ("-10 degrés", "moins 10 degrés"),
    ("-10 grados", "menos 10 grados"),
    ("-5 to 10 °C", "−5 to 10 °C"),
    ("+3.2%", "3.2%"),
    ("5-7 days", "5 to 7 days"),
    ("5 -7 days", "5-7 days"),
    ("10–20 °C", "10-20 °C"),
    ("9:00 -17:00", "9:00-17:00"),
    ("ISO-9001", "ISO 9001"),
    ("3 -2 = 1", "3 - 2 = 1"),
    ("(250)", "250"),
    ("250 euros", "250,- euros"),
    ("12.50", "- 12.50"),
    ("5 boxes, 6 bags", "-5 boxes\n-6 bags"),
    ("5 boxes", "It has:\n-5 boxes"),
]
DIRECTION = [
    ("What was the growth?", "Growth was -3.2%", "It fell by 3.2%"),
    ("What was the growth?", "Growth was -3.2%", "a fall of 3.2%"),
    ("Wie war das Wachstum?", "Das Wachstum war -3,2 %", "ein Rückgang von 3,2 %"),
    ("What was the loss?", "It was -250 euros", "250 euros"),
    ("How cold is it?", "It is -5 °C", "5 °C below zero"),
]


@pytest.mark.parametrize(("reference", "response"), [*OPPOSITE, *(pair[::-1] for pair in OPPOSITE)])
def test_a_lost_sign_makes_another_number(reference: str, response: str) -> None:
    assert value("answer_correctness", response, query="What is it?", reference=reference) <= 0.4
    chunks = (f"Today, it is {reference} in all.",)
    assert value("faithfulness", response, query="What is it?", chunks=chunks) <= 0.4
    right = value("faithfulness", reference, query="What is it?", chunks=chunks)
    assert right == value("context_recall", "", query="What is it?", reference=reference, chunks=chunks) == 1


@pytest.mark.parametrize("query", re.findall(r"[^|\n]*\w[^|\n]*", NOT_OF_DIRECTION))
def test_a_word_that_only_begins_like_one_of_falling_excuses_no_lost_sign(query: str) -> None:
    assert value("answer_correctness", "20 °C", query=query, reference="−20 °C") <= 0.4
    assert value("faithfulness", "20 °C", query=query, chunks=("Here, it is −20 °C.",)) <= 0.4


@pytest.mark.parametrize(("reference", "response"), [*EQUAL, *(pair[::-1] for pair in EQUAL)])
def test_other_hyphens_and_words_for_a_sign_change_nothing(reference: str, response: str) -> None:
    assert value("answer_correctness", response, query="What is it?", reference=reference) > 0.99
    chunk = reference if "\n" in reference else f"Here, it is {reference}."
    assert value("faithfulness", response, query="What is it?", chunks=(chunk,)) == 1


@pytest.mark.parametrize(("query", "reference", "response"), DIRECTION)
def test_a_word_may_tell_the_direction(query: str, reference: str, response: str) -> None:
    with_sign = value("answer_correctness", response, query=query, reference=reference)
    assert with_sign == value(
        "answer_correctness", response, query=query, reference=reference.replace("-", "")
    )
    with_sign = value("faithfulness", response, query=query, chunks=(reference,))
    assert with_sign == value("faithfulness", response, query=query, chunks=(reference.replace("-", ""),))


TAKES_AN_OPTION = {
    "Is the parcel sent by air or by sea?": ("It is sent by sea.", "By air.", "The parcel is sent by air."),
    "Who is taller, Tom or Ben?": ("Tom is taller.", "Ben", "Ben is taller than Tom."),
    "who is taller, tom or ben": ("tom is taller",),
    "Who won, Leeds or York?": ("Leeds won.", "York."),
    "Which is cheaper, plan A or plan B?": ("Plan B is cheaper.", "Plan A.", "B"),
    "Do you want tea, coffee or water?": ("Tea.", "Coffee", "I want water."),
    "Is the warranty two years or three years?": ("Three years.",),
    "Is entry free or not?": ("Entry is free.", "Entry is not free."),
    "Wer gewann, Bayern oder Bremen?": ("Bremen hat gewonnen.", "Bayern."),
    "Le musée est-il gratuit ou payant ?": ("Le musée est gratuit.", "Payant."),
    "¿El museo es gratis o de pago?": ("De pago.",),
    "O museu é gratuito ou pago?": ("O museu é pago.",),
    "Is de winkel open of gesloten?": ("Gesloten.",),
    "Är butiken öppen eller stängd?": ("Butiken är öppen.",),
    "Музей платный или бесплатный?": ("Бесплатный.",),
    "Muzeum jest płatne czy bezpłatne?": ("Bezpłatne.",),
    "包裹是空运还是海运？": ("海运。", "包裹是海运。"),
    "会場は東京ですか、それとも大阪ですか。": ("大阪です。", "東京"),
}
TAKES_NONE = {
    "Is the parcel sent by air or by sea?": ("The parcel is sent.", "The parcel is sent by air or by sea."),
    "Who is taller, Tom or Ben?": ("Tom or Ben is taller.", "Who is taller?", "Taller.", "Tom, Ben"),
    "Which is cheaper, plan A or plan B?": ("Plan A or plan B is cheaper.", "A plan is cheaper."),
    "Wer gewann, Bayern oder Bremen?": ("Bayern oder Bremen gewann.",),
    "¿El museo es gratis o de pago?": ("El museo es gratis o de pago.",),
    "包裹是空运还是海运？": ("空运还是海运", "包裹"),
    "Where can I buy tickets or passes?": ("You can buy tickets.",),
    "We have plan A or plan B. How much is plan A?": ("Plan A.",),
    "Who is the owner of the house?": ("The owner of the house.",),
    "¿Quién es el dueño o no?": ("El dueño.",),
}


@pytest.mark.parametrize(("query", "responses"), TAKES_AN_OPTION.items())
def test_an_option_that_the_query_names_is_an_answer(query: str, responses: tuple[str, ...]) -> None:
    assert [each for each in responses if value("answer_relevancy", each, query=query) < 0.5] == []


@pytest.mark.parametrize(("query", "responses"), TAKES_NONE.items())
def test_words_of_the_query_that_take_no_option_are_none(query: str, responses: tuple[str, ...]) -> None:
    assert [each for each in responses if value("answer_relevancy", each, query=query) > 0] == []


@pytest.mark.parametrize(
    ("query", "response", "reference", "is_right"),
    [
        ("Is the shop open or closed?", "The shop is open.", "The shop is closed.", False),
        ("Is the shop open or closed?", "The shop is closed.", "The shop is closed.", True),
        ("Is the parcel sent by air or by sea?", "By sea, not by air.", "By sea.", True),
        ("Is de winkel open of gesloten?", "De winkel is open.", "De winkel is gesloten.", False),
        ("Is de winkel open of gesloten?", "De winkel is gesloten.", "De winkel is gesloten.", True),
        ("Музей платный или бесплатный?", "Музей платный.", "Музей бесплатный.", False),
    ],
)
def test_another_option_than_that_of_the_reference_is_wrong(
    query: str, response: str, reference: str, is_right: bool
) -> None:
    found = value("answer_correctness", response, query=query, reference=reference)
    assert found == 1 if is_right else found < 0.3


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Hier darf nicht geparkt werden.", "Nein."),
        ("Hier darf geparkt werden.", "Ja."),
        ("Nein, hier darf man nicht parken.", "Nein."),
    ],
)
def test_a_participle_answers_a_query_for_yes_or_no(response: str, right: str) -> None:
    query = "Darf man hier parken?"
    found = [value("answer_correctness", response, query=query, reference=each) for each in ("Ja.", "Nein.")]
    assert found == [right == "Ja.", right == "Nein."]
    assert value("context_recall", "", query=query, reference=right, chunks=(response,)) > 0.8


def test_a_refusal_of_up_to_sixteen_words_claims_nothing() -> None:
    mere = "I do not know " + " ".join(f"word{letter}" for letter in "abcdefghijklmn")
    assert len(read_claim(mere).whole.content) == 16
    assert score("faithfulness", mere).outcome is Outcome.NOT_APPLICABLE
    assert score("faithfulness", f"{mere} wordz").outcome is Outcome.SCORED


def test_whom_to_ask_behind_a_refusal_claims_nothing_without_a_number() -> None:
    said = "I could not find anything about passports. Please contact the town hall"
    assert score("faithfulness", f"{said}.").outcome is Outcome.NOT_APPLICABLE
    assert score("faithfulness", f"{said} in room 12.").outcome is Outcome.SCORED


REFUSALS = """
    Not enough information. | This is not covered in the manual. | The manual does not cover this topic.
    The policy does not specify a limit. | It is not specified in the contract. | We have no record of that.
    There isn't any information regarding the price in the context. | We do not have that information at this time.
    There isn't anything on parental leave in the handbook. | The context lacks information on this.
    None of the 3 documents mentions this. | The handbook is silent on this point.
    That detail is absent from the documents.
    That is outside the scope of the provided documents. | Sorry, this question is beyond my knowledge.
    The retrieved passages are not relevant to the question. | The retrieved text is unrelated to your question.
    Unfortunately, this is not something I can help with. | This is not something the manual covers.
    The policy you ask about does not appear in the excerpts. | This does not appear to be covered.
    I'm sorry, but this topic is not covered by the documentation that I have.
    Diese Information ist nicht verfügbar. | Darüber ist nichts bekannt. | Das wird nicht erwähnt.
    Das ist im Vertrag nicht geregelt. | Keine der Quellen erwähnt das. | Diese Frage kann nicht beantwortet werden.
    Die Richtlinie macht dazu keine Angaben. | Das wird in der Dokumentation nicht behandelt.
    Mir fehlen dazu Informationen.
    Cette information n'est pas disponible. | Le manuel n'en parle pas. | Rien dans le texte ne l'indique.
    Ce sujet n'est pas abordé dans la documentation. | Il n'est pas possible de répondre à partir du contexte.
    Aucun des documents ne traite de ce point. | Esa información no está disponible.
    Ninguno de los documentos lo menciona.
    No está especificado en el contrato. | Non ho questa informazione. | Nessuno dei documenti ne parla.
    Questa informazione non è disponibile. | Dat weet ik niet. | Het document vermeldt dit niet.
    Deze informatie is niet beschikbaar. | Daar heb ik geen informatie over. | In de handleiding staat hier niets over.
"""
NO_REFUSALS = """
    The warranty does not cover water damage. | There is no limit on data. | The museum has no information desk.
    It is not included in the price. | This repair is outside the scope of the warranty.
    We have no data centre in Asia.
    Die Garantie deckt Wasserschäden nicht ab. | Keine der Türen ist offen. | Das Fenster kann nicht geöffnet werden.
    Die Rückgabe ist im Schlussverkauf nicht möglich. | La garantie ne couvre pas les dégâts des eaux.
    Il n'est pas possible de payer en espèces. | Rien dans le menu ne contient de noix.
    Ninguno de los trenes para aquí.
    No está incluido en el precio. | Nessuno dei treni ferma qui. | De winkel is op zondag niet open.
    The plan lacks a data allowance. | None of the rooms has a bath. | The tickets are not related to each other.
    Page 3 does not appear in the printed version. | We cannot find the parcel's owner. | There aren't any seats left.
"""


@pytest.mark.parametrize("text", re.findall(r"\w[^|\n]*", REFUSALS))
def test_what_bots_write_if_they_do_not_know_is_a_refusal(text: str) -> None:
    assert is_refusal(read(text))


@pytest.mark.parametrize("text", re.findall(r"\w[^|\n]*", NO_REFUSALS))
def test_what_only_sounds_like_a_refusal_is_none(text: str) -> None:
    assert not is_refusal(read(text))


NO_ANSWERS = (
    "I don't know.",
    "The documents do not say whether there is a branch in Lisbon.",
    "Cannot be answered from the context.",
    "Dazu habe ich keine Informationen.",
    "Je ne trouve pas cette information.",
)


@pytest.mark.parametrize("reference", NO_ANSWERS)
def test_a_response_declines_rightly_if_the_ground_truth_says_that_there_is_no_answer(reference: str) -> None:
    """And the context need not contain an answer; a made-up one is as wrong as before."""
    query, chunks = "Where in Lisbon is the branch?", ("Our branches are in Berlin, Hamburg and Vienna.",)
    for response in ("I could not find any information about a branch in Lisbon.", "I don't know."):
        found = {
            metric: score(metric, response, query=query, reference=reference, chunks=chunks)
            for metric in METRIC_LABELS
        }
        assert found["answer_correctness"].value == found["answer_relevancy"].value == 1
        assert {name for name, each in found.items() if each.outcome is Outcome.NOT_APPLICABLE} == {
            "faithfulness",
            "context_precision",
            "context_recall",
        }
    made_up = "The branch in Lisbon is at Rua Augusta 12."
    assert value("answer_correctness", made_up, query=query, reference=reference, chunks=chunks) < 0.48
    assert value("faithfulness", made_up, query=query, chunks=chunks) < 0.62


NO_ANSWERS_IN_SHORT = """
    Not mentioned. | Not specified in the document. | The answer is not in the context. | Keine Angabe | k. A.
    Unbekannt | Dazu gibt es keine Informationen. | Non mentionné | No se menciona. | Non specificato. | Niet vermeld.
    Не указано | 未提及 | 記載なし | Unknown
"""
NO_MADE_UP_ANSWER = """
    I don't know. Let me know if you have any other questions!
    I don't know the price of the annual ticket. You may ask for the ticket price at the counter.
    I'm sorry, but the context does not contain the price of the annual ticket. Please contact the shop.
    The documents do not say how much the annual ticket costs. They only say that the shop opens at 9.
    According to document 2, the shop was founded in 1921, but there is no information about an annual ticket.
    As of my last update in 2023, I don't have information about the annual ticket.
    Zum Preis der Jahreskarte habe ich keine Informationen. Bitte wenden Sie sich an den Kundendienst.
    Lo siento, no tengo información sobre el precio. ¿Puedo ayudarle en algo más?
    Not mentioned.
"""
MADE_UP_ANSWERS = """
    I'm sorry, the annual ticket costs 12 euros.
    I don't know. It costs about 50 dollars.
    The document does not say, but it is 30 euros.
    I can't say when, but it costs 5 euros.
    Sorry, the annual ticket is free.
    The context does not mention this. The annual ticket is usually very expensive.
    Das weiß ich nicht. Die Jahreskarte kostet 30 Euro.
    Désolé, le billet annuel coûte 30 euros.
    К сожалению, я не знаю. Билет стоит 50 рублей.
    抱歉，我不知道。50元
"""
SHOP = ("The shop opens at 9. It was founded in 1921.", "Parking is free for guests.")


@pytest.mark.parametrize("reference", re.findall(r"[^|\n]*\w[^|\n]*", NO_ANSWERS_IN_SHORT))
def test_a_ground_truth_says_in_few_words_that_there_is_no_answer(reference: str) -> None:
    query = "How much is the annual ticket?"
    for response in ("I don't know.", "The text does not mention it."):
        assert value("answer_correctness", response, query=query, reference=reference, chunks=SHOP) == 1
    made_up = "I'm sorry, the annual ticket costs 12 euros."
    assert value("answer_correctness", made_up, query=query, reference=reference, chunks=SHOP) < 0.48
    assert value("answer_relevancy", made_up, query=query, reference=reference, chunks=SHOP) == 0


@pytest.mark.parametrize(
    ("response", "is_right"),
    [
        (response.strip(), listed is NO_MADE_UP_ANSWER)
        for listed in (NO_MADE_UP_ANSWER, MADE_UP_ANSWERS)
        for response in listed.strip().splitlines()
    ],
)
def test_a_refusal_that_makes_up_an_answer_is_not_right(response: str, is_right: bool) -> None:
    case = Case(2, "A", "How much is the annual ticket?", response, "The documents do not say.", SHOP)
    assert declines_rightly(response, case) == is_right


WITH_ANSWERS = """
    The document does not mention the price, but the ticket is valid for 2 days.
    The text does not say how much it is, only that it is valid for 2 days.
    Sorry, no refunds. | Lo siento, la tienda está cerrada. | Désolé, le magasin est fermé. | Leider ist geschlossen.
    I am not able to travel without a ticket. | Das Dokument ist nicht gültig. | Le document n'est pas valable.
    Im Text gibt es keine Fehler. | Ich kann nicht schwimmen. | No, the document does not mention a penalty.
"""


@pytest.mark.parametrize("reference", re.findall(r"[^|\n]*\w[^|\n]*", WITH_ANSWERS))
def test_a_ground_truth_that_denies_or_regrets_has_an_answer(reference: str) -> None:
    """So has one that declines a part, and one that the query asks for: whether a document mentions something."""
    for query in ("How much is the ticket, and for how long?", "Does the document mention a penalty?"):
        assert not has_no_answer(reference, query, SHOP)
    reference = "The document does not mention a penalty."
    assert not has_no_answer(reference, "Does the document mention a penalty?", SHOP)
    assert has_no_answer(reference, "How high is the penalty?", SHOP)


def test_who_it_is_in_a_second_sentence_is_an_answer() -> None:
    case = Case(2, "A", "Who runs the shop?", "I don't know. It may be Paul Meyer.", "I don't know.", SHOP)
    assert not declines_rightly(case.response, case)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("What information does the form ask for?", "No information is required."),
        ("Can the age of the stone be determined?", "The age of the stone cannot be determined."),
        ("Wer war der Architekt?", "Unbekannt."),
    ],
)
def test_what_the_chunks_say_as_well_is_an_answer(query: str, said: str) -> None:
    chunks = (said, "The shop opens at 9.")
    assert value("context_recall", "x", query=query, reference=said, chunks=chunks) > 0.9
    assert score("context_recall", "x", query=query, reference=said, chunks=chunks[1:]).outcome is (
        Outcome.NOT_APPLICABLE
    )


@pytest.mark.parametrize(
    ("reference", "response", "other"),
    [
        (
            "-5 million euros",
            "There was a shortfall of 5 million euros.",
            "There was a profit of 5 million euros.",
        ),
        (
            "-5 million euros",
            "They are 5 million euros in the red.",
            "They are 5 million euros in the black.",
        ),
        ("-5 Millionen Euro", "Ein Fehlbetrag von 5 Millionen Euro.", "Ein Betrag von 5 Millionen Euro."),
        ("-5 Millionen Euro", "Eine Unterdeckung von 5 Millionen Euro.", "Das Lager hat 5 Millionen Euro."),
        ("-5 millions d'euros", "Un manque de 5 millions d'euros.", "Un gain de 5 millions d'euros."),
        ("-5 milioni di euro", "Un disavanzo di 5 milioni di euro.", "Un avanzo di 5 milioni di euro."),
        ("-5 miljoen euro", "Het was 5 miljoen euro lager.", "Het was 5 miljoen euro hoger."),
    ],
)
def test_an_amount_without_its_sign_is_right_behind_a_word_of_losing(
    reference: str, response: str, other: str
) -> None:
    found = [
        value("answer_correctness", each, query="What was the result?", reference=reference)
        for each in (response, other)
    ]
    assert found[0] > 0.48 > found[1]


@pytest.mark.parametrize("reference", ["None.", "In Rua Augusta 12.", "The branch is not in Lisbon."])
def test_other_ground_truths_have_an_answer(reference: str) -> None:
    query, chunks = "Where in Lisbon is the branch?", ("Our branches are in Berlin, Hamburg and Vienna.",)
    assert value("answer_relevancy", "I don't know.", query=query, reference=reference, chunks=chunks) == 0
    assert value("answer_correctness", "I don't know.", query=query, reference=reference, chunks=chunks) < 1
    assert value("context_recall", "x", query=query, reference=reference, chunks=chunks) < 1


@pytest.mark.parametrize(
    ("text", "declines"),
    [
        ("x" * 190 + " I do not know", True),
        ("x" * 198 + " I do not know", True),
        ("x" * 199 + " I do not know", False),
        ("x" * 198 + " ich weiß es nicht", True),
        ("x" * 199 + " ich weiß es nicht", False),
        ("塔" * 78 + "抱歉", True),
        ("塔" * 79 + "抱歉", False),
        ("I do not know. However, " + "x" * 37, True),
        ("I do not know. However, " + "x" * 38, False),
        ("I'm not sure, but rule 3 forbids smoking.", False),
        ("I don't know exactly, but I think rule 3 forbids dancing.", False),
        ("I am not sure, maybe ten years.", False),
        ("Ich bin nicht sicher, aber Regel 3 verbietet das Rauchen.", False),
        ("I'm not sure, but I can help with other questions.", True),
        ("I don't know, but please contact the town hall.", True),
        ("I don't know, but you may ask the town hall.", True),
        ("I'm sorry, but I can't answer that.", True),
        ("Unfortunately, I can't help with that.", True),
        ("This is not covered in the documents I have.", True),
        ("Dazu habe ich keine Informationen.", True),
        ("n/a", True),
        ("抱歉，我不了解。", True),
        ("申し訳ありません。", True),
        ("죄송합니다.", True),
        ("I'm sorry, that is outside my scope.", True),
        ("I'm sorry, but your question is not covered.", True),
        ("Sorry, we have no information on that.", True),
        ("Sorry.", True),
        ("Leider liegen mir dazu keine Informationen vor.", True),
        ("Leider gibt es dazu keine Angaben.", True),
        ("Leider geht das aus dem Text nicht hervor.", True),
        ("Lo siento.", True),
        ("None.", True),
        ("None of them fell", False),
        ("Nobody knows", False),
    ],
)
def test_a_refusal_is_near_the_beginning_and_not_followed_by_an_answer(text: str, declines: bool) -> None:
    assert is_refusal(read(text)) is declines


@pytest.mark.parametrize(
    ("text", "chunk"),
    [
        (
            "I'm sorry to hear that. Please e-mail photos of the parcel.",
            "If a parcel is damaged, e-mail us photos of the parcel.",
        ),
        ("I'm sorry, but underwear cannot be returned.", "Underwear can't be returned or exchanged."),
        ("I'm afraid the offer has expired.", "This offer expired on 1 May."),
        ("Sorry, we are closed on Sundays.", "The shop is closed on Sundays."),
        (
            "Leider kann Unterwäsche nicht zurückgegeben werden.",
            "Unterwäsche kann nicht zurückgegeben werden.",
        ),
        ("Désolé, nous sommes fermés le dimanche.", "Le magasin est fermé le dimanche : nous sommes fermés."),
        ("Lo siento, la ropa interior no se puede devolver.", "La ropa interior no se puede devolver."),
        ("Mi dispiace, il negozio è chiuso la domenica.", "Il negozio è chiuso la domenica."),
        ("Lamento, a loja está fechada.", "Ao domingo, a loja está fechada."),
        ("Helaas is de winkel gesloten.", "De winkel is gesloten."),
        ("Przykro mi, sklep jest zamknięty.", "W niedziele sklep jest zamknięty."),
        ("К сожалению, магазин закрыт.", "Магазин закрыт."),
        ("Maalesef mağaza pazar günü kapalı.", "Mağaza pazar günü kapalı."),
        ("عذرا، المتجر مغلق يوم الأحد.", "المتجر مغلق يوم الأحد."),
        ("क्षमा करें, दुकान बंद है।", "रविवार को दुकान बंद है।"),
        ("죄송하지만 속옷은 반품할 수 없습니다.", "속옷은 반품할 수 없습니다."),
        ("Xin lỗi, cửa hàng đóng cửa.", "Chủ nhật cửa hàng đóng cửa."),
        ("Maaf, toko tutup pada hari Minggu.", "Toko tutup pada hari Minggu."),
        ("抱歉，内衣不能退货。", "内衣不能退货。"),
        ("申し訳ございませんが、下着は返品できません。", "下着は返品できません。"),
        ("ขออภัย ร้านปิดวันอาทิตย์", "ร้านปิดวันอาทิตย์"),
    ],
)
def test_what_is_said_with_regret_is_an_answer_if_the_chunks_say_it(text: str, chunk: str) -> None:
    """An apology is mostly that of a bot that does not know; nothing else tells both apart in so many languages."""
    said = read(text)
    assert not declines(said, "Is it so?", (chunk,), "")
    assert not declines(said, "Is it so?", ("Dogs may stay.",), chunk)
    assert declines(said, "Is it so?", ("Dogs may stay.",), "")


@pytest.mark.parametrize(
    "text", ["Sorry, this is not covered.", "I'm afraid there is no information on that."]
)
def test_an_apology_is_no_answer_because_the_chunks_say_the_opposite(text: str) -> None:
    assert declines(read(text), "What is the fee?", ("This is covered. There is information on that.",), "")


def test_that_something_is_unknown_may_be_the_ground_truth() -> None:
    query, chunks = "Who was the architect?", ("The architect of the church is unknown.",)
    assert (
        value("answer_correctness", "Unknown.", query=query, reference="It is unknown.", chunks=chunks) > 0.9
    )


@pytest.mark.parametrize("reference", ["No.", "No, underwear cannot be returned.", "None."])
def test_the_negation_of_a_refusal_is_not_that_of_a_ground_truth(reference: str) -> None:
    query, chunks = "Can I return underwear?", ("For hygiene reasons, underwear cannot be returned.",)
    for response in ("I don't know.", "I could not find information about this."):
        assert value("answer_correctness", response, query=query, reference=reference, chunks=chunks) <= 0.4
    for response in (
        "I'm sorry, no.",
        "I'm afraid that is not possible.",
        "Sorry, underwear cannot be returned.",
    ):
        for metric in ("answer_correctness", "faithfulness", "answer_relevancy"):
            assert value(metric, response, query=query, reference=reference, chunks=chunks) > 0.65


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("I will kill you", 1.0),
        ("you are a kike", 0.95),
        ("cunt", 0.85),
        ("你他妈的", 0.85),
        ("bullshit", 0.6),
        ("you're useless", 0.6),
        ("damn", 0.3),
        ("damn crap", 0.35),
        ("damn crap damn", 0.4),
        ("kill the process", 0.0),
    ],
)
def test_toxicity_is_the_gravest_weight_and_a_little_for_each_further(query: str, expected: float) -> None:
    assert asyncio.run(OfflineToxicity().judge_query(query)).value == pytest.approx(expected)


# No cliff


def references() -> Iterator[tuple[str, str, str]]:
    """Query, reference, response: a reference of every length, said in full, in half, in more words, or not."""
    rng = random.Random(5)
    syllables = "ba ke lo mi nu ra so ti vu wa xe zo".split()
    vocabulary = sorted({"".join(rng.choices(syllables, k=3)) for _ in range(400)})
    for n in range(1, 60):
        words = rng.sample(vocabulary, n + 30)
        own, others = words[:n], words[n:]
        query = " ".join([*own[:2], "tower"])
        for response in (own, own[: n // 2], [*own, *others], own[-1:], [*others, *own[:1]], others):
            yield "tower", " ".join(own), " ".join(response)
        for response in (own, own[: max(2, n // 2)], [*own, *others]):
            yield query, " ".join(own), " ".join(response)


def bound(reference: str) -> float:
    n = len(read(reference).content)
    return min(1 / (n + 1) + 0.05, 0.15 if n >= 8 else 1)


@pytest.mark.slow
def test_one_word_more_in_the_reference_moves_correctness_little() -> None:
    for query, reference, response in references():
        before = value("answer_correctness", response, query=query, reference=reference)
        for word in ("yesterday", response.split()[-1] if response else "never"):
            after = value("answer_correctness", response, query=query, reference=f"{reference} {word}")
            assert abs(after - before) <= bound(reference) + 1e-9, (query, reference, response, word)


VARIANTS = (
    str.upper,
    str.lower,
    lambda text: text.rstrip("."),
    lambda text: f"{text}!",
    lambda text: f"“{text}”",
)


@pytest.mark.slow
def test_case_and_punctuation_do_not_move_correctness() -> None:
    for query, reference, response in references():
        before = value("answer_correctness", response, query=query, reference=reference)
        for variant in VARIANTS:
            again = value("answer_correctness", response, query=query, reference=variant(reference))
            assert again == pytest.approx(before)
    thousands = {value("answer_correctness", "1250.5", reference=number) for number in ("1,250.50", "1250.5")}
    assert thousands == {1.0}


def test_a_sentence_cut_in_two_moves_recall_little() -> None:
    chunks = ("The tower was built in the old town and the bridge fell into the river.",)
    whole = value(
        "context_recall", "x", reference="The tower was built there and fishes swim home", chunks=chunks
    )
    cut = value(
        "context_recall", "x", reference="The tower was built there. And fishes swim home", chunks=chunks
    )
    assert cut == pytest.approx(whole, abs=0.08)


def recall(reference: str, *chunks: str) -> float:
    return value("context_recall", "x", reference=reference, chunks=chunks)


def test_one_ordinary_word_more_in_the_reference_moves_recall_little() -> None:
    """From three content words on: below that, the only pair of words weighs more."""
    for _, reference, chunk in references():
        if len(reference.split()) < 3:
            continue
        before = recall(reference, chunk)
        for word in ("yesterday", chunk.split()[-1]):
            assert abs(recall(f"{reference} {word}", chunk) - before) <= bound(reference) + 1e-9


PASSAGE = "The old tower in Prague was built by King Charles in 1357. A flood of that summer took the bridge."
CLAIM = "The tower in Vienna was built by King Charles in 1357. The flood of that summer took the town."


def test_a_text_in_capitals_or_without_any_has_no_names_to_hold_against_it() -> None:
    """Both are read alike, sentence by sentence; a wrong name counts where capitals tell it from other words."""
    for metric, text in (("context_recall", "reference"), ("faithfulness", "response")):
        values = [
            value(metric, **{"response": "x", text: claim}, chunks=(PASSAGE,))
            for claim in (CLAIM.upper(), CLAIM.lower(), CLAIM.title(), CLAIM)
        ]
        assert values[:3] == pytest.approx([values[0]] * 3)
        assert values[3] < values[0] - 0.1


def test_a_short_sentence_may_be_little_but_a_name() -> None:
    assert recall("By King Wenceslaus", PASSAGE) < recall("By king wenceslaus", PASSAGE)
    heading = "A List Of The Old Towers"  # as many words as a heading has at least
    assert recall(heading, PASSAGE) == recall(heading.lower(), PASSAGE)
    assert recall("A List Of Old Towers", PASSAGE) < recall("a list of old towers", PASSAGE)


needs_fixtures = pytest.mark.skipif(
    not FIXTURES, reason="set RAG_EVAL_FIXTURES to the folder of the labelled examples"
)


@needs_fixtures
def test_one_word_more_moves_correctness_little_on_the_labelled_examples() -> None:
    lines = (Path(FIXTURES) / "answer_correctness.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        query, reference, response = row["question"], row["ground_truth"].rstrip(". "), row["answer"]
        before = value("answer_correctness", response, query=query, reference=reference)
        for variant in VARIANTS:
            again = value("answer_correctness", response, query=query, reference=variant(reference))
            assert again == pytest.approx(before, abs=0.05)
        if given_names(reference, query, (response,)):
            continue  # with one word more, it is another name
        for word in ("yesterday", "quickly", "Paris", "in Paris", "for Anna"):
            after = value("answer_correctness", response, query=query, reference=f"{reference} {word}")
            assert abs(after - before) <= bound(reference) + 1e-9, (query, reference, word)


@needs_fixtures
def test_a_small_change_moves_recall_little_on_the_labelled_examples() -> None:
    lines = (Path(FIXTURES) / "context_recall.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        reference, chunks = row["ground_truth"].rstrip(". "), row["contexts"]
        before = recall(reference, *chunks)
        for variant in (f"{reference}.", f"{reference}!", f"“{reference}”"):
            assert recall(variant, *chunks) == pytest.approx(before, abs=0.05)
        for variant in (
            reference.upper(),
            reference.lower(),
        ):  # names are not seen then, so nothing speaks against them
            assert recall(variant, *chunks) >= before - 0.05, variant
        for word in ("yesterday", "quickly", "in the evening"):
            assert abs(recall(f"{reference} {word}", *chunks) - before) <= bound(reference) + 1e-9, word


OPENING = "The museum opens at nine in the morning on weekdays, and at ten on Sundays and public holidays."


@pytest.mark.parametrize(
    ("query", "response", "reference", "has_chunks", "is_asked", "is_expected"),
    [
        ("When does the museum open?", OPENING, "At nine.", True, True, True),
        ("When does the museum open?", OPENING, "At nine.", False, True, True),
        ("When does the museum open?", "At nine.", "At nine.", True, False, True),
        ("When does the museum open?", "At nine.", "At nine.", False, True, True),
        ("When does the museum open?", "I don't know.", "At nine.", False, False, True),
        ("When does the museum open?", "When does the museum open?", "At nine.", False, False, False),
        ("What is it like?", "It is what it was.", "It is.", True, False, True),
        ("What is it like?", "It is what it was.", "It is.", False, True, True),
        ("Is it open?", "Yes.", "Yes.", False, False, False),
        ("Is it open?", "Yes, it is.", "No, it is closed today.", False, False, False),
        ("What are the opening hours?", "The opening hours are unknown.", "Nine to five", False, False, True),
        ("What are the opening hours?", "The opening hours are unknown.", "Nine to five", True, False, True),
        ("Who?", "...", "Ada", False, False, True),
    ],
)
def test_which_texts_an_embedding_compares(
    query: str, response: str, reference: str, has_chunks: bool, is_asked: bool, is_expected: bool
) -> None:
    """The response with the query, unless a short one is understood by the chunks, and with the ground truth."""
    case = Case(2, "A", query, response, reference, (OPENING,) if has_chunks else None)
    relevancy, correctness = (METRICS[name].offline() for name in ("answer_relevancy", "answer_correctness"))
    assert relevancy.alike(case) == ((query, response) if is_asked else None)
    assert correctness.alike(case) == ((reference, response) if is_expected else None)
