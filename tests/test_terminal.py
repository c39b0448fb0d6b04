"""Words on a terminal: harmless, readable in any locale, and right about numbers."""

import io
import os
import re
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from page_cases import page_of
from report_cases import facts_of, plain_result, result_of, summary_of

from rag_eval.cli import console
from rag_eval.cli.console import _Stream
from rag_eval.cli.outcome import bot_lines, leaderboard_lines
from rag_eval.cli.terminal import (
    _Counter,
    _NoProgress,
    _ProgressBar,
    _ProgressLines,
    carried,
    counter,
    duration,
    printable,
    progress,
    readable,
)
from rag_eval.errors import OutputError
from rag_eval.records import Case, CaseResult, Score
from rag_eval.report.columns import bot_columns
from rag_eval.results.causes import BotCauses, Cause
from rag_eval.results.findings import find
from rag_eval.results.summary import Mean, of_queries

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é ★", "plain é ★"),
        ("caf\udcc3\udca9.xlsx", "café.xlsx"),
        ("\udce2\udc98\udc85\udcff", "★\\xff"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\ud800"),
        ("", ""),
    ],
)
def test_a_path_that_the_locale_could_not_decode_is_read_as_utf8(text: str, shown: str) -> None:
    assert readable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202e\u2028\ufeff", "\\u202e\\u2028\\ufeff"),
        ("\udcc2\udc9b2J", "\\x9b2J"),  # undecoded bytes of a control character
        ("\ud800", "\\ud800"),
        ("日本 ★ é", "日本 ★ é"),
    ],
)
def test_no_character_of_a_text_has_an_effect(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("★ é …", None, "★ é …"),
        ("★ é …", "utf-8", "★ é …"),
        ("★ é …", "ascii", "* \\xe9 ..."),
        ("é", "latin-1", "é"),
        ("★ é – − “x” ÷ ≥", "latin-1", '* é - - "x" / >='),
        ("█·", "ascii", "#."),
        ("日", "ascii", "\\u65e5"),
    ],
)
def test_a_stream_is_given_what_it_can_carry(text: str, encoding: str | None, shown: str) -> None:
    assert carried(text, encoding) == shown


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 0, "0 of 0 queries"),
        (1, 1, "1 of 1 query"),
        (1, 2, "1 of 2 queries"),
        (1200, 1234, "1,200 of 1,234 queries"),
    ],
)
def test_a_share_of_the_queries(part: int, whole: int, words: str) -> None:
    assert of_queries(part, whole) == words


class Log(io.StringIO):
    """A reader sees what was flushed."""

    seen = ""

    def flush(self) -> None:
        self.seen = super().getvalue()

    def getvalue(self) -> str:
        return self.seen


def test_the_bar_tells_pace_and_time_left() -> None:
    stream = Log()
    bar = _ProgressBar(100, stream)
    for _ in range(25):
        bar.advance()
    bar._started -= 100  # as long ago as that
    bar.close()
    assert re.search(r"25/100 rows, 0\.2/s, 5 min 0\d s left\n$", stream.getvalue())
    for _ in range(75):
        bar.advance()
    bar.close()
    assert re.search(r"100/100 rows, 1\.0/s\n$", stream.getvalue())


@pytest.mark.parametrize(
    ("total", "done", "said"),
    [
        (1, 1, "1 of 1 row finished after 0 s\n"),
        (2, 1, "1 of 2 rows finished after 0 s\n"),
        (0, 0, "0 of 0 rows finished after 0 s\n"),
    ],
)
def test_lines_of_progress_count_what_is_finished_and_not_what_was_judged(
    total: int, done: int, said: str
) -> None:
    stream = Log()
    lines = _ProgressLines(total, stream)
    for _ in range(done):
        lines.advance()  # nothing is said within the first half second
    assert stream.getvalue() == ""
    lines.close()
    assert stream.getvalue() == said


@pytest.mark.parametrize(("encoding", "full", "empty"), [("utf-8", "█", "·"), ("ascii", "#", ".")])
def test_the_bar_is_drawn_in_characters_of_the_terminal(encoding: str, full: str, empty: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
    bar = _ProgressBar(2, stream)
    bar.advance()
    bar.close()
    drawn = raw.getvalue().decode(encoding)
    assert drawn.startswith(f"\r\x1b[K{empty * 30} 0/2 rows")
    assert f"\r\x1b[K{full * 15}{empty * 15} 1/2 rows, " in drawn
    assert drawn.endswith(" left\n")


class Terminal(Log):
    def isatty(self) -> bool:
        return True


def test_the_kind_of_progress_follows_the_stream() -> None:
    assert isinstance(progress(3, Log(), quiet=False), _ProgressLines)
    assert isinstance(progress(3, Terminal(), quiet=False), _ProgressBar)
    assert isinstance(progress(3, Terminal(), quiet=True), _NoProgress)
    assert isinstance(counter(Log(), "Rows read", quiet=False), _Counter)
    assert isinstance(counter(Log(), "Rows read", quiet=True), _NoProgress)


def test_a_quick_count_leaves_no_line() -> None:
    log, terminal = Log(), Terminal()
    for stream in (log, terminal):
        count = _Counter(stream, "Rows read")
        for _ in range(64):
            count.advance()
        count.close()
    assert (log.getvalue(), terminal.getvalue()) == ("", "\r\x1b[K")


def test_the_bar_is_drawn_again_after_a_tenth_of_a_second() -> None:
    stream = Log()
    bar = _ProgressBar(10, stream)
    for ago, drawn in ((0.0, ["0/10 rows"]), (0.1, ["0/10 rows", "2/10 rows"])):
        bar._drawn = time.monotonic() - ago
        bar.advance()
        assert re.findall(r"\S+ rows", stream.getvalue()) == drawn
    assert time.monotonic() - bar._drawn < 0.1
    assert stream.getvalue().startswith(f"\r\x1b[K{'·' * 30} 0/10 rows\r")


def test_lines_of_progress_come_at_each_tenth_if_half_a_second_is_over() -> None:
    stream = Log()
    lines = _ProgressLines(25, stream)
    for number in range(1, 26):
        lines._told = time.monotonic() - (0.5 if number != 9 else 0)
        lines.advance()
    found = [int(count) for count in re.findall(r"^(\d+) of 25 rows", stream.getvalue(), re.MULTILINE)]
    assert found == [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]


def test_a_count_that_takes_long_is_told_every_64_rows_at_most() -> None:
    log, terminal = Log(), Terminal()
    for stream, pause in ((log, 10), (terminal, 0.1)):
        count = _Counter(stream, "Rows read")
        assert 0 < count._next - time.monotonic() <= 0.8
        count._next = 0.0
        for _ in range(127):
            count.advance()
            if count._next > 0:
                assert pause - 0.1 < count._next - time.monotonic() <= pause
                count._next = 0.0
        count.close()
    assert log.getvalue() == "Rows read: 64 so far\n"
    assert terminal.getvalue() == "\r\x1b[KRows read: 64 so far\r\x1b[K"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3599.4, "59 min 59 s"),
        (3600, "1 h 00 min"),
        (7499, "2 h 04 min"),
    ],
)
def test_how_long_something_takes(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def faithful(row: int, bot: str, value: float) -> CaseResult:
    return result_of(Case(row, bot, "q", "a"), [Score.scored("faithfulness", value)])


def test_the_leaderboard_and_the_counts_to_the_letter() -> None:
    results = [
        faithful(2, "日本", 0.25),
        faithful(2, "B", 0.75),
        faithful(3, "日本", 0.5),
        faithful(3, "B", 0.75),
    ]
    summary = summary_of(results, facts_of(("日本", "B"), 2, metrics=("faithfulness",)))
    assert leaderboard_lines(summary) == [
        "Rank  Bot   Avg RQS  StdDev  Faithfulness  Rows",
        "   1  B        0.75    0.00          0.75     2  ★",
        "   2  日本     0.38    0.13          0.38     2",
    ]
    assert list(bot_lines(summary, find(summary))) == [
        "日本: RQS for 2 of 2 queries",
        "B: RQS for 2 of 2 queries",
    ]


def test_a_mean_over_fewer_rows_shows_its_count() -> None:
    summary = summary_of([faithful(2, "A", 0.5)], facts_of("A", 1, metrics=("faithfulness",)))
    (line,) = summary.standings
    fewer = replace(line, metrics={"faithfulness": Mean(0.5, 0.0, 3)}, rqs=Mean(0.5, 0.0, 4))
    assert leaderboard_lines(replace(summary, standings=(fewer,))) == [
        "Rank  Bot  Avg RQS  StdDev  Faithfulness  Rows",
        "   1  A       0.50    0.00      0.50 (3)     4",
        "A count in brackets: the mean is over that many rows, because the other rows do not have this score.",
    ]
    none = replace(line, metrics={"faithfulness": Mean(None, None, 0)}, rqs=Mean(None, None, 0), rank=None)
    assert leaderboard_lines(replace(summary, standings=(replace(none, is_winner=False),)))[1:] == [
        "      A          –       –             –     0"
    ]


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "ascii:strict"}])
def test_in_an_ascii_locale_names_are_spelled_out_and_nothing_fails(
    tmp_path: Path, more: dict[str, str]
) -> None:
    name = "caf\u00e9"
    (tmp_path / f"{name}.csv").write_text(f"Query,Bot_{name},Bot_B\nq?,Tea is a drink.,No\n", "utf-8")
    environment = {**os.environ, **ASCII, **more, "PYTHONPATH": str(ROOT)}
    environment = {key: value for key, value in environment.items() if not key.startswith("AZURE")}
    words = [
        f"{name}.csv",
        "-o",
        f"{name}/r.xlsx",
        "--judge",
        "offline",
        "--json",
        "r.json",
        "--manifest",
        "m.json",
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "rag_eval", *words, "--fail-under", "rqs=1", "--junit", f"{name}.xml"],
        cwd=tmp_path, env=environment, capture_output=True, check=False,
    )  # fmt: skip
    out, err = ended.stdout.decode("ascii"), ended.stderr.decode("ascii")
    assert ended.returncode == 1
    assert "udcc3" not in out + err
    assert out.startswith("caf\\xe9.csv (separated by commas")
    assert f"Report: caf\\xe9{os.sep}r.xlsx" in out
    assert "Also written: caf\\xe9.xml" in out
    assert "Traceback" not in err
    assert (tmp_path / name / "r.xlsx").exists()
    written = (tmp_path / "r.json").read_text("utf-8") + (tmp_path / "m.json").read_text("utf-8")
    assert '"input_name": "café.csv"' in written
    assert '"name": "café.csv"' in written
    assert "udcc3" not in written


@pytest.mark.parametrize(
    "command", ["", "run", "retrieval", "rubric", "cache", "init", "doctor", "completion"]
)
def test_help_can_be_read_everywhere_and_is_whole(command: str) -> None:
    environment = {**os.environ, **ASCII, "PYTHONIOENCODING": "ascii:strict", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "rag_eval", *command.split(), "--help"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    commands = ended.stdout.partition("\nCommands:\n")[2]
    assert "..." not in commands  # as click ends a summary that it cuts
    assert bool(commands) is (command in ("", "rubric", "cache"))


CAUSES = BotCauses(
    "A",
    5,
    tuple(
        Cause(name, text, "do this", count, 5, tuple(range(2, 2 + count)))
        for name, text, count in (
            ("no_response", "one", 2),
            ("ranking", "two", 1),
            ("evasive", "three", 1),
            ("off_topic", "four", 1),
        )
    ),
    3,
    0.125,
)


def test_each_bot_has_its_failures_the_first_fix_and_its_worst_row() -> None:
    results = [faithful(row, "A", 0.1 if row < 7 else 0.9) for row in range(2, 12)]
    summary = summary_of(results, facts_of("A", 10, metrics=("faithfulness",)))
    findings = replace(find(summary), causes=(CAUSES,))
    assert list(bot_lines(summary, findings)) == [
        "A: RQS for 10 of 10 queries",
        "  Failures: 5 of 10 queries (Hallucination 5)",
        "  First fix: do this",
        "    2 of 5 failures: one (rows 2, 3)",
        "    1 of 5 failures: two (row 2)",
        "    1 of 5 failures: three (row 2)",
        "  Worst row: 3 (RQS 0.13)",
    ]
    results = [plain_result(row, "A", 0.1 if row < 7 else 0.9) for row in range(2, 12)]
    assert list(bot_lines(summary_of(results, facts_of("A", 10)), findings))[1] == (
        "  Failures: 5 of 10 queries (Retrieval Failure 5, Hallucination 5, Low Quality 5; some queries have several)"
    )
    perfect = replace(CAUSES, failures=0, causes=(), worst_row=None, worst_rqs=None)
    assert list(bot_lines(summary, replace(findings, causes=(perfect,)))) == ["A: RQS for 10 of 10 queries"]


def test_thousands_of_failures_are_written_alike_in_one_line() -> None:
    results = [faithful(row, "A", 0.1) for row in range(2, 1202)]
    results += [
        result_of(Case(row, "A", "q", "a"), [Score.failed("faithfulness", "truncated", "no reply")])
        for row in range(1202, 2302)
    ]
    summary = summary_of(results, facts_of("A", 2300, metrics=("faithfulness",)))
    findings = replace(find(summary), causes=(replace(CAUSES, failures=1200),))
    assert list(bot_lines(summary, findings))[:2] == [
        "A: RQS for 1,200 of 2,300 queries; failed scores: truncated 1,100",
        "  Failures: 1,200 of 1,200 judged queries (Hallucination 1,200)",
    ]


def test_shares_of_failures_refer_to_the_queries_that_were_judged(tmp_path: Path) -> None:
    failed = Score.failed("faithfulness", "truncated", "no reply")
    results = [
        *(faithful(row, "A", 0.1 if row < 4 else 0.9) for row in range(2, 6)),
        *(result_of(Case(row, "A", "q", "a"), [failed]) for row in range(6, 12)),
    ]
    facts = facts_of("A", 10, metrics=("faithfulness",))
    summary = summary_of(results, facts)
    (bot,) = summary.bots
    columns = {column.header: column for column in bot_columns(facts, summary, find(summary))}
    findings = replace(find(summary), causes=(replace(CAUSES, failures=2),))
    assert "  Failures: 2 of 4 judged queries (Hallucination 2)" in bot_lines(summary, findings)
    assert columns["Hallucinations %"].cell(bot).value == 0.5
    page = page_of(tmp_path / "page.html", results, metrics=("faithfulness",)).read_text()
    assert "2 <small>of 4</small>" in page
    assert "<b>2</b> <small>50%</small>" in page


def on_a_terminal(folder: Path, **variables: str) -> str:
    """What a run prints on a pseudo-terminal."""
    (folder / "in.csv").write_text("Query,Bot_A,Bot_B\nWhy is it so?,Because it is so.,No.\n")
    ours, theirs = os.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, ROOT / "rag_eval_standalone.py", "in.csv", "--judge", "offline"],
        cwd=folder,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={**environment, "TERM": "xterm", **variables},
    )
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # Linux's way of saying that the other end is closed
        while piece := os.read(ours, 65_536):
            printed += piece
    os.close(ours)
    assert process.wait() == 0
    return printed.decode()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_colours_are_for_terminals_and_not_with_no_color(tmp_path: Path) -> None:
    coloured = on_a_terminal(tmp_path)
    assert "\x1b[1mNo clear winner yet: " in coloured
    assert "\x1b[36m  First fix: " in coloured
    assert "\x1b[2m  Worst row: " in coloured
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = on_a_terminal(tmp_path, **variables)
        assert "\x1b" not in plain
        assert "  First fix: " in plain


@pytest.mark.parametrize(
    ("words", "roles", "command"),
    [
        (["rag-eval", "a.csv"], ["A=query"], "rag-eval a.csv --map A=query"),
        (["rag-eval", "a.csv", "--", "-b.csv"], ["A=query"], "rag-eval a.csv --map A=query -- -b.csv"),
        (["rag-eval", "a.csv", "--bot-name", "X"], ["A=bot"], "rag-eval a.csv --bot-name X --map A=bot"),
        (
            ["rag-eval", "a.csv", "--bot-name", "X", "-q"],
            ["A=bot", "B b=bot"],
            "rag-eval a.csv -q --map A=bot --map 'B b=bot'",
        ),
        (["rag-eval", "--bot-name=X", "a.csv"], ["A=bot", "B=bot"], "rag-eval a.csv --map A=bot --map B=bot"),
        (["/usr/bin/env", "a.csv"], [], "env a.csv"),
        (["/nowhere/our-rag-eval", "a.csv"], [], "/nowhere/our-rag-eval a.csv"),
    ],
)
def test_a_command_is_proposed_in_the_words_of_the_one_that_was_given(
    monkeypatch: pytest.MonkeyPatch, words: list[str], roles: list[str], command: str
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    assert console.same_command_with(roles) == command


def test_what_python_cannot_raise_is_said_unless_it_is_about_a_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    said: list[str] = []
    before = sys.unraisablehook
    try:
        sys.unraisablehook = lambda unraisable: said.append(str(unraisable.exc_value))
        console._say_failures_once()
        for error in (OSError("no space"), ValueError("a mistake")):
            Broken(error)
    finally:
        sys.unraisablehook = before
    assert said == ["a mistake"]


def test_a_command_is_quoted_as_the_shell_of_windows_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        assert console.command_line("rag-eval", "my answers.csv") == 'rag-eval "my answers.csv"'
    assert console.command_line("rag-eval", "my answers.csv") == "rag-eval 'my answers.csv'"


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="nothing here is always full")
@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize(("is_terminal", "is_result"), [(False, True), (False, False), (True, True)])
def test_what_a_full_disk_does_not_take_is_noticed_at_the_flush(
    is_terminal: bool, is_result: bool, is_binary: bool
) -> None:
    """It is told of a result alone, then and from then on; a terminal that is gone is no loss."""
    problems: list[str] | None = [] if is_result else None
    with FULL.open("w") as full:
        stream = _Stream(full, problems, is_terminal=is_terminal)
        written = stream.buffer if is_binary else stream
        assert written.write(b"four" if is_binary else "four") == 4
        is_told = is_result and not is_terminal
        for _ in range(2):
            with (
                pytest.raises(OutputError, match="No space left on device; free some space")
                if is_told
                else nullcontext()
            ):
                written.flush()
        assert problems == (["No space left on device"] if is_told else [] if is_result else None)


def test_what_is_flushed_is_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "said"
    with path.open("w") as file:
        stream = _Stream(file, [], is_terminal=False)
        stream.write("one")
        assert path.read_text() == ""
        stream.flush()
        assert path.read_text() == "one"
