"""How well a judge agrees with people, next to baselines, as the tables of docs/background/offline-judge-quality.md.

    python benchmarks/judge_agreement.py FIXTURES_DIR [--judge offline|azure|openai] [--config FILE] [--rows N]
    python benchmarks/judge_agreement.py FIXTURES_DIR --before OTHER_CHECKOUT [--embedding MODEL_FOLDER]

FIXTURES_DIR holds one JSON-lines file a metric, as its own README describes. Nothing of it is written anywhere,
but the replies of an LLM judge, which are kept in [cache] directory, so that a second run pays nothing twice. An
LLM judge is configured as for the main program; --rows N takes the first N examples of each metric.
Intervals are 95%, from 1,000 resamples of whole source groups (a conversation, article or question), because
rows of one group are not independent. With --before, the offline judges of two checkouts see the same rows: the tables
have AUC and balanced accuracy of both, each at its own threshold, per data set, and the mean difference with its
interval from resamples of whole data sets. With --embedding, this checkout uses it, and the other one does not.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from baselines import Corpus, chrf, k_precision, rouge_l, token_f1
from scipy.stats import rankdata, spearmanr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rag_eval.configuration.effective import CACHE_NAME, effective_thresholds, endpoint_of
from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.settings import Settings
from rag_eval.judge.scheduler import Scheduler
from rag_eval.judge.transport import Transport
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS
from rag_eval.metrics.context_precision import USEFUL_FROM, chunk_relevance
from rag_eval.records import METRIC_LABELS, Case, Score
from rag_eval.run.judges import Judges
from rag_eval.store.reply_store import Store

DEFAULT_THRESHOLD = 0.3
RESAMPLES = 1000
JUDGE = "judge"
ROOT = Path(__file__).resolve().parent.parent
PROBES = ROOT / "tests" / "languages.jsonl"
Row = dict[str, Any]


_WORKER = """
import sys
root, benchmarks, folder, embedding = sys.argv[1:]
sys.path.insert(0, root)
import rag_eval.metrics.catalogue
sys.path.insert(0, benchmarks)
from judge_agreement import print_scores
print_scores(folder, embedding)
"""


class Judged(NamedTuple):
    """One labelled example and what every method says to it."""

    dataset: str
    group: str
    label: float
    positive: bool | None
    scores: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FIXTURES_DIR")
    parser.add_argument("--judge", choices=["offline", "azure", "openai"], default="offline")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--before", type=Path, metavar="OTHER_CHECKOUT")
    parser.add_argument("--embedding", type=Path, metavar="MODEL_FOLDER")
    options = parser.parse_args()
    if options.before or options.embedding:
        _compare((options.before or ROOT).resolve(), options.folder, options.embedding)
        return
    loaded = load_settings(options.config, {"judge.provider": options.judge}, os.environ, Path.cwd())
    loaded.require_credentials()
    judging = Judging(_judges(loaded.settings), loaded.settings.evaluation.workers)
    rows = {metric: list(_rows(options.folder, metric))[: options.rows] for metric in METRIC_LABELS}
    judged = {metric: list(JUDGES[metric](rows[metric], judging)) for metric in METRIC_LABELS}
    for metric, examples in judged.items():
        print(f"\n### {METRIC_LABELS[metric]}\n")
        _print_agreement(metric, examples)
    print("\n### Pairs of responses (RAGChecker)\n")
    _print_pairs(rows["answer_correctness"], judging)
    print("\n### Thresholds\n")
    judged["context_precision"] = list(_whole_rankings(rows["context_precision"], judging))
    _print_thresholds(judged)
    print("\n### Calibration\n")
    _print_calibration(judged)
    if judging.is_proxy:
        print("\n### Languages\n")
        _print_languages(judging)


def print_scores(folder: str, embedding: str) -> None:
    """Thresholds and examples of the offline judge that is imported, as JSON."""
    given = {"judge.provider": "offline"} | ({"offline.embedding": embedding} if embedding else {})
    loaded = load_settings(None, given, {}, Path.cwd())
    judging = Judging(_judges(loaded.settings), loaded.settings.evaluation.workers)
    found = {}
    for metric in METRIC_LABELS:
        rows = list(_rows(Path(folder), metric))
        judge = _whole_rankings if metric == "context_precision" else JUDGES[metric]
        found[metric] = [
            (one.dataset, one.group, one.label, one.positive, one.scores[JUDGE])
            for one in judge(rows, judging)
        ]
        if metric == "context_precision":
            found["relevance of a chunk"] = [
                (one.dataset, one.group, one.label, one.positive, one.scores[JUDGE])
                for one in _judge_chunks(rows, judging)
            ]
    thresholds = effective_thresholds(loaded.settings, is_proxy=True)
    print(json.dumps([{**thresholds, "relevance of a chunk": USEFUL_FROM}, found]))


def _compare(before: Path, folder: Path, embedding: Path | None) -> None:
    here = ROOT / "benchmarks"
    model = str(embedding.resolve()) if embedding else ""
    told = [
        subprocess.run(
            [sys.executable, "-c", _WORKER, str(root), str(here), str(folder.resolve()), used],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for root, used in ((before, ""), (ROOT, model))
    ]
    (old_thresholds, old), (new_thresholds, new) = map(json.loads, told)
    for metric in new:
        thresholds = old_thresholds[metric], new_thresholds[metric]
        datasets = [
            _by_dataset(Judged(*row[:4], {JUDGE: row[4]}) for row in found[metric] if row[3] is not None)
            for found in (old, new)
        ]
        print(f"\n### {metric}\n\n| data set | n | AUC | balanced accuracy |\n|---|---|---|---|")
        differences = []
        for dataset in datasets[1]:
            areas = [_auc(each[dataset], JUDGE) for each in datasets]
            accuracies = [
                _balanced_accuracy(each[dataset], at) for each, at in zip(datasets, thresholds, strict=True)
            ]
            cells = [f"{was:.3f} → {now:.3f}" for was, now in (areas, accuracies)]
            print(f"| {dataset} | {len(datasets[1][dataset])} | {' | '.join(cells)} |")
            if not np.isnan(areas).any():
                differences.append((areas[1] - areas[0], accuracies[1] - accuracies[0]))
        means = np.array(differences)
        draws = np.random.default_rng(11).integers(len(means), size=(RESAMPLES, len(means)))
        low, high = np.percentile(means[draws].mean(axis=1), (2.5, 97.5), axis=0)
        cells = [
            f"{mean:+.4f} [{a:+.4f}, {b:+.4f}]"
            for mean, a, b in zip(means.mean(axis=0), low, high, strict=True)
        ]
        print(f"| **mean change** | | {' | '.join(cells)} |")


def _judges(settings: Settings) -> Judges:
    if settings.judge.provider == "offline":
        return Judges.offline(settings)
    store = Store(settings.cache.directory / CACHE_NAME)
    return Judges.llm(settings, Transport(endpoint_of(settings), store, announce=print), store)


class Judging:
    """Scores of many cases at once, by any judge; what could not be judged is counted, never made a number."""

    def __init__(self, judges: Judges, workers: int) -> None:
        self.is_proxy = judges.is_proxy
        self._scheduler = Scheduler(judges.judge, judges.store, workers=workers)
        self._metrics = {metric.name: metric for metric in judges.metrics}
        self._window = 4 * workers + 32

    def scores(self, name: str, cases: list[Case]) -> list[Score]:
        measuring = (self._metrics[name].measure(case) for case in cases)
        found = list(self._scheduler.run(measuring, window=self._window))
        if missing := sum(score.value is None for score in found):
            print(
                f"{name}: {missing} of {len(found)} examples have no score and are left out", file=sys.stderr
            )
        return found

    def relevance(self, rows: list[Row]) -> Iterator[Sequence[float]]:
        """Of each row's chunks: graded with the offline judge, 0 or 1 with an LLM; empty where it has none."""
        if self.is_proxy:
            yield from (
                chunk_relevance(row["question"], row["ground_truth"], row["contexts"]) for row in rows
            )
            return
        cases = [_case("context_precision", row, row["ground_truth"]) for row in rows]
        for score in self.scores("context_precision", cases):
            yield [float(each.favourable) for each in score.evidence]


def _print_agreement(metric: str, examples: list[Judged]) -> None:
    methods = list(examples[0].scores)
    threshold = USEFUL_FROM if metric == "context_precision" else DEFAULT_THRESHOLD
    print(f"| dataset | n | {' | '.join(methods)} | Spearman | balanced accuracy at {threshold:.2f} |")
    print("|---|---|" + "---|" * (len(methods) + 2))
    columns = defaultdict(list)
    for dataset, members in _by_dataset(examples).items():
        binary = [one for one in members if one.positive is not None]
        areas = {method: _auc(binary, method) for method in methods}
        for method, area in areas.items():
            columns[method].append(area)
        low, high = _interval(binary, lambda sample: _auc(sample, JUDGE))
        rho, rho_low, rho_high = _spearman(members), *_interval(members, _spearman)
        cells = [f"{areas[JUDGE]:.3f} [{low:.3f}, {high:.3f}]", *(f"{areas[m]:.3f}" for m in methods[1:])]
        accuracy = _balanced_accuracy(binary, threshold)
        spearman = f"{rho:.2f} [{rho_low:.2f}, {rho_high:.2f}]"
        print(f"| {dataset} | {len(binary)} | {' | '.join(cells)} | {spearman} | {accuracy:.3f} |")
    means = " | ".join(f"{np.mean(columns[method]):.3f}" for method in methods)
    print(f"| **mean** | | {means} | | |")


def _print_pairs(rows: Iterable[Row], judging: Judging) -> None:
    pairs = [row for row in rows if row["dataset"] == "ragchecker_pairs"]
    first, second = (
        judging.scores(
            "answer_correctness",
            [_case("answer_correctness", row, row["ground_truth"], row[name]) for row in pairs],
        )
        for name in ("answer", "answer_b")
    )
    differences = [
        (row, b.value - a.value)
        for row, a, b in zip(pairs, first, second, strict=True)
        if a.value is not None and b.value is not None
    ]
    if not differences:
        return
    for aspect in ("overall", "correctness", "completeness"):
        examples = [
            _example(row, float(np.mean(row["label"][aspect])), None, {JUDGE: difference})
            for row, difference in differences
        ]
        low, high = _interval(examples, _spearman)
        print(f"* {aspect}: Spearman {_spearman(examples):.2f} [{low:.2f}, {high:.2f}], {len(pairs)} pairs")


def _print_thresholds(judged: dict[str, list[Judged]]) -> None:
    print(
        "| metric | best threshold | macro balanced accuracy there | cross-validated | at 0.30 | at the exported | "
        "exported |\n|---|---|---|---|---|---|---|"
    )
    for metric in METRIC_LABELS:
        examples = judged[metric]
        macro = {value / 100: _macro_accuracy(examples, value / 100) for value in range(5, 100)}
        best = max(macro.values())
        value = float(
            np.median([threshold for threshold, accuracy in macro.items() if accuracy >= best - 1e-9])
        )
        exported = CALIBRATED_THRESHOLDS[metric]
        print(
            f"| {metric} | {value:.2f} | {best:.3f} | {_cross_validated(examples):.3f} "
            f"| {macro[DEFAULT_THRESHOLD]:.3f} | {_macro_accuracy(examples, exported):.3f} | {exported:.2f} |"
        )


def _cross_validated(examples: list[Judged]) -> float:
    """Macro balanced accuracy where each dataset is judged at the threshold that suits the other datasets best."""
    datasets = {
        name: [one for one in members if one.positive is not None]
        for name, members in _by_dataset(examples).items()
    }
    datasets = {
        name: members for name, members in datasets.items() if len({one.positive for one in members}) == 2
    }
    found = []
    for name, members in datasets.items():
        others = [one for other, rest in datasets.items() if other != name for one in rest]
        macro = {value / 100: _macro_accuracy(others, value / 100) for value in range(5, 100)}
        best = [threshold for threshold, accuracy in macro.items() if accuracy >= max(macro.values()) - 0.005]
        found.append(_balanced_accuracy(members, float(np.median(best))))
    return float(np.mean(found))


def _print_calibration(judged: dict[str, list[Judged]]) -> None:
    """Share of the examples with a score of each fifth that people call good, and how many there are."""
    print(
        "| metric | 0 to 0.2 | 0.2 to 0.4 | 0.4 to 0.6 | 0.6 to 0.8 | 0.8 to 1 |\n|---|---|---|---|---|---|"
    )
    for metric, examples in judged.items():
        binary = [one for one in examples if one.positive is not None]
        cells = []
        for fifth in range(5):
            members = [one for one in binary if min(4, int(one.scores[JUDGE] * 5)) == fifth]
            good = f"{np.mean([bool(one.positive) for one in members]):.0%}" if members else "–"
            cells.append(f"{good} of {len(members)}")
        print(f"| {METRIC_LABELS[metric]} | {' | '.join(cells)} |")


def _print_languages(judging: Judging) -> None:
    """Each paragraph as the answer to its own query, and to the other queries of its language."""
    probes = defaultdict(list)
    for line in PROBES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        probes[row["language"]].append(row)
    print(
        "| language | metric | own query: lowest, median, not red | other queries: not red | AUC |\n"
        "|---|---|---|---|---|"
    )
    for language, rows in probes.items():
        for metric in ("answer_relevancy", "answer_correctness"):
            pairs = [(one, other) for one in rows for other in rows]
            cases = [
                Case(2, "bot", one["question"], other["paragraph"], one["answer"], (other["paragraph"],))
                for one, other in pairs
            ]
            values = [score.value or 0.0 for score in judging.scores(metric, cases)]
            own = [value for value, (one, other) in zip(values, pairs, strict=True) if one is other]
            foreign = [value for value, (one, other) in zip(values, pairs, strict=True) if one is not other]
            examples = [
                Judged("", "", 0, positive, {JUDGE: value})
                for positive, some in ((True, own), (False, foreign))
                for value in some
            ]
            threshold = CALIBRATED_THRESHOLDS[metric]
            print(
                f"| {language} | {METRIC_LABELS[metric]} | {min(own):.2f}, {np.median(own):.2f}, "
                f"{np.mean(np.array(own) >= threshold):.0%} | {np.mean(np.array(foreign) >= threshold):.0%} "
                f"| {_auc(examples, JUDGE):.3f} |"
            )


def _judge_claims(
    metric: str, parts: Callable[[Row], tuple[list[str], str]]
) -> Callable[..., Iterator[Judged]]:
    """Examples of a metric that compares claims with one evidence; the best of several accepted claims counts."""

    def judge(rows: Iterable[Row], judging: Judging) -> Iterator[Judged]:
        rows = [row for row in rows if row["dataset"] != "ragchecker_pairs"]
        methods = _baselines(text for row in rows for text in (*parts(row)[0], parts(row)[1]))
        cases = [_case(metric, row, claim) for row in rows for claim in parts(row)[0]]
        found = iter(judging.scores(metric, cases))
        for row in rows:
            claims, evidence = parts(row)
            values = [score.value for score in islice(found, len(claims)) if score.value is not None]
            if values:
                by_baseline = {
                    name: max(method(c, evidence) for c in claims) for name, method in methods.items()
                }
                yield _example(row, row["label"], row["label_binary"], {JUDGE: max(values), **by_baseline})

    return judge


def _judge_chunks(rows: Iterable[Row], judging: Judging) -> Iterator[Judged]:
    """Every chunk is an example; the baselines compare it with query and reference together."""
    rows = list(rows)
    methods = _baselines(chunk for row in rows for chunk in row["contexts"])
    for row, relevance in zip(rows, judging.relevance(rows), strict=True):
        wanted = f"{row['question']} {row['ground_truth'] or ''}"
        for chunk, label, value in zip(row["contexts"], row["chunk_labels"], relevance, strict=False):
            by_baseline = {name: method(wanted, chunk) for name, method in methods.items()}
            yield _example(row, label, label, {JUDGE: value, **by_baseline})


def _whole_rankings(rows: Iterable[Row], judging: Judging) -> Iterator[Judged]:
    """A ranking counts as good when the average precision of the human chunk labels is at least a half."""
    rankings = [row for row in rows if row["ground_truth"] and len(row["contexts"]) > 1]
    found = judging.scores(
        "context_precision", [_case("context_precision", row, row["ground_truth"]) for row in rankings]
    )
    for row, score in zip(rankings, found, strict=True):
        if score.value is not None:
            yield _example(row, row["label"], row["label"] >= 0.5, {JUDGE: score.value})


JUDGES: dict[str, Callable[[Iterable[Row], Judging], Iterator[Judged]]] = {
    "answer_correctness": _judge_claims(
        "answer_correctness", lambda row: (row.get("ground_truths") or [row["ground_truth"]], row["answer"])
    ),
    "faithfulness": _judge_claims("faithfulness", lambda row: ([row["answer"]], "\n".join(row["contexts"]))),
    "answer_relevancy": _judge_claims("answer_relevancy", lambda row: ([row["question"]], row["answer"])),
    "context_precision": _judge_chunks,
    "context_recall": _judge_claims(
        "context_recall", lambda row: ([row["ground_truth"]], "\n".join(row["contexts"]))
    ),
}


def _baselines(texts: Iterable[str]) -> dict[str, Callable[[str, str], float]]:
    corpus = Corpus(texts)
    return {
        "K-Precision": k_precision,
        "token F1": token_f1,
        "ROUGE-L": rouge_l,
        "chrF": chrf,
        "TF-IDF": corpus.tf_idf,
        "BM25": corpus.bm25,
    }


def _case(metric: str, row: Row, claim: str | None, answer: str | None = None) -> Case:
    reference = row["ground_truth"] if metric in ("faithfulness", "answer_relevancy") else claim
    response = row["answer"] if answer is None else answer
    return Case(2, "bot", row["question"] or "", response or "", reference, tuple(row["contexts"] or ()))


def _example(row: Row, label: float, positive: int | None, scores: dict[str, float]) -> Judged:
    kind = row.get("variant") or row.get("language")
    dataset = f"{row['dataset']} ({kind})" if kind else row["dataset"]
    return Judged(dataset, row["group"], label, None if positive is None else bool(positive), scores)


def _by_dataset(examples: Iterable[Judged]) -> dict[str, list[Judged]]:
    datasets = defaultdict(list)
    for one in examples:
        datasets[one.dataset].append(one)
    return datasets


def _auc(examples: list[Judged], method: str) -> float:
    """Chance that a positive example scores above a negative one; ties count a half; nan without both."""
    positive = np.array([one.positive for one in examples], dtype=bool)
    ranks = rankdata([one.scores[method] for one in examples])
    count = positive.sum()
    others = len(positive) - count
    if not count or not others:
        return float("nan")
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))


def _spearman(examples: list[Judged]) -> float:
    labels, scores = [one.label for one in examples], [one.scores[JUDGE] for one in examples]
    if len(set(labels)) < 2 or len(set(scores)) < 2:
        return float("nan")
    return float(spearmanr(labels, scores).statistic)


def _interval(examples: list[Judged], statistic: Callable[[list[Judged]], float]) -> tuple[float, float]:
    groups = defaultdict(list)
    for one in examples:
        groups[one.group].append(one)
    members = list(groups.values())
    rng = np.random.default_rng(11)
    values = [
        statistic([one for place in rng.integers(len(members), size=len(members)) for one in members[place]])
        for _ in range(RESAMPLES)
    ]
    low, high = np.nanpercentile(values, (2.5, 97.5))
    return float(low), float(high)


def _balanced_accuracy(examples: list[Judged], threshold: float) -> float:
    """Mean of the share of positives at or above the threshold and of negatives below it."""
    passed = {True: [], False: []}
    for one in examples:
        passed[bool(one.positive)].append(one.scores[JUDGE] >= threshold)
    return float((np.mean(passed[True]) + 1 - np.mean(passed[False])) / 2)


def _macro_accuracy(examples: list[Judged], threshold: float) -> float:
    binary = [one for one in examples if one.positive is not None]
    datasets = [
        members for members in _by_dataset(binary).values() if len({one.positive for one in members}) == 2
    ]
    return float(np.mean([_balanced_accuracy(members, threshold) for members in datasets]))


def _rows(folder: Path, metric: str) -> Iterator[Row]:
    with (folder / f"{metric}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
