"""Rows judged by several processes of this machine: the same results, in the same order, as by one.

Only the offline judge is spread like this. The main process reads, tallies and writes; the workers judge parts of the
input. What crosses the pipes are settings without secrets, rows and their results.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from rag_eval.configuration.effective import effective_thresholds
from rag_eval.configuration.settings import Settings
from rag_eval.judge.providers import PROVIDERS
from rag_eval.records import CaseResult, Row
from rag_eval.results.causes import CauseTally
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.run.processes import Processes, function_named
from rag_eval.texts.citations import Habit

_MOST_AT_ONCE = 4
"""More are not started by themselves: the one process that writes the report cannot keep up with more."""
LARGE = 4_000_000
"""Characters of an input that several processes judge faster than one, their start included."""
_PART_ROWS = 50
_PART_CHARACTERS = 100_000
"""Of one part: some 20 ms of judging, so that a part costs little when it is lost and little to send."""
_SAMPLE_ROWS = 100
_ROW_CHARACTERS = 1_000
"""As many as the rows of most inputs have, more or less."""
_GRACE = 10.0
"""Seconds after a stop in which parts under way are still finished."""


def processes_for(settings: Settings, rows: Sequence[Row]) -> int:
    """How many processes judge: as many as the settings say or, by default, one for each core if the input is large."""
    if not settings.provider.is_offline:
        return 1  # it waits for its endpoint, not for a core
    if settings.evaluation.processes is not None:
        return min(settings.evaluation.processes, max(1, len(rows)))
    most = most_processes()
    return most if most > 1 and _characters(rows) >= LARGE else 1


def most_processes() -> int:
    """How many judge a large input by default."""
    return min(usable_cores(), _MOST_AT_ONCE)


def usable_cores() -> int:
    """Those that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_Part = tuple[int, list[Row]]
"""What a worker gets: the number of cases of the run that come before some rows, and the rows."""
_Judged = tuple[list[tuple[CaseResult, ...]], Any, Any]
"""What it gives back: the results of each row, the state of a CauseTally, and what the renderer made of them."""


class _Renderer(Protocol):
    """What the workers make of the results of each part, in addition to handing them over."""

    task: str
    """'module:function' that a worker calls with `spec`; what it returns is called with the number of cases of the run
    before the part, and the part's results."""
    spec: Any
    take: Callable[[Any, Sequence[CaseResult]], None]
    """Is called with what was made of a part and its results, before these are given out one by one."""


def start_workers(settings: Settings, path: Path, renderer: str) -> Processes | None:
    """Worker processes for an input that will be judged by several, as far as its size tells; None if it may not be.

    Called before this process holds locks or has threads, so that the workers can be forks of it: they need not import
    again what this process has imported, the module of the task `renderer` included.
    """
    if not settings.provider.is_offline:
        return None
    number = settings.evaluation.processes
    if number is None:
        number = most_processes() if _looks_large(settings, path) else 1
    if number == 1:
        return None
    function_named(renderer)
    return workers(number, forks=True)


def workers(number: int, *, forks: bool = False) -> Processes:
    return Processes(f"{__name__}:{open_worker.__name__}", number, result=_Judged, ahead=1, forks=forks)


def open_engine(
    judges: Judges,
    settings: Settings,
    processes: int,
    renderer: _Renderer | None = None,
    started: Processes | None = None,
) -> "ProcessEngine | None":
    """So many worker processes, which use the `renderer`; None if this process is to judge by itself.

    Workers that were `started` are used, or ended if there is nothing to do for them.
    """
    if processes > 1:
        return ProcessEngine(judges, settings, started or workers(processes), renderer)
    if started:
        started.close()
    return None


class ProcessEngine:
    """Worker processes that judge rows offline: a RowEngine of an Evaluation."""

    def __init__(
        self,
        judges: Judges,
        settings: Settings,
        processes: Processes,
        renderer: _Renderer | None,
        *,
        part_rows: int = _PART_ROWS,
    ) -> None:
        """`processes` are those of `workers`. `part_rows` are how many rows a worker gets at a time at most."""
        self._part_rows = part_rows
        self._renderer = renderer
        self.causes: CauseTally | None = None
        habits = {bot: tuple(habit) for bot, habit in judges.habits.items()}
        spec = specification(settings), habits, (renderer.task, renderer.spec) if renderer else None
        self._processes = processes.open(spec)

    def results(self, rows: Iterable[Row]) -> Iterator[tuple[CaseResult, ...]]:
        """See RowEngine. Raises WorkerError."""
        for judged, causes, made in self._processes.map(self._items(rows)):
            if self.causes:
                self.causes.merge(causes)
            if self._renderer:
                self._renderer.take(made, list(chain.from_iterable(judged)))
            yield from judged
        self._processes.end()

    def _items(self, rows: Iterable[Row]) -> Iterator[tuple[str, _Part]]:
        before = 0
        for part in _parts(rows, self._part_rows):
            yield _name(part), (before, part)
            before += sum(len(row.cases) for row in part)

    def stop(self) -> None:
        self._processes.stop(_GRACE)

    def close(self) -> None:
        self._processes.close()


def specification(settings: Settings) -> dict[str, Any]:
    """The settings in values that JSON knows, without keys and without the addresses that could hold one.

    Only what was set, because some defaults depend on whether a value was set.
    """
    plain = settings.without_secrets()
    models = {name for name, provider in PROVIDERS.items() if not provider.is_offline}
    return plain.model_dump(mode="json", exclude_unset=True, exclude=models)


def open_worker(
    spec: tuple[dict[str, Any], dict[str, tuple[int, ...]], tuple[str, Any] | None],
) -> Callable[[_Part], _Judged]:
    """In a worker process: what judges a part of the input by the settings of `spec`, and what renders its results."""
    plain, counts, renderer = spec
    settings = Settings.model_validate(plain)
    habits = {bot: Habit(*each) for bot, each in counts.items()}
    evaluation = Evaluation(Judges.offline(settings).with_citations(settings, habits), settings)
    make = function_named(renderer[0])(renderer[1]) if renderer else None
    thresholds = effective_thresholds(settings, is_proxy=True)

    def judge(part: _Part) -> _Judged:
        before, rows = part
        causes = CauseTally(list(dict.fromkeys(case.bot for row in rows for case in row.cases)), thresholds)
        judged = list(map(causes.add_row, evaluation.results(rows)))
        made = make(before, list(chain.from_iterable(judged))) if make else None
        return judged, causes.state(), made

    return judge


def _looks_large(settings: Settings, path: Path) -> bool:
    """Whether the file is so large, compressed or not, that it has LARGE characters in rows that are judged."""
    is_whole = settings.evaluation.max_rows >= LARGE / _ROW_CHARACTERS
    return is_whole and path.is_file() and path.stat().st_size >= LARGE


def _characters(rows: Sequence[Row]) -> float:
    """About as many as all rows have, judging by the first ones."""
    sample = list(islice(rows, _SAMPLE_ROWS))
    return math.fsum(map(_weight, sample)) / len(sample) * len(rows) if sample else 0


def _parts(rows: Iterable[Row], most_rows: int) -> Iterator[list[Row]]:
    """The rows in groups of at most so many, and of few characters."""
    part: list[Row] = []
    weight = 0
    for row in rows:
        part.append(row)
        weight += _weight(row)
        if len(part) == most_rows or weight >= _PART_CHARACTERS:
            yield part
            part, weight = [], 0
    if part:
        yield part


def _weight(row: Row) -> int:
    """Characters of its texts; those that its bots share count once, as they are read once."""
    shared = {id(case.chunks): case.chunks for case in row.cases}
    chunks = sum(len(chunk) for chunks in shared.values() for chunk in chunks or ())
    reference = row.cases[0].reference if row.cases else None
    history = sum(len(turn.content) for case in row.cases for turn in case.history)
    return (
        len(row.query)
        + history
        + len(reference or "")
        + chunks
        + sum(len(case.response) for case in row.cases)
    )


def _name(part: Sequence[Row]) -> str:
    first, last = part[0].number, part[-1].number
    return f"row {first}" if first == last else f"rows {first} to {last}"
