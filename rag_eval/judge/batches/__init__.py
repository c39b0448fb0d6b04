"""Calls in batches: sent as files, answered within a day at a lower price, and read by a later command."""
