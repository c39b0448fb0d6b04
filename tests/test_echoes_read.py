"""What is left of responses that repeat their query in many ways, and which answers say yes or no, to the letter.

`echoes_read.txt` has it for queries of `short_answers.jsonl` and others. `python tests/test_echoes_read.py` writes it
anew after a change that is wanted; read what differs before you keep it.
"""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from rag_eval.metrics.offline.brief import polar_stems, polar_support, stance
from rag_eval.metrics.offline.echo import without_echo

RECORDED = Path(__file__).parent / "echoes_read.txt"
SHORT = RECORDED.with_name("short_answers.jsonl")
FORMS = (
    "{query} {answer}",
    "{answer} {query}",
    "{upper} {answer}",
    "{query}",
    "{query} {query} {answer}",
    "You asked: {query} {answer}",
    "You asked {said}. {answer}",
    "You want to know {said}: {answer}",
    'Regarding your question "{query}": {answer}',
    "Regarding {topic}: {answer}",
    "{topic}: {answer}",
    "{said}: {answer}",
    "{said}? {answer}",
    "{said}\n{answer}",
    '"{said}" {answer}',
    "# {query}\n{answer}",
    "With regard to {said}, {answer}",
    "You asked about {said}, and {answer}",
    "Your question was “{said}”.",
    "As to {said}: {answer}",
    "To answer your question, {answer}",
    "Question: {query}\nAnswer: {answer}",
    "**{query}**\n\n{answer}",
    "“{query}” – {answer}",
    "{said} is a good question. {answer}",
    "The question was {said}, and the answer is {answer}",
    "I was asked {said}.",
    "Die Frage war: {query} {answer}",
    "Vous demandez : {query} {answer}",
    "{topic}? {query} {answer}",
    "{topic}, {said}: {answer}",
    "{query} {topic}. {answer}",
    "{topic}. {query} {answer}",
    "Thank you for asking, {topic}, {said}? {answer}",
)
EVERY = 5
"""Of so many queries of the file, one is taken."""
OWN = (
    ("parking", "It is free."),
    ("museum opening hours", "From nine to five."),
    ("Opening hours museum today", "From nine to five."),
    ("opening hours of the town museum", "They are from nine to five."),
    ("Tell me about parking at the station.", "There are 40 places."),
    ("I lost my card. What does a new one cost?", "A new card costs 5 euros."),
    ("What does a card cost, and where do I get it?", "It costs 5 euros at the desk."),
    ("Please list the documents that I need", "A passport and a photo."),
    ("The lift at the station is broken. Who repairs it? When?", "The city does, on Monday."),
    ("Is parking free?", "Yes, parking is free."),
)

POLAR = (
    "Is parking free?", "Is the shop open on Sundays?", "Can I bring a dog?", "Did it not rain in May?",
    "Ist das Parken kostenlos?", "¿Está abierto el museo?", "停车免费吗？",
)  # fmt: skip
ANSWERS = (
    "Yes.", "No.", "Yes, parking is free.", "No, parking is not free.", "No, it is not.", "Not really.", "It is.",
    "It isn't.", "Yes, but only on Sundays.", "No, you have to pay 5 euros.", "Parking is free.",
    "Parking is not free.", "Of course.", "Never.", "Yes and no.", "I think so.", "Sure!", "Nein.", "Ja, natürlich.",
    "Nein, es ist nicht offen.",
    "Sí.", "Non.", "Closed.", "Open.", "It is closed on Sundays.", "Only with a permit.", "No problem.",
    "No dogs are allowed.", "Yes, dogs are welcome.", "Dogs are not allowed.", "Thank you, yes.", "Yes, thank you.",
    "免费。", "不是。", "It rained all day.", "No, it did not rain.", "Das Parken ist nicht kostenlos.", "Forbidden.",
)  # fmt: skip
CHUNKS = (
    "Parking is free on Sundays. Dogs are not allowed in the shop.",
    "The shop is open from Monday to Saturday.",
)


def stances() -> Iterator[str]:
    for query in POLAR:
        yield query
        for affirms in (True, False) if polar_stems(query) else ():
            share, is_opposite, missing = polar_support(affirms, query, CHUNKS)
            yield f"  {'yes' if affirms else 'no'}: {share:.6g} {is_opposite} {sorted(missing)}"
        for answer in ANSWERS:
            if found := stance(answer, query):
                more = [name for name, is_so in (("bare", found.is_bare), ("word", found.is_word)) if is_so]
                yield f"  {answer} = {' '.join(['yes' if found.affirms else 'no', *more])}"


def told() -> Iterator[str]:
    yield from stances()
    cases = [json.loads(line) for line in SHORT.read_text(encoding="utf-8").splitlines()[::EVERY]]
    for query, answer in (*OWN, *((case["query"], case["right"][-1]) for case in cases)):
        said = query.rstrip("?？. ")
        words = {
            "query": query,
            "answer": answer,
            "upper": query.upper(),
            "said": said[:1].lower() + said[1:],
            "topic": " ".join(said.split()[-2:]),
        }
        yield f"{query} {answer}"
        for number, form in enumerate(FORMS):
            response = form.format(**words)
            left = without_echo(response, query)
            yield f"  {number} {'whole' if left == response else json.dumps(left, ensure_ascii=False)}"


def test_echoes_are_told_from_answers_as_they_were() -> None:
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    assert [*difflib.unified_diff(recorded, [*told()], "recorded", "now", n=1, lineterm="")] == []


if __name__ == "__main__":
    RECORDED.write_text("\n".join(told()) + "\n", encoding="utf-8")
