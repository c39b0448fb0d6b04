"""The page: one HTML file with the verdict, the leaderboard and every case, for readers without Excel."""

import heapq
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from rag_eval.records import (
    TOXICITY,
    CaseResult,
    FailureMode,
    Outcome,
    RunFacts,
)
from rag_eval.report.columns import score_headers
from rag_eval.report.outputs import FinishedRun
from rag_eval.report.page import sections
from rag_eval.report.page.packing import (
    FAILED,
    NOT_APPLICABLE,
    REASON_BITS,
    CaseNumbers,
    PackedRows,
    Packer,
)
from rag_eval.report.page.row_record import row_record
from rag_eval.report.page.sections import asset, head
from rag_eval.report.page.timeline import history_section
from rag_eval.report.tables import report_tables
from rag_eval.results.findings import Findings
from rag_eval.results.row_choice import RANDOM, WORST
from rag_eval.results.scoring import DOCUMENT_LABELS, scores_of_case
from rag_eval.results.summary import RQS, Summary, rqs_outcome
from rag_eval.store.codec import Spool, to_json
from rag_eval.store.leftovers import Scratch
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.texts.display import decimals, shorten

_OPTION = "--html"
_WORST_CASES = 50
"""Cases that the page shows without a script."""
_SNIPPET = 160
"""Characters of a query in the table."""
_DOCUMENT_MEASURES = ("doc_recall", "doc_precision", "ndcg_10")
_RUBRIC = "rubric"


class HtmlReport:
    """A page in the making. `finish` or `discard` ends it; until then the target is untouched.

    Rows go to disk as they come. At the end those that fit into `megabytes` are packed into the page.
    """

    def __init__(
        self,
        target: Path,
        facts: RunFacts,
        configuration: Mapping[str, Mapping[str, Any]],
        asked: Collection[str] = (),
        *,
        megabytes: float,
        has_texts: bool = True,
        slice_by: str = "",
    ) -> None:
        """`asked` names optional tables, see report_tables."""
        self._tables = report_tables(facts, asked)
        self._target, self._facts, self._configuration = target, facts, configuration
        self._room, self._has_texts, self._slice_by = int(megabytes * 1e6), has_texts, slice_by
        self._replacement = Replacement(target, option=_OPTION)
        self._columns = _columns(facts)
        self._numbers = CaseNumbers(self._columns)
        self._flags: dict[str, int] = {}
        self._slices: dict[str, int] = {}
        self._row: list[CaseResult] = []
        self._worst: list[tuple[float, int, CaseResult]] = []
        self._left_out: list[str] = []
        self._records: Spool[bytes] = Spool(bytes, "the rows of the page")
        self._snippets: Spool[bytes] = Spool(bytes, "the queries of the page")
        with ExitStack() as undo:
            undo.callback(self._replacement.discard)
            with output_errors(target, _OPTION):
                self._scratch = Scratch(target)
                undo.callback(self._scratch.cleanup)
            undo.pop_all()

    @property
    def left_out(self) -> Sequence[str]:
        """What does not fit, in a sentence; known once the page is finished."""
        return self._left_out

    def add(self, result: CaseResult) -> None:
        first = self._row[0].case if self._row else None
        if first and (result.case.row != first.row or result.case.bot == first.bot):
            self._end_row()
        self._row.append(result)
        cases, values = self._numbers.cases, self._numbers.values
        cases.last["row"].append(len(self._numbers.rows))
        cases.last["bot"].append(self._facts.bots.index(result.case.bot))
        cases.last["below"].append(_below(result, self._columns, self._facts))
        cases.last["modes"].append(sum(1 << _MODES.index(mode) for mode in result.failure_modes))
        cases.last["flags"].append(self._flag_bits(result))
        cases.end_entry()
        for name, value in _values(result, self._columns).items():
            values.last[name].append(value)
        values.end_entry()
        if result.rqs is not None:
            heapq.heappush(self._worst, (-result.rqs, -len(cases), result))
            if len(self._worst) > _WORST_CASES:
                heapq.heappop(self._worst)

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write the page and move it into place; returns where it is."""
        with output_errors(self._target, _OPTION):
            self._end_row()
            before, after = self._static(summary, findings, facts)
            static = sum(map(len, (*before, *after, _json(self._names(facts))))) + _SLACK
            packer = Packer(
                self._records, self._snippets, self._numbers, self._scratch.name, self._room - static
            )
            packed = packer.pack(RQS)
            self._left_out = (
                [self._cut_sentence(packed, static)] if packed.row_count < len(self._records) else []
            )
            with self._replacement.path.open("wb") as file:
                for part in before:
                    file.write(part)
                self._write_cases(file, packed, facts)
                for part in after:
                    file.write(part)
            self._close()
        return self._replacement.commit()

    def discard(self) -> None:
        """Leave nothing behind."""
        self._close()
        self._replacement.discard()

    def _close(self) -> None:
        self._records.close()
        self._snippets.close()
        self._numbers.close()
        self._scratch.cleanup()

    def _end_row(self) -> None:
        if not self._row:
            return
        case = self._row[0].case
        self._numbers.rows.last["number"].append(case.row)
        name = case.columns.get(self._slice_by, "").strip() if self._slice_by else ""
        self._numbers.rows.last["slice"].append(self._slices.setdefault(name, len(self._slices)))
        self._numbers.rows.end_entry()
        self._records.add(row_record(self._row, self._facts) if self._has_texts else b"0")
        self._snippets.add(to_json(shorten(case.query, _SNIPPET) if self._has_texts else ""))
        self._row.clear()

    def _flag_bits(self, result: CaseResult) -> int:
        """By kinds of flags, of which there are few; a context that was cut is one."""
        key = result.case.row, result.case.bot
        kinds = {flag.rpartition(": ")[2] for flag in self._facts.flags_of(result)}
        kinds |= {_CUT} if key in self._facts.cut_contexts else set()
        numbers = (self._flags.setdefault(kind, len(self._flags)) for kind in sorted(kinds))
        return sum(1 << number for number in numbers if number < _MOST_FLAGS)

    def _static(
        self, summary: Summary, findings: Findings, facts: RunFacts
    ) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """What stands before the cases, and what stands after them."""
        worst = [result for *_, result in sorted(self._worst, key=lambda each: (-each[0], -each[1]))]
        before = [
            head(f"RAG Eval: {shorten(facts.input_name, 80)}", facts.version, has_script=True),
            sections.headline(facts, summary, findings),
            sections.leaderboard(facts, summary, findings),
            sections.spending(facts, findings),
            sections.reasons(facts, summary, findings),
        ]
        after = [
            sections.worst_cases(worst, facts, has_texts=self._has_texts),
            history_section(findings.history) if findings.history else "",
            sections.further_tables(self._tables, FinishedRun(facts, summary, findings)),
            sections.about(facts, summary, findings, self._configuration),
            f'</main>\n<dialog id="case" aria-labelledby="case-title"></dialog>\n'
            f"<script>{asset('page.js')}</script>\n</body>\n</html>\n",
        ]
        return [part.encode() for part in before], [part.encode() for part in after]

    def _cut_sentence(self, packed: PackedRows, static: int) -> str:
        """What the page does not have, and why."""
        allowed = f"[report] html_mb allows {self._room / 1e6:g} MB"
        if not packed.row_count:
            return (
                f"The page has no table of cases: {allowed}, and what it says of {len(self._facts.bots):,} bots and "
                f"of the run takes {static / 1e6:.1f} MB. Raise html_mb, or use the workbook."
            )
        worst, drawn = (packed.choice.count(REASON_BITS[why]) for why in (WORST, RANDOM))
        both = worst + drawn - packed.row_count
        return (
            f"The page contains {self._numbers.count(packed.choice):,} of {len(self._numbers.cases):,} cases "
            f"({packed.row_count:,} of {len(self._records):,} rows), because {allowed}: rows with the lowest RQS of a "
            f"bot ({worst:,}) and rows drawn at random ({drawn:,}{f'; {both:,} are both' if both else ''}). All means "
            "count every case."
        )

    def _write_cases(self, file: BinaryIO, packed: PackedRows, facts: RunFacts) -> None:
        """The data of the table and the cases, and the elements that page.js fills."""
        cut = "".join(f'<p class="cut">{sections.safe(each)}</p>' for each in self._left_out)
        file.write(f"{sections.CASES}{cut}{sections.CASES_END}".encode())
        file.write(b'<script type="application/json" id="meta">')
        counts = {"rows": packed.row_count, "cases": self._numbers.count(packed.choice)}
        file.write(_json({**self._names(facts), **counts}).encode())
        for name, data in (("numbers", packed.numbers), ("queries", packed.snippets)):
            file.write(f'</script>\n<script type="text/plain" id="{name}">'.encode() + data)
        with packed.texts.open("rb") as blocks:
            for _ in range(packed.choice.block_count):
                file.write(b'</script>\n<script type="text/plain" class="texts">' + blocks.readline().strip())
        file.write(b"</script>\n")

    def _names(self, facts: RunFacts) -> Mapping[str, Any]:
        """What page.js must know to show the rest."""
        names = self._slices if self._slice_by and len(self._slices) <= _MOST_SLICES else ()
        slices = [shorten(name, _SLICE_NAME) for name in names]
        columns, limits = self._columns.items(), facts.all_thresholds
        return {
            "bots": [_named(bot) for bot in facts.bots],
            "allCases": len(self._numbers.cases),
            "columns": [{"id": name, "label": label, "limit": limits.get(name)} for name, label in columns],
            "modes": [str(mode) for mode in _MODES],
            "flags": list(self._flags)[:_MOST_FLAGS],
            "sliceBy": shorten(self._slice_by, _SLICE_NAME) if slices else "",
            "slices": slices,
            "hasTexts": self._has_texts,
            "file": Path(facts.input_name).stem,
        }


def _named(bot: str) -> str:
    """Its name as it is, unless that is very long."""
    return bot if len(bot) <= sections.BOT_NAME else f"{bot[: sections.BOT_NAME]}…"


_MODES = tuple(FailureMode)
_CUT = "context cut"
_MOST_FLAGS = 8
"""Kinds that can be filtered: the bits of a byte. RAG Eval finds eight; a run's JSON may name any."""
_MOST_SLICES = 1_000
"""With more, the slices are no filter."""
_SLICE_NAME = 80
_SLACK = 2_000
"""Bytes for what is written of the cases beside the packed data."""


def _columns(facts: RunFacts) -> dict[str, str]:
    """Names and labels of the numbers that every case has."""
    kept = {*facts.metrics, *facts.further}
    columns = {RQS: "RQS", **{name: label for name, label in score_headers(facts).items() if name in kept}}
    columns |= {_RUBRIC: "Rubric"} if facts.rubric else {}
    return columns | ({name: DOCUMENT_LABELS[name] for name in _DOCUMENT_MEASURES} if facts.has_gold else {})


def _values(result: CaseResult, columns: Mapping[str, str]) -> Mapping[str, int]:
    """In ten thousandths by column; negative without a value."""
    retrieved = scores_of_case(result.case)
    documents = retrieved.values() if retrieved else {}
    scores = result.all_scores
    values: dict[str, int] = {}
    for name in columns:
        if name == RQS:
            values[name] = _number(result.rqs, rqs_outcome(result))
        elif name == _RUBRIC:
            passed = result.rubric.passed if result.rubric else None
            outcome = result.rubric.outcome if result.rubric else Outcome.NOT_APPLICABLE
            values[name] = _number(None if passed is None else float(passed), outcome)
        elif name in scores:
            values[name] = _number(scores[name].value, scores[name].outcome)
        else:
            values[name] = _number(documents.get(name), Outcome.NOT_APPLICABLE)
    return values


def _number(value: float | None, outcome: Outcome) -> int:
    if value is None:
        return FAILED if outcome is Outcome.FAILED else NOT_APPLICABLE
    return _ten_thousandths(min(max(value, 0.0), 1.0))


def _ten_thousandths(value: float) -> int:
    """Rounded so that rounding it again to two decimals gives what the value itself gives: 0.72496 is 7249."""
    found = int(10_000 * value + 0.5)
    is_above = found % 100 == 50 and decimals(found / 10_000) != decimals(value)
    return found - is_above


def _below(result: CaseResult, columns: Mapping[str, str], facts: RunFacts) -> int:
    """Bits of the columns whose value is on the wrong side of its threshold, before any rounding."""
    bits, limits = 0, facts.all_thresholds
    for bit, name in enumerate(columns):
        value = result.toxicity.value if name == TOXICITY else result.value(name)
        limit = limits.get(name)
        if value is not None and limit is not None:
            bits |= (value >= limit if name == TOXICITY else value < limit) << bit
    return bits


def _json(value: object) -> str:
    """JSON that no HTML parser reads as markup."""
    return json.dumps(value).replace("<", "\\u003c")
