"""Sphinx: the documentation as pages; ``make docs``."""

import sys
from pathlib import Path

from sphinx.pycode.parser import VariableCommentPicker

import linkwise

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "linkwise"
author = "The linkwise authors"
copyright = "the linkwise authors"
version = release = linkwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "example_pages",
    "problem_pages",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "myst.xref_missing"]
exclude_patterns = ["build", "extensions"]
default_role = "py:obj"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Result": "Result", "Wrenches": "Wrenches"}
# functions have the signature that `show_options` gives them, not those of their overloads
VariableCommentPicker.is_overload = lambda *_: False  # type: ignore[method-assign]
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"linkwise {version}"
html_static_path = ["static"]
html_css_files = ["linkwise.css"]
templates_path: list[str] = []
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True
