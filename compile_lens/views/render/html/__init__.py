"""HTML: static pages and fragments for a notebook, and the pieces that they are made of."""

from .document import fragment, page, static

__all__ = ["fragment", "page", "static"]
