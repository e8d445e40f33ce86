"""Figures in the prose of documents are those that the benchmarks wrote, rounded.

Those of their tables are made by tools/figure_tables.py.
"""

import json
import re

from support import script_modules
from support.documents import DOCS, ROOT, table

tables = script_modules.script("tools", "figure_tables")
METHODS = tables.measured("methods")  # every method at its own settings: whose passes are quoted
WITHOUT_VNNI = tables.measured_speed("speed_avx2")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_figure_that_was_changed_by_hand_is_put_right():
    head = "| decoding | passes | fewer passes | int8 |\n|---|---|---|---|\n"
    exact = tables.SPEED["int8"]["exact"]
    assert tables.filled(f"{head}| exact | 9 | 9 | 9 |\n", "| dec", tables.speed) == (
        f"{head}| exact | {exact['passes']} | {tables.rounded(exact['fewer passes than AR'], 1)} | "
        f"{tables.rounded(tables.faster(exact), 1)} |\n")


def test_what_the_readme_says_beside_its_table_is_as_measured():
    text = " ".join(README.split())
    faithful, balanced, fast = (tables.passes(tables.QUALITY[tables.QUALITIES[quality][0]])
                                for quality in list(tables.QUALITIES)[1:4])
    assert f"Faithful takes {faithful} passes, Balanced {balanced} and Fast {fast}" in text


def test_what_is_said_of_large_models_is_as_measured_on_stand_ins():
    file = ROOT / "ssd_core" / "assets" / "postcard" / "prior_passes.json"
    passes = json.loads(file.read_text(encoding="utf-8"))["passes"]["sjd/16/none"]
    text = " ".join((DOCS / "results.md").read_text(encoding="utf-8").split())
    assert f"took {passes} passes (8 captions, int8), {576 / passes:.1f} times fewer" in text
    accepted = tables.STAND_IN["janus"]["ar"]["acceptance"]
    for way in ("horizontal", "vertical"):
        shares = [f"{accepted[f'{way}+{offset}']:.2f}" for offset in (1, 2, 3)]
        assert "{}, {} and {}".format(*shares) in text
    readme = " ".join(README.split())
    *_, passes, of = re.search(r"((\d+) of (\d+)) and 568 of 2,390 passes", text).groups()
    assert f"took {int(of) / int(passes):.1f} times fewer passes and was 2.45 times" in readme
    assert f"Janus-Pro-7B {int(of) / int(passes):.1f}, 2.45 times faster (window 32)" in text
    for before, after in (("84.23", "83.40"), ("0.77", "0.73")):
        assert f"from {before} to {after} in" in readme and before in text and after in text
    shown = tables.large({"decoding": "*Balanced*: `rolling`, 1/8"})["like Janus-Pro"]
    times, above = shown.rstrip(")").split(" (")
    assert f"{float(times):.0f} times fewer passes, and pictures as likely" in readme
    assert float(above) <= 0.1


def test_what_the_results_say_of_other_machines_is_as_measured():
    text = " ".join((DOCS / "results.md").read_text(encoding="utf-8").split())
    names = [tables.QUALITIES[quality][1] for quality in list(tables.QUALITIES)[1:]]
    there = [tables.rounded(tables.faster(WITHOUT_VNNI["fp32"][name]), 1) for name in names]
    assert ("`exact` was {} times as fast as AR in fp32, *Balanced* {}, *Fast* {} and SSD r = 2 {} "
            "times".format(*there)) in text
    times = [float(sixteen) / float(one) for _, one, _, sixteen, *_ in
             table(tables.RESULTS / "wide_passes.md", "dtype")]
    assert f"takes {min(times):.1f} to {max(times):.1f} times as long as over one" in text


def test_the_passes_of_every_method_are_those_of_one_table():
    """In methods.md's two tables."""
    shown = {name.split("`")[1]: text for name, text, *_ in table(DOCS / "methods.md", "method")}
    measured = {label.partition(" r=")[0]: row for label, row in METHODS.items()
                if "," not in label}
    assert set(measured) <= set(shown)
    assert all(shown[name].startswith("not measured") for name in set(shown) - set(measured))
    for name, row in measured.items():
        assert re.match(rf"{tables.passes(row)}(?![\d ]* ±|\d)", shown[name]), name
    for name, cell, *_ in table(DOCS / "methods.md", "without heads"):
        name = name.split("`")[1]
        own = METHODS.get(f"{name}, no heads", measured[name])
        assert cell == f"{own['passes']:.0f}", name


def test_what_is_said_of_exact_is_as_measured():
    exact = tables.RESULTS / "exact.md"
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
             for name, mean, *_ in table(tables.RESULTS / "exact.md", "window, drafter")}
    for drafter in ("heads", "none"):
        half, whole, twice = (means[window, drafter] for window in ("24", "48", "96"))
        assert [f"{half / whole:.1f}", f"{twice / whole:.1f}"] == ["1.2", "0.9"]
    assert all(0.68 < means[window, "row"] / means[window, "heads"] < 0.75
               for window in ("24", "48", "96"))
    text = " ".join((DOCS / "methods.md").read_text(encoding="utf-8").split())
    assert "(24 cells) takes 1.2 times as many" in text
    assert "(96) 0.9 times as many; the row drafter saves a good quarter" in text


def test_what_the_readers_read():
    assert set(tables.SPEED) >= {tables.INT8, "fp32"}
    assert all(len(rows) > 12 for rows in tables.SPEED.values())
    assert tables.rounded("8.35", 1) == "8.4" and tables.rounded("2.419", 2) == "2.42"
