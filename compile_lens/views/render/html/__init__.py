"""HTML: static pages and fragments for a notebook, and the pieces that they are made of."""

from .document import body, fragment, page, static

__all__ = ["body", "fragment", "page", "static"]
