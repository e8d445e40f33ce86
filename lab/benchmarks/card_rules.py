"""The decisions that follow from the rows of card_session.py, part by part: numbers in, words out.

A value that could not be measured is a text or is missing; it is NaN here, and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

Rows = Sequence[Mapping[str, object]]
Finding = tuple[str, str]  # what was found, and what follows
PLAN_MS = 20.0  # a first call that takes longer builds a plan for its shape
ROUNDED, WRONG = 0.03, 0.1  # a replay within the first is rounded, beyond the second wrong
ENOUGH_OF_READ = 75.0  # per cent
GOAL_OF_READ, GOAL_OF_AR = 60.0, 1 / 6  # of AR's passes, and of SSD's seconds beside AR's
GIVEN_BACK = 0.1  # GiB that libraries may keep
LAYER_ENDS = ("7B out", "7B down")
UNDECIDED = "not decided"
NOT_BACK = "not given back, GiB"


def number(row: Mapping[str, object], key: str) -> float:
    value = row.get(key)
    return float(value) if isinstance(value, int | float) else math.nan


def numbers(rows: Rows, key: str) -> list[float]:
    """The values of rows that have one."""
    return [value for row in rows if not math.isnan(value := number(row, key))]


def where(rows: Rows, **values: object) -> list[Mapping[str, object]]:
    return [row for row in rows if all(row.get(key) == value for key, value in values.items())]


def least(rows: Rows, key: str) -> float:
    return min(numbers(rows, key), default=math.nan)


def most(rows: Rows, key: str) -> float:
    return max(numbers(rows, key), default=math.nan)


def attention(rows: Rows) -> Finding:
    first = most(where(rows, kernel="default"), "first call, ms")
    efficient = beside(rows, "efficient", "default")
    single = where(rows, cells=1)
    quick = max(beside(single, "products", name) for name in ("default", "efficient"))
    decision = ("pin the efficient kernel" if first > PLAN_MS or efficient < 1 / 1.05
                else UNDECIDED if math.isnan(efficient) else "leave the default")
    return (f"the default's first call takes up to {first:.1f} ms; the efficient kernel takes "
            f"{efficient:.2f} of the default's time, two products over one cell {quick:.2f} of "
            "the better one's",
            decision + "; a single cell attends by two products" * (quick < 1))


def beside(rows: Rows, kernel: str, other: str) -> float:
    """The mean of a kernel's time as a share of another's, over the sizes that both take."""
    took = {name: {(row.get("cells"), row.get("keys")): value for row in where(rows, kernel=name)
                   if not math.isnan(value := number(row, "us"))} for name in (kernel, other)}
    shares = [value / took[other][size] for size, value in took[kernel].items()
              if size in took[other]]
    return sum(shares) / len(shares) if shares else math.nan


def replay(rows: Rows) -> Finding:
    passes = [row for row in rows if "cells" in row]
    operations = [str(row["operation"]) for row in rows
                  if "operation" in row and number(row, "replay") > 0]
    furthest, again = most(passes, "replay"), most(passes, "called again")
    found = f"replays differ by up to {furthest:.3g}, passes called again by {again:.3g}"
    if math.isnan(furthest):
        return found, UNDECIDED
    if furthest > WRONG:
        return found, "an error: find it before anything else"
    if furthest > ROUNDED:
        return found, f"more than rounding makes: look at the layer where it begins{of(operations)}"
    if furthest > 0 and again == 0:
        return found, f"rounding; pin or report what rounds differently{of(operations)}"
    return found, "rounding at most: the check is enough"


def of(operations: Sequence[str]) -> str:
    return f" ({', '.join(operations)})" if operations else ""


def products(rows: Rows) -> Finding:
    narrow = [row for row in rows if row.get("cells") in (2, 48)]
    share = least(narrow, "linear, % of read")
    ends = [row for row in narrow if row.get("shape") in LAYER_ENDS]
    split = [row for row in ends if number(row, "addmm") > 1.05 * number(row, "linear")]
    triton = [row for row in ends if 1.15 * min(number(row, "triton 32"), number(row, "triton 64"))
              < number(row, "linear")]
    words = ["leave the products alone" if share >= ENOUGH_OF_READ else
             UNDECIDED if math.isnan(share) else "products are worth work"]
    words += ["add the residual apart"] * bool(split)
    words += ["offer the Triton kernel for `out` and `down`"] * bool(triton)
    return f"over 2 and 48 cells at least {share:.0f} % of read", "; ".join(words)


def invariance(rows: Rows) -> Finding:
    exact = [row for row in rows if number(row, "rms of logits") == 0]
    found = f"{len(exact)} of {len(rows)} settings have the same bits at any width"
    if not exact:
        return found, "Faithful is approximate on this card"
    settings = "; ".join(f"{row['library']}, split sums {row['split sums']}, attention "
                         f"{row['attention']}" for row in exact)
    return found, f"offer for Faithful: {settings}"


def profile(rows: Rows) -> Finding:
    small, attends = (max((100 * number(row, key) / total for row in rows
                           if (total := spent(row)) > 0), default=math.nan)
                      for key in ("small, us", "attention, us"))
    return (f"small kernels take up to {small:.0f} %, attention up to {attends:.0f} %",
            "; ".join(["merge small kernels"] * (small > 15)
                      + ["choose attention by its part"] * (attends > 15))
            or (UNDECIDED if math.isnan(small) else "leave both"))


def spent(row: Mapping[str, object]) -> float:
    return sum(number(row, key) for key in ("small, us", "attention, us", "products, us"))


def runs(rows: Rows) -> Finding:
    large = [row for row in rows if "Janus-Pro-7B" in str(row.get("backbone"))]
    ssd, ar = ([row for row in large if row.get("method") == name] for name in ("ssd", "ar"))
    later = last(ssd, "graphs that stay", "seconds")
    gain = later / last(ssd, "graphs of the run", "seconds")
    of_ar = later / last(ar, "graphs that stay", "seconds")
    share = last(ar, "graphs that stay", "% of read")
    left, check = most(rows, NOT_BACK), most(where(rows, picture=1), "check, % of captures")
    same = least(rows, "same tokens as eager, %")
    more = most(where(rows, way="graphs that stay", picture=2), "captured")
    words = [UNDECIDED if math.isnan(gain) else "sessions stay" if gain < 0.6
             else "sessions bring too little"]
    words += ["memory does not come back: find what holds it"] * (left > GIVEN_BACK)
    words += ["cut the check"] * (check > 25) + ["the check costs more than a tenth"] * (
        10 < check <= 25)
    words += [f"AR is short of {GOAL_OF_READ:.0f} % of read"] * (share < GOAL_OF_READ)
    words += ["SSD takes more than a sixth of AR's seconds"] * (of_ar > GOAL_OF_AR)
    words += ["tokens differ from eager passes: see the part `replay`"] * (same < 100)
    return (f"SSD's later pictures on Janus-Pro-7B take {gain:.2f} of the seconds with graphs of "
            f"the run and {of_ar:.2f} of AR's; AR reads at {share:.0f} %; second pictures capture "
            f"up to {more:.0f} graphs; the check is up to {check:.0f} % of captures; up to "
            f"{left:.2f} GiB not given back; at least {same:.0f} % of tokens as without graphs",
            "; ".join(words))


def last(rows: Rows, way: str, key: str) -> float:
    """The value of the last picture drawn in this way."""
    return ([math.nan, *numbers(where(rows, way=way), key)])[-1]


def eight(rows: Rows) -> Finding:
    two, wide = where(rows, cells=2), where(rows, cells=96)
    plain, wide_plain, integers = (least(two, "bf16"), least(wide, "bf16"), least(two, "W8A8"))
    adopted = [name for name in dict.fromkeys(key for row in rows for key in row)
               if name not in ("cells", "bf16", "int8") and plain >= 1.4 * least(two, name)
               and least(wide, name) <= wide_plain]
    words = [f"adopt {name}" for name in adopted]
    words += ["integers keep the label memory"] * (integers > plain)
    return (f"a product over 2 cells: bf16 {plain:.0f} us, W8A8 {integers:.0f} us",
            "; ".join(words) or (UNDECIDED if math.isnan(plain) else "none is 1.4 times as fast"))


def compiled(rows: Rows) -> Finding:
    gain = max((number(row, "plain, us") / number(row, "compiled, us") - 1 for row in rows
                if number(row, "compiled, us") > 0), default=math.nan)
    return (f"compiling gains up to {100 * gain:.0f} % in up to "
            f"{most(rows, 'seconds to compile'):.0f} s",
            UNDECIDED if math.isnan(gain) else "drop the subject" if gain < 0.12 else "look again")


def other_allocator(rows: Rows) -> Finding:
    stay = where(rows, way="graphs that stay")
    same, left = least(stay, "same tokens as eager, %"), most(stay, NOT_BACK)
    works = bool(stay) and most(stay, "captured") > 0 and same == 100
    return (f"{same:.0f} % of tokens as without graphs, {left:.2f} GiB not given back",
            UNDECIDED if not stay else "graphs work there" if works else "no graphs there")


RULES: dict[str, Callable[[Rows], Finding]] = {
    "attention": attention, "replay": replay, "products": products, "invariance": invariance,
    "profile": profile, "runs": runs, "eight": eight, "compiled": compiled,
    "cudaMallocAsync": other_allocator}


def decisions(rows: Mapping[str, Rows]) -> Iterable[tuple[str, str, str]]:
    """(part, what was found, what follows) of every part with rows."""
    for part, rule in RULES.items():
        if measured := [row for row in rows.get(part, ()) if "failed" not in row]:
            yield (part, *rule(measured))
