"""Score the bots of a spreadsheet and write an Excel report: python rag_eval_standalone.py input.xlsx -o report.xlsx"""

from rag_eval.__main__ import start

if __name__ == "__main__":
    start("standalone")
