"""Citations: which brackets are some, what they name, and what an answer that cites scores by words and by a judge.

tests/not_citations.txt has texts with brackets that cite nothing, one on a line; a fenced block is one text.
"""

import json
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batch_server import running_batches
from conftest import Run, azure, read_sheet
from fake_judge import Answer, FakeJudge, Request, completion, structured
from files import write_table
from in_process import ObjectJudge, run
from jsonschema import Draft202012Validator
from scipy.stats import rankdata

from rag_eval.metrics.catalogue import METRICS
from rag_eval.metrics.citation_support import citation_metrics
from rag_eval.metrics.offline.support import own_shares, support
from rag_eval.records import NO_CITATIONS, NO_SUCH_CHUNK, WRONG_CHUNK, Case, Outcome, Score, Turn
from rag_eval.texts import brackets
from rag_eval.texts.citations import Habit, citing_sentences, habit_of, joined
from rag_eval.texts.source_lists import without_sources
from rag_eval.texts.words import read_all, read_sentences, sentences, words

ROOT = Path(__file__).parent.parent
FIXTURES = os.environ.get("RAG_EVAL_FIXTURES", "")
CHUNKS = ("Loans last four weeks.", "Books can be renewed twice.", "Returns are possible at any branch.")
CITES = Habit(10, 10, 10)
"""Of a bot whose responses all cite."""


def read(response: str, chunks: Sequence[str] = CHUNKS, base: int = 1) -> list[tuple[str, list[int]]]:
    """Each sentence with the chunks that it cites; one that does not exist is minus its number."""
    return [
        (each.text, [cited.chunk or -cited.number for cited in each.citations])
        for each in citing_sentences(response, chunks, base)
    ]


def not_citations() -> list[str]:
    text = (ROOT / "tests" / "not_citations.txt").read_text(encoding="utf-8")
    found = re.findall(r"^```(?s:.*?)^```$|^.+$", text, re.MULTILINE)
    return [each.replace("\\n", "\n") for each in found]


# Reading


@pytest.mark.parametrize(
    ("response", "cited"),
    [
        ("Loans last four weeks [1].", [1]),
        ("Loans last four weeks.[1]", [1]),
        ("Loans last four weeks. [1]", [1]),
        ("Loans last four weeks[1][2].", [1, 2]),
        ("Loans last four weeks [1] [2].", [1, 2]),
        ("Loans last four weeks [1], [2].", [1, 2]),
        ("Loans last four weeks [1, 3].", [1, 3]),
        ("Loans last four weeks [1; 3].", [1, 3]),
        ("Loans last four weeks [1-3].", [1, 2, 3]),
        ("Loans last four weeks [1–2].", [1, 2]),
        ("Loans last four weeks[^2].", [2]),
        ("Loans last four weeks [doc2].", [2]),
        ("Loans last four weeks [doc1][doc3].", [1, 3]),
        ("Loans last four weeks [Source 2].", [2]),
        ("Loans last four weeks [Source 1, Source 3].", [1, 3]),
        ("Loans last four weeks [Sources 1 and 3].", [1, 3]),
        ("Loans last four weeks [Doc 1][Doc 2].", [1, 2]),
        ("Loans last four weeks [Document: 2].", [2]),
        ("Loans last four weeks [chunk_3].", [3]),
        ("Loans last four weeks [Ref. 2].", [2]),
        ("Loans last four weeks [Source 9].", [-9]),
        ("Loans last four weeks [Source 1](https://lib.org/loans).", [1]),
        ("Loans last four weeks [ 1 ].", [1]),
        ("Loans last four weeks [ 1, 2 ].", [1, 2]),
        ("Loans last four weeks (Source 2).", [2]),
        ("Loans last four weeks (sources 1, 3).", [1, 3]),
        ("Die Leihfrist beträgt vier Wochen [Quelle 1].", [1]),
        ("Le prêt dure quatre semaines (source 2).", [2]),
        ("La ficha dura cuatro semanas [Fuente 1; Fuente 2].", [1, 2]),
        ("借阅期为四周[来源1]。", [1]),
        ("Loans last four weeks【2†source】.", [2]),
        ("Loans last four weeks 【1†fees 2024.pdf】【3†source】.", [1, 3]),
        ("Loans last four weeks【1】.", [1]),
        ("Loans last four weeks 【1】【3】.", [1, 3]),
        ("Loans last four weeks [1, 2-3].", [1, 2, 3]),
        ("Loans last four weeks [1–2; 3].", [1, 2, 3]),
        ("Loans last four weeks [1 , 2].", [1, 2]),
        (r"Loans last four weeks \[1\].", [1]),
        (r"Loans last four weeks \[1\]\[2, 3\].", [1, 2, 3]),
        ("Loans last four weeks [^1^][^3^].", [1, 3]),
        ("Loans last four weeks [[1]](https://lib.org/loans).", [1]),
        ("Loans last four weeks [[1]](https://lib.org/loans)[[^2^]](https://lib.org/fees).", [1, 2]),
        ("Loans last four weeks [1](https://lib.org/loans_(all)).", [1]),
        ("Loans last four weeks [1](https://lib.org/loans), [2](https://lib.org/fees).", [1, 2]),
        ('Loans [1](https://lib.org/a) and fees are free [2](https://lib.org/b "Fees").', [1, 2]),
        ("Loans last four weeks [2](https://lib.org/loans)\n", [2]),
        ("借阅期为四周【2】。", [2]),
        ("借阅期为四周[2](https://lib.org/a)。", [2]),
        ("Loans last four weeks [2-7].", [2, 3, -7]),
        ("The loan period [1-3] is four weeks.", [1, 2, 3]),
        ("Four weeks is a usual value, as described in [1, 2].", [1, 2]),
        ("Loans last 28 days [1-3].", [1, 2, 3]),
        ("Die Ausleihe ist eine Form der KI [1, 3].", [1, 3]),
        ("Die Leihfrist [1-2] beträgt 28 Tage.", [1, 2]),
        ("Studies from other libraries [1, 2] show this.", [1, 2]),
        ("Le prêt est de 28 jours [1-3], renouvelable.", [1, 2, 3]),
        ("借阅期为四周[1-3]。", [1, 2, 3]),
        ("Loans last four weeks [7].", [-7]),
        ("Loans last four weeks (see [1]).", [1]),
        ("Loans last four weeks ([1], [2]).", [1, 2]),
        ("Loans last four weeks. Source: [2]", [2]),
        ("Loans last four weeks.\n\nSources: [1], [2]", [1, 2]),
        ("Loans last four weeks.\n[1][2]", [1, 2]),
        ("**Loans last four weeks [1]**.", [1]),
        ("- Loans last four weeks [1]", [1]),
        ("Loans last 4 weeks[2], in 2023 [3].", [2, 3]),
        ("Enter the five-digit bike number [1].", [1]),
        ("The fees are in the price list [1] and in the fee table [2].", [1, 2]),
        ("The rate is within the allowed range [2][3].", [2, 3]),
        ("Children of any age [1] may borrow from this page [2].", [1, 2]),
        ("Loans last four weeks[^1].\n\n[^1]: handbook.pdf", [1]),
        ("Loans last four weeks[^2].\n\n[^2]: Books can be renewed twice.", [2]),
        ("Loans last four weeks [1].\n\nSources:\n[1] Handbook\n[2] Fees", [1]),
        ("Loans last four weeks [1].\n\nSources: [2] Handbook, [3] Fees", [1]),
        ("Loans last four weeks [1], of 2023 [2023].", [1]),
        ("Die Leihfrist beträgt vier Wochen [1].", [1]),
        ("Le prêt dure quatre semaines [2].", [2]),
        ("借阅期为四周[1]。", [1]),
        ("借阅期为四周。[1]", [1]),
        ("貸出期間は四週間です[2]。", [2]),
        ("ऋण चार सप्ताह का है [1]।", [1]),
        ("مدة الإعارة أربعة أسابيع [1].", [1]),
        ("ยืมได้สี่สัปดาห์[2]", [2]),
        ("대출 기간은 4주입니다[1].", [1]),
    ],
)
def test_citations_belong_to_the_sentence_that_they_follow(response: str, cited: list[int]) -> None:
    found = [each for each in read(response) if each[1]]
    assert [numbers for _, numbers in found] == [cited]
    assert not {"[", "【"} & {*found[0][0].replace("[2023]", "")}


def test_code_before_a_citation_moves_no_words() -> None:
    said = [("Call `run(x)` or `f[2]` first.", [1]), ("Then stop.", [2])]
    assert read("Call `run(x)` or `f[2]` first [1]. Then stop [2].") == said


def test_each_sentence_has_its_own_citations_and_each_citation_its_part() -> None:
    response = "Loans last four weeks [1]. Books can be renewed.[2] It is free. Ask [7] or [2], or [2]."
    assert read(response) == [
        ("Loans last four weeks.", [1]),
        ("Books can be renewed.", [2]),
        ("It is free.", []),
        ("Ask.", [-7, 2]),
    ]
    (only,) = citing_sentences("Loans last four weeks [1], and returns are possible anywhere [3].", CHUNKS, 1)
    assert [each.statement for each in only.citations] == [
        "Loans last four weeks",
        "and returns are possible anywhere",
    ]
    assert only.marked == "Loans last four weeks [1], and returns are possible anywhere [3]."


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("[1] states that loans last four weeks.", [("states that loans last four weeks.", [1])]),
        ("[1][2] show that it is so.", [("show that it is so.", [1, 2])]),
        ("[doc1][doc2] show that it is so.", [("show that it is so.", [1, 2])]),
        ("It rose. 【2†source】 The next year it fell.", [("It rose.", [2]), ("The next year it fell.", [])]),
        ("[1], [2] and [3] say that it is so.", [("say that it is so.", [1, 2, 3])]),
        ("It rose. [2] The next year it fell.", [("It rose.", [2]), ("The next year it fell.", [])]),
        ("It rose.[2] The next year it fell. [1]", [("It rose.", [2]), ("The next year it fell.", [1])]),
        ("It rose. [2] states that it fell.", [("It rose.", []), ("states that it fell.", [2])]),
        ("It rose.\n[2] adds that it fell.", [("It rose.", []), ("adds that it fell.", [2])]),
        ("- [1] says so.\n- [2] denies it.", [("says so.", [1]), ("denies it.", [2])]),
        ("It rose. [2] iPhone sales fell.", [("It rose. iPhone sales fell.", [2])]),
        ("it rose. [1] it fell. [2]", [("it rose.", [1]), ("it fell.", [2])]),
        ("Smith et al. [1] found it.", [("Smith et al. found it.", [1])]),
        ("Das gilt. [2] nennt zwei Fälle.", [("Das gilt.", []), ("nennt zwei Fälle.", [2])]),
        ("Das gilt. [2] Bücher sind da.", [("Das gilt.", [2]), ("Bücher sind da.", [])]),
        ("C'est dû. [1] précise le délai.", [("C'est dû.", []), ("précise le délai.", [1])]),
        ("C'est dû. [1] Le délai court.", [("C'est dû.", [1]), ("Le délai court.", [])]),
        ("借阅期为四周。[1]指出可以续借。", [("借阅期为四周。", []), ("指出可以续借。", [1])]),
        ("借阅期为四周。[1]可以续借。[2]", [("借阅期为四周。", [1]), ("可以续借。", [2])]),
        (
            "四週間です。[1]によると、更新できます。",
            [("四週間です。", []), ("によると、更新できます。", [1])],
        ),
        ("四週間です。[2]更新できます。", [("四週間です。", [2]), ("更新できます。", [])]),
    ],
)
def test_a_citation_after_a_full_stop_belongs_to_the_sentence_that_goes_on_from_it(
    response: str, expected: list[tuple[str, list[int]]]
) -> None:
    assert read(response) == expected
    assert habit_of(response, CHUNKS).citing


def test_a_bot_may_cite_before_each_of_its_sentences() -> None:
    response = "[2] Books can be renewed. It is free. [1] Loans last four weeks."
    habit = habit_of(response, CHUNKS)
    assert habit.leads
    sentences = citing_sentences(response, CHUNKS, 1, leads=True)
    assert [(each.text, each.chunks) for each in sentences] == [
        ("Books can be renewed.", (2,)),
        ("It is free.", ()),
        ("Loans last four weeks.", (1,)),
    ]
    assert values(response, habit=habit) == [1.0, pytest.approx(1.0)]
    assert not habit_of("[1] Open the app. [2] Log in.", CHUNKS).leads, "these may be steps"
    assert not habit_of("[2] Fees\n[1] Rules", CHUNKS).leads, "these may be sources"
    assert not habit.plus(Habit(9, 9, 9)).leads
    (first, *_) = citing_sentences("[1] Loans last four weeks. [2] Books too.", CHUNKS, 1, leads=True)
    assert first.chunks == (1,), "a bot that cites so elsewhere does so here"
    for several in ("[2, 3] Books can be renewed. [1] Loans last four weeks.", "[2-3] Books. [1, 2] Loans."):
        assert habit_of(several, CHUNKS).leads
    assert not habit_of("[1, 2] Loans last four weeks. [2-3] Books can be renewed.", CHUNKS).leads


def test_ascending_citations_before_sentences_count_for_a_bot_that_cites_so() -> None:
    chunks = ("Loans last four weeks.", "Books can be renewed.", "Returns are free.")
    ascending, other = (
        "[1] Loans last four weeks. [3] Returns are free.",
        "[3] Returns are free. [1] Loans last weeks.",
    )
    steps = joined({}, {"A": habit_of(ascending, chunks)})["A"]
    assert not steps.cites
    assert not steps.plus(Habit(9)).cites
    leading = steps.plus(steps).plus(steps).plus(habit_of(other, chunks))
    assert leading.leads
    assert leading.cites


def test_the_number_of_a_search_result_is_that_of_a_chunk_counted_from_0() -> None:
    """As OpenAI writes it, after the number of the message with the results."""
    response = (
        "Loans last four weeks【4:0†rules.pdf】. Returns are free【4:2†fees 2024.pdf】 and easy【4:1†a】."
    )
    habit = habit_of(response, CHUNKS)
    assert (habit.cites, habit.base) == (True, 0)
    assert read(response, base=0) == [
        ("Loans last four weeks.", [1]),
        ("Returns are free and easy.", [3, 2]),
    ]
    assert habit_of("Returns are free【4:2†fees.pdf】.", CHUNKS).base == 0, (
        "whether or not the first result is cited"
    )
    assert read("Returns are free【4:9†fees.pdf】.", base=0) == [("Returns are free.", [-9])]
    several = "Loans last four weeks【4:0†rules.pdf】. Returns are free【8:0†fees.pdf】."
    assert not habit_of(several, CHUNKS).citing, "two searches have two results of that number"
    assert not any(cited for _, cited in read(several, base=0))


@pytest.mark.parametrize(
    "heading",
    [
        "References:", "Sources", "**Sources:**", "## References", "Bibliography:", "Works cited", "Quellen:",
        "Quellenverzeichnis", "Literatur:", "Références :", "Sources :", "Fuentes:", "Referências:", "Fonti:",
        "Bronnen:", "Källor:", "Źródła:", "Kaynaklar:", "Источники:", "Список литературы", "参考文献", "参考文献：",
        "出典：", "来源：", "참고 문헌", "المراجع:", "संदर्भ:", "แหล่งที่มา:", "Nguồn:",
    ],
)  # fmt: skip
@pytest.mark.parametrize("mark", ["1.", "2)", "-", "•"])
def test_a_list_of_sources_below_the_answer_is_no_statement(heading: str, mark: str) -> None:
    answer = "Loans last four weeks [1].\n\n"
    expected = [("Loans last four weeks.", [1])]
    assert read(f"{answer}{heading}\n{mark} handbook.pdf\n{mark} Fee table of 2024") == expected
    more = f"{answer}{heading}\n\n{mark} handbook.pdf\n\n{mark} Fee table\n\nReturns are free [3]."
    assert read(more) == [*expected, ("Returns are free.", [3])]
    listed = f"{answer}{heading}\n{mark} handbook.pdf\n{mark} Fees, 2024"
    assert offline(listed) == offline("Loans last four weeks [1].")


def offline(response: str, query: str = "How long?", reference: str = "Four weeks.") -> list[float | None]:
    """What the offline judge says of a response: of its support, its likeness to the ground truth, its relevancy."""
    case = Case(2, "A", query, response, reference, chunks=tuple(CHUNKS))
    names = ("faithfulness", "answer_correctness", "answer_relevancy")
    return [score.value for score in run([METRICS[name].offline().measure(case) for name in names], None)]


@pytest.mark.parametrize(
    "named",
    [
        "Source: handbook.pdf, page 3", "Sources: handbook.pdf, fees.pdf", "**Quelle:** Handbuch, S. 3",
        "(Source: Handbook)",
        "Sources: [1], [2]", "Source: handbook.pdf\nSource: fees.pdf", "[1] handbook.pdf\n[2] https://lib.org/fees",
        "References:\n[1] Handbook\n[2] Fees", "## Sources\nhandbook.pdf\nhttps://lib.org/fees\n",
        "出典：ハンドブック",
        "See [Handbook](https://lib.org/handbook).", "Siehe [Buch](https://lib.org/a), [Regeln](https://lib.org/b)",
        "---\nSource: handbook.pdf", "[Source 1] handbook.pdf", "Sources:\n- [1] Handbook\n- [2] Fees, 2024",
        "References:\n* [1] Handbook, page 3", "**Quellen**\n• [1] Handbuch",
    ],
)  # fmt: skip
def test_the_offline_judge_takes_no_source_at_the_end_for_a_statement(named: str) -> None:
    said = "Loans last four weeks.\n\n"
    assert offline(said + named) == offline(said)
    assert without_sources(named) == named, "it says nothing else"


@pytest.mark.parametrize(
    "ending",
    [
        ". Sources: [1] handbook.pdf, [2] fees.pdf", ". Source: handbook.pdf, p. 3.", " (source: handbook.pdf).",
        ". **Sources:** https://lib.org/fees", ". Quellen: [1] Handbuch, [2] Preise", "。来源：handbook.pdf",
        " [Source 1].", " (Source 1).", " [ 1 ].",
    ],
)  # fmt: skip
def test_sources_in_the_line_of_the_answer_are_no_statement_either(ending: str) -> None:
    said = "Loans last four weeks"
    assert offline(said + ending) == offline(said)


@pytest.mark.parametrize(
    "named", ["Handbook", "Handbook, page 3", "House rules 2024, section 4", "handbook.pdf"]
)
@pytest.mark.parametrize(
    ("mark", "note"),
    [
        (".[^1]", "[^1]:"), (" [1].", "[1]"), (" [1].", "- [1]:"), (" [Source 1].", "Source 1:"), (".¹", "¹"),
        (" [1, 2].", "[2]"), (".[^1]", "Footnotes:\n[^1]:"), (" (source 1).", "[1]"),
    ],
)  # fmt: skip
def test_a_note_at_the_end_that_names_the_source_of_a_mark_is_no_statement(
    mark: str, note: str, named: str
) -> None:
    said = f"Loans last four weeks{mark}"
    assert offline(f"{said}\n\n{note} {named}") == offline("Loans last four weeks.")


@pytest.mark.parametrize(
    "aside",
    [
        "(Handbook, p. 3)", "(page 3)", "(see page 3)", "(Handbuch, S. 3)", "(Seite 3 f.)", "[Handbook, pp. 3–4]",
        "(Source: Handbook, page 3)", "(Source: House rules 2024)",
    ],
)  # fmt: skip
def test_a_source_or_page_in_brackets_is_no_statement(aside: str) -> None:
    said = "Loans last four weeks. Returns are free"
    assert offline(f"Loans last four weeks {aside}. Returns are free {aside}.") == offline(f"{said}.")
    assert offline(f"{said}. {aside}") == offline(f"{said}.")
    asked = "On which page is it?"
    assert offline(f"{said} {aside}.", asked, "Page 3")[1] >= offline(f"{said}.", asked, "Page 3")[1]


@pytest.mark.parametrize(
    "response",
    [
        "Loans last four weeks[^1].\n\n[^1]: Except on holidays",
        "Loans last four weeks[^1].\n\n[^1]: Except on holidays.",
        "Loans cost twenty euros[^1].\n\n[^1]: 10 euros for students",
        "There are two rules [1][2].\n\n[1] No smoking\n[2] Dogs are not allowed",
        "You need two papers [1][2]:\n[1] Passport\n[2] Photo",
        "Loans last four weeks [1].\n[1] Handbook\n[2] Renew in the app",
        "Loans last four weeks.\n[1] Handbook, page 3",
        "The area is 3 m².\n¹ Handbook",
        "Renew it in step [1].\n[1] Press the button.",
        "Loans last four weeks (they end after 28 days, p. 3).",
        "The river Main (source: Fichtelgebirge) flows west.",
        "The river Main (source: Fichtelgebirge, length: 525 km).",
        "(Handbook, p. 3)",
        "[1] Handbook, page 3",
        "Loans last four weeks:\n1. Open the app.\n2. Tap renew.",
        "Loans last four weeks.\n[1] Open the app.\n[2] Tap renew.",
        "Sources:\n1. Rent\n2. Fees",
        "Source: handbook.pdf",
        "River: Main\nLength: 525 km\nSource: Fichtelgebirge",
        "The city has income.\n- Sources: Rent and fees",
        "Loans last four weeks. See [the form](https://lib.org/form) and send it to the library.",
        "Loans last four weeks.\nSee [the form](https://lib.org/form) and send it to the library.",
        "Loans last four weeks.\nSources of income are rents and fees.",
        "The city has income. Sources: rents and fees.",
        "Loans last four weeks. Source: the file rules.pdf says so. Returns are free.",
        "Loans last four weeks. Sources: rules.pdf\nReturns are free.",
        "Sources: [1] rules.pdf",
    ],
)
def test_a_response_that_ends_in_another_way_is_whole_for_the_offline_judge(response: str) -> None:
    assert without_sources(response) == response


def test_a_list_of_sources_ends_at_a_line_that_names_none() -> None:
    assert without_sources("Loans last four weeks.\n\nSources:\n- rules.pdf\nEnjoy!").split() == [
        "Loans", "last", "four", "weeks.", "Enjoy!",
    ]  # fmt: skip


def test_sources_that_are_asked_for_or_in_the_ground_truth_count() -> None:
    said = "Loans last four weeks."
    listed = f"{said}\n\nSources:\n1. Handbook\n2. Fee table"
    assert offline(listed, "Which documents say so?", listed)[1] == 1
    asked = "What are the sources of this rule?"
    assert (
        offline(listed, asked, "Handbook and fee table")[1:]
        > offline(said, asked, "Handbook and fee table")[1:]
    )
    assert offline(listed, reference=listed)[1] == 1
    assert offline(listed, reference=listed)[::2] == offline(said)[::2], "no matter what the ground truth has"
    assert without_sources("The city has income.\n\nSources:\n- Rent [1]\n- Fees [2]").endswith("- Fees [2]")


@pytest.mark.parametrize(
    ("response", "count"),
    [
        ("Renew a book [2]:\n1. Open the app.\n2. Tap the menu.\n3. Press the button.", 4),
        ("Steps:\n1. Open the app.\n2. Tap the menu.", 3),
        ("Sources:\n1. Rent\n2. Fees", 3),
        ("The city has two kinds of income [1].\nSources of income:\n1. Rent\n2. Fees", 4),
        ("The city has income.\n\nSources:\n- Rent [1]\n- Fees [2]", 3),
        ("References help.\n1. They are read.\n2. They are cited.", 3),
        ("Quellen:\nDie Stadt hat Mieten.\n1. Wohnungen\n2. Läden", 4),
        ("See the list.\n- Sources\n- Fees", 3),
    ],
)
def test_another_list_is_one_of_statements(response: str, count: int) -> None:
    assert len(read(response)) == count


def test_words_that_only_join_or_lead_to_citations_are_no_statement() -> None:
    (both,) = citing_sentences("Loans last four weeks [1] and [2].", CHUNKS, 1)
    assert len({each.statement for each in both.citations}) == 1
    for joined_by in ("and", ", or", "und", "et", "o", "и", "& "):
        (both,) = citing_sentences(f"Loans last four weeks [1] {joined_by} [2].", CHUNKS, 1)
        assert both.text == "Loans last four weeks."
    (each,) = citing_sentences("As stated in [1], loans last four weeks, while [2] says twice.", CHUNKS, 1)
    assert [part.statement for part in each.citations] == ["loans last four weeks, while", "says twice"]


MARKS = (
    " [1]", " [doc1]", " [^1]", " [^1^]", "【1†source】", "【1】", " 【1†fees 2024.pdf】", " 【4:0†rules.pdf】",
    " [1,2]", " [1, 2]", " [1; 2]", " [1 , 2]", " [1 - 3]", " [1, 2-3]", r" \[1\]", r"\[1, 2\]", " [[1]](https://lib.org/loans)",
    " [1](https://lib.org/loans)", " [1](https://lib.org/loans)[2](https://lib.org/fees)",
)  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    ("query", "answer"),
    [("How long?", "Loans last four weeks"), ("借多久？", "借阅期为四周"), ("How long?", "Four weeks")],
)
def test_a_citation_is_no_word_of_the_response(mark: str, query: str, answer: str) -> None:
    full_stop = "." if answer.isascii() else "。"
    cases = [
        Case(2, "A", query, f"{answer}{each}{full_stop}", "Four weeks.", chunks=(*CHUNKS, "借阅期为四周。"))
        for each in ("", mark)
    ]
    for name in ("faithfulness", "answer_correctness", "answer_relevancy"):
        plain, cited = run([METRICS[name].offline().measure(case) for case in cases], None)
        assert plain.value == cited.value, name
    assert sentences(cases[1].response) == [" ".join(cases[1].response.split())], "as an LLM judge sees it"
    for text in (f"{answer}{mark}{full_stop}", f"{answer}{full_stop}{mark} More."):
        assert "1" not in read_all((text,))[0].stems
        assert "1" not in {stem for each in read_sentences(text) for stem in each.stems}


def test_numbers_in_brackets_that_cite_nothing_are_words() -> None:
    case = Case(
        2, "A", "Which?", "The values lie in the interval [1, 2].", chunks=("The values lie in [1, 2].",)
    )
    right, wrong = run(
        [
            METRICS["faithfulness"].offline().measure(each)
            for each in (case, replace(case, response="The values lie in the interval [3, 7]."))
        ],
        None,
    )
    assert right.value is not None
    assert wrong.value is not None
    assert right.value > wrong.value


def test_parts_of_a_sentence_that_begins_with_a_citation_follow_theirs() -> None:
    (only,) = citing_sentences("[1] says four weeks, and [2] says twice.", CHUNKS, 1)
    assert [each.statement for each in only.citations] == ["says four weeks, and", "says twice"]
    assert only.marked == "[1] says four weeks, and [2] says twice."


def test_texts_with_brackets_that_cite_nothing_have_no_citations() -> None:
    """Neither for a bot that cites elsewhere, nor as what a bot usually does."""
    texts = not_citations()
    assert len(texts) >= 60
    found = [text for text in texts if any(cited for base in (0, 1) for _, cited in read(text, base=base))]
    assert found == []
    assert [text for text in texts if habit_of(text, CHUNKS).cites] == []
    for text in texts:  # and nothing is flagged, whether the bot cites or not
        for habits in ({}, {"A": habit_of(text, CHUNKS)}):
            assert citation_metrics(habits, is_proxy=True) == ()


def test_a_bot_cites_if_most_of_its_brackets_name_chunks() -> None:
    def habit(*responses: str, chunks: Sequence[str] | None = CHUNKS) -> Habit:
        return reduce(joined, [{"A": habit_of(each, chunks)} for each in responses])["A"]

    assert habit("It is so [1].", "It is so.", "").cites
    assert habit("It is so [1].", "In [2023].", "Tick [3] times [4] here [2].").cites
    assert not habit("It is so [1].", "In `a[0]`.", "See [2](url).").cites
    assert not habit("It is so [1].", chunks=CHUNKS[:1]).cites, "one unsplit chunk has no parts to cite"
    assert not habit("It is so [1].", chunks=None).cites
    assert not habit("It is so.").cites
    assert habit("It is so [1].", *["It is so."] * 3).is_usual
    assert not habit("It is so [1].", *["It is so."] * 4).is_usual


@pytest.mark.parametrize(
    ("habit", "cites", "is_doubtful", "is_usual", "base", "leads"),
    [
        (Habit(10, 1, 1), True, False, False, 1, False),
        (Habit(11, 1, 1), False, False, False, 1, False),
        (Habit(30, 6, 3), False, True, False, 1, False),
        (Habit(31, 6, 3), False, False, False, 1, False),
        (Habit(20, 4, 2), False, False, False, 1, False),
        (Habit(20, 3, 2), True, False, False, 1, False),
        (Habit(8, 4, 4, first=1), True, False, True, 0, False),
        (Habit(8, 5, 5, first=1, last=0), True, False, True, 1, False),
        (Habit(8, 5, 4, first=1, last=1), True, False, True, 1, False),
        (Habit(8, 4, 4, leading=1), True, False, True, 1, True),
        (Habit(8, 5, 5, leading=1), True, False, True, 1, False),
        (Habit(8, 3, 1, leading=1, numbered=1), True, False, True, 1, True),
        (Habit(8, 3, 1, numbered=1), False, False, False, 1, False),
    ],
)
def test_how_many_responses_make_a_habit(
    habit: Habit, cites: bool, is_doubtful: bool, is_usual: bool, base: int, leads: bool
) -> None:
    """More than half of those with numbers in brackets and a tenth of all; a quarter for what is said more firmly."""
    seen = (habit.cites, habit.is_doubtful, habit.is_usual, habit.base, habit.leads)
    assert seen == (cites, is_doubtful, is_usual, base, leads)


@pytest.mark.parametrize(
    ("response", "chunks", "habit"),
    [
        ("It is so.", CHUNKS, Habit(1)),
        ("In [2023].", CHUNKS, Habit(1, 1)),
        ("It is so [1].", CHUNKS, Habit(1, 1, 1)),
        ("It is so [0].", CHUNKS, Habit(1, 1, 1, first=1)),
        ("It is so [3].", CHUNKS, Habit(1, 1, 1, last=1)),
        ("It is so【4:0†fees.pdf】.", CHUNKS, Habit(1, 1, 1, first=1)),
        ("It is so【4:3†fees.pdf】.", CHUNKS, Habit(1, 1, 1, first=1)),
        ("[2] Returns are free. [1] Loans last four weeks.", CHUNKS, Habit(1, 1, 1, leading=1)),
        ("[1] Open the app. [2] Log in.", CHUNKS, Habit(1, 1, numbered=1)),
        ("[7] Open the app. [8] Log in.", CHUNKS, Habit(1, 1)),
        ("Loans [4].", ("[4] Loans.", "[3] Books.", "[0] Dogs."), Habit(1, 1, 1)),
        ("Loans [3].", ("[4] Loans.", "[3] Books.", "[0] Dogs."), Habit(1, 1, 1)),
        ("Loans [0].", ("[4] Loans.", "[3] Books.", "[0] Dogs."), Habit(1, 1, 1)),
    ],
)
def test_what_a_response_adds_to_the_habit_of_its_bot(
    response: str, chunks: Sequence[str], habit: Habit
) -> None:
    assert habit_of(response, chunks) == habit


def test_the_number_of_the_first_chunk_is_that_of_all_responses_of_a_bot() -> None:
    def base(*responses: str) -> int:
        return reduce(joined, [{"A": habit_of(each, CHUNKS)} for each in responses])["A"].base

    assert base("One [0].", "Two [2].", "One [0] and two [1].") == 0
    assert base("One [1].", "Two [2].", "Three [3].") == 1
    assert base("One [1].", "Two [2].") == 1, "it cannot be known, and most bots count from 1"
    assert base("One [0].", "Three [3].", "Three [3].") == 1
    assert read("One [0]. Two [2]. Three [3].", base=0) == [("One.", [1]), ("Two.", [3]), ("Three.", [-3])]
    assert read("None [0]. One [1].") == [("None [0].", []), ("One.", [1])], (
        "0 is no mistake in counting from 1"
    )


def test_numbers_that_the_chunks_carry_win() -> None:
    chunks = ("[4] Loans last four weeks.", "[9] Books can be renewed.", "[2] Returns are possible.")
    assert read("Loans [4]. Books [9][2]. Fees [1].", chunks) == [
        ("Loans.", [1]),
        ("Books.", [2, 3]),
        ("Fees.", [-1]),
    ]
    assert habit_of("Loans [9].", chunks).cites
    assert read("Loans [30]. Books [31].") == [("Loans.", [-30]), ("Books [31].", [])], "31 is far from 3"
    partly = ("[4] Loans last four weeks.", "Books can be renewed.", "Returns are possible.")
    assert read("Loans [1].", partly) == [("Loans.", [1])]


def test_numbers_in_the_chunks_own_text_are_no_citations_if_there_is_no_such_chunk() -> None:
    chunks = ("The city was founded in 1207.[12] It grew.[2]", "It has a port.[13]")
    assert read("It was founded in 1207.[12] It has a port [2].", chunks) == [
        ("It was founded in 1207.[12] It has a port.", [2])
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "[1]",
        "a [1]",
        "\n[1] a",
        "[1",
        "$x_",
        "<code>[1]",
        "``",
        "\\(",
        "[a",
        "[a](",
        " .",
        "[^1]: ",
        "[1](https://",
        "[[1]](https://a(",
        "\\[1",
        "【4:0†a b】",
        "[1, ",
        "Sources:\n- a\n",
    ],
)
def test_hostile_texts_are_read_in_linear_time(part: str) -> None:
    """Eight times the text takes about eight times as long; a quadratic reading would take 64 times."""

    def seconds(characters: int) -> float:
        many = part * (characters // len(part))
        begin = time.process_time()
        for text in (many, f"a{many}", f"[1]{many}[1]"):
            habit_of(text, CHUNKS)
            citing_sentences(text, CHUNKS, 1)
        return time.process_time() - begin

    assert seconds(24_000) < 24 * seconds(3_000) + 0.1


# Scores


def scores(
    response: str,
    chunks: tuple[str, ...] | None = CHUNKS,
    habit: Habit = CITES,
    judge: ObjectJudge | None = None,
    query: str = "How long is a loan?",
) -> tuple[Score, Score]:
    """Precision and recall: by words or, with a judge, by its replies."""
    case = Case(2, "A", query, response, chunks=chunks)
    metrics = citation_metrics({"A": habit}, is_proxy=judge is None)
    precision, recall = run([metric.measure(case) for metric in metrics], judge)
    return precision, recall


def values(*given: Any, **options: Any) -> list[float | None]:
    return [score.value for score in scores(*given, **options)]


def verdicts(score: Score) -> list[tuple[str, int | None]]:
    assert all(each.favourable == each.verdict.startswith("supported") for each in score.evidence)
    return [(each.verdict, each.rank) for each in score.evidence]


FORMS: dict[str, Callable[[], ObjectJudge | None]] = {"words": lambda: None, "judge": ObjectJudge}


@pytest.mark.parametrize("form", FORMS)
def test_right_wrong_and_missing_citations(form: str) -> None:
    def of(response: str) -> tuple[Score, Score]:
        return scores(response, judge=FORMS[form]())

    precision, recall = of("Loans last four weeks [1]. Books can be renewed twice [2].")
    assert (precision.value, recall.value) == (1.0, 1.0)
    assert verdicts(precision) == [("supported", 1), ("supported", 2)]
    precision, recall = of("Loans last four weeks [2].")
    assert precision.value == recall.value == 0.0
    assert verdicts(precision) == [(WRONG_CHUNK, 2)]
    assert precision.evidence[0].reason == "cites chunk 2, but chunk 1 supports it"
    assert verdicts(recall) == [("supporting chunk not cited", 1)]
    precision, recall = of("Loans last four weeks [7].")
    assert (precision.value, recall.value) == (0.0, 0.0)
    assert verdicts(precision) == [(NO_SUCH_CHUNK, None)]
    assert precision.evidence[0].reason == "cites [7], but there are 3 chunks"
    precision, recall = of("Loans last four weeks.")
    assert (precision.outcome, recall.value) == (Outcome.NOT_APPLICABLE, 0.0)
    assert verdicts(recall) == [(NO_CITATIONS, None)]


@pytest.mark.parametrize("form", FORMS)
def test_precision_counts_citations_and_recall_statements(form: str) -> None:
    judge = FORMS[form]
    response = (
        "Loans last four weeks [1][3]. Books can be renewed twice. Returns are possible at any branch [3][9]."
    )
    precision, recall = scores(response, judge=judge())
    assert precision.value == pytest.approx(2 / 4)
    assert verdicts(precision) == [
        ("supported", 1),
        ("not supported", 3),
        ("supported", 3),
        (NO_SUCH_CHUNK, None),
    ]
    assert recall.value == pytest.approx(2 / 3)
    assert verdicts(recall) == [
        ("supported by its citation", 1),
        ("not cited", 2),
        ("supported by its citation", 3),
    ]
    # What no chunk supports is a matter of faithfulness: no chunk is wrong, and recall does not count it.
    precision, recall = scores(
        "Loans last four weeks [1]. Tea is served by friendly robots [2].", judge=judge()
    )
    assert (precision.value, recall.value) == (0.5, 1.0)
    assert verdicts(precision)[1] == ("not supported", 2)


def test_a_reference_that_is_copied_from_a_chunk_is_no_citation() -> None:
    chunks = [
        "Bees dance to show the way.[1] They live in hives.[2]",
        "Ants follow trails.[3]",
        "Wasps build nests.",
    ]
    assert not habit_of("They live in hives.[2]", chunks).citing
    assert citing_sentences("They live in hives.[2]", chunks, 1)[0].citations == ()
    assert habit_of("Wasps build nests.[3]", chunks).citing


def test_a_stray_bracket_does_not_make_a_bot_cite() -> None:
    assert not Habit(21, 1, 1).cites
    assert Habit(9, 1, 1).cites


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_applicable(form: str) -> None:
    rare = Habit(100, 15, 15)
    for response, chunks, habit, reasons in (
        (
            "Loans last four weeks [1].",
            CHUNKS[:1],
            CITES,
            {"the context is one chunk, so its parts cannot be cited"},
        ),
        ("Loans last four weeks [1].", None, CITES, {"the sheet has no context column for this bot"}),
        (" ", CHUNKS, CITES, {"empty response: there is nothing to cite"}),
        ("I do not know.", CHUNKS, CITES, {"the response cites nothing", "the response makes no statement"}),
        (
            "Loans last four weeks.",
            CHUNKS,
            rare,
            {"the response cites nothing", "the response cites nothing, and this bot rarely does"},
        ),
    ):
        judge = FORMS[form]()
        found = scores(response, chunks, habit, judge)
        assert {score.outcome for score in found} == {Outcome.NOT_APPLICABLE}
        assert {score.reason for score in found} == reasons
        assert judge is None or not judge.prompts, "no call is needed to know that"
    (precision, recall) = scores("Tea is served by friendly robots [2].", judge=FORMS[form]())
    assert (precision.value, recall.outcome) == (0.0, Outcome.NOT_APPLICABLE)
    assert values("Loans last four weeks [1].", ()) == [0.0, 0.0], "nothing was retrieved that it could cite"


def test_a_chunk_that_supports_its_part_of_a_sentence_is_right_by_words() -> None:
    response = "Loans last four weeks [1], and returns are possible at any branch [3]."
    precision, recall = scores(response)
    assert precision.value == pytest.approx(1.0, abs=0.2)
    assert {verdict for verdict, _ in verdicts(precision)} == {"supported"}
    assert recall.value == 1.0
    swapped, _ = scores("Loans last four weeks [3], and returns are possible at any branch [1].")
    assert swapped.value is not None
    assert swapped.value < 0.5


JOINT = "Loans last four weeks, and books can be renewed twice"


@pytest.mark.parametrize("form", FORMS)
def test_chunks_that_support_a_sentence_together_are_right_and_one_that_adds_nothing_is_wrong(
    form: str,
) -> None:
    def of(marks: str) -> tuple[float, list[str]]:
        precision, recall = scores(f"{JOINT} {marks}.", judge=FORMS[form]())
        assert recall.value == pytest.approx(1.0, abs=0.1)
        assert precision.value is not None
        return precision.value, [verdict for verdict, _ in verdicts(precision)]

    split, _ = scores("Loans last four weeks [1]. Books can be renewed twice [2].", judge=FORMS[form]())
    joint, told = of("[1][2]")
    assert joint == pytest.approx(split.value, abs=0.06)
    assert told == ["supported", "supported"]
    assert of("[2, 1]")[0] == pytest.approx(joint)
    padded, told = of("[1-3]")
    assert padded == pytest.approx(joint * 2 / 3)
    assert told == ["supported", "supported", "not supported"]
    # A chunk that has all of it needs no other, and the other adds nothing.
    whole = (f"{JOINT}.", "Loans last four weeks.", "Tea is free.")
    precision, _ = scores(f"{JOINT} [1][3].", whole, judge=FORMS[form]())
    assert verdicts(precision) == [("supported", 1), ("not supported", 3)]


def test_three_chunks_and_two_of_one_text_are_right_by_words() -> None:
    precision, _ = scores(f"Returns are possible at any branch, {JOINT.lower()} [1-3].")
    assert precision.value == pytest.approx(1.0, abs=0.1)
    precision, _ = scores(f"{JOINT} [1][2][4].", (*CHUNKS, "Loans last four weeks."))
    assert precision.value == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("chunks", "words", "pairs"),
    [
        (("Harbour trams cross.", "Seven bridges daily."), (3, 3), (2, 2)),
        (("Harbour trams cross seven bridges daily.",), (6,), (5,)),
        (("Harbour trams cross seven bridges daily.", "Tea."), (6, 0), (5, 0)),
        (("Trams of the harbour.", "Harbour trams.", "Seven bridges daily."), (2, 2, 3), (0, 1, 2)),
        (("Daily seven.", "Bridges cross harbour trams."), (2, 4), (0, 1)),
        (("Tea.", "Tea."), (0, 0), (0, 0)),
    ],
)
def test_what_only_one_chunk_has_of_a_sentence_weighs_by_words_and_pairs(
    chunks: tuple[str, ...], words: tuple[int, ...], pairs: tuple[int, ...]
) -> None:
    """Two thirds for six words, the rest for five pairs; chunks that have the same words count as one."""
    supports = [support("Harbour trams cross seven bridges daily.", (chunk,)) for chunk in chunks]
    expected = [2 / 3 * count / 6 + 1 / 3 * number / 5 for count, number in zip(words, pairs, strict=True)]
    assert own_shares(supports) == pytest.approx(expected)
    alone = [support("Trams.", (chunk,)) for chunk in ("Trams.", "Harbour.")]
    assert own_shares(alone) == [1.0, 0.0], "a single word has no pairs"


def test_a_chunk_that_supports_a_part_of_what_it_is_cited_for_counts_in_part() -> None:
    """If the cited chunks together do not support the sentence."""
    precision, recall = scores(f"{JOINT} [1].")
    assert precision.value == pytest.approx(0.5, abs=0.1)

    def judged(response: str, *entries: dict[str, Any]) -> tuple[Score, Score]:
        return scores(response, judge=ObjectJudge(lambda prompt: reply(*entries)))

    precision, recall = judged(f"{JOINT} [1].", entry(1, {1: 1}, 2, "Only the loan.", together=0))
    assert (precision.value, recall.value) == (0.5, 0.5)
    assert verdicts(precision) == [("supported in part", 1)]
    assert precision.evidence[0].reason == "Only the loan."
    precision, recall = judged(f"{JOINT} [1][3].", entry(1, {1: 1, 3: 0}, together=0))
    assert (precision.value, recall.value) == (0.25, 1.0)
    # What is cited for a part of its own is right or wrong by that part.
    precision, _ = judged(
        "Loans last four weeks [1], and books can be renewed twice [3].", entry(1, {1: 1, 3: 0}, together=0)
    )
    assert [each.verdict for each in precision.evidence] == ["supported", "not supported"]


# The judge's replies


RESPONSE = "Loans last four weeks [1][2]. Books can be renewed twice."


def reply(*entries: dict[str, Any]) -> str:
    return json.dumps({"sentences": entries})


def entry(
    sentence: int, cited: dict[int, int], other: int = 0, reason: str = "", together: int | None = None
) -> dict[str, Any]:
    verdicts = [{"chunk": chunk, "supports": supports} for chunk, supports in cited.items()]
    whole = int(any(cited.values())) if together is None else together
    return {"sentence": sentence, "cited": verdicts, "together": whole, "other": other, "reason": reason}


@pytest.mark.parametrize(
    "text",
    [
        reply(entry(1, {1: 1, 2: 0}), entry(2, {}, 2)),
        reply(entry(2, {}, 2), entry(1, {2: 0, 1: 1}, 0, "Chunk 2 is about renewals.")),
        reply(entry(1, {1: 1}), entry(1, {2: 0}), entry(2, {}, 2)),  # an entry for each citation
        reply(entry(1, {1: 1, 2: 0}, 1), entry(2, {}, 2)),  # the chunk that supports it, named again
        reply(entry(1, {1: 1, 2: 0, 3: 0}), entry(2, {2: 1})),  # chunks that are not cited
        f"```json\n{reply(entry(1, {1: 1, 2: 0}), entry(2, {}, 2))}\n```",
    ],
)
def test_honest_replies_count_however_they_are_worded(text: str) -> None:
    from rag_eval.judge.replies import json_of

    judge = ObjectJudge(lambda prompt: json_of(text))
    assert values(RESPONSE, judge=judge) == [0.5, 0.5]
    assert len(judge.prompts) == 1, "both measures come from one call, and it is not repeated"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (reply(entry(1, {1: 1}), entry(2, {}, 2)), "incomplete"),
        (reply(entry(1, {1: 1, 2: 0})), "incomplete"),
        (reply(entry(1, {1: 1, 2: 0}, 2), entry(2, {}, 2)), "incomplete"),
        (reply(entry(1, {1: 1, 2: 0}), entry(1, {1: 0}), entry(2, {}, 2)), "incomplete"),
        (reply(entry(1, {1: 1, 2: 0}), entry(2, {}, 4)), "unparseable"),
        (reply(entry(1, {1: 1, 2: 0}), entry(2, {}), entry(3, {})), "unparseable"),
        (reply(entry(1, {1: 1, 2: 2}), entry(2, {})), "unparseable"),
        (reply(entry(1, {1: 0, 2: 0}, together=1), entry(2, {}, 2)), "incomplete"),
        (reply(), "incomplete"),
        ("{}", "unparseable"),
    ],
)
def test_replies_that_leave_out_invent_or_contradict_are_failures(text: str, code: str) -> None:
    found = scores(RESPONSE, judge=ObjectJudge(lambda prompt: text))
    assert [(score.outcome, score.value, score.code) for score in found] == [(Outcome.FAILED, None, code)] * 2


def test_the_judge_sees_ranks_in_place_of_the_bots_own_numbers() -> None:
    judge = ObjectJudge()
    scores("Loans last four weeks [0][9].", habit=Habit(10, 10, 10, first=10), judge=judge)
    document = json.loads(judge.prompts[0].rpartition("\n")[2])
    assert document["response"] == {"1": "Loans last four weeks [1]."}
    assert list(document["chunks"]) == ["1", "2", "3"]


# Whole runs

HEADER = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]
CONTEXT = " || ".join(CHUNKS)
LOAN, BOOKS, RETURNS = CHUNKS
ROWS = [
    ["How long do loans last?", LOAN, "Loans last four weeks [1].", LOAN, CONTEXT],
    ["How often can books be renewed?", BOOKS, "Books can be renewed twice [1].", BOOKS, CONTEXT],
    [
        "Are returns possible at any branch?",
        RETURNS,
        "Returns are possible at any branch [7].",
        RETURNS,
        CONTEXT,
    ],
    ["What do loans last?", LOAN, LOAN, LOAN, CONTEXT],
]
PLAIN = [[query, truth, re.sub(r" \[\d\]", "", a), b, context] for query, truth, a, b, context in ROWS]
FLAGS = {
    3: "Citation Precision: cites the wrong chunk",
    4: "Citation Precision: no such chunk",
    5: "Citation Recall: no citations",
}


def cases(folder: Path) -> dict[tuple[int, str], dict[str, Any]]:
    return {(line["Row"], line["Bot"]): line for line in read_sheet(folder / "r.xlsx", "Per-Query Metrics")}


@pytest.mark.parametrize(
    ("citing", "others", "is_told"), [(15, 8, False), (8, 15, True), (3, 3, True), (2, 4, False)]
)
def test_citations_that_are_not_read_since_most_brackets_name_no_chunk_are_told(
    run_cli: Run, tmp_path: Path, citing: int, others: int, is_told: bool
) -> None:
    said = ["Loans last four weeks [2]."] * citing + ["Loans last four weeks [77]."] * others
    chunks = json.dumps(["Returns are free.", "Loans last four weeks."])
    rows = [[f"How long are loans of kind {n}?", text, chunks] for n, text in enumerate(said)]
    write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Context"], *rows)
    options = ("--judge", "offline", "-o", "r.xlsx", "--json", "r.json")
    ended = run_cli("in.csv", *options)
    notes = json.loads((tmp_path / "r.json").read_text())["end"]["notes"]
    told = (
        f"A: numbers in brackets in {citing + others} responses were not read as citations, since only {citing} "
        "name a chunk."
    )
    assert ((told in notes), (told in ended.out)) == (is_told, is_told)
    (tmp_path / "config.ini").write_text("[metrics]\ncitations = off\n")
    run_cli("in.csv", *options)
    assert told not in json.loads((tmp_path / "r.json").read_text())["end"]["notes"]


@pytest.mark.parametrize("by_judge", [False, True])
def test_a_run_shows_scores_flags_means_and_what_to_fix(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, by_judge: bool
) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    (tmp_path / "config.ini").write_text("[report]\nevidence = yes\n[judge]\nprompts = single\n")
    given = azure(judge) if by_judge else {}
    options = () if by_judge else ("--judge", "offline")
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", *options, **given).code == 0
    found = cases(tmp_path)
    assert [found[row, "A"]["Citation Precision"] for row in (2, 3, 4, 5)] == [1, 0, 0, None]
    assert [found[row, "A"]["Citation Recall"] for row in (2, 3, 4, 5)] == [1, 0, 0, 0]
    assert {row: found[row, "A"]["Flags"] for row in (2, 3, 4, 5)} == {2: None, **FLAGS}
    assert {found[row, "B"][name] for row in (2, 3, 4, 5) for name in ("Citation Precision", "Flags")} == {
        None
    }
    advice = found[3, "A"]["Recommendation"]
    assert "cites the wrong chunk (cites chunk 1, but chunk 2 supports it)" in advice
    a, b = read_sheet(tmp_path / "r.xlsx", "Bot Summary")
    assert (a["Avg Citation Precision"], a["Avg Citation Recall"]) == (pytest.approx(1 / 3), 0.25)
    assert (b["Avg Citation Precision"], b["Avg Citation Recall"]) == (None, None)
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    Draft202012Validator(
        json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    ).validate(document)
    assert document["bots"][0]["further"]["citation_precision"]["scored"] == 3
    assert "Citations are judged for A (counts chunks from 1)." in document["end"]["notes"]
    evidence = read_sheet(tmp_path / "r.xlsx", "Evidence")
    assert {"Citation Precision", "Citation Recall"} <= {line["Metric"] for line in evidence}
    if by_judge:
        assert judge.tasks()["citations"] == 2, "one for each answer that cites a chunk, and no other"
    # A report from the JSON says the same.
    assert run_cli("r.json", "-o", "again.xlsx", "--report-only", "--judge", "offline").code == 0
    again = read_sheet(tmp_path / "again.xlsx", "Per-Query Metrics")
    assert [line["Flags"] for line in again] == [line["Flags"] for line in found.values()]


def test_rqs_and_all_other_calls_are_those_of_a_run_without_citations(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """A run that does not judge citations sends the same requests without theirs, and none of its replies is asked
    for again."""
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    cached = "[cache]\nenabled = yes\n[judge]\nprompts = merged\n"
    (tmp_path / "config.ini").write_text(f"{cached}[metrics]\ncitations = off\n")
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    off, before = cases(tmp_path), judge.tasks()
    assert "citations" not in before
    assert "Citation Precision" not in off[2, "A"]
    judge.requests.clear()
    (tmp_path / "config.ini").write_text(cached)
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert dict(judge.tasks()) == {"preflight": 1, "citations": 2}
    on = cases(tmp_path)
    for key, line in off.items():
        kept = {name: cell for name, cell in on[key].items() if name in line and name != "Recommendation"}
        assert kept == {name: cell for name, cell in line.items() if name != "Recommendation"}


@pytest.mark.slow
def test_a_file_without_citations_has_no_column_and_no_call_of_them(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, *PLAIN)
    outputs = []
    for settings in ("", "[metrics]\ncitations = off\n"):
        judge.requests.clear()
        (tmp_path / "config.ini").write_text(settings)
        run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--fresh", **azure(judge))
        document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        bodies = sorted(json.dumps(request.body, sort_keys=True) for request in judge.requests)
        sheets = [read_sheet(tmp_path / "r.xlsx", name) for name in ("Per-Query Metrics", "Bot Summary")]
        outputs.append((document["cases"], document["bots"], document["causes"], bodies, sheets))
    assert outputs[0] == outputs[1]
    assert "citation" not in json.dumps(outputs[0][:3]).lower()


def test_a_dry_run_counts_the_calls_that_the_run_makes(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--dry-run", **azure(judge))
    assert "citations.verdicts: 2" in ended.out
    assert not judge.requests


def test_a_failed_call_leaves_both_cells_empty_and_rqs_as_it_is(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    judge.always = lambda request: completion("no JSON at all") if request.task == "citations" else None
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    assert run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).code == 0
    found = cases(tmp_path)
    assert [found[row, "A"]["Citation Precision"] for row in (2, 3, 4, 5)] == [None, None, 0, None]
    assert found[2, "A"]["RQS"] is not None
    a, _ = read_sheet(tmp_path / "r.xlsx", "Bot Summary")
    assert (a["Avg Citation Precision"], a["Avg Citation Recall"]) == (0, 0)


def test_batches_ask_what_a_run_without_them_asks(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    with running_batches() as server:
        given = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "canary-key-0123456789abcdef"}
        code = 75
        while code == 75:
            code = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "openai", "--batch", **given).code
            server.end()
        assert code == 0
        found = cases(tmp_path)
        assert [found[row, "A"]["Citation Precision"] for row in (2, 3, 4, 5)] == [1, 0, 0, None]


def test_a_citation_of_a_chunk_that_the_judge_would_not_see_is_judged(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """A context that is shortened for other metrics would make an honest number one of no chunk."""
    filler = "Filler words stand here for many more of them. " * 100
    context = " || ".join([filler, filler, LOAN])
    write_table(
        tmp_path / "in.xlsx", HEADER, ["How long do loans last?", LOAN, f"{LOAN[:-1]} [3].", "No.", context]
    )
    limits = "[limits]\nlong_prompts = truncate\nmax_prompt_tokens = "
    columns = ("Citation Precision", "Flags")
    (tmp_path / "config.ini").write_text(f"{limits}3000\n[metrics]\nanswer_relevancy = no\n")
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    found = cases(tmp_path)[2, "A"]
    assert [found[name] for name in columns] == [1, "context cut: the judge saw chunks 1 to 1 of 3"]
    (tmp_path / "config.ini").write_text(f"{limits}2000\n")
    run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", **azure(judge))
    (failed, _) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["cases"]
    assert failed["further"]["citation_precision"]["code"] == "over_limit", "and it is never a wrong zero"


def test_the_judge_sees_the_earlier_turns_of_a_conversation() -> None:
    judge = ObjectJudge()
    case = Case(2, "A", "How long?", "Loans last four weeks [1].", chunks=CHUNKS)
    for history in ((), (Turn("user", "I want to borrow a book."),)):
        metrics = citation_metrics({"A": CITES}, is_proxy=False)
        run([metric.measure(replace(case, history=history)) for metric in metrics], judge)
    plain, with_turns = judge.prompts
    assert "history" not in plain
    assert json.loads(with_turns.rpartition("\n")[2])["history"] == [
        {"role": "user", "content": "I want to borrow a book."}
    ]


def test_several_samples_are_a_mean(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Of a judge that finds support every other time."""
    calls = iter(range(100))

    def wavering(request: Request) -> Answer | None:
        if request.task != "citations":
            return None
        given = {"sentences": [entry(1, {1: next(calls) % 2})]}
        return structured(json.dumps(given), request)

    judge.always = wavering
    write_table(tmp_path / "in.xlsx", HEADER, ROWS[0])
    (tmp_path / "config.ini").write_text("[evaluation]\nsamples = 2\n[judge]\nprompts = merged\n")
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert cases(tmp_path)[2, "A"]["Citation Precision"] == 0.5
    assert judge.tasks()["citations"] == 2


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
def test_parts_of_a_run_know_how_the_whole_of_it_cites(run_cli: Run, tmp_path: Path) -> None:
    """In shards and worker processes, base and habit are those of all rows: a bot that cites [0] in one row only counts
    from 0 in every one of them."""
    rows = [
        ["How long is a loan?", "Four weeks.", "Loans last four weeks [0].", "No.", CONTEXT],
        ["Can I renew?", "Yes, twice.", "Books can be renewed twice [1].", "No.", CONTEXT],
        ["Where do I return?", "Anywhere.", "Returns are possible at any branch [2].", "No.", CONTEXT],
    ]
    (tmp_path / "parts").mkdir()
    for name, some in (("in.csv", rows), ("parts/one.csv", rows[:1]), ("parts/two.csv", rows[1:])):
        write_table(tmp_path / name, HEADER, *some)
    columns = ("Query", "Bot", "RQS", "Citation Precision", "Citation Recall", "Flags")

    def found(report: str) -> list[tuple[Any, ...]]:
        lines = read_sheet(tmp_path / report, "Per-Query Metrics")
        return [tuple(line[name] for name in columns) for line in lines]

    (tmp_path / "config.ini").write_text("[evaluation]\nprocesses = 2\n")
    assert run_cli("in.csv", "-o", "processes.xlsx", "--judge", "offline").code == 0
    (tmp_path / "config.ini").write_text("")
    assert run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline").code == 0
    assert run_cli("in.csv", "-o", "shards", "--shard-rows", "1", "--judge", "offline").code == 0
    assert run_cli("parts", "-o", "files", "--judge", "offline").code == 0
    whole = found("r.xlsx")
    assert [line[3] for line in whole if line[1] == "A"] == [1, 1, 1]
    assert found("processes.xlsx") == found("shards/report.xlsx") == found("files/report.xlsx") == whole


# Against labelled answers


def labelled(name: str) -> list[dict[str, Any]]:
    path = Path(FIXTURES) / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def citing(text: str, *numbers: int) -> str:
    """Each sentence of the text with these citations."""
    marks = "".join(f"[{number}]" for number in numbers)
    return " ".join(f"{each.rstrip('.')} {marks}." for each in sentences(text))


@pytest.mark.skipif(not FIXTURES, reason="set RAG_EVAL_FIXTURES to the folder of the labelled examples")
def test_right_citations_score_above_wrong_ones_and_these_no_less_than_missing_ones() -> None:
    """Answers that people called supported, each with its own chunk and those of four other answers."""
    rows = [
        row
        for name, text in (("faithfulness", "answer"), ("context_recall", "ground_truth"))
        for row in ({**each, "text": each[text]} for each in labelled(name))
        if row["label"] >= 0.99 and row["text"] and "](" not in row["text"]
    ]
    rng, right_first, never_above = random.Random(7), 0, 0
    for row in rows:
        others = [
            each for each in rows if each["group"] != row["group"] and each["dataset"] == row["dataset"]
        ]
        chunks = ["\n".join(each["contexts"]) for each in (row, *rng.sample(others, 4))]
        order = rng.sample(range(5), 5)
        shown = tuple(chunks[place] for place in order)
        right, wrong, missing = (
            scores(citing(row["text"], number), shown, query=row["question"])[0].value
            for number in (order.index(0) + 1, order.index(1) + 1, 9)
        )
        assert right is not None
        assert wrong is not None
        assert missing == 0.0
        right_first += right > wrong
        never_above += missing <= wrong
    assert right_first >= 0.95 * len(rows)
    assert never_above == len(rows)


def area(labels: Sequence[bool], found: Sequence[float]) -> float:
    """Under the ROC curve."""
    ranks, good = rankdata(found), np.asarray(labels)
    positive, negative = good.sum(), (~good).sum()
    return float((ranks[good].sum() - positive * (positive + 1) / 2) / (positive * negative))


@pytest.mark.skipif(not FIXTURES, reason="set RAG_EVAL_FIXTURES to the folder of the labelled examples")
def test_precision_agrees_with_people_no_worse_than_the_share_of_words() -> None:
    """Every sentence cites every chunk of its answer. 95% intervals of the difference, by resampling of groups."""
    intervals = {}
    for dataset in ("begin_wow", "mtrag_human_eval"):
        labels, ours, plain, groups = [], [], [], []
        for row in (each for each in labelled("faithfulness") if each["dataset"] == dataset):
            chunks = (*row["contexts"], "-")
            response = citing(row["answer"], *range(1, len(chunks)))
            value = scores(response, chunks, query=row["question"])[0].value
            if value is None:
                continue
            known = [set(words(chunk)) for chunk in row["contexts"]]
            parts = [told for each in sentences(row["answer"]) if (told := words(each))]
            shares = [np.mean([word in found for word in told]) for told in parts for found in known]
            groups.append(row["group"])
            labels.append(row["label"] >= 0.5)
            ours.append(value)
            plain.append(float(np.mean(shares)))
        members = [np.flatnonzero(np.asarray(groups) == group) for group in dict.fromkeys(groups)]
        rng = np.random.default_rng(1)
        drawn = (rng.integers(0, len(members), len(members)) for _ in range(1000))
        samples = [np.concatenate([members[group] for group in some]) for some in drawn]
        areas = np.array([[_area_of(some, labels, found) for found in (ours, plain)] for some in samples])
        intervals[dataset] = np.percentile(areas[:, 0] - areas[:, 1], [2.5, 97.5])
        assert area(labels, ours) > 0.8
    assert all(high > 0 for _, high in intervals.values()), intervals


def _area_of(some: Any, labels: Sequence[bool], found: Sequence[float]) -> float:
    return area([labels[place] for place in some], [found[place] for place in some])


def test_a_line_that_names_sources_thousands_of_times_is_read() -> None:
    """Each of them once was a call within a call, and the text behind it was searched again."""
    assert without_sources("It is red. " + "Sources: [1]. " * 3000).startswith("It is red. Sources: [1].")


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Four weeks. Source: [Rules](https://a.b/c) [1]", ((1, 1),)),
        ("It is free. See also  [Rules](https://a.b/c) [2].", ((2, 2),)),
        ("It is free, according  to   [3].", ((3, 3),)),
    ],
)
def test_a_number_behind_a_link_or_wide_spaces_is_cited_like_any_other(
    text: str, cited: tuple[tuple[int, int], ...]
) -> None:
    (found,) = brackets.marks(brackets.unmasked(text), leads=True)
    assert found.ranges == cited
