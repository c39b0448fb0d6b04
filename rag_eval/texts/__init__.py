"""What a text is and how it is shown: words, cutting, redaction, marks of injected instructions."""
