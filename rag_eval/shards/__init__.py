"""A run in shards: the input is cut into parts, each part is judged by itself, and the parts come to one report.

folder: the files of a run  ->  plan: what is to be judged  ->  judging: one shard, safe to run twice
->  engines: who runs it, and where  ->  fold: the parts as one run

A shard is done when its files are there and their fingerprints match, so whatever dies, the same command continues.
"""
