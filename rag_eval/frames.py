"""The main job for notebooks: a table in, scores out as a pandas DataFrame, without a report.

from rag_eval.frames import evaluate
scores = evaluate("answers.xlsx")
scores.groupby("bot")["rqs"].agg(["mean", "count"])
"""

import csv
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.configuration.effective import CACHE_NAME, beyond_offline, budget_of, endpoint_of, guarded
from rag_eval.configuration.settings import Judge, Settings
from rag_eval.judge.transport import Transport
from rag_eval.metrics.metric import Metric
from rag_eval.records import FURTHER_LABELS, METRIC_LABELS, TOXICITY, CaseResult, RubricOutcome
from rag_eval.results.summary import RQS
from rag_eval.retrieval import RetrievalScores, scores_of_case
from rag_eval.rubric import EvaluationRubric, load_rubric
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Panel, llm_panel, offline_panel
from rag_eval.store.leftovers import Scratch, sweep
from rag_eval.store.reply_store import Store
from rag_eval.tables import Table, TextForm, named_columns, read_table
from rag_eval.tables.cells import cell_text

if TYPE_CHECKING:
    import pandas as pd

OFFLINE = Settings(judge=Judge(provider="offline"))


def evaluate(
    data: "str | Path | pd.DataFrame", settings: Settings = OFFLINE, metrics: Sequence[Metric] = ()
) -> "pd.DataFrame":
    """Score every bot's response; one line a row and bot, in the order of the table.

    `data` is a file that the command line reads, or a frame with the same columns, whose contexts may be lists or
    arrays of chunks. `metrics` are measures of your own, such as `evaluators.as_metric` makes. Columns: row, bot,
    query, response, rqs, the metrics that are switched on, toxicity, your own, failure_modes, recommendation;
    rubric_passed and rubric_reason with a rubric; doc_recall, doc_precision and so on with gold documents. A score that
    does not apply or could not be judged is missing (NaN), and `<metric>_reason` says why. With an LLM judge, replies
    are kept in the cache when it is switched on. Warnings tell what is left out (rows beyond `max_rows`, columns that
    fit nothing, a rubric where the offline judge scores) and what was adapted to the judge's endpoint.

    Raises ValueError for a measure of your own whose column would be another's, InputError when the table cannot be
    read or a measure asks the offline judge, RunStoppedError when the judge cannot be reached.
    """
    import pandas as pd

    sweep([_FRAME])
    _check_names(metrics)
    rubric = load_rubric(settings.rubric.file) if settings.rubric.file else None
    table = _read(data, settings, rubric)
    for warning in _warnings(table, settings):
        warnings.warn(warning, stacklevel=2)
    with _panel(settings, rubric) as panel:
        evaluation = Evaluation(replace(panel, further=(*panel.further, *metrics)), settings)
        try:
            lines = [_line(result) for results in evaluation.results(table.rows) for result in results]
        finally:
            evaluation.close()
        if evaluation.stopped:
            raise evaluation.stopped
        for adaptation in panel.judge.adaptations:
            warnings.warn(adaptation, stacklevel=2)
    return pd.DataFrame(lines)


def _check_names(metrics: Sequence[Metric]) -> None:
    """A second column of the same name would stand in for the first."""
    ours = [RQS, *METRIC_LABELS, *FURTHER_LABELS, TOXICITY]
    columns = Counter(
        [*_COLUMNS, *ours, *map(_reason_of, ours), *RetrievalScores.of("", (), ()).values(), *_RUBRIC_COLUMNS]
    )
    for metric in metrics:
        columns.update((metric.name, _reason_of(metric.name)))
    clashes = [each.name for each in metrics if columns[each.name] > 1 or columns[_reason_of(each.name)] > 1]
    if clashes:
        raise ValueError(
            f"these names of metrics are taken, choose others: {', '.join(dict.fromkeys(clashes))}"
        )


_COLUMNS = ("row", "bot", "query", "response", "failure_modes", "recommendation")
_RUBRIC_COLUMNS = ("rubric_passed", "rubric_reason")


def _reason_of(name: str) -> str:
    return f"{name}_reason"


def _read(data: "str | Path | pd.DataFrame", settings: Settings, rubric: EvaluationRubric | None) -> Table:
    with Scratch(_FRAME) as folder:
        if isinstance(data, str | Path):
            path, form = Path(data), TextForm()
        else:
            path, form = _as_csv(data, Path(folder)), _CSV
        return read_table(
            path,
            prefix=settings.bots.strip_prefix,
            delimiter=settings.context.delimiter,
            max_rows=settings.evaluation.max_rows,
            keep=rubric.columns if rubric else (),
            criteria=[metric.id for metric in rubric.metrics] if rubric else (),
            form=form,
            named=named_columns(dict(settings.columns)),
        )


_FRAME = Path("frame")
"""What the folders for temporary files are for: nothing is written beside it."""
_CSV = TextForm(encoding="utf-8", separator=",")


def _as_csv(frame: "pd.DataFrame", folder: Path) -> Path:
    """Every cell in quotes: pandas by itself puts none around a lone carriage return, which then ends the row."""
    path = folder / "frame.csv"
    frame.map(_as_text).to_csv(path, index=False, encoding=_CSV.encoding, quoting=csv.QUOTE_ALL)
    return path


def _as_text(cell: Any) -> str:
    """As a cell of a workbook is read. Lists of chunks, also those of numpy, are the JSON that a cell may hold."""
    import pandas as pd

    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return ""
    return cell_text(_plain(cell))


def _plain(value: Any) -> Any:
    """Without numpy's lists and numbers, which Parquet files hold when pandas reads them."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _warnings(table: Table, settings: Settings) -> Iterator[str]:
    if left_out := beyond_offline(settings):
        yield left_out
    yield from table.warnings


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=2)


@contextmanager
def _panel(settings: Settings, rubric: EvaluationRubric | None) -> Iterator[Panel]:
    if settings.judge.provider == "offline":
        yield offline_panel(settings)
        return
    with Scratch(_FRAME) as folder:
        keeping = settings.cache.directory if settings.cache.enabled else Path(folder)
        store = Store(keeping / CACHE_NAME, on_damage=_warn)
        try:
            judge = Transport(endpoint_of(settings), store, budget_of(settings))
            yield llm_panel(settings, guarded(judge, settings), store, rubric)
        finally:
            store.end(keep=True)


def _line(result: CaseResult) -> dict[str, Any]:
    scores = {**result.scores, TOXICITY: result.toxicity, **result.further}
    names = [name for name in (*METRIC_LABELS, TOXICITY, *result.further) if name in scores]
    retrieval = scores_of_case(result.case)
    return {
        "row": result.case.row,
        "bot": result.case.bot,
        "query": result.case.query,
        "response": result.case.response,
        "rqs": result.rqs,
        **{name: scores[name].value for name in names},
        **{_reason_of(name): scores[name].reason for name in names},
        "failure_modes": " | ".join(result.failure_modes),
        "recommendation": result.recommendation,
        **(_rubric(result.rubric) if result.rubric else {}),
        **(retrieval.values() if retrieval else {}),
    }


def _rubric(outcome: RubricOutcome) -> dict[str, Any]:
    failed = "; ".join(f"{verdict.criterion}: {verdict.reason}" for verdict in outcome.failed_criteria)
    return dict(zip(_RUBRIC_COLUMNS, (outcome.passed, outcome.reason or failed), strict=True))
