"""Figures of the documents are those that the benchmarks wrote: rounded, and not changed."""

import json
import re
from decimal import ROUND_HALF_UP, Decimal

import pytest
from support.documents import DOCS, ROOT, by_section, records, table

RESULTS = ROOT / "lab" / "benchmarks" / "results"


def rows(name: str) -> dict[str, dict]:
    """The rows of a table by their labels."""
    text = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    return {row["method"]: row for row in json.loads(text)}


QUALITY = rows("postcard")
METHODS = rows("methods")  # every method at its own settings: whose passes the documents quote
PASSES, FEWER, SECONDS = "passes", "fewer passes than AR", "seconds"  # columns of speed.md
FASTER = ("against our fastest AR", "faster than AR")  # the latter in a page of before


def measured_speed(text: str) -> dict[str, dict[str, dict[str, str]]]:
    """{dtype: {decoding: {column: cell}}} of speed.md."""
    found = by_section(text, "decoding | passes")
    return {heading.removeprefix("In "): rows for heading, rows in found.items()}


def faster(row: dict[str, str]) -> str:
    """How many times faster than AR, as speed.md has it."""
    return next(row[column] for column in FASTER if column in row)


SPEED, WITHOUT_VNNI = (measured_speed((RESULTS / f"{name}.md").read_text(encoding="utf-8"))
                    for name in ("speed", "speed_avx2"))
FP32, INT8 = "fp32", "int8"


def rounded(value: str, digits: int) -> str:
    """As a person rounds: 8.35 to 8.4."""
    return str(Decimal(value).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


def mean(row: dict, key: str, digits: int) -> str:
    return f"{row[key]:.{digits}f} ± {row[f'{key}_se']:.{digits}f}"


def passes(row: dict) -> str:
    """The mean with one standard error, or a count that never varies."""
    spread = row["passes_se"]
    return f"{row['passes']:.0f}" + (f" ± {max(1, spread):.0f}" if spread else "")


def by_name(rows: list[list[str]]) -> dict[str, list[str]]:
    return {name: rest for name, *rest in rows}


@pytest.mark.parametrize("name, shown", by_name(
    table(DOCS / "results.md", "decoding | passes | NLL")).items())
def test_the_quality_of_a_method_is_as_measured(name, shown):
    row = QUALITY[name]
    assert shown == [
        passes(row), mean(row, "nll", 2), mean(row, "caption_accuracy", 2),
        mean(row, "object_accuracy", 2), mean(row, "frechet", 1),
        f"{row['identical_tokens'] * 100:.0f} %"]


@pytest.mark.parametrize("name, shown", records(
    (DOCS / "results.md").read_text(encoding="utf-8"), "decoding | passes | fewer passes").items())
def test_the_speed_of_a_method_is_as_measured(name, shown):
    """Behind passes a column for each dtype: times faster than AR, for AR itself seconds."""
    dtypes = {heading: cell for heading, cell in shown.items() if heading in SPEED}
    assert dtypes and len(shown) == 3 + len(dtypes)
    if name == "AR, seconds":
        assert (shown["passes"], shown["fewer passes"]) == ("576", "1")
        assert dtypes == {dtype: rounded(SPEED[dtype]["AR"][SECONDS], 2) for dtype in dtypes}
        return
    row = SPEED[INT8][name]  # the dtype that `auto` picks
    assert (shown["passes"], shown["fewer passes"]) == (row[PASSES], rounded(row[FEWER], 1))
    assert dtypes == {dtype: rounded(faster(SPEED[dtype][name]), 1) for dtype in dtypes}


# {quality in the README: its row of postcard.json and of speed.md}
QUALITIES = {"Reference (`ar`)": ("AR", "AR"),
             "Faithful (`exact`), the default": ("exact, window 48", "exact"),
             "Balanced (`rolling`)": ("rolling, 1/8 of AR's passes",) * 2,
             "Fast (`rolling`)": ("rolling, 1/12 of AR's passes",) * 2,
             "`ssd`, r = 2: the paper's": ("SSD r = 2",) * 2}
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("quality, shown", records(README, "quality").items())
def test_the_table_of_the_readme_is_as_measured(quality, shown):
    picture, clock = QUALITIES[quality]
    row = SPEED[FP32 if clock == "AR" else INT8][clock]
    assert shown.pop("the picture") and shown == {
        "quality": quality, "passes": row[PASSES], "seconds": rounded(row[SECONDS], 2),
        "times faster": rounded(faster(row), 1),
        "captions obeyed": f"{QUALITY[picture]['caption_accuracy']:.2f}"}


def test_what_the_readme_says_beside_its_table_is_as_measured():
    text = " ".join(README.split())
    faithful, balanced, fast = (passes(QUALITY[QUALITIES[quality][0]])
                                for quality in list(QUALITIES)[1:4])
    assert f"Faithful takes {faithful} passes, Balanced {balanced} and Fast {fast}" in text


def test_what_is_said_of_sjd_beside_large_models_is_as_measured():
    file = ROOT / "ssd_core" / "assets" / "postcard" / "prior_passes.json"
    passes = json.loads(file.read_text(encoding="utf-8"))["passes"]["sjd/16/none"]
    assert f"takes {576 / passes:.1f} times fewer passes on it" in " ".join(README.split())
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    assert f"| 1.8 | 2.2 | {576 / passes:.1f} |" in text
    assert f"took {passes} passes (8 captions" in " ".join(text.split())


def test_what_the_results_say_of_other_machines_is_as_measured():
    text = " ".join((DOCS / "results.md").read_text(encoding="utf-8").split())
    names = [QUALITIES[quality][1] for quality in list(QUALITIES)[1:]]
    there = [rounded(faster(WITHOUT_VNNI[FP32][name]), 1) for name in names]
    assert ("`exact` was {} times as fast as AR in fp32, *Balanced* {}, *Fast* {} and SSD r = 2 {} "
            "times".format(*there)) in text
    times = [float(sixteen) / float(one) for _, one, _, sixteen, *_ in
             table(RESULTS / "wide_passes.md", "dtype")]
    assert f"takes {min(times):.1f} to {max(times):.1f} times as long as over one" in text


def test_the_passes_of_every_method_are_those_of_one_table():
    """In methods.md's two tables."""
    shown = {name.split("`")[1]: text for name, text, *_ in table(DOCS / "methods.md", "method")}
    measured = {label.partition(" r=")[0]: row for label, row in METHODS.items()
                if "," not in label}
    assert set(measured) <= set(shown)
    assert all(shown[name].startswith("not measured") for name in set(shown) - set(measured))
    for name, row in measured.items():
        assert re.match(rf"{passes(row)}(?![\d ]* ±|\d)", shown[name]), name
    for name, cell, *_ in table(DOCS / "methods.md", "without heads"):
        name = name.split("`")[1]
        own = METHODS.get(f"{name}, no heads", measured[name])
        assert cell == f"{own['passes']:.0f}", name


def test_what_is_said_of_exact_is_as_measured():
    exact = RESULTS / "exact.md"
    equal = {row[0]: row[1:] for row in table(exact, "dtype")}["fp16"]
    share = equal[2].replace("%", " %")
    text = " ".join((DOCS / "methods.md").read_text(encoding="utf-8").split())
    assert f"{equal[0]} pictures" in text and f"{share} in the worst picture" in text
    assert f"{equal[1].replace('%', ' %')} of the tokens were equal on average" in text
    row = METHODS["exact"]
    assert f"deviation of `exact` is {row['passes_se'] * row['prompts'] ** 0.5:.0f} passes" in text


def test_what_a_window_costs_exact_is_as_measured():
    """methods.md gives it as ratios, so that the passes of `exact` are stated once."""
    means = {tuple(name.split("/")): int(mean)
             for name, mean, *_ in table(RESULTS / "exact.md", "window, drafter")}
    for drafter in ("heads", "none"):
        half, whole, twice = (means[window, drafter] for window in ("24", "48", "96"))
        assert [f"{half / whole:.1f}", f"{twice / whole:.1f}"] == ["1.2", "0.9"]
    assert all(0.68 < means[window, "row"] / means[window, "heads"] < 0.75
               for window in ("24", "48", "96"))
    text = " ".join((DOCS / "methods.md").read_text(encoding="utf-8").split())
    assert "(24 cells) takes 1.2 times as many" in text
    assert "(96) 0.9 times as many; the row drafter saves a good quarter" in text


def test_what_the_readers_read():
    assert set(SPEED) >= {INT8, FP32} and all(len(rows) > 12 for rows in SPEED.values())
    assert rounded("8.35", 1) == "8.4" and rounded("2.419", 2) == "2.42"
