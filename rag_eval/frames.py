"""The main job for notebooks: a table in, scores out as a pandas DataFrame, without a report.

from rag_eval.frames import evaluate
scores = evaluate("answers.xlsx")
scores.groupby("bot")["rqs"].agg(["mean", "count"])
"""

import csv
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.configuration.effective import (
    CACHE_NAME,
    beyond_offline,
    processes_problem,
)
from rag_eval.configuration.settings import Settings
from rag_eval.errors import SettingsError, TableError, how_to_install
from rag_eval.metrics.metric import Metric
from rag_eval.records import (
    CITATION_LABELS,
    EXTRA_METRIC_LABELS,
    METRIC_LABELS,
    SPENT_LABELS,
    TOXICITY,
    CaseResult,
    RubricOutcome,
)
from rag_eval.results.head_to_head import PairTally
from rag_eval.results.scoring import DOCUMENT_LABELS, scores_of_case
from rag_eval.results.stored import plain_verdicts
from rag_eval.results.summary import RQS
from rag_eval.rubric import EvaluationRubric
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges, StoredReplies, open_llm_judges, rubric_of
from rag_eval.run.pairs import PairJudge
from rag_eval.run.parallel import open_engine
from rag_eval.store.leftovers import Scratch, sweep
from rag_eval.tables.cells import cell_text
from rag_eval.tables.columns import named_columns, named_units, parse_map
from rag_eval.tables.delimited import TextForm
from rag_eval.tables.names import squeezed
from rag_eval.tables.table import Table, read_table

if TYPE_CHECKING:
    import pandas as pd

OFFLINE = Settings.model_validate({"judge": {"provider": "offline"}})


def evaluate(
    data: "str | Path | pd.DataFrame", settings: Settings = OFFLINE, metrics: Sequence[Metric] = ()
) -> "pd.DataFrame":
    """Score every bot's response. Returns one row per spreadsheet row and bot, in the order of the table.

    `data` is the path of any file that the command line reads, or a frame with the same columns; a context in a frame
    may be a list or array of chunks. `metrics` are your own metrics, such as those from `evaluators.as_metric`.

    Columns: row, bot, query, response, rqs, the metrics that are switched on, toxicity, your own metrics,
    failure_modes, recommendation. With earlier turns also history. With a rubric also rubric_passed and
    rubric_reason; with gold documents also
    doc_recall, doc_precision and the other retrieval measures; with latency and cost in the table also latency (in ms,
    if the table names its unit) and cost. Scores are 0..1. A score that is not applicable or failed is missing (NaN),
    and `<metric>_reason` says why. If `settings.head_to_head.pairs` is on, also pairs: a list of the verdicts on this
    response and one of another bot, as in the JSON of a run; `attrs["head_to_head"]` of the frame is the member
    `head_to_head` of that JSON, with win rates and strengths of the bots. With an LLM judge, the cache stores replies
    if it is switched on. The offline judge works in this process, or in `evaluation.processes` worker processes if
    that is set and `metrics` is empty.

    Warns about everything that is left out (rows beyond `max_rows`, unused columns, a rubric with the offline judge)
    and, when all is judged, about what the cache and the judge's endpoint made necessary, such as adapted parameters.
    Raises ValueError if the column of one of your
    metrics has the name of another column, InputError if the table cannot be read, a metric calls the offline judge or
    there are no pairs to compare,
    RunStoppedError if the judge cannot be reached, SettingsError if an LLM judge is to work in several processes or
    pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise SettingsError(f"evaluate() needs pandas; install it with {how_to_install('pandas')}") from None

    if not isinstance(data, str | Path | pd.DataFrame):
        remedy = "data.to_pandas()" if hasattr(data, "to_pandas") else "pandas.DataFrame(data)"
        raise TypeError(
            f"evaluate() takes the path of a file or a pandas DataFrame, not {type(data).__name__}; give it {remedy}"
        )
    if problem := processes_problem(settings):
        raise SettingsError(f"[evaluation] processes: {problem}")
    sweep([_FRAME])
    rubric = rubric_of(settings)
    table = _read(data, settings, rubric)
    questions = (row.cases[0].question for row in table.rows)
    compared = PairJudge.of(settings, table.bots, questions)
    tally = PairTally(table.bots, compared.choice) if compared else None
    own = [use.role for use in table.columns if use.role in SPENT_LABELS]
    _check_names(metrics, [*own, _PAIRS] if tally else own)
    for warning in filter(None, [beyond_offline(settings), *table.warnings]):
        warnings.warn(warning, stacklevel=2)
    said: list[str] = []
    with _judges(settings, rubric, said.append) as judges:
        processes = 1 if metrics else settings.evaluation.processes or 1
        citing = judges.with_citations(settings, table.habits)
        extra_metrics = (*citing.extra_metrics, *metrics)
        all_judges = replace(citing, extra_metrics=extra_metrics, pairs=compared)
        evaluation = Evaluation(all_judges, settings, engine=open_engine(all_judges, settings, processes))
        try:
            with_history = bool(table.with_history)
            lines = []
            for result in chain.from_iterable(evaluation.results(table.rows)):
                line = _line(result, with_history=with_history)
                if tally:
                    tally.add(result)
                    line[_PAIRS] = plain_verdicts(result, has_labels=False)
                lines.append(line)
        finally:
            evaluation.close()
        for sentence in said:
            warnings.warn(sentence, stacklevel=2)
        if evaluation.stopped:
            raise evaluation.stopped
    scores = pd.DataFrame(lines)
    if tally:
        scores.attrs["head_to_head"] = tally.head_to_head().plain()
    return scores


_PAIRS = "pairs"
"""Column with what was compared."""


def _check_names(metrics: Sequence[Metric], own: Sequence[str]) -> None:
    """Raises ValueError if two columns would have one name. `own` are those that only some tables or settings have."""
    ours = [*dict.fromkeys(own), RQS, *METRIC_LABELS, *EXTRA_METRIC_LABELS, *CITATION_LABELS, TOXICITY]
    columns = Counter([*_COLUMNS, *ours, *map(_reason_of, ours), *DOCUMENT_LABELS, *_RUBRIC_COLUMNS])
    for metric in metrics:
        columns.update((metric.name, _reason_of(metric.name)))
    clashes = [each.name for each in metrics if columns[each.name] > 1 or columns[_reason_of(each.name)] > 1]
    if clashes:
        raise ValueError(f"these metric names are taken; choose others: {', '.join(dict.fromkeys(clashes))}")


_COLUMNS = ("row", "bot", "query", "response", "history", "failure_modes", "recommendation")
_RUBRIC_COLUMNS = ("rubric_passed", "rubric_reason")


def _reason_of(name: str) -> str:
    return f"{name}_reason"


def _read(data: "str | Path | pd.DataFrame", settings: Settings, rubric: EvaluationRubric | None) -> Table:
    with Scratch(_FRAME) as folder:
        if isinstance(data, str | Path):
            path, form, decimals = Path(data), TextForm(), {}
        else:
            path, form = _as_csv(data, Path(folder)), _CSV
            decimals = {squeezed(str(name)): "." for name in data.select_dtypes("number")}
        try:
            return read_table(
                path,
                header_row=settings.input.header_row if isinstance(data, str | Path) else None,
                prefix=settings.bots.strip_prefix,
                delimiter=settings.context.delimiter,
                max_rows=settings.evaluation.max_rows,
                keep=rubric.columns if rubric else (),
                criteria=[metric.id for metric in rubric.metrics] if rubric else (),
                form=form,
                named=named_columns(dict(settings.columns)),
                units=named_units(dict(settings.columns)),
                decimals=decimals,
            )
        except TableError as error:
            if error.roles:
                columns = {key: _plain(value) for key, value in parse_map(error.roles).items()}
                sections = {"judge": {"provider": settings.judge.provider}, "columns": columns}
                error.add_note(
                    f"In Python, give evaluate() these settings: Settings.model_validate({sections})"
                )
            elif "--map" in str(error):
                error.add_note(
                    "In Python, roles of columns are settings, such as Settings.model_validate({'judge': {'provider': "
                    f"'{settings.judge.provider}'}}, 'columns': {{'query': 'COLUMN'}}}}); responses are 'bots'."
                )
            index = (
                []
                if isinstance(data, str | Path)
                else [name for name in data.index.names if name is not None]
            )
            if index:
                error.add_note(
                    f"The index of the frame, {index}, is not read; to have it read, use data.reset_index()."
                )
            raise


_FRAME = Path("frame")
"""Names the folders for temporary files; no such output is written."""
_CSV = TextForm(encoding="utf-8", separator=",")


def _as_csv(frame: "pd.DataFrame", folder: Path) -> Path:
    """Every cell in quotes: pandas by itself puts none around a lone carriage return, which then ends the row."""
    if not len(frame.columns):
        raise TableError("the data frame has no columns; give one with queries and responses")
    path = folder / "frame.csv"
    frame.map(_as_text).to_csv(path, index=False, encoding=_CSV.encoding, quoting=csv.QUOTE_ALL)
    return path


def _as_text(cell: Any) -> str:
    """The text of a cell, as in a workbook. A list or array of chunks becomes the JSON that a cell may contain."""
    import pandas as pd

    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return ""
    return cell_text(_plain(cell))


def _plain(value: Any) -> Any:
    """The value with lists and numbers of Python in place of numpy's, which pandas makes of Parquet files."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


@contextmanager
def _judges(
    settings: Settings, rubric: EvaluationRubric | None, tell: Callable[[str], None]
) -> Iterator[Judges]:
    if settings.provider.is_offline:
        yield Judges.offline(settings)
        return
    with Scratch(_FRAME) as folder:
        keeping = settings.cache.directory if settings.cache.enabled else Path(folder)
        judges = open_llm_judges(settings, StoredReplies(path=keeping / CACHE_NAME), rubric, tell)
        try:
            yield judges
        finally:
            judges.store.end(keep=True)


def _line(result: CaseResult, *, with_history: bool) -> dict[str, Any]:
    scores = result.all_scores
    names = [name for name in (*METRIC_LABELS, TOXICITY, *result.further) if name in scores]
    retrieval = scores_of_case(result.case)
    return {
        "row": result.case.row,
        "bot": result.case.bot,
        "query": result.case.query,
        "response": result.case.response,
        **({"history": result.case.earlier_turns} if with_history else {}),
        "rqs": _number(result.rqs),
        **{name: _number(scores[name].value) for name in names},
        **{_reason_of(name): scores[name].reason for name in names},
        "failure_modes": " | ".join(result.failure_modes),
        "recommendation": result.recommendation,
        **(_rubric(result.rubric) if result.rubric else {}),
        **({name: _number(value) for name, value in retrieval.values().items()} if retrieval else {}),
        **result.case.spent,
    }


def _number(score: float | None) -> float:
    """NaN for none, so that a column is one of numbers although it has none."""
    return nan if score is None else score


def _rubric(outcome: RubricOutcome) -> dict[str, Any]:
    failed = "; ".join(f"{verdict.criterion}: {verdict.reason}" for verdict in outcome.failed_criteria)
    return dict(zip(_RUBRIC_COLUMNS, (outcome.passed, outcome.reason or failed), strict=True))
