"""What repeating the query is worth to the offline judge, and what the cut costs answers that repeat nothing.

    python benchmarks/judge_echoes.py FIXTURES_DIR

Answers get the query, in one way each: for answer relevancy the bad answers, for the other metrics all. Four judges
see the same rows: none (nothing is cut), verbatim (the words of the query in a row are cut, wherever they are), loose
(a stretch of a sentence with 80% of them in order is cut), and the present one, which cuts clauses that repeat the
query by their form. FIXTURES_DIR is that of judge_agreement.py. More data sets for answer relevancy are made of its
other files and of tests/languages.jsonl: each query with its own answer and with the answer of another group. Intervals
are 95%, from 10,000 resamples of whole data sets. "Held out": for each data set, the judge is chosen that is best on
the others.
"""

import asyncio
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rag_eval.metrics import answer_correctness, answer_relevancy, context_precision, faithfulness
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS, offline_metrics
from rag_eval.metrics.offline.echo import without_echo
from rag_eval.records import METRIC_LABELS, Case
from rag_eval.texts.words import words

PROBES = Path(__file__).resolve().parent.parent / "tests" / "languages.jsonl"
RESAMPLES = 10_000
MOST_LOST = 0.005
"""Of the mean AUC without echoes: a judge that loses more is not chosen."""


class Example(NamedTuple):
    case: Case
    is_good: bool


Cut = Callable[[str, str], str]
"""(response, query) → what is judged of the response."""
Echo = Callable[[str, str], str]
"""(query, answer) → the answer with the query."""
Row = dict[str, Any]
Sets = dict[str, list[Example]]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").split("\n\n")[1].strip())
    folder = Path(sys.argv[1])
    report("answer_relevancy", relevancy_sets(folder), "bad")
    for metric in ("answer_correctness", "faithfulness"):
        report(metric, labelled_sets(folder, metric), "all")
    report_precision(folder)
    report_cuts(folder)


def relevancy_sets(folder: Path) -> Sets:
    """The three data sets of the metric, and those made of others by swapping answers."""
    sets: Sets = labelled_sets(folder, "answer_relevancy")
    own: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for row in read_rows(folder, "answer_correctness"):
        if row["dataset"] != "evouna_nq":  # evouna_swap is made of it
            own[row["dataset"]].append((row["question"], row["answer"], row["group"]))
    for row in read_rows(folder, "faithfulness"):
        if row["dataset"] == "mtrag_human_eval":
            own[row["dataset"]].append((row["question"], row["answer"], row["group"]))
    for row in read_rows(folder, "context_recall"):
        if row["dataset"] == "clapnq":
            own[row["dataset"]].append((row["question"], row["ground_truth"], row["group"]))
    for row in read_rows(folder, "context_precision"):
        if row["dataset"] == "xquad":
            chunk = row["contexts"][row["chunk_labels"].index(1)]
            own[f"xquad ({row['language']})"].append((row["question"], chunk, row["group"]))
    for row in map(json.loads, PROBES.read_text(encoding="utf-8").splitlines()):
        own[f"probes ({row['language']})"].append((row["question"], row["paragraph"], row["question"]))
    rng = random.Random(5)
    return sets | {name: list(swapped(rows, rng)) for name, rows in own.items()}


def swapped(rows: Sequence[tuple[str, str, str]], rng: random.Random) -> Iterator[Example]:
    """Of each query once: its own answer, and the answer of another group."""
    for query, answer, group in {row[0]: row for row in rows}.values():
        others = [other for _, other, its_group in rows if its_group != group and other != answer]
        yield Example(Case(2, "bot", query, answer), True)
        yield Example(Case(2, "bot", query, rng.choice(others)), False)


def labelled_sets(folder: Path, metric: str) -> Sets:
    sets: Sets = defaultdict(list)
    for row in read_rows(folder, metric):
        if row.get("label_binary") is not None and row["question"]:
            chunks = tuple(row["contexts"]) or None
            case = Case(2, "bot", row["question"], row["answer"], row["ground_truth"], chunks)
            sets[row["dataset"]].append(Example(case, bool(row["label_binary"])))
    return dict(sets)


def read_rows(folder: Path, metric: str) -> Iterator[Row]:
    yield from map(json.loads, (folder / f"{metric}.jsonl").read_text(encoding="utf-8").splitlines())


def report(metric: str, sets: Sets, echoing: Literal["bad", "all"]) -> None:
    print(f"\n### {metric}\n")
    print(
        f"Change of the AUC, mean of {len(sets)} data sets; without echoes: also of the balanced accuracy.\n"
    )
    print(f"| echo in {echoing} answers | {' | '.join(CUTS)} |")
    print("|---|" + "---|" * len(CUTS))
    unchanged = {name: measured(metric, sets, cut, echoing) for name, cut in CUTS.items()}
    base = unchanged["none"]
    plain = {name: difference(found, base) for name, found in unchanged.items()}
    print(f"| none: AUC | {' | '.join(map(with_interval, (column(each, 0) for each in plain.values())))} |")
    print(
        f"| none: accuracy | {' | '.join(map(with_interval, (column(each, 1) for each in plain.values())))} |"
    )
    changes: dict[str, list[np.ndarray]] = {name: [] for name in CUTS}
    for label, echo in ECHOES.items():
        cells = []
        for name, cut in CUTS.items():
            found = difference(measured(metric, sets, cut, echoing, echo), base)
            changes[name].append(column(found, 0))
            cells.append(with_interval(column(found, 0)))
        print(f"| {label} | {' | '.join(cells)} |")
    totals = {name: np.mean(columns, axis=0) for name, columns in changes.items()}
    print(f"| **mean of the echoes** | {' | '.join(map(with_interval, totals.values()))} |")
    chosen = held_out({name: column(each, 0) for name, each in plain.items()}, totals)
    picked = {name: chosen.count(name) for name in CUTS if name in chosen}
    values = np.array([totals[name][place] for place, name in enumerate(chosen)])
    costs = np.array([column(plain[name], 0)[place] for place, name in enumerate(chosen)])
    print(f"\nHeld out: {picked}; echoes {with_interval(values)}, unchanged {with_interval(costs)}\n")
    print_sets(metric, sets, echoing)


def print_sets(metric: str, sets: Sets, echoing: str) -> None:
    """AUC of each data set with the first echo and with one in other words."""
    print(
        "| dataset | n | no echo | Regarding: none, verbatim, present | You asked: none, verbatim, present |"
    )
    print("|---|---|---|---|---|")
    for name, examples in sets.items():
        cells = []
        for echo in (None, ECHOES['Regarding "…":'], ECHOES["You asked how long you may …"]):
            cuts = ("none", "verbatim", "present") if echo else ("none",)
            found = [quality(metric, examples, CUTS[cut], echoing, echo)[0] for cut in cuts]
            cells.append(", ".join(f"{auc:.3f}" for auc in found))
        print(f"| {name} | {len(examples)} | {' | '.join(cells)} |")


def held_out(plain: dict[str, np.ndarray], echoes: dict[str, np.ndarray]) -> list[str]:
    """Of each data set the judge that is best at echoes on the other ones, and loses little there without them."""
    count = len(next(iter(plain.values())))
    chosen = []
    for place in range(count):
        others = np.arange(count) != place
        allowed = [name for name in plain if plain[name][others].mean() >= -MOST_LOST]
        chosen.append(max(allowed, key=lambda name: echoes[name][others].mean()))
    return chosen


def measured(
    metric: str, sets: Sets, cut: Cut, echoing: str, echo: Echo | None = None
) -> dict[str, tuple[float, float]]:
    """AUC and balanced accuracy of each data set."""
    return {name: quality(metric, examples, cut, echoing, echo) for name, examples in sets.items()}


def quality(
    metric: str, examples: Iterable[Example], cut: Cut, echoing: str, echo: Echo | None
) -> tuple[float, float]:
    values, labels = [], []
    for case, is_good in examples:
        if echo and (echoing == "all" or not is_good):
            case = replace(case, response=echo(case.query, case.response))
        value = score(metric, case, cut)
        if value is not None:
            values.append(value)
            labels.append(is_good)
    good, scores = np.array(labels), np.array(values)
    n_good, n_bad = good.sum(), (~good).sum()
    auc = (rankdata(scores)[good].sum() - n_good * (n_good + 1) / 2) / (n_good * n_bad)
    passed = scores >= CALIBRATED_THRESHOLDS[metric]
    return float(auc), float((passed[good].mean() + 1 - passed[~good].mean()) / 2)


def score(metric: str, case: Case, cut: Cut) -> float | None:
    """By the present judge with another cut."""
    for module in (answer_correctness, answer_relevancy, context_precision, faithfulness):
        module.without_echo = cut  # type: ignore[attr-defined]
    return asyncio.run(_METRICS[metric].measure(case)).value


def difference(
    found: dict[str, tuple[float, float]], base: dict[str, tuple[float, float]]
) -> list[tuple[float, float]]:
    return [(one[0] - base[name][0], one[1] - base[name][1]) for name, one in found.items()]


def column(pairs: Sequence[tuple[float, float]], number: int) -> np.ndarray:
    return np.array([pair[number] for pair in pairs])


def with_interval(values: np.ndarray) -> str:
    rng = np.random.default_rng(11)
    means = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def report_precision(folder: Path) -> None:
    """Without a ground truth, chunks are judged by the response: here the ground truth, with and without an echo."""
    print("\n### context_precision without a ground truth\n")
    rows = [row for row in read_rows(folder, "context_precision") if row["ground_truth"]]
    echo = ECHOES['Regarding "…":']
    for name in ("none", "present"):
        changed, differences = 0, []
        for row in rows:
            case = Case(2, "bot", row["question"], row["ground_truth"], None, tuple(row["contexts"]))
            plain = score("context_precision", case, CUTS["none"]) or 0.0
            echoed = replace(case, response=echo(case.query, case.response))
            value = score("context_precision", echoed, CUTS[name]) or 0.0
            changed += value != plain
            differences.append(value - plain)
        print(f"{name}: {changed} of {len(rows)} scores change by an echo, mean {np.mean(differences):+.4f}")


def report_cuts(folder: Path) -> None:
    """How many texts lose something that were written without this in mind."""
    texts = {
        (row["question"], row[name])
        for metric in METRIC_LABELS
        for row in read_rows(folder, metric)
        for name in ("answer", "ground_truth")
        if row["question"] and row.get(name)
    }
    n_cut = sum(without_echo(text, query) != text for query, text in texts)
    print(f"\n{n_cut} of {len(texts)} responses and ground truths are cut as they are")


def cut_nothing(response: str, query: str) -> str:
    return response


def cut_verbatim(response: str, query: str) -> str:
    """Without the words of the query in a row, whatever is between them."""
    pieces = [re.escape(word) for word in _WORD.findall(query)]
    return (
        re.sub(r"(?<!\w)" + r"[\W_]*".join(pieces) + r"(?!\w)", "", response, flags=re.I)
        if pieces
        else response
    )


def cut_loosely(response: str, query: str) -> str:
    """Without the shortest stretch of each sentence that has 80% of the query's words in order."""
    asked = words(query)
    return "".join([without_stretch(sentence, asked) for sentence in _SENTENCE.findall(response)])


def without_stretch(sentence: str, asked: Sequence[str]) -> str:
    pieces = list(re.finditer(r"\S+", sentence))
    own = [(word, number) for number, piece in enumerate(pieces) for word in words(piece[0])]
    table = np.zeros((len(asked) + 1, len(own) + 1), int)
    for i, word in enumerate(asked):
        for j, (other, _) in enumerate(own):
            table[i + 1, j + 1] = table[i, j] + 1 if word == other else max(table[i, j + 1], table[i + 1, j])
    if not asked or table[-1, -1] < 0.8 * len(asked):
        return sentence
    i, j, places = len(asked), len(own), []
    while i and j:
        if asked[i - 1] == own[j - 1][0]:
            places.append(own[j - 1][1])
            i, j = i - 1, j - 1
        elif table[i - 1, j] >= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    first, last = pieces[min(places)], pieces[max(places)]
    return sentence[: first.start()] + sentence[last.end() :]


def bare(query: str) -> str:
    return query.rstrip(" ?？؟.。।").strip()


def in_order_of_statement(query: str) -> str:
    """ "how long may I keep a book" → "how long I keep a book may": do, does and did are dropped."""
    match = _INVERTED.match(bare(query))
    if match is None:
        return bare(query)
    verb = "" if match[2].lower() in ("do", "does", "did") else f" {match[2]}"
    return f"{match[1]} {match[3]}{verb}"


def in_lines(query: str) -> str:
    return re.sub(r"(\S+)\s+(\S+)\s+", r"\1  \2\n  ", query)


def in_the_middle(query: str, answer: str) -> str:
    pieces = answer.split()
    half = len(pieces) // 2
    return f"{' '.join(pieces[:half])} – {bare(query)}? – {' '.join(pieces[half:])}"


CUTS: dict[str, Cut] = {
    "none": cut_nothing,
    "verbatim": cut_verbatim,
    "loose": cut_loosely,
    "present": without_echo,
}
ECHOES: dict[str, Echo] = {
    'Regarding "…":': lambda query, answer: f'Regarding "{query}": {answer}',
    "…? as a first sentence": lambda query, answer: f"{bare(query)}? {answer}",
    "heading in Markdown": lambda query, answer: f"**{bare(query)}**\n\n{answer}",
    "capitals, colon": lambda query, answer: f"{bare(query).upper()}: {answer}",
    "Regarding …, without quotes": lambda query, answer: f"Regarding {bare(query)}, {answer}",
    "Regarding …, without marks": lambda query, answer: f"Regarding {bare(query)} {answer}",
    "You asked: …": lambda query, answer: f"You asked: {bare(query)}. {answer}",
    "in lines of two words": lambda query, answer: f"> {in_lines(query)}\n\n{answer}",
    "in the middle": in_the_middle,
    'at the end, "…".': lambda query, answer: f'{answer}\nThat answers "{query}".',
    "at the end, (…?)": lambda query, answer: f"{answer} ({bare(query)}?)",
    "twice": lambda query, answer: f'"{query}"\n{answer}\nThat was: {bare(query)}?',
    "You asked how long you may …": lambda query, answer: (
        f"You asked {in_order_of_statement(query)}. {answer}"
    ),
    "As to how long you may …,": lambda query, answer: f"As to {in_order_of_statement(query)}, {answer}",
    "Your query: …": lambda query, answer: f"Your query: {bare(query)}\n{answer}",
    "When it comes to …,": lambda query, answer: f"When it comes to {bare(query)}, {answer}",
    "I hope this answers: …": lambda query, answer: f"{answer}\n\nI hope this answers your question: {query}",
    "Thank you for asking how long …": lambda query, answer: (
        f"Thank you for asking {in_order_of_statement(query)}. {answer}"
    ),
    "Let me explain how long …": lambda query, answer: (
        f"Let me explain {in_order_of_statement(query)}. {answer}"
    ),
    "The question of how long …:": lambda query, answer: (
        f"The question of {in_order_of_statement(query)}: {answer}"
    ),
}
_METRICS = {
    name: offline_metrics([name])[0]
    for name in ("answer_relevancy", "answer_correctness", "faithfulness", "context_precision")
}
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[^.!?。？\n]*[.!?。？\n]?")
_INVERTED = re.compile(
    r"(?i)(.*?\b(?:how \w+|what|who|when|where|why|which \w+))\s+(do|does|did|is|are|was|were|can|could|will|would|has"
    r"|have|had|may|must|should)\s+(.*)$"
)


if __name__ == "__main__":
    main()
