"""A capture told stage by stage in plain words, each sentence made from what the record says."""

from .model import Sentence as Sentence
from .model import Story as Story
from .whole import between as between
from .whole import story as story
