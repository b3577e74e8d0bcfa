"""Sphinx: the pages of this folder and the API, as HTML that asks no other server for anything."""

from ebse import __version__

project = "ebse"
author = "The ebse developers"
project_copyright = author
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
exclude_patterns = ["_build"]

# Headings have GitHub's anchors, so that a link works on a git host and here.
myst_heading_anchors = 3

# Defaults and members as they are written; types are in the signatures.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autosummary_generate = True
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"ebse {release}"
html_copy_source = False
html_show_sphinx = False
