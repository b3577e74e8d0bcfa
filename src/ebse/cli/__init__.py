"""The command line: it parses, calls and shows; what is done is done elsewhere."""

from ebse.cli.main import app, main

__all__ = ["app", "main"]
