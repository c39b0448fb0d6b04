"""python -m rag_eval is the command rag-eval."""

from rag_eval.start import start

start("main")
