"""Runs through time: this run's place in the history, and the command that shows a history without a run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_eval import __version__
from rag_eval.cli.console import command_line, remark, say, warn
from rag_eval.cli.parameters import PATH
from rag_eval.errors import InputError

if TYPE_CHECKING:
    from rag_eval.records import RunFacts
    from rag_eval.results.baseline import PastRun
    from rag_eval.results.findings import Findings
    from rag_eval.results.run_history import History
    from rag_eval.results.summary import Summary

_SHOWN = 10
"""Runs of each bot that the terminal shows."""
_PAIRS = 5
"""Other bots that each of them was compared with."""


@dataclass(frozen=True, slots=True)
class HistoryOfRun:
    """The history that a run adds to: what came before, and what the run's entry is called."""

    history: "History"
    id: str
    input_hash: str
    past: "PastRun | None"
    """The last comparable run; None if there is none, or its values by case are lost."""
    since: str = ""
    """Its id."""
    pair_judge: str = ""
    """Who compares responses in pairs, if they are."""

    @classmethod
    def read(
        cls,
        folder: Path,
        input_hash: str,
        facts: "RunFacts",
        *,
        pair_judge: str = "",
        is_baseline: bool = False,
    ) -> "HistoryOfRun":
        """What is there of the time before this run began; a run that is continued has an entry of its own already.

        Names damaged lines. Raises InputError for a folder that cannot be read, and for damaged values by case of the
        last comparable run if that `is_baseline`.
        """
        from rag_eval.errors import first_of
        from rag_eval.results.run_history import name_of, new_id, read_history

        history = read_history(folder)
        for sentence in first_of(history.damaged):
            warn(sentence)
        history = replace(history, runs=tuple(run for run in history.runs if run.started < facts.started))
        last = history.last_like(facts)
        past = None
        try:
            past = history.past_run(last) if last else None
            if last and past is None:
                warn(
                    f"{folder}: the values by case of {name_of(last)} are missing; changes since that run are not "
                    "tested."
                )
        except InputError as damage:
            if is_baseline:
                raise
            warn(f"{damage}. Changes since that run are not tested.")
        since = last.id if last and past else ""
        return cls(history, new_id(facts), input_hash, past, since, pair_judge)

    @property
    def is_first(self) -> bool:
        """No complete run came before, as far as the lines can be read."""
        return not self.history.damaged and all(run.partial for run in self.history.runs)

    def with_run(self, facts: "RunFacts", summary: "Summary", findings: "Findings") -> "History":
        """The history with this run as its last."""
        from rag_eval.results.run_history import run_of

        run = run_of(self.id, self.input_hash, facts, summary, findings, self.since, self.pair_judge)
        return replace(self.history, runs=(*self.history.runs, run))


@click.command("history", short_help="Show how scores changed over time.")
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("-o", "--output", type=PATH, help="Also write the history to this file (.xlsx or .html).")
def command(folder: Path, output: Path | None) -> None:
    """Show the mean RQS of each bot over time, and what changed significantly in the last run.

    FOLDER is what --history or [report] history named in earlier runs. No judge is called.
    """
    from rag_eval.errors import first_of
    from rag_eval.results.run_history import LINES, changes_words, read_history

    writers = {".xlsx": _write_workbook, ".html": _write_page}
    if output and output.suffix.lower() not in writers:
        raise InputError(f"{output}: a history is written to a file that ends in {' or '.join(writers)}")
    history = read_history(folder)
    for sentence in first_of(history.damaged):
        warn(sentence)
    if not history.runs:
        raise InputError(
            f"{folder / LINES}: there is no run yet; add {command_line('--history', folder)} to a run"
        )
    place = writers[output.suffix.lower()](output, history) if output else None
    for line in (*_lines(history), *changes_words(history)):
        (remark if place else say)(line)
    if place:
        remark(f"Also written: {place}")


def _lines(history: "History") -> list[str]:
    """A table of the last runs of each bot."""
    from itertools import groupby

    from rag_eval.results.run_history import bots_in_time
    from rag_eval.texts.display import decimals, printable, shorten

    lines = []
    for bot, found in groupby(bots_in_time(history), key=lambda line: line.bot.bot):
        runs = list(found)
        more = f" (last {_SHOWN} of {len(runs):,} runs)" if len(runs) > _SHOWN else ""
        lines.append(f"{shorten(bot, 60)}{more}")
        for line in runs[-_SHOWN:]:
            mean, interval = line.bot.rqs, line.bot.interval
            limits = f"95% CI {' to '.join(map(decimals, interval))}" if interval else ""
            started = f"{line.run.started:%Y-%m-%d %H:%M}"
            lines.append(
                f"  {started}  RQS {decimals(mean.value, 4):>6}  {limits:<22}  {mean.scored:>6,} scored  {line.verdict}"
            )
            lines += [f"    {printable(pair.words)}" for pair in line.run.pairs_of(bot)[:_PAIRS]]
    return lines


def _write_workbook(target: Path, history: "History") -> Path:
    from rag_eval.report.history_sheet import write_history_workbook

    return write_history_workbook(target, history)


def _write_page(target: Path, history: "History") -> Path:
    from rag_eval.report.page.timeline import write_history_page

    return write_history_page(target, history, __version__)
