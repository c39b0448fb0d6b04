"""The texts of one row as the page keeps them: each text once, and evidence as positions in the texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval.records import Case, CaseResult, Evidence, Outcome, RunFacts, Score
from rag_eval.report.pair_tables import preferred, reason_of
from rag_eval.results.summary import spent_header
from rag_eval.store.codec import to_json
from rag_eval.texts.display import amount

TEXT_LIMIT = 100_000
"""Characters that the page keeps of one text."""
_ROW_LIMIT = 1_000_000
"""Characters of a row's JSON. A row beyond it keeps _LEAST characters of each text."""
_LEAST = 4_000
_RESPONSE, _REFERENCE, _QUERY, _CHUNKS = range(4)
"""Where evidence is: the chunks of the row are numbered from _CHUNKS up."""
_PARTS = {
    "statement": _RESPONSE,
    "sentence": _RESPONSE,
    "response": _RESPONSE,
    "query": _QUERY,
    "wording": _QUERY,
}
Json = dict[str, Any]


def row_record(results: Sequence[CaseResult], facts: RunFacts) -> bytes:
    """The results of one row as JSON without line ends; page.js reads it. See `_row` for the members."""
    record = to_json(_row(results, facts, TEXT_LIMIT))
    return record if len(record.decode()) <= _ROW_LIMIT else to_json(_row(results, facts, _LEAST))


def _row(results: Sequence[CaseResult], facts: RunFacts, limit: int) -> Json:
    """q: query, g: ground truth, x: further columns, k: distinct chunks, c: the case of each bot.

    t: earlier turns, here or in each case, whichever is less.
    """
    case = results[0].case
    # Rows whose bots have one context column share its chunks.
    chunks = list(dict.fromkeys(chunk for result in results for chunk in result.case.chunks or ()))
    places = {chunk: index for index, chunk in enumerate(chunks)}
    bots = {bot: index for index, bot in enumerate(facts.bots)}
    is_shared = len({result.case.history for result in results}) == 1
    return _without_blanks(
        {
            "q": _cut(case.query, limit),
            **(_turns(case, limit) if is_shared else {}),
            "g": None if case.reference is None else _cut(case.reference, limit),
            "x": {name: _cut(text, limit) for name, text in case.columns.items()},
            "k": [_cut(chunk, limit) for chunk in chunks],
            "c": [
                _case(result, facts, bots, places, limit) | ({} if is_shared else _turns(result.case, limit))
                for result in results
            ],
        }
    )


def _case(
    result: CaseResult, facts: RunFacts, bots: Mapping[str, int], places: Mapping[str, int], limit: int
) -> Json:
    """b: bot, a: response, m: whether it is missing, k: chunks by rank, s: what is behind the scores,
    w: recommendation, h: human labels, f: flags, d: gold and retrieved documents, r: rubric, t: latency and cost,
    v: pairs."""
    case = result.case
    key = case.row, case.bot
    finder = _Finder(result, places, limit)
    cut = facts.cut_contexts.get(key)
    return _without_blanks(
        {
            "b": bots[case.bot],
            "a": _cut(case.response, limit),
            "m": case.is_missing or None,
            "k": None if case.chunks is None else [places[chunk] for chunk in case.chunks],
            "s": {
                name: _score(score, finder)
                for name, score in result.all_scores.items()
                if score.evidence or score.reason or score.samples
            },
            "w": result.recommendation,
            "h": dict(case.human),
            "f": [*facts.flags_of(result), *([cut] if cut else [])],
            "d": None if case.gold_ids is None else [list(case.gold_ids), list(case.retrieved_ids or ())],
            "r": _rubric(result),
            "t": [[spent_header(name, facts), amount(value)] for name, value in case.spent.items()] or None,
            "v": [[pair.other, preferred(case.bot, pair), reason_of(pair)] for pair in result.pairs] or None,
        }
    )


def _turns(case: Case, limit: int) -> Json:
    """t: speaker and text of each earlier turn; nothing without any."""
    turns = [[turn.role, _cut(turn.content, limit)] for turn in case.history]
    return {"t": turns} if turns else {}


def _score(score: Score, finder: "_Finder") -> Json:
    """o: the outcome unless it is scored, c: code, r: reason, e: evidence, m: samples."""
    return _without_blanks(
        {
            "o": "" if score.outcome is Outcome.SCORED else str(score.outcome),
            "c": score.code,
            "r": score.reason,
            "e": list(finder.items(score.evidence)),
            "m": list(score.samples),
        }
    )


def _rubric(result: CaseResult) -> Json | None:
    rubric = result.rubric
    if rubric is None:
        return None
    verdicts = [[each.criterion, each.mandatory, each.passed, each.reason] for each in rubric.verdicts]
    members = {"o": str(rubric.outcome), "p": rubric.passed, "n": rubric.score, "of": rubric.of}
    return _without_blanks({**members, "c": rubric.code, "r": rubric.reason, "v": verdicts})


class _Finder:
    """Finds evidence in the texts of its case."""

    def __init__(self, result: CaseResult, places: Mapping[str, int], limit: int) -> None:
        case = result.case
        self._texts = {_RESPONSE: case.response, _REFERENCE: case.reference or "", _QUERY: case.query}
        self._chunks = case.chunks or ()
        self._places = places
        self._limit = limit

    def items(self, evidence: Sequence[Evidence]) -> Iterator[list[Any]]:
        """[subject, verdict, favourable, place or text, reason, rank], without what is empty at the end.

        A place is [part, start, length] in UTF-16 units, as JavaScript counts. The same words twice are two places.
        """
        ends: dict[tuple[int, str], int] = {}
        for item in evidence:
            line: list[Any] = [item.subject, item.verdict, int(item.favourable), self._place(item, ends)]
            line += [item.reason, item.rank]
            while line[-1] in ("", None):
                line.pop()
            yield line

    def _place(self, item: Evidence, ends: dict[tuple[int, str], int]) -> list[int] | str:
        if item.subject == "chunk" and item.rank and self._chunks[item.rank - 1 : item.rank] == (item.text,):
            return [_CHUNKS + self._places[item.text], 0, 0]  # the whole chunk
        part = _REFERENCE if item.subject.startswith("reference") else _PARTS.get(item.subject)
        text = self._texts.get(part, "") if part is not None else ""
        start = text.find(item.text, ends.get((part or 0, item.text), 0)) if item.text else -1
        if start < 0:
            start = text.find(item.text) if item.text else -1
        if start < 0 or start + len(item.text) > self._limit:
            return _cut(item.text, self._limit)
        ends[part or 0, item.text] = start + len(item.text)
        return [part or 0, _units(text[:start]), _units(item.text)]


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […] (cut: {len(text):,} characters in all)"


def _without_blanks(members: Json) -> Json:
    return {
        name: value for name, value in members.items() if value is not None and value != "" and value != {}
    }
