"""Score the bots of a spreadsheet and write an Excel report: python rag_eval_standalone.py input.xlsx -o report.xlsx"""

import os
import sys
from contextlib import suppress

try:
    from rag_eval.__main__ import start
except ImportError as missing:
    if (missing.name or "").partition(".")[0] != "rag_eval":
        raise
    # Like start itself, for any Python 3 and any state of the streams.
    _problem = (
        "the folder rag_eval of RAG Eval is missing next to it; copy that folder as well, or install RAG Eval"
    )
    with suppress(OSError):
        _line = f"rag-eval: {os.path.abspath(__file__)}: {_problem} (pip install . in its folder)\n"
        os.write(2, _line.encode("utf-8", "backslashreplace"))
    sys.exit(2)

if __name__ == "__main__":
    start("standalone")
