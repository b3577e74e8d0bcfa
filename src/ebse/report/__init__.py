"""Report: rows of results in, figures and one self-contained HTML page out."""

from ebse.report.page import write_report

__all__ = ["write_report"]
