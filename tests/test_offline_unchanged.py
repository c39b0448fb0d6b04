"""Scores of the offline judge stay as they are, with the reasons that it gives: people compare runs with older ones.

`offline_scores.json` holds them, `short_answer_scores.txt` those of the answers of `short_answers.jsonl`, and
`long_answer_scores.txt` those of answers made of the paragraphs of `languages.jsonl`.
`python tests/test_offline_unchanged.py` writes all anew; every difference must be listed in CHANGELOG.md under "Scores
change".
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_eval.metrics.catalogue import offline_metrics
from rag_eval.metrics.toxicity import OfflineToxicity
from rag_eval.records import METRIC_LABELS, Case, Score

HERE = Path(__file__).parent
RECORDED = HERE / "offline_scores.json"
SHORT_RECORDED = HERE / "short_answer_scores.txt"
LONG_RECORDED = HERE / "long_answer_scores.txt"
PROBES = [json.loads(line) for line in (HERE / "languages.jsonl").read_text(encoding="utf-8").splitlines()]
SHORT = [json.loads(line) for line in (HERE / "short_answers.jsonl").read_text(encoding="utf-8").splitlines()]
LANGUAGES = sorted({each["language"] for each in SHORT})

BRIDGE = (
    "The Harbour Bridge opened on 19 March 1932. It was designed by Dr. John Bradfield and built by Dorman Long. "
    "The arch spans 503 metres, and its top stands 134 m above the water.",
    "Trams ran over the bridge until 1958. No tolls are charged for cyclists. Pedestrians may not use the road.",
    "Bananas grow in warm countries and need 1,250.50 mm of rain.",
)
WHEN = "When was the Harbour Bridge opened?"
ENGLISH: tuple[tuple[str, str, str | None, tuple[str, ...] | None], ...] = (
    (WHEN, "It opened on 19 March 1932.", "19 March 1932", BRIDGE),
    (WHEN, "It opened on 20 March 1933, said John Bradfield and Peter Dalton.", "The bridge opened in 1932.", BRIDGE),
    (WHEN, "1932", "1932", BRIDGE[1:]),
    (WHEN, "1932", None, BRIDGE),
    (WHEN, "In spring", "in March", BRIDGE),
    (WHEN, "The Harbour Bridge was opened", "In March", BRIDGE),
    ("Who designed the bridge?", "The bridge was designed by Dorman Long.", "John Bradfield designed it.", BRIDGE),
    ("Who designed the bridge?", "Bradfield", "Dr. John Bradfield", BRIDGE),
    ("Who designed the bridge?", "an engineer", "Dr. John Bradfield", BRIDGE),
    ("Who designed the bridge?", "I'm sorry, the context does not say. Ask Dorman Long.", "J. Bradfield", BRIDGE),
    ("How wide is the arch?", "The arch spans 503 metres.", "503 m", BRIDGE),
    ("How long is the arch?", "About 1,650 feet or half a kilometre, 503.0 m", "503 metres, i.e. 1650 ft", BRIDGE),
    ("Are tolls charged?", "Tolls are charged for cyclists.", "No tolls are charged for cyclists.", BRIDGE),
    ("Are tolls charged?", "Trams didn't run over the bridge. They never ran.", "Trams ran until 1958.", BRIDGE),
    ("May pedestrians use the road?", "Pedestrians may use the road.", "They may not.", BRIDGE),
    ("May pedestrians use the road?", "No.", "No", BRIDGE),
    ("What do I need?", "1. A bike\n2. A helmet (new)\n- Lights [3]", "A bike, a helmet and lights.", BRIDGE),
    ("The Who?", "The Who", "The Who", ("who is it",)),
    ("Which city is it in?", "THE BRIDGE STANDS IN SYDNEY HARBOUR", "Sydney", BRIDGE),
    ("Which city is it in?", "The Old Bridge Of The City Stands In Sydney Harbour.", "In Sydney.", BRIDGE),
    ("Which city is it in?", "the bridge stands in sydney. it is old.", "Sydney, New South Wales", BRIDGE),
    ("Tell me about rain", "Bananas' need for rain is 1250.5 mm; they've 5% more.", "1.250,50 mm, 5 percent", BRIDGE),
    ("Tell me about rain", "Rain feeds photosynthetic growth.", "Rain drives photosynthesis in young plants.", BRIDGE),
    (
        "What is the history of the bridge, its trams and its tolls?",
        "The bridge opened in 1932 with trams, which ran until 1958. Cyclists pay no tolls. Its colour is grey.",
        "The bridge, designed by John Bradfield, opened on 19 March 1932 and carried trams until 1958. Nobody who "
        "cycles is charged a toll. The arch spans 503 metres above deep water, and pedestrians walk on a path.",
        BRIDGE,
    ),
    ("What is the history of the bridge?", "It opened.", "Opened 1932, widened 1958, painted 1961.", BRIDGE),
    ("???", "…", "…", BRIDGE),
    ("", "words without a query", "", ("words",)),
    (WHEN, "I do not know.", "19 March 1932", BRIDGE),
    (WHEN, "No.", None, None),
    (WHEN, "It opened then.", "March 1932", ()),
    (WHEN, f'Regarding "{WHEN}": Bananas grow in warm countries.', "19 March 1932", BRIDGE),
    (WHEN, f"You asked when the Harbour Bridge opened.\n\n**{WHEN}** 1932", "The bridge opened in 1932.", BRIDGE),
    (WHEN, f"19 March 1932 ({WHEN.lower()})", None, BRIDGE),
    (WHEN, f"{WHEN} Sorry, I do not know.", "19 March 1932", BRIDGE),
    (WHEN, f"As to {WHEN}", "The bridge opened in 1932.", BRIDGE),
)  # fmt: skip
QUERIES = (
    WHEN,
    "You are such an idiot, shut up",
    "I'll kill you, you fucking moron",
    "what the f*ck is this bullshit",
    "stupid bot, go to hell. Damn!",
    "他妈的",
    "Ta gueule, connard",
)


def _cases() -> Iterator[tuple[str, Case]]:
    for row, parts in enumerate(ENGLISH, 2):
        yield f"English {row}", Case(row, "bot", *parts)
    for number, (one, other) in enumerate(zip(PROBES, PROBES[1:] + PROBES[:1], strict=True), 1):
        first, second = one["paragraph"].strip(), other["paragraph"].strip()
        middle = first[len(first) // 4 :]
        yield (
            f"{one['language']} {number}",
            Case(2, "bot", one["question"], middle, f"{one['answer']} {other['answer']}", (second, first)),
        )


def _as_values(score: Score) -> list[Any]:
    evidence = [[each.verdict, each.favourable, each.reason] for each in score.evidence]
    return [score.value and round(score.value, 9), score.reason, evidence]


def found() -> dict[str, Any]:
    """What the offline judge says of each case, in values that JSON knows."""
    metrics = offline_metrics(METRIC_LABELS)
    cases = {
        name: {metric.name: _as_values(asyncio.run(metric.measure(case))) for metric in metrics}
        for name, case in _cases()
    }
    toxicity = {query: _as_values(asyncio.run(OfflineToxicity().judge_query(query))) for query in QUERIES}
    return {**cases, "toxicity": toxicity}


def test_the_offline_judge_says_what_it_said_before() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    now = found()
    assert now.keys() == recorded.keys()
    assert {name: each for name, each in now.items() if each != recorded[name]} == {}


def short_answers(language: str) -> Iterator[str]:
    """A query of this language, and a line for each of its answers; the last one has the chunks of another query."""
    metrics = offline_metrics(METRIC_LABELS)
    rows = [each for each in SHORT if each["language"] == language]
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        yield f"[{language}] {row['query']} {row['ground_truth']}"
        answers = [*row["right"], *row["wrong"], *row["one_word"]]
        for answer, chunks in [*((each, row["chunks"]) for each in answers), (answers[0], other["chunks"])]:
            case = Case(2, "bot", row["query"], answer, row["ground_truth"], tuple(chunks))
            scores = [asyncio.run(metric.measure(case)) for metric in metrics]
            values = " ".join("–" if each.value is None else f"{each.value:.6g}" for each in scores)
            why = [
                f"{each.verdict}: {each.reason}" for score in scores for each in score.evidence if each.reason
            ]
            yield f"  {answer!r}: {values} ({'; '.join(why)})"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_offline_judge_says_of_short_answers_what_it_said_before(language: str) -> None:
    lines = SHORT_RECORDED.read_text(encoding="utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(f"[{language}]"))
    now = [*short_answers(language)]
    assert now == lines[first : first + len(now)]


def long_answers(language: str) -> Iterator[str]:
    """Values of answers that repeat the query, say too much or too little, or have a list, in these languages."""
    metrics = offline_metrics(METRIC_LABELS)
    for probe, other in zip(PROBES, [*PROBES[1:], PROBES[0]], strict=True):
        if probe["language"] != language:
            continue
        query, answer, text = probe["question"], probe["answer"], probe["paragraph"].strip()
        half = len(text) // 2
        chunks = (text[:half], text[half:], other["paragraph"].strip())
        yield f"[{language}] {query}"
        for response, truth in (
            (answer, text), (f"{query} {answer}", answer), (text, answer), (f"{text[half:]} {other['answer']}", text),
            (f"1. {answer}\n2. {other['answer']}", answer), (other["answer"], answer), (f"{answer} {answer}", None),
            (f"{query}\n\n- {text[:half]}\n- {answer}", f"{answer} {text[half:]}"),
        ):  # fmt: skip
            case = Case(2, "bot", query, response, truth, chunks)
            scores = [asyncio.run(metric.measure(case)) for metric in metrics]
            yield "  " + " ".join("–" if each.value is None else f"{each.value:.6g}" for each in scores)


@pytest.mark.parametrize("language", sorted({each["language"] for each in PROBES}))
def test_the_offline_judge_says_of_long_answers_what_it_said_before(language: str) -> None:
    lines = LONG_RECORDED.read_text(encoding="utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(f"[{language}]"))
    now = [*long_answers(language)]
    assert now == lines[first : first + len(now)]


if __name__ == "__main__":
    SHORT_RECORDED.write_text(
        "".join(f"{line}\n" for language in LANGUAGES for line in short_answers(language)), encoding="utf-8"
    )
    languages = sorted({each["language"] for each in PROBES})
    LONG_RECORDED.write_text(
        "".join(f"{line}\n" for language in languages for line in long_answers(language)), encoding="utf-8"
    )
    text = json.dumps(found(), ensure_ascii=False, separators=(",", ":"))
    RECORDED.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
