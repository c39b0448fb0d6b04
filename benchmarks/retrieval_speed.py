"""How long retrieval scoring of many queries takes, file to file, and how much memory it needs.

    python benchmarks/retrieval_speed.py [QUERIES]

Makes a results file (ten chunks a query, ids as in a UUID corpus) and a references file (one or two gold
documents) in the opposite order, scores them in a process of their own, and does the same with ir_measures where
it is installed, on the same files and for the same measures. Printed at the end of a line are mean recall,
mean NDCG@10 and the number of queries, which must agree.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

CHUNKS = 10
COMPARED_UP_TO = 100_000
"""More queries take ir_measures, which holds everything in memory, many minutes and gigabytes."""

OURS = """
import sys
from rag_eval.report.retrieval_report import write_retrieval
summary, _ = write_retrieval(*sys.argv[1:])
print([summary.means["doc_recall"], summary.means["ndcg_10"], summary.scored])
"""

THEIRS = """
import ast, csv, re, sys
import ir_measures
from ir_measures import AP, P, R, RR, SetF, SetP, SetR, nDCG

def rows(path, name):
    with open(path, newline="") as file:
        for row in csv.DictReader(file, delimiter="\\t"):
            ids = ast.literal_eval(row[name])
            yield row["qid"], dict.fromkeys(re.search("<urn:uuid:(.*?)>", i)[1] for i in ids)

run = {qid: {d: -float(n) for n, d in enumerate(ids)} for qid, ids in rows(sys.argv[1], "doc_ids")}
qrels = {qid: dict.fromkeys(ids, 1) for qid, ids in rows(sys.argv[2], "document_ids")}
measures = [SetR, SetP, SetF, nDCG@10, RR, AP, R@5, P@5, nDCG@5, R@10, P@10]
sums = dict.fromkeys(map(str, measures), 0.0)
with open(sys.argv[3], "w") as out:
    for value in ir_measures.iter_calc(measures, qrels, run):
        sums[str(value.measure)] += value.value
        out.write(f"{value.query_id} {value.measure} {value.value}\\n")
print([sums["SetR"] / len(qrels), sums["nDCG@10"] / len(qrels), len(qrels)])
"""

USAGE = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024])
"""


def main(queries: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("results.tsv", "references.tsv", "scores.jsonl")]
        make(Path(files[0]), Path(files[1]), queries)
        size = sum(Path(name).stat().st_size for name in files[:2]) / 1e6
        print(f"{queries:,} queries, {CHUNKS} chunks each, {size:,.0f} MB of input", flush=True)
        measured("rag_eval", OURS, files)
        if queries <= COMPARED_UP_TO:
            measured("ir_measures", THEIRS, files)


def make(results: Path, references: Path, queries: int) -> None:
    """Files as a pipeline in Python leaves them, with lists in the text form of Python.

    Written line by line, because the peak that a system reports for a process includes its parent's.
    """
    rng = random.Random(7)
    documents = [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(200_000)]
    with results.open("w") as ranked:
        ranked.write("qid\tdoc_ids\n")
        for number in range(queries):
            chunks = [f"doc-<urn:uuid:{d}>::chunk-{rng.randrange(9)}" for d in found(documents, number)]
            ranked.write(f"q{number}\t{chunks}\n")
    with references.open("w") as wanted:
        wanted.write("qid\tdocument_ids\n")
        for number in reversed(range(queries)):
            gold = rng.sample(
                [*found(documents, number)[:6], *rng.choices(documents, k=2)], rng.choice((1, 2))
            )
            wanted.write(f"q{number}\t{[f'<urn:uuid:{d}>' for d in gold]}\n")


def found(documents: list[str], number: int) -> list[str]:
    """The same documents whenever it is asked about the same query."""
    return random.Random(number).choices(documents, k=CHUNKS)


def measured(name: str, program: str, files: list[str]) -> None:
    """Processor seconds (steadier than the clock on a busy machine) and peak memory of a process of its own."""
    start = time.perf_counter()
    command = [sys.executable, "-c", program + USAGE, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        print(f"{name}: did not run: {done.stderr.strip().splitlines()[-1]}")
        return
    *means, (processor, peak) = (json.loads(line) for line in done.stdout.splitlines())
    print(
        f"{name:12} {processor:6.1f} s of processor {seconds:6.1f} s {peak:6,.0f} MB peak   {means[0]}",
        flush=True,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
