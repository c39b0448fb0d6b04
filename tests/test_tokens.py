"""Tokens of a text: one estimate for every use, and a bound that holds for every vocabulary built on bytes."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure
from fake_judge import Answer, FakeJudge, Request, completion, honest_reply, json_answer
from files import write_table
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rag_eval.judge.calls import Call, Message
from rag_eval.judge.endpoint import Dialect, canonical_json, strict_schema
from rag_eval.texts.tokens import cut_to_tokens, estimated_tokens, most_tokens

COUNTED = {
    "de": (493, 406),
    "fr": (485, 401),
    "es": (453, 380),
    "ru": (730, 416),
    "tr": (568, 443),
    "ar": (864, 390),
    "hi": (1417, 456),
    "zh": (599, 404),
    "ja": (691, 518),
    "ko": (735, 479),
    "th": (1128, 500),
    "vi": (688, 424),
}
"""Tokens of all paragraphs of a language in languages.jsonl, joined, by tiktoken 0.14: cl100k_base, o200k_base."""

HARD = {
    "𒀀𒀁𒀂𒀃": 16,
    "𓀀𓀁": 8,
    "👩🏽‍🚀🏴‍☠️": 19,
    "aGVsbG8gd29ybGQhIQ==Zm9vYmFyYmF6cXV4": 29,
    "~!@#$%^&*()_+{}|:<>?": 15,
    "3141592653589793": 6,
    "\x00\x01\x02\x03\x07\x0b": 6,
    "ⵜⴰⵎⴰⵣⵉⵖⵜ": 22,
    "Z̷̧a̴l̶g̵o̷": 17,
    "QZXJKVWQ": 6,
}
"""Texts that take many tokens, and how many: the larger count of the two vocabularies."""


@pytest.fixture(scope="module")
def paragraphs() -> dict[str, str]:
    found: defaultdict[str, str] = defaultdict(str)
    for line in (Path(__file__).parent / "languages.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(line)
        found[sample["language"]] += sample["paragraph"]
    return found


def test_the_estimate_is_between_two_vocabularies_in_every_language(paragraphs: dict[str, str]) -> None:
    """In Turkish both count more: by 12% at least."""
    assert paragraphs.keys() == COUNTED.keys()
    for language, (older, newer) in COUNTED.items():
        assert 0.88 * newer <= estimated_tokens(paragraphs[language]) <= older, language


def test_the_bound_is_one(paragraphs: dict[str, str]) -> None:
    for language, counts in COUNTED.items():
        assert most_tokens(paragraphs[language]) >= max(counts), language
    for text, count in HARD.items():
        assert most_tokens(text) >= count, text
    assert most_tokens("𒀀𒀁𒀂𒀃") == HARD["𒀀𒀁𒀂𒀃"], "and no lower one would be a bound"


@pytest.mark.parametrize(
    ("text", "about", "most"),
    [
        ("", 0, 0),
        ("four", 1, 4),
        ("a" * 950, 237.5, 950),
        ("中" * 950, 950, 2850),
        ("日本語で", 4, 12),
        ("한국어", 3, 9),
        ("é", 0.5, 2),
        ("ไทย", 2.25, 9),
        ("中ab", 1.5, 5),
        ("\ud800", 0.75, 3),
    ],
)
def test_tokens_of_a_text(text: str, about: float, most: int) -> None:
    assert (estimated_tokens(text), most_tokens(text)) == (about, most)


@given(st.text(), st.text())
def test_texts_side_by_side_have_the_tokens_of_both_and_never_more_than_the_bound(a: str, b: str) -> None:
    assert estimated_tokens(a + b) == estimated_tokens(a) + estimated_tokens(b)
    assert estimated_tokens(a) <= most_tokens(a) == len(a.encode("utf-8", "surrogatepass"))


@given(st.text(), st.floats(-1, 50))
def test_a_cut_text_is_the_longest_beginning_that_fits(text: str, tokens: float) -> None:
    cut = cut_to_tokens(text, tokens)
    assert text.startswith(cut)
    assert estimated_tokens(cut) <= max(tokens, 0)
    assert cut == text or estimated_tokens(text[: len(cut) + 1]) > tokens


class Verdict(BaseModel):
    reason: str


def test_the_most_of_a_prompt_counts_the_schema_and_what_frames_messages() -> None:
    call: Call[Any] = Call("t", (Message("system", "abc"), Message("user", "中")), Verdict)
    assert call.estimated_tokens == 0.75 + 1
    schema = len(canonical_json(strict_schema(Verdict)))
    assert Dialect().most_prompt_tokens(call) == schema + 3 + 3 + 100 + 2 * 8
    assert Dialect(output="prompt").most_prompt_tokens(call) == 3 + 3 + 100 + 2 * 8


def test_max_cost_is_the_most_whatever_the_script(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """The judge bills a token for each byte of what it was sent, and the longest reply."""

    def dear(request: Request) -> Answer:
        sent = "".join(message["content"] for message in request.body["messages"])
        tokens = len((sent + json.dumps(request.body.get("response_format"))).encode())
        document = json.loads(completion(honest_reply(request.prompt), request).body)
        usage = {"prompt_tokens": tokens, "completion_tokens": request.body["max_tokens"]}
        return json_answer(200, {**document, "usage": usage})

    judge.always = dear
    (tmp_path / "config.ini").write_text(
        "[prices]\ninput = 10\noutput = 1\n[metrics]\ntoxicity = no\n[evaluation]\nmax_workers = 1\n"
    )
    row = ["问" * 400, "图" * 950, "书" * 950]
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], row)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--manifest", "m.json", "--max-cost", "0.3", **azure(judge))
    assert (ended.code, "max-cost" in ended.err) == (4, True), ended.err
    cost = json.loads((tmp_path / "m.json").read_text())["usage"]["cost"]
    assert 0.1 < cost <= 0.3
