"""Rows of results in, tables, figures and one page out; no model is imported here."""

from ebse.report.page import write_report

__all__ = ["write_report"]
