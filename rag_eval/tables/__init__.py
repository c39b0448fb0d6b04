"""A file (.xlsx, .xlsm, .xls, .ods, .csv, .tsv, .json, .jsonl, .parquet) to cases.

content: what the file is  ->  sheets: rows of text  ->  header, names: what each column is  ->  selection: which rows
->  grouping: one row per query  ->  table: cases, kept on disk by spool
"""

from rag_eval.tables.delimited import TextForm
from rag_eval.tables.header import ColumnUse, Named
from rag_eval.tables.mapping import named_columns, parse_map
from rag_eval.tables.selection import Selection
from rag_eval.tables.table import Table, describe, read_table

__all__ = [
    "ColumnUse",
    "Named",
    "Selection",
    "Table",
    "TextForm",
    "describe",
    "named_columns",
    "parse_map",
    "read_table",
]
