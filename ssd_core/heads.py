"""Draft heads: small networks that guess the backbone's own hidden state some cells ahead.

SSD, section 3.3 and Eq. 2. Horizontal head d estimates h at raster cell c + d, vertical head d at
the cell d rows below. The draft distribution comes from the backbone's own norm and image head.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .backbones.base import Backbone
from .errors import SSDError
from .files import read_safetensors, sha256_of, write_safetensors

FORMAT = "ssd-heads/1"
HORIZONTAL, VERTICAL = "horizontal", "vertical"


class DraftHead(nn.Module):
    """f(z) = W0 z + W2(silu(W1 n) * W3 n), n = RMSNorm(W0 z), z = [h; e]; no biases, m = 2d."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        d, m = hidden, 2 * hidden
        self.w0 = nn.Parameter(torch.empty(d, 2 * d))
        self.norm = nn.Parameter(torch.ones(d))
        self.w1, self.w3 = nn.Parameter(torch.empty(m, d)), nn.Parameter(torch.empty(m, d))
        self.w2 = nn.Parameter(torch.empty(d, m))

    def initialise(self, generator: torch.Generator) -> None:
        """Start from the identity on h: "the state there is the state here"."""
        d = len(self.norm)
        with torch.no_grad():
            self.w0.copy_(torch.cat((torch.eye(d), torch.zeros(d, d)), dim=1))
            for weight in (self.w1, self.w3):
                nn.init.normal_(weight, std=d**-0.5, generator=generator)
            nn.init.zeros_(self.w2)

    def forward(self, hidden: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """h, e [..., d] of a cell -> the estimate of h at this head's offset [..., d]."""
        z = F.linear(torch.cat((hidden, embedding), dim=-1), self.w0)
        n = F.rms_norm(z, z.shape[-1:], self.norm, 1e-6)
        return z + F.linear(F.silu(F.linear(n, self.w1)) * F.linear(n, self.w3), self.w2)


class DraftHeads(nn.Module):
    """k_h horizontal and k_v vertical heads of one backbone."""

    def __init__(self, hidden: int, k_h: int, k_v: int, metadata: dict | None = None) -> None:
        super().__init__()
        self.horizontal = nn.ModuleList(DraftHead(hidden) for _ in range(k_h))
        self.vertical = nn.ModuleList(DraftHead(hidden) for _ in range(k_v))
        self.metadata = metadata or {}
        self.sha256 = ""

    @property
    def k_h(self) -> int:
        return len(self.horizontal)

    @property
    def k_v(self) -> int:
        return len(self.vertical)

    def require_backbone(self, backbone: Backbone) -> None:
        """Refuse a backbone that these heads were not made for."""
        sizes = {len(head.norm) for head in (*self.horizontal, *self.vertical)}
        made_for = self.metadata.get("backbone_sha256", backbone.sha256)
        if sizes - {backbone.hidden_size} or made_for != backbone.sha256:
            raise SSDError(f"these heads were made for another backbone than the loaded "
                           f"{backbone.name}: load them with load_heads(path, backbone)")

    def require(self, k_h: int, k_v: int) -> None:
        """Refuse a schedule that asks for more heads than there are."""
        for knob, asked, there in (("k_h", k_h, self.k_h), ("k_v", k_v, self.k_v)):
            if asked > there:
                raise SSDError(f"{knob} {asked}: the loaded heads reach {there}; "
                               f"lower {knob} or train heads that reach further")


def save_heads(heads: DraftHeads, path: Path, backbone: Backbone, training: dict) -> None:
    """Write fp16 tensors and the metadata that loading checks; `training` adds its summary."""
    offsets = {HORIZONTAL: list(range(1, heads.k_h + 1)), VERTICAL: list(range(1, heads.k_v + 1))}
    metadata = {"format": FORMAT, "backbone": backbone.name, "backbone_sha256": backbone.sha256,
                "hidden_size": backbone.hidden_size, "codes": backbone.codes,
                "directions": [HORIZONTAL, VERTICAL], "offsets": offsets, **training}
    tensors = {k: v.detach().half().cpu().contiguous() for k, v in heads.state_dict().items()}
    write_safetensors(tensors, path, {
        k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()})


def read_heads(path: Path, backbone: Backbone) -> DraftHeads:
    """Read heads made for exactly this backbone; anything else is refused by name."""
    tensors, metadata = read_safetensors(path, FORMAT)
    _require_match(path, metadata, backbone)
    try:
        offsets = json.loads(metadata["offsets"])
        with torch.device("meta"):  # no initial weights: no time, no draw from torch's own RNG
            heads = DraftHeads(backbone.hidden_size, len(offsets[HORIZONTAL]),
                               len(offsets[VERTICAL]), metadata)
        heads.load_state_dict(tensors, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SSDError(f"{path}: damaged draft heads ({str(error).splitlines()[0]}): "
                       f"get or train them again") from error
    heads.sha256 = sha256_of(tensors)
    return heads.to(backbone.device, backbone.dtype).requires_grad_(False).eval()


def _require_match(path: Path, metadata: dict[str, str], backbone: Backbone) -> None:
    expected = {"backbone": backbone.name, "hidden_size": str(backbone.hidden_size),
                "codes": str(backbone.codes), "backbone_sha256": backbone.sha256}
    for key, value in expected.items():
        found = metadata.get(key, "nothing")
        if found != value:
            raise SSDError(f"{path}: these heads were made for {key} {found[:16]}, the loaded "
                           f"backbone {backbone.name} has {value[:16]}: train new ones with "
                           f"'python -m ssd_core train heads'")
