"""RAG Eval: score the answers of any number of bots in a spreadsheet, and say which is better and why."""

__version__ = "0.1.0"
