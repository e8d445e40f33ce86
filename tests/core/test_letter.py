"""A picture as one HTML file: all is inside, words are text, and the picture keeps its recipe."""

import base64
import io
import json
import re
from datetime import datetime

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from test_recipe import recipe

from ssd_core.errors import SSDError
from ssd_core.output import letter as letters
from ssd_core.output.foreign import texts_of
from ssd_core.output.letter import FONTS, film, letter, written_size

DAY = datetime(2026, 11, 27)
HOSTILE = '<script>alert("1")</script> & \'$style\' </title>'


def picture(words=None, size=(48, 32), kind="PNG", **texts):
    """The bytes of a picture, blue at the top and red below; with a recipe if it has words."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[: size[1] // 2, :, 2] = pixels[size[1] // 2 :, :, 0] = 200
    info, file = PngInfo(), io.BytesIO()
    if words is not None:
        texts["ssd_recipe"] = json.dumps({**recipe(), "prompt": words})
    for name, text in texts.items():
        info.add_text(name, text)
    Image.fromarray(pixels).save(file, kind, **({"pnginfo": info} if kind == "PNG" else {}))
    return file.getvalue()


def sent(content, chinese=False):
    return letter(content, "x.png", DAY, chinese)


def inside(page, mime):
    """What is embedded as this kind, in order."""
    return [base64.b64decode(found) for found in re.findall(f"data:{mime};base64,([^\"]+)", page)]


def words_on(page):
    return re.search(r'<span class="words" dir="auto">(.*?)</span>', page, re.DOTALL)[1]


def test_all_is_inside_and_nothing_is_asked_of_a_network():
    page = sent(picture("a red house"))
    bare = re.sub(r"data:[\w/+]+;base64,[\w/+=]+", "data:", page)
    assert not re.search(r"https?:|//\w", bare.replace("// a picture", ""))
    addresses = re.findall(r'(?:src|href)="([^"]*)"', bare)
    assert len(addresses) >= 4 and {one[:5] for one in addresses} <= {"data:", "#arc"}
    assert "default-src 'none'" in bare and "unsafe" not in bare


def test_the_picture_is_inside_byte_for_byte():
    content = picture("a red house")
    assert inside(sent(content), "image/png") == [content]


def test_the_words_are_text_whatever_they_are():
    page = sent(picture(HOSTILE))
    assert page.count("<script>") == 1 and page.count("</title>") == 1
    assert words_on(page).startswith("&lt;script&gt;alert(&quot;1&quot;)")
    assert "$style" in words_on(page)


def test_the_back_says_what_drew_it_and_when_in_both_languages():
    content = picture("a red house")
    for chinese, said in ((False, ["Drawn by toy", "27 November 2026", "Seed 0"]),
                          (True, ["由 toy 绘制", "2026年11月27日", "种子 0"])):
        assert re.findall(r"<span>([^<]+)</span>", sent(content, chinese)) == said


def test_fonts_are_inside_for_the_letters_that_are_written():
    for words, names in (("a boat", {"caveat-latin"}),
                         ("Łódź", {"caveat-latin", "caveat-latin-ext"}),
                         ("маяк", {"caveat-latin", "caveat-cyrillic"}),
                         ("红色灯塔", {"caveat-latin", "long-cang"})):
        fonts = inside(sent(picture(words)), "font/woff2")
        assert fonts == [letters.font_file(name) for name, *_ in FONTS if name in names]
    for name, *_ in FONTS:
        licence = letters.ASSETS / "fonts" / f"{re.match('caveat|long-cang', name)[0]}-OFL.txt"
        assert "SIL Open Font License, Version 1.1" in licence.read_text(encoding="utf-8")


@pytest.mark.parametrize("ratio", [0.62, 1.0, 1.7])
def test_more_words_are_written_smaller_and_fit_their_place(ratio):
    sizes = [written_size("a red house " * n, ratio) for n in (1, 10, 40, 200)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 2 * sizes[2]
    assert sizes[-1] >= letters.SMALLEST


def test_a_picture_without_settings_and_one_of_another_program_are_sent_too():
    assert words_on(sent(picture())) == ""
    assert re.findall(r"<span>([^<]+)</span>", sent(picture())) == ["27 November 2026"]
    page = sent(picture(parameters="a boat\nSteps: 20, Sampler: Euler, Seed: 12"))
    assert words_on(page) == "a boat" and "Seed 12" in page
    graph = {"1": {"inputs": {"seed": 3, "positive": "half \ud800"}}}
    assert words_on(sent(picture(prompt=json.dumps(graph)))) == "half ?"
    assert words_on(sent(picture(ssd_recipe="{}"))) == "", "a damaged recipe tells nothing"


def test_what_browsers_do_not_show_and_what_is_too_large_becomes_webp_with_its_recipe(monkeypatch):
    assert inside(sent(picture(kind="TIFF")), "image/webp")[1][8:12] == b"WEBP"
    content = picture("a red house", (300, 200))
    monkeypatch.setattr(letters, "MOST_BYTES", len(content) - 1)
    monkeypatch.setattr(letters, "MOST_SIDE", 150)
    page = sent(content)
    assert inside(page, "image/png") == []
    with Image.open(io.BytesIO(inside(page, "image/webp")[1])) as smaller:
        assert smaller.size == (150, 100)
        assert json.loads(texts_of(smaller)["ssd_recipe"])["prompt"] == "a red house"


def test_what_is_no_picture_is_refused_by_name():
    with pytest.raises(SSDError, match="x.png: not a whole picture: give"):
        sent(b"no picture")


def test_the_film_shows_row_after_row_and_ends_with_the_picture():
    with Image.open(io.BytesIO(picture())) as image:
        whole = image.convert("RGB")
    with Image.open(io.BytesIO(film(whole, (4, 6)))) as moving:
        assert moving.info["loop"] == 1
        drawn = []
        for n in range(moving.n_frames):
            moving.seek(n)
            drawn.append(np.asarray(moving.convert("RGBA")))
    opaque = [int((frame[..., 3] == 255).sum()) for frame in drawn]
    assert opaque == sorted(opaque) and opaque[0] == 0 and opaque[-1] == 48 * 32
    rows = {int((frame[:, 0, 3] == 255).sum()) for frame in drawn}
    assert rows == {0, 8, 16, 24, 32}, "rows of cells, each at once"
    assert np.abs(drawn[-1][..., :3].astype(int) - np.asarray(whole)).mean() < 4


def test_a_large_picture_has_a_small_film_and_a_small_one_a_whole_one():
    for size, expected in (((2000, 1000), (512, 256)), ((3, 900), (2, 512)), ((1, 1), (1, 1))):
        with Image.open(io.BytesIO(film(Image.new("RGB", size), None))) as moving:
            assert moving.size == expected
