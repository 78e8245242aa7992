"""A capture as the data of the interactive page: JSON parts that its script reads one by one.

``web/types.d.ts`` says what each part holds.
"""

from .page import encoded, parts

__all__ = ["encoded", "parts"]
