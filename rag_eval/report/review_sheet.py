"""A workbook in which people label some cases of a run: a sheet per rater, instructions, and the sample, hidden."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rag_eval.records import SCORE_LABELS, Case, CaseResult, RunFacts
from rag_eval.report.styles import BLUE, FONT, GREY, LINE, PALE
from rag_eval.report.worksheet import write_text
from rag_eval.results.looks import conversation_of
from rag_eval.results.sampling import ComparedPair, Drawn, Sample, scores_of
from rag_eval.store.replacement import Replacement
from rag_eval.tables.review_file import (
    BETTER,
    CANNOT_SAY,
    COMMENT,
    FORMAT,
    KEY,
    KEYS,
    LABEL,
    LABEL_HEADER,
    PART,
    RATER_KEY,
    SAMPLE,
    SAMPLE_COLUMNS,
    STRATA,
    STRATA_COLUMNS,
    TEXT,
    Fingerprint,
    case_of_pair,
    checksum,
    choices,
    hash_of,
    pair_number,
    row_checksum,
)
from rag_eval.texts.display import decimals, printable, shorten

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

INSTRUCTIONS = "Instructions"
QUESTIONS: Mapping[str, str] = {
    "answer_correctness": (
        "How well does the response agree with the ground truth? Missing facts and wrong facts both count against it."
    ),
    "faithfulness": (
        "How much of the response do the chunks support? Judge by the chunks only, not by what you know."
    ),
    "answer_relevancy": (
        "How directly does the response address the query? Judge the fit to the query, not the truth."
    ),
    "context_precision": "Do the useful chunks come before the useless ones?",
    "context_recall": "How much of the ground truth do the chunks support?",
    "answer_coverage": "How much of what the relevant chunks say about the query does the response convey?",
    "chunk_relevance": "What share of the chunks is relevant to the query?",
    "citation_precision": "What share of the citations names a chunk that supports the sentence?",
    "citation_recall": "What share of the supported sentences cites a chunk that supports it?",
    BETTER: "Which answer would you rather have if you had asked this query? A longer answer is not better for that.",
}
"""By metric, in plain words."""

_WIDTHS = {PART: 18, TEXT: 100, LABEL: 18, COMMENT: 26, KEYS: 20}
"""Of the columns, in characters: the visible ones fit on a small screen."""
_LINE_HEIGHT = 14.0
_MOST_LINES = 12
"""Of text in one row: programs scroll by rows, and a row is at most 409 points high."""
_LINE_WIDTH = 110
"""Characters of a line of text; a little less than fits."""
_SHEET_NAME = 31
_FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")


def _question_of(measure: str, facts: RunFacts) -> str:
    """Of a criterion with what it demands: the judge was told so as well."""
    if measure in QUESTIONS:
        return QUESTIONS[measure]
    demanded = shorten(facts.requirements.get(measure, ""), 2_000)
    return f"Does the response meet the criterion '{shorten(measure, 100)}'? {demanded}".rstrip()


@dataclass(frozen=True, slots=True)
class Review:
    """What a review sheet is made of."""

    facts: RunFacts
    results: Sequence[CaseResult]
    sample: Sample
    measures: Sequence[str]
    raters: Sequence[str]
    shows_scores: bool = False
    labelled: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """By line and measure: the earlier sheet in which somebody answered. Nobody is asked again."""
    before: Sequence[Drawn] = ()
    """Random cases of earlier sheets whose labels count together with those of this one."""

    def asked(self, drawn: Drawn) -> list[str]:
        """The measures that the case has a score of: a label of any other could be compared with nothing."""
        done = self.labelled.get(drawn.line, {})
        return [measure for measure in self.scored(drawn) if measure not in done]

    def labelled_in(self, drawn: Drawn) -> list[str]:
        """Names of the earlier sheets that have labels of the case which this one does not ask for."""
        done = self.labelled.get(drawn.line, {})
        return list(dict.fromkeys(done[measure] for measure in self.scored(drawn) if measure in done))

    def to_label(self) -> list[tuple[int, Drawn]]:
        """The cases of the sample with a question to answer, and the place of each in the sample, from 1."""
        return [(number, drawn) for number, drawn in enumerate(self.sample.cases, 1) if self.asked(drawn)]

    noun: ClassVar[str] = "case"
    group: ClassVar[str] = "bot"
    estimate: ClassVar[str] = "corrected mean"
    hides_bots: ClassVar[bool] = False

    @property
    def title(self) -> str:
        return f"Review sheet: {shorten(self.facts.input_name, 80)}"

    def bots(self) -> Mapping[str, int]:
        """Number of all cases of each bot."""
        return Counter(result.case.bot for result in self.results)

    def case_of(self, drawn: Drawn) -> Case:
        """What is labelled."""
        return self.results[drawn.line].case

    def conversation(self, drawn: Drawn) -> int:
        """See `conversation_of`."""
        return conversation_of(self.results[drawn.line].case)

    def name_of(self, place: int, drawn: Drawn) -> int | str:
        """What the case is called in the sheet."""
        return place

    def parts(self, drawn: Drawn) -> Iterator[tuple[str, str]]:
        """What the rater is shown, each with its name."""
        case = self.results[drawn.line].case
        yield from _asked_about(case)
        yield "Response", case.response
        yield from _references(case.reference, case.chunks)

    def heading(self, drawn: Drawn) -> str:
        """Above the texts: what else the rater is told."""
        case = self.results[drawn.line].case
        return f"Row {case.row}, {shorten(case.bot, 80)}" if self.shows_scores else ""

    def question(self, drawn: Drawn, measure: str) -> str:
        asked = _question_of(measure, self.facts)
        if self.shows_scores:
            score = scores_of(self.results[drawn.line], [measure])[measure]
            asked += f" The judge says {decimals(score)}."
        return asked

    def scored(self, drawn: Drawn) -> list[str]:
        """The measures that the case has a score of."""
        scored = scores_of(self.results[drawn.line], self.measures)
        return [measure for measure in self.measures if measure in scored]


@dataclass(frozen=True, slots=True)
class PairReview(Review):
    """The same for pairs of responses. Nothing in the sheet says which bot a response is of."""

    pairs: Sequence[ComparedPair] = ()
    noun: ClassVar[str] = "pair"
    group: ClassVar[str] = "pair of bots"
    estimate: ClassVar[str] = "win rate"
    hides_bots: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "Review sheet of pairs"

    def bots(self) -> Mapping[str, int]:
        return Counter(pair.bots for pair in self.pairs)

    def case_of(self, drawn: Drawn) -> Case:
        return case_of_pair(*as_shown(self.pairs[drawn.line]))

    def conversation(self, drawn: Drawn) -> int:
        return conversation_of(self.pairs[drawn.line].one.case)

    def name_of(self, place: int, drawn: Drawn) -> int | str:
        return pair_number(Fingerprint.of(self.case_of(drawn)).key, drawn.stratum)

    def parts(self, drawn: Drawn) -> Iterator[tuple[str, str]]:
        first, second = as_shown(self.pairs[drawn.line])
        yield from _asked_about(first)
        yield "First answer", first.response
        yield "Second answer", second.response
        if first.chunks == second.chunks:
            yield from _references(first.reference, first.chunks)
        else:
            yield from _references(first.reference, first.chunks, " of the first")
            yield from _references(None, second.chunks, " of the second")

    def heading(self, drawn: Drawn) -> str:
        return ""

    def question(self, drawn: Drawn, measure: str) -> str:
        return _question_of(measure, self.facts)

    def scored(self, drawn: Drawn) -> list[str]:
        return [BETTER] if self.pairs[drawn.line].verdict.orders else []


def as_shown(pair: ComparedPair) -> tuple[Case, Case]:
    """The cases in the order of the sheet, drawn by a hash of their texts: the same in every sheet."""
    cases = pair.one.case, pair.other.case
    is_swapped = int(Fingerprint.of(case_of_pair(*cases)).key[-1], 16) % 2
    return (cases[1], cases[0]) if is_swapped else cases


def _asked_about(case: Case) -> Iterator[tuple[str, str]]:
    if case.history:
        yield "Earlier turns", case.earlier_turns
    yield "Query", case.query


def write_review(target: Path, review: Review) -> Path:
    """Write the workbook. Returns its path. Raises OutputError."""
    from xlsxwriter import Workbook

    from rag_eval.report.book import workbook_errors

    replacement = Replacement(target)
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    try:
        with workbook_errors(target), Workbook(replacement.path, options) as book:
            _ReviewBook(book, review).write()
        return replacement.commit()
    finally:
        replacement.discard()


class _ReviewBook:
    def __init__(self, book: "Workbook", review: Review) -> None:
        self._book = book
        self._review = review
        self._formats = {name: book.add_format(_BASE | look) for name, look in _LOOKS.items()}
        self._lists: dict[str, str] = {}
        self._texts: Mapping[int, str] = {}

    def write(self) -> None:
        review = self._review
        instructions = self._book.add_worksheet(INSTRUCTIONS)
        sheets = [self._book.add_worksheet(name) for name in _sheet_names(review.raters)]
        self._write_instructions(instructions)
        for rater, sheet in zip(review.raters, sheets, strict=True):
            written = _RaterSheet(sheet, self._formats, review, self._lists)
            written.write(rater)
            self._texts = written.texts
        self._write_hidden(SAMPLE, SAMPLE_COLUMNS, self._sample_rows())
        self._write_hidden(STRATA, STRATA_COLUMNS, self._strata_rows())
        self._book.set_properties(
            {
                "title": review.title,
                "author": "RAG Eval",
                "comments": f"RAG Eval {shorten(review.facts.version, 40)}, {FORMAT}",
            }
        )

    def _write_instructions(self, sheet: "Worksheet") -> None:
        measures = self._review.measures
        sheet.set_column(0, 0, 24)
        sheet.set_column(1, 1, 110)
        sheet.hide_gridlines(2)
        steps = _STEPS_OF_WORK
        if BETTER in measures:
            steps = [(look, name, _STEPS_WITH_PAIRS.get(name, text)) for look, name, text in steps]
        title = f"How to label these {self._review.noun}s"
        lines: list[tuple[str, str, str]] = [("title", title, ""), *steps]
        lines += [
            ("space", "", ""),
            ("heading", "Question", ""),
            *(("name", _label(name), _question_of(name, self._review.facts)) for name in measures),
        ]
        row = 0
        for look, first, second in lines:
            row = self._write_line(sheet, row, look, first, second)
        kinds = {_kind(name): name for name in measures}
        for kind in sorted(kinds):
            row = self._write_line(sheet, row + 1, "heading", kind, "")
            first_row = row + 1
            for word in (*choices(kinds[kind]), CANNOT_SAY):
                row = self._write_line(sheet, row, "name", word, _MEANINGS[word])
            self._lists[kind] = f"={INSTRUCTIONS}!$A${first_row}:$A${row}"
        sheet.protect("", _PROTECTION)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)

    def _write_line(self, sheet: "Worksheet", row: int, look: str, first: str, second: str) -> int:
        lines = max(_lines(second, 105), _lines(first, 22) if look == "name" else 1)
        sheet.set_row(row, 22 if look == "title" else lines * _LINE_HEIGHT + 4)
        write_text(sheet, row, 0, printable(first), self._formats[look], self._formats["run"])
        if second:
            write_text(sheet, row, 1, printable(second), self._formats["plain"], self._formats["run"])
        return row + 1

    def _write_hidden(self, name: str, columns: Sequence[str], rows: Iterator[Sequence[str | float]]) -> None:
        """The last column has the checksums of the others."""
        sheet = self._book.add_worksheet(name)
        cells: list[list[str | float]] = [[_short(value) for value in row] for row in rows]
        for place, row in enumerate(cells, 1):
            row.append(row_checksum(columns, row, place, len(cells)))
        header: list[str | float] = [*columns]
        for number, row in enumerate([header, *cells]):
            for column, value in enumerate(row):
                if isinstance(value, str):
                    write_text(sheet, number, column, value, self._formats["data"], self._formats["run"])
                else:
                    sheet.write_number(number, column, value)
        sheet.hide()
        sheet.protect("", _PROTECTION)

    def _sample_rows(self) -> Iterator[Sequence[str | float]]:
        for place, drawn in enumerate(self._review.sample.cases, 1):
            case = self._review.case_of(drawn)
            inclusion = "" if drawn.inclusion is None else drawn.inclusion
            labelled_in = ", ".join(self._review.labelled_in(drawn))
            texts = self._texts.get(place, "")
            yield (
                self._review.name_of(place, drawn),
                case.row,
                "" if self._review.hides_bots else case.bot,
                *Fingerprint.of(case),
                drawn.stratum,
                inclusion,
                labelled_in,
                texts,
            )

    def _strata_rows(self) -> Iterator[Sequence[str | float]]:
        counts = self._review.bots()
        for bot, strata in self._review.sample.strata.items():
            for stratum, sizes in strata.items():
                for measure, size in sizes.items():
                    yield hash_of(bot), counts[bot], stratum, measure, size


def _short(value: str | float) -> str | float:
    return printable(value)[:1_000] if isinstance(value, str) else value


class _RaterSheet:
    """The cases one below the other, each with its texts and then its questions."""

    def __init__(
        self,
        sheet: "Worksheet",
        formats: Mapping[str, "Format"],
        review: Review,
        lists: Mapping[str, str],
    ) -> None:
        self._sheet = sheet
        self._formats = formats
        self._review = review
        self._lists = lists
        self._row = 2
        self._kept: dict[int, dict[int, str]] = {}
        """What nobody may change, by row and column."""
        self.texts: dict[int, str] = {}
        """Checksums of the rows of each case that was written, by its number in the sample."""

    def write(self, rater: str) -> None:
        sheet, cases = self._sheet, self._review.to_label()
        for column, width in _WIDTHS.items():
            sheet.set_column(column, column, width, None, {"hidden": column == KEYS})
        for place, (number, drawn) in enumerate(cases, 1):
            self._write_case(number, drawn, f"{self._review.noun.capitalize()} {place} of {len(cases)}")
        self._write_head(rater, len(cases))
        sheet.freeze_panes(2, 0)
        sheet.protect("", _PROTECTION)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.repeat_rows(0, 1)
        sheet.set_footer("&L&A&RPage &P of &N")

    def _write_head(self, rater: str, cases: int) -> None:
        sheet, head = self._sheet, self._formats["head"]
        sheet.set_row(0, 22)
        sheet.set_row(1, 20)
        sheet.write_string(0, PART, "Progress", head)
        noun = self._review.noun
        formula = f'=COUNTIF(C3:C{self._row},"{_DONE}")&" of {cases} {noun}s labelled"'
        sheet.write_formula(0, TEXT, formula, self._formats["progress"], f"0 of {cases} {noun}s labelled")
        for column, text in ((LABEL, LABEL_HEADER), (COMMENT, "Comment"), (KEYS, KEY)):
            sheet.write_string(0, column, text, head)
        sheet.write_string(1, PART, "Your name", head)
        sheet.write_string(
            1, TEXT, f"Read each {noun}, then choose a label in each blue cell.", self._formats["plain"]
        )
        self._write(1, LABEL, rater, "answer")
        sheet.write_string(1, KEYS, RATER_KEY, self._formats["data"])

    def _write_case(self, number: int, drawn: Drawn, title: str) -> None:
        head = self._row
        self._row += 1
        for part, text in self._review.parts(drawn):
            self._write_part(part, text)
        asked = self._review.asked(drawn)
        first = self._row + 1
        key = self._review.name_of(number, drawn)
        for measure in asked:
            self._write_question(key, measure, self._review.question(drawn, measure))
        cells = f"C{first}:C{self._row}"
        self._sheet.set_row(head, 20)
        self._write(head, PART, title, "case")
        self._write(head, TEXT, self._review.heading(drawn), "case")
        formula = f'=IF(COUNTA({cells})={len(asked)},"{_DONE}",COUNTA({cells})&" of {len(asked)}")'
        self._sheet.write_formula(head, LABEL, formula, self._formats["case"], f"0 of {len(asked)}")
        self._sheet.write_blank(head, COMMENT, None, self._formats["case"])
        rows = (self._kept[row] for row in range(head, self._row))
        self.texts[number] = checksum([row.get(column, "") for column in (PART, TEXT, KEYS)] for row in rows)
        self._row += 1

    def _write_part(self, part: str, text: str) -> None:
        """A text, in as many rows as it needs: nothing is cut."""
        for number, piece in enumerate(_pieces(printable(text))):
            self._sheet.set_row(self._row, _lines(piece, _LINE_WIDTH) * _LINE_HEIGHT + 4)
            self._write(self._row, PART, f"{part}, continued" if number else part, "part")
            self._write(self._row, TEXT, piece, "text" if text else "none")
            self._row += 1

    def _write_question(self, number: int | str, measure: str, question: str) -> None:
        row, sheet = self._row, self._sheet
        sheet.set_row(row, _lines(question, _LINE_WIDTH) * _LINE_HEIGHT + 4)
        self._write(row, PART, _label(measure), "measure")
        self._write(row, TEXT, question, "question")
        sheet.write_blank(row, LABEL, None, self._formats["answer"])
        sheet.write_blank(row, COMMENT, None, self._formats["comment"])
        self._write(row, KEYS, f"{number}/{measure}", "data")
        rule = {
            "validate": "list",
            "source": self._lists[_kind(measure)],
            "input_title": shorten(_label(measure), 32),
            "input_message": shorten(question, 250),
            "error_title": "Not a label",
            "error_message": "Choose a label from the list, or leave the cell empty.",
        }
        sheet.data_validation(row, LABEL, row, LABEL, rule)
        self._row += 1

    def _write(self, row: int, column: int, text: str, look: str) -> None:
        self._kept.setdefault(row, {})[column] = printable(text)
        write_text(self._sheet, row, column, printable(text), self._formats[look], self._formats["run"])


def _references(
    reference: str | None, chunks: Sequence[str] | None, whose: str = ""
) -> Iterator[tuple[str, str]]:
    if reference is not None:
        yield "Ground Truth", reference
    if chunks is not None and not chunks:
        yield f"Chunks{whose}", ""
    for rank, chunk in enumerate(chunks or (), 1):
        yield f"Chunk {rank}{whose}", chunk


def _kind(measure: str) -> str:
    """Heading of the labels that are offered for the measure."""
    return "Label" if measure in SCORE_LABELS or measure == BETTER else "Label of a criterion"


def _label(measure: str) -> str:
    return SCORE_LABELS.get(measure, measure)


def _sheet_names(raters: Sequence[str]) -> list[str]:
    """The raters' names as names of sheets: without what Excel forbids, and no two alike."""
    taken = {INSTRUCTIONS.casefold(), SAMPLE.casefold(), STRATA.casefold(), "history", ""}
    names = []
    for number, rater in enumerate(raters, 1):
        name = _FORBIDDEN.sub(" ", printable(rater))[:_SHEET_NAME].strip().strip("'")
        if name.casefold() in taken:
            name = f"{name[: _SHEET_NAME - 4]} {number}".strip()
        taken.add(name.casefold())
        names.append(name)
    return names


def _pieces(text: str) -> list[str]:
    """The text in pieces that a row can show, cut between words where there are any; together they are the text."""
    pieces, begin, lines, column = [], 0, 1, 0
    for found in _WORD.finditer(text):
        width = _width(found[0].rstrip("\n"))
        breaks = found[0].count("\n")
        more = breaks + (column + width > _LINE_WIDTH) + width // _LINE_WIDTH
        if lines + more > _MOST_LINES and found.start() > begin:
            pieces.append(text[begin : found.start()])
            begin, lines, column, more = found.start(), 1, 0, breaks + width // _LINE_WIDTH
        column = 0 if breaks else (width if column + width > _LINE_WIDTH else column + width)
        lines += more
    return [*pieces, text[begin:]]


_WORD = re.compile(rf"\S{{1,{_LINE_WIDTH}}}[^\S\n]{{0,{_LINE_WIDTH}}}\n?|[^\S\n]{{1,{_LINE_WIDTH}}}\n?|\n")


def _lines(text: str, width: int) -> int:
    """Lines that a text takes at that width, at most as many as a row can have."""
    lines = sum(1 + max(0, _width(line) - 1) // width for line in text.split("\n"))
    return min(max(1, lines), _MOST_LINES)


def _width(text: str) -> int:
    """In Latin letters: Chinese, Japanese and Korean characters are 2.3 times as wide, as are emoji."""
    return len(text) if text.isascii() else ceil(sum(1 + 1.3 * (each >= "\u2e80") for each in text))


_DONE = "done"
_MEANINGS = {
    "1 fully": "as good as it can be",
    "0.75 mostly": "small flaws",
    "0.5 half": "about half",
    "0.25 a little": "mostly not",
    "0 not at all": "none of it",
    "first": "you would rather have the first answer",
    "same": "no difference between the answers matters",
    "second": "you would rather have the second answer",
    "yes": "the response meets the criterion",
    "no": "the response does not meet the criterion",
    CANNOT_SAY: "the texts do not suffice for a label; nothing is counted",
}
_STEPS_OF_WORK = [
    (
        "name",
        "1.",
        "Go to the sheet with your name. If your name is not in the blue cell at the top, write it there.",
    ),
    (
        "name",
        "2.",
        "Read query, response, ground truth and chunks of a case. Long texts continue in the next row.",
    ),
    ("name", "3.", "Choose a label for each question from the list of its blue cell. A comment is optional."),
    ("name", "4.", "Work from top to bottom. You can stop at any time; the first line shows your progress."),
    ("name", "5.", "Do not look at the labels of others. Save the file as .xlsx and send it back."),
    (
        "name",
        "Protection",
        "All other cells are protected, without a password. Please do not change or sort them.",
    ),
]
_STEPS_WITH_PAIRS = {
    "2.": "Read the query and both answers, which are in random order, then ground truth and chunks. Long texts "
    "continue in the next row.",
    "3.": "Choose first, same or second from the list of the blue cell. A comment is optional.",
}
_PROTECTION = {"format_columns": True, "format_rows": True}
_BASE: dict[str, Any] = {"font_name": FONT, "font_size": 11, "valign": "top", "text_wrap": True}
_BOX = {"border": 1, "border_color": LINE}
_DATA = {"quote_prefix": True}
_LOOKS: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 14, "font_color": BLUE, "text_wrap": False},
    "heading": {"bold": True, "font_color": BLUE, "text_wrap": False},
    "text": {**_BOX, **_DATA},
    "name": {"bold": True, **_DATA},
    "plain": {},
    "space": {},
    "head": {"bold": True, "font_color": BLUE, "bg_color": PALE, "valign": "vcenter"},
    "progress": {"bold": True, "font_size": 12, "font_color": BLUE, "bg_color": PALE, "valign": "vcenter"},
    "case": {
        "bold": True,
        "font_color": "#FFFFFF",
        "bg_color": BLUE,
        "valign": "vcenter",
        "text_wrap": False,
        **_DATA,
    },
    "part": {"font_color": GREY, **_BOX},
    "none": {"bg_color": "#EDEDED", **_BOX},
    "measure": {"bold": True, "bg_color": PALE, **_BOX, **_DATA},
    "question": {"bg_color": PALE, **_BOX},
    "answer": {"bg_color": "#DCE9F8", "locked": False, "border": 1, "border_color": BLUE, **_DATA},
    "comment": {"bg_color": "#FFFFFF", "locked": False, "border": 1, "border_color": BLUE},
    "data": {"text_wrap": False, **_DATA},
    "run": {},
}
