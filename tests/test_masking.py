"""What is hidden of a key and of an address, and what is never touched."""

from dataclasses import replace

import pytest
from conftest import KEY

from rag_eval.judge.masking import (
    concealed,
    is_loopback,
    masked,
    safe_path,
    safe_url,
    secrets_in,
    without_keys,
)
from rag_eval.records import (
    Case,
    CaseResult,
    CriterionVerdict,
    Evidence,
    FailureMode,
    Outcome,
    RubricOutcome,
    Score,
)

SECRET = "abcdefgh1jklmnop"
LOCAL, REMOTE = "http://127.0.0.1:8080/v1", "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"key {SECRET}.", "key [key]."),
        ("bcdefgh1 and h1jklmno", "[key] and [key]"),
        ("cdefgh1", "cdefgh1"),  # seven characters
        ("abcdefgh is a word", "abcdefgh is a word"),  # no digit
        ("abcdefgh1", "[key]"),  # two pieces, of which one has a digit
        (SECRET * 2, "[key][key]"),
        ("xabcdefgh1x", "x[key]x"),
        ("", ""),
    ],
)
def test_an_error_shows_neither_a_key_nor_pieces_of_it_with_a_digit(text: str, expected: str) -> None:
    assert masked(text, {SECRET}) == expected


def test_of_secrets_that_contain_each_other_the_longest_is_masked_first() -> None:
    secrets = {SECRET, f"{SECRET}-and-more"}
    assert masked(f"{SECRET}-and-more, {SECRET}", secrets) == "[key], [key]"
    assert without_keys(f"{SECRET}-and-more, {SECRET}", secrets) == "[key], [key]"


def test_what_is_no_error_loses_a_whole_key_and_nothing_else() -> None:
    text = f"{SECRET}, {SECRET[1:]}, abcdefgh1"
    assert without_keys(text, {SECRET}) == f"[key], {SECRET[1:]}, abcdefgh1"
    assert without_keys(text, ()) == masked(text, ()) == text


@pytest.mark.parametrize(
    ("key", "url", "expected"),
    [
        (SECRET, REMOTE, {SECRET}),
        (SECRET, LOCAL, {SECRET}),
        (SECRET[:15], REMOTE, set()),
        (SECRET[:15], LOCAL, set()),
        ("sk-no-key-required", LOCAL, set()),
        ("sk-no-key-required", "http://localhost/v1", set()),
        ("sk-no-key-required", REMOTE, {"sk-no-key-required"}),
        ("", REMOTE, set()),
        ("not-needed", LOCAL, set()),
        ("", f"https://example.com/{SECRET}/v1", {SECRET}),
        ("", f"https://example.com/{SECRET[:15]}/compatible-with-openai", set()),
        (SECRET, "http://[broken", {SECRET}),
        (SECRET, "", {SECRET}),
    ],
)
def test_what_of_a_provider_is_a_secret(key: str, url: str, expected: set[str]) -> None:
    assert secrets_in(key, url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("http://[::1]:8080/v1beta1/openai/", "http://[::1]:8080/v1beta1/openai/"),
        ("https://user:pass@h.example.com/v1?key=x#y", "https://h.example.com/v1"),
        (f"https://h.example.com/{SECRET}/v1", "https://h.example.com/…/v1"),
        ("https://h.example.com/s3cr3t/deployments", "https://h.example.com/…/deployments"),
        ("https://h.example.com/averyveryverylongword/a_b", "https://h.example.com/…/a_b"),
        ("https://h.example.com/QwErTz", "https://h.example.com/…"),
        ("https://h.example.com:99999/", "…"),
        ("http://[broken", "…"),
    ],
)
def test_an_address_is_shown_without_what_may_be_a_secret(url: str, expected: str) -> None:
    assert safe_url(url) == expected


def test_of_a_path_words_and_versions_are_shown() -> None:
    assert safe_path("/v1/api/v123/v2alpha/open-ai/KEY/") == "/v1/api/…/v2alpha/open-ai/…/"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("", False),
        ("a.b", False),
    ],
)
def test_which_host_is_this_computer(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_result_loses_the_key_wherever_a_judge_wrote_it_and_nothing_else() -> None:
    told = f"so says {KEY}"
    seen = Evidence("statement", told, "supported", True, f"because {KEY}", rank=3)
    score = Score.scored("faithfulness", 0.5, told, (seen,))
    rubric = RubricOutcome(
        Outcome.SCORED, True, 1, 2, (CriterionVerdict("c", True, False, told),), ("c",), f"all {KEY}"
    )
    case = Case(2, "A", f"What is {KEY}?", "The response.")
    result = CaseResult(
        case=case, scores={"faithfulness": score}, toxicity=replace(score, metric="toxicity"), rqs=0.5,
        failure_modes=(FailureMode.OK,),
        further={"answer_coverage": replace(score, reason="", evidence=())}, rubric=rubric,
    )  # fmt: skip
    clean = Score.scored(
        "faithfulness",
        0.5,
        "so says [key]",
        (Evidence("statement", "so says [key]", "supported", True, "because [key]", rank=3),),
    )
    verdict = CriterionVerdict("c", True, False, "so says [key]")
    expected = replace(
        result,
        scores={"faithfulness": clean},
        toxicity=replace(clean, metric="toxicity"),
        rubric=replace(rubric, verdicts=(verdict,), reason="all [key]"),
    )
    assert concealed(result, {KEY}) == expected
    assert concealed(replace(result, rubric=None), {KEY}).rubric is None
    assert concealed(result, ()) is result
    further = replace(result, further={"answer_coverage": score})
    assert concealed(further, {KEY}).further == {"answer_coverage": clean}
