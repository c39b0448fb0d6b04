"""The shards of one run: which of them are done, and how the others are judged."""

import math
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rag_eval.cli.console import warn
from rag_eval.cli.facts import facts_at_start
from rag_eval.cli.options import Options
from rag_eval.errors import ExitCode, InputError, RagEvalError, RunStoppedError

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts, Usage
    from rag_eval.results.stored import State
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.judges import Judges
    from rag_eval.run.processes import Processes
    from rag_eval.shards.engines import Engine, LocalEngine, RayEngine
    from rag_eval.shards.fold import Fold
    from rag_eval.shards.folder import RunFolder
    from rag_eval.shards.judge_shard import ShardOutcome
    from rag_eval.shards.plan import Plan
    from rag_eval.shards.spec import ShardSpec

_CAPS = ("max_calls", "max_cost", "max_minutes")
"""Codes of shards that stopped because their part of a cap was used up; the run may have some left."""
_AHEAD = 1
"""Shards that wait in a process while it judges another one offline."""


class ShardedRun:
    """The shards of one folder as the settings want them: those that are done, and those that an engine judges."""

    def __init__(
        self, folder: "RunFolder", plan: "Plan", settings: "Settings", rubric: "EvaluationRubric | None"
    ) -> None:
        from rag_eval.run.pairs import PairJudge
        from rag_eval.shards.folder import fingerprint_of_file
        from rag_eval.shards.spec import counting_fingerprint, judging_fingerprint

        self.plan = plan
        self.done: set[int] = set()
        """Numbers of the shards whose parts are there."""
        self.stopped: RunStoppedError | None = None
        self.stop_requested = False
        """By a signal."""
        self._engine: LocalEngine | None = None
        self.requests = 0
        """The number of requests that this command sent."""
        self.cost = 0.0
        """Of them, as far as it is known."""
        self.folder = folder
        self.rows_folder = ""
        """Where those who judge put the rows of the report's first sheet, if they are wanted."""
        self._known_marks: dict[int, State] = {}
        """By shard, of those that are still to be judged by an LLM."""
        self._settings = settings
        self.judging: str
        """Fingerprint of everything that scores depend on, beside the rows."""
        judges = _judges_without_calls(settings, rubric)
        if plan.pairs:
            judges = replace(judges, pairs=PairJudge(plan.table["bots"], plan.pairs, settings))
        self.judges = judges.with_citations(settings, plan.table_without_rows().habits)
        self.facts = self._facts()
        of_rubric = fingerprint_of_file(settings.rubric.file) if settings.rubric.file else ""
        self.judging = judging_fingerprint(settings, of_rubric, plan.version)
        self._counting = counting_fingerprint(settings, self.facts)

    def _facts(self) -> "RunFacts":
        plan = self.plan
        facts = facts_at_start(self._settings, plan.table_without_rows(), self.judges)
        if len(plan.sources) == 1:
            return replace(facts, rows=plan.rows, started=datetime.fromisoformat(plan.started))
        names = tuple(source.name for source in plan.sources)
        return replace(
            facts,
            rows=plan.rows,
            started=datetime.fromisoformat(plan.started),
            input_name=f"{len(names):,} files, {names[0]} to {names[-1]}",
            sheet="",
            sources=names,
        )

    def specs(self, options: Options | None = None) -> list["ShardSpec"]:
        """Of all shards, done or not."""
        from rag_eval.shards.folder import fingerprint
        from rag_eval.shards.spec import ShardSpec, plain_facts

        facts = plain_facts(self.facts)
        return [
            ShardSpec(
                number=number,
                source=shard.source,
                rows=shard.rows,
                input=shard.input,
                judging=fingerprint([self.judging, shard.input]),
                counting=self._counting,
                settings=self.plan.settings,
                habits=self.plan.table.get("habits", {}),
                pairs=self.plan.pairs,
                facts=facts,
                fresh_since=self.plan.fresh_since,
                retry_errors=bool(options and options.retry_errors),
                strict_cache=bool(options and options.strict_cache),
            )
            for number, shard in enumerate(self.plan.shards)
        ]

    def write_specs(self, options: Options) -> int:
        """For `rag-eval shard`: each shard with a journal of its own. Returns their number."""
        from rag_eval.shards.folder import write_json

        specs = self.specs(options)
        for spec in specs:
            own = spec.model_copy(update={"shares_replies": False, **_caps_of(self._settings, len(specs))})
            write_json(self.folder.spec(spec.number), own.model_dump(mode="json"))
        return len(specs)

    def judge(self, engine: "Engine", options: Options) -> Iterator["ShardOutcome"]:
        """Every shard that is not done, until all are, something stops the run, or its caps are reached."""
        from rag_eval.shards.engines import LocalEngine
        from rag_eval.shards.judge_shard import GRANT_USED, ShardOutcome, judge_shard
        from rag_eval.shards.purse import Purse

        self._engine = engine if isinstance(engine, LocalEngine) else None
        updates = {"share": engine.slots, "shares_replies": self._engine is not None}
        wanted = [spec.model_copy(update=updates) for spec in self._wanted(options)]
        for number in sorted(self.done):
            yield ShardOutcome(number, self.plan.shards[number].rows, done=True)
        purse, waiting = Purse(self._settings, engine.slots), deque(wanted)
        by_number = {spec.number: spec for spec in wanted}
        while waiting and not self.stopped:
            is_moving, short, died = False, list[int](), list[int]()
            try:
                for plain in engine.map(judge_shard, self._tasks(waiting, purse, short)):
                    outcome = ShardOutcome(**plain)
                    purse.settle(outcome)
                    self.requests += outcome.requests
                    self.cost += outcome.cost
                    is_moving |= outcome.done
                    if outcome.done:
                        self.done.add(outcome.number)
                    elif outcome.code in _CAPS:
                        short.append(outcome.number)
                    elif outcome.code == GRANT_USED:
                        died.append(outcome.number)
                    else:
                        self._stop(outcome.code, outcome.stopped, outcome.exit_code)
                    yield outcome
            except RagEvalError as error:  # of the engine: workers died again and again
                self._stop("engine", str(error), error.exit_code)
            waiting.extendleft(by_number[number] for number in (*died, *short))  # what is begun comes first
            if waiting and not self.stopped and not (purse.narrow() if short else is_moving):
                self.stopped = purse.reached()

    def request_stop(self, reason: RunStoppedError) -> None:
        """Begin no more shards; those under way end when their open calls are answered. For a signal handler."""
        self.stop_requested = True
        self.stopped = self.stopped or reason
        if self._engine:
            self._engine.stop(reason)

    def begin_anew(self) -> bool:
        """Nothing that is there counts from now on. Whether a command before has begun so and was interrupted: what it
        has judged since counts.
        """
        from rag_eval.shards.judge_shard import is_judged, moment_after_replies

        is_begun = bool(self.plan.fresh_since) and not all(
            is_judged(self.folder, spec) for spec in self.specs()
        )
        if not is_begun:
            after_parts = math.nextafter(self.plan.fresh_since, math.inf)  # the clock may have been put back
            moment = max(time.time(), after_parts, moment_after_replies(self.folder, self.specs()))
            self.plan = self.plan.model_copy(update={"fresh_since": moment})
        return is_begun

    def keep_what_was_paid(self, before: "Plan", options: Options) -> None:
        """Raises InputError if parts by another judge than this one would be replaced, and nobody has asked for that.

        `before` is the plan as the last run left it. What the offline judge did costs nothing to do again.
        """
        from rag_eval.shards.spec import judged_otherwise

        others = self._judged_otherwise()
        if not others:
            return
        earlier = before.loaded_settings().settings
        shards = "1 finished shard was" if others == 1 else f"{others:,} finished shards were"
        what = f"{self.folder.root}: {shards} judged in another way"
        is_free = self.judges.is_proxy and earlier.provider.is_offline
        if not (options.fresh or is_free or before.judging == self.judging):
            changed = ", ".join(judged_otherwise(earlier, self._settings)[:5]) or "the rubric"
            raise InputError(
                f"{what} (changed: {changed}); add --fresh to judge everything again, or use another -o to keep them"
            )
        warn(f"{what}, and will be judged again.")

    def _judged_otherwise(self) -> int:
        """Parts by another judge than this one."""
        from rag_eval.shards.folder import about_results

        parts = ((spec.judging, about_results(self.folder.results(spec.number))) for spec in self.specs())
        return sum(about.get("judging", judging) != judging for judging, about in parts)

    def fold(self, *, of_all: bool = False) -> "Fold":
        """The shards that are there, or those that are still to be judged as well, as one run.

        It knows the marks of their cases, since which columns a report has depends on them.
        """
        from rag_eval.shards.fold import Fold
        from rag_eval.shards.judge_shard import with_marks

        numbers = range(len(self.plan.shards)) if of_all else sorted(self.done)
        return Fold(self.folder, with_marks(self.facts, map(self._marks, numbers)))

    def _marks(self, number: int) -> "State":
        from rag_eval.shards.folder import about_results, fingerprint, read_rows
        from rag_eval.shards.judge_shard import marks_in

        about = about_results(self.folder.results(number))
        judging = fingerprint([self.judging, self.plan.shards[number].input])
        if self.judges.is_proxy or about.get("judging") == judging:
            return about
        self._known_marks[number] = marks_in(self._settings, read_rows(self.folder.input(number)))
        return self._known_marks[number]

    def find_done(self) -> None:
        """Look for the shards whose parts are there; their tallies are brought up to the settings."""
        from rag_eval.shards.judge_shard import count_shard

        self.done.update(spec.number for spec in self.specs() if count_shard(self.folder, spec))
        if len(self.done) == len(self.plan.shards):
            self.stopped = None  # as when only the tallies of the last shard could not be written

    def usage(self, of_parts: "Usage") -> "Usage":
        """That of all commands, from that of the shards that are done."""
        from rag_eval.shards.judge_shard import usage_of_unfinished

        if self.judges.is_proxy:
            return of_parts
        unfinished = (spec for spec in self.specs() if spec.number not in self.done)
        total = of_parts + usage_of_unfinished(self.folder, unfinished)
        cost = 0.0 if total.cost is None else total.cost - self.cost
        return replace(
            total, earlier_requests=max(0, total.requests - self.requests), earlier_cost=max(0.0, cost)
        )

    @property
    def partial(self) -> str:
        """Why a report does not have all shards; empty if it has."""
        done, every = len(self.done), len(self.plan.shards)
        if done == every:
            return ""
        why = f": {self.stopped}" if self.stopped else ""
        return f"{done:,} of {every:,} shards are judged{why}"

    def remove_replies(self) -> None:
        """The run is complete: its journals are needed no more."""
        self.folder.remove_replies()

    def _stop(self, code: str, reason: str, exit_code: int) -> None:
        """Begin no more shards. The first reason is the one that is reported."""
        if self.stopped is None:
            self.stopped = RunStoppedError(code, reason)
            self.stopped.exit_code = ExitCode(exit_code)

    def numbers_to_judge(self, options: Options) -> list[int]:
        """Of the shards that are more than counted again."""
        from rag_eval.shards.folder import about_results
        from rag_eval.shards.judge_shard import is_as_asked

        parts = ((spec, about_results(self.folder.results(spec.number))) for spec in self._wanted(options))
        return [
            spec.number
            for spec, about in parts
            if spec.again or not is_as_asked(about, spec) or about["failed"]
        ]

    def damaged_inputs(self, options: Options) -> list[int]:
        """Numbers of the shards that are to be judged, but whose rows are not there as they were read."""
        from rag_eval.shards.folder import fingerprint_of_file

        return [
            spec.number
            for spec in self.specs(options)
            if fingerprint_of_file(self.folder.input(spec.number)) != spec.input
            and self._needs_rows(spec, options)
        ]

    def _needs_rows(self, spec: "ShardSpec", options: Options) -> bool:
        from rag_eval.shards.folder import about_results
        from rag_eval.shards.judge_shard import is_judged

        if not is_judged(self.folder, spec):
            return True
        return not self.judges.is_proxy and bool(about_results(self.folder.results(spec.number))["failed"])

    def _wanted(self, options: Options) -> Iterator["ShardSpec"]:
        """The shards that are not done. With an LLM judge, one with failed cases is not."""
        from rag_eval.shards.folder import about_results
        from rag_eval.shards.judge_shard import is_done

        for spec in self.specs(options):
            is_there = is_done(self.folder, spec)
            has_failed = is_there and about_results(self.folder.results(spec.number))["failed"]
            if is_there and (self.judges.is_proxy or not has_failed):
                self.done.add(spec.number)
            else:
                yield spec.model_copy(update={"again": is_there})

    def _tasks(
        self, waiting: "deque[ShardSpec]", purse: Any, short: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """Until a shard comes back `short`: what is left goes to those that are begun."""
        rows_before = [*accumulate((shard.rows for shard in self.plan.shards), initial=0)]
        while waiting and not self.stopped and not short:
            spec = purse.fill(waiting[0])
            if spec is None:
                return
            waiting.popleft()
            known = self._known_marks.get(spec.number)
            before = rows_before[spec.number] * len(self.facts.bots)
            task = {"folder": str(self.folder.root.absolute()), "spec": spec.model_dump(mode="json")}
            task |= {"marks": known} if known else {}
            yield task | ({"rows": (self.rows_folder, before)} if self.rows_folder else {})


def workers_for(
    folder: "RunFolder", options: Options, settings: "Settings"
) -> "AbstractContextManager[Processes | None]":
    """Processes that judge the shards of a run, if this machine is to do so and a part is missing.

    They are forks of this one, which has neither threads nor locks yet, but all that takes long to import.
    """
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.run.judges import import_clients
    from rag_eval.run.processes import function_named
    from rag_eval.shards.engines import workers
    from rag_eval.shards.judge_shard import judge_shard

    number = _processes_for(settings)
    if options.engine in ("ray", "none") or number == 1 or (_is_judged(folder) and not options.fresh):
        return nullcontext()
    if settings.provider.is_offline:
        function_named(RenderedCases.task)
    else:
        import_clients()
    return workers(number, judge_shard, ahead=_ahead(settings), forks=True)


def _processes_for(settings: "Settings") -> int:
    """One for each core; with an LLM judge, no more than calls may be open."""
    from rag_eval.run.parallel import usable_cores

    return (
        usable_cores() if settings.provider.is_offline else min(usable_cores(), settings.evaluation.workers)
    )


def _ahead(settings: "Settings") -> int:
    return _AHEAD if settings.provider.is_offline else 0


def _is_judged(folder: "RunFolder") -> bool:
    """Whether there is a file for each part of the run; what is in it is not known yet."""
    from rag_eval.shards.plan import read_plan

    plan = read_plan(folder)
    return plan is not None and all(folder.results(number).is_file() for number in range(len(plan.shards)))


def engine_of(
    options: Options, settings: "Settings", shards: int, started: "Processes | None"
) -> "LocalEngine | RayEngine":
    """What runs the shards: no more at once than there are shards, and with an LLM judge than calls may be open."""
    from rag_eval.shards.engines import LocalEngine, RayEngine

    most = shards if settings.provider.is_offline else min(shards, settings.evaluation.workers)
    return (
        RayEngine(options.address, most)
        if options.engine == "ray"
        else LocalEngine(most, ahead=_ahead(settings), started=started)
    )


def _judges_without_calls(settings: "Settings", rubric: Any) -> "Judges":
    """To know what will be judged, and how readers call it."""
    from rag_eval.judge.null_judges import NoJudge, NoStore
    from rag_eval.run.evaluation import redactor_of
    from rag_eval.run.judges import Judges

    if not settings.provider.is_offline:
        return Judges.llm(settings, NoJudge(), NoStore(), rubric)
    if redactor_of(settings):
        warn("Nothing is redacted: the offline judge sends nothing.")
    return Judges.offline(settings)


def _caps_of(settings: "Settings", shards: int) -> dict[str, Any]:
    """Of each shard if nobody hands them out: an equal part for all of them, which are judged at the same time."""
    limits = settings.limits
    return {
        "share": shards,
        "max_calls": None if limits.max_calls is None else max(1, limits.max_calls // shards),
        "max_cost": None if limits.max_cost is None else limits.max_cost / shards,
        "max_minutes": limits.max_minutes,
    }


@contextmanager
def lent_key(settings: "Settings") -> Iterator[None]:
    """Worker processes read the key where every process does, wherever this one found it."""
    variables = [name for name, key in settings.provider.variables.items() if key == "api_key"]
    before = {name: os.environ.get(name) for name in variables}
    if variables and (key := settings.section.api_key.get_secret_value()):
        os.environ.update(dict.fromkeys(variables, key))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
