"""HTML: static pages, fragments for notebooks, and their parts."""

from .document import body, fragment, page, static

__all__ = ["body", "fragment", "page", "static"]
