"""A run of the bundled model on the preview's page: what stands on the canvas while it is drawn."""

from contextlib import closing

import pytest
from support.live_canvas import COARSE, blinds, canvas_of, decoded, faults, known
from support.preview_run import opening
from support.requests import requested

from ssd_core import Sampling, load_backbone
from ssd_core.engine.methods import METHODS
from ssd_core.output.palette import palette
from ssd_core.runs.live import LiveRun

PROMPT = "a red house on the left, a lake, at sunset"
ROWS = (5, 18)  # of 24
FEED = """async (messages) => {
  window.preview ??= mount({}, "width: 400px");
  for (const message of messages) preview.feed(message);
  await preview.settled();
}"""


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("postcard", device="cpu")


def told(run, messages):
    """What a run has told when so many rows are final, for each of ROWS; then all of it."""
    with closing(run):
        for rows in ROWS:
            while run.result.rows < rows:
                next(run)
            yield list(messages)
        for _ in run:
            pass
    yield list(messages)


@pytest.fixture(scope="module")
def drawn(backbone):
    """The messages of a run at some moments, and its tokens."""
    messages = []
    palette(backbone).glances = False  # soft colours, as of models without a quicker way
    request = requested(backbone, None, METHODS["rolling"](), Sampling(seed=7), PROMPT)
    run = LiveRun(request, send=messages.append)
    moments = list(told(run, messages))
    return moments, run.result.tokens[0]


def looked_at(page, backbone, moments, tokens):
    """The faults at each moment, while messages come as in a run."""
    picture, fed = decoded(backbone, tokens), 0
    for messages in moments:
        page.evaluate(FEED, messages[fed:])
        fed = len(messages)
        yield faults(canvas_of(page, ".ssd-pixels"), known(messages), picture)


def test_in_mid_run_every_known_cell_is_whole_and_in_its_place(
        chromium, address, backbone, drawn):
    moments, tokens = drawn
    with opening(chromium, address) as open_one:
        page = open_one()
        assert known(moments[0]).sum() >= 3 * 24, "too little was told to look at"
        assert list(looked_at(page, backbone, moments, tokens)) == [[], [], []]
        page.route(COARSE, blinds)
        page.reload()
        page.wait_for_function("() => window.mount")
        blind = list(looked_at(page, backbone, moments[:1], tokens))
    assert blind[0], "the fault that was once there is not seen"
