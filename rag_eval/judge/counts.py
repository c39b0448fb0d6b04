"""How the calls of a run were answered."""

from collections import Counter
from dataclasses import dataclass, field, replace

from rag_eval.records import TaskUsage, Usage


@dataclass(slots=True)
class CallCounts:
    """How distinct calls were answered, however many metrics and bots share them; a bundle that is sent counts once."""

    answered: Counter[str] = field(default_factory=Counter)
    """The number of answered calls by task."""
    cached: Counter[str] = field(default_factory=Counter)
    """The number of calls with a stored reply by task."""
    failures: Counter[str] = field(default_factory=Counter)
    """The number of failed calls by code."""
    refused: Counter[str] = field(default_factory=Counter)
    """The number of replies that were not taken by code, those included that another reply made good."""
    outdated: int = 0
    """The number of stored replies that were requested again, because they were empty or no longer valid."""

    def added_to(self, usage: Usage) -> Usage:
        """The judge's usage, with how the calls were answered. With known prices, no request costs nothing."""
        free = 0.0 if usage.cost is not None else None
        tasks = sorted(usage.by_task.keys() | self.answered.keys() | self.cached.keys())
        return replace(
            usage,
            calls=self.answered.total(),
            cached=self.cached.total(),
            failed=self.failures.total(),
            failures=dict(+self.failures),
            refused=dict(+self.refused),
            by_task={
                task: usage.by_task.get(task, TaskUsage(cost=free))
                + TaskUsage(self.answered[task], self.cached[task])
                for task in tasks
            },
        )
