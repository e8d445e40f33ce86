"""Reads from config.json what tensors do not show: positions, norm, activation.

Reads the layouts of transformers 4 (`rope_theta` and `rope_scaling`) and 5 (`rope_parameters`).
Settings that our decoder does not support raise SSDError. Knows no family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from ...errors import SSDError
from .checkpoint import Checkpoint

ROTARY = ("rope_scaling", "rope_parameters")  # the later one takes precedence
MOST = 1e308  # an integer in JSON may be longer than a float can be
SILU = (None, "silu", "swish")  # two names for one function
Names = TypeVar("Names")


@dataclass(frozen=True)
class Constants:
    """theta: base of the rotary angles; eps: of every RMSNorm."""

    theta: float
    eps: float


def read_constants(checkpoint: Checkpoint, config: Mapping, theta: float,
                   eps: float) -> Constants:
    """A decoder's constants; `theta` and `eps` are its family's defaults.

    config: the part of config.json that describes this decoder.
    """
    return Constants(rotary_theta(checkpoint, config, theta),
                     number(checkpoint, config, "rms_norm_eps", eps))


def section(checkpoint: Checkpoint, name: str) -> dict:
    """A part of config.json, or {} if there is none of that name."""
    part = checkpoint.config().get(name)
    return part if isinstance(part, dict) else {}


def number(checkpoint: Checkpoint, config: Mapping, name: str, default: float) -> float:
    """A positive number from a config, or the default if the config has none."""
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < MOST:
        raise refusal(checkpoint, f"{name} is {value!r}, expected a number above 0, below {MOST}")
    return float(value)


def rotary_theta(checkpoint: Checkpoint, config: Mapping, default: float) -> float:
    """The base of the rotary angles; raises SSDError for other kinds of rotation."""
    if config.get("partial_rotary_factor") not in (None, 1):
        raise refusal(checkpoint, f"partial_rotary_factor is {config['partial_rotary_factor']}: "
                      "only heads that are rotated whole are supported")
    settings = dict(config)
    for name in ROTARY:
        rope = config.get(name) or {}
        if not is_ordinary(rope):
            raise refusal(checkpoint, f"{name} is {rope}: only ordinary rotary positions are "
                          "supported")
        settings |= rope
    return number(checkpoint, settings, "rope_theta", default)


def is_ordinary(rope: object) -> bool:
    """Whether a config's rotary settings describe plain rotary positions."""
    if not isinstance(rope, Mapping):
        return False
    kind = rope.get("rope_type") or rope.get("type")
    whole = rope.get("partial_rotary_factor") in (None, 1)
    return whole and (kind == "default" or (kind is None and "factor" not in rope))


def require_silu(checkpoint: Checkpoint, config: Mapping) -> None:
    """Raise SSDError if the feed-forward network uses another activation than silu."""
    if config.get("hidden_act") not in SILU:
        raise refusal(checkpoint, f"hidden_act is {config['hidden_act']!r}: only silu is supported")


def head_key(checkpoint: Checkpoint, head: str, embedding: str) -> str | None:
    """Return the head's key, or the embedding's if config.json ties the two.

    None if the file has no head and so belongs to another model.
    """
    if embedding not in checkpoint.shapes or head in checkpoint.shapes:
        return head if {head, embedding} <= set(checkpoint.shapes) else None
    parts = (checkpoint.config(), section(checkpoint, "text_config"))
    return embedding if any(part.get("tie_word_embeddings") is True for part in parts) else None


def require_names(names: Names | None, checkpoint: Checkpoint, family: str) -> Names:
    """Return a family's tensor names. Raises SSDError if the files belong to another model."""
    if names is None:
        raise SSDError(f"{checkpoint.files[0]}: these are not {family}'s tensors")
    return names


def refusal(checkpoint: Checkpoint, why: str) -> SSDError:
    return SSDError(f"{checkpoint.folder / 'config.json'}: {why}")
