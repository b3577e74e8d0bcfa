"""Rows of results in, tables and figures out; no model is imported here."""
