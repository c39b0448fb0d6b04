"""The commands for stored replies."""

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Run, azure
from fake_judge import FakeJudge
from files import write_table

from rag_eval.errors import StoreError
from rag_eval.store.reply_store import Store

DAY = 24 * 60 * 60
ROW = ["When does it open?", "It opens at nine.", "It opens at nine."]


@pytest.fixture(autouse=True)
def _cache_on(tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = yes\ndirectory = kept\n")


def age(path: Path, days: float, task: str) -> None:
    """Make the replies to one kind of question so many days older."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE replies SET stored_at = stored_at - ? WHERE task = ?", (days * DAY, task))


def test_only_what_is_older_is_removed_and_only_when_asked_for(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], ROW)
    rag_eval("in.xlsx", **azure(judge))
    path = tmp_path / "kept" / "replies.sqlite"
    age(path, 40, "faithfulness.verdicts")
    shown = rag_eval("cache", "show")
    assert shown.code == 0
    assert "  faithfulness.verdicts: 1 reply, " in shown.out
    judge.requests.clear()
    rag_eval("in.xlsx", **azure(judge))
    assert not judge.requests, "old replies are served"
    pruned = rag_eval("cache", "prune", "--older-than", "30")
    assert (pruned.code, "1 reply and 0 failures removed" in pruned.out) == (0, True)
    assert "faithfulness.verdicts" not in rag_eval("cache", "show").out
    rag_eval("in.xlsx", **azure(judge))
    assert set(judge.tasks()) == {"preflight", "verdicts"}


def test_what_cannot_be_removed_as_a_whole_stays_as_a_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "replies.sqlite")
    store.put_reply("k", task="t", reply="x", attempts=1, prompt_tokens=1, completion_tokens=1)
    store.put_failure("f", task="t", code="refused", message="no")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("CREATE TRIGGER t BEFORE DELETE ON failures BEGIN SELECT RAISE(ABORT, 'not now'); END")
        other.commit()
    with pytest.raises(StoreError, match="not now"):
        store.prune(time.time() + DAY)
    assert store.overview()[0].replies == 1
    store.end(keep=True)


@pytest.mark.slow
def test_a_large_store_shrinks_on_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path / "replies.sqlite")
    for number in range(300):
        store.put_reply(
            str(number), task="t", reply="x" * 40_000, attempts=1, prompt_tokens=1, completion_tokens=1
        )
    store.put_failure("f", task="t", code="refused", message="no")
    store.end(keep=True)
    assert store.path.stat().st_size > 10_000_000
    store = Store(tmp_path / "replies.sqlite")
    assert store.prune(time.time() - DAY) == (0, 0)
    assert store.overview()[0].replies == 300
    assert store.prune(time.time() + DAY) == (300, 1)
    assert store.overview() == []
    assert store.path.stat().st_size < 100_000, "at once, so that what was freed can be told"
    assert store.path.with_name("replies.sqlite-wal").stat().st_size == 0
    store.end(keep=True)
    assert store.path.stat().st_size < 100_000


def test_damaged_replies_are_told_and_counted_and_pruning_lets_them_go(rag_eval: Run, tmp_path: Path) -> None:
    path = tmp_path / "kept" / "replies.sqlite"
    store = Store(path)
    for key in "abc":
        store.put_reply(key, task="t", reply="{}", attempts=1, prompt_tokens=1000, completion_tokens=20)
    store.end(keep=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE replies SET reply = CAST(x'ff73656372657400' AS TEXT) WHERE key = 'b'")
    today = time.strftime("%Y-%m-%d")
    wrong = "kept/replies.sqlite: the store of judge replies has damaged rows (replies: 1)."
    for _ in range(2):
        shown = rag_eval("cache", "show")
        assert (shown.code, shown.err) == (0, "")
        assert shown.out.splitlines() == [
            f"{wrong} A run drops them and asks the judge for them again.",
            "kept/replies.sqlite: 0.0 MB",
            f"  t: 2 replies, 2,000 + 40 tokens, {today} to {today}",
        ]
    pruned = rag_eval("cache", "prune", "--older-than", "1")
    assert pruned.err == f"rag-eval: {wrong} RAG Eval dropped them and asks the judge for them again.\n"
    assert pruned.out == "kept/replies.sqlite: 0 replies and 0 failures removed, 0.0 MB freed\n"
    assert len(rag_eval("cache", "show").out.splitlines()) == 2


@pytest.mark.parametrize("arguments", [("show",), ("prune", "--older-than", "1")])
def test_without_a_store_nothing_is_made(rag_eval: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = rag_eval("cache", *arguments)
    assert ended.code == 2
    assert "no cached replies found" in ended.err
    assert not (tmp_path / "kept").exists()


def test_pruning_needs_an_age(rag_eval: Run) -> None:
    assert "--older-than" in rag_eval("cache", "prune").err


def test_the_examples_of_the_documentation_have_the_form_of_the_output(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Numbers and the folder apart: they are those of a larger store."""
    rows = ([ROW[0], f"{ROW[1]} {more}", *ROW[1:]] for more in ("All of it.", "Most of it."))
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Context"], *rows)
    assert rag_eval("in.xlsx", **azure(judge)).code == 0
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n\$ rag-eval (cache .*?)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert [command.split()[1] for command, _ in blocks] == ["show", "prune"]
    for command, shown in blocks:
        printed = form(rag_eval(*command.split()).out)
        assert {line for line in form(shown) if line.strip() != "..."} <= set(printed)


def form(output: str) -> list[str]:
    """The lines, with one sign for every number and without the folder."""
    return [re.sub(r"\d[\d,.]*", "0", line.rpartition("/")[2]) for line in output.splitlines()]
