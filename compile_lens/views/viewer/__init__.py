"""A capture as the data of the interactive page: JSON parts that its script reads one by one.

``static/viewer/types.d.ts`` says what each part holds.
"""

from .parts import encoded, parts

__all__ = ["encoded", "parts"]
