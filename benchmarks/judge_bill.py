"""Calls and tokens of a row, ours beside ragas', as counted by the endpoint that they were sent to.

    python benchmarks/judge_bill.py [--ragas-python PATH]

Tokens are the bytes of the requests' bodies divided by four, for every side, so they include what the sides say about
the form of the reply. ragas takes a request for every bot whether it judges one bot a run or all of them.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from judge_throughput import OURS, endpoint, judged, make_rows

SIDES = (OURS, "ragas-evaluate", "ragas-collections")


@dataclass(frozen=True)
class Bill:
    """Of one row on average."""

    calls: float
    tokens: float


def main() -> None:
    options = _options()
    print("| bots | chunks | contexts | " + " | ".join(_columns()) + " |")
    print("|---|---|---|" + "---|" * (2 * len(SIDES)))
    with endpoint() as address:
        for options.own_contexts, options.bots, options.chunks in product(
            (False, True), (1, 2, 3, 5), (1, 4)
        ):
            if options.own_contexts and options.bots == 1:
                continue  # the same as shared
            bills = [_bill(name, address, options) for name in SIDES]
            contexts = "own" if options.own_contexts else "shared"
            print(
                f"| {options.bots} | {options.chunks} | {contexts} | {' | '.join(_cells(bills))} |",
                flush=True,
            )


def _bill(name: str, address: str, options: argparse.Namespace) -> Bill:
    run = judged(name, list(make_rows(options)), 16, address, options)
    return Bill(run.requests / options.rows, run.sent / 4 / options.rows)


def _columns() -> Iterator[str]:
    yield from (f"calls {name}" for name in SIDES)
    yield from (f"tokens {name}" for name in SIDES)


def _cells(bills: list[Bill]) -> Iterator[str]:
    ours = bills[0]
    yield f"{ours.calls:.1f}"
    yield from (f"{bill.calls:.1f} (ours {ours.calls / bill.calls:.2f})" for bill in bills[1:])
    yield f"{ours.tokens:,.0f}"
    yield from (f"{bill.tokens:,.0f} (ours {ours.tokens / bill.tokens:.2f})" for bill in bills[1:])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument(
        "--ragas-python", default=sys.executable, help="interpreter of an environment with ragas"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
