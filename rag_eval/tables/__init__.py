"""A spreadsheet (.xlsx, .xlsm, .xls, .ods, .csv, .tsv, .parquet) to cases.

content: what the file is  ->  sheets: rows of text  ->  header: what each column is  ->  table: cases
"""

from rag_eval.tables.delimited import TextForm
from rag_eval.tables.header import ColumnUse, Named
from rag_eval.tables.selection import Selection
from rag_eval.tables.table import Table, describe, read_table

__all__ = ["ColumnUse", "Named", "Selection", "Table", "TextForm", "describe", "read_table"]
