"""Figures of the documents are those that the benchmarks wrote: rounded, and not changed."""

import json
import re
from decimal import ROUND_HALF_UP, Decimal

import pytest
from support.documents import DOCS, ROOT, cells, table

RESULTS = ROOT / "benchmarks" / "results"
QUALITY = {row["method"]: row for row in json.loads((RESULTS / "postcard.json").read_text())}
BF16, FP32 = "In bf16", "In fp32"
PASSES, FEWER, SECONDS, FASTER = range(4)  # columns of speed.md behind the name


def measured_speed() -> dict[str, dict[str, list[str]]]:
    """{machine: {decoding: cells}} of speed.md."""
    text = (RESULTS / "speed.md").read_text(encoding="utf-8")
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        rows = [cells(line) for line in body.splitlines() if line.startswith("|")]
        found[heading] = {row[0]: row[1:] for row in rows if len(row) == 9}
    return {heading: rows for heading, rows in found.items() if rows}


SPEED = measured_speed()


def rounded(value: str, digits: int) -> str:
    """As a person rounds: 8.35 to 8.4."""
    return str(Decimal(value).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


def mean(row: dict, key: str, digits: int) -> str:
    return f"{row[key]:.{digits}f} ± {row[f'{key}_se']:.{digits}f}"


def by_name(rows: list[list[str]]) -> dict[str, list[str]]:
    return {name: rest for name, *rest in rows}


@pytest.mark.parametrize("name, shown", by_name(
    table(DOCS / "results.md", "decoding | passes | NLL")).items())
def test_the_quality_of_a_method_is_as_measured(name, shown):
    row = QUALITY[name]
    assert shown == [
        f"{row['passes']:.0f}", mean(row, "nll", 2), mean(row, "caption_accuracy", 2),
        mean(row, "object_accuracy", 2), mean(row, "frechet", 1),
        f"{row['identical_tokens'] * 100:.0f} %"]


@pytest.mark.parametrize("name, shown", by_name(
    table(DOCS / "results.md", "decoding | passes | fewer passes")).items())
def test_the_speed_of_a_method_is_as_measured(name, shown):
    if name == "AR, seconds":
        seconds = [rounded(SPEED[where]["AR"][SECONDS], 2) for where in (BF16, FP32)]
        assert shown == ["576", "1", *seconds]
        return
    times = [rounded(SPEED[where][name][FASTER], 1) for where in (BF16, FP32)]
    row = SPEED[FP32][name]
    assert shown == [row[PASSES], rounded(row[FEWER], 1), *times]


# {mode of the README: its names in the table of quality and in that of speed}
MODES = {"`ar`": ("AR", "AR"), "`exact` (default), window 48": ("exact, window 48", "exact"),
         "`strict`": ("strict, horizontal", "strict"), "`ssd`, r = 3": ("SSD r = 3",) * 2,
         "`ssd`, r = 2": ("SSD r = 2",) * 2, "`ssd`, r = 1": ("SSD r = 1",) * 2,
         "`rows`, r = 2": ("rows, r = 2, no heads", "rows, r = 2")}


@pytest.mark.parametrize("mode, shown", by_name(table(ROOT / "README.md", "mode")).items())
def test_the_table_of_the_readme_is_as_measured(mode, shown):
    """Passes; times faster, from the slower dtype to the faster; captions obeyed."""
    picture, clock = MODES[mode]
    times = sorted(Decimal(SPEED[where][clock][FASTER]) for where in SPEED)
    least, most = (rounded(str(times[end]), 1) for end in (0, -1))
    range_ = least if least == most else f"{least} to {most}"
    row = QUALITY[picture]
    assert shown[1:] == [f"{row['passes']:.0f}", "1" if mode == "`ar`" else range_,
                         f"{row['caption_accuracy']:.2f}"]


def test_what_is_said_of_exact_is_as_measured():
    exact = RESULTS / "exact.md"
    means = {tuple(name.split("/")): mean for name, mean, *_ in table(exact, "window, drafter")}
    equal = {row[0]: row[1:] for row in table(exact, "dtype")}["fp16"]
    share = equal[2].replace("%", " %")
    for page in (ROOT / "README.md", DOCS / "methods.md"):
        text = " ".join(page.read_text(encoding="utf-8").split())
        assert f"{equal[0]} pictures" in text
        assert re.search(rf"in the worst one {share}|{share} in the worst picture", text)
    assert f"{equal[1].replace('%', ' %')} of the tokens were equal on average" in text
    assert f"48 cells and {means['48', 'heads']} passes" in " ".join(
        (ROOT / "README.md").read_text(encoding="utf-8").split())
    heads, none = ([means[window, kind] for window in ("24", "48", "96")]
                   for kind in ("heads", "none"))
    methods = " ".join((DOCS / "methods.md").read_text(encoding="utf-8").split())
    assert "{}, {} and {} passes on average, and without heads {}, {} and {}".format(
        *heads, *none) in methods


def test_what_exact_saves_while_drawing_for_heads_is_as_measured():
    head = "pictures at once | method | passes"
    shown = table(DOCS / "training.md", head)
    assert shown == table(RESULTS / "self_distill.md", head) and len(shown) == 4


def test_what_the_readers_read():
    assert set(SPEED) == {BF16, FP32} and len(SPEED[FP32]) > 12
    assert rounded("8.35", 1) == "8.4" and rounded("2.419", 2) == "2.42"
