"""A file (.xlsx, .xlsm, .xls, .ods, .csv, .tsv, .json, .jsonl, .parquet) to cases.

content: what the file is  ->  sheets: rows of text  ->  names, roles, unused, header: what each column is
->  unfolding: fields of objects as columns  ->  selection: which rows  ->  grouping: one row per query
->  row_reader, chunking: what the cells hold  ->  rows: kept on disk, and made again as cases

record_files: the same files for callers that know their columns by name
"""
