"""Known backbones, one table row each: source, size, licence and geometry.

Reads neither files nor the network. Download sizes are approximate (LlamaGen's are its parameters
times four bytes); `hub.quote` requests the exact ones. The loader decides whether this version can
run a backbone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

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
    full resolution. tied: the rows that embed the codes also predict them.
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
    tied: bool = False

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

SIMPLEAR_LICENCE = Licence(
    "none stated (weights), MIT (code), NVIDIA Open Model License (codec)",
    "https://github.com/wdrink/SimpleAR",
    "the weights come without a licence, so ask their authors before commercial use; code and "
    "picture codec allow it")
JANUS_FINETUNE = Licence(
    "Apache-2.0 (finetune), DeepSeek Model License (Janus-Pro)", DEEPSEEK.link, DEEPSEEK.restricts)

MOVQGAN = Source("ai-forever/MoVQGAN", ("movqgan_270M.ckpt",), folder="vq")
CHAMELEON_VQ = Source("leloy/Anole-7b-v0.1-vqvae-hf", ("model.safetensors",), folder="vq")
COSMOS = Source("nvidia/Cosmos-1.0-Tokenizer-DV8x16x16", ("autoencoder.jit",), (LICENCE,),
                "cosmos")
COSMOS_PARAMETERS = 111_000_000
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


def janus_finetune(repo: str, title: str, note: str, licence: Licence) -> KnownBackbone:
    """A Janus-Pro-7B that others trained further, in DeepSeek's own layout as safetensors."""
    return KnownBackbone(
        repo.partition("/")[2], "Janus-Pro", title, (Source(repo, ("*.safetensors",)),), None,
        licence, presets.PAPER["Janus-Pro"].grid, JANUS_7B, 16384, 102400, presets.JANUS, note)


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


def simplear(billions: str, shape: DecoderShape, about: float) -> KnownBackbone:
    """The checkpoint after reinforcement learning, which scores better than the one before."""
    own = Source(f"Daniel0724/SimpleAR-{billions}-RL", ("*.safetensors",),
                 ("*.json", "merges.txt", LICENCE))
    return KnownBackbone(
        f"SimpleAR-{billions}-RL", "SimpleAR", f"SimpleAR {billions}, 1024 px", (own, COSMOS),
        int(about * GB), SIMPLEAR_LICENCE, Grid(64, 64), shape, 64000, 151672, presets.SIMPLEAR,
        "the smallest model of 1024 px; the picture codec comes from another repository",
        codec_parameters=COSMOS_PARAMETERS, codec_channels=32, tied=True)


def lumina_2(suffix: str, note: str) -> KnownBackbone:
    own = Source(f"Alpha-VLLM/Lumina-mGPT-2.0{suffix}", ("*.safetensors",))
    return KnownBackbone(
        f"Lumina-mGPT-2.0{suffix}", "Lumina-mGPT 2.0", f"Lumina-mGPT 2.0{suffix}, 768 px",
        (own, MOVQGAN), int(16.8 * GB), APACHE, Grid(96, 96, True), CHAMELEON_7B, 16384, 155000,
        presets.LUMINA_2, note, patch=8, codec_parameters=270_000_000, codec_channels=512)


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
SIMPLEAR_HALF = DecoderShape(24, 896, 14, 2, 64, 4864, qkv_bias=True)
SIMPLEAR_1B = DecoderShape(28, 1536, 12, 2, 128, 8960, qkv_bias=True)
EMU3_5 = DecoderShape(64, 5120, 64, 8, 128, 25600, eps=1e-5, qk_rms_norm=True)
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

PLANS_IN_TEXT = ("its authors let it write a longer prompt first; here it draws from the prompt as "
                 "it is, so write the details yourself")
FINETUNES = (
    janus_finetune("FreedomIntelligence/Janus-4o-7B", "Janus-4o 7B",
                   "Janus-Pro 7B trained further on pictures of GPT-4o", DEEPSEEK),
    janus_finetune("CaraJ/T2I-R1", "T2I-R1 7B", PLANS_IN_TEXT, JANUS_FINETUNE),
    janus_finetune("midbee/Janus-Pro-R1-7B", "Janus-Pro-R1 7B", "its authors let it judge its own "
                   "picture and draw again; here it draws once", JANUS_FINETUNE),
    janus_finetune("Franklin0/ReasonGen-R1", "ReasonGen-R1 7B", PLANS_IN_TEXT, JANUS_FINETUNE))

EMU3_5_IMAGE = KnownBackbone(
    "Emu3.5-Image", "Emu3.5", "Emu3.5-Image 34B",
    (Source("BAAI/Emu3.5-Image", ("*.safetensors",), ("*.json", "*.tiktoken", "*.txt", LICENCE)),
     Source("BAAI/Emu3.5-VisionTokenizer", ("model.ckpt",), (LICENCE,), "vq")),
    int(70.0 * GB), APACHE, Grid(64, 64, True), EMU3_5, 131072, 151854, presets.EMU3_5,
    "in int4 for a card of 32 GB; its authors sample with guidance 5 and top-k 5120",
    codec_parameters=455_300_000, codec_channels=256)

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
    *janus("1B", JANUS_1B, 4.2), *janus("7B", JANUS_7B, 14.8), *FINETUNES,
    simplear("0.5B", SIMPLEAR_HALF, 1.3), simplear("1.5B", SIMPLEAR_1B, 3.5),
    llamagen("B", 16, LLAMAGEN["B"], 0.7, "c2i_B_256.pt"),
    llamagen("B", 24, LLAMAGEN["B"], 0.7, "c2i_B_384.pt"),
    llamagen("L", 16, LLAMAGEN["L"], 1.7, "c2i_L_256.pt"),
    llamagen("L", 24, LLAMAGEN["L"], 1.7, "c2i_L_384.pt"),
    llamagen("XL", 24, LLAMAGEN["XL"], 3.4, "c2i_XL_384.pt"),
    llamagen("XXL", 24, LLAMAGEN["XXL"], 5.9, "c2i_XXL_384.pt"),
    llamagen("3B", 24, LLAMAGEN["3B"], 12.7, "c2i_3B_384.pt"),
    llamagen_t2i(1, 16), llamagen_t2i(2, 32), lumina(512), lumina(768), lumina(1024), ANOLE,
    lumina_2("", "its authors sample with guidance 4 and top-k 4096; the card of its picture codec "
                 "names no licence"),
    lumina_2("-Omni", "draws a picture for a depth map or an edge map too; its authors sample with "
                      "guidance 4 and top-k 4096; the card of its picture codec names no licence"),
    EMU3_GEN, EMU3_5_IMAGE, GLM_IMAGE, tar(256), tar(512), tar(1024))}


def known(name: str) -> KnownBackbone:
    """Return the backbone of this name, ignoring case; SSDError lists the names."""
    row = {key.lower(): row for key, row in CATALOGUE.items()}.get(name.lower())
    if row is None:
        raise SSDError(f"backbone {name!r} is not in the catalogue: choose another, such as "
                       f"{nearest_names(name, CATALOGUE)}; download --list shows all")
    return row


def nearest_names(name: str, names: Iterable[str]) -> str:
    """Three names that resemble a wrong one, in any case; the first ones if none does."""
    known = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), known, 3, 0.5) or [*known][:3]
    return ", ".join(known[each] for each in near)
