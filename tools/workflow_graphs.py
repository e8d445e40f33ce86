"""The graphs of `workflows/`, as nodes, widgets and links; the page itself lays them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from large_model_graphs import JANUS_PRO, LIKE_JANUS, control, glm_image
from workflow_graph import NEW_SEED, PROMPT, SEED_CHANGES, Graph

CHINESE_NOTES = Path(__file__).with_name("chinese_notes.json")  # paragraphs by workflow
CASTLE = "a purple castle on the right, in a meadow, at sunset"
SNOW = "a yellow tent in the snow at night"
BOAT = "a red boat on the left, on a calm lake, a forest behind, under a clear sky, by day"
ABOVE = "snowy mountains behind, under a clear sky, at sunset"
CORE = {"PreviewImage", "PreviewAny", "MarkdownNote", "PrimitiveStringMultiline", "PrimitiveInt",
        "ImageScaleBy", "ImageSharpen", "SaveImage", "SolidMask", "MaskComposite", "LoadImage"}
OLD_SEED = "The seed is fixed, so that {why}; *control after generate* set to **randomize** " \
    "draws another picture at every run."
MAP = (560, 400)  # px: a map and its chart, legible


def quick_start() -> Graph:
    graph = Graph(["save"])
    graph.note("Press **Run** and watch the postcard appear row by row. What the prompt leaves "
               "open is filled in; the node shows these words in a lighter colour.\n\n"
               "Click words on the node, or write your own, in English or Chinese: things, colours "
               "and places, time, weather, land. Every run takes a new seed.")
    graph.sizes = {"note": (300, 236), "backbone": (300, 0), "heads": (300, 0),
                   "sampler": (400, 660), "save": (300, 350), "report": (300, 190)}
    graph.loaders()
    graph.sampler("sampler", 1, prompt=PROMPT, seed=10, **SEED_CHANGES)
    graph.save("sampler", 2, "SSD/postcard")
    graph.tell("report", "sampler", 3, 2, "Report")
    graph.app(["save"], sampler="prompt ssd_words seed size quality expand")
    graph.opens_as_app = True
    return graph


def race() -> Graph:
    graph = Graph(["both"])
    graph.note("AR (left) and SSD (right) draw the same prompt with the same seed. Each is timed "
               "separately. Replace *SSD Schedule* with *Baseline Method* set to **exact** to see "
               f"AR's picture in fewer forward passes.\n\n{NEW_SEED}")
    graph.loaders()
    graph.add("ssd", "SSD_Schedule", 0, "SSD", preset="postcard")
    graph.add("ar", "SSD_BaselineMethod", 0, "AR", method="ar")  # last: the tallest
    graph.link("backbone", 0, "ar", "backbone")
    graph.link("backbone", 0, "ssd", "backbone")
    graph.sampler("race", 1, kind="SSD_Race", prompt=PROMPT, seed=10, **SEED_CHANGES)
    graph.link("ar", 0, "race", "method_a")
    graph.link("ssd", 0, "race", "method_b")
    graph.show("both", "race", 2, 2, "Side by side")
    graph.tell("report", "race", 3, 2, "Report")
    graph.app(["both"], race="prompt seed size expand")
    return graph


def keep_the_top() -> Graph:
    graph = Graph(["first_picture", "second_picture"])
    graph.note("The second sampler keeps the top rows of the first picture and draws the rest "
               "with its own prompt and seed. Both prompts name the sky and the mountains, so that "
               "they agree on them; with the very same prompt it would take over the words that "
               "were filled in for the first. *Rows to keep* says how many of the 24 rows stay. To "
               "extend any picture downward, connect *Encode Image* instead.\n\nThe first picture "
               "stays; every run takes a new seed for the second one, and draws another ground.")
    graph.loaders()
    graph.add("rows", "PrimitiveInt", 0, "Rows to keep", value=8)
    graph.sampler("first", 1, "First picture", seed=7,
                  prompt=f"a red house on the left, by a lake, {ABOVE}")
    graph.sampler("second", 2, "Its top, another ground", seed=22,
                  prompt=f"a purple tree in the middle, on the sand, {ABOVE}", **SEED_CHANGES)
    graph.link("first", 1, "second", "keep")
    graph.link("rows", 0, "second", "keep_rows")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("second_picture", "second", 0, 3, "Top kept, rest redone")
    graph.app(["first_picture", "second_picture"], first="prompt seed", rows="value",
              second="prompt seed")
    return graph


def seeds() -> Graph:
    graph = Graph(["tops"])
    graph.note("Choose before you wait. *Start Seeds* draws only the top of six pictures. "
               "**Click** those you like: *Pick* notes their numbers. Run again, and *Finish* "
               "draws the rest of them. Each seed fills in other words for what the prompt leaves "
               "open, and *Finish* draws with the same ones.\n\nPictures 2 and 5 are picked "
               "already. The seed is fixed, because they are its pictures; for others, "
               "change the seed and pick anew.")
    graph.loaders()
    graph.sampler("start", 1, prompt=SNOW, seed=11, kind="SSD_StartSeeds")
    graph.show("tops", "start", 1, 2, "Overview")
    graph.add("pick", "SSD_Pick", 2, pictures="2, 5")
    graph.link("start", 0, "pick", "started")
    graph.add("finish", "SSD_Finish", 3)
    graph.link("backbone", 0, "finish", "backbone")
    graph.link("heads", 0, "finish", "heads")
    graph.link("pick", 0, "finish", "started")
    graph.save("finish", 4, "SSD/seeds")
    graph.app(["tops", "save"], start="prompt seed count part expand", pick="pictures")
    return graph


def schedules_compared() -> Graph:
    """A column for each number of rounds; their maps and pictures are side by side at the right."""
    graph = Graph(["map_0", "map_2"])
    graph.note("More verification rounds repair more and take more forward passes. r = 0 only "
               "drafts; r = 1 and r = 2 verify every row once and twice. Preset *custom* uses your "
               "numbers as they are, so r may be 0.\n\nA map shows the picture in grey: bright "
               "cells were accepted, dark ones were repaired. Its chart shows how many were "
               "accepted in each round.\n\nAll three take one prompt and one seed, which stays, "
               "so that only the rounds differ.")
    graph.shared_words()
    graph.loaders()
    for rounds in (0, 1, 2):
        one_schedule(graph, rounds, column=1 + rounds)
    graph.app([f"{name}_{rounds}" for rounds in (0, 1, 2) for name in ("picture", "map")],
              prompt="value", seed="value")
    return graph


def one_schedule(graph: Graph, rounds: int, column: int) -> None:
    schedule, sampler, accepted = (f"{name}_{rounds}"
                                   for name in ("schedule", "sampler", "accepted"))
    graph.add(schedule, "SSD_Schedule", column, f"r = {rounds}", preset="custom",
              k_h=5, k_v=1, r=rounds, i=0)
    graph.link("backbone", 0, schedule, "backbone")
    graph.sampler(sampler, column, f"Sampler, r = {rounds}", seed=10)
    graph.link(schedule, 0, sampler, "method")
    graph.take_words(sampler)
    graph.add(accepted, "SSD_AcceptanceMap", 4)
    graph.link(sampler, 2, accepted, "stats")
    graph.show(f"map_{rounds}", accepted, 0, 4, f"Acceptance, r = {rounds}")
    graph.sizes[f"map_{rounds}"] = MAP
    graph.show(f"picture_{rounds}", sampler, 0, 5, f"Picture, r = {rounds}")


def compare_methods() -> Graph:
    graph = Graph(["sheet"])
    graph.note("Six methods draw the same prompt with the same seed, one after the other. The "
               "sheet says below each picture how many forward passes it took, how many seconds, "
               "and what the method promises. Set a *draw* to **none** to leave it out, or "
               f"connect a method with knobs of its own.\n\n{NEW_SEED}")
    graph.loaders()
    methods = {f"draw_{n}": name for n, name in enumerate(
        ("ar", "exact", "sjd", "wave", "ssd", "rows"), 1)}
    graph.sampler("compare", 1, kind="SSD_CompareMethods", prompt=PROMPT, seed=10,
                  **SEED_CHANGES, **methods)
    graph.show("sheet", "compare", 0, 2, "Sheet")
    graph.tell("table", "compare", 1, 2, "Table")
    graph.app(["sheet"], compare=" ".join(["prompt", "seed", *methods]))
    return graph


def upscale() -> Graph:
    graph = Graph(["save", "small"])
    graph.note("A postcard has 384 x 384 pixels. Here ComfyUI's own nodes make it four times as "
               "large and a little sharper.\n\nFor more detail put *Load Upscale Model* and "
               "*Upscale Image (using Model)* in place of *Upscale Image By*, or refine the "
               "picture with a diffusion model at a low denoise.\n\n"
               + OLD_SEED.format(why="you can try these nodes on one picture"))
    graph.loaders()
    graph.sampler("sampler", 1, prompt=CASTLE, seed=3)
    graph.show("small", "sampler", 0, 2, "As drawn")
    graph.add("larger", "ImageScaleBy", 2, upscale_method="lanczos", scale_by=4.0)
    graph.link("sampler", 0, "larger", "image")
    graph.add("sharper", "ImageSharpen", 2, sharpen_radius=2, sigma=1.0, alpha=0.6)
    graph.link("larger", 0, "sharper", "image")
    graph.add("save", "SaveImage", 3, filename_prefix="SSD/large")
    graph.link("sharper", 0, "save", "images")
    graph.app(["small", "save"], sampler="prompt seed", larger="scale_by", sharper="alpha")
    return graph


def replay() -> Graph:
    graph = Graph(["film"])
    graph.note("*Replay* shows once more how the picture grew, and saves it as an animated WebP "
               "to share. With the overlay, blue cells were accepted at once, and orange ones were "
               "repaired.\n\nChoose **mp4** for a video, or connect *frames* to the video nodes "
               "you use.\n\n" + OLD_SEED.format(why="you can try other films of one picture"))
    graph.loaders()
    graph.sampler("sampler", 1, prompt="a white lighthouse by the sea at night", seed=5)
    graph.add("film", "SSD_Replay", 2, seconds=6.0)
    graph.link("sampler", 2, "film", "stats")
    graph.app(["film"], sampler="prompt seed", film="overlay seconds format")
    return graph


def edit_by_words() -> Graph:
    graph = Graph(["first_picture", "second_picture"])
    graph.note("*Edit by Words* changes the picture by its words. Write the old prompt again and "
               "change only what is to change. The map shows where the new words act; everything "
               "else keeps its tokens and its pixels.\n\nTry a colour, another thing, a thing more "
               "or less, or a whole change such as *at night*: things that the words do not change "
               "stay in place. *reach* says how far a change may go, and a mask where.\n\nFor a "
               "saved picture use *Load Picture (SSD)*, for any other *Load Image*, and write in "
               "*old prompt* what it shows.\n\n"
               + OLD_SEED.format(why="you can try other words on one picture"), long=True)
    graph.loaders()
    graph.sampler("first", 1, "First picture", seed=7, prompt=BOAT)
    graph.sampler("edit", 2, "Other words", heads=False, kind="SSD_EditByWords", seed=22,
                  prompt=BOAT.replace("red", "white"))
    graph.link("first", 1, "edit", "tokens")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("second_picture", "edit", 0, 3, "Edited")
    graph.show("map", "edit", 3, 4, "Where the words act")
    graph.tell("report", "edit", 4, 4, "Report")
    graph.app(["first_picture", "second_picture"], first="prompt seed",
              edit="prompt reach hold seed")
    return graph


def redo_a_region() -> Graph:
    graph = Graph(["second_picture"])
    graph.note("The second sampler redraws what the mask leaves white. Everything else keeps its "
               "tokens and its pixels, so that a change costs what it changes. Say in the second "
               "prompt what the region should show, and name the rest of the picture too.\n\nHere "
               "two core nodes make the mask: a white rectangle on black. To **paint** it instead, "
               "save the picture, load it with *Load Picture (SSD)*, choose *Open in MaskEditor* "
               "in that node's menu, and connect its *tokens* and *mask*. For a photograph use "
               "*Load Image* and *Encode Image*: all that you do not paint stays the photograph."
               "\n\nThe first picture stays; every run takes a new seed for the region.", long=True)
    graph.loaders()
    graph.add("black", "SolidMask", 0, "All of it", value=0.0, width=384, height=384)
    graph.add("white", "SolidMask", 0, "The region", value=1.0, width=192, height=224)
    graph.add("region", "MaskComposite", 1, "Where it lies", x=0, y=160, operation="add")
    graph.link("black", 0, "region", "destination")
    graph.link("white", 0, "region", "source")
    graph.sampler("first", 1, "First picture", seed=7, prompt=BOAT)
    graph.sampler("second", 2, "The region redone", seed=22, prompt=BOAT.replace(
        "a red boat", "a white lighthouse"), **SEED_CHANGES)
    graph.link("first", 1, "second", "keep")
    graph.link("region", 0, "second", "mask")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("second_picture", "second", 0, 3, "The region redone")
    graph.app(["first_picture", "second_picture"], first="prompt seed", white="width height",
              region="x y", second="prompt seed")
    return graph


def variations() -> Graph:
    """The picture and three strengths, one below the other, each with its previews at the right."""
    graph = Graph(["subtle", "strong"])
    graph.note("Four samplers share a prompt and a seed. The first draws the picture; the others "
               "draw a share of its cells by another seed, the *variation seed*: 0.03 is subtle, "
               "0.15 medium, 0.5 strong. Cells near the top are the rarest among them, because "
               "all that follows depends on them.\n\nEach draws two variations at once. Change "
               "*variation_seed*, among the advanced inputs, for others. Every one is as good a "
               "picture as any other seed's.\n\n"
               + OLD_SEED.format(why="you can compare the variations with it"), long=True)
    graph.shared_words()
    graph.loaders()
    for column, (name, share, count) in enumerate(
            (("picture", 0.0, 1), ("subtle", 0.03, 2), ("medium", 0.15, 2), ("strong", 0.5, 2)), 1):
        varied = {"variation": share, "variation_seed": 1, "batch_size": count} if share else {}
        graph.sampler(f"{name}_sampler", column, name.capitalize(), seed=10, **varied)
        graph.take_words(f"{name}_sampler")
        graph.show(name, f"{name}_sampler", 0, 5, name.capitalize())
    graph.app(["picture", "subtle", "medium", "strong"], prompt="value", seed="value",
              subtle_sampler="variation variation_seed")
    return graph


GRAPHS = {"1_quick_start": quick_start, "2_race_ar_vs_ssd": race,
          "3_keep_the_top_redo_the_rest": keep_the_top, "4_start_seeds_and_finish": seeds,
          "5_schedules_compared": schedules_compared, "6_janus_pro": JANUS_PRO,
          "7_compare_methods": compare_methods, "8_finish_with_an_upscale": upscale,
          "9_replay": replay, "10_edit_by_words": edit_by_words,
          "11_redo_a_region": redo_a_region, "12_variations": variations, **LIKE_JANUS,
          "16_glm_image": glm_image, "17_control": control}


def with_chinese(name: str, make: Callable[[], Graph]) -> Graph:
    """A graph whose note is followed by its Chinese translation, if there is one."""
    graph = make()
    kind, column, widgets, title = graph.nodes["note"]
    chinese = json.loads(CHINESE_NOTES.read_text(encoding="utf-8")).get(name)
    text = "\n\n".join([widgets["text"], "---", *chinese]) if chinese else widgets["text"]
    graph.nodes["note"] = (kind, column, {"text": text}, title)
    return graph


GRAPHS = {name: partial(with_chinese, name, make) for name, make in GRAPHS.items()}


def complaints(name: str, folder: Path) -> list[str]:
    """How a saved workflow differs from its graph."""
    path, graph = folder / f"{name}.json", GRAPHS[name]()
    missing = [f"{file.name} is missing" for file in (path, path.with_suffix(".jpg"))
            if not file.exists()]
    saved = [] if missing else json.loads(path.read_text(encoding="utf-8"))["nodes"]
    every = [(node["type"], node.get("widgets_values_named", {})) for node in saved]
    outdated = [f"{name}: no {kind} with {widgets}" for kind, _, widgets, _ in graph.nodes.values()
            if saved and not any(type_ == kind and widgets.items() <= own.items()
                                 for type_, own in every)]
    return [f"{line}: run python tools/make.py workflows {name}" for line in missing + outdated]
