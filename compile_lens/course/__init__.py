"""The course: a question to answer before the code runs, exercises that check themselves, and one's progress.

What is right is never a text to compare with: an answer is held against facts of a fresh capture, so that every
program that does what was asked passes. Nothing leaves the machine; progress is in a file beside the notebook.
"""

from .certificate import certificate as certificate
from .checking import Prediction as Prediction
from .checking import Verdict as Verdict
from .checking import check as check
from .checking import hint as hint
from .checking import predict as predict
from .checking import solution as solution
from .recording import Beside as Beside
from .recording import Recorded as Recorded
from .recording import recorded as recorded
from .series import Series as Series
from .series import series as series
from .state import Progress as Progress
from .state import progress as progress
from .wording import language as language

__all__ = [
    "Beside",
    "Prediction",
    "Progress",
    "Recorded",
    "Series",
    "Verdict",
    "certificate",
    "check",
    "hint",
    "language",
    "predict",
    "progress",
    "recorded",
    "series",
    "solution",
]
