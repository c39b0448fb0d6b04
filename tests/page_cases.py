"""Pages of made-up results, for the tests of the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from report_cases import facts_of

from rag_eval.records import CaseResult
from rag_eval.report.page.html_page import HtmlReport
from rag_eval.results.tallies import Tallies


def page_of(
    target: Path,
    results: Sequence[CaseResult],
    *,
    megabytes: float = 8.0,
    has_texts: bool = True,
    slice_by: str = "",
    configuration: Any = None,
    **changes: Any,
) -> Path:
    """A whole page; `changes` are those of the run's facts."""
    bots = tuple(dict.fromkeys(result.case.bot for result in results))
    facts = facts_of(bots, len({result.case.row for result in results}), **changes)
    page = HtmlReport(
        target,
        facts,
        configuration or {},
        {"slice_by"} if slice_by else (),
        megabytes=megabytes,
        has_texts=has_texts,
        slice_by=slice_by,
    )
    tallies = Tallies(facts, slice_by)
    for result in results:
        page.add(result)
        tallies.add(result)
    summary = tallies.summary()
    return page.finish(summary, tallies.findings(summary), facts)
