"""The command that compares two judges on the same rows: how far they agree, and what each one costs."""

import math
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_eval.cli.console import hide, set_up_logging, warn
from rag_eval.cli.facts import facts_at_end, facts_at_start, usage_line
from rag_eval.cli.judging import kept_line, open_judges, refuse_empty, run_name
from rag_eval.cli.options import Options, load, options
from rag_eval.cli.parameters import PATH, GroupedCommand, Option, default_targets
from rag_eval.cli.session import Session
from rag_eval.errors import (
    ExitCode,
    InputError,
    RunStoppedError,
    SettingsError,
    StoreError,
    how_to_judge_again,
)
from rag_eval.records import TOXICITY, CaseResult

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts
    from rag_eval.report.outputs import Receiver
    from rag_eval.results.judge_comparison import JudgeComparison, JudgeComparisonTally, JudgeRun
    from rag_eval.results.summary import Summary
    from rag_eval.run.judges import Judges
    from rag_eval.run.pairs import PairJudge
    from rag_eval.store.codec import Spool
    from rag_eval.tables.table import Table


_OUTPUT = "Workbook to write.  [default: <input>_judges.xlsx]"
_A = "Configuration of A.  [default: ./config.ini, if present]"
_B = "Configuration of B.  [default: that of A]"


@click.command("compare-judges", cls=GroupedCommand, short_help="Compare two judges on the same rows.")
@click.argument("input_path", metavar="INPUT", type=PATH)
@click.option("-o", "--output", cls=Option, group="Output", type=PATH, help=_OUTPUT)
@click.option("--a", "config_a", cls=Option, group="Judge", type=PATH, help=_A)
@click.option("--b", "config_b", cls=Option, group="Judge", type=PATH, help=_B)
@click.option(
    "--json", cls=Option, group="Output", type=PATH, help="Also write all numbers as JSON to this file."
)
@options("compare-judges")
def command(input_path: Path, **given: Any) -> None:
    """Score the same rows with two judges, A and B, and write a workbook that compares them.

    It shows how far B agrees with A, whether the ranking of the bots changes, what each costs and, with Human_ columns,
    which judge is closer to people. INPUT is read as by rag-eval run, with the settings of A.
    """
    set_up_logging(given["debug"])
    if (given["rows"] or "").strip().isdecimal():
        number = given["rows"].strip()
        raise InputError(
            f"--rows {number}: is the one row with this number; for {number} random rows use --random-rows {number}, "
            f"for one row --rows {number}-{number}"
        )
    from rag_eval.tables.input_files import check_is_file

    check_is_file(input_path)
    target = given["output"]
    if target is None:
        target, given["html"] = default_targets(input_path, "judges", given["html"])
    given["config_b"] = given["config_b"] or given["config_a"]
    a, b = (_options_of(letter, given) for letter in "ab")
    with Session.opened(input_path, target, a) as session:
        code = _JudgeComparisonJob(session, b).run(input_path)
    sys.exit(code)


def _options_of(letter: str, given: Mapping[str, Any]) -> Options:
    """Those of `run` for one of the judges, as if nothing else was given."""
    end = f"_{letter}"
    own = {name.removesuffix(end): value for name, value in given.items() if name.endswith(end)}
    names = {each.name for each in fields(Options)}
    return Options(**{name: value for name, value in {**given, **own}.items() if name in names})


@dataclass(frozen=True, slots=True)
class _JudgeSide:
    """One of the two judges."""

    letter: str
    loaded: "LoadedSettings"
    options: Options
    target: Path
    """What its journal is named after."""
    name: str

    @property
    def settings(self) -> "Settings":
        return self.loaded.settings

    @property
    def heading(self) -> str:
        return f"{self.letter} ({self.name})"

    def check_cap(self) -> None:
        """Raises SettingsError for a cap on the cost that could not be kept, before the other judge is paid."""
        from rag_eval.configuration.effective import budget_of

        if not self.settings.provider.is_offline:
            budget_of(self.settings.without_entra())


@dataclass(slots=True)
class _Judged:
    """One judge at work, or done."""

    side: _JudgeSide
    judges: "Judges"
    facts: "RunFacts"
    summary: "Summary | None" = None
    stopped: RunStoppedError | None = None
    failed_pairs: int = 0
    keep: bool = True
    """Whether what is stored is needed later."""

    def settle(self, *, is_complete: bool) -> None:
        """Decide what is kept."""
        is_alone = self.judges.account is None or self.judges.account.is_alone
        self.keep = not is_complete or self.side.settings.cache.enabled or not is_alone

    @property
    def is_complete(self) -> bool:
        """Every score is there."""
        return (
            self.summary is not None
            and not self.stopped
            and not any(bot.failures for bot in self.summary.bots)
            and not self.failed_pairs
        )


class _JudgeComparisonJob:
    """Two evaluations of the same rows, one after the other, and a workbook that compares them."""

    def __init__(self, session: Session, options_of_b: Options) -> None:
        """The session is that of judge A."""
        self._session = session
        self._options, self._paths = session.options, session.paths
        self._options_of_b = options_of_b

    def run(self, named_input: Path) -> ExitCode:
        """Everything that can be wrong is found before the first paid call."""
        from rag_eval.run.judges import rubric_of
        from rag_eval.tables.delimited import TextForm

        form = TextForm.parse(self._options.encoding, self._options.sep)
        sides = _read_pair((self._options, self._options_of_b), self._paths.report, named_input)
        for side in sides:
            self._paths.check(side.loaded)
        self._session.rubric = rubric_of(sides[0].settings)
        table = self._session.read_table(sides[0].loaded, form)
        for side in sides:  # before the first of them is paid for
            self._pairs_of(side, table)
        if self._options.dry_run:
            return self._estimate_both(sides, table)
        for side in sides:
            side.loaded.require_credentials()
            side.check_cap()
        self._check_outputs(sides)
        with self._session.locked():
            for side in sides:
                self._paths.make_room(side.settings)
            return self._compare(sides, table)

    def _check_outputs(self, sides: tuple[_JudgeSide, _JudgeSide]) -> None:
        """Before anything is paid for. Raises InputError or OutputError."""
        from rag_eval.configuration.effective import store_path
        from rag_eval.store.replacement import check_writable

        stores = {os.path.realpath(store_path(side.settings, side.target)) for side in sides}
        self._paths.check_writable()
        for option, path in (("--html", self._options.html), ("--json", self._options.json)):
            if path and os.path.realpath(path) in stores:
                raise InputError(f"{path}: contains paid replies; choose another name with {option}")
            if path:
                check_writable(path, option)

    def _estimate_both(self, sides: tuple[_JudgeSide, _JudgeSide], table: "Table") -> ExitCode:
        from rag_eval.cli.dry_run import DryRun
        from rag_eval.configuration.effective import store_path

        for side in sides:
            self._session.say(f"{side.heading}:", bold=True)
            part = ((store_path(side.settings, side.target),), table.rows)
            run = run_name(side.settings, self._session.input, side.target, side.options)
            for line in DryRun(side.loaded, side.options, self._session.rubric, run=run).lines(
                table, partial(iter, (part,)), pairs=self._pairs_of(side, table)
            ):
                self._session.say(line)
        return ExitCode.COMPLETE

    # The two evaluations

    def _compare(self, sides: tuple[_JudgeSide, _JudgeSide], table: "Table") -> ExitCode:
        from rag_eval.results.judge_comparison import JudgeComparisonTally
        from rag_eval.run.judges import import_clients
        from rag_eval.store.codec import Spool

        if not all(side.settings.provider.is_offline for side in sides):
            import_clients()  # now, since that takes a second which is not the time of A
        opened: list[_Judged] = []
        try:
            spool: Spool[CaseResult] = Spool(CaseResult, "the scores of judge A")
            a, b = sides
            opened.append(first := self._open(a, table))
            self._judge(first, table, spool)
            opened.append(second := self._open(_after(first, b), table))
            tally = JudgeComparisonTally(first.facts, second.facts)
            self._judge(second, table, _Pairing(spool, tally))
            if first.stopped:  # B was only served what is stored
                second.stopped = first.stopped
                second.facts = replace(second.facts, partial=f"A stopped: {first.stopped}")
            elif second.stopped and second.stopped.code in b.options.given():
                partial = f"{second.facts.partial} (the limit is for both judges; A used the rest)"
                second.facts = replace(second.facts, partial=partial)
            comparison = tally.comparison()
            if second.stopped and not any(measure.count for measure in comparison.measures):
                raise second.stopped
            runs = _run_of(first), _run_of(second)
            paths = self._write_comparison(comparison, runs)
            is_complete = all(each.is_complete for each in opened)
            for each in opened:
                each.settle(is_complete=is_complete)
            full = _end_accounts(opened, is_complete=is_complete)
        finally:
            for each in opened:
                each.judges.store.end(keep=each.keep)
        for each in opened:
            if is_complete and each.keep and not each.side.settings.cache.enabled:
                self._session.say(kept_line(each.side.settings, each.side.target))
        self._tell(comparison, runs, paths)
        if full:
            raise full
        return self._exit_code(opened)

    def _open(self, side: _JudgeSide, table: "Table") -> _Judged:
        from rag_eval.run.metered_store import MeteredStore
        from rag_eval.store.reply_store import Store

        judges = open_judges(
            side.settings, self._session.input, side.target, side.options, self._session.rubric
        ).with_citations(side.settings, table.habits)
        judges = replace(judges, pairs=self._pairs_of(side, table))
        if isinstance(judges.store, Store) and judges.account:
            judges = replace(judges, store=MeteredStore(judges.store, judges.account.began))
        facts = facts_at_start(side.settings, table, judges)
        self._session.say(f"Judge {side.heading}: {facts.judge}")
        return _Judged(side, judges, facts)

    def _pairs_of(self, side: _JudgeSide, table: "Table") -> "PairJudge | None":
        from rag_eval.run.pairs import PairJudge

        return PairJudge.of(side.settings, table.bots, (row.cases[0].question for row in table.rows))

    def _judge(self, judged: _Judged, table: "Table", results: "Receiver") -> None:
        """Evaluate every row. Raises RunStoppedError if the judge stopped before its first reply."""
        from rag_eval.results.tallies import Tallies
        from rag_eval.run.evaluation import Evaluation

        tallies = Tallies(judged.facts)
        evaluation = Evaluation(judged.judges, judged.side.settings)
        try:
            with closing(self._session.judged(evaluation, table, tallies)) as stream:
                for result in stream:
                    results.add(result)
                    judged.failed_pairs += sum(pair.value is None for pair in result.pairs)
            if not judged.side.options.report_only:
                refuse_empty(evaluation)
            judged.stopped = evaluation.stopped
            judged.summary = tallies.summary()
            judged.facts = facts_at_end(
                judged.facts,
                evaluation.stats(),
                judged.summary,
                evaluation.redactor,
                str(evaluation.stopped or ""),
            )
        finally:
            evaluation.close()

    # After

    def _write_comparison(
        self, comparison: "JudgeComparison", runs: "tuple[JudgeRun, JudgeRun]"
    ) -> list[Path]:
        from rag_eval.report.judge_report import write_json, write_workbook

        paths = [write_workbook(self._paths.report, comparison, runs)]
        self._paths.is_reported = True
        if target := self._options.html:
            from rag_eval.report.page.judge_page import write_page

            paths.append(write_page(target, comparison, runs, has_texts=not self._options.html_no_texts))
        if target := self._options.json:
            paths.append(write_json(target, comparison, runs))
        return paths

    def _tell(
        self, comparison: "JudgeComparison", runs: "tuple[JudgeRun, JudgeRun]", paths: list[Path]
    ) -> None:
        from rag_eval.report.judge_tables import summary_lines, table_lines
        from rag_eval.results.judge_comparison import headline
        from rag_eval.results.verdict import unfit_words

        self._session.say("")
        for line in table_lines(comparison):
            self._session.say(line)
        self._session.say("")
        self._session.say(headline(comparison, *runs), bold=True)
        for line in summary_lines(comparison, runs):
            self._session.say(line)
        for run in runs:
            self._session.say(f"{run.letter}: {usage_line(run.facts)}")
        for run in runs:
            if run.facts.partial:
                warn(f"PARTIAL: {run.letter}: {run.facts.partial}")
            if unfit_words(run.facts):
                warn(f"{run.letter}: {unfit_words(run.facts)}")
        if paths[0] != self._paths.report:
            warn(f"{self._paths.report} is open in another program; the workbook was saved next to it.")
        for path in paths[1:]:
            self._session.say(f"Also written: {path}")
        self._session.say(f"Workbook: {paths[0]}")

    def _exit_code(self, judged: list[_Judged]) -> ExitCode:
        from rag_eval.results.verdict import failure_codes

        for each in judged:
            if each.stopped:
                return each.stopped.exit_code
        coverages = [
            bot.rqs.coverage
            for each in judged
            for bot in (each.summary.bots if each.summary else ())
            if bot.rqs.coverage is not None
        ]
        is_low = min(coverages, default=1.0) < judged[0].side.settings.evaluation.min_coverage
        if not all(each.is_complete for each in judged):
            codes = {
                code for each in judged if each.summary for code in failure_codes(each.facts, each.summary)
            }
            warn(f"Some cases were not judged. {how_to_judge_again(codes)}")
        return ExitCode.LOW_COVERAGE if is_low else ExitCode.COMPLETE


def _end_accounts(judged: list[_Judged], *, is_complete: bool) -> StoreError | None:
    """Why the costs of a comparison could not be closed: its figures are to be told first."""
    if any(each.stopped for each in judged):
        return None
    kept = [each.judges.account for each in judged if each.keep]  # the others go with their journals
    try:
        for account in filter(None, kept):
            if is_complete:
                account.end()
            else:
                account.reach_end()
    except StoreError as error:
        return error
    return None


class _Pairing:
    """Puts each result of B together with that of A on the same case; cases that A did not reach are left out."""

    def __init__(self, spool: "Spool[CaseResult]", tally: "JudgeComparisonTally") -> None:
        self._spool = spool
        self._tally = tally
        self._next = 0

    def add(self, result: CaseResult) -> None:
        if self._next < len(self._spool):
            self._tally.add(self._spool.at(self._next), result)
        self._next += 1


def _after(first: _Judged, side: _JudgeSide) -> _JudgeSide:
    """B with what A left of the limits on the command line, which are for both; if A stopped, stored replies only."""
    options, usage = side.options, first.facts.usage
    left: dict[str, float] = {}
    if options.max_calls is not None:
        left["max_calls"] = max(0, options.max_calls - usage.requests + usage.earlier_requests)
    if options.max_cost is not None:
        left["max_cost"] = max(0.0, options.max_cost - (usage.cost or 0.0) + usage.earlier_cost)
    if options.max_minutes is not None:
        left["max_minutes"] = max(0.0, options.max_minutes - first.facts.seconds / 60)
    limits = side.settings.limits.model_copy(update=left)
    loaded = replace(side.loaded, settings=side.settings.model_copy(update={"limits": limits}))
    return replace(side, loaded=loaded, options=replace(options, report_only=first.stopped is not None))


def _run_of(judged: _Judged) -> "JudgeRun":
    from rag_eval.configuration.effective import prices_of
    from rag_eval.records import TaskUsage
    from rag_eval.results.judge_comparison import JudgeRun
    from rag_eval.run.metered_store import MeteredStore

    side, facts, store = judged.side, judged.facts, judged.judges.store
    run = JudgeRun(side.letter, side.name, facts, _identity_of(side.settings))
    if not isinstance(store, MeteredStore):
        return replace(run, cost=0.0)
    settings = side.settings.without_entra()
    prices, found = prices_of(settings), store.usage()
    model = getattr(settings.section, settings.provider.model_key)
    # The preflight is one call, however many rows follow.
    paid = [used for task, used in facts.usage.by_task.items() if task != "preflight"]
    is_known = facts.usage.cost is not None or not facts.usage.requests
    costs = [
        used.cost or 0.0 if is_known and (used.cost is not None or not used.prompt_tokens) else math.nan
        for used in paid
    ]
    for task, used in found.items():
        price = prices.get(settings.toxicity.deployment or model if task == TOXICITY else model)
        costs.append(price.of(used.prompt_tokens, used.completion_tokens) if price else math.nan)
    total = sum([*paid, *found.values()], TaskUsage())
    return replace(
        run,
        prompt_tokens=total.prompt_tokens,
        completion_tokens=total.completion_tokens,
        cost=None if math.isnan(sum(costs)) else sum(costs),
        uncounted=facts.usage.uncounted + store.uncounted,
    )


def _read_pair(
    options: tuple[Options, Options], target: Path, input_path: Path
) -> tuple[_JudgeSide, _JudgeSide]:
    """A and B with settings that give them the same cases. Raises SettingsError if they cannot differ."""
    from rag_eval.configuration.effective import secrets_of

    first, second = (load(each.config, each.overrides(), input_path) for each in options)
    hide(secrets_of(first.settings) | secrets_of(second.settings))
    for warning in dict.fromkeys((*first.warnings, *second.warnings)):
        warn(warning)
    loaded = _prepared(first, first), _prepared(second, first)
    ours, theirs = (_identity_of(each.settings) for each in loaded)
    if ours == theirs and _address(loaded[0].settings) == _address(loaded[1].settings):
        raise SettingsError(
            f"A and B are the same judge ({_short_name(ours, {})}); name another one with --b, --judge-b, "
            "--model-b, --temperature-b or --prompts-b. To measure how stable one judge is, use run --samples"
            f"{_overriding(second)}"
        )
    names = _short_name(ours, theirs), _short_name(theirs, ours)
    if ours == theirs:  # the addresses differ in what is not shown of them
        names = f"{names[0]}, address of A", f"{names[1]}, address of B"
    a, b = (
        _JudgeSide(letter, each, own, target.with_name(f"{target.name}.{letter.lower()}"), name)
        for letter, each, own, name in zip("AB", loaded, options, names, strict=True)
    )
    is_paid_twice = not a.settings.provider.is_offline and not b.settings.provider.is_offline
    currencies = {side.settings.prices.currency for side in (a, b)}
    if is_paid_twice and options[0].max_cost is not None and len(currencies) > 1:
        raise SettingsError(
            f"--max-cost: the prices of A and B are in different currencies ({', '.join(sorted(currencies))}); "
            "set [limits] max_cost in each configuration instead"
        )
    return a, b


_SAME_CASES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("weights", "metrics", "input", "context", "bots", "columns", "rubric"), ()),
    "diagnostics": ("gold_ids",),
    "evaluation": ("max_rows", "min_coverage"),
}
"""By section, the keys that decide which cases there are and what is scored; no keys stand for all of them."""


def _prepared(loaded: "LoadedSettings", first: "LoadedSettings") -> "LoadedSettings":
    """One judge's settings with the cases and metrics of the first one's, and without what is not compared.

    Recommendations and additional outputs are switched off. Raises SettingsError for every key that is set otherwise
    than for the first judge.
    """
    from rag_eval.configuration.settings import Settings
    from rag_eval.configuration.sources import Level

    problems, settings = [], loaded.settings
    for section, keys in _SAME_CASES.items():
        ours, theirs = getattr(settings, section), getattr(first.settings, section)
        chosen = keys or tuple(type(ours).model_fields)
        for key in chosen:
            source = loaded.sources[f"{section}.{key}"]
            if source.level != Level.DEFAULT and getattr(ours, key) != getattr(theirs, key):
                problems.append(
                    f"{source.heading}, [{section}] {key}: differs from A, but both judges score the same cases by "
                    "the same metrics; remove it here, or set it for A as well"
                )
        update = {key: getattr(theirs, key) for key in chosen}
        settings = settings.model_copy(update={section: ours.model_copy(update=update)})
    if problems:
        raise SettingsError(problems)
    if all(
        loaded.sources[f"privacy.{key}"].level == Level.DEFAULT for key in type(settings.privacy).model_fields
    ):
        settings = settings.model_copy(update={"privacy": first.settings.privacy})
    diagnostics = settings.diagnostics.model_copy(update={"enabled": False})
    settings = settings.model_copy(update={"report": Settings().report, "diagnostics": diagnostics})
    return replace(loaded, settings=settings)


def _identity_of(settings: "Settings") -> dict[str, str]:
    """What can change a judge's scores, in words."""
    from rag_eval.judge.masking import safe_url

    provider, section, limits = settings.provider, settings.section, settings.limits
    if provider.is_offline:
        return {"model": "offline judge"}
    own: dict[str, object] = {
        "model": getattr(section, provider.model_key),
        "temperature": section.temperature,
        **{key: value for key, value in settings.judge if key not in _PATIENCE},
        "address": safe_url(_address(settings)),
        "api_version": getattr(section, "api_version", ""),
        "samples": settings.evaluation.samples,
        "toxicity deployment": settings.toxicity.deployment if settings.metrics.toxicity else "",
        "max_prompt_tokens": limits.max_prompt_tokens or "",
        "long_prompts": limits.long_prompts if limits.max_prompt_tokens else "",
        "redact": settings.privacy.redact,
        "redact_pattern": settings.privacy.redact_pattern,
    }
    return {key: f"{value:g}" if isinstance(value, float) else str(value) for key, value in own.items()}


def _address(settings: "Settings") -> str:
    """Where a judge is asked, with what may be a key; empty for the offline judge."""
    provider = settings.provider
    return "" if provider.is_offline else getattr(settings.section, provider.url_key).rstrip("/")


def _overriding(loaded: "LoadedSettings") -> str:
    """A sentence on the environment variables that hold for both judges, whatever their files say; or nothing."""
    from rag_eval.configuration.sources import Level

    variables = [
        source.name
        for key, source in loaded.sources.items()
        if source.level == Level.ENVIRONMENT and not key.endswith("api_key")
    ]
    return f". From the environment, for both judges: {', '.join(variables)}" if variables else ""


_PATIENCE = ("timeout_seconds", "max_attempts", "prompt_tokens_per_second", "reply_tokens_per_second")
"""Keys of [judge] that do not change what a judge says."""


def _short_name(own: Mapping[str, str], other: Mapping[str, str]) -> str:
    """The model and, if that is the other judge's as well, what differs."""
    if not other or own["model"] != other["model"]:
        return own["model"]
    differing = [f"{key} {value or 'none'}" for key, value in own.items() if other.get(key) != value]
    return ", ".join([own["model"], *differing])
