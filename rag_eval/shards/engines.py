"""Who runs the shards, and where. An engine only maps a function over tasks: the files are what counts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from rag_eval.run.parallel import usable_cores
from rag_eval.run.processes import Processes, function_named

Task = Mapping[str, Any]
Do = Callable[[Task], dict[str, Any]]


class Engine(Protocol):
    """Something that runs a function many times, on as many processors as it has."""

    @property
    def slots(self) -> int:
        """How many run at the same time."""
        ...

    def map(self, do: Do, tasks: Iterable[Task]) -> Iterator[dict[str, Any]]:
        """What `do` returns for each task, in the order in which they are done.

        A task is asked for only when it can begin. `do` is a function of a module that is safe to run twice; tasks and
        results are values that JSON knows.
        """
        ...


def workers(number: int, *, ahead: int, forks: bool = False) -> Processes:
    """Processes for a LocalEngine. See Processes."""
    task = f"{function_named.__module__}:{function_named.__name__}"
    return Processes(task, number, ahead=ahead, forks=forks)


class LocalEngine:
    """Processes of this machine; one that dies costs the shard that it worked on, which begins anew.

    A single one is this process.
    """

    def __init__(self, most: int | None = None, *, ahead: int = 0, started: Processes | None = None) -> None:
        """As many as there are processors, and no more than `most`. `ahead` is for Processes.

        Processes that were `started` are used first.
        """
        self._ahead = ahead
        self._started = started
        self.slots = max(1, min(usable_cores(), most or usable_cores()))

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *error: object) -> None:
        """Processes end with `map`."""

    def map(self, do: Do, tasks: Iterable[Task]) -> Iterator[dict[str, Any]]:
        if self.slots == 1:
            yield from map(do, tasks)
            return
        spec = f"{do.__module__}:{do.__name__}"
        processes, self._started = self._started or workers(self.slots, ahead=self._ahead), None
        with processes.open(spec):
            items = ((f"shard {task['spec']['number']}", dict(task)) for task in tasks)
            yield from processes.map(items, in_order=False)
