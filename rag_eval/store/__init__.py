"""What must survive a kill: paid replies, the lock, files that are replaced as a whole."""
