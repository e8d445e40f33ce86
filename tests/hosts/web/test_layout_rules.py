"""The rules of layout find each fault on a small page made for it, and none on a clean one."""

import pytest

pytest.importorskip("playwright.sync_api", reason="needs the package playwright")

from support.layout_rules import faults  # noqa: E402
from support.preview_run import base64_png, lent_page  # noqa: E402

PAINT = """<script>
  for (const canvas of document.querySelectorAll("canvas")) {
    const context = canvas.getContext("2d");
    if (canvas.dataset.paint === "none") continue;
    context.fillStyle = "red";
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (canvas.dataset.paint === "one") continue;
    context.fillStyle = "blue";
    context.fillRect(0, 0, canvas.width, canvas.height / 2);
  }
</script>"""
CLEAN = """<style>
  body { margin: 8px; font: 14px/20px sans-serif; }
  .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .short { width: 80px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .list { height: 60px; overflow: hidden auto; }
  .bar { position: sticky; bottom: 0; background: white; }
  .segments label { position: relative; display: inline-block; padding: 4px; }
  .segments input { position: absolute; inset: 0; opacity: 0; }
</style>
<aside style="display: contents; overflow: auto"><p>In no box</p></aside>
<h1 class="unseen">A page for screen readers</h1>
<p>Some words of a sentence that is long enough to wrap on a narrow screen without any harm.</p>
<p class="short" title="A line that is too long for its box">A line that is too long for its box</p>
<div class="list"><button>One</button><p>Two<p>Three<p>Four<p><button>Five</button></div>
<div class="segments"><label><input type="radio" name="a">Left</label><label>
  <input type="radio" name="a">Right</label></div>
<label><input type="checkbox"> Keep</label> <input value="12" style="width: 80px">
<select><option>auto<option>a size</select>
<details><summary>More</summary><button>In</button></details>
<div style="position: relative; width: 64px; height: 64px"><canvas width="64" height="64"></canvas>
  <canvas width="64" height="64" data-paint="none" style="position: absolute; inset: 0"></canvas>
</div>
<img alt="" src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>
  <rect width='5' height='5' fill='red'/></svg>">
<div style="position: relative"><button style="width: 90px; height: 90px">Picture</button>
  <button style="position: absolute; top: 4px; left: 4px; width: 20px; padding: 0">x</button></div>
<div style="height: 900px"></div><button>Under the bar</button>
<div class="bar"><button id="main">Draw</button></div>"""
BROKEN = {
    "no size: button": '<button style="width: 0; padding: 0; border: 0"></button>',
    "no size: canvas.picture": '<canvas class="picture" style="width: 0; height: 0; position:'
                               ' absolute"></canvas>',
    "no size: p": '<p style="font-size: 0">Words</p>',
    'cut off: p.half "':
        '<div style="height: 10px; overflow: hidden"><p class="half">Words</p></div>',
    'cut off: p.long "': '<p class="long" style="width: 60px; overflow: hidden;'
                         ' white-space: nowrap">A line that is too long</p>',
    'cut off: p.dots "': '<p class="dots" style="width: 60px; overflow: hidden;'
                         ' white-space: nowrap; text-overflow: ellipsis">A line too long</p>',
    'cut off: button.spill "': '<button class="spill" style="width: 40px; white-space: nowrap">'
                               "Draw the next</button>",
    'cut off: button.below "': '<div style="height: 30px; overflow: hidden"><br>'
                               '<button class="below">Draw</button></div>',
    "cut off: input": '<input value="1234567890123456789" style="width: 60px">',
    "cut off: select": '<select style="width: 60px"><option>A model with a long name</select>',
    "cut off: textarea": '<textarea style="height: 20px; overflow: hidden">a\nb\nc\nd</textarea>',
    'cut off: div.menu "': '<div class="menu" style="position: fixed; top: 460px">One<br>Two<br>'
                           "Three</div>",
    'cut off: button.left "': '<button class="left" style="position: absolute; left: -20px">'
                              "Draw</button>",
    'overlap: button.one "': '<button class="one" style="width: 90px">One</button>'
                             '<button style="margin-left: -20px">Two</button>',
    'overlap: button.under "': '<button class="under">Under</button><div style="position: absolute;'
                               ' inset: 0">Over it</div>',
    "sideways: html": '<div style="width: 900px">Words</div>',
    'sideways: div.list "': '<div class="list" style="width: 100px; overflow: auto">'
                            '<div style="width: 300px">Words</div></div>',
    'sideways: p.far "': '<p class="far" style="margin-left: 460px; width: 90px">Some words</p>',
    "main control: button#main": '<div style="height: 600px"></div><button id="main">Draw</button>',
    "main control: body": '<button id="main" hidden>Draw</button>',
    "picture: canvas.empty: is empty": '<canvas class="empty" data-paint="none"></canvas>',
    "picture: canvas.flat: has one colour": '<canvas class="flat" data-paint="one"></canvas>',
    "picture: img.gone: is empty": '<img class="gone" width="20" height="20" alt="" src="data:,">',
    "focus: body": "<p>Nobody has it</p>",
}


@pytest.fixture(scope="module")
def page(chromium):
    with lent_page(chromium, {"width": 500, "height": 480}) as page:
        yield page


def show(page, body):
    page.set_content(f"<!doctype html><body>{body}{PAINT}", wait_until="load")


def test_a_clean_page_has_no_fault(page):
    show(page, CLEAN)
    page.focus("#main")
    assert faults(page, main=["#main"], after_key=True) == []


@pytest.mark.parametrize("line", BROKEN)
def test_each_fault_is_found_alone(page, line):
    show(page, BROKEN[line])
    found = faults(page, main=["#main"] if "main" in line else (), after_key="focus" in line)
    assert any(one.startswith(line) for one in found), found
    assert {one.partition(":")[0] for one in found} == {line.partition(":")[0]}, found


def test_one_colour_counts_in_an_image_too(page):
    from PIL import Image

    show(page, f'<img alt="" src="data:image/png;base64,{base64_png(Image.new("RGB", (9, 9)))}">')
    assert faults(page) == ["picture: img: has one colour"]


def test_under_an_open_dialog_only_the_dialog_counts(page):
    show(page, BROKEN["sideways: html"] + "<dialog><button>Close</button></dialog>")
    page.evaluate("document.querySelector('dialog').showModal()")
    assert [line for line in faults(page) if "div" in line] == []


def test_only_what_is_asked_for_is_looked_at(page):
    show(page, BROKEN["cut off: input"] + '<section id="mine"><button>Draw</button></section>')
    assert faults(page, root="#mine") == []
