"""Who judges: the offline judge, or a model behind an endpoint with a store of what it said before."""

from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.console import warn
from rag_eval.cli.options import Options

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.judges import Panel


def open_panel(
    settings: "Settings", target: Path, options: Options, rubric: "EvaluationRubric | None"
) -> "Panel":
    """The panel that the settings ask for. Nothing is sent yet."""
    from rag_eval.configuration.effective import redactor_of
    from rag_eval.run.judges import offline_panel

    if not settings.provider.is_offline:
        return _llm_panel(settings, target, options, rubric)
    if redactor_of(settings):
        warn("Nothing is redacted: the offline judge sends nothing.")
    return offline_panel(settings)


def _llm_panel(
    settings: "Settings", target: Path, options: Options, rubric: "EvaluationRubric | None"
) -> "Panel":
    from rag_eval.configuration.effective import budget_of, endpoint_of, guarded, store_path
    from rag_eval.judge.null_judges import StoredOnly
    from rag_eval.judge.transport import Transport
    from rag_eval.run.judges import llm_panel
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
    judge = StoredOnly(transport) if options.report_only else guarded(transport, settings)
    return llm_panel(settings, judge, store, rubric)
