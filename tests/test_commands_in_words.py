"""What commands say, to the letter, and their exit codes.

`commands.txt` has it. `python tests/test_commands_in_words.py` writes it anew after a change that is wanted; read what
differs before you keep it.
"""

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, azure
from fake_judge import Answer, FakeJudge, Request, completion, error, running_judge
from files import write_table
from openpyxl import load_workbook
from test_whole_report import FACTS, FILES, RUBRIC, VARYING, script

from rag_eval import cli
from rag_eval.store.codec import to_json
from rag_eval.store.leftovers import new_file
from rag_eval.tables.review_file import BETTER

RECORDED = Path(__file__).parent / "commands.txt"
TWO_JUDGES = (
    "compare-judges a.csv --a priced.ini --b timed.ini --temperature-b 0.5 --prompts-b single --rows 2-4 "
    "--head-to-head -o c.xlsx --html c.html --json c.json"
)
GROUPS: Mapping[str, Sequence[str]] = {
    "offline runs": (
        "a.csv --judge offline --json a.json --history past",
        "a.csv --judge offline -o a.xlsx --report-only",
        "a.json -o again.xlsx --report-only --html again.html --fail-under rqs=0.9 --gate-on mean",
        "b.csv --judge offline -o b.xlsx --baseline a.json --fail-on-regression --history past --json b.json "
        "--markdown b.md --junit b.xml --csv b",
        "b.csv --judge offline -o b.xlsx --baseline latest --history past --fail-under faithfulness=0.1",
        "b.csv --judge offline -o b.xlsx --against a.csv --rows 2-5 -q",
        "a.csv --judge offline -o c.xlsx --where Kind=rules --random-rows 2 --alpha 1 --beta 0 --gamma 0",
        "a.csv --judge offline -o d.xlsx --fail-over latency_p95=900 --fail-over cost=0.01",
        "history past",
        "history past -o history.csv",
    ),
    "mistakes": (
        "missing.csv --judge offline",
        "a.csv --judge offline -o a.csv",
        "a.csv --judge offline -o a.txt",
        "a.csv --judge offline --fail-under rqs=2 --fail-under speed=1 --fail-over rqs=1",
        "a.csv --judge offline --report-only --fresh",
        "a.csv --judge offline --batch",
        "a.csv --judge offline --head-to-head",
        "a.csv --judge offline --where Kin=rules",
        "a.csv --judge offline --where Kind",
        "a.csv --judge offline --rows 5-2",
        "a.csv --judge offline --rows 90-",
        "a.csv --judge offline --sheet Q3",
        "a.csv --judge offline --map Kind=bot_name --map Kinds=context",
        "a.csv --judge offline --until-clear",
        "a.csv --judge offline --baseline nothing.json",
        "a.csv --judge offline --baseline latest",
        "a.csv --judge offline --labels a.csv",
        "a.csv --judge offline --config nothing.ini",
        "a.csv --judge offline --config bad.ini",
        "a.csv --judge azure",
        "a.csv --judge offline --config mapped.ini --map Kind=ignore --show --rows 2-2",
        "a.csv --judge offline --config mapped.ini --map Kinds=ignore",
        "test.csv --judge offline --config mapped.ini --map Query=context",
        "a.csv --judge offline --max-cost 1",
        "a.csv --judge offline --prompts single --samples 2 --redact",
        "a.csv b.csv --judge offline -o report.xlsx",
        "a.csv --judge offline --shard-rows 2 -o a.xlsx",
        "a.csv --judge offline --html a.xlsx --json b.xlsx --junit a.xlsx",
        "a.csv --html-no-texts --batch-wait 5 --address auto",
        "test.csv --judge offline",
        "odd.csv --judge offline",
        "- --judge offline",
        "nothing",
    ),
    "options that do not go together": (
        "a.csv --judge azure --report-only --batch",
        "a.csv --judge azure --batch --max-minutes 5",
        "a.csv --judge azure --batch-wait 5",
        "a.csv --judge azure --batch-cancel --batch-wait 5 --fresh",
        "a.csv --judge azure --batch --until-clear",
        "a.csv --judge azure --until-clear --fail-on-regression --baseline a.json",
        "a.csv --judge offline --fail-on-regression",
        "a.csv --judge offline --html-no-texts",
        "a.csv --judge offline --calibrate new.ini --map Human_Faithfulness_Good=ignore",
        "a.csv --judge offline --rows 3",
        "a.csv --judge offline --format csv",
        "a.csv --judge offline --sheet Q3 --format csv",
        "a.csv --judge offline --against a.csv --sheet Q3",
        "a.csv --judge offline -o a_folder/r.xlsx --html a_folder",
        "a.csv --judge offline --html a.html --json a.html",
        "a.csv --judge offline --csv rubric.json",
        "a.csv --judge offline --history rubric.json",
        "a.csv --judge offline --max-calls 0 --samples 99",
        "a.csv --judge offline --temperature 3",
        "a.csv --judge nobody",
        "a.csv --judge offline --alpha 0 --beta 0 --gamma 0 --config weightless.ini -q",
        "a.csv --judge offline --alpha -1",
        "a.csv --judge offline --alpha 3 --config off.ini -q",
        "a.csv b.csv --judge offline",
        "a.csv b.csv --judge offline -o out --report-only",
        "a.csv b.csv --judge offline -o out --address auto",
        "empty --judge offline -o out",
        "inputs --judge offline -o inputs",
        "report a.csv",
        "report inputs",
        "cases inputs --where rqs=1 -o a.txt",
        "shard a.csv",
        "history empty",
        "history missing",
        "review missing.json",
        "review rubric.json",
        "review a.csv",
        "rubric check missing.yaml",
        "rubric align verdicts.csv people.csv --rubric off.ini",
        "retrieval a.csv --reference a.csv",
        "compare-judges a.csv --rows 3 --judge-a offline --judge-b azure",
        "compare-judges a.csv --json replies.sqlite -o a.csv --judge-a offline --judge-b azure",
        "doctor --judge nobody",
        "init a.csv",
        "--no-such-option",
        "run",
        "a.csv --config weightless.ini --set x=1",
        "a.csv --config twice.ini",
        "a.csv --config cut.ini",
        "a.csv --judge offline --config odd.ini",
        "a.csv --judge offline --config looks.ini --until-clear",
    ),
    "help": (
        "",
        "--help",
        "run --help",
        "run --help-all",
        "compare-judges --help",
        "doctor --help",
        "cache --help",
        "review --help",
        "retrieval --help",
        "rubric align --help",
        "history --help",
        "report --help",
        "shard --help",
        "cases --help",
        "init --help",
    ),
    "an LLM judge": (
        "a.csv --dry-run",
        "a.csv --dry-run --config priced.ini --samples 2 --max-calls 10",
        "a.csv --max-calls 1 --config priced.ini --json a.json",
        "a.csv --config priced.ini --json a.json --manifest m.json",
        "a.csv --config priced.ini --max-cost 0.0001 --fresh",
        "a.csv --config priced.ini --retry-errors -q",
        "a.csv --report-only --config priced.ini --samples 2",
        "a.csv --config merged.ini --rows 2-4 -o m.xlsx",
        "a.csv --head-to-head --rows 2-6 -o pairs.xlsx --json pairs.json",
        "a.json --head-to-head all -o pairs.xlsx --config one.ini --max-calls 3",
        "review pairs.json --pairs --cases 4 -o pairs_review.xlsx",
        "review a.json --metrics speed",
        "review a.json --metrics toxicity",
        "review a.json --metrics 'Answer Relevancy' --cases 5 -o relevancy.xlsx",
        "cache show",
        "cache prune --older-than 30",
        "cache prune",
    ),
    "an endpoint that fails": (
        "a.csv --rows 2-4 --config one.ini -o failed.xlsx --json failed.json",
        "a.csv --rows 2-4 --config one.ini -o failed.xlsx --retry-errors",
        "doctor",
        "doctor --probe",
    ),
    "an endpoint that hesitates": (
        "a.csv --rows 2-2 --debug --config one.ini -o one.xlsx --json one.json",
        "a.csv --rows 3-3 --debug --config one.ini -o two.xlsx --temperature 0.5 --fresh",
        "a.csv --rows 2-3 --debug --config one.ini -o one.xlsx --json one.json -q",
        "a.csv --rows 2-3 --judge offline --debug -o one.xlsx -q",
        "doctor --config one.ini --probe",
        "cache show",
    ),
    "estimates": (
        "a.csv --rows 2-4 --config priced.ini -q --json r.json",
        "a.csv --rows 2-5 --dry-run --config priced.ini",
        "a.csv --rows 2-5 --dry-run --config priced.ini --retry-errors --prompts single",
        "a.csv --rows 2-5 --dry-run --config priced.ini --fresh --max-cost 0.01",
        "a.csv --dry-run --config priced.ini --head-to-head --max-minutes 1",
        "a.csv --dry-run --config priced.ini --until-clear --samples 3",
        "a.csv --dry-run --config priced.ini --judge openai --batch",
        "r.json --dry-run --head-to-head all --config timed.ini -o r.xlsx",
        "inputs -o out --dry-run --shard-rows 3 --config priced.ini",
        "a.csv b.csv -o out --dry-run --config timed.ini",
        "compare-judges a.csv --a priced.ini --b timed.ini --temperature-b 0.5 --dry-run --head-to-head -o c.xlsx",
        "compare-judges a.csv --a priced.ini --b timed.ini --temperature-b 0.5 --rows 2-4 -o c.xlsx",
        "compare-judges a.csv --a priced.ini --judge-b offline --rows 2-4 -o c.xlsx --head-to-head",
    ),
    "shards of an LLM judge": (
        "inputs -o out --shard-rows 3 --config priced.ini --json out.json",
        "inputs -o out --shard-rows 3 --config priced.ini --dry-run",
        "report out --json out.json",
        "inputs -o out --shard-rows 3 --config priced.ini --max-cost 0.0001",
        "inputs -o out --shard-rows 3 --config priced.ini --json out.json",
        "inputs -o out --shard-rows 3 --config priced.ini --retry-errors",
        "inputs -o out --shard-rows 3 --config priced.ini --show",
        "inputs -o out --shard-rows 3 --config priced.ini --fresh --head-to-head",
        "cases out --where failure_modes=Hallucination -o some.xlsx",
        "cases out --where 'rqs >= 0.9' --where Kind=rules -o some.csv",
        "report out --fail-under rqs=0.9 --html out.html",
    ),
    "looks": (
        "long.csv --judge offline --until-clear -o l.xlsx --json l.json",
        "long.csv --judge offline --report-only -o l.xlsx --until-clear",
        "long.csv --judge offline --until-clear --config three.ini -o m.xlsx --fail-under rqs=0.5",
        "long.csv --judge offline -o l.xlsx --rows 2-9",
        "a.csv --judge offline --until-clear --config three.ini",
        "b.csv --judge offline --until-clear --config three.ini --against a.csv -o n.xlsx",
    ),
    "the doctor": (
        "doctor --judge offline",
        "doctor --judge offline --all --config priced.ini",
        "doctor --no-call",
        "doctor",
        "doctor --probe",
        "doctor --config bad.ini",
    ),
    "shards": (
        "inputs -o out --judge offline --show",
        "inputs -o out --judge offline --shard-rows 3 --json out.json",
        "inputs -o out --judge offline --shard-rows 3",
        "report out --fail-under rqs=0.9 --markdown out.md",
        "inputs -o out --judge offline --shard-rows 4",
        "inputs -o out --judge offline --shard-rows 3 --rows 2-3",
        "inputs -o out --judge offline --shard-rows 3 --alpha 1",
        "inputs -o written --judge offline --engine none --shard-rows 4",
        "report written",
        "shard written/specs/part-00000.json",
        "report written --markdown written.md",
        "cases out --where 'rqs < 0.2' -o low.xlsx",
        "cases out --where 'rqs > 2' --where bot=Bad -o none.xlsx",
        "report nothing",
    ),
    "reviews": (
        "a.csv --judge offline --json a.json -q",
        "review a.json --cases 4",
        "review a.json --cases 90 -o many.xlsx",
        "review a.json --cases 6 --suspicious 0.5 --raters Ada,Ben --metrics faithfulness -o two.xlsx",
        "review a.json --cases 4 --without a_review.xlsx -o more.xlsx --seed 3",
        "review a.json --pairs -o pairs.xlsx",
        "review a.json --cases 1",
        "review a.json --metrics speed --raters Ada,Ada -o speed.xlsx",
        "a.csv --judge offline --labels a_review.xlsx",
        "a.csv --judge offline --calibrate new.ini",
    ),
    "judges, rubrics and retrieval": (
        "compare-judges a.csv --a priced.ini --judge-a azure --judge-b offline --dry-run",
        "compare-judges a.csv --a priced.ini --judge-a azure --judge-b offline --max-calls 1",
        "compare-judges a.csv --judge-a offline --judge-b offline",
        "rubric check rubric.json",
        "rubric check bad.ini",
        "rubric align verdicts.csv people.csv --rubric rubric.json",
        "rubric align verdicts.csv verdicts.csv",
        "retrieval results.tsv --reference references.jsonl",
        "retrieval results.tsv --reference references.jsonl --k 1,3 -o scores.csv",
        "retrieval results.tsv --reference results.tsv --k 0",
        "retrieval results.tsv",
        "init project",
        "init project",
        "completion cmd",
    ),
    "judges that are compared": (
        f"{TWO_JUDGES} --dry-run",
        TWO_JUDGES,
        f"{TWO_JUDGES} --html-no-texts --max-cost 5 --max-minutes 60",
        "compare-judges a.csv --judge-a offline --judge-b openai --model-b local --prompts-b single -o o.xlsx "
        "--json o.json --rows 2-9",
        "compare-judges a.csv --a kept.ini --judge-b offline --rows 2-3 -o k.xlsx --json k.json",
        "compare-judges a.csv --a kept.ini --judge-b offline --rows 2-4 -o k.xlsx --json k.json",
        "compare-judges a.csv --a kept.ini --judge-b offline --rows 2-3 -o k.xlsx --json replies/replies.sqlite",
        "cache show --config kept.ini",
    ),
    "another provider": (
        "a.csv --judge openai --model local --prompts single --rows 2-5 -o s.xlsx --json s.json",
        "a.csv --config wide.ini -o w.xlsx --json w.json --html w.html --redact --rows 2-6",
        "a.csv --config wide.ini -o w.xlsx --report-only --rows 2-6",
        "a.csv --config kept.ini -o k.xlsx --rows 2-5 --manifest m.json",
        "a.csv --config kept.ini -o k.xlsx --rows 2-6 --manifest m.json",
        "a.csv --config kept.ini -o k.xlsx --rows 2-6 --manifest m.json --fresh",
        "a.csv --config kept.ini -o k.xlsx --rows 2-6 --report-only --manifest m.json",
        "a.csv --config kept.ini -o n.xlsx --rows 2-7 --report-only --manifest m.json",
        "cache show --config kept.ini",
        "cache prune --older-than 0 --config kept.ini",
        "cache show --config kept.ini",
        "cache show --config plain.ini",
        "a.csv --config short.ini -o t.xlsx --rows 2-5 --json t.json",
        "a.csv --config plain.ini -o p.xlsx --rows 2-3 --json p.json",
        "long.csv --config looks_llm.ini -o l.xlsx --json l.json --until-clear",
        "long.csv --config looks_llm.ini -o l.xlsx --json l.json --until-clear --rows 2-30",
    ),
    "labels of people": (
        "a.csv --judge offline --json a.json -q",
        "review a.json --cases 10 --raters Ada,Ben",
        "label a_review.xlsx Ada",
        "label a_review.xlsx Ben",
        "a.json --report-only --labels a_review.xlsx -o labelled.xlsx --calibrate new.ini --manifest m.json",
        "a.csv --judge offline --labels a_review.xlsx -o labelled.xlsx --json labelled.json",
        "b.csv --judge offline --labels a_review.xlsx -o b.xlsx",
        "review labelled.json --cases 4 --without a_review.xlsx -o more.xlsx",
        "a.csv --judge offline --rows 2-4 --labels a_review.xlsx --labels more.xlsx -o b.xlsx",
        "a.csv --judge offline --labels a_review.xlsx --labels a_review.xlsx -o b.xlsx",
        "a.csv --head-to-head --rows 2-7 --prompts single -o pairs.xlsx --json pairs.json -q",
        "review pairs.json --pairs --cases 6 -o pairs_review.xlsx --raters Ada",
        "label pairs_review.xlsx Ada",
        "pairs.json --report-only --labels pairs_review.xlsx -o pairs.xlsx --json labelled.json",
        "pairs.json --report-only --labels a_review.xlsx -o pairs.xlsx",
    ),
    "shards that were not finished": (
        "inputs -o out --shard-rows 3 --config priced.ini --prompts single --json out.json --manifest m.json",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts single --dry-run",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts single --retry-errors --json out.json",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts merged",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts merged --dry-run --fresh",
        "inputs -o out --shard-rows 3 --config priced.ini --judge offline",
        "remove out/input/part-00001.parquet",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts single --dry-run --fresh",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts single --max-calls 1 --json out.json",
        "report out --json out.json",
        "cut out/results/part-00000.parquet",
        "report out --json out.json",
        "inputs -o out --shard-rows 3 --config priced.ini --prompts single --json out.json",
        "cases out -o all.xlsx --where 'rqs < 2'",
        "cases out -o all.xlsx --where 'speed < 2'",
        "inputs -o each --shard-rows 3 --config priced.ini --prompts single --engine none --max-calls 400 --max-cost 9",
        "shard each/specs/part-00000.json",
        "shard each/specs/part-00002.json",
        "shard each/specs/part-00002.json",
        "report each --gate-on mean --fail-under rqs=0.1",
        "shard each/specs/part-00001.json",
        "report each --markdown each.md",
    ),
    "folders in place of files": (
        "folder f.xlsx f.csv f.json f.ini f.html f.yaml f.tsv f.jsonl f.md f.xml",
        "a.csv --judge offline --json a.json -q",
        "f.csv --judge offline",
        "f.xlsx a.csv --judge offline -o out",
        "a.csv --judge offline --against f.csv",
        "a.csv --judge offline --labels f.xlsx",
        "a.csv --judge offline --labels f.csv",
        "a.csv --judge offline --labels none.xlsx",
        "a.csv --judge offline --baseline f.xlsx",
        "a.csv --judge offline --baseline f.json",
        "a.csv --judge offline --baseline none.xlsx",
        "a.csv --judge offline --calibrate f.ini",
        "a.csv --config f.ini",
        "a.csv --judge offline -o f.xlsx",
        "a.csv --judge offline --json f.json --html f.html --markdown f.md",
        "a.csv --judge offline --junit f.xml --fail-under rqs=0.1",
        "a.csv --judge offline --csv a.csv",
        "a.csv --judge offline --history a.csv",
        "f.json --report-only",
        "review f.json",
        "review a.json -o f.xlsx",
        "review a.json --without f.xlsx",
        "compare-judges f.csv --judge-a offline --judge-b azure",
        "compare-judges a.csv --judge-a offline --judge-b azure --b f.ini",
        "compare-judges a.csv --judge-a offline --judge-b azure -o f.xlsx --json f.json --html f.html",
        "rubric check f.yaml",
        "rubric align f.csv people.csv --rubric rubric.json",
        "rubric align verdicts.csv f.csv --rubric rubric.json",
        "retrieval f.tsv --reference references.jsonl",
        "retrieval results.tsv --reference f.jsonl",
        "retrieval results.tsv --reference references.jsonl -o f.xlsx",
        "history f.csv",
        "report f.json",
        "cases f.json --where rqs=1 -o low.xlsx",
        "shard f.json",
        "init f.csv",
        "doctor --config f.ini",
        "cache show --config f.ini",
    ),
    "what killed runs left behind": (
        "leave a_report.xlsx a.json a.csv a.md a.html junit.xml m.json tables/Leaderboard.csv",
        "a.csv --judge offline --json a.json --csv tables --markdown a.md --html a.html --junit junit.xml "
        "--fail-under rqs=0.1 --gate-on mean --manifest m.json --history past -q",
        "leave again.xlsx past/history.jsonl",
        "a.json --report-only -o again.xlsx -q",
        "leave past.xlsx past.html",
        "history past -o past.xlsx",
        "history past -o past.html",
        "leave a_review.xlsx scores.csv scores.xlsx low.xlsx",
        "review a.json --cases 4",
        "retrieval results.tsv --reference references.jsonl -o scores.csv",
        "retrieval results.tsv --reference references.jsonl -o scores.xlsx",
        "leave c.xlsx c.json c.html",
        "compare-judges a.csv --judge-a offline --judge-b azure --prompts-b single --rows 2-3 -o c.xlsx --json c.json "
        "--html c.html -q",
        "inputs -o out --config priced.ini --prompts single --shard-rows 3 -q",
        "leave out/report.xlsx out/manifest.json out/results/part-00000.parquet out/tallies/part-00001.npz "
        "out/input/part-00002.parquet out/specs/part-00000.json out.json low.xlsx",
        "inputs -o out --config priced.ini --prompts single --shard-rows 3 --json out.json -q",
        "report out -q",
        "cases out --where 'rqs < 0.2' -o low.xlsx",
    ),
}  # fmt: skip
ALSO_VARYING = (
    (r"DATE,\d+", "DATE"),
    (r"python -m pytest\.rag-eval", "rag-eval"),
    (r"(Processes: ).* cores", r"\1N"),
    (r"(?m)^(  ok +[\w-]+) \d[\w.]*", r"\1 N"),  # of a package
    (r"\b\d+(?:\.\d+)? (ms|KB|MB|GB)\b", r"N \1"),
    (r'("?seconds"?: ?)[\d.e-]+', r"\1N"),
    (r"\.rag-eval-[0-9a-f-]+\.tmp", "TEMPORARY"),
    (r"(wrote: (?:past/runs|out/grants)/).*", r"\1NAME"),
)
ANSWERED = r"(?m)(?:^DATE rag_eval\.judge\.transport: .*: answered, .*\n)+"
UNTOLD = ("process", "configuration", "versions", "version", "started", "ended", "seconds", "input", "run")
"""Of a manifest: what depends on the machine, and what the terminal says."""
TOLD_OF_SHARDS = (
    "shard_rows", "share", "max_calls", "max_cost", "max_minutes", "shares_replies", "again", "retry_errors",
    "strict_cache",
)  # fmt: skip
HEADER = (
    "Query",
    "Ground_Truth",
    "Bot_Good",
    "Bot_Bad",
    "Context",
    "Kind",
    "Latency_Good",
    "Human_Faithfulness_Good",
)
INI = {
    "bad.ini": "[judge]\nprovider = nobody\n[limits]\nmax_calls = -1\nmax_minuts = 5\n[weights]\nfaithfulness = many\n",
    "priced.ini": "[judge]\nprovider = azure\n[evaluation]\nparallel = no\n[prices]\ninput = 3\noutput = 12\n",
    "weightless.ini": "[weights]\ncontext_precision = 0\ncontext_recall = 0\n",
    "off.ini": "[metrics]\nanswer_correctness = no\n[report]\nslice_by = Kind\n",
    "twice.ini": "[judge]\nprovider = azure\nprovider = openai\n[judge]\n",
    "cut.ini": "provider = azure\n[judge\n= 5\n",
    "odd.ini": "[evaluation]\nmax_rows = 0\nmin_coverage = 2\nlooks = 0.5, 0.4\n[limits]\nlong_prompts = cut\n"
    "[privacy]\nredact = names\n[thresholds]\nrqs = 1\nfaithfulness = -1\n[azure]\ntemperature = warm\n",
    "one.ini": "[judge]\nprovider = azure\n[evaluation]\nparallel = no\n[prices]\n"
    "input = 3\noutput = 12\n[metrics]\ntoxicity = yes\n",
    "timed.ini": "[judge]\nprovider = azure\nprompt_tokens_per_second = 900\nreply_tokens_per_second = 20\n"
    "[evaluation]\nparallel = no\n[prices]\ninput = 1\noutput = 2\n[metrics]\ntoxicity = yes\n",
    "mapped.ini": "[columns]\ncontext = Context, Topic\nlatency = Latency_Good\n",
    "three.ini": "[evaluation]\nlooks = 0.3, 0.6\n",
    "looks.ini": "[evaluation]\nlooks = 0.2, 0.5\n",
    "kept.ini": "[judge]\nprovider = openai\nprompts = single\n[cache]\nenabled = yes\ndirectory = replies\n"
    "[evaluation]\nparallel = no\n[prices]\ninput = 3\noutput = 12\ncached_input = 1\ncurrency = EUR\n",
    "wide.ini": "[judge]\nprovider = azure\nstructured_output = json_object\n[azure]\ntemperature = 0.3\n"
    "[evaluation]\nparallel = no\nsamples = 2\n[metrics]\nanswer_coverage = yes\nchunk_relevance = yes\n"
    "citations = auto\n[toxicity]\ndeployment = small\n[prices]\ninput = 3\noutput = 12\ntoxicity_input = 1\n"
    "toxicity_output = 2\n[rubric]\nfile = rubric.json\n[report]\nevidence = yes\nslice_by = Kind\n",
    "short.ini": "[judge]\nprovider = openai\nprompts = single\n[evaluation]\nparallel = no\n[limits]\n"
    "max_prompt_tokens = 430\nlong_prompts = truncate\n",
    "plain.ini": "[judge]\nprovider = openai\nstructured_output = prompt\n[evaluation]\nparallel = no\n",
    "looks_llm.ini": "[judge]\nprovider = openai\nprompts = single\n[evaluation]\nparallel = no\nlooks = 0.4, 0.7\n"
    "[metrics]\ntoxicity = no\n",
    "merged.ini": "[judge]\nprovider = azure\nprompts = merged\n[evaluation]\nparallel = no\n",
}


def write_inputs(folder: Path) -> None:
    """Eight rows of two bots; of `b.csv` the better bot has become worse."""
    for name, shift in (("a.csv", 3), ("b.csv", 5)):
        lines = [
            (
                query,
                truth,
                FACTS[number - shift % 3][1],
                FACTS[number - 3][1],
                truth,
                kind,
                400 + 90 * number,
                number % 2,
            )
            for number, (query, truth, kind) in enumerate(FACTS[:8])
        ]
        write_table(folder / name, HEADER, *lines)
        if name == "a.csv":
            many = [
                (f"{line[0]} {n}", *line[1:3], line[3 - n % 3 // 2], *line[4:])
                for n in range(6)
                for line in lines
            ]
            write_table(folder / "long.csv", HEADER, *many)
        (folder / "inputs").mkdir(exist_ok=True)
        write_table(folder / "inputs" / name, HEADER, *lines[:shift])
    (folder / "empty").mkdir()
    write_table(folder / "test.csv", HEADER[:2], *(fact[:2] for fact in FACTS))
    (folder / "odd.csv").write_text("Query,Bot_A\nWhat?,So.,more\n", encoding="utf-8")
    for name, text in {**FILES, **INI}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "rubric.json").write_bytes(to_json(RUBRIC))


def hesitations() -> Iterator[Answer]:
    """What can be asked for again at once, a request at a time."""
    wait = {"retry-after-ms": "3", "x-ratelimit-remaining-requests": "0", "x-request-id": "r-1"}
    yield error(429, "rate_limit_exceeded", "Slow down.", **wait)
    yield completion('{"n": ', finish="length")
    yield completion("{}")
    yield completion('{"n": 1}')
    yield Answer(200, b"<html>", {"content-type": "text/html"})
    yield error(503, "overloaded", "Try again in 2ms.", **{"retry-after-ms": "2"})


def answers(judge: FakeJudge, group: str) -> None:
    if group in ("an endpoint that fails", "shards that were not finished"):

        def fail(request: Request) -> Answer | None:
            if "Ada Lovelace" in request.prompt:
                return completion("I cannot say.")
            if "museum" in request.prompt:
                return error(400, "content_filter", "The prompt was filtered.")
            return None

        judge.always = fail
    else:
        judge.always = script
    if group == "an endpoint that hesitates":
        judge.faults.extend([completion("OK"), *hesitations()])


def label(name: str, sheet: str) -> None:
    """As a person does, who is of one opinion on the cases of an even number and of another one on the others."""
    book = load_workbook(name)
    for number, line in enumerate(book[sheet].iter_rows()):
        measure = str(line[4].value).partition("/")[2]
        if measure:
            line[2].value = ("first", "same")[number % 2] if measure == BETTER else (1, 0.5)[number % 2]
    book.save(name)


def cut(name: str) -> None:
    Path(name).write_bytes(Path(name).read_bytes()[:-9])


def leave(*names: str) -> None:
    """What a killed run would leave next to these outputs."""
    for path in map(Path, names):
        if path.parent.is_dir():
            _, descriptor = new_file(path, 0o600)
            os.close(descriptor or 0)


ACTS: Mapping[str, Callable[..., object]] = {
    "label": label,
    "remove": lambda name: Path(name).unlink(),
    "cut": cut,
    "leave": leave,
    "folder": lambda *names: list(map(os.mkdir, names)),
}
"""What is done between two commands."""


def said(group: str, folder: Path) -> Iterator[str]:
    """Every command of a group and what it says, in a folder next to which nothing is."""
    folder = folder / "inner" / "here"
    folder.mkdir(parents=True)
    write_inputs(folder)
    with chdir(folder), running_judge() as judge, pytest.MonkeyPatch.context() as patch:
        answers(judge, group)
        patch.setenv("COLUMNS", "80")
        if group not in ("offline runs", "mistakes", "options that do not go together"):
            for name, value in azure(judge).items():
                patch.setenv(name, value)
        if group in ("judges that are compared", "another provider"):
            patch.setenv("OPENAI_BASE_URL", f"{judge.url}/v1")
            patch.setenv("OPENAI_API_KEY", KEY)
        is_capped = False
        before = stamps()
        for command in GROUPS[group]:
            if act := ACTS.get(command.partition(" ")[0]):
                act(*command.split()[1:])
                before = stamps()
                yield from (f"$ {command}", "")
                continue
            is_capped |= re.search(r"--max-calls \d\d?\b", command) is not None
            patch.setattr(sys, "argv", ["rag-eval", *shlex.split(command)])
            out = StringIO()
            with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as ended:
                cli.main()
            yield from (
                f"$ rag-eval {command}",
                *out.getvalue().splitlines(),
                *sent(judge, is_capped=is_capped),
                *changed(before, before := stamps(), is_capped=is_capped),
            )
            yield from (f"exit {ended.value.code}", "")


def sent(judge: FakeJudge, *, is_capped: bool) -> Iterator[str]:
    """The requests of a command: how many of each task, and the forms that they had.

    Which ones a cap allows depends on what is answered first, so that only their number is known, also of the rest.
    """
    if judge.requests and is_capped:
        yield f"sent: {len(judge.requests)} requests"
    elif judge.requests:
        yield f"sent: {dict(sorted(judge.tasks().items()))}"
        yield from sorted({f"  {each.path} {settings_of(each)}" for each in judge.requests})
    judge.requests.clear()


def stamps() -> dict[str, tuple[int, int]]:
    """When each file was written, and its number, which a file that replaces it does not have."""
    found = ((path, path.stat()) for path in sorted(Path().rglob("*")) if path.is_file())
    return {path.as_posix(): (stat.st_mtime_ns, stat.st_ino) for path, stat in found}


def changed(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], *, is_capped: bool
) -> Iterator[str]:
    """The files that a command wrote and removed, with the text of those that programs read."""
    for name in sorted(before.keys() - after.keys()):
        yield f"removed: {name}"
    for name in [name for name in after if before.get(name) != after[name]]:
        yield f"wrote: {name}"
        if name.endswith((".csv", "new.ini", ".md", ".xml")):
            yield from (f"  | {line}" for line in Path(name).read_text(encoding="utf-8-sig").splitlines())
        elif name.endswith(".json") and not is_capped:
            document = json.loads(Path(name).read_text(encoding="utf-8"))
            yield from told_by(document)


def told_by(document: Any) -> Iterator[str]:
    """What a JSON file says of a run that its tables do not show."""
    if str(document.get("format")).startswith("rag-eval-manifest"):
        document = {name: document[name] for name in document if name not in UNTOLD}
    elif "end" in document:
        members = {name: [*document[name]] for name in ("run", "leaderboard")}
        document = {"members": [*document], **members, "case": document["cases"][0], **document["end"]}
    elif "shards" in document or "settings" in document:  # of a run in shards
        document = {name: value for name, value in document.items() if name in TOLD_OF_SHARDS}
    document = {name: value for name, value in document.items() if name != "scores"}
    yield from (f"  | {name}: {to_json(value).decode()}" for name, value in document.items())


def settings_of(request: Request) -> dict[str, object]:
    """All but the texts, and the headers but for those of any request."""
    form = request.body.get("response_format", {})
    roles = [message["role"] for message in request.body["messages"]]
    headers = {
        name for name in map(str.lower, request.headers) if not name.startswith(("x-stainless", "content-l"))
    }
    kept = {name: value for name, value in request.body.items() if name not in ("messages", "max_tokens")}
    return {**kept, "roles": roles, "response_format": form.get("type"), "headers": sorted(headers)}


def lines_of(group: str, folder: Path) -> list[str]:
    text = (
        "\n".join(said(group, folder))
        .replace(str(folder / "inner" / "here"), "FOLDER")
        .replace(str(folder), "ABOVE")
    )
    for pattern, name in (*VARYING, *ALSO_VARYING):
        text = re.sub(pattern, name, text)
    # What is asked for next depends on how soon a reply was scored, even with one request at a time.
    text = re.sub(ANSWERED, lambda found: "".join(sorted(found[0].splitlines(keepends=True))), text)
    return text.rstrip("\n").splitlines()


def recorded(group: str) -> list[str]:
    parts = f"\n{RECORDED.read_text(encoding='utf-8')}".split("\n=== ")
    return next(part for part in parts if part.startswith(f"{group}\n")).rstrip("\n").splitlines()[1:]


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=pytest.mark.slow if "shards" in name else ()) for name in GROUPS]
)
def test_commands_say_what_they_said(tmp_path: Path, group: str, request: pytest.FixtureRequest) -> None:
    if group == "shards":
        request.getfixturevalue("one_core")
    assert lines_of(group, tmp_path) == recorded(group)


if __name__ == "__main__":
    texts = []
    for group in GROUPS:
        with tempfile.TemporaryDirectory() as folder:
            texts.append("\n".join([f"=== {group}", *lines_of(group, Path(folder).resolve())]))
    RECORDED.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
