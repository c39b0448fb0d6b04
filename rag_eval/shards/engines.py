"""Who runs the shards, and where: processes of this machine, or tasks of a Ray cluster (Ray core).

An engine only maps a function over tasks: the files are what counts. Every machine of a cluster sees the folder of the
run, and has keys of its own.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from rag_eval.errors import InputError, RunStoppedError, how_to_install
from rag_eval.run.parallel import usable_cores
from rag_eval.run.processes import THIS_PROCESS, Processes, function_named

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


def workers(number: int, do: Do, *, ahead: int, forks: bool = False) -> Processes:
    """Processes for a LocalEngine that is to map `do`. See Processes."""
    started = Processes(f"{__name__}:{open_worker.__name__}", number, ahead=ahead, forks=forks)
    return started.open(f"{do.__module__}:{do.__name__}")


def open_worker(name: str) -> Do:
    """In a worker process: what `name` says. What writes parts is imported now, when the rows may still be read."""
    import pyarrow.parquet  # noqa: F401

    return function_named(name)


class LocalEngine:
    """Processes of this machine; one that dies costs the shard that it worked on, which begins anew.

    A single one is this process.
    """

    def __init__(self, most: int | None, *, ahead: int, started: Processes | None) -> None:
        """As many as there are processors, and no more than `most`. `ahead` is for Processes.

        The first function is mapped by the workers that were `started` for it, if any.
        """
        self._ahead = ahead
        self._started = started
        self._processes: Processes | None = None
        self.slots = min(usable_cores(), most or usable_cores())

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *error: object) -> None:
        """Processes end with `map`."""

    def map(self, do: Do, tasks: Iterable[Task]) -> Iterator[dict[str, Any]]:
        if self.slots == 1:
            yield from map(do, tasks)
            return
        started, self._started = self._started, None
        with started or workers(self.slots, do, ahead=self._ahead) as self._processes:
            items = ((f"shard {task['spec']['number']}", dict(task)) for task in tasks)
            yield from self._processes.map(items, in_order=False)

    def stop(self, reason: RunStoppedError) -> None:
        """Take no more tasks; what is under way ends when its open calls are answered, and `map` with it.

        May be called from a signal handler.
        """
        if self._processes:
            self._processes.stop(_GRACE)
        THIS_PROCESS.request_stop(reason)


_GRACE = 15.0
"""Seconds that workers have after a stop: those of open calls, and some to say what they took."""
_RETRIES = 3
"""Times that a shard begins anew because its process or its machine died."""


class RayEngine:
    """Connects to a cluster, or starts one on this machine. As a context it disconnects at the end."""

    def __init__(self, address: str | None, most: int) -> None:
        """Use up to `most` processors. Raises InputError if Ray is not installed or the cluster cannot be reached."""
        self._ray = ray = import_ray()
        try:
            ray.init(
                address=address,
                logging_level=logging.WARNING,
                log_to_driver=False,
                ignore_reinit_error=True,
                **({} if address else {"include_dashboard": False}),
            )
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(
                f"--address {address or ''}: the Ray cluster cannot be used ({reason})"
            ) from error
        self.slots = max(1, min(most, int(ray.cluster_resources().get("CPU", 1))))

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()

    def map(self, do: Do, tasks: Iterable[Task]) -> Iterator[dict[str, Any]]:
        """See Engine. Raises RunStoppedError if a shard's process died again and again.

        Nodes that were lost are named in the warnings of the next result.
        """
        ray, source = self._ray, iter(tasks)
        remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(do)
        under_way: list[Any] = []
        nodes = self._nodes()
        while True:
            while len(under_way) < self.slots and (task := next(source, None)) is not None:
                under_way.append(remote.remote(dict(task)))
            if not under_way:
                return
            (ready,), under_way = ray.wait(under_way)
            try:
                outcome, before, nodes = ray.get(ready), nodes, self._nodes() or nodes
            except ray.exceptions.RayError as error:
                reason = " ".join(str(error).split())[:300]
                raise RunStoppedError(
                    "ray",
                    f"a shard ended without a result on the Ray cluster ({reason}); run the same command again",
                ) from error
            lost = [_LOST.format(place) for node, place in before.items() if node not in nodes]
            yield {**outcome, "warnings": [*outcome.get("warnings", ()), *lost]} if lost else outcome

    def _nodes(self) -> dict[str, str]:
        """The addresses of the nodes that are alive, by id; empty if the cluster does not answer."""
        with suppress(self._ray.exceptions.RayError, RuntimeError, OSError):
            return {node["NodeID"]: node["NodeManagerAddress"] for node in self._ray.nodes() if node["Alive"]}
        return {}


_LOST = (
    "Ray lost the node {}. The shards that it was judging are judged again on other nodes; calls that were under way "
    "there may be paid again."
)


def import_ray() -> Any:
    """Raises InputError if Ray is not installed."""
    # Read when Ray is imported, here for the first time.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is reported to anybody
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")  # a lost node's state, 30 lines of it
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise InputError(
            f"--engine ray: Ray is not installed; install it with {how_to_install('ray')}"
        ) from None
    return ray
