"""What is too long for the judge is known before it is sent, and never cut in silence."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Run, azure, read_sheet
from fake_judge import FakeJudge
from files import write_table
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.records import Case
from rag_eval.texts.tokens import INSTRUCTION_TOKENS, Shortener, estimated_tokens

ANSWER = "It opens at nine."
LONG = ["It opens at nine.", *(f"Passage {n}. " + "Dogs bark and cats do not. " * 160 for n in range(1, 4))]
HEADER = ["Query", "Ground_Truth", "Bot_Long", "Context_Long", "Bot_Short", "Context_Short"]
ROW = ["When does it open?", ANSWER, ANSWER, json.dumps(LONG), ANSWER, ANSWER]


def limits(folder: Path, tokens: int, policy: str = "error") -> None:
    text = f"[limits]\nmax_prompt_tokens = {tokens}\nlong_prompts = {policy}\n"
    (folder / "config.ini").write_text(text)


def cases(folder: Path) -> dict[str, dict[str, object]]:
    return {case["Bot"]: case for case in read_sheet(folder / "r.xlsx", "Per-Query Metrics")}


@pytest.mark.slow
def test_a_prompt_that_is_too_long_is_not_sent_and_fails_its_score(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    limits(tmp_path, 3000)
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    plan = run_cli("in.xlsx", "-o", "r.xlsx", "--dry-run", **azure(judge)).out
    ended = run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert ended.code == 3  # half of the cases have no RQS
    assert "Long: RQS for 0 of 1 query; failed scores: over_limit 2" in ended.out
    assert "Not sent because they exceed [limits] max_prompt_tokens: 2 calls." in plan
    found = cases(tmp_path)
    assert (found["Long"]["Faithfulness"], found["Long"]["Answer Correctness"]) == (None, 1)
    assert found["Short"]["Faithfulness"] == 1
    assert max(estimated_tokens(request.prompt) for request in judge.requests) <= 3000
    # Not paid, so not remembered: with a higher limit the same command asks for what is missing.
    limits(tmp_path, 30000)
    judge.requests.clear()
    assert run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).code == 0
    assert cases(tmp_path)["Long"]["Faithfulness"] == 1
    assert set(judge.tasks()) == {"verdicts", "attributions", "recommendation", "preflight"}


def test_a_context_that_is_cut_is_marked_where_it_is(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    limits(tmp_path, 3000, "truncate")
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", **azure(judge))
    assert ended.code == 0
    found = cases(tmp_path)
    assert found["Long"]["Flags"] == "context cut: the judge saw chunks 1 to 2 of 4"
    assert found["Short"]["Flags"] is None
    assert "Passage 3." in str(found["Long"]["Context"]), "the report shows the context as it is"
    assert "before judging: Long 1." in ended.out
    assert "prompt injection" not in ended.out
    assert not any("Passage 2." in request.prompt for request in judge.requests)
    assert run_cli("r.json", "-o", "r.xlsx", "--report-only", **azure(judge)).code == 0
    assert cases(tmp_path)["Long"] == found["Long"]


def test_without_a_limit_and_offline_nothing_is_cut(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert any("Passage 3." in request.prompt for request in judge.requests)
    limits(tmp_path, 3000, "truncate")
    run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline")
    assert "Flags" not in cases(tmp_path)["Long"]


@pytest.mark.slow
@given(
    st.lists(st.text(min_size=1, max_size=200).filter(str.strip), min_size=1, max_size=8),
    st.text(max_size=100),
    st.integers(INSTRUCTION_TOKENS, INSTRUCTION_TOKENS + 400),
)
def test_what_is_kept_fits_and_is_a_beginning_of_the_context(
    chunks: list[str], query: str, most: int
) -> None:
    """Whole chunks in their order, or the beginning of the first; unless the other texts leave no room at all."""
    case = Case(2, "A", query, "", chunks=tuple(chunks))
    shown = Shortener(most).case(case).chunks
    assert shown
    told = Shortener(most).note(case)
    if shown == case.chunks:
        assert told == ""
        return
    assert told.endswith(f"of {len(chunks)}")
    whole = shown == tuple(chunks[: len(shown)])
    assert whole or (len(shown) == 1 and chunks[0].startswith(shown[0]))
    room = most - INSTRUCTION_TOKENS - estimated_tokens(query)
    assert sum(map(estimated_tokens, shown)) <= room


@pytest.mark.parametrize(
    ("room", "kept", "said"),
    [
        (30, (40, 40, 40), ""),
        (29, (40, 40), "chunks 1 to 2 of 3"),
        (20, (40, 40), "chunks 1 to 2 of 3"),
        (19, (40,), "chunks 1 to 1 of 3"),
        (10, (40,), "chunks 1 to 1 of 3"),
        (9, (36,), "the beginning of chunk 1 of 3"),
        (2, (8,), "the beginning of chunk 1 of 3"),
        (1, (40, 40, 40), ""),  # only blanks of the first chunk would fit
        (-5, (40, 40, 40), ""),
    ],
)
def test_as_much_of_a_context_is_kept_as_fits_next_to_the_other_texts(
    room: int, kept: tuple[int, ...], said: str
) -> None:
    """Chunks of ten tokens, next to a query of one, a response of two and a ground truth of three."""
    chunks = ("    " + "a" * 36, "b" * 40, "c" * 40)
    case = Case(2, "A", "q" * 4, "r" * 8, reference="g" * 12, chunks=chunks)
    shortener = Shortener(INSTRUCTION_TOKENS + 6 + room)
    shown = shortener.case(case).chunks
    assert shown == tuple(chunk[:length] for chunk, length in zip(chunks, kept, strict=False))
    assert shortener.note(case) == (f"context cut: the judge saw {said}" if said else "")
    assert shortener.case(replace(case, chunks=())).chunks == ()
    assert shortener.case(replace(case, chunks=None)).chunks is None
    assert Shortener(None).case(case) is case
    assert (bool(shortener), bool(Shortener(None))) == (True, False)
