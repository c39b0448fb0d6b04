"""What survives a kill: paid replies, locks, and files that are replaced as a whole."""
