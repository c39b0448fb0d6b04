"""One run: which judges and metrics take part, what it would cost, and rows in order to results in order."""
