"""Known backbones, one table row each: source, size, licence and geometry.

Reads neither files nor the network. Download sizes are approximate (LlamaGen's are its parameters
times four bytes); `hub.quote` requests the exact ones. The loader decides whether this version can
run a backbone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..backbones import presets
from ..backbones.presets import Preset
from ..errors import SSDError
from ..model.grid import Grid
from ..model.transformer import DecoderShape

GB = 10**9
BACKBONES_FOLDER = "ssd_backbones"  # in a models folder, with one folder per backbone
LICENCE = "LICENSE*"  # also downloaded, if the repository has one


@dataclass(frozen=True)
class Licence:
    """`restricts` states in one line what use the licence permits."""

    name: str
    link: str
    restricts: str


@dataclass(frozen=True)
class Source:
    """Files of one repository on the Hub, by pattern; `*` does not match across folders.

    Patterns in `files` must match, patterns in `extras` may. All files go into `folder` below the
    backbone's own folder.
    """

    repo: str
    files: tuple[str, ...]
    extras: tuple[str, ...] = ("*.json", LICENCE)
    folder: str = ""


@dataclass(frozen=True)
class KnownBackbone:
    """`name` is its folder under ssd_backbones; `about_bytes` is the download size, if known.

    patch: pixels per side of a cell. vocabulary: rows of the text embedding. prompt_slots: prompt
    length used for memory estimates. codec_*: parameters of the picture codec, and its channels at
    full resolution.
    """

    name: str
    family: str
    title: str
    sources: tuple[Source, ...]
    about_bytes: int | None
    licence: Licence
    grid: Grid
    shape: DecoderShape
    codes: int
    vocabulary: int
    preset: Preset
    note: str = ""
    patch: int = 16
    prompt_slots: int = 128
    codec_parameters: int = 71_900_000
    codec_channels: int = 128

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in px."""
        return self.grid.columns * self.patch, self.grid.rows * self.patch

    @property
    def link(self) -> str:
        """Web page of the first repository."""
        return f"https://huggingface.co/{self.sources[0].repo}"


DEEPSEEK = Licence(
    "DeepSeek Model License (weights), MIT (code)",
    "https://github.com/deepseek-ai/Janus/blob/main/LICENSE-MODEL",
    "commercial use is allowed; the uses that the licence lists in its attachment are not")
CHAMELEON = Licence(
    "Chameleon Research License", "https://github.com/facebookresearch/chameleon",
    "noncommercial research only; it is Meta's for Chameleon, from which these weights derive")
MIT = Licence("MIT", "https://opensource.org/license/mit", "any use, with the notice kept")
APACHE = Licence("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0",
                 "any use, with the notice kept")

CHAMELEON_VQ = Source("leloy/Anole-7b-v0.1-vqvae-hf", ("model.safetensors",), folder="vq")
LLAMAGEN_T2I_VQ = Source("peizesun/llamagen_t2i", ("vq_ds16_t2i.pt",), ())
FLAN_T5_XL = Source("google/flan-t5-xl", ("model*.safetensors", "tokenizer.json"),
                    folder="flan-t5-xl")


def janus(billions: str, shape: DecoderShape, about: float) -> tuple[KnownBackbone, ...]:
    """One size as two rows: the original files and the transformers port."""
    pickled = Source(f"deepseek-ai/Janus-Pro-{billions}", ("pytorch_model*.bin",))
    original = KnownBackbone(
        f"Janus-Pro-{billions}", "Janus-Pro", f"Janus-Pro {billions}", (pickled,),
        int(about * GB), DEEPSEEK, presets.PAPER["Janus-Pro"].grid, shape, 16384, 102400,
        presets.JANUS, "DeepSeek's own files; .bin, read as plain tensors only")
    port = Source(f"deepseek-community/Janus-Pro-{billions}", ("*.safetensors",))
    return original, replace(
        original, name=f"Janus-Pro-{billions}-hf", title=f"Janus-Pro {billions}, transformers port",
        sources=(port,), note="the same weights as safetensors")


def llamagen(name: str, side: int, shape: DecoderShape, about: float,
             file: str) -> KnownBackbone:
    """A class-conditional LlamaGen: one condition slot, an ImageNet class."""
    source = Source("FoundationVision/LlamaGen", (file, "vq_ds16_c2i.pt"), (LICENCE,))
    return KnownBackbone(
        f"LlamaGen-c2i-{name}-{side * 16}", "LlamaGen", f"LlamaGen {name}, {side * 16} px",
        (source,), int(about * GB), MIT, Grid(side, side), shape, 16384, 1001,
        presets.LLAMAGEN_CLASSES,
        "draws the 1000 classes of ImageNet, not free text", prompt_slots=1)


def llamagen_t2i(stage: int, side: int) -> KnownBackbone:
    """A text-conditional LlamaGen: 120 slots of flan-T5-XL features."""
    own = Source("peizesun/llamagen_t2i",
                 (f"t2i_XL_stage{stage}_{side * 16}.pt", "vq_ds16_t2i.pt"), (LICENCE,))
    return KnownBackbone(
        f"LlamaGen-t2i-XL-{side * 16}", "LlamaGen", f"LlamaGen XL from text, {side * 16} px",
        (own, FLAN_T5_XL), int(14.8 * GB), MIT, Grid(side, side), LLAMAGEN["XL"],
        16384, 120, presets.LLAMAGEN_TEXT, "most of the download is the text encoder, flan-T5-XL "
        "(Apache-2.0)", prompt_slots=120)


def lumina(side: int) -> KnownBackbone:
    own = Source(f"Alpha-VLLM/Lumina-mGPT-7B-{side}", ("*.safetensors",))
    return KnownBackbone(
        f"Lumina-mGPT-7B-{side}", "Lumina-mGPT", f"Lumina-mGPT 7B, {side} px", (own, CHAMELEON_VQ),
        int(14.3 * GB), CHAMELEON, Grid(side // 16, side // 16, True), CHAMELEON_7B, 8192, 65536,
        presets.LUMINA, "its card names no licence; the picture codec comes from "
        "another repository", codec_parameters=68_700_000)


def tar(side: int) -> KnownBackbone:
    own = Source("csuhan/TA-Tok", (f"ar_dtok_lp_{side}px.pth", "ta_tok.pth"), (LICENCE,))
    return KnownBackbone(
        f"Tar-AR-DTok-{side}", "Tar", f"Tar AR-DTok, {side} px", (own, LLAMAGEN_T2I_VQ),
        None, APACHE, Grid(side // 16, side // 16), TAR, 16384, 0, presets.TAR,
        "draws from TA-Tok codes; Tar's language model, which makes them from text, is not part "
        "of it", prompt_slots=729)


JANUS_1B = DecoderShape(24, 2048, 16, 16, 128, 5632)
JANUS_7B = DecoderShape(30, 4096, 32, 32, 128, 11008)
CHAMELEON_7B = DecoderShape(32, 4096, 32, 32, 128, 11008, qk_norm=True, eps=1e-5)
EMU3 = DecoderShape(32, 4096, 32, 8, 128, 14336, eps=1e-5)
GLM_9B = DecoderShape(40, 4096, 32, 2, 128, 13696, eps=1e-5, qkv_bias=True, rotary_dim=64,
                      post_norms=True)
TAR = DecoderShape(30, 1280, 20, 20, 64, 3584, "none", eps=1e-5)
LLAMAGEN = {name: DecoderShape(layers, hidden, heads, heads, hidden // heads, ffn, "interleaved",
                               eps=1e-5)
            for name, layers, hidden, heads, ffn in (
                ("B", 12, 768, 12, 2048), ("L", 24, 1024, 16, 2816), ("XL", 36, 1280, 20, 3584),
                ("XXL", 48, 1536, 24, 4096), ("3B", 24, 3200, 32, 8704))}

ANOLE = KnownBackbone(
    "Anole-7B", "Anole", "Anole 7B", (Source("leloy/Anole-7b-v0.1-hf", ("*.safetensors",)),),
    int(14.3 * GB), CHAMELEON, Grid(32, 32), CHAMELEON_7B, 8192, 65536,
    presets.ANOLE, "its card says Apache-2.0, the weights it was "
    "made from do not", codec_parameters=68_700_000)

EMU3_GEN = KnownBackbone(
    "Emu3-Gen", "Emu3", "Emu3-Gen 8B",
    (Source("BAAI/Emu3-Gen", ("*.safetensors",),
            ("*.json", "*.tiktoken", "*.txt", LICENCE)),
     Source("BAAI/Emu3-VisionTokenizer", ("*.safetensors",), folder="vq"),
     Source("Emu3-community/Emu3-Gen-hf", (), ("tokenizer.json",))),
    int(35.1 * GB), APACHE, presets.PAPER["Emu3"].grid, EMU3, 32768, 184622, presets.EMU3,
    "float32 files, cast while loading; tokenizer.json comes from the transformers port", patch=8,
    codec_parameters=270_700_000, codec_channels=512)

GLM_IMAGE = KnownBackbone(
    "GLM-Image", "GLM-Image", "GLM-Image 9B + 7B",
    (Source("zai-org/GLM-Image",
            ("vision_language_encoder/*.safetensors", "processor/tokenizer.json",
             "transformer/*.safetensors", "text_encoder/*.safetensors", "vae/*.safetensors"),
            ("*.json", "*/*.json", LICENCE)),),
    int(35.5 * GB), MIT, Grid(32, 32), GLM_9B, 16384, 168064 - 16384, presets.GLM_IMAGE,
    "the codes are drawn here; a diffusion model of the same download paints the pixels and needs "
    "the package diffusers", patch=32, prompt_slots=128 + 256, codec_parameters=33_600_000,
    codec_channels=3)

CATALOGUE: dict[str, KnownBackbone] = {row.name: row for row in (
    *janus("1B", JANUS_1B, 4.2), *janus("7B", JANUS_7B, 14.8),
    llamagen("B", 16, LLAMAGEN["B"], 0.7, "c2i_B_256.pt"),
    llamagen("B", 24, LLAMAGEN["B"], 0.7, "c2i_B_384.pt"),
    llamagen("L", 16, LLAMAGEN["L"], 1.7, "c2i_L_256.pt"),
    llamagen("L", 24, LLAMAGEN["L"], 1.7, "c2i_L_384.pt"),
    llamagen("XL", 24, LLAMAGEN["XL"], 3.4, "c2i_XL_384.pt"),
    llamagen("XXL", 24, LLAMAGEN["XXL"], 5.9, "c2i_XXL_384.pt"),
    llamagen("3B", 24, LLAMAGEN["3B"], 12.7, "c2i_3B_384.pt"),
    llamagen_t2i(1, 16), llamagen_t2i(2, 32), lumina(512), lumina(768), lumina(1024), ANOLE,
    EMU3_GEN, GLM_IMAGE, tar(256), tar(512), tar(1024))}


def known(name: str) -> KnownBackbone:
    """Return the backbone of this name, ignoring case; SSDError lists the names."""
    row = {key.lower(): row for key, row in CATALOGUE.items()}.get(name.lower())
    if row is None:
        raise SSDError(f"backbone {name!r} is not in the catalogue: choose one of "
                       f"{', '.join(CATALOGUE)}")
    return row
