"""Settings of Sphinx for the site, which ``python docs/make_site.py`` makes.

The source folder is the repository, so that a page's links mean the same here and on a code host; only the pages named
below are read. The pages load nothing from the network.
"""

from __future__ import annotations

import fnmatch
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

import compile_lens  # noqa: E402

project = "compile_lens"
author = "the compile_lens developers"
project_copyright = author
version = release = compile_lens.__version__

extensions = [
    "myst_nb",
    "sphinx_exercise",
    "sphinx_togglebutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "site_extension",
]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "README.zh-CN.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "assets/gallery/*.md",
    "docs/**.md",
    "tutorials/**.md",
    "tutorials/**.ipynb",
]
exclude_patterns = [
    ".*", "**/.*", "**/node_modules", "benchmarks", "build", "compile_lens", "compile-lens-demo", "dist", "tests",
]  # fmt: skip
if not tags.has("solutions"):  # type: ignore[name-defined]  # noqa: F821  # Sphinx brings it
    exclude_patterns += ["tutorials/solutions.md", "tutorials/INSTRUCTORS.md"]

html_theme = "sphinx_book_theme"
html_title = "compile_lens"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["theme.js"]
templates_path = ["templates"]
html_additional_pages = {"index": "redirect.html"}
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_persistent": [],  # the search stands in the sidebar
    "secondary_sidebar_items": {"docs/**": ["page-toc"]},  # elsewhere figures want the breadth
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}

myst_heading_anchors = 3
nb_execution_mode = "cache" if os.environ.get("COMPILE_LENS_LESSONS", "") else "off"
nb_execution_excludepatterns = [
    path.relative_to(ROOT).as_posix()
    for path in ROOT.glob("tutorials/**/[0-9]*.ipynb")
    if not fnmatch.fnmatch(path.relative_to(ROOT).as_posix(), os.environ.get("COMPILE_LENS_LESSONS", ""))
]
nb_execution_cache_path = os.environ.get("COMPILE_LENS_KEPT", "")
nb_execution_timeout = 240
nb_execution_in_temp = True  # course-progress.json is written to where a lesson runs
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
napoleon_use_rtype = False
nitpicky = True
nitpick_ignore_regex = [
    # Described elsewhere, and the build uses no network.
    ("py:class", r"(collections\.abc|graphviz|os|pathlib|pydot|torch)\..*"),
    ("py:class", r"Path"),  # pathlib's, beside a type that only type checkers import
    ("py:class", r"(dict\[str|tuple\[Value, \.\.\.\])"),  # remains of a type that contains types
    ("py:class", r"compile_lens\..*\._[A-Z]"),  # a type variable: the argument is returned
]
