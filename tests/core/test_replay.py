"""A run replayed from the messages of its preview, and the film of it."""

import base64
import io
import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssd_core.errors import SSDError
from ssd_core.output import preview, replay
from ssd_core.output import replay as film

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "hosts" / "web" / "samples"


def messages(name):
    return json.loads((SAMPLES / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def shots():
    return list(replay.moments(messages("sampler"), overlay=True))


def test_rows_stay_once_painted_and_the_last_moment_is_the_finished_picture(shots):
    plain = list(replay.moments(messages("sampler")))
    ground = [(moment.picture == replay.GROUND).all(-1).mean() for moment in plain]
    assert ground[0] > 0.9 and ground[-1] == 0 and ground == sorted(ground, reverse=True)
    final = Image.open(io.BytesIO(base64.b64decode(
        messages("sampler")[-2]["strips"][0]))).convert("RGB")
    assert (plain[-1].picture == np.asarray(final)).all()
    assert (shots[-1].picture != plain[-1].picture).any(), "the overlay is still there at the end"


def drawn_cells(moment):
    """Where something is drawn at a moment, [H, W], without the pen's line."""
    return ((moment.picture != replay.GROUND) & (moment.picture != replay.PEN)).any(-1)


def test_what_is_drawn_at_a_moment_looks_as_in_the_finished_picture():
    sent = messages("sampler")
    coarse = [m for m in sent if m["kind"] == "rows" and not m["refined"]]
    assert len(coarse) > 20
    shots = list(replay.moments(sent))
    assert len({int(drawn_cells(moment).sum()) for moment in shots}) > 5
    for moment in shots:
        assert (moment.picture[drawn_cells(moment)] == shots[-1].picture[drawn_cells(moment)]).all()


def test_cells_of_a_row_in_flight_look_as_in_the_finished_picture():
    *sent, finished_rows, _ = messages("sampler")
    whole = replay.rgba(finished_rows["strips"][0])
    cells = np.zeros((8, 192, 4), np.uint8)
    cells[:, 80:96] = 200, 10, 10, 255
    strip = {**finished_rows, "kind": "cells", "strips": [preview.png(cells)], "top": 40}
    early = [sent[0], strip, {**finished_rows, "seconds": 1.0}]
    first = next(replay.moments(early)).picture
    assert (first[40:48, 80:96] == whole[40:48, 80:96, :3]).all()
    assert (first[48:] == replay.GROUND).all() and (first[:, :80] == replay.GROUND).all()


def test_a_stopped_run_looks_as_it_was_decoded_and_coarse_below():
    *sent, finished_rows, _ = messages("sampler")
    whole = replay.rgba(finished_rows["strips"][0])[..., :3]
    half = {**finished_rows, "last": 12, "strips": [preview.png(whole[:96])], "seconds": None}
    stopped = list(replay.moments([*sent[:-10], half]))
    plain = list(replay.moments(sent[:-10]))
    coarse = [shots[len(shots) // 2].picture for shots in (stopped, plain)]
    assert (coarse[0] != coarse[1]).any()
    mask = drawn_cells(stopped[-1])
    assert (stopped[-1].picture[:96] == whole[:96]).all() and mask[96:].any()
    below = slice(96 + 8, None)  # in the half row above it, soft colours blend with decoded ones
    assert (stopped[-1].picture[below] == plain[-1].picture[below]).all()


def test_a_film_takes_as_long_as_its_run_and_stays_at_the_end(shots):
    ran = messages("sampler")[-1]["seconds"]
    assert sum(moment.seconds for moment in shots) == pytest.approx(ran + replay.HOLD, abs=0.2)
    assert shots[-1].seconds >= replay.HOLD
    short = list(replay.moments(messages("sampler"), length=1.0, fps=4))
    assert len(short) <= 4
    assert sum(moment.seconds for moment in short) == pytest.approx(1 + replay.HOLD)


def test_pictures_of_a_race_stand_side_by_side():
    race = list(replay.moments(messages("race"), length=1.0, fps=3))
    height, width, _ = race[0].picture.shape
    assert width == 2 * height + replay.GAP


def test_a_run_whose_start_was_not_kept_is_refused():
    with pytest.raises(SSDError, match="nothing to replay"):
        list(replay.moments(messages("sampler")[1:]))


def test_the_tints_are_those_of_the_live_preview():
    source = (ROOT / "web" / "preview" / "drawing.js").read_text()
    for name in ("SKY", "ORANGE", "BLACK", "WHITE", "GREY", "NONE"):
        numbers = re.search(rf"const {name} = \[([\d, ]+)\]", source)[1]
        assert tuple(map(int, numbers.split(","))) == getattr(replay, name)


def test_a_finished_picture_grows_row_by_row():
    picture = np.full((24, 12, 3), 200, np.uint8)
    steps = list(replay.grown(picture, rows=6, first=2))
    assert len(steps) == 5 and (steps[-1].picture == picture).all()
    assert (steps[0].picture[9:] == replay.GROUND).all()


def test_a_webp_has_every_moment(shots):
    with Image.open(io.BytesIO(film.webp(shots[::12]))) as moving:
        assert moving.n_frames == len(shots[::12]) and moving.size == (192, 192)


@pytest.mark.skipif(find_spec("av") is None, reason="needs the package av (the extra `video`)")
def test_an_mp4_plays_as_long_and_has_even_sides(shots):
    import av

    odd = [replay.FilmFrame(moment.picture[:-1, :-1], 0.25) for moment in shots[:4]]
    with av.open(io.BytesIO(film.mp4(odd))) as video:
        pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(pictures) == film.FPS and pictures[0].shape == (192, 192, 3)


def test_without_av_it_says_what_to_install(shots, monkeypatch):
    monkeypatch.setattr(film, "find_spec", lambda name: None)
    with pytest.raises(SSDError, match="pip install av"):
        film.mp4(shots)


def test_strips_of_half_the_width_fill_the_picture():
    *sent, finished_rows, end = messages("sampler")
    large = {**finished_rows, "strips": [preview.png(enlarged(strip)) for strip
                                         in finished_rows["strips"]]}
    started = {**sent[0], "width": 2 * sent[0]["width"], "height": 2 * sent[0]["height"]}
    rest = [{**message, "top": 2 * message["top"]} if "top" in message else message
            for message in sent[1:]]
    shots = list(replay.moments([started, *rest, large, end]))
    plain = list(replay.moments([*sent, finished_rows, end]))
    assert len(shots) == len(plain)
    for moment, small in zip(shots, plain, strict=True):
        middle = slice(None, None, 2)
        drawn = drawn_cells(small)
        assert (moment.picture[middle, middle][drawn] == small.picture[drawn]).all()
    stopped = list(replay.moments([started, *rest]))[-1].picture
    usual = list(replay.moments(sent))[-1].picture
    off = stopped.reshape(192, 2, 192, 2, 3).mean((1, 3)) - usual
    assert stopped.shape == (384, 384, 3) and np.abs(off).mean() < 2


def enlarged(strip):
    return replay.rgba(strip)[..., :3].repeat(2, 0).repeat(2, 1)


def started(rows, columns, patch=16):
    return {"rows": rows, "columns": columns, "width": patch * columns, "height": patch * rows,
            "pictures": 1}


def rows(first, last, colours, **fields):
    """A message with a strip of some rows, of any scale; colours [h, w, 3 or 4]."""
    return {"kind": "rows", "first": first, "last": last, "top": 16 * first,
            "strips": [preview.png(colours)], "refined": False, **fields}


def test_rows_that_are_not_decoded_are_soft_and_end_where_they_end():
    """As on the page: colours blend from cell to cell, and cover nothing else."""
    canvas = replay.ReplayCanvas(started(6, 4))
    ramp = np.repeat(np.linspace(80, 240, 4 * 4).astype(np.uint8).reshape(4, 4)[..., None], 3, 2)
    canvas.take(rows(0, 1, np.repeat(np.repeat(ramp[:1], 16, 0), 16, 1), refined=True))
    canvas.take(rows(1, 3, ramp[1:3]))
    clear = np.dstack((ramp[3:], [[255, 255, 0, 0]])).astype(np.uint8)
    canvas.take({**rows(3, 4, clear), "kind": "cells"})
    picture, = canvas.seen(overlay=False)
    below = picture[16:48].astype(int)
    assert (picture[8] == ramp[0].repeat(16, 0)).all(), "decoded rows keep their pixels"
    assert (np.abs(below[8::16, 8::16] - ramp[1:3]) < 12).all()
    assert np.abs(np.diff(below, axis=1)).max() < 8 and np.abs(np.diff(below, axis=0)).max() < 8
    drawn = picture[49:64] != replay.GROUND
    assert drawn[:, :32].all() and not drawn[:, 32:].any() and (picture[64:] == replay.GROUND).all()
