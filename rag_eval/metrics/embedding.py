"""A sentence model of the user's own: how alike two texts are in meaning, next to the comparison of their words."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.errors import SettingsError, how_to_install
from rag_eval.metrics.metric import Metric
from rag_eval.records import Case, Score

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

KEY = "[offline] embedding"
MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
MOST_TOKENS = 256
"""Of a text, the rest is not seen; the model may take fewer."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_REMEMBERED = 10_000
"""Texts, whose vectors take some 20 MB."""


class _Embedding:
    """A sentence model that is loaded. Each text is computed alone, so that no score depends on other texts."""

    def __init__(self, session: "InferenceSession", tokenizer: "Tokenizer", *, pools_first: bool) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = [each.name for each in session.get_inputs()]
        self._pools_first = pools_first
        self._vector = lru_cache(_REMEMBERED)(self._embed)

    def likeness(self, one: str, other: str) -> float:
        """Cosine of the vectors of two texts, 0..1; a negative one is 0, as is that of a text without tokens."""
        mine, others = self._vector(one), self._vector(other)
        return 0.0 if mine is None or others is None else min(1.0, max(0.0, float(mine @ others)))

    def _embed(self, text: str) -> Any:
        """The vector of the text, of length 1; None if it has no tokens."""
        import numpy as np

        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        if not ids.size:
            return None
        fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        found = np.asarray(self._session.run(None, {name: fed[name] for name in self._inputs})[0])[0]
        if found.ndim == 2:
            found = found[0] if self._pools_first else found.mean(axis=0)
        length = np.linalg.norm(found)
        return found / length if length else found


def open_embedding(folder: Path) -> _Embedding:
    """The sentence model in the folder, which must contain MODEL and TOKENIZER.

    Raises SettingsError if they cannot be used, with what to do.
    """
    return _open(folder.resolve(), os.getpid())


@lru_cache(maxsize=1)
def _open(folder: Path, process: int) -> _Embedding:
    """`process` is the number of this one: a model is not shared with another."""
    try:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{KEY}: needs {error.name}; install it with {how_to_install('embedding')}"
        ) from None
    if problems := list(_missing(folder)):
        raise SettingsError(problems)
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = InferenceSession(str(_model_in(folder)), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - of the package's own kinds
        raise SettingsError(
            f"{KEY}: {_model_in(folder)} is not an ONNX model: {_first_line(error)}"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MOST_TOKENS)
    except Exception as error:  # noqa: BLE001 - it raises no narrower kind
        raise SettingsError(f"{KEY}: {folder / TOKENIZER} is not a tokenizer: {_first_line(error)}") from None
    names = [each.name for each in session.get_inputs()]
    shape = session.get_outputs()[0].shape
    if not set(names) <= set(_INPUTS) or "input_ids" not in names or len(shape) not in (2, 3):
        raise SettingsError(
            f"{KEY}: {_model_in(folder)} is not a sentence model: it takes {', '.join(names)} and returns "
            f"{session.get_outputs()[0].name} with {len(shape)} dimensions; it must take {', '.join(_INPUTS)} and "
            "return a vector for each token or for the text"
        )
    embedding = _Embedding(session, tokenizer, pools_first=_pools_first(folder))
    try:
        embedding.likeness("a", "b")
    except Exception as error:  # noqa: BLE001 - of the package's own kinds
        raise SettingsError(
            f"{KEY}: {_model_in(folder)} does not accept the tokens of {TOKENIZER}: {_first_line(error)}"
        ) from None
    return embedding


class WithEmbedding(Metric):
    """The equal mean of a score by words and the likeness of the two texts that it compares."""

    def __init__(self, metric: Metric, embedding: _Embedding) -> None:
        self.name = metric.name
        sentence = "The score is the mean of this and of the cosine of the embeddings."
        self.explanation = f"{metric.explanation} {sentence}"  # type: ignore[misc]
        self._metric = metric
        self._embedding = embedding

    def settle(self, case: Case) -> Score | None:
        return self._metric.settle(case)

    async def judge(self, case: Case) -> Score:
        score = await self._metric.judge(case)
        texts = self._metric.alike(case)
        if score.value is None or texts is None:
            return score
        likeness = self._embedding.likeness(*texts)
        by = f"mean of {score.value:.2f} by words and {likeness:.2f} by embedding"
        reason = f"{score.reason}; {by}" if score.reason else by
        return replace(score, value=(score.value + likeness) / 2, reason=reason)


def _model_in(folder: Path) -> Path:
    """Many folders of sentence models have it in one of its own."""
    nested = folder / "onnx" / MODEL
    return nested if nested.is_file() and not (folder / MODEL).is_file() else folder / MODEL


def _missing(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        yield f"{KEY}: {folder} is not a folder; name the folder that contains {MODEL} and {TOKENIZER}"
        return
    for path, name in ((_model_in(folder), MODEL), (folder / TOKENIZER, TOKENIZER)):
        if not path.is_file():
            yield f"{KEY}: {folder} does not contain {name}; export the sentence model to ONNX with its tokenizer"


def _pools_first(folder: Path) -> bool:
    """Whether the vector of the first token stands for the text, as the folder's own description says."""
    try:
        described = json.loads((folder / "1_Pooling" / "config.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(described, dict) and described.get("pooling_mode_cls_token") is True


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
