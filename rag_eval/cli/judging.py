"""Who judges: the offline judge, or a model behind an endpoint with a store of what it said before."""

from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.console import warn
from rag_eval.cli.options import Options

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.judges import Judges


def open_judges(
    settings: "Settings", target: Path, options: Options, rubric: "EvaluationRubric | None"
) -> "Judges":
    """The judges that the settings ask for. Nothing is sent yet."""
    from rag_eval.run.evaluation import redactor_of
    from rag_eval.run.judges import Judges

    if not settings.provider.is_offline:
        return _llm_judges(settings, target, options, rubric)
    if redactor_of(settings):
        warn("Nothing is redacted: the offline judge sends nothing.")
    return Judges.offline(settings)


def _llm_judges(
    settings: "Settings", target: Path, options: Options, rubric: "EvaluationRubric | None"
) -> "Judges":
    from rag_eval.configuration.effective import budget_of, endpoint_of, store_path
    from rag_eval.judge.null_judges import StoredOnly
    from rag_eval.judge.transport import Transport
    from rag_eval.run.judges import Judges
    from rag_eval.store.reply_store import Store

    budget = budget_of(settings)
    store = Store(
        store_path(settings, target),
        on_damage=None if options.strict_cache else warn,
        fresh=options.fresh,
        retry_errors=options.retry_errors,
        on_network=warn,
    )
    asked = settings.without_entra() if options.report_only else settings
    transport = Transport(endpoint_of(asked), store, budget, announce=warn)
    judge = StoredOnly(transport) if options.report_only else transport
    return Judges.llm(settings, judge, store, rubric)
