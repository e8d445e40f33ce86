"""Values that no page sends: each ends in one SSDError, whatever it is."""

from types import SimpleNamespace

import pytest
from support.coroutines import result_of

gr = pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from inspect import unwrap  # noqa: E402

from studio.page import Visit, build, ids_in  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from studio.downloads import Downloads  # noqa: E402
from studio.history import History  # noqa: E402
from studio.jobs import Worker  # noqa: E402
from studio.library import Library  # noqa: E402
from studio.payloads import action_picture  # noqa: E402
from studio.seeds import ParkedSeeds  # noqa: E402
from studio.services import Services  # noqa: E402
from studio.settings import Settings  # noqa: E402

REQUEST = SimpleNamespace(session_hash="me", headers={})
HOSTILE = (None, 5, -1, "x", "", [], {}, [[]], True, 1e999, "\ud800")


@pytest.fixture(scope="module")
def tabs(models, tmp_path_factory):
    """The tabs by name, once: building them takes longer than all tests."""
    library, worker = Library(models, "tiny", device="cpu"), Worker()
    history = History(tmp_path_factory.mktemp("outputs"))
    services = Services(worker, library, history, ParkedSeeds(library, history), Downloads(models))
    owners = (getattr(unwrap(fn.fn), "__self__", None) for fn in build(services).fns.values()
              if fn.fn)
    yield {type(one).__name__: one for one in owners}
    worker.close()


def calls(tabs, value):
    """Handlers by name, each as a request with this value would call it."""
    knobs = tabs["Controls"].values_of(Settings(prompt="a sun"))
    return {
        "restore": lambda: tabs["HistoryTab"].restore_file(value, REQUEST),
        "upload": lambda: tabs["Redo"].show_upload(value, "a sun", "", REQUEST),
        "wish to redo": lambda: tabs["Redo"].open_picture(value, "a sun", "", REQUEST),
        "wish to vary": lambda: tabs["Seeds"].vary(REQUEST, value, 2, "third", {}, *knobs),
        "part": lambda: tabs["Seeds"].begin(REQUEST, 2, value, {}, True, *knobs),
        "ticked": lambda: tabs["Seeds"].complete(value, {}, True, REQUEST),
        "knobs": lambda: tabs["Create"].run(REQUEST, True, True, *[value] * len(knobs)),
        "racers": lambda: tabs["Race"].run(REQUEST, *[value or 1] * 6, True, True, *knobs),
        "speed": lambda: tabs["Controls"].at_speed(value),
        "example": lambda: tabs["Controls"].example(value, REQUEST)}


async def all_of(handler):
    return [one async for one in handler]


def refusal(call):
    """The line of the SSDError that a call raises; empty if it answers."""
    try:
        answer = call()
        if hasattr(answer, "__aiter__"):
            result_of(all_of(answer))
    except SSDError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_a_hostile_value_ends_in_one_line_that_can_be_sent(tabs, value):
    for name, call in calls(tabs, value).items():
        told = refusal(call)
        assert "\n" not in told and told.isprintable(), name
    assert "in this program" not in (tabs["Create"].services.worker.last_error or "")


@pytest.mark.parametrize("text", [None, "{}", "[1]", '{"value": 5}', '{"value": {"id": 5}}',
                                  '{"value": {"id": "x", "seed": "y"}}', "[" * 9999])
def test_a_wish_that_nobody_wrote_is_refused(text):
    with pytest.raises(SSDError):
        action_picture(text)


@pytest.mark.parametrize(("text", "ids"), [
    ('["a", "b"]', ["a", "b"]), ('["a", 5]', ["a"]), ("{}", []), ("?", []), (None, []),
    ("[" * 9999, [])])
def test_what_a_page_left_is_read_only_as_ids(text, ids):
    assert ids_in(text) == ids


def test_a_page_whose_run_was_lost_with_the_server_says_so(tabs):
    visit = Visit(tabs["Create"].services)
    services, skipped = visit.services, gr.skip()
    known = services.worker.submit("draw", lambda job: None, "me")
    assert visit.attach("t", f'["{known.id}"]', REQUEST)[1] == skipped
    assert visit.attach("t", "[]", REQUEST)[1] == skipped
    assert "The server was restarted" in visit.attach("t", '["of the last server"]', REQUEST)[1]
