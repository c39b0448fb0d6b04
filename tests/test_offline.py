"""The offline judge ranks good above bad, says why, notices the faults it claims to notice, and stays in 0..1."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS, offline_metrics
from rag_eval.metrics.context_precision import average_precision, chunk_relevance
from rag_eval.metrics.offline.echo import without_echo
from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.metrics.offline.support import _in_places_of
from rag_eval.metrics.toxicity import OfflineToxicity
from rag_eval.records import METRIC_LABELS, Case, Outcome
from rag_eval.texts.words import read

EIFFEL = (
    "The Eiffel Tower is a wrought-iron lattice tower in Paris, France. "
    "It was completed in 1889 and is 330 metres tall.",
    "Gustave Eiffel founded the company that designed and built the tower from 1887 to 1889.",
)
QUERY = "How tall is the Eiffel Tower?"
REFERENCE = "The Eiffel Tower is 330 metres tall."


def case(response="", *, query=QUERY, reference=REFERENCE, chunks=EIFFEL):
    return Case(2, "GPT4", query, response, reference, chunks)


def score(metric, subject):
    found = asyncio.run(offline_metrics([metric])[0].measure(subject))
    assert found.metric == metric
    return found


def value(metric, subject):
    return score(metric, subject).value


@pytest.mark.parametrize("metric", METRIC_LABELS)
def test_every_metric_is_offered_explained_and_calibrated(metric):
    (built,) = offline_metrics([metric])
    assert built.name == metric
    assert built.explanation.endswith(".")
    assert 0 < CALIBRATED_THRESHOLDS[metric] < 1


def test_metrics_come_in_the_order_asked_for_and_unknown_names_are_refused():
    assert [metric.name for metric in offline_metrics(["context_recall", "faithfulness"])] == [
        "context_recall",
        "faithfulness",
    ]
    with pytest.raises(KeyError):
        offline_metrics(["toxicity"])


@pytest.mark.parametrize(
    ("metric", "good", "bad"),
    [
        (
            "faithfulness",
            case("The Eiffel Tower was completed in 1889."),
            case("Berlin has many lakes and forests."),
        ),
        (
            "answer_relevancy",
            case("The Eiffel Tower is 330 metres tall."),
            case("Bananas grow in warm countries."),
        ),
        ("answer_correctness", case("It is 330 metres tall."), case("It is very old.")),
        ("context_recall", case("x"), case("x", chunks=("Bananas grow in warm countries.",))),
        ("context_precision", case("x"), case("x", chunks=("Bananas grow in warm countries.", EIFFEL[0]))),
        (
            "answer_correctness",
            case(
                "Plants use light to make sugar.",
                reference="Green plants use the energy of light to make sugar.",
            ),
            case(
                "Plants have roots and leaves.",
                reference="Green plants use the energy of light to make sugar.",
            ),
        ),
    ],
)
def test_good_scores_above_bad(metric, good, bad):
    assert value(metric, good) > value(metric, bad)


@pytest.mark.parametrize(
    ("metric", "subject"),
    [
        ("faithfulness", case(EIFFEL[1])),
        ("context_recall", case("x", reference=EIFFEL[0])),
        ("answer_correctness", case(REFERENCE)),
        ("answer_correctness", case("It is 330 metres.", reference="330 metres")),
        ("context_precision", case("x", chunks=EIFFEL[:1])),
        ("answer_relevancy", case("The Eiffel Tower is 330 metres tall.")),
    ],
)
def test_a_perfect_case_scores_exactly_one(metric, subject):
    assert value(metric, subject) == 1.0


@pytest.mark.parametrize(
    ("response", "wrong"),
    [
        ("The Eiffel Tower is 330 metres tall.", "The Eiffel Tower is 440 metres tall."),
        ("The Eiffel Tower is a tower in Paris.", "The Eiffel Tower is a tower in Madrid."),
        ("The tower was completed in 1889.", "The tower was not completed in 1889."),
        ("It was completed in 1889.", "It was completed in 1889. Napoleon sold it to Belgium for 12 pounds."),
        ("Gustave Eiffel founded the company.", "The company founded Gustave Eiffel."),
    ],
    ids=["number", "name", "negation", "sentence", "order"],
)
def test_one_fault_in_a_supported_response_costs_faithfulness(response, wrong):
    assert value("faithfulness", case(wrong)) < value("faithfulness", case(response)) - 0.05


@pytest.mark.parametrize("response", ["42.", "7)", "[3]"])
def test_a_response_that_looks_like_a_list_marker_or_a_citation_alone_is_judged(response):
    assert value("faithfulness", case(response)) == 0.0
    assert value("context_recall", case("x", reference=response)) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France? Paris.",
        "You asked what the capital of France is. It is Paris, the city on the Seine, since long ago.",
    ],
)
def test_the_text_of_the_ground_truth_is_right_even_if_it_repeats_the_query(text):
    assert (
        value("answer_correctness", case(text, query="What is the capital of France?", reference=text)) == 1.0
    )


def test_a_number_with_a_full_stop_is_an_answer():
    assert value("answer_correctness", case("42.", reference="42")) == 1.0
    assert value("faithfulness", case("42.", chunks=("It weighs 42 kg.",))) == 1.0


@pytest.mark.parametrize(
    ("written", "stated"),
    [
        ("It cost 1,250,000 dollars.", "It cost 1250000 dollars."),
        ("It covers five kilometres.", "It covers 5 km."),
        ("Growth was 3.50%.", "Growth was 3.5 percent."),
        ("Bears don't fly.", "Bears do not fly."),
    ],
)
def test_another_spelling_of_the_same_fact_is_supported(written, stated):
    assert value("faithfulness", case(written, chunks=(stated,))) == 1.0


def test_a_negation_that_the_chunks_have_too_is_no_denial():
    chunks = ("The old bridge is not open to cars.",)
    assert value("faithfulness", case("The bridge is not open to cars.", chunks=chunks)) > 0.8


def test_a_number_from_the_query_is_not_held_against_the_response():
    chunks = ("Paris hosted the games.",)
    told = case("Paris hosted the games in 1924.", query="Who hosted the games in 1924?", chunks=chunks)
    untold = case("Paris hosted the games in 1924.", query="Who hosted the games?", chunks=chunks)
    assert value("faithfulness", told) > value("faithfulness", untold)


def test_faithfulness_names_the_words_that_are_not_in_the_chunks():
    found = score("faithfulness", case("The tower was completed in 1889. Napoleon disliked it."))
    first, second = found.evidence
    assert (first.subject, first.verdict, first.favourable, first.reason) == (
        "sentence",
        "supported",
        True,
        "",
    )
    assert (second.verdict, second.favourable) == ("not supported", False)
    assert second.reason == "not in the chunks: Napoleon, disliked"


def test_a_denial_is_named_in_the_evidence():
    (found,) = score("faithfulness", case("The tower was not completed in 1889.")).evidence
    assert "negated here, but not in the chunks" in found.reason


def test_context_recall_judges_each_sentence_of_the_reference():
    found = score(
        "context_recall", case("x", reference="It was completed in 1889. Bananas grow in warm countries.")
    )
    assert [(one.verdict, one.favourable) for one in found.evidence] == [("found", True), ("missing", False)]
    assert found.value == pytest.approx(2 / 6)  # by their content words: 2 and 4


def test_context_precision_ranks_its_chunks_and_names_the_useless_ones():
    found = score("context_precision", case("x", chunks=("Bananas grow in warm countries.", EIFFEL[0])))
    assert [(one.rank, one.verdict) for one in found.evidence] == [(1, "not useful"), (2, "useful")]
    assert found.value == 0.5


def test_context_precision_without_a_reference_is_judged_against_the_response():
    chunks = ("Bananas grow in warm countries.", EIFFEL[0])
    assert value("context_precision", case(REFERENCE, reference=None, chunks=chunks)) == 0.5


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([True, True, True], 1.0),
        ([False, False], 0.0),
        ([], 0.0),
        ([False, True], 0.5),
        ([True, False, True], 5 / 6),
    ],
)
def test_average_precision_is_exact(useful, expected):
    assert average_precision(useful) == pytest.approx(expected, abs=1e-15)


def test_a_short_reference_may_be_wrapped_in_a_sentence_and_words_of_the_query_count_less():
    who = case("It was designed by Gustave Eiffel.", query="Who built the tower?", reference="Eiffel")
    assert value("answer_correctness", who) == 1.0
    echo = case(
        "The tower was built by someone.", query="Who built the tower?", reference="Eiffel built the tower"
    )
    wrong = case("Queen", query="Who built the tower?", reference="Eiffel built the tower")
    terse = case("Gustave Eiffel", query="Who built the tower?", reference="Eiffel built the tower")
    assert value("answer_correctness", wrong) == 0.0
    assert value("answer_correctness", echo) == pytest.approx(0.6344, abs=1e-4)
    assert value("answer_correctness", terse) == pytest.approx(0.9728, abs=1e-4)


def test_answer_correctness_names_what_is_missing_and_what_is_extra():
    reference = "Green plants use the energy of light to make sugar from water and air."
    missing, extra = score(
        "answer_correctness", case("Plants use light and magic.", reference=reference)
    ).evidence
    assert (missing.subject, missing.verdict) == ("reference", "only partly in the response")
    assert "sugar" in missing.reason
    assert (extra.subject, extra.reason) == ("response", "not in the reference: magic")


def test_a_reference_of_function_words_is_compared_by_all_words():
    assert value("answer_correctness", case("The Who", reference="The Who")) == 1.0
    assert value("answer_correctness", case("Queen", reference="The Who")) == 0.0


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("I'm sorry, I cannot answer that.", "the response declines to answer"),
        ("The provided context does not mention the height.", "the response declines to answer"),
        ("Unknown.", "the response declines to answer"),
        ("Je ne sais pas.", "the response declines to answer"),
        ("我不知道。", "the response declines to answer"),
        ("The tall Eiffel Tower", "the response only has words of the query"),
    ],
)
def test_refusals_and_echoes_are_irrelevant(response, reason):
    found = score("answer_relevancy", case(response))
    assert (found.value, found.reason) == (0.0, reason)


ECHOES = {
    "quoted": "Regarding “How tall is the Eiffel Tower?”: {}",
    "single quotes": "Regarding 'How tall is the Eiffel Tower?': {}",
    "without quotes": "Regarding how tall is the Eiffel Tower, {}",
    "without marks": "regarding how tall is the eiffel tower {}",
    "sentence": "How tall is the Eiffel Tower? {}",
    "colon": "How tall is the Eiffel Tower: {}",
    "capitals": "HOW TALL IS THE EIFFEL TOWER?! {}",
    "heading": "## **How tall is the *Eiffel Tower*?**\n\n{}",
    "white space": "How  tall is\n  the Eiffel\tTower?\n{}",
    "dialogue": "Q: How tall is the Eiffel Tower?\nA: {}",
    "behind": "{}\n(How tall is the Eiffel Tower?)",
    "behind, quoted": "{} That was “How tall is the Eiffel Tower”.",
    "twice": "“How tall is the Eiffel Tower?” How tall is the Eiffel Tower? {}",
    "asked": "You asked how tall the Eiffel Tower is. {}",
    "asked for": "You wanted to know: how tall is the Eiffel Tower? {}",
    "question of": "The question of how tall the Eiffel Tower is: {}",
    "as to": "As to how tall the Eiffel Tower is, {}",
    "when it comes to": "When it comes to how tall is the Eiffel Tower, {}",
    "thanks": "Thank you for asking how tall the Eiffel Tower is. {}",
    "explain": "Let me explain how tall the Eiffel Tower is. {}",
    "understand": "I understand that you would like to know how tall the Eiffel Tower is. {}",
    "your question": "In response to your question about how tall the Eiffel Tower is: {}",
}


@pytest.mark.parametrize("metric", METRIC_LABELS)
@pytest.mark.parametrize("answer", ["It is green.", "330 metres.", "The Eiffel Tower is 330 metres tall."])
@pytest.mark.parametrize("reference", [REFERENCE, None])
def test_repeating_the_query_changes_no_score(metric, answer, reference):
    plain = score(metric, case(answer, reference=reference))
    for name, echo in ECHOES.items():
        found = score(metric, case(echo.format(answer), reference=reference))
        if name in (
            "dialogue",
            "source",
            "behind, quoted",
            "behind, in other words",
        ):  # "A:" and "That was" stay
            assert metric == "faithfulness" or found.value == pytest.approx(plain.value, abs=0.05), name
        else:
            assert (found.value, found.outcome) == (plain.value, plain.outcome), name


@pytest.mark.parametrize(
    ("query", "response", "answer"),
    [
        ("How long is a loan?", "Four weeks – how long is a loan? – exactly.", "Four weeks – …? – exactly."),
        (
            "How long is a loan?",
            'Four weeks is the answer to "How long is a loan?".',
            'Four weeks is the answer to "…?".',
        ),
        ("How long is a loan?", 'Regarding "How long is a loan?": I do not know.', "I do not know."),
        ("Hours?", 'Regarding "Hours?": nine to five.', "nine to five."),
        ("Hours?", "Hours? Nine to five.", "Nine to five."),
        ("photosynthesis", 'Regarding "photosynthesis": it feeds plants.', "it feeds plants."),
        (
            "opening hours of the library",
            "Regarding opening hours of the library, nine to five.",
            "nine to five.",
        ),
        ("In 1912, who was king?", 'As to "In 1912, who was king?": George.', "George."),
        (
            "I lost my card. What does a new one cost?",
            '"I lost my card. What does a new one cost?": 5 euros.',
            "5 euros.",
        ),
        ("I lost my card. What does a new one cost?", "What does a new one cost? 5 euros.", "5 euros."),
        ("I lost my blue card. What now?", 'Regarding "I lost my blue card.": pay.', "pay."),
        ("Is parking free?", "You asked: is parking free? No information on it.", "No information on it."),
        ("Is parking free?", "You asked whether parking is free. Ask the office.", "Ask the office."),
        ("Is parking free?", "You would like to know if parking is free. It is green.", "It is green."),
        ("Who wrote Faust?", "Who wrote Faust? Yes, bananas.", "Yes, bananas."),
        ("Who wrote Faust?", "Bananas. Source: who wrote Faust", "Bananas. Source: …"),
        ("Who wrote Faust?", "My thoughts on who wrote Faust: bananas.", "My thoughts on …: bananas."),
        ("Is parking free?", "**Is parking free?** Parking is free.", "Parking is free."),
        (
            "Le parking est gratuit ?",
            "**Le parking est gratuit ?** Le parking est gratuit.",
            "Le parking est gratuit.",
        ),
        ("Who wrote Faust?", "As to who wrote Faust: Goethe.", "Goethe."),
        (
            "Who wrote Faust?",
            "Here is the answer to who wrote Faust: Goethe.",
            "Goethe.",
        ),
        (
            "What did the customer ask about the loan?",
            "You asked what the customer asked about the loan. The price.",
            "The price.",
        ),
        (
            "What did the customer ask about the loan?",
            "You want to know what the customer asked about the loan. The price.",
            "The price.",
        ),
        (
            "What did the customer ask about the loan?",
            "Regarding what the customer asked about the loan: the price.",
            "the price.",
        ),
        (
            "Was hat der Kunde zum Darlehen gefragt?",
            "Sie haben gefragt, was der Kunde zum Darlehen gefragt hat. Den Preis.",
            "Den Preis.",
        ),
        (
            "¿Qué preguntó el cliente sobre el préstamo?",
            "Has preguntado qué preguntó el cliente sobre el préstamo. El precio.",
            "El precio.",
        ),
        ("Can I ask how long a loan is?", "You asked how long a loan is. Four weeks.", "Four weeks."),
        ("My question: how long is a loan?", "You asked how long a loan is. Four weeks.", "Four weeks."),
        (
            "How do I renew a loan?",
            "How do I renew a loan?\n\n1. Log in.\n2. Renew.",
            "1. Log in.\n2. Renew.",
        ),
    ],
)
def test_what_is_left_without_the_query_is_the_answer(query, response, answer):
    assert without_echo(response, query).strip() == answer


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("How long is a loan?", ["A loan is four weeks long.", "How long a loan is depends on the book."]),
        (
            "Who wrote Faust?",
            [
                "Goethe wrote Faust.",
                "It was Goethe who wrote Faust.",
                "The man who wrote Faust is Goethe.",
                "Goethe, who wrote Faust, was a poet.",
            ],
        ),
        ("Can you feel the love tonight", ["Can You Feel the Love Tonight is a song."]),
        ("the shop opens at nine?", ["To answer your question, the shop opens at nine."]),
        ("Hours?", ["Hours: 9 to 5.", "Our hours are 9 to 5."]),
        ("parking", ["Do you need parking? It is free.", "Regarding parking, it is free."]),
        ("photosynthesis", ["**Photosynthesis** feeds plants.", '"Photosynthesis" is a process.']),
        (
            "effects of the new law",
            ["The effects of the new law are small.", "Here are effects of the new law: few."],
        ),
        ("opening hours of the library", ["Answer: Opening hours of the library are 9 to 5."]),
        ("use the query API", ["To use the query API, send a query."]),
        (
            "Is parking free?",
            ["Parking is free.", "Yes, parking is free.", "To answer your question, parking is free."],
        ),
        (
            "Is parking free if I come on Sunday?",
            [
                "Is parking free if I come on Sunday? Yes.",
                "Is parking free if I come on Sunday? No, not then.",
                "Is parking free if I come on Sunday: yes, but only then.",
                "To answer your question, parking is free if you come on Sunday.",
            ],
        ),
        ("¿El aparcamiento es gratis?", ["¿El aparcamiento es gratis? Sí.", "Sí el aparcamiento es gratis."]),
        ("Ist das Parken frei?", ["Ist das Parken frei? Ja.", "Das Parken ist frei, wenn Sie bleiben."]),
        ("停车免费吗？", ["停车免费吗？是的。", "停车免费。"]),
        ("駐車は無料ですか？", ["駐車は無料ですか？はい。"]),
        ("What drives change?", ["Questions drive change.", "Demand drives change."]),
        ("What do I send to the API?", ["Send a query to the API."]),
        ("When do I get a refund when a trip is cancelled?", ["When a trip is cancelled, within a week."]),
        ("Where the Wild Things Are", ['"Where the Wild Things Are" is a book.']),
        ("what is What a Wonderful World about?", ['"What a Wonderful World" is about beauty.']),
        (
            "when did are you smarter than a fifth grader air",
            ['"Are You Smarter Than a Fifth Grader?" aired in 2007.'],
        ),
        ("How to avoid obesity?", ["The text does not say how to avoid obesity."]),
        ("I lost my card. What does a new one cost?", ["You lost your card, so a new one costs 5 euros."]),
        ("The firm was founded in 1912. When was it founded?", ["The firm was founded in 1912."]),
        ("What is the capital, Paris or Lyon?", ["The capital is Paris."]),
        (
            "What did the customer ask about the loan?",
            ["The customer asked what the loan costs.", "The customer asked how long the loan is."],
        ),
        (
            "What did I ask about the loan?",
            ["You asked what the loan costs.", "You asked for what it costs."],
        ),
        ("What did the user ask?", ["The user asked what time it is.", "She wondered what time it is."]),
        ("What does the customer want to know?", ["The customer asked what a loan costs."]),
        ("What was the customer's question?", ["The customer's question was what the loan costs."]),
        ("Did the customer ask how long a loan is?", ["The customer asked how long a loan is."]),
        (
            "Did the customer ask about free parking?",
            ["The customer asked whether parking is free.", "The customer asked if parking is free."],
        ),
        (
            "Was hat der Kunde zum Darlehen gefragt?",
            [
                "Der Kunde hat gefragt, was das Darlehen kostet.",
                "Der Kunde fragte, was das Darlehen kostet.",
                "Er wollte wissen, was das Darlehen kostet.",
                "Die Frage war, was das Darlehen kostet.",
            ],
        ),
        ("Was wollte er wissen?", ["Er hat gefragt, was ein Darlehen kostet.", "Er fragte, was es kostet."]),
        (
            "¿Qué preguntó el cliente sobre el préstamo?",
            [
                "El cliente preguntó qué cuesta el préstamo.",
                "El cliente ha preguntado qué cuesta el préstamo.",
                "Quería saber qué cuesta el préstamo.",
                "La pregunta del cliente fue qué cuesta el préstamo.",
            ],
        ),
        (
            "Le parking est gratuit ?",
            [
                "Oui, le parking est gratuit.",
                "Le parking est gratuit, sauf le dimanche.",
                "Pour répondre à votre question, le parking est gratuit.",
                "« Le parking est gratuit », dit le plan.",
            ],
        ),
    ],
)
def test_an_honest_answer_in_the_words_of_the_query_is_kept(query, answers):
    assert [without_echo(answer, query) for answer in answers] == answers


@pytest.mark.parametrize(
    "response",
    [
        QUERY,
        f"{QUERY} {QUERY}",
        f"Regarding “{QUERY}”:",
        "You asked how tall the Eiffel Tower is.",
        "**How tall is the Eiffel Tower**\n\n",
    ],
)
def test_a_response_that_only_repeats_the_query_answers_nothing(response):
    reason = "the response only repeats the query"
    for metric in ("answer_relevancy", "answer_correctness"):
        found = score(metric, case(response))
        assert (found.value, found.reason, found.evidence) == (0.0, reason, ())
    found = score("faithfulness", case(response))
    assert (found.outcome, found.reason) == (Outcome.NOT_APPLICABLE, f"{reason} and claims nothing")


def test_the_evidence_says_that_the_repeated_query_does_not_count():
    response = f"{QUERY} It is old."
    (found,) = score("answer_relevancy", case(response)).evidence
    assert found.reason == "not taken up, apart from repeating the query: tall, Eiffel, Tower"
    found = score("answer_correctness", case(response)).evidence[0]
    assert found.reason.startswith("not in the response, apart from repeating the query: ")
    found = score("answer_correctness", case(response, reference="The Who")).evidence[0]
    assert found.reason == "not in the response, apart from repeating the query: the, who"


def test_a_question_that_the_ground_truth_repeats_is_an_answer():
    query = "Which question is asked most, how long is a loan or what is a fine?"
    answer = "Which question is asked most? How long is a loan."
    assert value("answer_correctness", case(answer, query=query, reference=answer)) == 1.0


@pytest.mark.parametrize(
    ("metric", "subject"),
    [
        ("faithfulness", case("…")),
        ("context_recall", case("x", reference="…")),
        ("answer_correctness", case("x", reference="…")),
        ("answer_relevancy", case("x", query="???")),
    ],
)
def test_without_a_word_to_judge_a_metric_is_not_applicable(metric, subject):
    assert score(metric, subject).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    "response", ["I'm sorry. I don't know.", "Unknown.", "Je ne sais pas.", "我不知道。"]
)
def test_a_mere_refusal_is_no_hallucination(response):
    """It claims nothing that the context could support; what else a longer one says is judged."""
    found = score("faithfulness", case(response))
    assert (found.outcome, found.value) == (Outcome.NOT_APPLICABLE, None)
    longer = f"{response} The tower is painted green, not grey."
    assert score("faithfulness", case(longer)).outcome is Outcome.SCORED


def test_a_response_without_a_word_is_irrelevant():
    assert score("answer_relevancy", case("…")).reason == "the response contains no words"


@pytest.mark.parametrize("metric", ["answer_correctness", "context_recall"])
def test_a_ground_truth_without_a_word_is_not_applicable(metric):
    found = score(metric, case("330 metres.", reference="…"))
    assert (found.outcome, found.reason) == (
        Outcome.NOT_APPLICABLE,
        "the ground truth contains no words",
    )


@pytest.mark.parametrize(
    "response",
    [
        "The tower is not as tall as people say: 330 metres.",
        "I do not have live data. However, at the last survey the Eiffel Tower was 330 metres tall.",
        "No tower in Paris is taller than the Eiffel Tower with its 330 metres.",
    ],
)
def test_a_negation_in_an_answer_is_no_refusal(response):
    assert not is_refusal(read(response))


def test_the_wrong_kind_of_answer_is_worth_half():
    right = score("answer_relevancy", case("The Eiffel Tower is 330 metres tall."))
    wrong = score("answer_relevancy", case("The Eiffel Tower is tall like a mountain."))
    assert wrong.value == right.value / 2
    assert wrong.reason == "the query asks for a number, the response gives none"


def test_a_short_response_is_judged_with_the_chunk_sentence_it_comes_from():
    alone = value("answer_relevancy", case("1889", query="When was the Eiffel Tower completed?", chunks=None))
    sourced = value("answer_relevancy", case("1889", query="When was the Eiffel Tower completed?"))
    assert alone == 0.5  # it is a date
    assert sourced > 0.3


def test_answer_relevancy_names_the_words_of_the_query_that_are_not_taken_up():
    (found,) = score("answer_relevancy", case("The tower has 330 metres.")).evidence
    assert (found.subject, found.verdict) == ("query", "partly addressed")
    assert found.reason == "not taken up: tall, Eiffel"


@pytest.mark.parametrize(
    ("query", "reference", "useful", "useless"),
    [
        ("东京塔有多高？", "东京塔高333米。", "东京塔位于东京，高333米。", "香蕉生长在温暖的国家。"),
        (
            "Сколько длится война?",
            "Война длилась семь лет.",
            "Эта война длилась семь лет и три дня.",
            "Бананы растут.",
        ),
        (
            "متى بني البرج؟",
            "بني البرج عام 1889.",
            "تم بناء البرج حين بني البرج عام 1889.",
            "ينمو الموز في البلاد.",
        ),
        ("หอคอยสูงเท่าไร", "หอคอยสูง 330 เมตร", "หอคอยนี้สูง 330 เมตร", "กล้วยเติบโตในเขตร้อน"),
        ("टावर कितना ऊँचा है?", "टावर 330 मीटर ऊँचा है।", "यह टावर 330 मीटर ऊँचा है।", "केले गर्म देशों में उगते हैं।"),
        (
            "Wie hoch ist der Turm?",
            "Der Turm ist 330 Meter hoch.",
            "Der Turm misst 330 Meter.",
            "Bananen wachsen.",
        ),
    ],
    ids=["zh", "ru", "ar", "th", "hi", "de"],
)
def test_languages_without_a_stop_list_or_spaces_are_judged(query, reference, useful, useless):
    good, bad = chunk_relevance(query, reference, [useful, useless])
    assert good > 0.4 > bad


PIECES = (
    "0 1 12 007 1,2,3 1.2.3 1:30 9h30 3.50 1.250 1,250.00 2020-01-02 +49 (0)30 1/2 ½ ١٢ 三十 千万 一二三 B12 C++ 3. "
    "億 万 円 時 午後 % percent pm p.m. a.m. h Uhr million mille Mio. dozen to – until bis and € us$ USD cents k km "
    "hours Montag 1st Oktober [1] [1,2] (see ) Source: . , ; : ! ? “ ” « ’ * | - • 1) yes No ja not never Who How Is "
    "The A of Anna Edmund Hale Zürich 是 不 がある ไม่มี नहीं нет ß İ \u0301 \u200d 🙂 nothing found"
).split(" ")
"""What is read as part of an amount, a time, a citation, a question or a name."""
amounts = st.lists(st.sampled_from([*PIECES, " ", " ", "\n", "\u202f", "9" * 40]), max_size=20).map("".join)
texts = (
    st.text(max_size=120)
    | amounts
    | st.sampled_from(["", " ", "…", "The Who", "not", "12", "No.", "東京", EIFFEL[0]])
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    query=texts,
    response=texts,
    reference=texts | st.none(),
    chunks=st.lists(texts, max_size=3).map(tuple) | st.none(),
)
def test_any_case_is_scored_in_range_or_not_applicable_and_always_alike(query, response, reference, chunks):
    subject = Case(2, "bot", query, response, reference, chunks)
    for metric in METRIC_LABELS:
        first = score(metric, subject)
        assert first == score(metric, subject)
        assert first.outcome in (Outcome.SCORED, Outcome.NOT_APPLICABLE)
        if first.outcome is Outcome.SCORED:
            assert 0 <= first.value <= 1


@given(
    st.lists(st.sampled_from(["tower", "Paris", "1889", "not", "banana", "is", "Eiffel", "."]), max_size=15)
)
def test_saying_what_a_chunk_says_is_faithful(pieces):
    text = " ".join(pieces)
    if read(text).content:
        assert value("faithfulness", case(text, chunks=(text,))) == 1.0


def toxicity(query):
    return asyncio.run(OfflineToxicity().judge_query(query))


@pytest.mark.parametrize(
    "query",
    [
        "Where is Scunthorpe?",
        "Assess the class of this cocktail, assassin bug and bassoon.",
        "How do I kill the process and its child processes?",
        "I'll shoot you an email about the hash and the butt weld.",
        "Who wrote The Idiot?",
        "What does heat retardant foam do in Essex and Penistone?",
        "Is abort() safe after a hanging thread was executed?",
        "Who is Dick Cheney?",
        "",
    ],
)
def test_harmless_queries_stay_below_the_flag(query):
    assert toxicity(query).value < 0.5


@pytest.mark.parametrize(
    ("query", "verdict"),
    [
        ("I will kill you", "threat"),
        ("Go kill yourself!", "threat"),
        ("Fuck you, answer me", "abuse"),
        ("what the f*ck is this", "profanity"),
        ("This is bullshit", "profanity"),
        ("You’re such an idiot", "insult"),
        ("stupid bot", "insult"),
        ("Du Arschloch", "abuse"),
        ("Va te faire foutre", "abuse"),
        ("eres un hijo de puta", "abuse"),
        ("Scheiße!", "profanity"),
        ("иди нахуй", "abuse"),
        ("你他妈的", "abuse"),
    ],
)
def test_toxic_queries_are_flagged_with_what_was_found(query, verdict):
    found = toxicity(query)
    assert found.value >= 0.5
    assert verdict in {one.verdict for one in found.evidence}


def test_toxicity_grows_with_what_is_found_and_never_exceeds_one():
    assert 0 < toxicity("damn").value < toxicity("damn, what crap").value < 0.5
    assert toxicity("I will kill you, you idiot, you fucking asshole").value == 1.0


@pytest.mark.slow
def test_a_long_hostile_text_is_judged_in_time_linear_in_its_length():
    started = time.process_time()
    for piece in ("not ", "A. ", "[1", "you ", "f*", "((", "1,000,", "I do not ", "it is for IT and "):
        text = piece * (100_000 // len(piece))
        for metric in METRIC_LABELS:
            score(metric, case(text, query=text[:1000], reference=text[:2000], chunks=(text,)))
        toxicity(text)
    assert time.process_time() - started < 8


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["\n", "？", "。"])
def test_a_query_of_nothing_but_marks_is_read_in_linear_time(mark: str):
    started = time.process_time()
    score("answer_correctness", case("Ten hours.", query=mark * 60_000, reference="10 hours"))
    assert time.process_time() - started < 8


def test_a_query_whose_lines_are_all_repeated_is_compared_in_linear_time():
    started = time.process_time()
    response, query = "Press 5 for help. " * 2_000, "Press 5 for the help\n" * 2_000
    score("answer_correctness", case(response, query=query, reference="10 hours"))
    assert time.process_time() - started < 8


def test_thousands_of_chinese_digits_in_a_row_are_read_in_linear_time():
    started = time.process_time()
    score(
        "context_recall", case("十小时", query="多久？", reference="10 hours", chunks=(f"{'零' * 60_000}…",))
    )
    assert time.process_time() - started < 8


def test_a_number_is_not_in_the_place_of_another_because_both_begin_their_sentences() -> None:
    nearest = ["12", "guests", "euros"]
    assert list(_in_places_of(["5", "members", "euros"], nearest)) == []
    assert list(_in_places_of(["5", "guests", "euros"], nearest)) == ["5"]
