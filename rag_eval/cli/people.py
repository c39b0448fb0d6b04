"""What people have to do with a run: the labels of review sheets, and the thresholds that labels imply."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.console import warn
from rag_eval.cli.options import Options
from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS

if TYPE_CHECKING:
    from rag_eval.records import Case, CaseResult, RunFacts
    from rag_eval.results.human_alignment import Alignment
    from rag_eval.tables.review_file import ReviewLabels


class People:
    """The labels of a run, and what becomes of them."""

    def __init__(self, labels: "ReviewLabels | None" = None, calibrated: Path | None = None) -> None:
        """`calibrated` is the config file that gets the implied thresholds."""
        self._labels = labels
        self._calibrated = calibrated

    @classmethod
    def read(cls, options: Options) -> "People":
        """Reads the review sheets. Raises InputError for what cannot be used, before anything is paid."""
        labels = None
        if options.labels:
            from rag_eval.tables.review_file import ReviewLabels

            labels = ReviewLabels.read(options.labels)
        if options.calibrate:
            from rag_eval.configuration.sources import check_editable
            from rag_eval.store.replacement import check_writable

            check_editable(options.calibrate)
            check_writable(options.calibrate, "--calibrate")
        return cls(labels, options.calibrate)

    def join(self, cases: Iterable["Case"], pairs: Iterable[tuple["Case", "Case"]] = ()) -> None:
        """Find the labelled cases, and pairs, among those of the run. Raises InputError if there are none."""
        if self._labels is None:
            return
        of_columns = Counter[str]()

        def counted(cases: Iterable["Case"]) -> Iterator["Case"]:
            for case in cases:
                of_columns[case.bot] += bool(case.human)
                yield case

        self._labels.join(counted(cases), pairs)
        self._labels.warnings += self._about_columns(self._labels, of_columns)
        for warning in self._labels.warnings:
            warn(warning)

    @staticmethod
    def _about_columns(labels: "ReviewLabels", of_columns: Mapping[str, int]) -> Iterator[str]:
        """Labels of the input's columns are no part of the sample that a sheet was drawn for."""
        from rag_eval.results.human_alignment import FEWEST_LABELS

        drawn = labels.drawn()
        for bot, strata in labels.strata.items():
            if strata and drawn[bot] < FEWEST_LABELS <= of_columns[bot]:
                yield (
                    f"{bot}: its mean is not corrected: for that, only the {drawn[bot]:,} random cases of the review "
                    f"sheets count, and {FEWEST_LABELS} are needed. Label more cases, or leave --labels out to use the "
                    "labels of the input's columns."
                )

    def facts(self, facts: "RunFacts") -> "RunFacts":
        """With what the labels are, and which are not used. Raises InputError if there are none to calibrate by."""
        if self._labels:
            facts = replace(
                facts,
                has_labels=facts.has_labels or self._labels.has_cases,
                has_pair_labels=facts.has_pair_labels or self._labels.has_pairs,
                strata={**facts.strata, **self._labels.strata},
                notes=(*facts.notes, *self._labels.warnings),
            )
        if self._calibrated and not facts.has_labels:
            raise InputError(
                "--calibrate needs human labels; add --labels SHEET, or columns Human_<metric> to the input"
            )
        return facts

    def label(self, result: "CaseResult") -> "CaseResult":
        """The result with what people said of its case."""
        return self._labels.applied(result) if self._labels else result

    def calibrate(self, alignment: "Alignment | None", facts: "RunFacts") -> Iterator[str]:
        """Write the implied thresholds to the config file; yields what is written, and what is not."""
        if not self._calibrated:
            return
        from rag_eval.configuration.sources import with_values
        from rag_eval.store.replacement import write_text
        from rag_eval.texts.display import decimals

        if facts.partial:
            warn(
                f"{self._calibrated}: not changed, since the run is partial; run the same command again to complete it"
            )
            return
        implied = alignment.implied_thresholds if alignment else {}
        found = {name: implied[name] for name in METRIC_LABELS if name in implied}
        kept = {
            name: facts.thresholds[name]
            for name, threshold in found.items()
            if threshold.equals.low < facts.thresholds[name] <= threshold.equals.high
        }
        for name, threshold in found.items():
            low, high = threshold.interval.low, threshold.interval.high
            bounds = f"95% CI {decimals(low)} to {decimals(high)}"
            if high - low - (threshold.equals.high - threshold.equals.low) > _WIDE:
                warn(
                    f"Threshold {METRIC_LABELS[name]}: the labels leave it open ({bounds}); label more cases before "
                    "you rely on it"
                )
            now, label = f"{facts.thresholds[name]:g} in this run", METRIC_LABELS[name]
            yield (
                f"Threshold {label}: {now} is kept; it divides {threshold.labels:,} labels as well as "
                f"{threshold.value:.4g} would ({bounds})"
                if name in kept
                else f"Threshold {label}: {now}, {threshold.value:.4g} by {threshold.labels:,} labels ({bounds})"
            )
        if not found:
            is_drawn = any(facts.strata.values()) or not facts.strata
            reason = (
                "the labels imply no threshold; label more cases (20 of a metric, 5 of them at 0.5 or higher and 5 "
                "below)"
                if is_drawn
                else "the labelled cases were not drawn from those of this run, as said above; create a review sheet "
                "from this run, or give all its sheets"
            )
            warn(f"{self._calibrated}: not changed, since {reason}")
            return
        values = {name: f"{kept.get(name, threshold.value):.4g}" for name, threshold in found.items()}
        text = with_values(self._calibrated, "thresholds", values)
        yield f"Also written: {write_text(self._calibrated, text, '--calibrate')}"


_WIDE = 0.3
"""Width of an interval of a threshold from which on the labels say little of it, besides the gap between two scores.

More labels do not narrow that gap: the judge has no scores in it."""
