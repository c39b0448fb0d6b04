"""What is recognised, what is left alone, and that an LLM judge never sees what was to be hidden."""

import time
import zipfile
from pathlib import Path

import pytest
from conftest import Run, azure, read_sheet
from fake_judge import FakeJudge
from files import write_table
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from rag_eval.configuration.settings import Settings
from rag_eval.records import Case, Row
from rag_eval.texts.redaction import EMAIL, KINDS, PHONE, Redactor


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("a@b.com", "[email]"),
        ("Write to first.last+tag@sub.example.co.uk.", "Write to [email]."),
        ("<o'brien@example.org>", "<[email]>"),
        ("'a@b.com'", "'[email]'"),
        ("mailto:x_y%z@ex-ample.io?subject=1", "mailto:[email]?subject=1"),
        ("jörg@müller.de, 李@例子.公司", "[email], [email]"),
        ("a@b.xn--p1ai", "[email]"),
        ("..a@b.com…", "..[email]…"),
        ("a@b.com,c@d.org;e@f.net", "[email],[email];[email]"),
        ("a\n@b.com", "a\n@b.com"),
        ("@name and a @ b.com", "@name and a @ b.com"),
        ("user@localhost, 3@2, a@b.c, root@10.0.0.1", "user@localhost, 3@2, a@b.c, root@10.0.0.1"),
    ],
)
def test_addresses(text: str, redacted: str) -> None:
    """An address goes as a whole, and what stands around it stays."""
    assert Redactor([EMAIL]).text(text) == redacted


@pytest.mark.parametrize(
    "number",
    [
        "+49 30 1234567",
        "+14155550123",
        "+1 (555) 123-4567",
        "+44 (0)20 7946 0958",
        "+49 (0) 30 / 1234567",
        "+49-30-1234567-890",
        "+41\u00a044\u00a0668\u00a018\u00a000",
        "+91 98765 43210",
        "0049 171 1234567",
        "020 7946 0958",
        "030/1234567",
        "030 / 1234567",
        "030-1234567",
        "030 – 1234567",
        "(030) 1234567",
        "(0171) 123-4567",
        "0171 123 45 67",
        "01 23 45 67 89",
        "01.23.45.67.89",
        "030 1234567 ext. 12",
        "(555) 123-4567",
        "(11) 91234-5678",
        "555-123-4567",
        "555 123 4567",
        "555.123.4567",
        "555-123-4567x12",
        "1-800-555-0199",
        "555-1234",
        "138 1234 5678",
    ],
)
@pytest.mark.parametrize("around", ["{}", "Call {}.", "Tel.:{}, or come by", "tel:{}", "({})", "in 2024 {}!"])
def test_phone_numbers(number: str, around: str) -> None:
    """A number goes to its last digit, wherever it stands in a sentence."""
    assert Redactor([PHONE]).text(around.format(number)) == around.format("[phone]")


@pytest.mark.parametrize(
    "text",
    [
        *("2024", "2019-2024", "2019 2020 2021", "1998–2004", "(2019) 123 4567"),
        *("2024-05-01", "2024/05/01", "2024-05-01 13:30:00", "2024-05-01T10:30:00+02:00", "20240501"),
        *("01.05.2024", "01/05/2024", "01-05-2024", "05/2024-06/2024", "01.05.2024 - 03.06.2024"),
        *("01.05.24 10:30", "12:34:56", "00:15:30", "09:30-17:00", "08:00 - 12:00"),
        *(
            "1,234,567.89",
            "$1,234-1567",
            "1.234.567 €",
            "1 234 567",
            "100 000 000",
            "$555-1234",
            "€0800 123456",
        ),
        *("3.14159265", "0.12345678", "52.520008, 13.404954", "1e10", "12345678", "0123456789"),
        *("500-1000 words", "10 20 30 40", "1-2-3-4-5-6-7", "pages 123-130"),
        *("192.168.100.200", "127.0.0.1:8080", "10.0.19045.2364", "v1.0.0-2024"),
        *("INV-030-1234567", "AB030 1234567", "030-1234-AB", "SKU_0123-4567", "#555-1234", "0x1234-5678"),
        "550e8400-e29b-41d4-a716-446655440000",
        *("978-3-16-148410-0", "978-0-306-40615-7", "0-306-40615-2", "RFC 2616", "+49 30", "C++ 20"),
    ],
)
def test_other_numbers_stay(text: str) -> None:
    """Years, dates, times, prices, ranges, addresses of computers and ids with letters are no phone numbers."""
    redactor = Redactor([PHONE])
    assert (redactor.text(text), redactor.text(f"It is {text}, so.")) == (text, f"It is {text}, so.")


def test_only_what_was_asked_for_is_replaced_and_all_of_it_is_counted() -> None:
    text = "a@b.com, +49 30 1234567, CUST-17 and CUST-18"
    expected = {
        (): (text, {}),
        (EMAIL,): ("[email], +49 30 1234567, CUST-17 and CUST-18", {EMAIL: 1}),
        (PHONE,): ("a@b.com, [phone], CUST-17 and CUST-18", {PHONE: 1}),
        KINDS: ("[email], [phone], CUST-17 and CUST-18", {EMAIL: 1, PHONE: 1}),
    }
    for kinds, (redacted, counts) in expected.items():
        redactor = Redactor(kinds)
        assert (redactor.text(text), redactor.counts, bool(redactor)) == (redacted, counts, bool(kinds))
    redactor = Redactor(KINDS, r"CUST-\d+")
    assert redactor.text(text) == "[email], [phone], [redacted] and [redacted]"
    assert redactor.summary().endswith("e-mail addresses: 1, phone numbers: 1, matches of redact_pattern: 2.")


def test_a_pattern_that_matches_between_characters_hides_nothing() -> None:
    """A look-ahead passes the check of the settings; it must not sprinkle marks over the text."""
    redactor = Redactor(pattern=r"(?=x)|y")
    assert (redactor.text("xyx"), redactor.counts) == ("x[redacted]x", {"redacted": 1})


def test_the_users_pattern_cannot_tear_an_address() -> None:
    assert Redactor([EMAIL], "joe").text("joe@b.com, joe") == "[email], [redacted]"


def test_all_texts_of_a_row_are_redacted_and_shared_chunks_stay_shared() -> None:
    """Everything that a judge may see, once; what it never sees stays as it is."""
    chunks = ("a@b.com", "plain")
    cases = tuple(
        Case(2, bot, "q a@b.com", f"{bot} a@b.com", "r a@b.com", tuple(chunks), human={"f": 1.0},
             columns={"Topic": "a@b.com"})
        for bot in "AB"
    )  # fmt: skip
    redactor = Redactor([EMAIL])
    row = redactor.row(Row(2, "q a@b.com", cases))
    first, second = row.cases
    assert row.query == first.query == "q [email]"
    assert (first.response, first.reference, first.chunks) == ("A [email]", "r [email]", ("[email]", "plain"))
    assert first.chunks is second.chunks
    assert (first.human, first.columns) == ({"f": 1.0}, {"Topic": "a@b.com"})
    assert redactor.counts == {EMAIL: 5}, "two responses, and query, reference and chunk once"
    bare = Case(2, "A", "q", "a")
    assert redactor.case(bare) == bare, "what is absent stays absent"


def test_the_settings_know_the_same_kinds() -> None:
    assert Settings(privacy={"redact": ", ".join(KINDS)}).privacy.kinds == KINDS
    assert Settings().privacy.kinds == ()


@given(st.text(alphabet="a1 0.-+()@/x2é", max_size=60))
def test_what_is_redacted_once_is_redacted(text: str) -> None:
    """The same text becomes the same text, and no address is left in it."""
    redacted = Redactor(KINDS).text(text)
    assert Redactor(KINDS).text(text) == redacted
    assert Redactor([EMAIL]).text(redacted) == redacted


@pytest.mark.parametrize(
    "piece", ["a.", "a@", "a@b.", "0 ", "01", "+1 ((", "1-", "(", "0", "'", "x@a.", "030 ", "555-", ") "]
)
def test_hostile_texts_take_no_longer_than_others(piece: str) -> None:
    """Of 400,000 characters; a quadratic search would take minutes."""
    begin = time.perf_counter()
    Redactor(KINDS).text(piece * (400_000 // len(piece)))
    assert time.perf_counter() - begin < 5


# From the outside

SECRETS = ("jo@example.com", "+49 30 1234567", "CUST-17")
GOOD = "Paris is the capital of France."


def planted(path: Path) -> Path:
    """A sheet with an address, a number and an id in every text that is judged; bot Bad gives bad answers."""
    secret = " and ".join(SECRETS)
    return write_table(
        path,
        ["Query", "Ground_Truth", "Bot_Good", "Bot_Bad", "Context"],
        [
            f"What is the capital of France? Ask {secret}.",
            f"{GOOD} Says {secret}.",
            f"{GOOD} It was said by {secret}.",
            f"London has red buses. Coffee costs {secret}.",
            f"{GOOD} By {secret}. || Tea is a drink of {secret}.",
        ],
    )


def cells(path: Path) -> str:
    book = load_workbook(path, read_only=True)
    text = "\n".join(
        str(value) for sheet in book for row in sheet.iter_rows(values_only=True) for value in row if value
    )
    book.close()
    return text


def drawings(path: Path) -> str:
    """The boxes of a report, in which it says what kind of run it was."""
    with zipfile.ZipFile(path) as archive:
        return "".join(
            archive.read(name).decode() for name in archive.namelist() if name.startswith("xl/drawings/")
        )


def config(tmp_path: Path, text: str = "") -> None:
    (tmp_path / "config.ini").write_text(
        "[cache]\nenabled = true\n[report]\nevidence = true\n[privacy]\nredact_pattern = CUST-\\d+\n" + text
    )


def test_nothing_that_is_to_be_hidden_is_sent_or_stored(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Every request, recommendations included; the report has the texts as they were, and says what was done."""
    config(tmp_path)
    planted(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--redact", **azure(judge))
    assert ended.code == 0
    assert judge.tasks()["recommendation"]
    sent = "\n".join(str(request.body) for request in judge.requests)
    stored = b"".join(path.read_bytes() for path in (tmp_path / ".nexus_cache").iterdir())
    for secret in SECRETS:
        assert secret not in sent
        assert secret.encode() not in stored
    assert all(mark in sent for mark in ("[email]", "[phone]", "[redacted]"))
    for line in read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics"):
        texts = [str(value) for value in line.values() if "jo@example.com" in str(value)]
        assert len(texts) >= 3, "query, response and reference at least"
    note = "e-mail addresses: 6, phone numbers: 6, matches of redact_pattern: 6."
    assert note in ended.out
    assert note in drawings(tmp_path / "r.xlsx")


def test_without_redaction_the_texts_are_sent(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """So that the test above could fail."""
    planted(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", **azure(judge))
    assert all(secret in str([request.body for request in judge.requests]) for secret in SECRETS)
    assert "Redacted" not in ended.out


@pytest.mark.slow
def test_redaction_is_keyed_into_the_store(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """What was answered about other texts is not taken; the same redaction asks nothing again."""
    config(tmp_path)
    planted(tmp_path / "in.xlsx")
    asked = []
    for options in ([], ["--redact"], ["--redact"], []):
        judge.requests.clear()
        assert run_cli("in.xlsx", *options, **azure(judge)).code == 0
        asked.append(len(judge.requests))
    assert asked[0] > 0
    assert asked[1] > 0
    assert asked[2:] == [0, 0]


def test_the_option_stands_for_both_kinds_and_the_file_may_name_one(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    config(tmp_path, "redact = email\n")
    planted(tmp_path / "in.xlsx")
    assert "e-mail addresses: 6, matches of" in run_cli("in.xlsx", **azure(judge)).out
    assert "e-mail addresses: 6, phone numbers: 6" in run_cli("in.xlsx", "--redact", **azure(judge)).out


def test_a_dry_run_says_what_would_be_redacted(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    planted(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--dry-run", "--redact", **azure(judge))
    assert "A run would redact before sending: e-mail addresses, phone numbers." in ended.out
    assert judge.requests == []


def test_the_offline_judge_is_shown_everything_and_it_is_said(run_cli: Run, tmp_path: Path) -> None:
    planted(tmp_path / "in.xlsx")
    ended = run_cli("in.xlsx", "--redact", "--judge", "offline")
    assert ended.code == 0
    assert "Nothing is redacted: the offline judge sends nothing." in ended.err
    assert "[email]" not in cells(tmp_path / "in_report.xlsx")
    assert "redacted" not in run_cli("in.xlsx", "--judge", "offline").err


def test_a_pattern_that_is_none_is_refused_at_once(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[privacy]\nredact_pattern = (\n")
    ended = run_cli("in.xlsx")
    assert ended.code == 2
    assert "config.ini, line 2, [privacy] redact_pattern: '(' is not allowed" in ended.err
