"""What is left of responses that repeat their query in many ways, which answers say yes or no, what a query asks for,
and what a short answer and amounts are beside the truth, to the letter.

`echoes_read.txt` has it for queries of `short_answers.jsonl` and others. `python tests/test_echoes_read.py` writes it
anew after a change that is wanted; read what differs before you keep it.
"""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from rag_eval.metrics.offline.asking import asking_of, asks, has_opposite, polar_stems
from rag_eval.metrics.offline.brief import (
    given_names,
    in_short,
    names_another,
    polar_support,
    says_not_given,
    stance,
)
from rag_eval.metrics.offline.choices import options_left_out, takes_another_option
from rag_eval.metrics.offline.echo import without_echo
from rag_eval.metrics.offline.kinds import expected_kind
from rag_eval.texts.amounts import differ, in_other_units, other_codes, restated
from rag_eval.texts.signs import opposite_numbers, restated_signs
from rag_eval.texts.words import read, read_claim

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

COMPARED = """
    Who designed it? | Anna Keller designed it. | Tom Keller designed it.
    Who designed it? | It was Anna Keller, and Max Brod built it. | Tom Keller
    Who designed it? | It was Anna Keller. | Tom Keller
    Who designed it? | In the year 1900 Anna Keller; then it burnt. | Anna Brandt, in 1901
    Who designed it? | The one from New York: Anna Keller. | Anna York
    Who designed it? | Anna Keller from Bonn | Anna Brandt
    Who designed it? | Anna Keller. Bonn | Anna Brandt
    Who designed it? | by Maria da Silva | Maria Santos
    Who designed it? | Maria Anna Sophia da Silva Costa Lima | Maria Santos
    Who designed it? | Keller | Tom Keller.
    Who designed it? | Anna Keller | A. Brandt, Keller
    Who designed it? | Anna Keller | Professor Keller
    Who designed it? | Mayor Anna Keller | Tom Keller
    Who designed it? | anna keller | tom keller
    Who designed it? | Anna Kuhn | Anna Cuhn
    Who designed it? | Anna Kuhn | Anna Kahnmann
    Who designed it? | Max Brod | Max B.
    Who designed it? | Max Brod | August Brod
    Who wrote the drama? | Johann Goethe | August von Goethe
    Who wrote the drama? | Johann von Goethe | Goethe
    Who is the wife of Max Brod? | Eva Brod | Ada Brod
    Which city is it in? | New Haven | New York
    Wer entwarf es? | Anna Keller | Die Statikerin Keller
    Is it open or closed? | It is open. | Closed.
    Is it open or closed? | It is open. | Not closed.
    Is it open or closed? | It is open. | Open or closed, who knows.
    Is it open or closed? | It is open. | Open, then closed.
    Do you want tea, coffee or water? | Tea. | Coffee, please.
    Do you want tea, coffee or water? | Tea and coffee. | Milk.
    Is it red, green or blue? | It is green. | Blue is nicer than red.
    Is it free or not? | It is free. | It is not.
    Is it free or not? | Not. | Free.
    Who sells nuts or bolts? | Ada. | Nuts.
    Is it on or off? | On. | It is off.
    Do I take it before or after meals? | After meals. | Before.
    Which is bigger, the hall or the yard? | The hall. | The yard of the town.
    Does the bus or the train go there? | The bus does. | The train
    Is or was it? | It is. | It was.
    Is it tea or tea? | Tea. | Tea
    Do you sell tea or the like? | Tea. | Tea
    Is it the tea or? | Tea. | Tea
    停车是免费还是收费？ | 免费。 | 收费。
    Who founded it? | Nobody knows. | The founder is unknown.
    Who founded it? | Ada. | The founder is not known. It is old.
    Who founded it? | Ada. | The mother of the founder is unknown.
    Who founded it? | Ada. | It is not stated who founded it.
    Who founded the mill? | The name was never found. | The founder of the mill was not mentioned.
    Is the mill old? | It is. | The age of the mill is unknown.
    What does the mill cost? | The cost is not known. | The cost of the mill is not known.
    ¿Quién lo fundó? | Ada. | No se sabe quién lo fundó.
    Wie alt ist die Mühle? | 90 Jahre | Das Alter der Mühle ist nicht angegeben.
    Can I pay when I leave? | Yes. | No, before.
    Is it that the mill is closed? | It is. | The mill is open.
    How much does the mill cost? | 90 euros | 80 dollars in January
    When was the mill built? | In 1900. | On Monday
    How long is the mill open? | Ten days | Until 9 pm.
    Where is the mill? | In Bonn | Near the river.
    Why is the mill old? | Nobody built another. | Because it was built early.
    Which of the two is cheaper? | The first. | Both.
    How many mills are there? | Two | Some.
    What percentage is free? | 25 % | A quarter
    Qui l'a fondé ? | Ada. | Une ville
    Où est le moulin ? | À Bonn | ici
    Où se trouve le moulin ? | À Bonn | ici
    Quand était-ce ? | En 1900 | hier
    Combien coûte-t-il ? | 9 euros | peu
    Wann war das? | 1900 | gestern
    Wo ist die Mühle? | In Bonn | hier
    Wie viele gibt es? | Zwei | einige
    ¿Cuándo fue? | En 1900 | ayer
    ¿Dónde está? | En Bonn | aquí
    谁设计的？ | 李四 | 张三
    When and where was it built? | In 1900 in Bonn | nobody knows
"""
OF_MILLS = (
    "The mill was designed by Keller. Max Brod and August von Goethe wrote of it.",
    "A mill costs much.",
)

AMOUNTS = r"""
    It is for those over 25. | It is for those under 25.
    25 or more | 25 or less
    at least 25 people | at most 25 people
    not more than 25 people | more than 25 people
    no fewer than twenty people | fewer than twenty people
    It is up by 5%. | It is down by 5%.
    It rose by 5 percent. | It fell by 5 percent.
    It did not rise by 5 percent. | It fell by 5 percent.
    Children under 12 are free. | Children over 12 pay.
    All but those over 25. | All those under 25.
    Over 2 million visited it. | Under two million visited it.
    über 25 Jahre | unter 25 Jahre
    plus de 25 ans | moins de 25 ans
    25 and over, or under 25 | under 25
    -5 °C | 5 °C
    minus five degrees | -5 degrees
    minus 5 | −5
    It is 5 -7. | It is -7.
    (5) | -5
    - 5 apples\n- 6 pears | -5 apples
    5 below zero | -5
    +5 | -5
    9 am -5 pm | -5
    19 h 30 | 7:30 pm
    19 h 30 | 19 h 40
    At 19 h 30 for 2 hours | At 19:30 for 3 hours
    19 h 30 | 19:30
    24 months | two years
    24 months | three years
    24 | 24 months
    3 kg | 3000 g
    3 kg | 3 g
    3 kg or 3 pounds | 3 pounds
    5 euros | 5 dollars
    5 euros | 5
    2 million euros | 2 billion euros
    2 million euros | 2,000,000 euros
    a third | 1/3
    a quarter | 25 %
    3 of 4 | 75 %
    5 % | 5 percentage points
    noon | 12 pm
    midnight | 0:00
    9 | 9 pm
    3 May | May 4
    3 May 2024 | 2024-05-03
    May 2024 | June 2024
    first | second
    1st | first
    gate B7 | gate B8
    room 12b | room 12c
    A4 | A 4
    twice | two times
    every 2 days | every 3 days
    half an hour | 30 minutes
    an hour and a half | 90 minutes
    two and a half years | 30 months
    two and three years | five years
    a hundred and twenty | 120
    twenty hundred | 2000
    a dozen | 12
    1.250 g | 1250 g
    10 °C | 50 °F
    anderthalb Liter | 1,5 l
    zwölf | 12
    dix-sept | 17
    五万円 | 50000 yen
    三年 | 3 years
    ten to twelve | 10-12
    2-3 days | 2 to 3 days
"""


def of_amounts() -> Iterator[str]:
    for line in map(str.strip, AMOUNTS.strip().splitlines()):
        texts = line.replace("\\n", "\n").split(" | ")
        one, other = map(read, texts)
        lacking = one.stems - other.stems
        told = {
            "opposite": opposite_numbers(one, [other], ""),
            "signs": restated_signs(one, [other]),
            "restated": restated(texts[0], texts[1:], lacking),
            "in other units": in_other_units(texts[0], texts[1:]),
            "other codes": other_codes(texts[0], texts[1:]),
        }
        found = [f"{name} {sorted(each)}" for name, each in told.items() if each]
        yield f"{line} = {', '.join([*found, 'differ' * differ(*texts)])}".rstrip(", ")


def compared() -> Iterator[str]:
    for line in map(str.strip, COMPARED.strip().splitlines()):
        query, truth, answer = line.split(" | ")
        said = read_claim(answer).whole
        told = {
            "another name": names_another(answer, truth, query),
            "another option": takes_another_option(said, read(truth), query),
            "not given": says_not_given(said, query, OF_MILLS, truth),
            "the opposite": has_opposite(answer, query),
            "of the kind": (kind := expected_kind(query)) and kind.is_given(answer, query),
        }
        yield f"{line} = {', '.join(name for name, is_so in told.items() if is_so)}".rstrip()
        left, given = options_left_out(said.stems, answer, query), given_names(truth, query, OF_MILLS)
        yield f"  left out {sorted(left) if left is not None else None}, sought {in_short(truth, query, OF_MILLS)}"
        told_by = kind and f"{kind.name}{' for certain' if kind.is_certain else ''}"
        yield f"  given names {sorted(given)}, {told_by}, {[*asking_of(query)]}, {asks(query)}"


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
    yield from compared()
    yield from of_amounts()
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
