"""Spatially Speculative Decoding: draft whole rows of a picture, verify them in a few passes."""

from . import methods
from .decode import generate, plan
from .errors import SSDError
from .events import Finished, Pass, Rows, Started
from .grid import Grid
from .load import load_backbone, load_heads
from .plan import Plan
from .sampling import Sampling

__version__ = "0.1.0"
__all__ = ["Finished", "Grid", "Pass", "Plan", "Rows", "SSDError", "Sampling", "Started",
           "generate", "load_backbone", "load_heads", "methods", "plan"]
