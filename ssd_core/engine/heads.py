"""Draft heads: small networks that estimate the backbone's hidden state some cells ahead (Eq. 2).

SSD, section 3.3. h of a cell is the state that predicts it: the decoder's output one slot earlier,
before the final norm; e is the embedding of the token chosen there. From h and e of a cell, the
horizontal head of offset i estimates h of the i-th next cell along the raster, the vertical head of
offset i that of the cell i rows below. Each head is one f of Eq. 2. The backbone's own norm and
image head turn the estimate into the draft distribution q (`DecodeState.draft_probs`).
Training minimises the distance to the true h (Eq. 3: train/heads.py). A `HeadFeatures` names
input and target: [h_pre; e] -> h_pre, or another line of Table 3. A file may also contain a row
drafter (row_drafter.py), with or without heads.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..backbones.base import Backbone
from ..errors import SSDError, first_line
from ..files import read_safetensors, sha256_of, write_safetensors
from ..model.products import Int8Matrix, product, put
from .row_drafter import RowDrafter

FORMAT = "ssd-heads/1"
HORIZONTAL, VERTICAL = "horizontal", "vertical"


@dataclass(frozen=True)
class HeadFeatures:
    """Input and target of a draft head (paper, Table 3).

    h_post is h_pre after the final RMSNorm without its gain: as an input W0 learns the gain, as a
    target the image head applies it. variance: mean squared error per component of an "e" target,
    used as the variance of its draft distribution.
    """

    source: str = "h_pre+e"
    target: str = "h_pre"
    variance: float = 1.0

    def __post_init__(self) -> None:
        for name, choices in (("source", SOURCES), ("target", TARGETS)):
            if getattr(self, name) not in choices:
                raise SSDError(f"heads' {name} {getattr(self, name)!r}: choose one of "
                               f"{', '.join(choices)}")

    @property
    def inputs(self) -> int:
        """The number of input vectors of size d."""
        return 1 + ("+" in self.source)

    def parts(self, hidden: torch.Tensor, embedding: torch.Tensor) -> list[torch.Tensor]:
        """The vectors [..., d] that make up z, from h_pre and e [..., d] of the same cells."""
        return [feature(name, hidden, embedding) for name in self.source.split("+")]

    def goal(self, hidden: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """The training target, from h_pre and e [..., d] at the head's offset."""
        return feature(self.target, hidden, embedding)

    def logits(self, backbone: Backbone, estimate: torch.Tensor) -> torch.Tensor:
        """Draft logits, float32 [..., codes]; an "e" target scores codes by their distance to it.
        """
        if self.target != "e":
            return backbone.logits(estimate)
        every = torch.arange(backbone.codes, device=estimate.device)
        codes = backbone.embed(every[None])[0].float()
        distance = torch.cdist(estimate.float(), codes).square()
        return -distance / (2 * self.variance)


SOURCES = ("h_pre+e", "h_pre", "h_post+e", "h_post", "e")
TARGETS = ("h_pre", "h_post", "e")


def feature(name: str, hidden: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
    """Return h_pre, h_post or e of cells; computes the norm only for h_post."""
    if name == "h_post":
        return F.rms_norm(hidden, hidden.shape[-1:], eps=1e-6)
    return embedding if name == "e" else hidden


class DraftHead(nn.Module):
    """SSD Eq. 2: f(z) = W0 z + W2(silu(W1 n) * W3 n), n = RMSNorm(W0 z), z = [h; e]; m = 2d.

    No matrix has a bias.
    """

    def __init__(self, hidden: int, space: HeadFeatures = HeadFeatures()) -> None:
        super().__init__()
        d, m = hidden, 2 * hidden
        self.space = space
        self.w0 = nn.Parameter(torch.empty(d, space.inputs * d))
        self.w0_parts: nn.ModuleList | None = None  # replaces w0 in integers
        self.norm = nn.Parameter(torch.ones(d))
        self.w1, self.w3 = nn.Parameter(torch.empty(m, d)), nn.Parameter(torch.empty(m, d))
        self.w2 = nn.Parameter(torch.empty(d, m))

    def initialise(self, generator: torch.Generator) -> None:
        """Initialise as the identity on the first input: the head returns the cell's own state."""
        d = len(self.norm)
        with torch.no_grad():
            self.w0.copy_(torch.eye(d, self.w0.shape[1]))
            for weight in (self.w1, self.w3):
                nn.init.normal_(weight, std=d**-0.5, generator=generator)
            nn.init.zeros_(self.w2)

    def forward(self, hidden: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """h, e [..., d] of a cell -> the estimate at this head's offset [..., d]."""
        z = self.head_input(self.space.parts(hidden, embedding))
        n = F.rms_norm(z, z.shape[-1:], self.norm.to(z.dtype), 1e-6)
        return z + product(F.silu(product(n, self.w1)) * product(n, self.w3), self.w2)

    def head_input(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """W0 z [..., d] from the parts of z.

        In integers each part has its own matrix and scales: h is so much larger than e that a
        common scale would round e to zero.
        """
        if self.w0_parts is None:
            return F.linear(torch.cat(parts, dim=-1), self.w0)
        products = [matrix(part) for part, matrix in zip(parts, self.w0_parts, strict=True)]
        return products[0] if len(products) == 1 else products[0] + products[1]

    def to_int8(self) -> None:
        """Replace the matrices with 8-bit integers."""
        d = len(self.norm)
        self.w0_parts = nn.ModuleList(map(Int8Matrix.of, self.w0.split(d, dim=1)))
        del self.w0
        for name in ("w1", "w3", "w2"):
            put(self, name, Int8Matrix.of(getattr(self, name)))


class DraftHeads(nn.Module):
    """k_h horizontal and k_v vertical heads of one backbone; `row` is a row drafter or None."""

    def __init__(self, hidden: int, k_h: int, k_v: int, metadata: dict | None = None,
                 space: HeadFeatures = HeadFeatures(), row: bool = False) -> None:
        super().__init__()
        self.horizontal = nn.ModuleList(DraftHead(hidden, space) for _ in range(k_h))
        self.vertical = nn.ModuleList(DraftHead(hidden, space) for _ in range(k_v))
        self.row = RowDrafter(hidden) if row else None
        self.metadata, self.space = metadata or {}, space
        self.sha256 = ""

    @property
    def k_h(self) -> int:
        return len(self.horizontal)

    @property
    def k_v(self) -> int:
        return len(self.vertical)

    def to_int8(self) -> None:
        """Compute in 8-bit integers, like a backbone in int8."""
        for head in (*self.horizontal, *self.vertical):
            head.to_int8()
        if self.row is not None:
            self.row.to_int8()

    def require_backbone(self, backbone: Backbone) -> None:
        """Raise SSDError if these heads were made for another backbone."""
        sizes = {len(head.norm) for head in (*self.horizontal, *self.vertical)}
        sizes |= {self.row.hidden} if self.row is not None else set()
        made_for = self.metadata.get("backbone_sha256", backbone.sha256)
        if sizes - {backbone.hidden_size} or made_for not in (backbone.sha256, *backbone.hashes):
            raise SSDError(f"these heads were made for another backbone, not for the "
                           f"loaded {backbone.name}: load them with load_heads(path, backbone)")

    def note_on(self, backbone: Backbone) -> str | None:
        """A line if these heads learned from the model without its LoRA."""
        if self.metadata.get("backbone_sha256", backbone.sha256) == backbone.sha256:
            return None
        return ("the draft heads learned from the model without the LoRA: they may guess less "
                "often right, the pictures stay those of the model with it")

    def require(self, k_h: int, k_v: int, row: bool = False) -> None:
        """Raise SSDError if a schedule needs more heads than these, or a missing row drafter."""
        if row and self.row is None:
            raise SSDError("drafter row: the loaded heads hold no row drafter; choose drafter "
                           "heads, or train one with 'python -m ssd_core train heads --kind row'")
        for knob, needed, loaded in (("k_h", k_h, self.k_h), ("k_v", k_v, self.k_v)):
            if needed > loaded:
                raise SSDError(f"{knob} {needed}: the loaded heads reach {loaded}; "
                               f"lower {knob} or train heads that reach further")


def save_heads(heads: DraftHeads, path: Path, backbone: Backbone, training: dict) -> None:
    """Write fp16 tensors and the metadata that `read_heads` checks; `training` adds metadata."""
    offsets = {HORIZONTAL: list(range(1, heads.k_h + 1)), VERTICAL: list(range(1, heads.k_v + 1))}
    metadata = {"format": FORMAT, "backbone": backbone.name, "backbone_sha256": backbone.sha256,
                "hidden_size": backbone.hidden_size, "codes": backbone.codes,
                "directions": [HORIZONTAL, VERTICAL], "offsets": offsets,
                "row": heads.row is not None,
                **asdict(heads.space), **training}
    tensors = {k: v.detach().half().cpu().contiguous() for k, v in heads.state_dict().items()}
    metadata["sha256"] = sha256_of(tensors)
    write_safetensors(tensors, path, {
        k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()})


def read_heads(path: Path, backbone: Backbone) -> DraftHeads:
    """Read heads made for exactly this backbone; raises SSDError that names any mismatch."""
    heads = stored_heads(path, backbone).to(backbone.device, backbone.dtype)
    if backbone.in_int8:
        heads.to_int8()
    return heads


def stored_heads(path: Path, backbone: Backbone) -> DraftHeads:
    """Like `read_heads`, but on the CPU and in the file's dtype."""
    tensors, metadata = read_safetensors(path, FORMAT)
    _require_match(path, metadata, backbone)
    return heads_of(path, tensors, metadata, backbone)


def heads_to_start_from(path: Path, backbone: Backbone) -> DraftHeads:
    """Like `stored_heads`, for the heads of any backbone with hidden states of the same size."""
    tensors, metadata = read_safetensors(path, FORMAT)
    if metadata.get("hidden_size") != str(backbone.hidden_size):
        raise SSDError(f"{path}: these heads read {metadata.get('hidden_size', 'unknown')} "
                       f"channels, {backbone.name} has {backbone.hidden_size}: start from others")
    return heads_of(path, tensors, metadata, backbone)


def heads_of(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str],
             backbone: Backbone) -> DraftHeads:
    """The heads of a file's tensors; SSDError if they do not fit its metadata."""
    try:
        offsets = json.loads(metadata["offsets"])
        space = HeadFeatures(metadata["source"], metadata["target"], float(metadata["variance"]))
        with torch.device("meta"):  # skips initialisation and leaves torch's RNG alone
            heads = DraftHeads(backbone.hidden_size, len(offsets[HORIZONTAL]),
                               len(offsets[VERTICAL]), metadata, space,
                               json.loads(metadata["row"]))
        heads.load_state_dict(tensors, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SSDError(f"{path}: damaged draft heads ({first_line(error)}): "
                       f"get or train them again") from error
    heads.sha256 = sha256_of(tensors)
    return heads.requires_grad_(False).eval()


def _require_match(path: Path, metadata: dict[str, str], backbone: Backbone) -> None:
    expected = {"backbone": backbone.name, "hidden_size": str(backbone.hidden_size),
                "codes": str(backbone.codes), "backbone_sha256": backbone.sha256}
    for key, value in expected.items():
        stored = metadata.get(key, "nothing")
        if stored != value and stored not in backbone.hashes:
            raise SSDError(f"{path}: these heads were made for {key} {stored[:16]}, the loaded "
                           f"backbone {backbone.name} has {value[:16]}: make new ones with "
                           f"'python -m ssd_core train self-distill --backbone B --out DIR', then "
                           f"'train heads' with the same flags")
