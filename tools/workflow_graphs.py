"""The graphs of `workflows/`, as nodes, widgets and links; the page itself lays them out."""

from __future__ import annotations

import json
from pathlib import Path

from workflow_graph import SEED_CHANGES, Graph

CASTLE = "a purple castle on the right, in a meadow, at sunset"
SNOW = "a yellow tent in the snow at night"
BOAT = "a red boat on the left, on a calm lake, a forest behind, under a clear sky, by day"
ABOVE = "snowy mountains behind, under a clear sky, at sunset"
JANUS = "Janus-Pro-1B-hf"
JANUS_FILE = "deepseek-community/Janus-Pro-1B/resolve/main/model.safetensors"
MAP = (560, 400)  # px: a map and its chart, legible

# Titles of nodes and boxes, and their Chinese
TITLES = {
    "Read me": "说明", "Model": "模型", "Words": "提示词", "Draw": "绘制", "Picture": "图像",
    "Pictures": "图像", "Press Run": "点击“运行”", "Prompt for all": "共用提示词",
    "Seed for all": "共用种子", "AR: token by token": "AR：逐个词元", "AR": "AR",
    "Method of AR": "AR 的方法",
    "SSD: row by row": "SSD：逐行", "SSD": "SSD", "Report": "报告", "Report of AR": "AR 的报告",
    "Report of SSD": "SSD 的报告", "Sheet": "对比图", "Table": "表格",
    "Compare": "比较", "r = 0": "r = 0", "r = 1": "r = 1", "r = 2": "r = 2",
    "Where drafts were accepted": "草稿在哪里被接受", "Overview": "总览",
    "1. Start": "1. 开始", "2. Pick": "2. 挑选", "3. Finish": "3. 完成", "4. Save": "4. 保存",
    "Rows to keep": "保留的行数", "First picture": "第一张",
    "Its top, another ground": "顶部相同，地面不同",
    "Top kept, rest redone": "保留顶部，重画其余", "All of it": "整张", "The region": "区域",
    "Where it lies": "位置", "Mask": "蒙版", "The region redone": "重画的区域",
    "Other words": "新的提示词", "Edited": "编辑后", "Where the words act": "新词起作用的地方",
    "As drawn": "原图", "Larger": "放大后", "Subtle": "细微", "Medium": "中等", "Strong": "强烈",
    "Film": "影片", "Map": "分布图", "Learn": "学习"}


def quick_start() -> Graph:
    graph = Graph(["save"], ["Model", "Press Run", "Picture"])
    graph.sizes = {"model": (300, 0), "sampler": (400, 660), "save": (420, 460)}
    graph.model()
    graph.sampler("sampler", 1, prompt="a red house by a lake", seed=2, **SEED_CHANGES)
    graph.add("save", "SaveImage", 2, filename_prefix="SSD/postcard")
    graph.link("sampler", 0, "save", "images")
    graph.app(["save"], sampler="prompt ssd_words seed size quality complete_prompt")
    graph.opens_as_app = True
    return graph


def ar_beside_ssd() -> Graph:
    graph = Graph(["ar_picture", "ssd_picture"], ["Model", "Words", "AR: token by token",
                                                  "SSD: row by row", "Pictures", "Pictures"])
    graph.note("One prompt and one seed, drawn twice. AR takes a forward pass for every token. SSD "
               "drafts whole rows with the model's draft heads, and the model verifies each row "
               "r times. The reports count the passes.\n\nIn the advanced inputs of the right "
               "sampler: **k_h** and **k_v** say how far ahead the heads draft, **r / b** how "
               "often a row is verified.",
               "同一提示词、同一种子，画两次。AR 每个词元需要一次前向计算。SSD 用模型的"
               "草稿头起草整行，再由模型"
               "把每行检查 r 次。报告写明前向次数。\n\n右边采样器的高级输入中：**k_h** "
               "和 **k_v** 决定草稿头"
               "起草多远，**r / b** 决定每行检查几次。")
    graph.model()
    graph.shared_words(1)
    graph.add("method", "SSD_Method", 2, "Method of AR", method="ar")
    graph.link("model", 0, "method", "model")
    graph.sampler("ar", 2, "AR")
    graph.link("method", 0, "ar", "method")
    graph.sampler("ssd", 3, "SSD", quality="custom", k_h="5", k_v="1", rounds="2",
                  incremental="0")
    for name, column in (("ar", 4), ("ssd", 5)):
        graph.take_words(name)
        graph.show(f"{name}_picture", name, 0, column, name.upper())
        graph.tell(f"{name}_report", name, 3, column, f"Report of {name.upper()}")
    graph.app(["ar_picture", "ssd_picture"], prompt="value", seed="value")
    return graph


def compare_methods() -> Graph:
    graph = Graph(["sheet"], ["Model", "Compare", "Pictures"])
    graph.note("Six methods draw the same prompt with the same seed, side by side. The sheet says "
               "below each picture how many forward passes it took, how many seconds, and what the "
               "method guarantees.\n\nSet a *draw* to **none** to leave it out, or connect a "
               "*Method* with knobs of your own.",
               "六种方法用相同的种子并排绘制同一提示词。对比图在每张图像下方写明前向次"
               "数、秒数和该方法的保证。"
               "\n\n把某个 *draw* 设为 **none** 可略去它，也可以连接带有自己参数的 *方法*。")
    graph.model()
    methods = {f"draw_{n}": name for n, name in enumerate(
        ("ar", "exact", "sjd", "wave", "ssd", "rows"), 1)}
    graph.sampler("compare", 1, kind="SSD_Compare", prompt="a red house by a lake", seed=2,
                  **SEED_CHANGES, **methods)
    graph.show("sheet", "compare", 0, 2, "Sheet")
    graph.sizes |= {"compare": (900, 0), "sheet": (640, 480), "table": (640, 260)}
    graph.tell("table", "compare", 2, 2, "Table")
    graph.app(["sheet"], compare=" ".join(["prompt", "seed", *methods]))
    return graph


def rounds() -> Graph:
    """A column for each number of rounds, and one for its chart and map."""
    found = "Where drafts were accepted"
    graph = Graph(["map_0", "map_2"], ["Model", "Words", "r = 0", "r = 1", "r = 2", *[found] * 3])
    graph.note("More verification rounds repair more and take more forward passes: r = 0 only "
               "drafts, r = 1 and r = 2 verify every row once and twice.\n\nIn the maps, bright "
               "cells were accepted and dark ones repaired. The chart below counts them by round.",
               "检查轮数越多，修正越多，前向次数也越多：r = 0 只起草，r = 1、r = 2 把每"
               "行检查一次、两次。"
               "\n\n分布图中亮的单元格被接受，暗的被修正。下方的图表按轮次统计。")
    graph.model()
    graph.shared_words(1)
    for count in (0, 1, 2):
        sampler, viewer = f"sampler_{count}", f"viewer_{count}"
        graph.sampler(sampler, 2 + count, f"r = {count}", quality="custom", k_h="5", k_v="1",
                      rounds=str(count), incremental="0")
        graph.take_words(sampler)
        graph.add(viewer, "SSD_RunViewer", 5 + count, format="do not save")
        graph.sizes[viewer] = (340, 200)
        graph.link(sampler, 2, viewer, "stats")
        graph.show(f"map_{count}", viewer, 0, 5 + count, f"r = {count}")
        graph.sizes[f"map_{count}"] = MAP
    graph.app([f"map_{count}" for count in (0, 1, 2)], prompt="value", seed="value")
    return graph


def start_pick_finish() -> Graph:
    graph = Graph(["tops"], ["Model", "1. Start", "2. Pick", "3. Finish", "4. Save"])
    graph.note("Choose before you wait. *Start Pictures* draws only the top of six pictures. "
               "**Click** those you like: *Pick Pictures* notes their numbers. Run again, and "
               "*Finish Pictures* draws the rest of them.\n\nPictures 2 and 5 are picked already. "
               "For others, change the seed and pick anew.",
               "先选择，再等待。*开始图像* 只画六张图像的顶部。**点击** 喜欢的图像，*挑"
               "选图像* 会记下编号。"
               "再次运行，*完成图像* 会画完它们。\n\n图像 2 和 5 已经选好。想要别的图像"
               "，请更换种子并重新挑选。")
    graph.model()
    graph.sampler("start", 1, prompt=SNOW, seed=11, kind="SSD_StartPictures")
    graph.show("tops", "start", 1, 2, "Overview")
    graph.add("pick", "SSD_PickPictures", 2, pictures="2, 5")
    graph.link("start", 0, "pick", "started")
    graph.add("finish", "SSD_FinishPictures", 3)
    graph.link("model", 0, "finish", "model")
    graph.link("pick", 0, "finish", "started")
    graph.save("finish", 4, "SSD/seeds")
    graph.app(["tops", "save"], start="prompt seed count part complete_prompt", pick="pictures")
    return graph


def keep_the_top() -> Graph:
    graph = Graph(["first_picture", "second_picture"], ["Model", "Draw", "Draw", "Pictures",
                                                        "Pictures"])
    graph.note("The second sampler keeps the top rows of the first picture and draws the rest with "
               "a prompt and a seed of its own. Both prompts name the sky and the mountains, so "
               "that they agree on them.\n\n*Rows to keep* says how many of the 24 rows stay. To "
               "extend any picture downward, connect *Image to Tokens* instead.",
               "第二个采样器保留第一张图像的顶部若干行，再用自己的提示词和种子绘制其余"
               "部分。两个提示词都写明了"
               "天空和山，因此两者一致。\n\n*保留的行数* 决定 24 行中保留多少行。要把任"
               "意图像向下延伸，请改接 "
               "*图像转词元*。")
    graph.model()
    graph.sampler("first", 1, "First picture", seed=7,
                  prompt=f"a red house on the left, by a lake, {ABOVE}")
    graph.add("rows", "PrimitiveInt", 0, "Rows to keep", value=8)
    graph.sampler("second", 2, "Its top, another ground", seed=22,
                  prompt=f"a purple tree in the middle, on the sand, {ABOVE}", **SEED_CHANGES)
    graph.link("first", 1, "second", "picture")
    graph.link("rows", 0, "second", "keep_rows")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("second_picture", "second", 0, 4, "Top kept, rest redone")
    graph.app(["first_picture", "second_picture"], first="prompt seed", rows="value",
              second="prompt seed")
    return graph


def redo_a_region() -> Graph:
    graph = Graph(["second_picture"], ["Model", "Mask", "Draw", "Draw", "Pictures", "Pictures"])
    graph.note("The second sampler redraws what the mask leaves white. Everything else keeps its "
               "tokens and its pixels. Say in the second prompt what the region should show, and "
               "name the rest of the picture too.\n\nTo **paint** the mask, save the picture, load "
               "it with *Load Picture (SSD)*, choose *Open in MaskEditor* in that node's menu, and "
               "connect its *tokens* and *mask*. For a photograph use *Load Image* and *Image to "
               "Tokens*.",
               "第二个采样器重新绘制蒙版的白色部分；其余部分的词元和像素都保持不变。请"
               "在第二个提示词中写这一"
               "部分应该画什么，并写上画面的其余部分。\n\n想要 **涂画** 蒙版，请先保存图像，用 "
               "*加载图片 (SSD)* 加载，在该节点的菜单中选择 *在蒙版编辑器中打开*，再连"
               "接它的 *词元* 和 *蒙版*。"
               "照片请用 *加载图像* 和 *图像转词元*。")
    graph.model()
    graph.add("black", "SolidMask", 1, "All of it", value=0.0, width=768, height=768)
    graph.add("white", "SolidMask", 1, "The region", value=1.0, width=384, height=448)
    graph.add("region", "MaskComposite", 1, "Where it lies", x=0, y=320, operation="add")
    graph.link("black", 0, "region", "destination")
    graph.link("white", 0, "region", "source")
    graph.sampler("first", 2, "First picture", seed=7, prompt=BOAT)
    graph.sampler("second", 3, "The region redone", seed=22, prompt=BOAT.replace(
        "a red boat", "a white lighthouse"), **SEED_CHANGES)
    graph.link("first", 1, "second", "picture")
    graph.link("region", 0, "second", "mask")
    graph.show("first_picture", "first", 0, 4, "First picture")
    graph.show("second_picture", "second", 0, 5, "The region redone")
    graph.app(["first_picture", "second_picture"], first="prompt seed", white="width height",
              region="x y", second="prompt seed")
    return graph


def edit_by_words() -> Graph:
    graph = Graph(["first_picture", "second_picture"], ["Model", "Draw", "Other words", "Pictures",
                                                        "Pictures"])
    graph.note("Write the old prompt again and change only what is to change. The map shows where "
               "the new words act; everything else keeps its tokens and its pixels.\n\nTry a "
               "colour, another thing, or a whole change such as *at night*. For a saved picture "
               "use *Load Picture (SSD)*, for any other *Load Image*, and write in *old prompt* "
               "what it shows.",
               "请重写原来的提示词，只换掉要改变的词。分布图显示新词在哪里起作用；其余"
               "部分的词元和像素都保持"
               "不变。\n\n可以试试颜色、另一样东西，或整张图的改变，例如 *夜晚*。保存过的图像请用 "
               "*加载图片 (SSD)*，其他图像请用 *加载图像*，并在 *原提示词* 中写它画的是什么。")
    graph.model()
    graph.sampler("first", 1, "First picture", seed=7, prompt=BOAT)
    graph.sampler("edit", 2, "Other words", kind="SSD_EditByWords", seed=22,
                  prompt=BOAT.replace("red", "white"))
    graph.link("first", 1, "edit", "picture")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("map", "edit", 3, 3, "Where the words act")
    graph.show("second_picture", "edit", 0, 4, "Edited")
    graph.tell("report", "edit", 4, 4, "Report")
    graph.app(["first_picture", "second_picture"], first="prompt seed",
              edit="prompt reach hold seed")
    return graph


def variations() -> Graph:
    """The picture and three strengths, each with its previews at the right."""
    graph = Graph(["subtle", "strong"], ["Model", "Words", *["Draw"] * 4, *["Pictures"] * 2])
    graph.note("Four samplers share a prompt and a seed. The first draws the picture; the others "
               "draw a share of its cells by another seed, the *variation seed*: 0.03 is subtle, "
               "0.15 medium, 0.5 strong.\n\nChange *variation_seed*, among the advanced inputs, "
               "for others.",
               "四个采样器用同一个提示词和种子。第一个绘制原图，其余的让一部分单元格改按另一个种子"
               "（*变化种子*）绘制：0.03 细微，0.15 中等，0.5 强烈。\n\n想要别的变化，"
               "请更改高级输入中的 "
               "*变化种子*。")
    graph.model()
    graph.shared_words(1)
    for number, (name, share, count) in enumerate(
            (("picture", 0.0, 1), ("subtle", 0.03, 2), ("medium", 0.15, 2), ("strong", 0.5, 2))):
        varied = {"variation": share, "variation_seed": 1, "batch_size": count} if share else {}
        sampler = graph.sampler(f"{name}_sampler", 2 + number, name.capitalize(), **varied)
        graph.take_words(sampler)
        graph.show(name, sampler, 0, 6 + number // 2, name.capitalize())
    graph.app(["picture", "subtle", "medium", "strong"], prompt="value", seed="value",
              subtle_sampler="variation variation_seed")
    return graph


def run_viewer() -> Graph:
    graph = Graph(["film"], ["Model", "Draw", "Film", "Map"])
    graph.note("*Run Viewer* shows once more how the picture grew, and saves it as an animated "
               "WebP to share. With the overlay, blue cells were accepted at once, and orange ones "
               "were repaired.\n\nChoose **mp4** for a video, or connect *frames* to the video "
               "nodes you use.",
               "*运行查看器* 再次展示图像是怎样画出来的，并保存为可分享的动态 WebP。打"
               "开叠加层时，蓝色单元格"
               "一次就被接受，橙色的经过修正。\n\n选择 **mp4** 可得到视频，也可以把 *fr"
               "ames* 接到你常用的"
               "视频节点。")
    graph.model()
    graph.sampler("sampler", 1, prompt="a white lighthouse by the sea at night", seed=5)
    graph.add("film", "SSD_RunViewer", 2, seconds="6")
    graph.link("sampler", 2, "film", "stats")
    graph.show("map", "film", 0, 3, "Map")
    graph.sizes["map"] = MAP
    graph.app(["film"], sampler="prompt seed", film="overlay seconds format")
    return graph


def upscale() -> Graph:
    graph = Graph(["save", "small"], ["Model", "Draw", "Larger", "Picture"])
    graph.note("A postcard has 768 x 768 pixels. Here ComfyUI's own nodes make it twice as "
               "large and a little sharper.\n\nFor more detail put *Load Upscale Model* and "
               "*Upscale Image (using Model)* in place of *Upscale Image By*, or refine the "
               "picture with a diffusion model at a low denoise.",
               "明信片为 768 x 768 像素。这里用 ComfyUI 自带的节点把它放大到两倍并稍加"
               "锐化。\n\n想要更多"
               "细节，请用 *加载放大模型* 和 *使用模型放大图像* 代替 *按系数缩放图像*，"
               "或用扩散模型以较低的"
               "去噪强度精修。")
    graph.model()
    graph.sampler("sampler", 1, prompt=CASTLE, seed=3)
    graph.add("larger", "ImageScaleBy", 2, upscale_method="lanczos", scale_by=2.0)
    graph.link("sampler", 0, "larger", "image")
    graph.add("sharper", "ImageSharpen", 2, sharpen_radius=2, sigma=1.0, alpha=0.6)
    graph.link("larger", 0, "sharper", "image")
    graph.show("small", "sampler", 0, 2, "As drawn")
    graph.add("save", "SaveImage", 3, filename_prefix="SSD/large")
    graph.link("sharper", 0, "save", "images")
    graph.sizes["save"] = (640, 700)
    graph.app(["small", "save"], sampler="prompt seed", larger="scale_by", sharper="alpha")
    return graph


def large_models() -> Graph:
    graph = Graph([], ["Model", "Draw", "Picture", "Learn"])
    graph.note("Choose a model in *Load Model*. If it is not here yet, the node says its size and "
               "licence and whether it fits this machine; **Download…** gets it. Once loaded, the "
               "node says which sizes it draws and what makes a good prompt.\n\n"
               "- **Janus-Pro-1B-hf**: 384 x 384, 4 GB\n"
               "- **SimpleAR-0.5B-RL**: 1024 x 1024, for cards of 6 to 8 GB\n"
               "- **Lumina-mGPT-2.0**: 768 x 768, 22 to 31 GiB; top-k 4096\n"
               "- **Emu3.5-Image**: 1024 x 1024; int4 on a card of 32 GB; top-k 5120\n"
               "- **GLM-Image**: put *Tokens to Image* between the sampler and *Save Image*\n\n"
               "If memory is short, choose dtype *int8* or *offload*. *Faithful* draws the picture "
               "of normal decoding; *Balanced* and *Fast* are quicker and change it.\n\n"
               "After twenty pictures, wake *Train Draft Heads* (Ctrl+M) and press **Run**.",
               "请在 *加载模型* 中选择模型。如果尚未下载，节点会显示大小、许可证以及本机能否容"
               "纳；按 **下载…** 即可获取。加载之后，节点会说明它能画哪些尺"
               "寸、什么提示词合适。\n\n"
               "- **Janus-Pro-1B-hf**：384 x 384，4 GB\n"
               "- **SimpleAR-0.5B-RL**：1024 x 1024，适合 6 至 8 GB 的显卡\n"
               "- **Lumina-mGPT-2.0**：768 x 768，22 至 31 GiB；top-k 4096\n"
               "- **Emu3.5-Image**：1024 x 1024；32 GB 的显卡用 int4；top-k 5120\n"
               "- **GLM-Image**：在采样器和 *保存图像* 之间接上 *词元转图像*\n\n"
               "内存不足时请选择精度 *int8* 或 *轮流占用*。*忠实* 画出普通解码的图像；*均衡"
               "* 和 *快速* 更快，"
               "但会改变图像。\n\n画了二十张之后，请启用 *训练草稿头* (Ctrl+M) 并点击 **运行**。",
               long=True)
    graph.model(JANUS)
    graph.models["model"] = [{"name": f"{JANUS}/model.safetensors", "directory": "ssd_backbones",
                              "url": f"https://huggingface.co/{JANUS_FILE}"}]
    graph.sampler("sampler", 1, seed=7, quality="Balanced", **SEED_CHANGES,
                  prompt="a lighthouse on a cliff above a stormy sea, oil painting")
    graph.save("sampler", 2, "SSD/large-model")
    graph.tell("report", "sampler", 3, 2, "Report")
    graph.add("learn", "SSD_TrainHeads", 3)
    graph.link("model", 0, "learn", "model")
    graph.muted = ["learn"]
    graph.app(["save"], model="model", sampler="prompt seed size quality")
    return graph


GRAPHS = {f"{number:02}_{make.__name__}": make for number, make in enumerate(
    (quick_start, ar_beside_ssd, compare_methods, rounds, start_pick_finish, keep_the_top,
     redo_a_region, edit_by_words, variations, run_viewer, upscale, large_models), 1)}


def texts_of(graph: Graph) -> dict[str, str]:
    """The Chinese of all notes and titles of a graph, by the English."""
    titles = [*graph.columns, *(title for *_, title in graph.nodes.values() if title)]
    return {**graph.texts, **{title: TITLES[title] for title in titles}}


def complaints(name: str, folder: Path) -> list[str]:
    """How a saved workflow differs from its graph."""
    path, graph = folder / f"{name}.json", GRAPHS[name]()
    missing = [f"{file.name} is missing" for file in (path, path.with_suffix(".jpg"))
               if not file.exists()]
    saved = {} if missing else json.loads(path.read_text(encoding="utf-8"))
    every = [(node["type"], node.get("widgets_values_named", {}))
             for node in saved.get("nodes", ())]
    outdated = [f"{name}: no {kind} with {widgets}" for kind, _, widgets, _ in graph.nodes.values()
                if saved and not any(type_ == kind and widgets.items() <= own.items()
                                     for type_, own in every)]
    if saved and saved["extra"]["ssd_texts"]["zh"] != texts_of(graph):
        outdated.append(f"{name}: its Chinese texts are older ones")
    return [f"{line}: run python tools/make.py workflows {name}" for line in missing + outdated]
