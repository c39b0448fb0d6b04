"""The commands for stored replies: what there is, and what to let go. Nothing is removed unless asked for."""

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_eval.cli.console import remark, say, warn
from rag_eval.cli.options import load, options
from rag_eval.cli.parameters import NumberRange
from rag_eval.errors import InputError
from rag_eval.texts.display import counted

if TYPE_CHECKING:
    from rag_eval.store.reply_store import Store

_DAY = 24 * 60 * 60


@click.group("cache", short_help="Show or prune cached replies.")
def command() -> None:
    """Show the cached replies in [cache] directory or remove old ones."""


@command.command("show", short_help="Count cached replies by task.")
@options("cache")
def _show(config: Path | None) -> None:
    """Show the number, tokens and dates of cached replies by task."""
    store = _opened(config, on_damage=say, is_dry=True)
    try:
        say(f"{store.path}: {store.path.stat().st_size / 1e6:,.1f} MB")
        for line in store.overview():
            days = f"{datetime.fromtimestamp(line.first):%Y-%m-%d} to {datetime.fromtimestamp(line.last):%Y-%m-%d}"
            tokens = f"{line.prompt_tokens:,} + {line.completion_tokens:,} tokens"
            say(f"  {line.task}: {counted(line.replies, 'reply', 'replies')}, {tokens}, {days}")
    finally:
        store.end(keep=True)


@command.command("prune", short_help="Remove replies older than DAYS.")
@options("cache")
@click.option(
    "--older-than",
    "days",
    type=NumberRange(min=0.0),
    required=True,
    metavar="DAYS",
    help="Remove replies and failures older than DAYS.",
)
def _prune(config: Path | None, days: float) -> None:
    """Remove replies and failures older than DAYS days. A later run pays for these replies again."""

    store = _opened(config, on_damage=warn)
    try:
        before = store.path.stat().st_size
        replies, failures = store.prune(time.time() - days * _DAY)
        freed = max(0, before - store.path.stat().st_size)
        removed = f"{counted(replies, 'reply', 'replies')} and {counted(failures, 'failure')} removed"
        remark(f"{store.path}: {removed}, {freed / 1e6:,.1f} MB freed")
    finally:
        store.end(keep=True)


def _opened(config: Path | None, **how: Any) -> "Store":
    """The store that the configuration names; `how` it is opened is said as to Store."""
    from rag_eval.configuration.effective import CACHE_NAME
    from rag_eval.store.reply_store import Store

    settings = load(config, {}).settings
    path = settings.cache.directory / CACHE_NAME
    if not path.exists():
        raise InputError(f"{path}: no cached replies found; set [cache] directory to the folder of the cache")
    return Store(path, **how)
