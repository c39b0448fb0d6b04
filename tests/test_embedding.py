"""[offline] embedding: a sentence model next to the words."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run, read_sheet
from files import write_table
from onnx_model import write_model, write_tokenizer

pytest.importorskip("onnxruntime", reason="the extra embedding is not installed")
pytest.importorskip("tokenizers", reason="the extra embedding is not installed")

from rag_eval.errors import SettingsError
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS, EMBEDDING_THRESHOLDS, offline_metrics
from rag_eval.metrics.embedding import open_embedding
from rag_eval.records import METRIC_LABELS, Case, Score

QUERY = "Which car is fast?"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "tiny")


def score(metric: str, case: Case, model: Path | None = None) -> Score:
    return asyncio.run(offline_metrics([metric], model)[0].measure(case))


def test_the_likeness_is_the_cosine_of_mean_vectors_of_tokens(model: Path) -> None:
    embedding = open_embedding(model)
    assert embedding.likeness("car", "Automobile") == pytest.approx(1.0)
    assert embedding.likeness("car", "fast") == pytest.approx(0.0)
    assert embedding.likeness("car fast", "automobile") == pytest.approx(0.5**0.5)
    assert embedding.likeness("fast", "slow") == 0.0  # never below 0
    assert embedding.likeness("", "car") == 0.0


def test_the_folder_says_if_the_first_token_stands_for_the_text(model: Path) -> None:
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert open_embedding(model).likeness("car fast", "automobile") == pytest.approx(1.0)


def test_a_model_in_a_folder_of_its_own_is_found(model: Path) -> None:
    (model / "onnx").mkdir()
    (model / "model.onnx").rename(model / "onnx" / "model.onnx")
    assert open_embedding(model).likeness("car", "automobile") == pytest.approx(1.0)


def test_a_score_is_the_mean_of_words_and_meaning_and_says_so(model: Path) -> None:
    case = Case(2, "A", QUERY, "An automobile, quick and slow", "car", ("x",))
    assert score("answer_correctness", case).value == 0.0
    with_it = score("answer_correctness", case, model)
    likeness = open_embedding(model).likeness("car", case.response)
    assert with_it.value == pytest.approx(likeness / 2)
    assert with_it.reason == f"mean of 0.00 by words and {likeness:.2f} by embedding"


@pytest.mark.parametrize("metric", ["faithfulness", "context_recall", "context_precision"])
def test_other_metrics_stay_as_they_are(model: Path, metric: str) -> None:
    case = Case(2, "A", QUERY, "An automobile is quick", "The car is fast", ("The automobile is quick",))
    assert score(metric, case, model) == score(metric, case)


@pytest.mark.parametrize(
    ("response", "chunks"),
    [
        ("", None),
        ("…", None),
        ("I do not know which car is fast.", None),
        ("Which car is fast?", None),
        ("1969", ("The car of 1969 is fast",)),  # a short answer is judged with its source
    ],
)
def test_what_answers_nothing_gets_nothing_for_its_meaning(
    model: Path, response: str, chunks: tuple[str, ...] | None
) -> None:
    case = Case(2, "A", QUERY, response, None, chunks)
    assert score("answer_relevancy", case, model) == score("answer_relevancy", case)


def test_yes_instead_of_no_stays_wrong(model: Path) -> None:
    case = Case(2, "A", "Is the car fast?", "Yes", "No", ("x",))
    assert score("answer_correctness", case, model).value == 0.0


def test_a_text_does_not_depend_on_the_texts_before_it(model: Path) -> None:
    one, other = open_embedding(model), "car " * 40
    alone = one.likeness("car quick", "fast")
    one.likeness(other, "slow")
    assert one.likeness("car quick", "fast") == alone


def broken(folder: Path, kind: str) -> Path:
    write_model(folder)
    if kind == "absent":
        return folder / "absent"
    if kind == "no model":
        (folder / "model.onnx").unlink()
    if kind == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    if kind == "no ONNX":
        (folder / "model.onnx").write_bytes(b"not a model")
    if kind == "another tokenizer":
        (folder / "tokenizer.json").write_text("[]")
    if kind == "other inputs":
        write_model(folder, inputs=("pixels",))
    if kind == "other output":
        write_model(folder, rank=3)
    if kind == "unknown tokens":
        write_tokenizer(folder, ["[UNK]", *(f"word{number}" for number in range(50)), "a", "b"])
    return folder


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absent", "is not a folder; name the folder that contains model.onnx and tokenizer.json"),
        ("no model", "does not contain model.onnx; export the sentence model to ONNX with its tokenizer"),
        ("no tokenizer", "does not contain tokenizer.json; export the sentence model to ONNX"),
        ("no ONNX", "model.onnx is not an ONNX model: "),
        ("another tokenizer", "tokenizer.json is not a tokenizer: "),
        ("other inputs", "is not a sentence model: it takes pixels and returns vectors with 3 dimensions"),
        (
            "other output",
            "is not a sentence model: it takes input_ids, attention_mask and returns vectors with 4",
        ),
        ("unknown tokens", "model.onnx does not accept the tokens of tokenizer.json: "),
    ],
)
def test_a_folder_that_cannot_be_used_ends_the_run_before_any_work(
    run_cli: Run, tmp_path: Path, kind: str, message: str
) -> None:
    folder = broken(tmp_path / "tiny", kind)
    with pytest.raises(SettingsError, match="embedding"):
        open_embedding(folder)
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], [QUERY, "A car"])
    (tmp_path / "config.ini").write_text(f"[offline]\nembedding = {folder}\n")
    ended = run_cli("in.xlsx", "--judge", "offline")
    assert ended.code == 2
    assert "[offline] embedding: " in ended.err
    assert message in ended.err
    assert not (tmp_path / "in_report.xlsx").exists()
    doctor = run_cli("doctor", "--judge", "offline")
    assert message in " ".join((doctor.out + doctor.err).split())


def test_a_missing_package_is_named_with_the_command_that_installs_it(model: Path) -> None:
    """In a new interpreter that does not find it."""
    code = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from pathlib import Path\n"
        "from rag_eval.metrics.embedding import open_embedding\n"
        f"open_embedding(Path({str(model)!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "[offline] embedding: needs onnxruntime; install it with pip install '.[embedding]'" in ended.stderr
    )


def sheet(path: Path) -> None:
    words = ["car", "automobile", "fast", "quick", "slow"]
    rows = [
        [
            f"Which {one} is {other} and why exactly?",
            f"The {other} {one} wins every race",
            f"a {other}",
            "x y",
        ]
        for one in words
        for other in words
    ]
    write_table(path, ["Query", "Bot_A", "Ground_Truth", "Context"], *rows)


def test_reports_name_the_embedding_and_its_thresholds(run_cli: Run, tmp_path: Path, model: Path) -> None:
    sheet(tmp_path / "in.xlsx")
    (tmp_path / "config.ini").write_text(f"[offline]\nembedding = {model}\n")
    ended = run_cli("in.xlsx", "--judge", "offline", "--json", "run.json")
    assert ended.code == 0
    assert "Judge: offline judge with embedding tiny" in ended.out
    judged = "Judged by the offline judge with embedding tiny, which compares words and the meaning of texts."
    assert judged in ended.out
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["run"]
    assert (run["judge"], run["is_proxy"]) == ("offline judge with embedding tiny", True)
    assert {name: run["thresholds"][name] for name in METRIC_LABELS} == EMBEDDING_THRESHOLDS
    assert "cosine of the embeddings" in run["explanations"]["answer_relevancy"]
    assert "embedding" not in run["explanations"]["faithfulness"]


@pytest.mark.slow
def test_several_processes_give_the_same_report(run_cli: Run, tmp_path: Path, model: Path) -> None:
    sheet(tmp_path / "in.xlsx")
    (tmp_path / "config.ini").write_text(f"[offline]\nembedding = {model}\n")
    for processes in ("1", "2"):
        name = f"{processes}.xlsx"
        assert run_cli("in.xlsx", "--judge", "offline", "--processes", processes, "-o", name).code == 0
    one, two = (read_sheet(tmp_path / name, "Per-Query Metrics") for name in ("1.xlsx", "2.xlsx"))
    assert one == two


@pytest.mark.slow
def test_scores_with_and_without_it_are_never_compared(run_cli: Run, tmp_path: Path, model: Path) -> None:
    sheet(tmp_path / "in.xlsx")
    run_cli("in.xlsx", "--judge", "offline", "-o", "old.xlsx", "--history", "past")
    (tmp_path / "with.ini").write_text(f"[offline]\nembedding = {model}\n")
    ended = run_cli(
        "in.xlsx", "--judge", "offline", "--config", "with.ini", "-o", "new.xlsx", "--baseline", "old.xlsx",
        "--fail-on-regression",
    )  # fmt: skip
    assert ended.code == 1
    assert (
        "not comparable: the baseline was judged by offline judge, this run by offline judge with embedding tiny"
        in ended.err
    )
    latest = run_cli(
        "in.xlsx", "--judge", "offline", "--config", "with.ini", "-o", "b.xlsx", "--history", "past",
        "--baseline", "latest", "--fail-on-regression",
    )  # fmt: skip
    assert "no comparable" in latest.out + latest.err


@pytest.mark.slow
@pytest.mark.usefixtures("one_core")
def test_shards_that_were_judged_without_it_are_judged_again(
    run_cli: Run, tmp_path: Path, model: Path
) -> None:
    sheet(tmp_path / "in.xlsx")
    shards = ("in.xlsx", "--judge", "offline", "--shard-rows", "10", "-o", "shards")
    assert run_cli(*shards).code == 0
    (tmp_path / "with.ini").write_text(f"[offline]\nembedding = {model}\n")
    ended = run_cli(*shards, "--config", "with.ini")
    assert ended.code == 0
    assert "3 finished shards were judged in another way, and will be judged again" in ended.err


def test_it_has_thresholds_of_its_own_where_it_counts() -> None:
    differ = {name for name in METRIC_LABELS if EMBEDDING_THRESHOLDS[name] != CALIBRATED_THRESHOLDS[name]}
    assert differ == {"answer_correctness", "answer_relevancy"}
