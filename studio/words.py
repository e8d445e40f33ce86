"""The app's texts in English and Chinese: labels (browser's language) and server texts.

Gradio translates labels; handlers choose their texts by the request. `{name}` marks a value to fill
in. The texts of knobs are in ssd_core/output/knob_words.py. Error lines come from the engine and
are English.
"""

from __future__ import annotations

import gradio as gr

from ssd_core.backbones.base import Preset
from ssd_core.engine.methods import METHODS
from ssd_core.output.guarantees import CHINESE as CHINESE_GUARANTEES
from ssd_core.output.knob_words import KNOB_WORDS
from ssd_core.output.knobs import all_knobs, sampling_knobs
from ssd_core.output.labels import label
from ssd_core.output.quality_presets import SPEEDS, QualityPreset

ENGLISH, CHINESE, AUTO = "en", "zh", "auto"
OWN_KEY = "ssd-studio:"

# What methods promise of their pictures, as the lists of methods say it beside their names.
PROMISES = {
    "identical": ("identical to normal decoding", "与普通解码完全相同"),
    "same distribution": ("a different picture from the same distribution", "同一分布的另一张图像"),
    "approximate": ("approximate", "近似"),
    "relaxed": ("relaxed", "放宽"),
}

TABLE: dict[str, tuple[str, str]] = {
    # Head and controls
    "tagline": ("Draws row by row. Nothing leaves this machine.",
                "逐行绘制图像。所有数据都留在本机。"),
    "tagline_shared": ("Draws pictures row by row with speculative decoding. This app is shared: "
                       "visitors see each other's prompts and pictures, which leave this machine.",
                       "用推测解码逐行绘制图像。此应用已共享：访问者可看到彼此的提示词和图像，"
                       "这些数据会离开本机。"),
    "prompt": ("Prompt", "提示词"),
    "prompt_hint": ("What the picture should show", "画面中应有的内容"),
    "examples": ("Example prompts", "示例提示词"),
    "styles": ("Styles", "风格"),
    "settings": ("Speed, seed and more", "速度、种子等设置"),
    "more_settings": ("More settings", "更多设置"),
    "surprise": ("Surprise me", "给个灵感"),
    "negative": ("Negative prompt", "负面提示词"),
    "negative_hint": ("What should not appear", "不希望出现的内容"),
    "expand": ("Fill in what the prompt leaves open", "补全提示词未说明的内容"),
    "moved": ("Moved to the negative prompt: {words}", "已移到负面提示词：{words}"),
    "drawn_from": ("Drawn from", "绘制所用的词"),
    "dice": ("New seed", "换种子"),
    "lock": ("Keep seed", "锁定种子"),
    "pictures": ("Pictures", "张数"),
    "speed": ("Speed", "速度"),
    **{f"stop_{name}": (speed.title, speed.chinese) for name, speed in SPEEDS.items()},
    "about_plain": ("One token at a time, the slowest.", "每次一个词元，最慢。"),
    "about_faithful": ("The picture of normal decoding in fewer passes.",
                       "用更少的前向次数得到普通解码的图像。"),
    "about_rounding": ("Rounding in {dtype} may change it.", "{dtype} 下舍入可能使它改变。"),
    "about_balanced": ("A similar picture in at most an eighth of the passes.",
                       "画面相近，前向次数至多八分之一。"),
    "about_fast": ("At most a twelfth of the passes; details suffer.",
                   "前向次数至多十二分之一，细节会受损。"),
    "speed_custom": ("(custom settings, none of the choices above)",
                     "（自定义设置，不属于以上任何一档）"),
    "expert": ("Expert settings", "专家设置"),
    "method": ("Method", "方法"),
    "size": ("Size", "尺寸"),
    "own_size": ("The model's own", "模型默认值"),
    "metadata": ("Save the recipe in the PNG (prompt, seed, settings, tokens)",
                 "把配方写入 PNG（提示词、种子、设置、词元）"),
    "plan": ("{passes} forward passes instead of {ar} ({times}× fewer)",
             "{passes} 次前向；普通解码需 {ar} 次（{times} 倍）"),
    "plan_most": ("At most {passes} forward passes instead of {ar}, depending on the picture",
                  "至多 {passes} 次前向，视图像而定；普通解码需 {ar} 次"),
    "plan_usual": ("Usually about {usual} forward passes instead of {ar}, at most {passes}",
                   "通常约 {usual} 次前向，至多 {passes} 次；普通解码需 {ar} 次"),
    "plan_same": ("{passes} forward passes, one for each token",
                  "{passes} 次前向，每个词元一次"),
    "plan_alone": ("The {count} pictures are drawn one after the other. Each:",
                   "{count} 张图像逐张绘制，每张："),
    "plan_cost": ("About {seconds} s: {passes} passes of {ms} ms; normal decoding {ar} s.",
                  "约 {seconds} 秒：{passes} 次前向，每次 {ms} 毫秒；普通解码 {ar} 秒。"),
    "plan_window": ("(Window {size}.)", "（窗口 {size}。）"),
    "plan_cells": ("({size} cells of each row.)", "（每行 {size} 个单元格。）"),
    "plan_slower": ("It does not beat normal decoding here.", "在本机上不比普通解码快。"),
    "plan_by_ar": ("Drawn by normal decoding, which is quicker here and draws the same picture "
                   "(exact {exact} s).",
                   "本机上普通解码更快且图像相同，因此改用它（exact {exact} 秒）。"),
    "fell_back": ("No draft heads are loaded: SSD's schedule runs as 'rows'.",
                  "没有加载草稿头：SSD 的方案改由 rows 执行。"),
    "unknown": ("The model does not know these words and ignores them: {words}",
                "此模型不认识并会忽略这些词：{words}"),
    "misplaced": ("The model may draw these words elsewhere in the picture, or not at all: {words}",
                  "此模型可能把这些词画在别处，或不画出来：{words}"),
    # Common to the tabs
    "stop": ("Stop", "停止"),
    "result": ("Finished pictures (PNG, saved)", "完成的图像（已保存为 PNG）"),
    "saved": ("{count} saved.", "已保存 {count} 张。"),
    "saved_as": ("Saved as {where}", "已保存为 {where}"),
    "saved_in": ("{count} saved in {where}", "已保存 {count} 张到 {where}"),
    "stopped": ("Stopped at row {row} of {rows}.", "已停止：第 {row} 行，共 {rows} 行。"),
    "stopped_early": ("Stopped before the first row was finished.", "已停止，第一行尚未完成。"),
    "halted": ("Stopped.", "已停止。"),
    "restarted": ("The server was restarted: the run that was going on is lost. Finished pictures "
                  "are in the history.",
                  "服务器已重新启动：正在进行的任务已丢失。已完成的图像在历史记录中。"),
    "stopped_gone": ("Expired. Draw again.", "已过期，请重新绘制。"),
    "failed": ("Failed: {error}", "失败：{error}"),
    # Create
    "create": ("Create", "创作"),
    "draw": ("Draw", "绘制"),
    "keep_top": ("Keep the top, go on in Redo", "保留上部，到重绘中继续"),
    "discard": ("Discard", "丢弃"),
    # Race
    "race": ("Race", "竞速"),
    "race_hint": ("Two to six methods draw the same prompt with the same seed. Each is timed "
                  "separately. All are drawn at the same time, so each method adds to the memory "
                  "needed.",
                  "二到六种方法用相同的提示词和种子绘制，分别计时。所有图像同时绘制："
                  "六张就占用六张的内存。"),
    **{f"racer_{n}": (f"Method {n}", f"方法 {n}") for n in range(1, 7)},
    "as_chosen": ("Current settings", "当前设置"),
    "no_racer": ("none", "无"),
    "racers": ("Methods in the race: two to six", "参赛方法：二到六种"),
    "start_race": ("Start the race", "开始竞速"),
    "race_head": ("Method, Forward passes, Seconds, Picture", "方法, 前向次数, 秒, 图像"),
    "race_verdict": ("{label} is {verdict}{share}.", "{label}：{verdict}{share}。"),
    "race_share": (", {share} of its tokens are those of normal decoding",
                   "，{share} 的词元与普通解码相同"),
    "race_ar": ("normal decoding itself", "普通解码本身"),
    "race_equal": ("The two pictures share {share} of their tokens.",
                   "两张图像有 {share} 的词元相同。"),
    **PROMISES,
    "sheet": ("Side-by-side picture with labels", "带标注的并排对比图"),
    # Redo
    "redo": ("Redo from a row", "从某行重绘"),
    "redo_hint": ("Drag the line on the picture. Rows above it stay; rows below it are drawn again "
                  "with the prompt and settings on the left. Edit the prompt to draw the rest "
                  "differently.",
                  "在图像上拖动分界线：线以上保持不变，线以下用左侧的提示词和设置重新绘制。"
                  "修改提示词，其余部分就会不同。"),
    "redo_pick": ("Pick a picture", "选择图像"),
    "recent": ("Finished pictures", "已完成的图像"),
    "extend": ("Extend downward", "向下扩展"),
    "same_size": ("Same size", "尺寸不变"),
    "upload": ("Or drop a PNG here", "或把 PNG 拖到这里"),
    "rows_kept": ("Rows to keep", "保留的行数"),
    "start_redo": ("Redo the rows below", "重绘下方各行"),
    "picked": ("{name}: {how}", "{name}：{how}"),
    "redo_same": ("The rows look as before, because seed, prompt and settings are the same. "
                  "Switch off Keep seed to draw others.",
                  "种子、提示词和设置都没变，所以这些行与原来一样。要画出不同的，请关闭“锁定种子”。"),
    "typed_wins": ("The prompt that you typed since is drawn, not the picture's.",
                   "将按您之后输入的提示词绘制，而不是图像原来的提示词。"),
    "pick_first": ("Pick a finished picture or drop a PNG first.", "请先选择一张图像或拖入 PNG。"),
    # Seeds
    "seeds": ("Seeds", "选种子"),
    "seeds_hint": ("Draws the top of each seed, then pauses. Tick the ones you like, and they "
                   "continue from there.",
                   "每个种子先画上面一部分，然后暂停。勾选喜欢的，从暂停处继续完成。"),
    "part": ("How much of each first", "先画多少"),
    "part_third": ("A third", "三分之一"),
    "part_half": ("Half", "一半"),
    "part_most": ("Two thirds", "三分之二"),
    "how_many": ("How many seeds", "种子数量"),
    "start_seeds": ("Start", "开始"),
    "finish": ("Finish selected", "完成所选"),
    "ticked": ("To finish", "待完成"),
    "tick_first": ("Tick at least one paused seed.", "请至少勾选一个已暂停的种子。"),
    "seeds_wait": ("{count} paused at row {row} of {rows}. Finishing one takes about {seconds} s.",
                   "{count} 个种子暂停在第 {row} 行（共 {rows} 行）。完成一个约需 {seconds} 秒。"),
    "seeds_going": ("{done} of {count} drawn, about {seconds} s left.",
                    "已画 {done} / {count}，约剩 {seconds} 秒。"),
    "seeds_done": ("{count} finished. Saved to {where}", "完成 {count} 张。已保存到 {where}"),
    "seeds_gone": ("Expired. Start again.", "已过期，请重新开始。"),
    # History
    "history": ("History", "历史"),
    "history_hint": ("Every finished picture, newest first. Saved in {where}",
                     "所有已完成的图像，最新的在前。保存在 {where}"),
    "history_hint_shared": ("Every finished picture, newest first.",
                            "所有已完成的图像，最新的在前。"),
    "search": ("Search", "搜索"),
    "search_hint": ("Words of the prompt, a method or a seed", "提示词中的词、方法或种子"),
    "favourites": ("Favourites only", "只看收藏"),
    "favourite": ("Favourite", "收藏"),
    "unfavourite": ("Remove from favourites", "取消收藏"),
    "keep": ("Keep it", "保留"),
    "no_match": ("No picture matches.", "没有符合的图像。"),
    "recipe": ("Recipe", "配方"),
    "no_recipe": ("none in this file", "此文件中没有"),
    "passes": ("Forward passes", "前向次数"),
    "seconds": ("Seconds", "秒"),
    "copy_prompt": ("Copy prompt", "复制提示词"),
    "copy_settings": ("Copy settings", "复制设置"),
    "copied": ("Copied", "已复制"),
    "restore": ("Restore settings", "恢复设置"),
    "use_in_redo": ("Redo from a row", "从某行重绘"),
    "delete": ("Delete", "删除"),
    "delete_sure": ("Delete {name}?", "确定删除 {name}？"),
    "deleted": ("Deleted: {name}", "已删除：{name}"),
    "not_listed": (" Files that cannot be listed: {count}. The first: {problem}",
                   " 有 {count} 个文件无法列出。第一个：{problem}"),
    "more": ("Show more", "显示更多"),
    "drop": ("Drop a PNG to restore its settings", "拖入 PNG 以恢复其设置"),
    "restored": ("Settings restored from {name}.", "已从 {name} 恢复设置。"),
    "redone_below": (" Its first {rows} rows came from another picture. Pick that picture in Redo.",
                     " 它的前 {rows} 行来自另一张图像，请在“从某行重绘”中选择那张。"),
    "other_dtype": (" It was drawn in {dtype}. The model in use is loaded in {now}, so it may come "
                    "out different: load it with precision {dtype} for the same picture.",
                    " 它以 {dtype} 绘制，当前模型以 {now} 载入，结果可能不同；"
                    "以精度 {dtype} 载入即可得到同一张图。"),
    "other_backbone": (" It was drawn with {name}. The model in use is {now}.",
                       " 它由 {name} 绘制；当前使用的模型是 {now}。"),
    "history_pick": ("Click a picture to see its prompt and settings, and what you can do with it.",
                     "点击一张图像，查看它的提示词、设置和可用操作。"),
    "select_first": ("Select a picture first.", "请先选择一张图像。"),
    "nothing_yet": ("Nothing here yet. Finished pictures appear here automatically.",
                    "还没有图像。完成的图像会自动出现在这里。"),
    # Backbones
    "backbones": ("Models", "模型"),
    "heads": ("draft heads", "草稿头"),
    "shared_hint": ("This app is shared. Only the person who started it can change the model.",
                    "此应用已共享，只有启动者可以更换模型。"),
    "looked_in": ("Searched folders: {places}", "已搜索的文件夹：{places}"),
    "backbone": ("Model", "模型"),
    "dtype": ("Precision", "精度"),
    "dtype_hint": ("int8 is the fastest on recent CPUs. fp8 needs an RTX 40 card or newer. int4 "
                   "saves memory, not time.",
                   "int8 在较新的 CPU 上最快；fp8 需要 RTX 40 或更新的显卡；"
                   "int4 节省内存，但不会更快。"),
    "use": ("Use this model", "使用此模型"),
    "loading": ("Loading {name} after the runs ahead of it in the queue.",
                "正在加载 {name}；队列中排在前面的任务会先完成。"),
    "in_use": ("In use: {name}, {heads}.", "正在使用：{name}，{heads}。"),
    "with_heads": ("with draft heads", "有草稿头"),
    "without_heads": ("no draft heads; ssd runs as rows, which needs none",
                      "没有草稿头；ssd 会改用不需要草稿头的 rows"),
    "fit": ("Will it fit in memory?", "内存够用吗？"),
    "get": ("Get a model from the Hub", "从 Hub 下载模型"),
    "get_hint": ("No draft heads are published for these models, and none of the speeds needs "
                 "any. Nothing is downloaded until you press the button.",
                 "这些模型没有公开的草稿头，各档速度也都不需要。按下按钮之前不会下载任何内容。"),
    "known": ("Known models", "已知的模型"),
    "ask": ("Check size and licence", "查询大小与许可证"),
    "ask_first": ("Press Check size and licence first.", "请先点击“查询大小与许可证”。"),
    "quoted": ("{name}: {size}, of which {missing} must be downloaded to {where}",
               "{name}：{size}，其中 {missing} 需要下载到 {where}"),
    "about_size": ("about {size}.", "约 {size}。"),
    "ask_size": ("size unknown; press Check size and licence.",
                 "大小未知；请点击“查询大小与许可证”。"),
    "download_so": ("Download {size} to {where}", "下载 {size} 到 {where}"),
    "download": ("Download", "下载"),
    "cancel_download": ("Cancel", "取消"),
    "downloading": ("{done} of {total}: {file}", "{done} / {total}：{file}"),
    "downloaded": ("Downloaded to {where}. Press Use this model to load it.",
                   "已下载到 {where}。点击“使用此模型”即可加载。"),
    "download_kept": ("Cancelled. The next download continues from here.",
                      "已取消。下次下载会从这里继续。"),
    # Doctor
    "doctor": ("Doctor", "诊断"),
    "doctor_hint": ("Paste this into a bug report. It contains no prompts and no pictures.",
                    "反馈问题时请粘贴这段内容，其中不含提示词和图像。"),
    "refresh": ("Refresh", "刷新"),
    "report": ("Report", "报告"),
}


def labels() -> dict[str, tuple[str, str]]:
    """All texts; a knob without words is labelled with its name and help."""
    knobs = [*all_knobs().values(), *sampling_knobs()]
    return {**{knob.name: (f"{knob.name}: {knob.help}",) * 2 for knob in knobs},
            **{method_key(name): named(name) for name in METHODS},
            **{name: (words.label, words.chinese) for name, words in KNOB_WORDS.items()}, **TABLE}


def method_key(name: str) -> str:
    """The key of a method's name in lists."""
    return f"method_{name}"


def named(name: str) -> tuple[str, str]:
    """A method with its promise: "exact (identical)", in both languages."""
    verdict = METHODS[name].verdict
    return f"{name} ({verdict})", f"{name}（{CHINESE_GUARANTEES[verdict]}）"


def translations(forced: str = AUTO) -> gr.I18n:
    """Gradio's tables; a forced language is used for every browser."""
    english, chinese = ({key: pair[n] for key, pair in labels().items()} for n in (0, 1))
    if forced != AUTO:
        english = chinese = english if forced == ENGLISH else chinese
    return Labels(**{"en": english, "zh": chinese, "zh-CN": chinese, "zh-TW": chinese})


class Labels(gr.I18n):
    """Gradio's tables under keys that no text of the page equals.

    Gradio's page translates every text that is a key: `heads`, a choice of the drafter, became the
    label of that name, and the server then refused the run.
    """

    def __init__(self, **translations: dict[str, str]) -> None:
        super().__init__(**{locale: {OWN_KEY + key: text for key, text in table.items()}
                            for locale, table in translations.items()})

    def __call__(self, key: str) -> gr.i18n.I18nData:
        return super().__call__(OWN_KEY + key)


def language_of(request: gr.Request | None, forced: str = AUTO) -> str:
    """The language in which to answer a request."""
    if forced != AUTO:
        return forced
    accepted = request.headers.get("accept-language", "") if request else ""
    return CHINESE if accepted.lower().startswith("zh") else ENGLISH


def run_names(language: str) -> dict[str, str]:
    """How the page calls the runs of these labels: by the name of their speed."""
    return {label(speed.method.resolve(Preset())): title(speed, language)
            for speed in SPEEDS.values()}


def run_title(name: str, language: str) -> str:
    """The name of the speed that a run of this label had; the label itself if it was none."""
    return run_names(language).get(name, name)


def title(speed: QualityPreset, language: str) -> str:
    return speed.chinese if language == CHINESE else speed.title


def label_in(language: str, key: str) -> str:
    """A label of the page in the language of a request."""
    return labels()[key][language == CHINESE]


def say(language: str, key: str, **values: object) -> str:
    """A server text with its values filled in."""
    return TABLE[key][language == CHINESE].format(**values)
