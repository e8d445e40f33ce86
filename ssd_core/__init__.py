"""Spatially Speculative Decoding: draft whole rows of a picture, verify them in a few passes."""

from . import openmp  # noqa: F401  before torch
from .engine import methods
from .engine.decode import generate, plan
from .engine.events import Finished, Pass, Rows, Started
from .engine.plan import Plan
from .errors import SSDError
from .front.contest import compare
from .model.grid import Grid
from .model.sampling import Sampling
from .version import version
from .weights.load import load_backbone, load_heads

__version__ = version()
__all__ = ["Finished", "Grid", "Pass", "Plan", "Rows", "SSDError", "Sampling", "Started",
           "compare", "generate", "load_backbone", "load_heads", "methods", "plan"]
