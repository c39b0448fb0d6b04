"""Honest replies count, however a judge words them; what leaves something out is asked for once more; examples of the
prompt that come back are not believed.

The texts are in tests/honest_texts.json: 17 subjects in eight languages, two of them those of the prompts' examples.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure, read_boxes, read_sheet
from fake_judge import Answer, FakeJudge, Request, completion, task_of
from files import write_table
from in_process import DictStore, ObjectJudge, run

from rag_eval.errors import JudgeError, RefusedReplyError
from rag_eval.judge.calls import Call
from rag_eval.judge.replies import read_reply
from rag_eval.judge.scheduler import Scheduler
from rag_eval.metrics import ragas_prompts as prompts
from rag_eval.metrics.catalogue import llm_metrics
from rag_eval.metrics.omissions import claims_among, unclassified_sentences, unmatched_statements
from rag_eval.metrics.ragas_import import load
from rag_eval.metrics.reply_types import Attributions, Classification, Statements, StatementVerdicts
from rag_eval.records import LEFT_OUT, Case, Outcome, Score
from rag_eval.texts.words import sentences

TEXTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "honest_texts.json").read_text("utf-8"))
BY_NAME = {(entry["topic"], entry["language"]): entry for entry in TEXTS}
OF_EXAMPLES = {"einstein", "sun"}
"""Subjects that the prompts' examples have as well."""


def reasoned(statements: Sequence[str], **verdict: int) -> list[dict[str, Any]]:
    return [{"statement": each, "reason": "The texts say so.", **verdict} for each in statements]


def classification(hits: Sequence[str], extra: Sequence[str], missing: Sequence[str]) -> dict[str, Any]:
    return {"TP": reasoned(hits), "FP": reasoned(extra), "FN": reasoned(missing)}


# What an honest judge may reply, by kind: the statements that were sent, and those in TP, FP and FN

Kind = Callable[[dict[str, Any]], tuple[list[str], list[str], dict[str, Any]]]


def english(entry: dict[str, Any]) -> dict[str, Any]:
    return BY_NAME[entry["topic"], "en"]


KINDS: dict[str, Kind] = {
    "one statement supports two": lambda e: (
        [e["response"]], e["ground_truth"][:2], classification([e["response"]], [], [])
    ),
    "one supports two, a third is missing": lambda e: (
        [e["response"]], e["ground_truth"], classification([e["response"]], [], e["ground_truth"][2:])
    ),
    "merged": lambda e: (e["split"], e["ground_truth"][:2], classification([e["response"]], [], [])),
    "merged in English": lambda e: (e["split"], e["ground_truth"][:2], classification([e["english"]], [], [])),
    "translated": lambda e: (
        e["split"], e["ground_truth"], classification(english(e)["split"], [], english(e)["ground_truth"][2:])
    ),
    "reworded and in another order": lambda e: (
        e["split"], e["ground_truth"], classification(e["reworded"][::-1], [], e["ground_truth"][2:])
    ),
    "finer": lambda e: (e["split"], e["ground_truth"], classification(e["finer"], [], e["ground_truth"][2:])),
    "ground truth merged": lambda e: (
        [e["false_statement"]],
        e["ground_truth"],
        classification([], [e["false_statement"]], [e["coarse"], e["ground_truth"][2]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_honest_classification_is_taken_at_once(kind: str) -> None:
    for entry in TEXTS:
        ours, theirs, reply = KINDS[kind](entry)
        call = Call(
            "t",
            prompts.classification_prompt(entry["query"], ours, theirs),
            Classification,
            agrees_with={"response_statements": ours, "reference_statements": theirs},
        )
        assert isinstance(read_reply(json.dumps(reply), call), Classification)


BESIDE: dict[str, Callable[[dict[str, Any]], str]] = {
    "greeting": lambda e: " ".join([e["greeting"], *e["ground_truth"]]),
    "closing": lambda e: " ".join([*e["ground_truth"], e["closing"]]),
    "heading": lambda e: f"{e['heading']}\n\n{' '.join(e['ground_truth'])}",
    "source": lambda e: f"{' '.join(e['ground_truth'])}\n{e['source']}",
    "question": lambda e: " ".join([*e["ground_truth"], e["question"]]),
}
"""A ground truth with something in it that claims nothing."""


@pytest.mark.parametrize("kind", BESIDE)
def test_a_ground_truth_may_have_sentences_that_need_no_verdict(kind: str) -> None:
    for entry in TEXTS:
        text, found = BESIDE[kind](entry), reasoned(entry["ground_truth"], attributed=1)
        call = Call(
            "t",
            prompts.attribution_prompt(entry["query"], "c1", text),
            Attributions,
            agrees_with={"text": text},
        )
        assert isinstance(read_reply(json.dumps({"classifications": found}), call), Attributions)


def test_statements_and_verdicts_may_be_reworded_split_and_translated() -> None:
    for entry in TEXTS:
        response, split = entry["response"], entry["split"]
        text = Call(
            "t",
            prompts.statements_prompt(entry["query"], response),
            Statements,
            agrees_with={"text": response},
        )
        for statements in (
            split,
            entry["reworded"],
            entry["finer"],
            [entry["english"]],
            english(entry)["split"],
        ):
            assert isinstance(read_reply(json.dumps({"statements": statements}), text), Statements)
        sent = Call(
            "t",
            prompts.verdicts_prompt(response, split),
            StatementVerdicts,
            agrees_with={"statements": split},
        )
        for statements in (split, entry["reworded"], split[::-1]):
            reply = {"statements": reasoned(statements, verdict=1)}
            assert isinstance(read_reply(json.dumps(reply), sent), StatementVerdicts)


# Whole runs


class Honest:
    """A judge on loopback whose classifications merge, and which classifies no greetings; all else by counted words."""

    def __init__(self, entries: Sequence[dict[str, Any]]) -> None:
        self._entries = entries

    def __call__(self, request: Request) -> Answer | None:
        entry = next((each for each in self._entries if each["response"] in request.prompt), None)
        reference = next((each for each in self._entries if each["greeting"] in request.prompt), None)
        if request.task == "statements" and entry:
            return completion(json.dumps({"statements": [entry["response"]]}), request)
        if request.task == "statements" and reference:
            return completion(json.dumps({"statements": reference["ground_truth"][:2]}), request)
        if request.task == "classification" and entry:
            return completion(json.dumps(classification([entry["response"]], [], [])), request)
        if request.task == "attributions" and reference:
            found = reasoned(reference["ground_truth"][:2], attributed=1)
            return completion(json.dumps({"classifications": found}), request)
        return None


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_no_honest_case_of_a_run_is_lost_and_a_second_run_asks_nothing(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, language: str
) -> None:
    entries = [entry for entry in TEXTS if entry["language"] == language]
    judge.always = Honest(entries)
    rows = [
        [
            e["query"],
            BESIDE["greeting"]({**e, "ground_truth": e["ground_truth"][:2]}),
            e["response"],
            e["coarse"],
        ]
        for e in entries
    ]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Context"], *rows)
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    ended = run_cli("in.xlsx", "--json", "run.json", **azure(judge))
    assert ended.code == 0, ended.err
    document = json.loads((tmp_path / "run.json").read_text("utf-8"))
    values = [case["scores"]["answer_correctness"]["value"] for case in document["cases"]]
    assert values == [1.0] * len(entries)
    assert {case["scores"]["context_recall"]["value"] for case in document["cases"]} == {1.0}
    assert document["end"]["usage"]["refused"] == {}
    assert judge.tasks()["classification"] <= 2 * len(entries)
    assert judge.tasks()["attributions"] <= 2 * len(entries)
    flagged = {
        case["row"]: [name for name, score in case["scores"].items() if LEFT_OUT in str(score["evidence"])]
        for case in document["cases"]
    }
    for case, cells in zip(
        document["cases"], read_sheet(tmp_path / "in_report.xlsx", "Per-Query Metrics"), strict=True
    ):
        expected = [
            f"{label}: possibly incomplete"
            for name, label in (
                ("answer_correctness", "Answer Correctness"),
                ("context_recall", "Context Recall"),
            )
            if name in flagged[case["row"]]
        ]
        assert (cells["Flags"] or "") == "; ".join(expected)
        assert case.get("flags", []) == expected
    judge.requests.clear()
    run_cli("in.xlsx", **azure(judge))
    assert judge.requests == []


# What may be left out is asked for once more


OURS = ["The tower is 330 metres tall.", "It was built in the year 1889."]
THEIRS = [
    "The height of the tower is 330 m.",
    "Gustave Eiffel drew the plans.",
    "The paint is renewed often.",
]
TOWER = Case(2, "A", "How tall is the tower?", " ".join(OURS), " ".join(THEIRS), ("c1",))
WHOLE = classification(OURS[:1], OURS[1:], THEIRS[1:])
HALF = classification(OURS[:1], [], THEIRS[1:2])


def judged(metric: str, replies: Sequence[Any], store: DictStore | None = None) -> tuple[Score, ObjectJudge]:
    """The metric on the tower by a judge that gives these replies, one after the other, the last one from then on."""
    texts = [each if isinstance(each, Exception) else json.dumps(each) for each in replies]

    def reply(prompt: str) -> str | Exception:
        if task_of(prompt) == "statements":
            return json.dumps({"statements": OURS if OURS[0] in prompt else THEIRS})
        return texts.pop(0) if len(texts) > 1 else texts[0]

    judge = ObjectJudge(reply)
    (each,) = llm_metrics([metric])
    (score,) = run([each.measure(TOWER)], judge, store)
    return score, judge


def left_out(score: Score) -> list[str]:
    return [each.text for each in score.evidence if each.verdict == LEFT_OUT]


@pytest.mark.parametrize(
    ("replies", "value", "missing"),
    [
        ([WHOLE], 2 / (2 + 1 + 2), []),
        ([HALF, WHOLE], 2 / (2 + 1 + 2), []),
        ([HALF], 2 / (2 + 0 + 1), [OURS[1], THEIRS[2]]),  # it insists
        ([HALF, classification(OURS[:1], OURS[1:], THEIRS[1:2])], 2 / (2 + 1 + 1), [THEIRS[2]]),  # fuller
        ([HALF, classification(OURS[:1], [], [])], 2 / (2 + 0 + 1), [OURS[1], THEIRS[2]]),  # less full
        ([HALF, JudgeError("blocked_by_filter", "no")], 2 / (2 + 0 + 1), [OURS[1], THEIRS[2]]),
        ([HALF, {"TP": []}], 2 / (2 + 0 + 1), [OURS[1], THEIRS[2]]),
    ],
)
def test_the_fuller_of_two_replies_counts_and_what_it_lacks_is_named(
    replies: list[Any], value: float, missing: list[str]
) -> None:
    store = DictStore()
    score, judge = judged("answer_correctness", replies, store)
    asked = [prompt for prompt in judge.prompts if task_of(prompt) == "classification"]
    assert (score.value, left_out(score)) == (pytest.approx(value), missing)
    assert len(asked) == len(set(asked)) == (1 if replies == [WHOLE] else 2)
    assert all(json.dumps([OURS[1], THEIRS[2]]) in prompt for prompt in asked[1:])
    if not isinstance(replies[-1], JudgeError):
        again, judge = judged("answer_correctness", ["never asked"], store)
        assert (again, judge.prompts) == (score, [])


def test_a_sentence_of_the_ground_truth_without_a_verdict_is_asked_for_once_more() -> None:
    found = {"classifications": reasoned(THEIRS[:2], attributed=1)}
    every = {"classifications": [*found["classifications"], *reasoned(THEIRS[2:], attributed=0)]}
    score, _ = judged("context_recall", [found, every])
    assert (score.value, left_out(score)) == (pytest.approx(2 / 3), [])
    score, judge = judged("context_recall", [found])
    assert (score.value, left_out(score), len(judge.prompts)) == (1.0, THEIRS[2:], 2)


def test_texts_in_two_languages_or_scripts_are_not_compared() -> None:
    """No words could show that something is missing, so no call is paid to find out."""
    for entry in TEXTS:
        if entry["language"] != "en":
            sent, replied = entry["split"], [entry["english"]]
            assert unmatched_statements(sent, replied) == []
            assert unmatched_statements(sent, [], replied) == []
            assert unclassified_sentences(" ".join(entry["ground_truth"]), [english(entry)["coarse"]]) == []


def test_half_of_a_text_in_its_own_language_is_noticed_in_most_languages() -> None:
    """Where words of one language are told from those of others: no proof, but worth one question."""
    noticed = {
        language: sum(
            bool(unclassified_sentences(" ".join(e["ground_truth"]), e["ground_truth"][:1]))
            for e in TEXTS
            if e["language"] == language
        )
        for language in ("en", "de", "fr", "es", "ru", "zh", "ja", "ar")
    }
    assert min(noticed.values()) >= 8, noticed


def test_statements_that_leave_out_a_sentence_are_asked_for_once_more_and_named() -> None:
    """One of them is enough to make a wrong response look right."""

    def reply(prompt: str) -> str:
        if task_of(prompt) == "statements":
            return json.dumps({"statements": OURS[:1] if OURS[0] in prompt else THEIRS})
        return json.dumps({"statements": reasoned(OURS[:1], verdict=1)})

    judge = ObjectJudge(reply)
    (metric,) = llm_metrics(["faithfulness"])
    (score,) = run([metric.measure(TOWER)], judge)
    assert (score.value, left_out(score)) == (1.0, OURS[1:])
    asked = [prompt for prompt in judge.prompts if task_of(prompt) == "statements"]
    assert len(asked) == 2
    assert json.dumps(OURS[1:]) in asked[1]


def test_copies_of_a_statement_count_once() -> None:
    copies = classification(OURS[:1] * 9, OURS[1:], THEIRS[1:])
    assert judged("answer_correctness", [copies])[0].value == judged("answer_correctness", [WHOLE])[0].value
    found = reasoned(THEIRS[:1], attributed=1) * 9 + reasoned(THEIRS[1:], attributed=0)
    assert judged("context_recall", [{"classifications": found}])[0].value == pytest.approx(1 / 3)


def test_verdicts_on_the_same_statement_are_refused() -> None:
    score, _ = judged("faithfulness", [{"statements": reasoned(OURS[:1] * 2, verdict=1)}])
    assert (score.code, score.reason.rpartition(": ")[2]) == (
        "incomplete",
        "several verdicts are on the same statement",
    )


def test_verdicts_in_another_language_may_merge_statements() -> None:
    given = ["Der Turm ist 330 Meter hoch und wurde 1889 erbaut."]
    score, _ = judged("faithfulness", [{"statements": reasoned(given, verdict=1)}])
    assert score.value == 1.0
    score, _ = judged("faithfulness", [{"statements": reasoned(OURS[:1], verdict=1)}])
    assert score.code == "incomplete"


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("Which branch do you mean?", True),
        ("I'm sorry, I can't help with that.", True),
        ("Hi! Thank you for your question. Best regards.", True),
        ("您好！请问您指的是哪一家？", True),
        ("Goethe.", False),
        ("Four weeks.", False),
        ("Hello! The pool opens at nine.", False),
    ],
)
def test_no_statement_is_honest_where_nothing_is_claimed(text: str, is_taken: bool) -> None:
    call = Call("t", (), Statements, agrees_with={"text": text})
    if is_taken:
        assert read_reply('{"statements": []}', call)
    else:
        with pytest.raises(RefusedReplyError, match="there is no statement"):
            read_reply('{"statements": []}', call)


FILLERS = ("...", "…", "", " - ")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (classification([], [], []), "no statement of the response is classified"),
        (classification([], [], THEIRS), "no statement of the response is classified"),
        (classification([], OURS, []), "no statement of the ground truth is classified"),
        *((classification([*OURS, filler], [], THEIRS), "a statement has no words") for filler in FILLERS),
        *((classification(OURS, [], [*THEIRS, filler]), "a statement has no words") for filler in FILLERS),
    ],
)  # fmt: skip
def test_a_reply_that_says_nothing_of_one_side_or_fills_it_up_is_refused(reply: Any, problem: str) -> None:
    score, judge = judged("answer_correctness", [reply])
    assert (score.outcome, score.code) == (Outcome.FAILED, "incomplete")
    assert score.reason.endswith(f": {problem}")
    asked = [prompt for prompt in judge.prompts if task_of(prompt) == "classification"]
    assert len(asked) == 2  # the same reply twice shows that a third request would be in vain
    assert problem in asked[1]


def test_signs_without_words_are_statements_of_a_text_that_has_some() -> None:
    sent = {"response_statements": ["👍", *OURS], "reference_statements": THEIRS}
    reply = json.dumps(classification(["👍"], OURS, THEIRS))
    assert read_reply(reply, Call("t", (), Classification, agrees_with=sent))
    signs = Call("t", (), Statements, agrees_with={"text": "👍"})
    assert read_reply(json.dumps({"statements": ["👍"]}), signs)


@pytest.mark.parametrize("filler", ["...", "…", ""])
def test_a_list_of_statements_with_a_filler_is_refused(filler: str) -> None:
    statements = {"statements": [OURS[0], filler]}
    attributions = {"classifications": reasoned([OURS[0], filler], attributed=1)}
    for reply, kind in ((statements, Statements), (attributions, Attributions)):
        with pytest.raises(RefusedReplyError, match="a statement has no words"):
            read_reply(json.dumps(reply), Call("t", (), kind, agrees_with={"text": " ".join(OURS)}))


@pytest.mark.parametrize(
    ("sent", "given", "is_taken"),
    [
        (OURS, OURS, True),
        (OURS, ["The tower is 330 metres tall and was built in the year 1889."], True),  # merged
        (
            OURS,
            ["The tower is 330 metres tall.", "The tower was built.", "The year was 1889."],
            True,
        ),  # split
        (OURS, OURS[:1], False),
        (OURS, [*OURS, "Gustave Eiffel drew the plans."], False),
        (OURS, [*OURS, OURS[0]], False),
        (OURS, [], False),
    ],
)
def test_verdicts_may_merge_and_split_statements_and_leave_none_out(
    sent: list[str], given: list[str], is_taken: bool
) -> None:
    call = Call("t", (), StatementVerdicts, agrees_with={"statements": sent})
    reply = json.dumps({"statements": reasoned(given, verdict=1)})
    if is_taken:
        assert read_reply(reply, call)
        return
    with pytest.raises(RefusedReplyError, match=f"{len(given)} verdicts for 2 statements") as refused:
        read_reply(reply, call)
    assert refused.value.code == "incomplete"


LIKE = [f"The service number {word} of the long catalogue is free of charge" for word in ("four", "five")]


@pytest.mark.parametrize(
    ("sent", "replied", "hits", "others", "missing"),
    [
        (LIKE, LIKE[:1], [], [], LIKE[1:]),  # a copy of one statement does not stand for another
        (LIKE, [LIKE[0], LIKE[0]], [], [], LIKE[1:]),  # nor does the same one twice
        (LIKE, ["Numbers four and five are free of charge"], [], [], []),
        (
            ["red green", "grey", "x red"],
            ["grey", "…", "…"],
            [],
            [],
            ["red green", "x red"],
        ),  # a sign is no statement
        (["巴黎是法国的首都", "塔高三百三十米"], ["巴黎是法国的首都"], [], [], ["塔高三百三十米"]),
        (["red green blue", "red"], [], ["red pink white"], [], []),  # a third is enough for another text
        (["red green blue grey", "red"], [], ["red pink white black"], [], ["red green blue grey"]),
        (["red green", "x"], [], ["x"], ["red roses"], []),  # contradicted, and so seen
        (["red green", "x"], ["x"], ["red roses"], [], []),  # as many
    ],
)
def test_what_has_no_counterpart(
    sent: list[str], replied: list[str], hits: list[str], others: list[str], missing: list[str]
) -> None:
    assert unmatched_statements(sent, replied, hits, others) == missing


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Red roses grow here. Blue violets bloom there.", 2),
        ("Red roses grow here. Yes, indeed.", 1),
        ("Opening hours and holidays\nThe pool opens at nine. It closes at ten sharp.", 2),
        (
            "Opening hours of the pool\nSchool holidays of the whole country",
            2,
        ),  # lines alone are a list, not headings
        ("Do red roses grow here? They grow in every garden here.", 1),
        ("Historic buildings stand on the hill. Seeds of the rose are red.", 2),  # not 'hi', not 'see'
        ("See the manual of the pump, page 4. The pump runs at night.", 1),
        ("", 0),
    ],
)
def test_which_sentences_claim_something(text: str, claims: int) -> None:
    assert len(claims_among(sentences(text))) == claims


# Replies that repeat an example


PROMPTS = {
    "statements": ("faithfulness", "StatementGeneratorPrompt", Statements),
    "verdicts": ("faithfulness", "NLIStatementPrompt", StatementVerdicts),
    "question": ("answer_relevancy", "AnswerRelevancePrompt", None),
    "usefulness": ("context_precision", "ContextPrecisionPrompt", None),
    "attributions": ("context_recall", "ContextRecallPrompt", Attributions),
    "classification": ("answer_correctness", "CorrectnessClassifierPrompt", Classification),
}


def prompt_about(kind: str, entry: dict[str, Any]) -> Any:
    truth, response = " ".join(entry["ground_truth"]), entry["response"]
    made = {
        "statements": lambda: prompts.statements_prompt(entry["query"], response),
        "verdicts": lambda: prompts.verdicts_prompt(truth, entry["split"]),
        "question": lambda: prompts.question_prompt(response, entry["query"]),
        "usefulness": lambda: prompts.usefulness_prompt(entry["query"], truth, response),
        "attributions": lambda: prompts.attribution_prompt(entry["query"], truth, truth),
        "classification": lambda: prompts.classification_prompt(
            entry["query"], entry["split"], entry["ground_truth"]
        ),
    }
    (message,) = made[kind]()
    return message


def example_replies(kind: str) -> list[dict[str, Any]]:
    collection, name, _ = PROMPTS[kind]
    return [reply.model_dump() for _, reply in getattr(load()[collection], name)().examples]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROMPTS)
def test_an_example_of_the_prompt_is_never_believed(kind: str) -> None:
    for entry in TEXTS:
        if entry["topic"] not in OF_EXAMPLES:
            message = prompt_about(kind, entry)
            for reply in example_replies(kind):
                assert message.examples.are_repeated(reply, message.case), (
                    entry["topic"],
                    entry["language"],
                    reply,
                )


@pytest.mark.parametrize("kind", PROMPTS)
def test_no_honest_text_is_taken_for_an_example(kind: str) -> None:
    """Not even about Einstein or the sun, in the words of the example, in another language than the case."""
    for entry in TEXTS:
        message = prompt_about(kind, entry)
        for words in (entry, english(entry)):
            texts = [
                words["query"],
                words["response"],
                *words["split"],
                *words["finer"],
                *words["ground_truth"],
            ]
            reasons = [
                "The exact sentence is present in the given context.",  # these stand in an example as well
                "There is no supporting evidence for this in the given context.",
            ]
            reply = [
                {"statement": text, "question": text, "reason": reason}
                for text in texts
                for reason in reasons
            ]
            assert not message.examples.are_repeated(reply, message.case), (entry["topic"], entry["language"])


@pytest.mark.parametrize(
    "response",
    [
        "Paris.",
        "巴黎是法国的首都。",
        "Столица Франции - Париж.",
        "It is the city on the Seine.",
        "عاصمة فرنسا هي باريس.",
    ],
)
def test_a_question_that_an_example_asks_may_be_the_users(response: str) -> None:
    (message,) = prompts.question_prompt(response, "What is the capital of France?")
    assert not message.examples.are_repeated({"question": "What is the capital of France?"}, message.case)
    (message,) = prompts.question_prompt("You may keep a book for four weeks.", "How long is a loan?")
    assert message.examples.are_repeated({"question": "What is the capital of France?"}, message.case)


@pytest.mark.parametrize(
    "response",
    [
        "Hlavné mesto Francúzska je Paríž.",
        "Prancūzijos sostinė yra Paryžius.",
        "Prantsusmaa pealinn on Pariis.",
        "Glavni grad Francuske je Pariz.",
        "საფრანგეთის დედაქალაქი პარიზია.",
        "Ֆրանսիայի մայրաքաղաքը Փարիզն է։",
        "பிரான்சின் தலைநகரம் பாரிஸ்.",
        "فرانس کا دارالحکومت پیرس ہے۔",
        "ফ্রান্সের রাজধানী প্যারিস।",
    ],
)
def test_names_are_known_in_languages_with_another_spelling(response: str) -> None:
    (message,) = prompts.question_prompt(response, response)
    assert not message.examples.are_repeated({"question": "What is the capital of France?"}, message.case)


def test_a_number_of_the_case_is_no_sign_of_an_example() -> None:
    case = "Wasser siedet auf Meereshöhe bei 100 Grad Celsius."
    (message,) = prompts.classification_prompt("Wann siedet Wasser?", [case], [case])
    honest = classification(["The boiling point of water is 100 degrees Celsius at sea level"], [], [])
    assert not message.examples.are_repeated(honest, message.case)


def test_one_call_does_not_make_a_judge_unfit(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """It may be about the subject of the example, in a language that is not known here."""
    (parrot,) = example_replies("verdicts")
    judge.always = lambda request: (
        completion(json.dumps(parrot), request) if request.task == "verdicts" else None
    )
    write_table(
        tmp_path / "in.xlsx",
        ["Query", "Ground_Truth", "Bot_A", "Context"],
        ["Is the pool open?", "It is open.", "The pool is open. It has 9 lanes.", "Pools."],
    )
    ended = run_cli("in.xlsx", "--json", "run.json", **azure(judge))
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["end"]["usage"]["refused"] == {"echo": 2}
    assert "not fit to judge" not in ended.out


def test_a_judge_that_repeats_its_examples_fails_the_score_and_is_named_unfit(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (parrot,) = example_replies("verdicts")

    def always(request: Request) -> Answer | None:
        return completion(json.dumps(parrot), request) if request.task == "verdicts" else None

    judge.always = always
    rows = [
        [f"Is pool {n} open?", f"Pool {n} is open.", f"Pool {n} is open. It has {n} lanes.", "Pools."]
        for n in (1, 2)
    ]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Context"], *rows)
    ended = run_cli("in.xlsx", "--json", "run.json", "--html", "page.html", **azure(judge))
    assert ended.code == 3
    document = json.loads((tmp_path / "run.json").read_text("utf-8"))
    for case in document["cases"]:
        score = case["scores"]["faithfulness"]
        assert (score["value"], score["code"]) == (None, "echo")
        assert score["reason"].startswith("the judge repeated the prompt's example")
    assert document["end"]["usage"]["refused"] == {"echo": 4}
    assert judge.tasks()["verdicts"] == 4  # once more for each, and no third
    unfit = "The judge repeated examples of its prompt in 4 replies: this model is not fit to judge."
    assert unfit in ended.out
    assert unfit in read_boxes(tmp_path / "in_report.xlsx")
    assert unfit in (tmp_path / "page.html").read_text("utf-8")


def test_a_stored_example_is_not_served() -> None:
    """Earlier versions believed it."""
    store = DictStore()
    (metric,) = llm_metrics(["context_recall"])
    (parrot, *_) = example_replies("attributions")
    case = replace(TOWER, query="Where is the pool?", reference="The pool is on the hill.", chunks=("c1",))
    run([metric.measure(case)], ObjectJudge(), store)
    ((key, _),) = store.replies.items()
    store.replies[key] = json.dumps(parrot)
    judge = ObjectJudge()
    scheduler = Scheduler(judge, store, workers=1)
    (score,) = scheduler.run([metric.measure(case)], window=1)
    scheduler.close()
    assert score.outcome is Outcome.SCORED
    assert (len(judge.prompts), scheduler.counts.refused, scheduler.counts.outdated) == (1, {"echo": 1}, 1)
    assert "it is about an example, not about the given texts" in judge.prompts[0]
