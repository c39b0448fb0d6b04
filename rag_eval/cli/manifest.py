"""The manifest of a run: what it was asked to do, on what, and how it ended. Written when it begins and when it ends.

A run that was killed leaves a manifest that says "running", with the process that it was.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rag_eval import __version__
from rag_eval.cli.console import warn, without_secrets
from rag_eval.cli.signals import Terminated
from rag_eval.cli.terminal import readable
from rag_eval.errors import ExitCode, OutputError, RagEvalError, describe_obstacle

if TYPE_CHECKING:
    from rag_eval.cli.outcome import RunOutcome
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.records import RunFacts
    from rag_eval.store.batch_records import BatchRecord

FORMAT = "rag-eval-manifest/1"
_STATUS = {
    ExitCode.COMPLETE: "complete",
    ExitCode.GATE_FAILED: "complete",
    ExitCode.LOW_COVERAGE: "complete",
}
"""Of a run that wrote a report; with any other exit code it is partial: a shard may have ended with each of them."""


class Manifest:
    """One JSON file, replaced as a whole whenever more is known. Without a target nothing is written.

    As a context it is there from the beginning, and an error that ends the run is its last word.
    """

    def __init__(
        self,
        target: Path | None,
        input_path: Path,
        options: Mapping[str, Any],
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`options` are those that were given, by name. The clock of `now` may be set back during the run."""
        self._target = target
        self._now = now
        self._started, self._ticks = now().astimezone(), time.monotonic()
        self._members: dict[str, Any] = {
            "format": FORMAT,
            "status": "running",
            "exit_code": None,
            "reason": "",
            "version": __version__,
            "process": os.getpid(),
            "started": self._started.isoformat(),
            "ended": None,
            "options": {name: _plain(value) for name, value in options.items()},
            "input": {"name": readable(input_path.name)},
        }
        self._input = input_path

    def __enter__(self) -> Self:
        if self._target:
            self._members["input"] |= _fingerprint(self._input)
        self._write()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None and self._members["status"] != "running":
            return
        if error is None:  # nothing was to be judged: a dry run
            ending = {"status": "complete", "exit_code": int(ExitCode.COMPLETE)}
        else:
            ending = {
                "status": "failed",
                "exit_code": int(exit_code_of(error)),
                "reason": without_secrets(str(error), is_error=True),
            }
        self._members |= {**ending, "ended": self._ended()}
        try:
            self._write()
        except OutputError as second:
            warn(str(second))

    def began(self, loaded: "LoadedSettings", facts: "RunFacts") -> None:
        """Everything that can be wrong was looked for, and judging begins."""
        if not self._target:
            return
        from rag_eval.configuration.provenance import provenance

        self._members |= {**provenance(loaded), "run": _run(facts)}
        self._write()

    def ended(self, code: ExitCode, outcome: "RunOutcome") -> None:
        """The run is over, and its report is written."""
        facts = outcome.facts
        self._members |= {
            "status": _STATUS.get(code, "partial"),
            "exit_code": int(code),
            "reason": facts.partial,
            "ended": self._ended(),
            "seconds": facts.seconds,
            "usage": asdict(facts.usage),
            "fallbacks": dict(facts.fallbacks),
            "judged": {
                bot.bot: {"scored": bot.rqs.scored, "failed": bot.rqs.failed, "queries": bot.total_queries}
                for bot in outcome.summary.bots
            },
            "outputs": [_plain(path) for path in outcome.paths],
        }
        self._write()

    def waits(self, reason: str, batches: "Sequence[BatchRecord]") -> None:
        """The run goes on with the same command; there is no new report yet."""
        self._members |= {
            "status": "waiting",
            "exit_code": int(ExitCode.NOT_FINISHED),
            "reason": reason,
            "ended": self._ended(),
            "batches": [
                {
                    "id": batch.id,
                    "calls": batch.requests,
                    "submitted": datetime.fromtimestamp(batch.submitted).astimezone().isoformat(),
                }
                for batch in batches
            ],
        }
        self._write()

    def _ended(self) -> str:
        """Never before the run started."""
        elapsed = timedelta(seconds=time.monotonic() - self._ticks)
        return max(self._now().astimezone(), self._started + elapsed).isoformat()

    def _write(self) -> None:
        if not self._target:
            return
        from rag_eval.store.replacement import write_text

        text = json.dumps(_harmless(self._members), ensure_ascii=False, allow_nan=False, indent=1)
        write_text(self._target, text + "\n", "--manifest")


def exit_code_of(error: BaseException) -> ExitCode:
    """The exit code of a process that this error ends."""
    if isinstance(error, RagEvalError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED
    return ExitCode.USAGE if describe_obstacle(error) else ExitCode.STOPPED


def _harmless(value: Any) -> Any:
    """The texts in it without secrets; numbers stay as they are."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {without_secrets(name): _harmless(each) for name, each in value.items()}
    return [_harmless(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, int | float | bool) else readable(str(value))


def _fingerprint(path: Path) -> dict[str, Any]:
    """Size in bytes and SHA-256; nothing of a file that cannot be read."""
    try:
        if not path.is_file():  # a pipe may block for ever
            return {"sha256": None, "bytes": None}
        with path.open("rb") as file:
            return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}
    except OSError:
        return {"sha256": None, "bytes": None}


def _run(facts: "RunFacts") -> dict[str, Any]:
    """What is about to be judged, by whom and how it will be counted."""
    return {
        "judge": facts.judge,
        "prompts": facts.prompts,
        "sheet": facts.sheet,
        "bots": facts.bots,
        "rows": facts.rows,
        "cut_rows": facts.cut_rows,
        "metrics": [*facts.metrics, *facts.further],
        "rubric": facts.rubric,
        "weights": dict(facts.weights),
        "thresholds": dict(facts.thresholds),
        "thresholds_from": facts.thresholds_from,
    }
