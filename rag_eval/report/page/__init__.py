"""The page of a run: one HTML file, read in any browser, without a request to anywhere."""

from rag_eval.report.page.html_page import HtmlReport

__all__ = ["HtmlReport"]
