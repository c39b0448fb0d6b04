"""The folder of a run in shards: what it removes, writes again and refuses, and what it says of workers that died."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, azure, wait_for, with_json_and_page
from fake_judge import FakeJudge, Request, error
from files import sheet_of
from forking import Forker
from test_shards import BATCHED, IN_THIS_PROCESS, children_of, parts_of, sharded, singles, table_of, told

from rag_eval.cli.options import Options
from rag_eval.cli.shard_run import ShardedRun
from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError, OutputError
from rag_eval.shards.folder import RunFolder, fingerprint_of_file, write_rows
from rag_eval.shards.judge_shard import GRANT_USED, ShardOutcome, judge_shard
from rag_eval.shards.plan import read_plan
from rag_eval.shards.purse import Purse
from rag_eval.shards.spec import ShardSpec, judged_otherwise, plain_settings, read_spec


@pytest.fixture
def rag_eval(rag_eval: Run, one_core: None) -> Run:
    """In this process alone. What worker processes do is tested with `forker`."""
    return with_json_and_page(rag_eval)


USERS = (
    "input/thesis.txt",
    "input/part-1.parquet",
    "input/part-00000.parquet.bak",
    "input/old/part-00000.parquet",
    "replies/letter.txt",
    "replies/mail.sqlite",
    "replies/all.sqlite.damaged-20260101-000000-000000",
    "grants/2026.txt",
    "grants/0123456789abcdef.pdf",
    "results/notes.txt",
    "tallies/notes.txt",
    "specs/notes.txt",
    "thesis.txt",
)
"""Files that no run in shards has written, whatever their folder is called."""


def with_files_of_a_user(root: Path) -> dict[Path, str]:
    """Writes them. Returns what is in each."""
    files = {root / name: f"precious {name}" for name in USERS}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return files


# What is removed


@pytest.mark.slow
def test_no_command_removes_a_file_of_the_user(rag_eval: Run, tmp_path: Path, judge: FakeJudge) -> None:
    (tmp_path / "config.ini").write_text(IN_THIS_PROCESS)
    for name in ("a1.csv", "a2.csv"):
        table_of(tmp_path / name, 2)
    files = with_files_of_a_user(tmp_path / "proj")
    offline = ("a1.csv", "a2.csv", "-o", "proj", "--judge", "offline", "-q")
    for arguments, code in {
        (*offline, "--dry-run"): 0,
        (*offline, "--engine", "none"): 0,
        ("shard", "proj/specs/part-00000.json"): 0,
        ("report", "proj"): 4,
        offline: 0,
        (*offline, "--fresh"): 0,
        ("cases", "proj", "--where", "rqs < 1", "-o", "x.xlsx"): 0,
        ("a1.csv", "a2.csv", "-o", "proj", "--fresh", "-q", "--max-calls", "20"): 4,
        ("a1.csv", "a2.csv", "-o", "proj", "-q", "--max-calls", "1000"): 0,
    }.items():
        ended = rag_eval(*arguments, **azure(judge))
        assert ended.code == code, (arguments, ended.err)
        assert {path: path.read_text() for path in files if path.exists()} == files, arguments
    assert not (tmp_path / "proj/replies/all.sqlite").exists()
    assert {path.name for path in (tmp_path / "proj/grants").iterdir()} == {
        "2026.txt",
        "0123456789abcdef.pdf",
    }


def test_what_a_run_that_was_killed_while_it_read_left_is_removed(rag_eval: Run, tmp_path: Path) -> None:
    table_of(tmp_path / "in.csv", 2)
    command = ("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 1)
    folder = RunFolder(tmp_path / "out")
    folder.all_inputs.mkdir(parents=True)
    for number in range(9):
        folder.input(number).write_text("old")
    tag = _tag_of_temporary_files(tmp_path, folder.input(9))
    (folder.all_inputs / tag).write_text("old")
    assert rag_eval(*command).code == 0
    assert sorted(folder.all_inputs.iterdir()) == [folder.input(0), folder.input(1)]


def test_what_a_worker_that_outlived_its_run_leaves_meanwhile_is_removed_at_the_end(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge
) -> None:
    target, left = RunFolder(tmp_path / "out").tallies(1), set[Path]()

    def leave(_: Request) -> None:
        target.parent.mkdir(exist_ok=True)
        left.add(target.with_name(_tag_of_temporary_files(tmp_path, target)))
        max(left).write_text("old")

    judge.always = leave
    assert rag_eval(*sharded(tmp_path, rows=2, size=1), **azure(judge)).code == 0
    assert left
    assert not any(map(Path.exists, left))


def _tag_of_temporary_files(tmp_path: Path, target: Path) -> str:
    """A name that such a file has, of a run that has ended."""
    from rag_eval.store.replacement import Replacement

    replacement = Replacement(target)
    replacement.discard()
    return replacement.path.name


def test_folders_with_nothing_else_in_them_are_removed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    ours = [
        *(folder.all_replies / f"all.sqlite{end}" for end in ("", "-wal", "-shm", "-journal")),
        *(folder.all_replies / f"{name}.sqlite" for name in ("part-00000", "part-123456")),
        *(folder.all_replies / f".rag-eval-all.sqlite.{end}" for end in ("new", "lock")),
        folder.grant("0123456789abcdef"),
    ]
    for path in ours:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (folder.all_grants / "fedcba9876543210").mkdir()
    folder.remove_replies()
    assert [path.name for path in tmp_path.rglob("*")] == ["grants", "fedcba9876543210"]
    folder.remove_inputs()
    folder.remove_replies()


def test_nothing_is_left_of_replies_in_a_folder_of_its_own(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge
) -> None:
    command = sharded(tmp_path, rows=2, size=1)
    assert rag_eval(*command, "--max-calls", 20, **azure(judge)).code == 4
    assert {"replies", "grants"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert rag_eval(*command, "--max-calls", 1000, **azure(judge)).code == 0
    assert {"replies", "grants"}.isdisjoint(path.name for path in (tmp_path / "out").iterdir())


# Rows that are written again


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def make_a_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
def test_rows_that_are_damaged_are_read_again_and_nothing_finished_is_paid_again(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge, damage: Callable[[Path], None]
) -> None:
    command = sharded(tmp_path, rows=3, size=1)
    assert rag_eval(*command, **azure(judge)).code == 0
    folder, whole = RunFolder(tmp_path / "out"), told(tmp_path / "out/report.json")
    rows, finished = folder.input(1).read_bytes(), parts_of(folder.root)
    damage(folder.input(1))
    folder.results(1).unlink()
    judge.requests.clear()
    ended = rag_eval(*command, **azure(judge))
    assert ended.code == 0, ended.err
    assert "out/input: 1 part is missing or damaged, and will be written again from the input." in ended.err
    assert folder.input(1).read_bytes() == rows
    texts = [request.prompt for request in judge.requests if request.task not in BATCHED]
    assert texts
    assert not re.search(r"(question|Says) [02]\b", "\n".join(texts)), "the other shards are finished"
    now = parts_of(folder.root)
    assert {path for path in now if now[path] == finished[path]} == {*now} - {str(folder.results(1))}
    assert told(folder.root / "report.json")["cases"] == whole["cases"]


def test_replies_that_were_paid_for_are_used_when_rows_are_read_again(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge
) -> None:
    command = sharded(tmp_path, rows=3, size=1)
    assert rag_eval(*command, "--max-calls", 25, **azure(judge)).code == 4
    folder = RunFolder(tmp_path / "out")
    for number in range(3):
        folder.input(number).write_bytes(b"damaged")
    ended = rag_eval(*command, **azure(judge))
    assert ended.code == 0, ended.err
    assert "out/input: 2 parts are missing or damaged" in ended.err
    assert folder.input(0).read_bytes() == b"damaged", "nobody needs the rows of a finished shard"
    assert set(singles(judge).values()) == {1}


@pytest.mark.slow
def test_rows_of_cases_that_failed_are_read_again(rag_eval: Run, tmp_path: Path, judge: FakeJudge) -> None:
    command = sharded(tmp_path, rows=2, size=1)

    def fail(request: Request) -> Any:
        is_one = "question 1" in request.prompt and request.task != "preflight"
        return error(400, "bad_request", "no") if is_one else None

    judge.always = fail
    assert rag_eval(*command, **azure(judge)).code == 3
    judge.always = None
    for number in range(2):
        RunFolder(tmp_path / "out").input(number).unlink()
    ended = rag_eval(*command, "--retry-errors", **azure(judge))
    assert ended.code == 0, ended.err
    assert [path.name for path in (tmp_path / "out/input").iterdir()] == ["part-00001.parquet"]
    assert rag_eval(*command, "--fresh", **azure(judge)).code == 0
    assert len(list((tmp_path / "out/input").iterdir())) == 2


@pytest.mark.slow
def test_rows_of_several_files_are_read_again_as_they_were(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number, name in enumerate("abc"):
        table_of(tmp_path / "many" / f"{name}.csv", 4, seed=number)
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 10\n[judge]\nprovider = offline\n")
    command = ("many", "-o", "out", "--shard-rows", 3, "--where", "Topic = early")
    assert rag_eval(*command).code == 0
    folder, whole = RunFolder(tmp_path / "out"), told(tmp_path / "out/report.json")
    rows = {path: path.read_bytes() for path in sorted(folder.all_inputs.iterdir())}
    assert len(rows) == 5
    for number, path in enumerate(rows):
        path.unlink()
        folder.results(number).unlink()
    assert rag_eval(*command, "--engine", "none").code == 0
    assert {path: path.read_bytes() for path in sorted(folder.all_inputs.iterdir())} == rows
    assert rag_eval("shard", folder.spec(4)).code == 0
    assert rag_eval(*command).code == 0
    assert told(tmp_path / "out/report.json") == whole


def test_the_rows_of_finished_shards_are_not_needed_to_count_again(rag_eval: Run, tmp_path: Path) -> None:
    table_of(tmp_path / "in.csv", 4)
    command = ("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 2)
    assert rag_eval(*command).code == 0
    for path in (tmp_path / "out/input").iterdir():
        path.unlink()
    ended = rag_eval(*command, "--alpha", "0.9")
    assert ended.code == 0, ended.err
    assert not list((tmp_path / "out/input").iterdir())
    RunFolder(tmp_path / "out").results(0).unlink()
    (tmp_path / "in.csv").write_text((tmp_path / "in.csv").read_text() + "More?,,,,,,,\n")
    changed = rag_eval(*command, "--alpha", "0.9")
    assert (changed.code, "in.csv: has changed since" in changed.err) == (2, True)
    assert not list((tmp_path / "out/input").iterdir())


@pytest.mark.slow
def test_rows_that_are_written_in_another_way_now_are_taken(rag_eval: Run, tmp_path: Path) -> None:
    """As after an update of pyarrow, whose version is in each of its files."""
    table_of(tmp_path / "in.csv", 4)
    command = ("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 2)
    assert rag_eval(*command).code == 0
    folder, whole = RunFolder(tmp_path / "out"), told(tmp_path / "out/report.json")
    manifest = json.loads(folder.manifest.read_text())
    written, manifest["shards"][1]["input"] = manifest["shards"][1]["input"], "0" * 64
    folder.manifest.write_text(json.dumps(manifest))
    folder.results(1).unlink()
    ended = rag_eval(*command)
    assert ended.code == 0, ended.err
    plan = read_plan(folder)
    assert plan is not None
    assert plan.shards[1].input == written == fingerprint_of_file(folder.input(1))
    assert told(tmp_path / "out/report.json") == whole
    assert rag_eval("report", "out").code == 0


@pytest.mark.parametrize(("place", "key"), [("sources", "rows"), ("shards", "rows")])
def test_input_that_is_read_as_other_rows_now_is_refused(
    rag_eval: Run, tmp_path: Path, place: str, key: str
) -> None:
    table_of(tmp_path / "in.csv", 4)
    command = ("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 2)
    assert rag_eval(*command).code == 0
    folder = RunFolder(tmp_path / "out")
    manifest = json.loads(folder.manifest.read_text())
    manifest[place][0][key] += 1
    manifest["version"] = "0.0.9"
    folder.manifest.write_text(json.dumps(manifest))
    folder.input(0).unlink()
    folder.results(0).unlink()
    ended = rag_eval(*command)
    assert ended.code == 2
    assert "read as other rows than when the run began with RAG Eval 0.0.9; use that version" in ended.err


def test_a_dry_run_reads_damaged_rows_again_and_writes_nothing(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge
) -> None:
    command = sharded(tmp_path, rows=3, size=1)
    assert rag_eval(*command, **azure(judge)).code == 0
    folder = RunFolder(tmp_path / "out")
    folder.results(1).unlink()

    def estimated() -> str:
        ended = rag_eval(*command, "--dry-run", **azure(judge))
        assert ended.code == 0, ended.err
        return ended.out[ended.out.index("Rows: 1 in 1 shards") :]

    whole = estimated()
    folder.input(1).unlink()
    files = sorted(folder.root.rglob("*"))
    assert estimated() == whole
    assert sorted(folder.root.rglob("*")) == files


# Secrets


@pytest.mark.parametrize("token", ["Xy7Kq2Lm9Zt", "gatewaySecretTokenWithoutDigit", "s3cr3t-15chars_"])
@pytest.mark.parametrize("more", [(), ("--engine", "none"), ("--dry-run",)])
def test_an_address_that_may_hold_a_key_is_refused_before_anything_is_written(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge, token: str, more: tuple[str, ...]
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=2)
    (tmp_path / "config.ini").write_text(
        f"[judge]\nprovider = openai\n[openai]\nbase_url = {judge.url}/gw/{token}/v1\n"
    )
    ended = rag_eval("in.xlsx", "-o", "out", "--shard-rows", 1, *more, OPENAI_API_KEY=KEY)
    assert ended.code == 2
    assert f"[openai] base_url: {judge.url}/gw/…/v1 may hold a key where it has …" in ended.err
    assert "as api_key or in the environment variable OPENAI_API_KEY" in ended.err
    assert token not in ended.out + ended.err
    assert not (tmp_path / "out").exists()
    assert not judge.requests
    if not more and token.isalpha():  # once is enough: a key that is given as one is in no file
        (tmp_path / "config.ini").write_text(
            f"[judge]\nprovider = openai\n[openai]\nbase_url = {judge.url}/gw/v1\n"
        )
        again = rag_eval("in.xlsx", "-o", "out", "--shard-rows", 1, OPENAI_API_KEY=token)
        assert again.code == 0, again.err
        assert not [path for path in (tmp_path / "out").glob("**/*.json") if token in path.read_text()]


@pytest.mark.parametrize(
    ("provider", "key", "url"),
    [
        ("azure", "endpoint", "https://x.openai.azure.com"),
        ("azure", "endpoint", "https://x1234567890abcdef.openai.azure.com/"),
        ("openai", "base_url", "https://api.example.com/v1"),
        ("openai", "base_url", "https://generativelanguage.googleapis.com/v1beta/openai/"),
        ("openai", "base_url", "https://x.example.com/serving-endpoints"),
        ("openai", "base_url", "http://127.0.0.1:8000/api/v1"),
        ("openai", "base_url", "https://gateway.example.com/openai/deployments/gpt-4o"),
        ("openai", "base_url", "https://gateway.example.com/team42/azure-openai-prod/aiGateway/v1"),
        (
            "openai",
            "base_url",
            "https://x.example.com/v1/projects/my-project-123/locations/us-central1/endpoints",
        ),
    ],
)
def test_an_ordinary_address_is_written_as_it_is(provider: str, key: str, url: str) -> None:
    settings = Settings.model_validate({"judge": {"provider": provider}, provider: {key: url}})
    assert plain_settings(settings)[provider][key] == url


def test_the_address_of_a_judge_that_is_not_asked_is_not_written() -> None:
    settings = Settings.model_validate(
        {"judge": {"provider": "offline"}, "openai": {"base_url": "https://x.example/Xy7Kq2Lm9Zt"}}
    )
    assert "Xy7Kq2Lm9Zt" not in json.dumps(plain_settings(settings))
    asked = settings.model_copy(update={"judge": settings.judge.model_copy(update={"provider": "openai"})})
    with pytest.raises(InputError, match=r"\[openai\] base_url"):
        plain_settings(asked)


# Folders and files in the way


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["results", "tallies", "input"])
def test_a_folder_with_the_name_of_a_part_is_refused_before_anything_is_paid(
    rag_eval: Run, tmp_path: Path, judge: FakeJudge, kind: str
) -> None:
    command = sharded(tmp_path, rows=3, size=1)
    assert rag_eval(*command, **azure(judge)).code == 0
    (path,) = (tmp_path / "out" / kind).glob("part-00001.*")
    make_a_folder(path)
    (path / "thesis.txt").write_text("precious")
    judge.requests.clear()
    refused = rag_eval(*command, **azure(judge))
    said = f"{path.relative_to(tmp_path)}: is a folder, but a run in shards writes a file of this name; move it away"
    assert (refused.code, said in refused.err) == (5, True), refused.err
    reported = rag_eval("report", "out")
    assert reported.code == {"results": 4, "tallies": 5, "input": 0}[kind], reported.err
    assert ("2 of 3 shards are judged" in reported.err) is (kind == "results")
    assert (said in reported.err) is (kind == "tallies")
    assert not judge.requests
    assert (path / "thesis.txt").read_text() == "precious"
    path.rename(tmp_path / "away")
    assert rag_eval(*command, **azure(judge)).code == 0


def test_rows_are_not_written_over_a_folder_or_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    with pytest.raises(
        OutputError, match="part: is a folder, but a run in shards writes a file of this name"
    ):
        write_rows(tmp_path / "part", [])
    (tmp_path / "input").write_text("precious")
    with pytest.raises(
        OutputError, match="input: is a file, but a run in shards writes a folder of this name"
    ):
        write_rows(tmp_path / "input" / "part", [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "part"]


def test_a_shard_whose_part_cannot_be_written_is_not_judged(rag_eval: Run, tmp_path: Path) -> None:
    table_of(tmp_path / "in.csv", 2)
    command = ("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 1)
    assert rag_eval(*command, "--engine", "none").code == 0
    folder = RunFolder(tmp_path / "out")
    folder.results(1).mkdir(parents=True)
    wanted = read_spec(folder.spec(1)).model_copy(update={"grant": "0123456789abcdef"})
    said = judge_shard({"folder": str(folder.root), "spec": wanted.model_dump(mode="json")})
    assert (said["done"], said["code"], said["exit_code"]) == (False, "OutputError", 5)
    assert str(folder.results(1)) in said["stopped"]
    assert not folder.all_grants.exists(), "what was handed out is not used up"
    folder.results(1).rmdir()
    folder.spec(0).unlink()
    folder.spec(0).mkdir()
    ended = rag_eval(*command, "--engine", "none")
    assert (ended.code, "specs/part-00000.json: is a folder, but" in ended.err) == (5, True), ended.err


def test_a_file_in_place_of_a_folder_is_named(rag_eval: Run, tmp_path: Path) -> None:
    table_of(tmp_path / "in.csv", 2)
    (tmp_path / "out").mkdir()
    for kind in ("input", "results", "tallies"):
        (tmp_path / "out" / kind).write_text("precious")
        ended = rag_eval("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 1)
        said = f"out/{kind}: is a file, but a run in shards writes a folder of this name; move it away"
        assert (ended.code, said in ended.err) == (5, True), ended.err
        assert (tmp_path / "out" / kind).read_text() == "precious"
        (tmp_path / "out" / kind).unlink()
    assert rag_eval("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 1).code == 0


def test_rows_are_needed_until_a_shard_is_finished(rag_eval: Run, tmp_path: Path) -> None:
    table_of(tmp_path / "in.csv", 3)
    command = ("in.csv", "-o", "out", "--judge", "offline", "--shard-rows", 1)
    assert rag_eval(*command).code == 0
    folder = RunFolder(tmp_path / "out")
    plan = read_plan(folder)
    assert plan is not None
    run = ShardedRun(folder, plan, plan.loaded_settings().settings, None)
    for number in range(3):
        folder.input(number).unlink()
    assert run.damaged_inputs(Options()) == []
    assert not run.begin_anew()
    assert run.damaged_inputs(Options()) == [0, 1, 2]
    truncate(folder.results(0))
    folder.tallies(1).write_bytes(b"PK")
    make_a_folder(folder.results(2))
    assert run.damaged_inputs(Options()) == [0, 1, 2]


# Workers that died


def spec(number: int) -> ShardSpec:
    return ShardSpec(
        number=number, source="a", rows=1, input="", judging="", counting="", settings={}, facts={}
    )


def test_what_dead_workers_were_given_is_told_from_what_was_sent() -> None:
    settings = Settings.model_validate({"limits": {"max_calls": 4000, "max_cost": 8.0}})
    purse = Purse(settings, slots=4)
    for number in range(4):
        assert purse.fill(spec(number)) is not None
    purse.settle(ShardOutcome(0, 1, done=True, requests=137, cost=0.25))
    for number in (1, 2):
        purse.settle(ShardOutcome(number, 1, done=False, code=GRANT_USED))
    again = purse.fill(spec(1))
    assert again is not None
    assert (again.max_calls, again.max_cost) == (288, 0.5833333333333334)
    assert str(purse.reached()) == (
        "the limits of the run are reached: 137 requests are known to be sent and 2,000 more were given to workers "
        "that died; --max-calls is 4,000, 0.2500 is known to be spent and 4.0000 more was given to workers that died; "
        "--max-cost is 8; run the same command again to continue"
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or len(os.sched_getaffinity(0)) == 1, reason="needs /proc, two cores"
)
def test_a_cap_that_dead_workers_used_up_says_what_is_known(
    forker: Forker, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=6)
    judge.latency = 0.05
    run = forker.start(
        tmp_path, "in.xlsx", "-o", "out", "--shard-rows", 1, "--max-calls", 60, "-q", variables=azure(judge)
    )
    wait_for(lambda: len(judge.requests) > 4 or run.has_ended())
    os.kill(children_of(run.pid)[0], signal.SIGKILL)
    ended = run.wait()
    assert ended.code == 4, ended.err
    said = re.search(
        r"(\d+) requests are known to be sent and (\d+) more were given to workers that died; --max-calls is 60",
        " ".join(ended.err.split()),
    )
    assert said, ended.err
    known, lost = map(int, said.groups())
    assert known <= len(judge.requests) < known + lost <= 60


@pytest.mark.parametrize(("provider", "changed"), [("offline", ["[offline] embedding"]), ("azure", [])])
def test_the_embedding_of_the_offline_judge_is_nothing_to_another_one(
    provider: str, changed: list[str]
) -> None:
    before, now = (
        Settings.model_validate({"judge": {"provider": provider}, "offline": {"embedding": name}})
        for name in ("one", "other")
    )
    assert judged_otherwise(before, now) == changed
