"""Texts are taken apart the same way whatever their language, spelling of numbers or typography."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.texts import words as words_module
from rag_eval.texts.display import decimals, enumerated, percent, percent_range
from rag_eval.texts.languages import have_one_language
from rag_eval.texts.quantities import canonical_number
from rag_eval.texts.words import (
    NEGATION,
    Reading,
    compatible,
    has_words,
    names,
    normalise,
    numbers,
    quote,
    read,
    read_all,
    read_claim,
    sentences,
    stem,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The naïve café", ["the", "naive", "cafe"]),
        ("Anna’s dog isn't they've", ["anna", "dog", "is", "not", "they"]),
        ("can't won't", ["can", "not", "will", "not"]),
        ("don't shan't won't", ["do", "not", "shall", "not", "will", "not"]),
        ("she'll we've I'm he'd you're", ["she", "we", "i", "he", "you"]),
        ("o'clock n't that't x'", ["o", "clock", "n", "t", "that", "t", "x"]),
        ("1,250.50 km at 5%", ["1250.5", "km", "at", "5", "percent"]),
        ("५ ٣ ৪ ۹", ["5", "3", "4", "9"]),
        ("ภา ภาษา", ["ภา", "ภาษ", "าษา"]),
        ("５km", ["5", "km"]),
        ("東京大学", ["東京", "京大", "大学"]),
        ("水", ["水"]),
        ("2011年に", ["2011", "year", "に"]),
        ("Straße", ["strasse"]),
        ("हिन्दी ३", ["हिन्दी", "3"]),
        ("كِتَاب", ["كتاب"]),
        ("  \n ", []),
    ],
)
def test_words_are_normalised_and_scripts_without_spaces_become_pairs_of_characters(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("word", "same_as"),
    [
        ("cities", "city"),
        ("running", "run"),
        ("stopped", "stop"),
        ("boxes", "box"),
        ("quickly", "quick"),
        ("kilometres", "km"),
        ("seven", "7"),
        ("never", "without"),
    ],
)
def test_inflections_and_spellings_share_a_stem(word, same_as):
    assert stem(word) == stem(same_as)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("ties", "tie"),
        ("cities", "city"),
        ("parties", "parti"),
        ("glasses", "glass"),
        ("houses", "hous"),
        ("buzzes", "buzz"),
        ("plays", "play"),
        ("basis", "basis"),
        ("class", "class"),
        ("cats", "cat"),
        ("red", "red"),
        ("ring", "ring"),
        ("being", "being"),
        ("added", "added"),
        ("agreed", "agre"),
        ("seeing", "see"),
        ("adding", "add"),
        ("planned", "plan"),
        ("falling", "fall"),
        ("missing", "miss"),
        ("buzzing", "buzz"),
        ("daily", "daili"),
        ("nice", "nice"),
        ("piece", "piec"),
        ("happy", "happi"),
        ("fly", "fly"),
        ("bees", "bee"),
        ("two", "2"),
        ("twenty", "20"),
        ("feet", "foot"),
        ("x2ing", "x2ing"),
    ],
)
def test_a_stem_is_exact(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize(
    "pair", [("bus", "bu"), ("glass", "glas"), ("thing", "th"), ("университет", "университ")]
)
def test_short_words_and_other_scripts_keep_their_form(pair):
    word, cut = pair
    assert stem(word) == word != cut


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("1,250", "1250"),
        ("1,250.50", "1250.5"),
        ("1.250.000", "1250000"),
        ("1.250,5", "1250.5"),
        ("3,5", "3.5"),
        ("3.0", "3"),
        ("100", "100"),
        ("10:30", "10.3"),
        ("10.30", "10.3"),
        ("10h30", "10.3"),
        ("9:00", "9"),
        ("09:00", "9"),
        ("08.30", "8.3"),
        ("00:30", "0.3"),
        ("05", "5"),
        ("007", "007"),
        ("0.05", "0.05"),
        ("1.250", "1250"),
        ("1.255", "1255"),
        ("0.250", "0.25"),
        ("3,55", "3.55"),
        ("3,555", "3555"),
        ("1,2,3", "1,2,3"),
        ("1.2.30", "1.2.30"),
        ("1.000.000,50", "1000000.5"),
        ("0.0", "0"),
    ],
)
def test_a_number_has_one_form(written, canonical):
    assert canonical_number(written) == canonical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. We stayed! Why?", ["It rained.", "We stayed!", "Why?"]),
        ("Dr. Smith met J. K. Rowling in the U.S. Army.", ["Dr. Smith met J. K. Rowling in the U.S. Army."]),
        ("1. Open it.\n2) Close it.\n- Done", ["Open it.", "Close it.", "Done"]),
        ("He was 12. Then he left.", ["He was 12.", "Then he left."]),
        ("version 3.5 is out", ["version 3.5 is out"]),
        ('She said "Go." Then she left.', ['She said "Go."', "Then she left."]),
        ("今日は雨。明日は晴れ。", ["今日は雨。", "明日は晴れ。"]),
        ("वह आया। वह गया।", ["वह आया।", "वह गया।"]),
        ("He won vs. Them. (He left.) She stayed.", ["He won vs. Them.", "(He left.)", "She stayed."]),
        ("He left. then she left.", ["He left. then she left."]),
        ("he left. (then) she left", ["he left.", "(then) she left"]),
        ("He left. (then) all", ["He left. (then) all"]),
        ("He left: Then all", ["He left: Then all"]),
        ("*Bold.* Next.", ["*Bold.*", "Next."]),
        ("12. 12 years\n123. A", ["12 years", "123.", "A"]),
        ("… \n ---", []),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


def test_a_long_run_of_marks_is_put_in_the_order_that_unicode_wants():
    marks = "\u0301\u0323" * 20 + "\u0345"  # above and below: those below come first
    for form in ("NFKC", "NFKD"):
        assert compatible(form, f"a{marks}b{marks[::-1]}") == unicodedata.normalize(
            form, f"a{marks}b{marks[::-1]}"
        )
    half_width = "ﾊﾟｶﾞ" * 20 + marks
    assert compatible("NFKC", half_width) == unicodedata.normalize("NFKC", half_width)
    assert [has_words(text) for text in ("_", "…", "é", "x", "7", "")] == [
        False,
        False,
        True,
        True,
        True,
        False,
    ]


def test_a_reading_keeps_content_in_order_and_stands_for_every_negation_by_one_stem():
    reading = read("The house isn't on the big hill [12].")
    assert reading.content == ["hous", NEGATION, "big", "hill"]
    assert reading.pairs == {("hous", NEGATION), (NEGATION, "big"), ("big", "hill")}


def test_names_are_runs_of_capitals_inside_a_sentence():
    assert names(read("Yesterday Marie Curie met (Paul) Langevin in Paris: Everybody knew.")) == [
        ["mari", "curi"],
        ["paul", "langevin"],
        ["paris"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She met Anna Lee, Bob and (Carl).", [["anna", "lee", "bob"], ["carl"]]),
        ("Then 12 Anna 'Bert' was *Carl*", [["anna", "bert"], ["carl"]]),
        ("He said: Stop it! Now he left. Then", []),
        ("here was Anna, there Bob Lee Cox", [["anna"], ["bob", "lee", "cox"]]),
        ("It Was In Old Towns", [["old", "town"]]),  # five words are no heading
        ("It Was In The Old Towns", []),
        (
            "It Big Red Old the new Towns",
            [["big", "red", "old"], ["town"]],
        ),  # exactly two thirds are no heading
        ("It Big Red Old the Sea Towns", []),
        ("THE WHOLE TEXT", []),
        ("x", []),
        ("", []),
    ],
)
def test_a_heading_has_no_names(text, expected):
    assert names(read(text)) == expected


def test_numbers_are_told_from_words():
    assert numbers(["3.5", "b12", "hous", "1999"]) == ["3.5", "b12", "1999"]


def test_quote_gives_the_spelling_of_the_text_and_stops():
    text = read("Big Dogs chase (cats), red cats chase birds.")
    assert quote(text, {"dog", "cat"}) == "Dogs, cats"
    assert quote(text, text.stems, most=2) == "Big, Dogs, …"
    assert quote(text, text.stems, most=6) == "Big, Dogs, chase, cats, red, …"
    assert quote(text, text.stems) == "Big, Dogs, chase, cats, red, birds"
    assert quote(text, {"nowhere", "elsewher"}) == "elsewher, nowhere"
    assert (
        quote(read("a1 b2 c3 d4 e5 f6 g7 h8"), {f"{a}{n}" for n, a in enumerate("abcdefgh", 1)}).count(",")
        == 7
    )


@pytest.mark.parametrize(("length", "quoted"), [(64, "w" * 64), (65, "stem")])
def test_a_long_piece_is_quoted_by_its_stems(length, quoted):
    text = Reading("", [], ["w" * length, "x"], [("stem",), ("y",)])
    assert quote(text, {"stem"}) == quoted
    several = Reading("", [], ["w" * 40, "v" * 40], [("stem",), ("stem",)])
    assert quote(several, {"stem"}) == f"{'w' * 40}, {'v' * 40}"


def test_pieces_are_remembered_up_to_128_characters_and_100_000_of_them():
    vocabulary = words_module._Vocabulary()
    long, longer = "x" * 128, "w" * 129
    assert (vocabulary[long], vocabulary[longer]) == ((long,), (longer,))
    assert set(vocabulary) == {long}
    vocabulary.update(dict.fromkeys(map(str, range(99_998)), ()))
    assert (vocabulary["towers"], len(vocabulary)) == (("tower",), 100_000)
    assert vocabulary["bridges"] == ("bridg",)
    assert vocabulary == {"bridges": ("bridg",)}  # all others were forgotten before it


@pytest.mark.parametrize(
    ("text", "stems", "quoted"),
    [
        ("今日は雨。明日は晴れ。", {"明日"}, "今日は雨。明日は晴れ"),
        ("1. Bears eat fish. Fish swim.\n2. Bears swim.", {"bear", "2"}, "Bears, 2"),
    ],
)
def test_a_claim_is_quoted_as_it_is_written_wherever_its_sentences_end(text, stems, quoted):
    assert quote(read_claim(text).whole, stems) == quoted


def test_sentences_without_content_are_not_read():
    claim = read_claim("It is. 1. Bears eat fish.\n2. Fish swim.")
    assert [one.text for one in claim.sentences] == ["Bears eat fish.", "Fish swim."]
    assert claim.whole.content == ["bear", "eat", "fish", "fish", "swim"]


@given(st.text(max_size=300))
def test_any_text_can_be_read_and_reading_it_twice_gives_the_same(text):
    first = read(text)
    assert read(text).content == first.content
    assert all(first.content)
    assert first.stems == set(first.content)
    assert all(word == normalise(word) or not word.isascii() for word in words(text))
    assert len(read_claim(text).sentences) <= len(text)


def test_forgotten_texts_are_read_again_with_the_same_result():
    texts = [f"House {number} stands on hill {number} " + "and more words " * 300 for number in range(60)]
    before = [read(text).content for text in texts]
    assert [read(text).content for text in texts] == before


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.725, "0.73"),  # 0.72499999999999997780 in binary; a spreadsheet program shows 0.73
        (0.7249999999999999, "0.73"),  # Excel sees 15 digits
        (0.724, "0.72"),
        (1.005, "1.01"),
        (-0.725, "−0.73"),
        (-0.001, "0.00"),
        (0.0, "0.00"),
        (1, "1.00"),
        (None, "–"),
    ],
)
def test_numbers_are_rounded_as_a_workbook_shows_them(value, shown):
    assert decimals(value) == shown


def test_a_sign_is_shown_on_request_and_never_on_zero():
    assert [decimals(value, is_signed=True) for value in (0.05, -0.05, 0.001, -0.001)] == [
        "+0.05", "−0.05", "0.00", "0.00",
    ]  # fmt: skip
    assert [percent(share) for share in (0.125, 0.5, 1.0, 0.0)] == ["13%", "50%", "100%", "0%"]
    assert [percent(share, 1) for share in (0.0625, 0.5)] == ["6.3%", "50.0%"]


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.51, 0.65, "51–65%"),
        (0.5, 0.75, "50–75%"),  # no preference: exactly half
        (0.5025, 0.75, "50.3–75.0%"),  # a preference
        (0.25, 0.4975, "25.0–49.8%"),
    ],
)
def test_an_end_of_a_win_rate_that_is_not_half_does_not_look_like_it(
    low: float, high: float, told: str
) -> None:
    assert percent_range(low, high) == told


def test_many_names_are_listed_in_part():
    assert enumerated(["A"]) == "A"
    assert enumerated(["A", "B"], "or") == "A or B"
    assert enumerated(list("ABCDEF")) == "A, B, C, D, E and F"
    assert enumerated([str(number) for number in range(1_205)]) == "0, 1, 2, 3, 4 and 1,200 others"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("It costs $1.5 million.", ["cost", "1500000", "dollar"]),
        ("US$3.50 or 3.50 USD", ["3.5", "dollar", "3.5", "dollar"]),
        ("$HOME and cash$", ["home", "cash"]),
        ("19 per cent per year", ["19", "percent", "per", "year"]),
        ("a cent per day", ["cent", "per", "day"]),
        ("two hundred thousand people", ["200000", "peopl"]),
        ("one hundred millions", ["100000000"]),
        ("Millions of people", ["million", "peopl"]),
        ("from 9 a.m. to 8:30 PM", ["9", "20.3"]),
        ("at 12 am, not at 12pm", ["0", NEGATION, "12"]),
        ("At 12. I am here", ["12"]),
        ("15 pm", ["15"]),
        ("cinco mil euros", ["5000", "euro"]),
        ("1\u202f500 habitants, 2\u00a0000 chiens", ["1500", "habitant", "2000", "chien"]),
        ("三十元", ["30", "yuan"]),
        ("二千五百人", ["2500", "人"]),
        ("1.2万円", ["12000", "yen"]),
        ("晚上八点到三个月", ["20", "点", "到", "3", "month"]),
        ("朝は午前9時から午後8:30", ["朝は", "9", "点", "から", "20.3"]),
        ("三年级和10周年", ["3", "年级", "级和", "10", "周年"]),
        ("十分之三和四川和一个", ["十分", "分之", "之三", "三和", "和四", "四川", "川和", "和一", "一个"]),
        ("Between 2 and 6 pm", ["14", "18"]),
        ("from 10 to 2 pm", ["10", "14"]),
        ("from 8 h 30 to 6 pm", ["8.3", "18"]),
        ("100 h 15 mil", ["100", "h", "15000"]),
        ("1 h 30, 2 hours 30 minutes, 24 h", ["1.3", "2", "h", "30", "min", "24", "h"]),
        ("January 31st, le 1er mai", ["januari", "31", "le", "1", "mai"]),
        ("15 Mar. and 3 Oct", ["15", "mar", "3", "october"]),
        ("1,2,3万円", ["1,2,3", "yen"]),
        ("1.2.3 million", ["1.2.3", "million"]),
        (f"{'9' * 20} million", [f"{'9' * 20}000000"]),
        (f"{'9' * 21} million", ["9" * 21, "million"]),
        (f"{'9' * 5000} pm", ["9" * 5000, "pm"]),
        (f"5 to {'9' * 5000} pm", ["5", "9" * 5000, "pm"]),
        (f"{'一' * 5000}円", ["一" * 5000, "yen"]),
    ],
)
def test_an_amount_of_several_words_is_one(text, content):
    assert read(text).content == content
    assert read_all((text,))[0].content == content
    assert [stem for sentence in read_claim(text).sentences for stem in sentence.content] == content


def test_an_amount_is_quoted_as_the_text_spells_it():
    assert quote(read("It has 1.5 million people."), {"1500000"}) == "1.5, million"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("A dog may bark", ["dog", "bark"]),
        ("the US and IT staff", ["us", "it", "staff"]),
        ("Vitamin A", ["vitamin", "a"]),
        ("A", ["a"]),
        ("Note: A dog", ["note", "dog"]),
        ("Here I am", []),
        ("THE BRIDGE STANDS IN SYDNEY", ["bridg", "stand", "sydnei"]),
        ("**Plan:** If you can", ["plan"]),
        ("Others came", ["other", "came"]),
        ("It rains in May, you may know", ["rain", "may", "know"]),
        ("May I ask Will?", ["ask", "will"]),
    ],
)
def test_a_function_word_in_capitals_inside_a_sentence_is_a_name(text, content):
    assert read(text).content == content
    assert read_claim(text).whole.content == content


def test_a_german_date_is_neither_an_item_of_a_list_nor_the_end_of_a_sentence():
    assert read_claim("3. Oktober").whole.content == ["3", "oktober"]
    assert read_claim("3. Oktoberfest").whole.content == ["oktoberfest"]
    sentences = read_claim("Die Frist endet am 3. Oktober 2024. Danach nicht.").sentences
    assert [sentence.text for sentence in sentences] == [
        "Die Frist endet am 3. Oktober 2024.",
        "Danach nicht.",
    ]


def test_the_script_of_a_long_text_is_that_of_its_first_2000_characters():
    beginning, rest = "λόγος " * 333, " the answer" * 500
    assert have_one_language(beginning + rest, "Ποιος;")
    assert not have_one_language(beginning[:600] + rest, "Ποιος;")
