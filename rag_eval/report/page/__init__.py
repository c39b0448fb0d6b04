"""The page of a run: one HTML file, read in any browser, without a request to anywhere."""
