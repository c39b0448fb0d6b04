"""What scores come to: RQS, failure modes, summaries, statistics, agreement, gates, changes since a baseline."""
