"""The graphs of `workflows/`, as nodes, widgets and links; the page itself lays them out."""

from __future__ import annotations

from dataclasses import dataclass, field

PROMPT = "a red house on the left , a lake , at sunset"
SNOW = "a yellow tent in the middle , in the snow , at night"
CORE = {"PreviewImage", "PreviewAny", "MarkdownNote", "PrimitiveStringMultiline", "PrimitiveInt"}


@dataclass
class Graph:
    """nodes: name -> (type, column, widgets, title); links: (name, output) -> (name, input)."""

    thumbnail: list[str]  # nodes whose pictures make it, in order
    nodes: dict[str, tuple] = field(default_factory=dict)
    links: list[tuple[str, int, str, str]] = field(default_factory=list)

    def add(self, name: str, kind: str, column: int, title: str | None = None, **widgets) -> str:
        self.nodes[name] = (kind, column, widgets, title)
        return name

    def link(self, source: str, output: int, target: str, name: str) -> None:
        self.links.append((source, output, target, name))

    def note(self, text: str) -> None:
        self.add("note", "MarkdownNote", 0, "Read me", text=text)

    def loaders(self, backbone: str = "postcard", heads: str | None = "auto") -> None:
        self.add("backbone", "SSD_LoadBackbone", 0, backbone=backbone)
        if heads:
            self.add("heads", "SSD_LoadHeads", 0, heads=heads)
            self.link("backbone", 0, "heads", "backbone")

    def sampler(self, name: str, column: int, title: str | None = None, heads: bool = True,
                kind: str = "SSD_Sampler", **widgets) -> str:
        self.add(name, kind, column, title, **{"control_after_generate": "fixed", **widgets})
        self.link("backbone", 0, name, "backbone")
        if heads:
            self.link("heads", 0, name, "heads")
        return name

    def show(self, name: str, source: str, output: int, column: int, title: str) -> None:
        self.add(name, "PreviewImage", column, title)
        self.link(source, output, name, "images")

    def tell(self, name: str, source: str, output: int, column: int, title: str) -> None:
        self.add(name, "PreviewAny", column, title)
        self.link(source, output, name, "source")


def quick_start() -> Graph:
    graph = Graph(["save"])
    graph.note("Press **Run** and watch the postcard appear row by row on *SSD Sampler*.\n\n"
               "Change the prompt or the seed, in English or Chinese. The postcard backbone knows "
               "houses, castles, lighthouses, windmills, trees, boats and more, their colours and "
               "places, the time of day, the weather and the land around. The report lists words "
               "that it does not know.")
    graph.loaders()
    graph.sampler("sampler", 1, prompt=PROMPT, seed=7)
    graph.add("save", "SSD_SaveImage", 2, filename_prefix="SSD/postcard")
    for output, name in enumerate(("images", "tokens", "stats")):
        graph.link("sampler", output, "save", name)
    graph.tell("report", "sampler", 3, 2, "Report")
    return graph


def race() -> Graph:
    graph = Graph(["both"])
    graph.note("AR (left) and SSD (right) draw the same prompt with the same seed. Each is timed "
               "separately. Replace *SSD Schedule* with *Baseline Method* set to **exact** to see "
               "AR's picture in fewer forward passes (identical in fp32).")
    graph.loaders()
    graph.add("ar", "SSD_BaselineMethod", 0, "AR", method="ar")
    graph.add("ssd", "SSD_Schedule", 0, "SSD", preset="postcard")
    graph.link("backbone", 0, "ar", "backbone")
    graph.link("backbone", 0, "ssd", "backbone")
    graph.sampler("race", 1, kind="SSD_Race", prompt=PROMPT, seed=7)
    graph.link("ar", 0, "race", "method_a")
    graph.link("ssd", 0, "race", "method_b")
    graph.show("both", "race", 2, 2, "Side by side")
    graph.tell("report", "race", 3, 2, "Report")
    return graph


def keep_the_top() -> Graph:
    graph = Graph(["first_picture", "second_picture"])
    graph.note("The second sampler keeps the top 8 rows of tokens of the first picture and draws "
               "the rest with its own prompt and seed. To extend any picture downward, connect "
               "tokens from *Encode Image* instead.")
    graph.loaders()
    graph.sampler("first", 1, "First picture", prompt=PROMPT, seed=7)
    graph.sampler("second", 2, "Its top, another ground", seed=21, keep_rows=8,
                  prompt="a purple tree in the middle , on the sand , at sunset")
    graph.link("first", 1, "second", "keep")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("second_picture", "second", 0, 3, "Top kept, rest redone")
    graph.tell("report", "second", 3, 3, "Report")
    return graph


def grid_of_seeds() -> Graph:
    graph = Graph(["pictures"])
    graph.note("Draws six seeds at once. Picture *n* is the picture of seed + *n*, so you can draw "
               "the one you like again by itself.")
    graph.loaders()
    graph.sampler("sampler", 1, prompt=SNOW, seed=11, batch_size=6)
    graph.show("pictures", "sampler", 0, 2, "Seeds 11 to 16")
    graph.tell("report", "sampler", 3, 2, "Report")
    return graph


def schedules_compared() -> Graph:
    graph = Graph(["map_0", "map_1", "map_2"])
    graph.note("More verification rounds repair more and take more forward passes. r = 0 only "
               "drafts; r = 1 and r = 2 verify every row once and twice. Preset *custom* uses your "
               "numbers as they are, so r may be 0. Bright cells were accepted, dark ones were "
               "repaired.")
    graph.loaders()
    graph.add("prompt", "PrimitiveStringMultiline", 0, "Prompt for all", value=PROMPT)
    for rounds in (0, 1, 2):
        graph.add(f"schedule_{rounds}", "SSD_Schedule", 1, f"r = {rounds}", preset="custom",
                  k_h=5, k_v=1, r=rounds, i=0)
        graph.link("backbone", 0, f"schedule_{rounds}", "backbone")
        graph.sampler(f"sampler_{rounds}", 2 + rounds, f"r = {rounds}", seed=7)
        graph.link("prompt", 0, f"sampler_{rounds}", "prompt")
        graph.link(f"schedule_{rounds}", 0, f"sampler_{rounds}", "method")
        graph.add(f"accepted_{rounds}", "SSD_AcceptanceMap", 5)
        graph.link(f"sampler_{rounds}", 2, f"accepted_{rounds}", "stats")
        graph.show(f"map_{rounds}", f"accepted_{rounds}", 0, 5, f"Acceptance, r = {rounds}")
        graph.tell(f"plan_{rounds}", f"schedule_{rounds}", 2, 1, f"Plan, r = {rounds}")
    return graph


def compare_methods() -> Graph:
    graph = Graph(["sheet"])
    graph.note("Six methods draw the same prompt with the same seed, one after the other. The "
               "sheet says below each picture how many forward passes it took, how many seconds, "
               "and what the method promises. Set a *draw* to **none** to leave it out, or "
               "connect a method with knobs of its own.")
    graph.loaders()
    methods = {f"draw_{n}": name for n, name in enumerate(
        ("ar", "exact", "sjd", "wave", "ssd", "rows"), 1)}
    graph.sampler("compare", 1, kind="SSD_CompareMethods", prompt=PROMPT, seed=7, **methods)
    graph.show("sheet", "compare", 0, 2, "Sheet")
    graph.tell("table", "compare", 1, 2, "Table")
    return graph


JANUS_NOTE = """\
**Janus-Pro** without draft heads: nobody publishes any for it. `rows` draws it in about 77 \
forward passes instead of 576 (approximate). `exact` in *Baseline Method* gives AR's picture; in \
bf16, the default here, rounding can change some of its tokens.

**Put the weights into the folder** `models/ssd_backbones/Janus-Pro-1B` (the name in *Load \
Backbone*). If you press **Run** without them, the message shows a command that downloads them \
with ComfyUI's own Python. It prints size and licence and asks before it starts. Or put all \
files of [Janus-Pro-1B](https://huggingface.co/deepseek-ai/Janus-Pro-1B) (4 GB) or \
[Janus-Pro-7B](https://huggingface.co/deepseek-ai/Janus-Pro-7B) (15 GB) there by hand. Then \
press R and Run.

If memory is short, choose dtype `int8` or *offload*. Without weights, choose `postcard`."""


def janus_pro() -> Graph:
    graph = Graph([])
    graph.note(JANUS_NOTE)
    graph.loaders("Janus-Pro-1B", None)
    graph.add("rows", "SSD_BaselineMethod", 0, "rows: no heads needed", method="rows", k_h=5,
              k_v=1, r=2, i=0)
    graph.link("backbone", 0, "rows", "backbone")
    graph.sampler("sampler", 1, heads=False, seed=7,
                  prompt="a lighthouse on a cliff above a stormy sea, oil painting")
    graph.link("rows", 0, "sampler", "method")
    graph.show("picture", "sampler", 0, 2, "Picture")
    graph.tell("report", "sampler", 3, 2, "Report")
    return graph


GRAPHS = {"1_quick_start": quick_start, "2_race_ar_vs_ssd": race,
          "3_keep_the_top_redo_the_rest": keep_the_top, "4_grid_of_seeds": grid_of_seeds,
          "5_schedules_compared": schedules_compared, "6_janus_pro": janus_pro,
          "7_compare_methods": compare_methods}
