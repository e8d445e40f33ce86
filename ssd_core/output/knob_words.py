"""Labels of the knobs in the app, and the Chinese texts of labels and help.

Add a new knob at the end.
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """label: in the app. chinese: the same in Chinese. help: the knob's help in Chinese."""

    label: str
    chinese: str
    help: str

    @property
    def name(self) -> str:
        """The widget's Chinese name: `chinese` up to its first bracket or colon."""
        return self.chinese.replace("（", "：").partition("：")[0]


KNOB_WORDS: dict[str, Words] = {
    "k_h": Words("k_h: cells drafted at a time on row 0", "k_h：第一行每次起草的单元格数",
                 "沿一行一次起草的单元格数。"),
    "k_v": Words("k_v: rows drafted at a time", "k_v：每次起草的行数", "每块一次起草的行数。"),
    "rounds": Words("r (or b): verification rounds", "r（或 b）：验证轮数",
                    "对草稿的检查轮数：轮数越多，图像越好，前向次数也越多；0 只起草。"),
    "incremental": Words("i: extra rounds for each later row of a block",
                         "i：块内后续每行追加的轮数",
                         "块内后续各行追加的轮数；k_v 大于 1 时有用。"),
    "window": Words("Window: cells checked in a pass",
                    "窗口：每次前向检查的单元格数",
                    "每次前向查看的单元格数。"),
    "group": Words("Group size: similar tokens on either side (gsd)",
                   "组的大小：两侧的相似词元数（gsd）",
                   "按概率排序时，草稿两侧各有多少个词元可与它同组；0 即 sjd。"),
    "delay": Words("Delay: cells between a row and the next (wave)",
                   "间隔：相邻两行相差的单元格数（wave）",
                   "每一行落后于上一行的单元格数；达到整行时即 AR 的顺序。"),
    "cells": Words("Cells of each row per pass (wave)",
                   "每行单元格数（wave）",
                   "每次前向在每个进行中的行里选择的单元格数。"),
    "horizontal_width": Words("Candidates per cell along the row (hawk, lantern)",
                              "沿行的候选数（hawk、lantern）",
                              "沿行起草时每个单元格的候选数。"),
    "vertical_width": Words("Candidates per cell from each cell above (hawk, lantern)",
                            "每个上方格的候选数（hawk、lantern）",
                            "由每个上方格起草时每个单元格的候选数。"),
    "vertical_depth": Words("Cells above that draft a cell (VSD; hawk, lantern)",
                            "起草单元格的上方格数（VSD；hawk、lantern）",
                            "由上方多少个单元格起草一个单元格（VSD）。"),
    "tau": Words("tau: least probability with which a draft stands (mulo)",
                 "tau：草稿成立的最小概率（mulo）",
                 "草稿成立所需的最小概率，相似码的概率合计在内；越高越接近 AR，也越慢。"),
    "radius": Words("Radius: cells around a rejected one that are redone (mulo)",
                    "半径：被拒单元格周围一并重采样的范围（mulo）",
                    "被拒单元格四周多少格内的单元格与它一并重新采样。"),
    "budget": Words("Budget: most forward passes (rolling)", "预算：前向次数上限（rolling）",
                    "整张图像最多用多少次前向：预算越小越快，修正也越少。"),
    "fewer": Words("Fewer: how many times fewer passes (rolling)", "少多少倍前向（rolling）",
                   "整张图像的前向次数至多是 AR 的几分之一；给出预算时以预算为准。"),
    "acceptance": Words("Acceptance rule", "接受规则",
                        "residual：论文的规则。coupled：用种子自己的噪声重新采样。"
                        "两者都会在不再有变化时提前结束。"),
    "fused_commit": Words("Fused commit: one forward pass fewer per block",
                          "合并提交：每块少一次前向",
                          "把一块的提交与下一块的第一轮检查合并：每块少一次前向。"),
    "draft_choice": Words("Draft selection", "草稿选取",
                          "如何从草稿头的分布中取草稿：采样，或取最可能的词元。"),
    "draft_temperature": Words("Draft temperature", "草稿温度", "草稿的温度，与采样温度相乘。"),
    "drafter": Words("Drafted by (ssd, exact, rolling)", "由谁起草（ssd、exact、rolling）",
                     "heads：草稿头，各单元格互不相干。row：行草稿器，单元格看得见相邻的单元格。"),
    "drafts": Words("Draft direction (strict)", "草稿方向（strict）",
                    "沿行起草，或由上一行起草。"),
    "draft": Words("Draft source (rows)", "草稿来源（rows）",
                   "按上方单元格的分布起草，或复制其词元。"),
    "init": Words("First draft of a cell (sjd, gsd)", "首个草稿（sjd、gsd）",
                  "单元格的首个草稿：随机码、左边或上方的词元，或从那里的分布重新采样。"),
    "continuation": Words("Continuation: keep later drafts that still fit (sjd, gsd)",
                          "延续：保留仍然合适的后续草稿（sjd、gsd）",
                          "首次拒绝之后的草稿，按其分布吻合的程度保留。"),
    "tree_width": Words("Tree: candidates for each of the next cells (sjd)",
                        "树宽：接下来每个单元格的候选数（sjd）",
                        "最后确定的单元格之后，前几个单元格各有多少个候选；1 即没有树。"),
    "tree_depth": Words("Tree: how many of the next cells get candidates (sjd)",
                        "树深：有多个候选的单元格数（sjd）",
                        "最后确定的单元格之后，多少个单元格有多个候选。"),
    "probability_distance": Words("Largest difference in probability within a group (gsd)",
                                  "组内概率的最大差（gsd）", "同组词元概率的最大差。"),
    "code_distance": Words("Largest distance between codes within a group (gsd)",
                           "组内码的最大距离（gsd）",
                           "同组的码之间的最大距离，以草稿到所有码的平均距离为单位。"),
    "verification": Words("Verification of the cells ahead (wave)", "前方单元格的验证（wave）",
                          "一行中下一个单元格之后的单元格何时确定。coupled：用种子自己的噪声再次选中时。"
                          "residual：按 p/q 规则。none：立即。"),
    "adaptive": Words("Adaptive start: a row's first cell is chosen twice (wave)",
                      "自适应起始：行首单元格须两次选中（wave）",
                      "行首单元格只有在上一行前进一格后再次被选中时才保留。"),
    "candidates": Words("Candidates verified per pass (hawk, lantern)",
                        "每次前向检查的候选数（hawk、lantern）",
                        "一次前向最多检查的候选数。"),
    "similar": Words("Similar codes added up for a draft (mulo, lantern)",
                     "为草稿合计的相似码数（mulo、lantern）",
                     "码本中草稿自身及其最近的码共多少个，概率合计。"),
    "delta": Words("delta: most probability borrowed from similar codes (mulo, lantern)",
                   "delta：可向相似码借用的最大概率（mulo、lantern）",
                   "草稿最多可向相似码借用多少概率。"),
    "seed": Words("Seed", "种子", "随机种子。批次中第 n 张使用种子 + n。"),
    "cfg": Words("Guidance: how closely the prompt is followed (cfg)",
                 "引导强度：多大程度遵循提示词（cfg）",
                 "引导强度：数值越大越贴近提示词；1 关闭引导，工作量减半。"),
    "temperature": Words("Temperature: how much chance there is", "温度：随机的程度",
                         "采样的随机程度：0 总取最可能的词元，1 按模型训练时的方式采样。"),
    "top_k": Words("Top-k (0: off)", "Top-k（0：关闭）",
                   "只从最可能的 k 个词元中采样；0 保留全部。"),
    "top_p": Words("Top-p (1: off)", "Top-p（1：关闭）",
                   "只从累计概率达到该值的最可能词元中采样；1 保留全部。"),
    "min_p": Words("Min-p (0: off)", "Min-p（0：关闭）",
                   "舍弃概率不到最可能词元这一比例的词元；0 保留全部。"),
    "variation": Words("Variation: how much differs (0: nothing)", "变化的程度（0：不变）",
                       "多大比例的单元格改按变化种子绘制：0.03 细微，0.15 中等，0.5 强烈；"
                       "0 没有变化。"),
    "variation_seed": Words("Variation seed", "变化种子",
                            "哪一种变化：批次中第 n 张使用该数 + n，种子都相同。"
                            "variation 为 0 时不起作用。"),
}

OWN_CHINESE = {  # what auto means, by the English text of the knob or the node
    "AR's passes divided by the knob fewer": "AR 的前向次数除以 fewer",
    "the model's own": "用模型自己的值",
    "the model's own, or 0 where rounds are given": "用模型自己的值；给出轮数时为 0",
    "the method's own": "用方法自己的值",
    "8": "8",
    "8, or 6 on a graphics card on which wide passes are slow":
        "8；在宽前向较慢的显卡上为 6",
    "the usual number for this type of device; exact and jacobi: the cheapest here":
        "此类设备的常用数目；exact 和 jacobi 取本机最省的数目",
}
