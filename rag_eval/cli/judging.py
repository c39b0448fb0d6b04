"""Who judges: the offline judge, or a model behind an endpoint with a store of what it said before."""

from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.batching import refuse_open_batches
from rag_eval.cli.console import warn
from rag_eval.cli.options import Options
from rag_eval.errors import InputError

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.evaluation import Evaluation
    from rag_eval.run.judges import Judges


def open_judges(
    settings: "Settings", path: Path, target: Path, options: Options, rubric: "EvaluationRubric | None"
) -> "Judges":
    """The judges of the run that makes `target` of the file at `path`. Nothing is sent yet."""
    from rag_eval.run.evaluation import redactor_of
    from rag_eval.run.judges import Judges

    if not settings.provider.is_offline:
        return _llm_judges(settings, path, target, options, rubric)
    if redactor_of(settings):
        warn("Nothing is redacted: the offline judge sends nothing.")
    return Judges.offline(settings)


def run_name(settings: "Settings", path: Path, target: Path, options: Options) -> str:
    """The name of the run that makes `target` of the rows of the file at `path` that are wanted, by this judge and
    with these metrics.

    '' for the offline judge, which stores nothing.
    """
    if settings.provider.is_offline:
        return ""
    from rag_eval.configuration.effective import endpoint_of
    from rag_eval.run.metered_store import name_of_run
    from rag_eval.shards.folder import fingerprint_of_file

    endpoint = endpoint_of(settings.without_entra())
    rows = (options.sheet, options.rows, options.random_rows, options.where, settings.evaluation.max_rows)
    judge = (endpoint.url, endpoint.api_version, endpoint.model, endpoint.temperature, settings.judge.prompts)
    asked = (settings.metrics, settings.evaluation.samples, settings.rubric.file, settings.head_to_head.pairs)
    return name_of_run(target, fingerprint_of_file(path), repr((judge, rows)), repr(asked))


def _llm_judges(
    settings: "Settings", path: Path, target: Path, options: Options, rubric: "EvaluationRubric | None"
) -> "Judges":
    from rag_eval.configuration.effective import store_path
    from rag_eval.run.judges import StoredReplies, open_llm_judges
    from rag_eval.store.batch_records import job_name
    from rag_eval.store.reply_store import Store

    replies = StoredReplies(
        path=store_path(settings, target),
        fresh=options.fresh,
        retry_errors=options.retry_errors,
        strict=options.strict_cache,
        only=options.report_only,
        run=run_name(settings, path, target, options),
        job=job_name(target),
    )
    judges = open_llm_judges(settings, replies, rubric, warn)
    if isinstance(judges.store, Store) and not options.report_only:
        try:
            refuse_open_batches(judges.store, target)
        except InputError:
            judges.store.end(keep=True)
            raise
    return judges


def kept_line(settings: "Settings", target: Path) -> str:
    """What is said of a journal that stays although the run of `target` is complete."""
    from rag_eval.configuration.effective import store_path

    return (
        f"Kept: {store_path(settings, target)}, for another run of this input that is not complete. "
        "Delete it if you do not want to continue that run."
    )


def refuse_empty(evaluation: "Evaluation") -> None:
    """A run that stopped before any reply has nothing to report; an older report stays as it is."""
    stopped, usage = evaluation.stopped, evaluation.usage
    if stopped and not evaluation.judges.is_proxy and not usage.calls and not usage.cached:
        raise stopped
