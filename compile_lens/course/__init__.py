"""The course: questions to answer before the code runs, exercises that check themselves, and the student's progress.

An answer is checked against facts of a fresh capture, never against a text, so that every program that meets the
requirements passes. Nothing leaves the machine; progress is in a file next to the notebook.
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
