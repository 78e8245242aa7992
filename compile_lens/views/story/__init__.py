"""A description of a capture stage by stage in plain sentences, each made from facts in the record."""

from .model import Sentence as Sentence
from .model import Story as Story
from .whole import between as between
from .whole import story as story
