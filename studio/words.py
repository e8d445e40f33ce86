"""What the app says, in English and Chinese: labels (the browser's language) and server texts.

Labels go through Gradio's own translation; what handlers write is chosen by the request. `{name}`
marks a value to fill in. Error lines come from the engine and are English.
"""

from __future__ import annotations

import gradio as gr

ENGLISH, CHINESE, AUTO = "en", "zh", "auto"

TABLE: dict[str, tuple[str, str]] = {
    # Head and controls
    "tagline": ("Pictures drawn row by row, by speculative decoding. Nothing leaves this machine.",
                "逐行绘制的图像，由推测解码加速。一切都在本机进行。"),
    "tagline_shared": ("Pictures drawn row by row, by speculative decoding. This app is shared: "
                       "visitors see each other's prompts and pictures, which leave this machine.",
                       "逐行绘制的图像，由推测解码加速。此应用已共享：访问者可看到彼此的提示词和图像，"
                       "它们会离开本机。"),
    "prompt": ("Prompt", "提示词"),
    "prompt_hint": ("What the picture shows", "画面内容"),
    "examples": ("Examples", "示例"),
    "negative": ("Negative prompt", "反向提示词"),
    "negative_hint": ("What guidance leads away from", "希望避免的内容"),
    "seed": ("Seed", "种子"),
    "seed_hint": ("The same seed, prompt and knobs give the same picture",
                  "相同的种子、提示词和参数得到相同的图像"),
    "dice": ("New seed", "换种子"),
    "lock": ("Keep this seed", "锁定种子"),
    "pictures": ("Pictures", "张数"),
    "pictures_hint": ("Picture i uses seed + i", "第 i 张使用 种子 + i"),
    "speed": ("Fidelity or speed", "保真还是速度"),
    "speed_hint": ("Token by token: the plain way, and the slowest. Faithful: the plain picture in "
                   "fewer passes, token for token in fp32. Quick: redraws each row a few times; "
                   "shapes may double or break.",
                   "逐词元：普通解码，最慢。忠实：更少的前向次数得到普通解码的图像"
                   "（fp32 下逐词元相同）。"
                   "快速：每行只修正几轮，物体可能重复或破碎。"),
    "stop_plain": ("Token by token", "逐词元"),
    "stop_faithful": ("Faithful", "忠实"),
    "stop_quick": ("Quick", "快速"),
    "speed_custom": ("(your own knobs, none of the choices above)",
                     "（自定义参数，不属于以上任何一档）"),
    "expert": ("Expert knobs", "专家参数"),
    "method": ("Method", "方法"),
    "k_h": ("k_h: cells drafted at a time on row 0", "k_h：首行每次起草的格数"),
    "k_v": ("k_v: rows drafted at a time", "k_v：每次起草的行数"),
    "rounds": ("r (or b): rounds of repair", "r（或 b）：修正轮数"),
    "incremental": ("i: rounds for further rows of a block", "i：块内后续行的轮数"),
    "acceptance": ("Acceptance", "接受规则"),
    "fused_commit": ("Fused commit: one pass a row less", "合并提交：每行少一次前向"),
    "draft_choice": ("Drafts are", "起草方式"),
    "draft": ("rows draws drafts from the row above", "rows 从上一行起草"),
    "drafts": ("strict drafts along", "strict 起草方向"),
    "draft_temperature": ("Draft temperature", "起草温度"),
    "window": ("Window of exact (0: the cheapest here)", "exact 的窗口（0：本机最省）"),
    "cfg": ("Guidance (cfg; 0: the backbone's own)", "引导强度 cfg（0：模型默认）"),
    "temperature": ("Temperature", "温度"),
    "top_k": ("Top-k (0: off)", "Top-k（0：关闭）"),
    "top_p": ("Top-p (1: off)", "Top-p（1：关闭）"),
    "size": ("Size", "尺寸"),
    "own_size": ("the backbone's own", "模型默认"),
    "metadata": ("Write the recipe into the PNG (prompt, seed, knobs, tokens)",
                 "把配方写入 PNG（提示词、种子、参数、词元）"),
    "plan": ("{passes} passes instead of {ar} ({times} times fewer)",
             "{passes} 次前向；普通解码需 {ar} 次，是它的 {times} 倍"),
    "plan_most": ("as many passes as the picture needs, at most {passes}; one by one takes {ar}",
                  "前向次数视图像而定，至多 {passes} 次；普通解码需 {ar} 次"),
    "plan_usual": ("usually about {usual} passes, at most {passes}; one by one takes {ar}",
                   "通常约 {usual} 次前向，至多 {passes} 次；普通解码需 {ar} 次"),
    "plan_same": ("{passes} passes, one a token", "{passes} 次前向，每个词元一次"),
    "unknown": ("Words this backbone does not know, and leaves out: {words}",
                "模型不认识、会忽略的词：{words}"),
    # Common to the tabs
    "stop": ("Stop", "停止"),
    "result": ("Finished pictures (PNG, saved)", "完成的图像（已保存为 PNG）"),
    "done": ("{label}: {passes} passes instead of {ar}, {seconds} s. Saved to {where}",
             "{label}：{passes} 次前向（普通解码 {ar} 次），{seconds} 秒。已保存到 {where}"),
    "stopped": ("Stopped at row {row} of {rows}.", "已停止：第 {row} 行，共 {rows} 行。"),
    "stopped_early": ("Stopped; no row was finished.", "已停止，尚无完成的行。"),
    "halted": ("Stopped.", "已停止。"),
    "stopped_gone": ("the stopped picture is no longer held: draw again",
                     "停止的图像已释放，请重新绘制"),
    "failed": ("Not done: {error}", "未完成：{error}"),
    # Create
    "create": ("Create", "创作"),
    "draw": ("Draw", "绘制"),
    "keep_top": ("Keep the top, redo the rest", "保留上部，重绘其余"),
    "discard": ("Discard it", "丢弃"),
    "to_redo": ("Redo from a row", "从某一行重绘"),
    # Race
    "race": ("Race", "竞速"),
    "race_hint": ("Two methods draw the same prompt with the same seed. Each panel runs on its own "
                  "clock.", "两种方法用相同的提示词和种子绘制，各自计时。"),
    "left": ("Left", "左"),
    "right": ("Right", "右"),
    "as_chosen": ("the knobs on the left", "左侧的参数"),
    "start_race": ("Start the race", "开始竞速"),
    "race_figures": ("{left}: {left_passes} passes, {left_seconds} s. "
                     "{right}: {right_passes} passes, {right_seconds} s.",
                     "{left}：{left_passes} 次前向，{left_seconds} 秒。"
                     "{right}：{right_passes} 次前向，{right_seconds} 秒。"),
    "race_verdict": ("{label} is {verdict}{share}.", "{label}：{verdict}{share}。"),
    "race_share": (", {share} of its tokens are those of ar", "，{share} 的词元与 ar 相同"),
    "race_equal": ("{share} of the tokens of both pictures are the same.",
                   "两张图 {share} 的词元相同。"),
    "identical": ("identical, token for token", "逐词元相同"),
    "same distribution": ("another picture of the same distribution", "同分布的另一张图"),
    "approximate": ("approximate", "近似"),
    "relaxed": ("relaxed", "放宽"),
    "sheet": ("Side by side, stamped", "并排对比图"),
    # Redo
    "redo": ("Redo from a row", "从某行重绘"),
    "redo_hint": ("Rows above the line stay as they are; below it the picture is drawn anew with "
                  "the prompt, seed and knobs on the left.",
                  "线以上的行保持不变；线以下按左侧的提示词、种子和参数重新绘制。"),
    "recent": ("Pick a finished picture", "选择完成的图像"),
    "upload": ("Or drop a PNG here", "或把 PNG 拖到这里"),
    "rows_kept": ("Rows that stay", "保留的行数"),
    "start_redo": ("Redo what lies below", "重绘以下部分"),
    "picked": ("{name}: {how}", "{name}：{how}"),
    "pick_first": ("Pick a finished picture or drop a PNG first.", "请先选择一张图像或拖入 PNG。"),
    # Seeds
    "seeds": ("Seeds", "选种子"),
    "seeds_hint": ("Each seed is drawn to a third and waits. Tick those you like: they go on from "
                   "there, nothing is drawn twice.",
                   "每个种子先画三分之一便暂停。勾选喜欢的：从暂停处继续，不会重画。"),
    "how_many": ("How many seeds", "种子数量"),
    "start_seeds": ("Start", "开始"),
    "finish": ("Finish the ticked ones", "完成勾选的"),
    "ticked": ("To finish", "待完成"),
    "tick_first": ("Tick at least one seed that waits.", "请至少勾选一个已暂停的种子。"),
    "seeds_wait": ("{count} seeds wait at row {row} of {rows}; finishing one takes about "
                   "{seconds} s.",
                   "{count} 个种子停在第 {row} 行（共 {rows} 行）；完成一个约需 {seconds} 秒。"),
    "seeds_going": ("{done} of {count} started, about {seconds} s left.",
                    "已画 {done} / {count}，约剩 {seconds} 秒。"),
    "seeds_done": ("{count} finished. Saved to {where}", "完成 {count} 张。已保存到 {where}"),
    "seeds_gone": ("These runs are no longer held; start again.", "这些任务已释放，请重新开始。"),
    # History
    "history": ("History", "历史"),
    "history_hint": ("Every finished picture, newest first. They lie in {where}",
                     "所有完成的图像，新的在前。保存在 {where}"),
    "restore": ("Restore its settings", "恢复其设置"),
    "use_in_redo": ("Redo from a row", "从某一行重绘"),
    "delete": ("Delete", "删除"),
    "delete_sure": ("Delete {name}?", "确定删除 {name}？"),
    "deleted": ("Deleted: {name}", "已删除：{name}"),
    "not_listed": (" Not listed: {count}, the first: {problem}",
                   " 未列出 {count} 个，首个：{problem}"),
    "more": ("Show more", "显示更多"),
    "drop": ("Drop a PNG to restore its settings", "拖入 PNG 以恢复其设置"),
    "restored": ("Settings restored from {name}.", "已从 {name} 恢复设置。"),
    "redone_below": (" Its first {rows} rows came from another picture: pick that one in Redo.",
                     " 它的前 {rows} 行来自另一张图像：请在重绘中选择那张。"),
    "other_backbone": (" It was drawn by {name}; the backbone in use is {now}.",
                       " 它由 {name} 绘制；当前模型为 {now}。"),
    "select_first": ("Select a picture first.", "请先选择一张图像。"),
    "nothing_yet": ("Nothing here yet: finished pictures appear by themselves.",
                    "还没有图像：完成后会自动出现。"),
    # Backbones
    "backbones": ("Backbones", "模型"),
    "found": ("Found", "已找到"),
    "heads": ("heads", "起草头"),
    "shared_hint": ("This app is shared: which backbone is in use is chosen where it was started.",
                    "此应用已共享：所用模型由启动者决定。"),
    "looked_in": ("Looked in: {places}", "查找位置：{places}"),
    "backbone": ("Backbone", "模型"),
    "dtype": ("Number format", "数值格式"),
    "use": ("Use this backbone", "使用此模型"),
    "loading": ("Loading {name}; runs before it in the queue end first.",
                "正在加载 {name}；队列中在前的任务会先完成。"),
    "in_use": ("In use: {name}, {heads}.", "正在使用：{name}，{heads}。"),
    "with_heads": ("with draft heads", "带起草头"),
    "without_heads": ("without draft heads: SSD is drawn by rows, its training-free sibling",
                      "无起草头：SSD 由免训练的 rows 代替"),
    "fit": ("Will it fit?", "装得下吗？"),
    "get": ("Get a backbone from the Hub", "从 Hub 下载模型"),
    "get_hint": ("No draft heads are published for these. Without heads `rows` (approximate) and "
                 "`exact` (the plain picture) work. Nothing is downloaded until you press the "
                 "button.", "这些模型没有公开的起草头；无起草头时可用 `rows`（近似）和 `exact`"
                 "（与普通解码相同）。按下按钮前不会下载任何内容。"),
    "known": ("Known backbones", "已知模型"),
    "ask": ("Ask for size and licence", "查询大小与许可"),
    "quoted": ("{name}: {size}, of which {missing} are not here yet; to {where}",
               "{name}：{size}，其中 {missing} 尚未下载；保存到 {where}"),
    "about_size": ("about {size}.", "约 {size}。"),
    "ask_size": ("ask the Hub for its size.", "大小请向 Hub 查询。"),
    "download_so": ("Download {size} to {where}", "下载 {size} 到 {where}"),
    "download": ("Download", "下载"),
    "cancel_download": ("Cancel", "取消"),
    "downloading": ("{done} of {total}: {file}", "{done} / {total}：{file}"),
    "downloaded": ("Downloaded to {where}. Press Use to load it.",
                   "已下载到 {where}。点击使用以加载。"),
    "download_kept": ("Cancelled. What was loaded is kept; the next download goes on from there.",
                      "已取消。已下载部分保留，下次从此继续。"),
    # Doctor
    "doctor": ("Doctor", "诊断"),
    "doctor_hint": ("Paste this into a bug report. It holds no prompt and no picture.",
                    "反馈问题时请粘贴此内容；其中没有提示词或图像。"),
    "refresh": ("Refresh", "刷新"),
    "report": ("Report", "报告"),
}


def translations(forced: str = AUTO) -> gr.I18n:
    """Gradio's tables; a forced language is told to every browser."""
    english, chinese = ({key: pair[n] for key, pair in TABLE.items()} for n in (0, 1))
    if forced != AUTO:
        english = chinese = english if forced == ENGLISH else chinese
    return gr.I18n(**{"en": english, "zh": chinese, "zh-CN": chinese, "zh-TW": chinese})


def language_of(request: gr.Request | None, forced: str = AUTO) -> str:
    """The language that a request is answered in."""
    if forced != AUTO:
        return forced
    accepted = request.headers.get("accept-language", "") if request else ""
    return CHINESE if accepted.lower().startswith("zh") else ENGLISH


def say(language: str, key: str, **values: object) -> str:
    """A server text with its values filled in."""
    return TABLE[key][language == CHINESE].format(**values)
