"""The graphs of templates whose models one fetches: their notes, weights and prompts."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_graph import NEW_SEED, SEED_CHANGES, SEED_STAYS, Graph

JANUS = "https://huggingface.co/deepseek-community/Janus-Pro-1B"
JANUS_NOTE = f"""\
**Janus-Pro** needs its weights (4 GB) in the folder `models/ssd_backbones/Janus-Pro-1B-hf`. If \
you press **Run** without them, the message shows a command that downloads them with ComfyUI's own \
Python. It prints size and licence and asks before it starts. Or put all files of \
[Janus-Pro-1B]({JANUS}) there by hand; then press R and Run.

*Faithful* gives the picture of normal decoding in fewer forward passes; where rounding can \
change it, the report says so. *Balanced* and *Fast* are quicker and change the picture.

If memory is short, choose dtype `int8` or *offload*. Without weights, choose `postcard`.

{NEW_SEED}"""


@dataclass(frozen=True)
class LargeModel:
    """A template of a model whose weights the user fetches.

    files: (file in the model's folder, address below huggingface.co) of those whose names are
    known.
    """

    backbone: str
    prompt: str
    prefix: str
    note: str
    files: tuple[tuple[str, str], ...]

    def __call__(self) -> Graph:
        graph = Graph([])
        graph.note(self.note, long=True)
        graph.loaders(self.backbone, None)
        graph.models["backbone"] = models_of(self.backbone, self.files)
        graph.sampler("sampler", 1, heads=False, seed=7, quality="Balanced", prompt=self.prompt,
                      **SEED_CHANGES)
        graph.save("sampler", 2, f"SSD/{self.prefix}")
        graph.tell("report", "sampler", 3, 2, "Report")
        graph.app(["save"], backbone="backbone", sampler="prompt seed size quality")
        return graph


def models_of(backbone: str, files: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    """What a template says of a model's files; see `LargeModel`."""
    return [{"name": f"{backbone}/{file}", "url": f"https://huggingface.co/{address}",
             "directory": "ssd_backbones"} for file, address in files]


def shards(repo: str, count: int) -> tuple[tuple[str, str], ...]:
    """Weights in so many files, as transformers names them."""
    names = [f"model-{n:05}-of-{count:05}.safetensors" for n in range(1, count + 1)]
    return tuple((name, f"{repo}/resolve/main/{name}") for name in names)


def note_of(about: str, folder: str) -> str:
    """The note of a large model: what it is, where its weights go, and how they come there."""
    return (f"{about} Its files belong in the folder `models/ssd_backbones/{folder}`. If you press "
            "**Run** without them, the message shows a command that downloads them with ComfyUI's "
            "own Python. It prints size and licence and asks before it starts.\n\nOnce it is "
            "loaded, *Load Backbone* says which sizes it draws, what makes a good prompt and what "
            f"is weak, as its authors and users report it.\n\n{NEW_SEED}")


JANUS_PRO = LargeModel(
    "Janus-Pro-1B-hf", "a lighthouse on a cliff above a stormy sea, oil painting", "janus-pro",
    JANUS_NOTE, (("model.safetensors",
                  "deepseek-community/Janus-Pro-1B/resolve/main/model.safetensors"),))
MOVQGAN = ("vq/movqgan_270M.ckpt", "ai-forever/MoVQGAN/resolve/main/movqgan_270M.ckpt")
LIKE_JANUS = {
    "13_simplear": LargeModel(
        "SimpleAR-0.5B-RL", "an old fisherman mending a net in a harbour at dawn, soft light, the "
        "wood of the boats wet from the rain", "simplear",
        note_of("**SimpleAR** draws 1024 x 1024 pixels with half a billion parameters: the model "
                "for cards of 6 to 8 GB. Its weights come without a licence.", "SimpleAR-0.5B-RL"),
        (("cosmos/autoencoder.jit",
          "nvidia/Cosmos-1.0-Tokenizer-DV8x16x16/resolve/main/autoencoder.jit"),)),
    "14_lumina_mgpt_2": LargeModel(
        "Lumina-mGPT-2.0", "a high-resolution photograph of a tea house in a bamboo forest after "
        "rain, paper lanterns lit, moss on the stone steps", "lumina-mgpt-2",
        note_of("**Lumina-mGPT 2.0** draws 768 x 768 pixels in small cells, and other shapes of "
                "that area. Drawing takes about 31 GiB in bf16, 25 in int8 and 22 in int4. Its "
                "authors sample with top-k 4096.", "Lumina-mGPT-2.0"),
        (*shards("Alpha-VLLM/Lumina-mGPT-2.0", 4),
         MOVQGAN)),
    "15_emu3_5": LargeModel(
        "Emu3.5-Image", "a vintage paper bag of flour on a speckled kitchen counter in late "
        'afternoon light, with the words "ALL-PURPOSE FLOUR" in red and blue', "emu3-5",
        note_of("**Emu3.5-Image** has 34 billion parameters and draws 1024 x 1024 pixels or seven "
                "other shapes. Choose dtype `int4` on a card of 32 GB. Its authors sample with "
                "top-k 5120.", "Emu3.5-Image"),
        (*shards("BAAI/Emu3.5-Image", 15),
         ("vq/model.ckpt", "BAAI/Emu3.5-VisionTokenizer/resolve/main/model.ckpt")))}


def glm_image() -> Graph:
    graph = Graph([])
    graph.note(note_of(
        "**GLM-Image** draws in two stages: *SSD Sampler* draws the codes, and shows one colour "
        "for each; *GLM Decode* frees their memory and paints the pixels with the diffusion model "
        "of the same download, which needs the package diffusers. Put words that are to be written "
        "in the picture in quotation marks.", "GLM-Image"), long=True)
    graph.loaders("GLM-Image", None)
    vae = "vae/diffusion_pytorch_model.safetensors"
    graph.models["backbone"] = models_of(
        "GLM-Image", ((vae, f"zai-org/GLM-Image/resolve/main/{vae}"),))
    graph.sampler("sampler", 1, "Codes", heads=False, seed=7, quality="Balanced",
                  prompt='a bakery window in the rain at night with the words "FRESH BREAD" in '
                         "warm neon, a cat asleep behind the glass", **SEED_CHANGES)
    graph.add("decode", "SSD_GlmDecode", 2, "Pixels", seed=7, **SEED_STAYS)
    graph.link("backbone", 0, "decode", "backbone")
    graph.link("sampler", 1, "decode", "tokens")
    graph.add("save", "SaveImage", 3, filename_prefix="SSD/glm-image")
    graph.link("decode", 0, "save", "images")
    graph.tell("report", "sampler", 3, 3, "Report")
    graph.app(["save"], sampler="prompt seed size quality", decode="steps guidance")
    return graph


def control() -> Graph:
    graph = Graph([])
    graph.note(note_of(
        "**Lumina-mGPT 2.0-Omni** draws the picture that belongs to a depth map or an edge map, or "
        "draws a subject again elsewhere. Load the map in *Load Image*, say in *control* what it "
        "is, and in *prompt* what to draw. The map is the upper half of a larger picture; the "
        "lower half is drawn below it and cut out. Its authors sample with top-k 4096.",
        "Lumina-mGPT-2.0-Omni"), long=True)
    graph.loaders("Lumina-mGPT-2.0-Omni", None)
    graph.models["backbone"] = models_of("Lumina-mGPT-2.0-Omni", (MOVQGAN,))
    graph.add("map", "LoadImage", 0, "Depth map", image="example.png")  # ComfyUI has it
    graph.sampler("control", 1, heads=False, kind="SSD_Control", seed=7, control="depth",
                  prompt="a stone cottage by a mountain stream, morning fog", **SEED_CHANGES)
    graph.link("map", 0, "control", "image")
    graph.add("save", "SaveImage", 2, "Picture", filename_prefix="SSD/control")
    graph.link("control", 0, "save", "images")
    graph.show("panels", "control", 1, 3, "Map and picture")
    graph.app(["save", "panels"], map="image", control="control prompt seed")
    return graph
