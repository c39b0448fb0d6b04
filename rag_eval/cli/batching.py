"""--batch: a run that goes on from command to command."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.console import remark, warn
from rag_eval.cli.options import Options
from rag_eval.errors import ExitCode, InputError
from rag_eval.judge.providers import PROVIDERS
from rag_eval.texts.display import counted

if TYPE_CHECKING:
    from rag_eval.cli.manifest import Manifest
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import Row
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.batches import BatchRun, JobBill
    from rag_eval.run.judges import Judges
    from rag_eval.store.batch_records import BatchRecord
    from rag_eval.store.reply_store import Store
    from rag_eval.texts.citations import Habit

_CONTINUE = "Run the same command again to continue."
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 600.0
"""Seconds between two looks at the batches."""


def refuse_batches(options: Options, settings: "Settings") -> None:
    """Raise InputError for options and settings that contradict each other about calls and batches."""
    if options.fresh and options.report_only:
        raise InputError(
            "--fresh: has no effect with --report-only, which calls no judge; remove one of them"
        )
    if not options.in_batches:
        if options.batch_wait is not None:
            raise InputError("--batch-wait: needs provider batches; add --batch")
        return
    from rag_eval.run.batches import batch_limits_of

    batch_limits_of(settings.without_entra())
    if options.report_only:
        raise InputError(
            "--report-only: makes no calls, so --batch has no effect; remove one of them (--report-only shows what the "
            "batches have brought so far)"
        )
    if settings.limits.max_minutes is not None:
        raise InputError(
            "--max-minutes ([limits] max_minutes): cannot be used with --batch, since a batch takes up to a day; "
            "remove it, and use --batch-wait MINUTES to limit how long a command waits"
        )
    if options.batch_cancel and (idle := options.idle("batch-cancel")):
        raise InputError(f"{', '.join(idle)}: has no effect with --batch-cancel; remove one of them")


def refuse_open_batches(store: "Store", target: Path) -> None:
    """Raise InputError if calls of this report would be made while batches have them."""
    from rag_eval.run.batches import open_batches_of

    if batches := open_batches_of(store, target):
        calls = sum(batch.requests for batch in batches)
        raise InputError(
            f"{target}: this report waits for {_number(batches)} ({counted(calls, 'call')}); add --batch to continue, "
            "or cancel with --batch-cancel"
        )


def earlier_batches(
    settings: "Settings", judges: "Judges", target: Path, *, is_recorded: bool
) -> "JobBill | None":
    """What this report took in batches before; None if nothing is known of it.

    If the run `is_recorded`, that is in its JSON.
    """
    if judges.is_proxy or is_recorded:
        return None
    from rag_eval.run.batches import JobBill
    from rag_eval.store.reply_store import Store

    return JobBill.of(settings, judges.store, target) if isinstance(judges.store, Store) else None


@contextmanager
def open_batches(
    settings: "Settings",
    rows: "Sequence[Row]",
    name: str,
    target: Path,
    options: Options,
    rubric: "EvaluationRubric | None",
    habits: "Mapping[str, Habit]",
) -> "Iterator[BatchRun]":
    """What is known of the batches of this report; `name` is that of its run. Nothing is sent yet.

    `habits` are those of the table, by bot.
    """
    from rag_eval.configuration.effective import budget_of, endpoint_of, store_path
    from rag_eval.judge.transport import Transport
    from rag_eval.run.batches import BatchPlan, BatchRun, batch_limits_of
    from rag_eval.run.pairs import PairJudge
    from rag_eval.store.reply_store import Store

    rules = settings.provider.batches
    online_below = settings.batch.finish_online_below
    plan = BatchPlan(
        settings,
        rows,
        rubric,
        batch_limits_of(settings),
        finish_online_below=online_below,
        can_ask_online=online_below > 0 or not (rules and rules.has_own_deployments),
        habits=habits,
        pairs=PairJudge.of(
            settings, [case.bot for case in rows[0].cases], (row.cases[0].question for row in rows)
        ),
    )
    budget = budget_of(settings)
    store = Store(
        store_path(settings, target), on_damage=None if options.strict_cache else warn, on_network=warn
    )
    transport = Transport(endpoint_of(settings), store, budget, announce=warn)
    run = BatchRun(
        plan,
        transport,
        store,
        budget,
        target,
        run=name,
        fresh=options.fresh,
        retry_errors=options.retry_errors,
        announce=warn,
    )
    try:
        yield run
    finally:
        run.close()


def wait_for_batches(
    run: "BatchRun", options: Options, say: Callable[[str], None]
) -> "Sequence[BatchRecord]":
    """Go on as far as possible, for as long as the user wants to wait. Returns the batches that are still open."""
    until = time.monotonic() + 60 * (options.batch_wait or 0.0)
    for pause in poll_pauses():
        with run.exclusive(options.patience):
            waiting = run.advance()
        left = until - time.monotonic()
        if not waiting:
            return waiting
        say(f"Rows with all replies: {run.finished_rows:,} of {run.rows:,}.")
        if run.held_back:
            say(run.held_back)
        say(f"{waiting_line(waiting)}{'' if left > 0 else ' ' + _CONTINUE}")
        if left <= 0:
            return waiting
        time.sleep(min(pause, left))
    raise AssertionError("the pauses never end")


def cancel_batches(run: "BatchRun", options: Options, manifest: "Manifest") -> ExitCode:
    """Cancel what is open. Finished replies are stored, now or by the same command later.

    The result is printed even with --quiet: it is what --batch-cancel asks for.
    """
    with run.exclusive(options.patience):
        left = run.cancel()
    if left:
        line = f"Cancelling {_number(left)}. Run the same command again to store the finished replies."
        remark(line)
        manifest.waits(line, left)
        return ExitCode.NOT_FINISHED
    remark(
        "No batch of this report is open. Finished replies are kept: --report-only writes a report of them, and "
        "--batch requests the rest."
    )
    return ExitCode.COMPLETE


def poll_pauses() -> Iterator[float]:
    """Seconds between looks at the batches: a minute at first, 10 minutes in the end."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(_LONGEST_PAUSE, 1.5 * pause)


def waiting_line(batches: "Sequence[BatchRecord]", now: datetime | None = None) -> str:
    """What is waited for, and until when."""

    now = now or datetime.now()
    calls = sum(batch.requests for batch in batches)
    submitted = _moment(min(batch.submitted for batch in batches), now)
    due = max(batch.due or batch.submitted + 86_400 for batch in batches)
    latest = (
        f"{_latest(batches)} {_moment(due, now)}" if due > now.timestamp() else f"due {_moment(due, now)}"
    )
    line = f"Waiting for {_number(batches)} ({counted(calls, 'call')}, submitted {submitted}, {latest})."
    if missed := [batch for batch in batches if batch.misses]:
        look = _moment(min(batch.next_look for batch in missed), now)
        line += f" Missing or incomplete at the provider: {_number(missed)}; next look at {look} or later."
    return line


def _latest(batches: "Sequence[BatchRecord]") -> str:
    """On Azure, a batch that takes longer than a day goes on."""
    rules = PROVIDERS[batches[0].place.partition(" ")[0]].batches
    return "expected by" if rules and rules.is_overdue_at_end else "at the latest"


def _number(batches: "Sequence[BatchRecord]") -> str:
    return counted(len(batches), "batch", "batches")


def _moment(seconds: float, now: datetime) -> str:
    """The time of day, with the day unless that is today."""
    moment = datetime.fromtimestamp(seconds)
    days = (moment.date() - now.date()).days
    day = {-1: "yesterday ", 0: "", 1: "tomorrow "}.get(days, f"{moment:%Y-%m-%d} ")
    return f"{day}{moment:%H:%M}"
