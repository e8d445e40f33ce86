"""The graphs of `workflows/`, as nodes, widgets and links; the page itself lays them out."""

from __future__ import annotations

import json
from pathlib import Path

from workflow_graph import PROMPT, SEED_CHANGES, Graph

from ssd_core.output.choices import BY_SPEED, FAITHFUL, REFERENCE, SSD_CHOICE

CASTLE = "a purple castle on the right, in a meadow, at sunset"
SNOW = "a yellow tent in the snow at night"
BOAT = "a red boat on the left, on a calm lake, a forest behind, under a clear sky, by day"
ABOVE = "snowy mountains behind, under a clear sky, at sunset"
JANUS = "Janus-Pro-1B-hf"
JANUS_FILE = "deepseek-community/Janus-Pro-1B/resolve/main/model.safetensors"
MAP = (420, 320)  # px: a map and its chart, legible
BALANCED = list(BY_SPEED)[1]

# Titles of nodes and boxes, and their Chinese
TITLES = {
    "Read me": "说明", "Model": "模型", "Words": "提示词", "Draw": "绘制", "Picture": "图像",
    "Pictures": "图像", "Press Run": "点击“运行”", "Prompt for all": "共用提示词",
    "Seed for all": "共用种子", "AR beside SSD": "AR 与 SSD", "Report": "报告",
    "Sheet": "对比图", "Compare": "比较", "r = 0": "r = 0", "r = 2": "r = 2",
    "Where drafts were accepted": "草稿在哪里被接受",
    "1. Start": "1. 开始", "2. Finish": "2. 完成", "3. Save": "3. 保存",
    "Rows to keep": "保留的行数", "First picture": "第一张",
    "Its top, another ground": "顶部相同，地面不同",
    "Top kept, rest redone": "保留顶部，重画其余", "Paint here": "在此涂画",
    "1. Paint": "1. 涂画", "2. Redraw": "2. 重画", "The region redone": "重画的区域",
    "Other words": "新的提示词", "Edited": "编辑后", "Where the words act": "新词起作用的地方",
    "As drawn": "原图", "Larger": "放大后", "Variations": "变化", "Film": "影片",
    "Map": "分布图"}


def quick_start() -> Graph:
    graph = Graph(["save"], ["Model", "Press Run", "Picture"])
    graph.sizes = {"model": (300, 0), "save": (420, 480)}
    graph.model()
    graph.sampler("sampler", 1, prompt="a red house by a river", seed=2, **SEED_CHANGES)
    graph.add("save", "SaveImage", 2, filename_prefix="SSD/postcard")
    graph.link("sampler", 0, "save", "images")
    graph.app(["save"], sampler="prompt ssd_words seed size method complete_prompt")
    return graph


def form() -> Graph:
    """The quick start as a form, ComfyUI's app mode."""
    graph = quick_start()
    graph.opens_as_app = True
    graph.change("sampler", prompt="a white lighthouse by the sea, at sunset", seed=6)
    return graph


def ar_beside_ssd() -> Graph:
    graph = Graph(["save"], ["Model", "Compare", "Pictures"])
    graph.note("One prompt and one seed, drawn twice. AR takes a forward pass for every token. SSD "
               "drafts whole rows with the model's draft heads, and the model verifies each row "
               "r times. Rest on the line below a picture to read its passes.\n\nBelow "
               "**method_2**: **k_h** and **k_v** say how far ahead the heads draft, "
               "**r / b** and **i** how often a row is verified.",
               "同一提示词、同一种子，画两次。AR 每个词元需要一次前向计算。SSD 用模型的"
               "草稿头起草整行，再由模型把每行检查 r 次。"
               "把鼠标停在图像下方的文字上，可看到前向次数。"
               "\n\n**method_2** 的下方：**k_h** 和 **k_v** 决定草稿头起草多远，"
               "**r / b** 和 **i** 决定每行检查几次。")
    graph.model()
    graph.sampler("compare", 1, kind="SSD_Compare", prompt=PROMPT, seed=2,
                  method_1=REFERENCE, method_2=SSD_CHOICE)
    graph.save("compare", 2, "SSD/compare")
    graph.sizes |= {"save": (460, 340)}
    graph.app(["save"], compare="prompt seed")
    return graph


def compare_methods() -> Graph:
    graph = Graph(["sheet"], ["Model", "Compare", "Pictures"])
    graph.note("Four methods draw the same prompt with the same seed, side by side. The sheet says "
               "below each picture how many forward passes it took, how many seconds, and what the "
               "method guarantees.\n\nChoose other methods, up to six, or **none** to leave one "
               "out. Each shows its own knobs.",
               "四种方法用相同的种子并排绘制同一提示词。对比图在每张图像下方写明前向次"
               "数、秒数和该方法的保证。\n\n可以选择其他方法，最多六种；选 **none** "
               "可略去一种。每种方法显示自己的参数。")
    graph.model()
    methods = {f"method_{n}": name for n, name in enumerate(
        (REFERENCE, FAITHFUL, BALANCED, "SJD"), 1)}
    graph.sampler("compare", 1, kind="SSD_Compare", prompt="a red house by a river", seed=2,
                  **SEED_CHANGES, **methods)
    graph.show("sheet", "compare", 2, 2, "Sheet")
    graph.sizes |= {"note": (300, 260), "model": (300, 0), "compare": (860, 0),
                    "sheet": (360, 560)}
    graph.app(["sheet"], compare=" ".join(["prompt", "seed", *methods]))
    return graph


def rounds() -> Graph:
    graph = Graph(["map"], ["Model", "r = 0", "r = 2", "Where drafts were accepted"])
    graph.note("More verification rounds repair more and take more forward passes: r = 0 only "
               "drafts, r = 2 verifies every row twice.\n\nIn the map of r = 2, bright "
               "cells were accepted and dark ones repaired. The chart below counts them by round.",
               "检查轮数越多，修正越多，前向次数也越多：r = 0 只起草，r = 2 把每"
               "行检查两次。"
               "\n\n分布图中亮的单元格被接受，暗的被修正。下方的图表按轮次统计。")
    graph.model()
    graph.shared_words(0)
    for column, count in ((1, 0), (2, 2)):
        graph.take_words(graph.sampler(
            f"sampler_{count}", column, f"r = {count}", method=SSD_CHOICE,
            **{"method.k_h": 5, "method.k_v": 1, "method.rounds": count,
               "method.incremental": 0}))
    graph.add("viewer", "SSD_RunViewer", 3, format="do not save")
    graph.link("sampler_2", 1, "viewer", "run")
    graph.show("map", "viewer", 0, 3, "Map")
    graph.sizes |= {"note": (320, 200), "prompt": (320, 0), "seed": (320, 0),
                    "viewer": (320, 160), "map": (320, 260)}
    graph.app(["map"], prompt="value", seed="value")
    return graph


def start_pick_finish() -> Graph:
    graph = Graph(["save"], ["Model", "1. Start", "2. Finish", "3. Save"])
    graph.note("Choose before you wait. The sampler draws only the top of six pictures: **part** "
               "and **batch_size** are among its advanced inputs. **Click** those you like: "
               "*Finish* notes their numbers. Run again, and it draws the rest of them.\n\n"
               "For others, "
               "change the seed and choose anew.",
               "先选择，再等待。采样器只画六张图像的顶部：**部分** 和 **批量** 在它的高级输入中。"
               "**点击** 喜欢的图像，*完成* 会记下编号。再次运行，它会画完它们。"
               "\n\n想要别的图像，请更换种子并重新挑选。")
    graph.model()
    graph.sampler("start", 1, prompt=SNOW, seed=11, batch_size=6, part=0.35)
    graph.add("finish", "SSD_Finish", 2)
    graph.link("model", 0, "finish", "model")
    graph.link("start", 1, "finish", "run")
    graph.save("finish", 3, "SSD/seeds")
    graph.tried = {"finish": {"pictures": "2, 5"}}
    graph.app(["save"], start="prompt seed batch_size part complete_prompt", finish="pictures")
    return graph


def keep_the_top() -> Graph:
    graph = Graph(["first_picture", "second_picture"], ["Model", "Draw", "Draw", "Pictures"])
    graph.note("The second sampler keeps the top rows of the first picture and draws the rest with "
               "a prompt and a seed of its own. Both prompts name the sky and the mountains, so "
               "that they agree on them.\n\n*Rows to keep* says how many of the 24 rows stay. To "
               "extend any picture downward, connect *Encode* instead.",
               "第二个采样器保留第一张图像的顶部若干行，再用自己的提示词和种子绘制其余"
               "部分。两个提示词都写明了"
               "天空和山，因此两者一致。\n\n*保留的行数* 决定 24 行中保留多少行。要把任"
               "意图像向下延伸，请改接 "
               "*编码*。")
    graph.model()
    graph.sampler("first", 1, "First picture", seed=7,
                  prompt=f"a red house on the left, by a river, {ABOVE}")
    graph.add("rows", "PrimitiveInt", 0, "Rows to keep", value=8)
    graph.sizes["rows"] = (320, 0)
    graph.sampler("second", 2, "Its top, another ground", seed=22,
                  prompt=f"a purple tree in the middle, on the sand, {ABOVE}", **SEED_CHANGES)
    graph.link("first", 1, "second", "picture")
    graph.link("rows", 0, "second", "keep_rows")
    graph.show("first_picture", "first", 0, 3, "First picture")
    graph.show("second_picture", "second", 0, 3, "Top kept, rest redone")
    graph.app(["first_picture", "second_picture"], first="prompt seed", rows="value",
              second="prompt seed")
    return graph


def redo_a_region() -> Graph:
    graph = Graph(["save"], ["Model", "1. Paint", "2. Redraw", "3. Save"])
    graph.note("Load your picture, open the node's menu (right click), choose **Open in "
               "MaskEditor** and paint what is to be redrawn. *Encode* turns the picture into "
               "tokens; the sampler redraws the painted part and keeps everything else, to the "
               "pixel.\n\nSay in the prompt what the painted part should show, and name the rest "
               "of the picture, too. Paint first: the node asks for it otherwise.",
               "加载您的图像，打开节点的菜单（右键），选择 **在蒙版编辑器中打开**，涂画要重画的"
               "部分。*编码* 把图像变成词元；采样器重画涂过的部分，其余部分的像素保持不变。"
               "\n\n请在提示词中写涂过的部分应该画什么，并写上画面的其余部分。"
               "请先涂画，否则节点会提示。")
    graph.model()
    graph.add("photo", "LoadImage", 1, "Paint here", image="example.png")
    graph.add("encode", "SSD_Encode", 1)
    graph.link("model", 0, "encode", "model")
    graph.link("photo", 0, "encode", "image")
    graph.link("photo", 1, "encode", "mask")
    graph.sampler("sampler", 2, "The region redone", seed=22, prompt=(
        "a white house in the middle, in a meadow, under a clear sky, by day"), **SEED_CHANGES)
    graph.link("encode", 0, "sampler", "picture")
    graph.link("encode", 1, "sampler", "mask")
    graph.save("sampler", 3, "SSD/redone")
    graph.sizes |= {"photo": (340, 400), "save": (340, 400)}
    graph.tried = {"photo": {"image": "painted.png"}}
    graph.app(["save"], photo="image", sampler="prompt seed")
    return graph


def edit_by_words() -> Graph:
    graph = Graph(["first_picture", "second_picture"], ["Model", "Draw", "Other words",
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
    graph.show("second_picture", "edit", 0, 3, "Edited")
    graph.sizes |= dict.fromkeys(("first_picture", "map", "second_picture"), (320, 235))
    graph.app(["first_picture", "second_picture"], first="prompt seed",
              edit="prompt reach hold seed")
    return graph


def variations() -> Graph:
    graph = Graph(["picture", "varied"], ["Model", "Draw", "Draw", "Pictures"])
    graph.note("Both samplers share a prompt and a seed. The second draws a share of the cells by "
               "another seed, the *variation_seed*, four times: **variation** 0.03 is subtle, "
               "0.15 medium, 0.5 strong. Both are among its advanced inputs.",
               "两个采样器用同一个提示词和种子。第二个让一部分单元格改按另一个种子"
               "（*变化种子*）绘制，共四次：**变化** 0.03 细微，0.15 中等，0.5 强烈。"
               "两者都在它的高级输入中。")
    graph.model()
    graph.shared_words(0)
    graph.take_words(graph.sampler("sampler", 1, "Picture"))
    graph.take_words(graph.sampler("variations", 2, "Variations", variation=0.15,
                                   variation_seed=1, batch_size=4))
    graph.show("picture", "sampler", 0, 3, "Picture")
    graph.show("varied", "variations", 0, 3, "Variations")
    graph.sizes |= {"note": (320, 200), "prompt": (320, 0), "seed": (320, 0)}
    graph.app(["picture", "varied"], prompt="value", seed="value",
              variations="variation variation_seed")
    return graph


def run_viewer() -> Graph:
    graph = Graph(["film"], ["Model", "Draw", "Film"])
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
    graph.add("film", "SSD_RunViewer", 2, seconds=6)
    graph.link("sampler", 1, "film", "run")
    graph.show("map", "film", 0, 2, "Map")
    graph.sizes |= {"film": (420, 440), "map": MAP}
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
    graph.sizes["save"] = (400, 480)
    graph.app(["small", "save"], sampler="prompt seed", larger="scale_by", sharper="alpha")
    return graph


def large_models() -> Graph:
    graph = Graph([], ["Read me", "Model", "Draw", "Picture"])
    graph.note("Choose a model in *Load Model*. If it is not here yet, the node says its size and "
               "licence and whether it fits this machine; **Download…** gets it. Once loaded, the "
               "node says which sizes it draws and what makes a good prompt.\n\n"
               "- **Janus-Pro-1B-hf**: 384 x 384, 4 GB\n"
               "- **SimpleAR-0.5B-RL**: 1024 x 1024, for cards of 6 to 8 GB\n"
               "- **Lumina-mGPT-2.0**: 768 x 768, 22 to 31 GiB; top-k 4096\n"
               "- **Emu3.5-Image**: 1024 x 1024; int4 on a card of 32 GB; top-k 5120\n"
               "- **GLM-Image**: put *Finish* between the sampler and *Save Image*\n\n"
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
               "- **GLM-Image**：在采样器和 *保存图像* 之间接上 *完成*\n\n"
               "内存不足时请选择精度 *int8* 或 *轮流占用*。*忠实* 画出普通解码的图像；*均衡"
               "* 和 *快速* 更快，"
               "但会改变图像。\n\n画了二十张之后，请启用 *训练草稿头* (Ctrl+M) 并点击 **运行**。",
               long=True)
    graph.model(JANUS, 1)
    graph.models["model"] = [{"name": f"{JANUS}/model.safetensors", "directory": "ssd_backbones",
                              "url": f"https://huggingface.co/{JANUS_FILE}"}]
    graph.sampler("sampler", 2, seed=7, method="Balanced", **SEED_CHANGES,
                  prompt="a lighthouse on a cliff above a stormy sea, oil painting")
    graph.save("sampler", 3, "SSD/large-model")
    graph.add("learn", "SSD_TrainHeads", 3)
    graph.link("model", 0, "learn", "model")
    graph.muted = ["learn"]
    graph.app(["save"], model="model", sampler="prompt seed size method")
    return graph


GRAPHS = {f"{number:02}_{make.__name__}": make for number, make in enumerate(
    (quick_start, ar_beside_ssd, compare_methods, rounds, start_pick_finish, keep_the_top,
     redo_a_region, edit_by_words, variations, run_viewer, upscale, large_models), 1)}
GRAPHS = {"01_quick_start": GRAPHS["01_quick_start"], "01_quick_start.app": form, **GRAPHS}


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
