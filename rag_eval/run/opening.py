"""The judges of a run and the store of what they said before, opened without options and without printing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.configuration.effective import budget_of, endpoint_of
from rag_eval.configuration.settings import Settings
from rag_eval.run.judges import Judges

if TYPE_CHECKING:
    from rag_eval.rubric import EvaluationRubric


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplies:
    """Where replies are stored, and which of them are wanted."""

    path: Path
    another: Path | None = None
    """A second store, which is only read; the file may be missing."""
    fresh: bool = False
    retry_errors: bool = False
    strict: bool = False
    """Whether damage is an error; otherwise it is told, and what is intact is kept."""
    only: bool = False
    """Whether nothing is to be asked for beyond them."""
    run: str
    """The name of the run: what its commands took is kept under it."""


def open_llm_judges(
    settings: Settings,
    replies: StoredReplies,
    rubric: "EvaluationRubric | None",
    tell: Callable[[str], None],
) -> Judges:
    """A model behind the endpoint of the settings. Nothing is sent yet. `tell` gets sentences on what was found."""
    from rag_eval.judge.null_judges import StoredOnly
    from rag_eval.judge.transport import Transport
    from rag_eval.run.metered_store import RunAccount
    from rag_eval.store.reply_store import Store

    budget = budget_of(settings)
    store = Store(
        replies.path,
        another=replies.another,
        on_damage=None if replies.strict else tell,
        fresh=replies.fresh,
        retry_errors=replies.retry_errors,
        on_network=tell,
    )
    asked = settings.without_entra() if replies.only else settings
    transport = Transport(endpoint_of(asked), store, budget, announce=tell)
    judge = StoredOnly(transport) if replies.only else transport
    account = RunAccount(store, replies.run, fresh=replies.fresh)
    return replace(Judges.llm(settings, judge, store, rubric), account=account)
