"""Features of a picture by a small classifier of postcards, and Frechet's distance on them.

The distance between two sets of pictures is that between Gaussians fitted to their features
(Heusel et al., 2017, with this classifier instead of Inception). It grows when pictures become
bland, broken or alike, which a likelihood does not show.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ssd_core.backbones.codecs.vq import PATCH, Residual
from ssd_core.files import ASSETS, read_safetensors

FORMAT = "ssd-classifier/1"
BUNDLED = ASSETS / "postcard" / "classifier.safetensors"


class FeatureNet(nn.Module):
    """Pictures uint8 [B, H, W, 3] -> features [B, features] of the content at 3 x 3 places.

    mean, covariance: the Gaussian of real postcards' features, set after training.
    """

    mean: torch.Tensor
    covariance: torch.Tensor

    def __init__(self, channels: int = 64, features: int = 48) -> None:
        super().__init__()
        self.features = features
        self.body = nn.Sequential(
            nn.PixelUnshuffle(PATCH), nn.Conv2d(3 * PATCH**2, channels, 1), Residual(channels),
            nn.Conv2d(channels, channels, 2, stride=2), Residual(channels),
            nn.Conv2d(channels, channels, 2, stride=2), Residual(channels), nn.SiLU(),
            nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(9 * channels, features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("covariance", torch.eye(features))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.body(pictures.permute(0, 3, 1, 2).float() / 127.5 - 1)

    @torch.no_grad()
    def features_of(self, pictures: torch.Tensor, batch: int = 64) -> torch.Tensor:
        """uint8 [n, H, W, 3] -> float64 [n, features]."""
        return torch.cat([self(part) for part in pictures.split(batch)]).double()

    def distance(self, features: torch.Tensor, draws: int = 32, seed: int = 0) -> dict[str, float]:
        """Return `frechet`, the distance of features [n, ...] from real postcards, with its error.

        `frechet_se` is a standard error from a bootstrap over the n pictures. A small n makes the
        distance larger: compare only distances of equally many pictures.
        """
        real = self.mean.double(), self.covariance.double()
        generator = torch.Generator().manual_seed(seed)
        picks = [torch.randint(len(features), (len(features),), generator=generator)
                 for _ in range(draws)]
        resampled = [frechet_distance(moments(features[pick]), real) for pick in picks]
        return {"frechet": frechet_distance(moments(features), real),
                "frechet_se": float(torch.tensor(resampled).std())}


def load_classifier(path: Path = BUNDLED) -> FeatureNet:
    """Load the classifier that `train classifier` saved, in fp32."""
    tensors, _ = read_safetensors(path, FORMAT)
    net = FeatureNet()
    net.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return net.requires_grad_(False).eval()


Moments = tuple[torch.Tensor, torch.Tensor]


def moments(features: torch.Tensor) -> Moments:
    """Mean [d] and covariance [d, d] of features [n, d]; the covariance of one picture is 0."""
    if len(features) < 2:
        return features.mean(0), features.new_zeros(features.shape[1], features.shape[1])
    return features.mean(0), torch.cov(features.T)


def frechet_distance(a: Moments, b: Moments) -> float:
    """|m - m'|^2 + tr(S + S' - 2 (S S')^1/2) between two Gaussians in float64."""
    (mean, covariance), (other_mean, other) = a, b
    root = square_root(covariance)
    cross = torch.linalg.eigvalsh(root @ other @ root).clamp(min=0).sqrt().sum()
    return float((mean - other_mean).square().sum() + covariance.trace() + other.trace()
                 - 2 * cross)


def square_root(matrix: torch.Tensor) -> torch.Tensor:
    """The symmetric root of a positive semi-definite matrix."""
    values, vectors = torch.linalg.eigh(matrix)
    return vectors * values.clamp(min=0).sqrt() @ vectors.T
