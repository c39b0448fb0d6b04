"""One shard, judged: a function that any engine may call, on any machine that sees the folder, as often as it likes."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any

from rag_eval import __version__
from rag_eval.configuration.effective import CACHE_NAME
from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.settings import Settings
from rag_eval.errors import ExitCode, InputError, RagEvalError, RunStoppedError
from rag_eval.records import CaseResult, Outcome, Row, RunFacts, Usage
from rag_eval.results.recorded import rescored, rows_of
from rag_eval.results.stored import State
from rag_eval.results.tallies import Tallies
from rag_eval.run.evaluation import Evaluation, cuts_in
from rag_eval.run.judges import Judges, StoredReplies, open_llm_judges, rubric_of
from rag_eval.run.pairs import PairJudge
from rag_eval.run.processes import THIS_PROCESS
from rag_eval.shards.folder import (
    DamagedPartError,
    RunFolder,
    about_results,
    fingerprint_of_file,
    read_results,
    read_rows,
    read_state,
    write_results,
    write_state,
)
from rag_eval.shards.spec import ShardSpec
from rag_eval.store.codec import encode, to_json, to_plain, write_record
from rag_eval.texts.injection import flags_in

GRANT_USED = "grant_used"
"""Code of a shard whose requests and money were given to a worker that died."""


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """What became of one shard."""

    number: int
    rows: int
    done: bool
    """Its part is there, now or since before."""
    stopped: str = ""
    """Why it is not."""
    code: str = ""
    """The same, for programs."""
    exit_code: int = int(ExitCode.COMPLETE)
    requests: int = 0
    """Sent now."""
    cost: float = 0.0
    """Of them, as far as it is known."""
    warnings: tuple[str, ...] = field(default=())


def judge_shard(task: Mapping[str, Any]) -> dict[str, Any]:
    """Judge one shard unless that is done, and write its part. Returns a ShardOutcome, in values that JSON knows.

    `task` has the "folder" of the run and a "spec", which is a ShardSpec in values that JSON knows; "marks" if those of
    the rows are known; and "rows" if its rows of the report's first sheet are wanted: the folder for a RowsFile, and
    how many cases come before. The keys of the judge come from the environment of this process.
    """
    wanted = ShardSpec.model_validate(task["spec"])
    try:
        shard = _Shard(RunFolder(Path(task["folder"])), wanted, task.get("marks"), task.get("rows"))
        outcome = shard.judge()
    except RagEvalError as error:  # as a value, which comes through to whoever runs this elsewhere
        outcome = ShardOutcome(
            wanted.number,
            wanted.rows,
            done=False,
            stopped=str(error),
            code=error.code if isinstance(error, RunStoppedError) else type(error).__name__,
            exit_code=int(error.exit_code),
        )
    plain: dict[str, Any] = to_plain(outcome)
    return plain


def is_done(folder: RunFolder, spec: ShardSpec) -> bool:
    """Whether the part is there as a whole, and is what the specification asks for."""
    about = _about_tallies(folder, spec)
    return about.get("counting") == spec.counting and _are_of_results(about, folder, spec)


def is_judged(folder: RunFolder, spec: ShardSpec) -> bool:
    """The same of its results; its tallies may need to be counted again."""
    return _are_of_results(_about_tallies(folder, spec), folder, spec)


def _about_tallies(folder: RunFolder, spec: ShardSpec) -> State:
    about: State = read_state(folder.tallies(spec.number)).get("about", {})
    return about


def _are_of_results(about: State, folder: RunFolder, spec: ShardSpec) -> bool:
    return bool(
        is_as_asked(about, spec) and about.get("results") == fingerprint_of_file(folder.results(spec.number))
    )


def is_as_asked(about: State, spec: ShardSpec) -> bool:
    """Whether a part that says this of itself was judged as the specification asks for."""
    return about.get("judging") == spec.judging and about.get("fresh_since", 0.0) >= spec.fresh_since


def usage_of_unfinished(folder: RunFolder, specs: Iterable[ShardSpec]) -> Usage:
    """What all commands took for shards that are not done, as far as the stores of their replies say."""
    from rag_eval.run.metered_store import RunAccount
    from rag_eval.store.reply_store import Store

    names: dict[Path, list[tuple[str, float]]] = {}
    for spec in specs:
        cache = spec.settings_of_shard().cache
        own = [folder.replies(None), folder.replies(spec.number)]
        for path in [cache.directory / CACHE_NAME] if cache.enabled else own:
            names.setdefault(path, []).append((_run_of(folder, spec), spec.fresh_since))
    found: dict[str, Usage] = {}
    for path in filter(Path.exists, names):
        store = Store(path, is_dry=True)
        for name, since in names[path]:
            usage = RunAccount(store, name, since=since).total(Usage())
            # One that another engine continued in the other journal includes what is in the first.
            found[name] = max(usage, found.get(name, usage), key=lambda each: each.requests)
        store.end(keep=True)
    return sum(found.values(), Usage())


def moment_after_replies(folder: RunFolder, specs: Sequence[ShardSpec]) -> float:
    """Later than all that is stored for these shards, in seconds since 1970; 0 if nothing is."""
    from rag_eval.store.reply_store import Store

    paths = {folder.replies(None), *(folder.replies(spec.number) for spec in specs)}
    paths |= {
        cache.directory / CACHE_NAME
        for spec in specs[:1]
        if (cache := spec.settings_of_shard().cache).enabled
    }
    moment = 0.0
    for path in filter(Path.exists, paths):
        store = Store(path, is_dry=True, on_damage=lambda sentence: None)  # who judges says it
        moment = max(moment, store.next_moment())
        store.end(keep=True)
    return moment


def _run_of(folder: RunFolder, spec: ShardSpec) -> str:
    """For the store of its replies, a shard is a run of its own, which may take several commands."""
    from rag_eval.run.metered_store import name_of_run

    return name_of_run(folder.results(spec.number), spec.judging)


def count_shard(folder: RunFolder, spec: ShardSpec) -> bool:
    """Whether the part is there, its tallies being brought up to the specification. Nothing is judged."""
    return is_done(folder, spec) or _Shard(folder, spec).count_again()


class _Shard:
    def __init__(
        self,
        folder: RunFolder,
        spec: ShardSpec,
        marks: State | None = None,
        rows: tuple[str, int] | None = None,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._marks = marks
        self._rows_wanted = rows
        self._warnings: list[str] = []

    def judge(self) -> ShardOutcome:
        spec, folder = self._spec, self._folder
        if not spec.again and is_done(folder, spec):
            return ShardOutcome(spec.number, spec.rows, done=True)
        if not spec.again and self.count_again():
            return ShardOutcome(spec.number, spec.rows, done=True)
        return self._judge()

    def count_again(self) -> bool:
        """Tallies of what was judged before, as the settings are now. False if it is not there, or damaged."""
        judged = about_results(self._folder.results(self._spec.number))
        if not is_as_asked(judged, self._spec):
            return False
        facts = with_marks(self._spec.facts_of_run(), [judged])
        before = read_results(self._folder.results(self._spec.number))
        now = (
            (result, to_json(judged_as))
            for row in rows_of(before)
            for result, judged_as in zip(
                rescored(row, facts, had_diagnostics=facts.diagnostics), row, strict=True
            )
        )
        try:
            self._write(facts, now, lambda: judged)
        except DamagedPartError:
            return False
        return True

    def _judge(self) -> ShardOutcome:
        spec = self._spec
        self._folder.require_files([spec.number])
        rows = self._rows()
        self._use_grant()
        settings = with_own_keys(spec.settings_of_shard())
        judges = self._open_judges(settings).with_citations(settings, spec.habits)
        if spec.pairs:
            judges = replace(judges, pairs=PairJudge(spec.facts_of_run().bots, spec.pairs, settings))
        marks = self._marks or marks_in(settings, () if judges.is_proxy else rows)
        facts = with_marks(spec.facts_of_run(), [marks])
        evaluation = Evaluation(judges, settings)
        failed = _Failures()
        try:
            results = failed.counted(_unless_stopped(evaluation, rows))
            with suppress(RunStoppedError), THIS_PROCESS.heeded_by(evaluation.request_stop):
                lines = ((result, to_json(result)) for result in results)
                self._write(facts, lines, lambda: self._about(evaluation, facts, failed.count, marks))
            if judges.account and not evaluation.stopped and not failed.count:
                judges.account.end()
        finally:
            evaluation.close()
            judges.store.end(keep=True)
        return self._outcome(evaluation)

    def _use_grant(self) -> None:
        """Requests and money are given once: what a worker that died has spent of them nobody knows."""
        if not self._spec.grant:
            return
        path = self._folder.grant(self._spec.grant)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("x").close()
        except FileExistsError:
            raise RunStoppedError(GRANT_USED, "the worker that judged this shard died") from None

    def _rows(self) -> list[Row]:
        path = self._folder.input(self._spec.number)
        if fingerprint_of_file(path) != self._spec.input:
            folder = shlex.quote(str(self._folder.root))
            raise InputError(
                f"{path}: is not what was read when the run began; run rag-eval INPUT -o {folder} again, which writes "
                "it again from INPUT"
            )
        return read_rows(path)

    def _open_judges(self, settings: Settings) -> Judges:
        if settings.provider.is_offline:
            return Judges.offline(settings)
        spec, cache = self._spec, settings.cache
        journals = self._folder.replies(None), self._folder.replies(spec.number)
        mine, other = journals if spec.shares_replies else journals[::-1]
        replies = StoredReplies(
            path=cache.directory / CACHE_NAME if cache.enabled else mine,
            another=other,  # of an earlier run, by an engine of the other kind
            since=spec.fresh_since,
            retry_errors=spec.retry_errors,
            strict=spec.strict_cache,
            run=_run_of(self._folder, spec),
        )
        return open_llm_judges(settings, replies, rubric_of(settings), self._warnings.append)

    def _write(self, facts: RunFacts, results: Iterator[tuple[CaseResult, bytes]], about: Any) -> None:
        spec, folder = self._spec, self._folder
        tallies = Tallies(facts, Settings.model_validate(spec.settings).report.slice_by, is_part=True)
        target = folder.results(spec.number)
        results = _told(tallies, results)
        if self._rows_wanted:
            place, before = self._rows_wanted
            with RowsFile(RowsFile.of(Path(place), spec.number), facts, before) as rows:
                write_results(target, facts, rows.passed(results), about)
        else:
            write_results(target, facts, results, about)
        known = {
            "judging": spec.judging,
            "counting": spec.counting,
            "results": fingerprint_of_file(target),
            "fresh_since": about_results(target).get("fresh_since", 0.0),
        }
        write_state(folder.tallies(spec.number), {"about": known, "tallies": tallies.state()})

    def _about(self, evaluation: Evaluation, facts: RunFacts, failed: int, marks: State) -> State:
        """What the report of the run needs to know of the shard beside its results."""
        return {
            "judging": self._spec.judging,
            "fresh_since": self._spec.fresh_since,
            "version": __version__,
            "scoring": scoring_of(facts),
            "failed": failed,
            **to_plain(evaluation.stats()),
            **marks,
        }

    def _outcome(self, evaluation: Evaluation) -> ShardOutcome:
        stopped, usage = evaluation.stopped, evaluation.usage
        return ShardOutcome(
            self._spec.number,
            self._spec.rows,
            done=stopped is None,
            stopped=str(stopped or ""),
            code=stopped.code if stopped else "",
            exit_code=int(stopped.exit_code if stopped else ExitCode.COMPLETE),
            requests=usage.requests,
            cost=usage.cost or 0.0,
            warnings=tuple(self._warnings),
        )


def marks_in(settings: Settings, rows: Sequence[Row]) -> State:
    """What is known of rows before an LLM judges them, as a part says it of itself."""
    return {
        "flags": [[row, bot, list(marks)] for (row, bot), marks in flags_in(rows).items()],
        "cuts": [[row, bot, words] for (row, bot), words in cuts_in(settings, rows).items()],
    }


def with_marks(facts: RunFacts, about: Iterable[State]) -> RunFacts:
    """With the marks of cases that are in what parts say of themselves."""
    flags, cuts = dict[tuple[int, str], tuple[str, ...]](), dict[tuple[int, str], str]()
    for each in about:
        flags |= {(row, bot): tuple(marks) for row, bot, marks in each.get("flags", ())}
        cuts |= {(row, bot): words for row, bot, words in each.get("cuts", ())}
    return replace(facts, flags=flags, cut_contexts=cuts)


def scoring_of(facts: RunFacts) -> State:
    """What RQS and failure modes were made with."""
    return {
        "weights": dict(facts.weights),
        "thresholds": dict(facts.thresholds),
        "gold_ids": facts.gold_ids,
    }


def with_own_keys(settings: Settings) -> Settings:
    """With the key that this process has for the judge: from its environment, or else from .env or config.ini.

    Raises SettingsError if it has none.
    """
    provider = settings.provider
    if provider.is_offline:
        return settings
    url = getattr(settings.section, provider.url_key)
    wanted = {"judge.provider": provider.name, f"{provider.name}.{provider.url_key}": url}
    loaded = load_settings(None, wanted, os.environ, Path.cwd())
    section = settings.section.model_copy(update={"api_key": loaded.settings.section.api_key})
    ours = settings.model_copy(update={provider.name: section})
    replace(loaded, settings=ours).require_credentials()
    return ours


class _Failures:
    """Counts the cases that another run might judge."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, results: Iterator[CaseResult]) -> Iterator[CaseResult]:
        for result in results:
            scores = [*result.scores.values(), *result.further.values(), result.toxicity]
            outcomes = {score.outcome for score in scores} | {pair.outcome for pair in result.pairs}
            if result.rubric:
                outcomes.add(result.rubric.outcome)
            self.count += Outcome.FAILED in outcomes
            yield result


def _told(
    tallies: Tallies, results: Iterator[tuple[CaseResult, bytes]]
) -> Iterator[tuple[CaseResult, bytes]]:
    for result, line in results:
        tallies.add(result)
        yield result, line


def _unless_stopped(evaluation: Evaluation, rows: list[Row]) -> Iterator[CaseResult]:
    """Raises RunStoppedError when the run ends early: a shard is done as a whole, or not at all.

    Rows that are under way come to their end, since what they asked for is paid for.
    """
    for results in evaluation.results(takewhile(lambda row: not evaluation.stopped, rows)):
        yield from results
    if evaluation.stopped:
        raise evaluation.stopped


class RowsFile:
    """Rows of the report's first sheet, in a temporary file for the process that folds the parts.

    What cannot be written there is left out, and that process renders it.
    """

    def __init__(self, path: Path, facts: RunFacts, before: int) -> None:
        """`before` are the cases of the run that come before."""
        from rag_eval.report.renderer import open_renderer

        self._facts = facts
        self._render = open_renderer(encode(facts))
        self._before = before
        self._file: IO[bytes] | None = None
        with suppress(OSError):
            self._file = path.open("wb")

    @staticmethod
    def of(folder: Path, number: int) -> Path:
        return folder / f"part-{number:05}"

    def __enter__(self) -> "RowsFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def passed(self, results: Iterator[tuple[CaseResult, bytes]]) -> Iterator[tuple[CaseResult, bytes]]:
        """The results, some at a time, each after its row was written."""
        while some := list(islice(results, cases_at_a_time(self._facts))):
            if self._file:
                self._write(self._file, [result for result, _ in some])
            yield from some

    def _write(self, file: IO[bytes], results: Sequence[CaseResult]) -> None:
        rows = self._render(self._before, results)
        try:
            write_record(file, encode((self._before, len(results), rows)))
        except OSError:
            self._close()
        self._before += len(results)

    def _close(self) -> None:
        file, self._file = self._file, None
        with suppress(OSError):  # what is still in a buffer may not fit on the disk
            if file:
                file.close()


def cases_at_a_time(facts: RunFacts) -> int:
    """Of how many cases rows are rendered together: those of whole rows of the input."""
    return _ROWS_AT_A_TIME * len(facts.bots)


_ROWS_AT_A_TIME = 50
