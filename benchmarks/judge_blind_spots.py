"""What faithfulness and context recall notice when a supported text is made wrong on purpose.

    python benchmarks/judge_blind_spots.py FIXTURES_DIR

Texts that people found supported are changed in one way each, with a seed; a judge that sees the fault scores
the changed text lower. "Words only" is the share of words and word pairs, marked down for wrong numbers only;
"now" adds wrong names and denials. FIXTURES_DIR holds faithfulness.jsonl and context_recall.jsonl.
"""

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS
from rag_eval.metrics.offline.support import PENALTY, support
from rag_eval.texts.words import read

DRAWS = 2
"""Changed versions of every text, of each kind."""


class Supported(NamedTuple):
    """A text that people found supported by the chunks."""

    dataset: str
    query: str
    text: str
    chunks: tuple[str, ...]


Change = Callable[[Supported, random.Random, list[Supported]], str | None]
Judge = Callable[[Supported, str], float]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").split("\n\n")[1].strip())
    items = read_supported(Path(sys.argv[1]))
    print("| change | n | falls | mean | AUC, words only | AUC now | flips, words only | flips now |")
    print("|---|---|---|---|---|---|---|---|")
    for name, change in CHANGES.items():
        rng = random.Random(1)
        drawn = [(item, change(item, rng, items)) for item in items for _ in range(DRAWS)]
        pairs = [(item, text) for item, text in drawn if text and text != item.text]
        print(f"| {name} | {len(pairs)} | {_row(pairs)} |")


def read_supported(folder: Path) -> list[Supported]:
    """The positive examples of both files, in their order."""
    found = []
    for name, text in (("faithfulness", "answer"), ("context_recall", "ground_truth")):
        rows = map(json.loads, (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        found += [
            Supported(row["dataset"], row["question"] or "", row[text], tuple(row["contexts"]))
            for row in rows
            if row["label_binary"] == 1
        ]
    return found


def _row(pairs: list[tuple[Supported, str]]) -> str:
    plain, now = _scores(pairs, _words_alone), _scores(pairs, _now)
    falls = np.mean(now[1] < now[0])
    return (
        f"{falls:.0%} | {now[0].mean():.2f} → {now[1].mean():.2f} | {_auc(*plain):.3f} | {_auc(*now):.3f} "
        f"| {_flips(*plain):.0%} | {_flips(*now):.0%}"
    )


def _scores(
    pairs: list[tuple[Supported, str]], judge: Callable[[Supported, str], float]
) -> tuple[np.ndarray, np.ndarray]:
    return np.array([judge(item, item.text) for item, _ in pairs]), np.array(
        [judge(item, text) for item, text in pairs]
    )


def _now(item: Supported, text: str) -> float:
    return support(text, item.chunks, stated=read(item.query).stems).value


def _words_alone(item: Supported, text: str) -> float:
    found = support(text, item.chunks, stated=read(item.query).stems)
    numbers = sum(one.faults.numbers for one in found.sentences)
    wrong = sum(one.faults.wrong_numbers for one in found.sentences)
    return found.share * (1 - PENALTY * wrong / numbers if numbers else 1)


def _auc(before: np.ndarray, after: np.ndarray) -> float:
    """Chance that an unchanged text scores above a changed one."""
    ranks = rankdata(np.concatenate([before, after]))
    count = len(before)
    return float((ranks[:count].sum() - count * (count + 1) / 2) / count**2)


def _flips(before: np.ndarray, after: np.ndarray) -> float:
    """Share of the texts above the calibrated faithfulness threshold that fall below it."""
    threshold = CALIBRATED_THRESHOLDS["faithfulness"]
    passed = before >= threshold
    return float((after[passed] < threshold).mean()) if passed.any() else float("nan")


def insert_negation(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """'not' after one auxiliary verb that is not negated."""
    places = [place for place in _AUXILIARY.finditer(item.text) if not place.group(2)]
    if not places:
        return None
    end = rng.choice(places).end()
    return f"{item.text[:end]} not{item.text[end:]}"


def remove_negation(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One 'not' after an auxiliary verb is taken away."""
    places = [place for place in _AUXILIARY.finditer(item.text) if place.group(2)]
    if not places:
        return None
    place = rng.choice(places)
    return item.text[: place.end(1)] + item.text[place.end() :]


def change_number(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One number that the chunks state becomes another one of as many digits that they do not state."""
    stated = set(_NUMBER.findall(" ".join(item.chunks)))
    places = [place for place in _NUMBER.finditer(item.text) if place.group() in stated]
    if not places:
        return None
    place = rng.choice(places)
    digits = len(place.group())
    choices = [n for n in map(str, range(10 ** (digits - 1), 10**digits)) if n not in stated]
    return item.text[: place.start()] + rng.choice(choices) + item.text[place.end() :] if choices else None


def exchange_number(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One number becomes another number of the same chunks."""
    stated = set(_NUMBER.findall(" ".join(item.chunks)))
    places = [place for place in _NUMBER.finditer(item.text) if place.group() in stated]
    choices = sorted(stated - set(_NUMBER.findall(item.text)))
    if not places or not choices:
        return None
    place = rng.choice(places)
    return item.text[: place.start()] + rng.choice(choices) + item.text[place.end() :]


def replace_name(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One name inside a sentence becomes a name of another text that the chunks do not hold."""
    places = list(_NAME.finditer(item.text))
    stated = " ".join(item.chunks)
    strangers = [name for name in _NAME.findall(rng.choice(others).text) if name not in stated]
    if not places or not strangers:
        return None
    place = rng.choice(places)
    return item.text[: place.start()] + rng.choice(strangers) + item.text[place.end() :]


def append_sentence(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """A sentence of another text is added."""
    stranger = rng.choice([other for other in others if other.chunks != item.chunks])
    return f"{item.text.rstrip()} {_SENTENCE_END.split(stranger.text.strip())[0]}"


def swap_words(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """Two different names or numbers of one sentence change places; without two of them, two longer words do."""
    for pattern in (_NAME_OR_NUMBER, _LONGER_WORD):
        places = list(pattern.finditer(item.text))
        pairs = [(a, b) for a in places for b in places if a.end() < b.start() and a.group() != b.group()]
        if pairs:
            a, b = rng.choice(pairs)
            return (
                item.text[: a.start()]
                + b.group()
                + item.text[a.end() : b.start()]
                + a.group()
                + item.text[b.end() :]
            )
    return None


CHANGES: dict[str, Change] = {
    "negation inserted": insert_negation,
    "negation removed": remove_negation,
    "number changed": change_number,
    "number taken from elsewhere in the chunks": exchange_number,
    "name replaced": replace_name,
    "unsupported sentence appended": append_sentence,
    "two words swapped": swap_words,
}

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|has|have|had|does|did|do|may|must|should)\b( not\b)?"
)
_NUMBER = re.compile(r"(?<![\w.,])\d{1,4}(?![\w,]|\.\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_NAME_OR_NUMBER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}|(?<![\w.,])\d{1,4}(?![\w,]|\.\d)")
_LONGER_WORD = re.compile(r"\b[a-z]{5,}\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


if __name__ == "__main__":
    main()
