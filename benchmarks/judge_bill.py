"""Calls and tokens of a row, ours beside ragas', as counted by the endpoint that they were sent to.

    python benchmarks/judge_bill.py [--ragas-python PATH]
    python benchmarks/judge_bill.py --forms [--prices 0.15 0.60]
    python benchmarks/judge_bill.py --wire [--input answers.xlsx] [--prices 0.15 0.60]

Tokens are the bytes of the requests' bodies divided by four, for every side, so they include what the sides say about
the form of the reply. ragas takes a request for every bot whether it judges one bot a run or all of them.

--forms compares the prompt forms of this tool on English prose: two bots, four shared chunks of 120 words, responses of
60 words and a ground truth of 45, in sentences of 12. It sends nothing; replies are those that a dry run makes up.
Tokens are those of tiktoken (o200k_base) if it has its vocabulary, and otherwise estimated; schemas of replies count as
prompt. Toxicity, recommendations and the check of the endpoint are left out.

--wire compares whole runs of the forms, and evaluate() of ragas, on the rows of a file. The endpoint counts what a
provider bills, and its replies are as long as those of real judges (fake_endpoint.py --realistic).
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from judge_throughput import OURS, ROOT, endpoint, judged, make_rows

from rag_eval.configuration.settings import Settings
from rag_eval.judge.calls import Answer, Call
from rag_eval.judge.endpoint import Dialect, Endpoint, canonical_json, request_key, strict_schema
from rag_eval.judge.null_judges import NoStore
from rag_eval.records import PROMPT_FORMS, Case, Row, Usage
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.tables.table import read_table
from rag_eval.texts.tokens import estimated_tokens

SIDES = (OURS, "ragas-evaluate", "ragas-collections")


@dataclass(frozen=True)
class Bill:
    """Of one row on average."""

    calls: float
    tokens: float


def main() -> None:
    options = _options()
    if options.wire:
        print("\n".join(wire_table(options)))
        return
    if options.forms:
        print("\n".join(form_table(options.rows, *options.prices)))
        return
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


# On the wire


def wire_table(options: argparse.Namespace) -> Iterator[str]:
    """Calls, tokens and money of whole runs over a file, in Markdown; money is for 1,000 rows."""
    rows = list(_rows_of(options.input))
    input_price, output_price = options.prices
    yield "| side | calls | prompt tokens | reply tokens | cost | in a batch | 1 ÷ of ragas prompts | 1 ÷ of evaluate |"
    yield "|---|---|---|---|---|---|---|---|"
    runs = {}
    with endpoint(is_realistic=True) as address:
        for side in ("ragas-evaluate", *PROMPT_FORMS):
            options.prompts = side
            runs[side] = judged(side if side == SIDES[1] else OURS, rows, 16, address, options)
    costs = {
        side: (run.prompt_tokens * input_price + run.reply_tokens * output_price) / 1000 / len(rows)
        for side, run in runs.items()
    }
    for side, run in runs.items():
        batch = costs[side] / 2
        yield (
            f"| {side} | {run.requests / len(rows):.1f} | {run.prompt_tokens / len(rows):,.0f} "
            f"| {run.reply_tokens / len(rows):,.0f} | {costs[side]:.2f} | {batch:.2f} "
            f"| {costs['ragas'] / batch:.1f} | {costs['ragas-evaluate'] / batch:.1f} |"
        )


def _rows_of(path: Path) -> Iterator[dict[str, Any]]:
    for row in read_table(path).rows:
        cases = [case for case in row.cases if case.has_response and case.chunks and case.reference]
        if (
            len(cases) == len(row.cases) and row.query.isascii()
        ):  # the endpoint looks for words between spaces
            retrieved = list(dict.fromkeys(case.chunks for case in cases if case.chunks))
            yield {
                "query": row.query,
                "reference": cases[0].reference,
                "responses": [case.response for case in cases],
                "chunks": [
                    list(chunks)
                    for chunks in (retrieved if len(retrieved) == 1 else [c.chunks for c in cases])
                ],
            }


# The prompt forms


def form_table(rows: int, input_price: float, output_price: float) -> Iterator[str]:
    """What a row takes in each prompt form, in Markdown; money is for 1,000 rows."""
    count = _counter()
    yield "| prompts | calls | prompt tokens | of ragas | reply tokens | cost | in a batch | 1 ÷ of ragas |"
    yield "|---|---|---|---|---|---|---|---|"
    base: tuple[float, float] | None = None
    for form in PROMPT_FORMS:
        judge = _bill_of(form, rows, count)
        prompt, reply = judge.prompt / rows, judge.reply / rows
        cost = (prompt * input_price + reply * output_price) / 1000
        base = base or (prompt, cost)
        yield (
            f"| {form} | {judge.calls / rows:.0f} | {prompt:,.0f} | {prompt / base[0]:.2f} | {reply:,.0f} | {cost:.2f} "
            f"| {cost / 2:.2f} | {2 * base[1] / cost:.1f} |"
        )


def _counter() -> Callable[[str], float]:
    try:
        import tiktoken

        vocabulary = tiktoken.get_encoding("o200k_base")
    except Exception as error:  # noqa: BLE001 - not installed, or without the file that it downloads
        print(f"Tokens are estimated: no vocabulary ({type(error).__name__}).")
        return estimated_tokens
    return lambda text: len(vocabulary.encode(text, disallowed_special=()))


class _CountingJudge:
    """Makes replies up, and counts what they and their questions take."""

    adaptations: tuple[str, ...] = ()

    def __init__(self, count: Callable[[str], float]) -> None:
        self.calls = 0
        self.prompt = self.reply = 0.0
        self._count = count

    def prepare(self, deployment: str) -> None:
        """There is nothing to reach."""

    def key(self, call: Call[Any]) -> str:
        return request_key(_NOWHERE, Dialect(), call)

    def ask(self, call: Call[Any]) -> Answer:
        reply = call.reply_type.made_up(call.agrees_with)
        form = canonical_json(strict_schema(call.reply_type))
        self.calls += 1
        self.prompt += sum(self._count(text) for text in (form, *(message.text for message in call.messages)))
        self.reply += self._count(reply.model_dump_json())
        return Answer(reply.model_dump_json(), reply)

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        """Nothing is open."""


_NOWHERE = Endpoint("openai", "http://127.0.0.1/v1", "none", "none")


def _bill_of(form: str, rows: int, count: Callable[[str], float]) -> _CountingJudge:
    sections = {
        "judge": {"prompts": form, "provider": "openai"},
        "metrics": {"toxicity": False},
        "diagnostics": {"enabled": False},
    }
    settings = Settings.model_validate(sections)
    judge = _CountingJudge(count)
    evaluation = Evaluation(Judges.llm(settings, judge, NoStore()), settings, workers=1)
    try:
        for _ in evaluation.results(prose_rows(rows)):
            pass
    finally:
        evaluation.close()
    return judge


def prose_rows(count: int) -> Iterator[Row]:
    """Rows of two bots and four chunks, each text of it new."""
    words = iter(re.findall(r"[A-Za-z]+", " ".join(topics.values())))

    def text(length: int) -> str:
        chosen = [next(words) for _ in range(length)]
        return " ".join(" ".join(chosen[i : i + 12]).capitalize() + "." for i in range(0, length, 12))

    for number in range(count):
        query, reference = f"What about {text(10)[:-1]}?", text(45)
        chunks = tuple(text(120) for _ in range(4))
        cases = (Case(number, bot, query, text(60), reference, chunks) for bot in ("A", "B"))
        yield Row(number, query, tuple(cases))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--forms", action="store_true", help="compare the prompt forms instead")
    parser.add_argument(
        "--wire", action="store_true", help="compare whole runs of the forms over a file instead"
    )
    parser.add_argument(
        "--input", type=Path, default=ROOT / "sample_rag_input.xlsx", help="the file of --wire"
    )
    parser.add_argument(
        "--prices",
        type=float,
        nargs=2,
        default=(0.15, 0.60),
        metavar=("INPUT", "OUTPUT"),
        help="of a million tokens",
    )
    parser.add_argument(
        "--ragas-python", default=sys.executable, help="interpreter of an environment with ragas"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
