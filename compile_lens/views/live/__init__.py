"""The data of the interactive page of a capture: JSON parts that its script reads one by one.

``web/types.d.ts`` documents each part.
"""

from .page import encoded, parts

__all__ = ["encoded", "parts"]
