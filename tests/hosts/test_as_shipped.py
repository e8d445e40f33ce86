"""Every setting as people set it, on `postcard`, with nothing switched off. Step times are measured
and kept in a cache of this file's own. Each case ends in a picture or in one line.
"""

from __future__ import annotations

from itertools import islice

import pytest
from support.covering import legal_values, one_by_one, pairwise
from support.requests import requested

from ssd_core import Sampling, SSDError, kept_files
from ssd_core.backbones.estimates import Estimates, StoredStepTimes
from ssd_core.cli import generate as generating
from ssd_core.cli import main, session
from ssd_core.engine.methods import METHODS, Method, default_method
from ssd_core.output.knobs import sampling_knobs, visible_knobs
from ssd_core.output.recipe import read_recipe
from ssd_core.runs.request import Request, Result
from ssd_core.weights.downloads import Downloads
from ssd_core.weights.find import ASSETS
from ssd_core.weights.load import load_backbone, load_heads
from studio.history import History
from studio.jobs import Worker
from studio.library import Library
from studio.seeds import ParkedSeeds
from studio.services import Services

PROMPT = "a red house"
BEGUN = 3  # events of a run that is only begun
PATIENCE = 300  # s that a job of the app may take, however busy the machine is
SAMPLING = [(default_method().name, row) for row in one_by_one(sampling_knobs())]
KNOBS = [(name, row) for name, kind in METHODS.items() for row in one_by_one(visible_knobs(kind))]


def pairs(name: str) -> list[dict]:
    """Settings of a method and of sampling, in which every two values meet."""
    knobs = (*visible_knobs(METHODS[name]), *sampling_knobs())
    return pairwise({knob.name: legal_values(knob) for knob in knobs}, seed=len(name))


def split(name: str, row: dict) -> tuple[Method, Sampling]:
    """The method and the sampling of a row; knobs that are None keep their own value."""
    given = {key: value for key, value in row.items() if value is not None}
    own = {knob.name for knob in sampling_knobs()}
    return (METHODS[name](**{key: given[key] for key in given if key not in own}),
            Sampling(**{key: given[key] for key in given if key in own}))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache folder as a user has it."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kept_files.VARIABLE, str(folder))
        yield folder


@pytest.fixture(scope="module")
def loaded(cache):
    """The bundled backbone and its heads, loaded once."""
    backbone = load_backbone(ASSETS / "postcard", "cpu", estimates=Estimates.stored_in(cache))
    return backbone, load_heads(ASSETS / "postcard", backbone)


@pytest.fixture(scope="module")
def client(cache, tmp_path_factory):
    """The app's endpoints, with what it is started with."""
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    from support.studio_client import serving

    output, models = tmp_path_factory.mktemp("outputs"), tmp_path_factory.mktemp("models")
    library = Library(models, "postcard", device="cpu",
                      estimates=Estimates.stored_in(cache))
    history, worker = History(output), Worker()
    client = serving(Services(worker, library, history, ParkedSeeds(library, history),
                              Downloads(models)))
    client.worker = worker
    yield client
    worker.close()


def refusal(error: object) -> str:
    """A line that can be shown, of a length that can be read."""
    line = str(error)
    assert line and "\n" not in line and line.isprintable() and len(line) <= 300, line
    return line


# In Python


def request_of(loaded, name: str, row: dict, **options) -> Request | str:
    """The request with its plan and choice, as far as a host reads them before it draws."""
    try:
        request = requested(*loaded, *split(name, row), PROMPT, expand=True, **options)
        request.check()
        assert request.plan.passes_max > 0
    except SSDError as error:
        return refusal(error)
    assert request.tuning.cost is None or request.tuning.cost.seconds > 0
    return request


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.by_day(5)
def test_every_setting_can_be_asked_for_in_python(loaded, name):
    for row in one_by_one((*visible_knobs(METHODS[name]), *sampling_knobs())):
        request_of(loaded, name, row)
    every_other = pairs(name)
    asked = [request_of(loaded, name, row) for row in every_other]
    assert any(isinstance(request, Request) for request in asked)


@pytest.mark.nightly
@pytest.mark.parametrize("pictures", [1, 2, 64])
@pytest.mark.parametrize("cfg", [1.0, None])
def test_every_size_and_number_of_pictures_is_timed(loaded, cfg, pictures):
    for size in loaded[0].sizes:
        for name in ("exact", "ssd"):
            request = request_of(loaded, name, {"cfg": cfg}, size=size, pictures=pictures)
            assert request.tuning.ar, "64 pictures are timed for AR's passes at least"


@pytest.mark.parametrize("name", [*METHODS][::-1])
@pytest.mark.by_day(1)
def test_a_row_of_odd_settings_is_drawn(loaded, name):
    asked = [request_of(loaded, name, row) for row in pairs(name)]
    request = min((each for each in asked if isinstance(each, Request)),
                  key=lambda each: each.plan.passes_max)
    picture = next(Result(request).run().pictures()).pixels
    assert tuple(picture.shape[:2]) == request.sized.size[::-1] and picture.std() > 0.01


# On the command line


@pytest.fixture
def ssd(loaded, tmp_path, monkeypatch, capsys):
    """Run `ssd generate`; the weights are loaded once, and a run is only begun unless `drawn`."""
    def load(path, estimates=None, **options):
        loaded[0].estimates = estimates
        return loaded[0]

    def begin(result, label):
        for event in islice(result.request.events(), BEGUN):
            result.take(event)
        raise KeyboardInterrupt

    def run(*flags, drawn=False):
        with monkeypatch.context() as patch:
            patch.setattr(session, "load_backbone", load)
            patch.setattr(session, "load_heads", lambda path, backbone: loaded[1])
            if not drawn:
                patch.setattr(generating, "decode", begin)
            code = main(["generate", PROMPT, "--out", str(tmp_path / "x.png"), *flags])
        return code, capsys.readouterr().err.splitlines()

    before = loaded[0].estimates
    yield run
    loaded[0].estimates = before


def flags(name: str, row: dict) -> list[str]:
    """A row as a person types it; a value of its own is left out."""
    given = ["--method", name]
    for key, value in row.items():
        flag = key.replace("_", "-")
        if isinstance(value, bool):
            given.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            given += [f"--{flag}", str(value)]
    return given


def ends_well(code: int, lines: list[str]) -> bool:
    """Begun and interrupted, or refused in one line."""
    if code == 2:
        refusal(lines[-1].removeprefix("error: "))
        return sum(line.startswith("error: ") for line in lines) == 1
    return code == 130 and lines[-1] == "interrupted"


@pytest.mark.parametrize(("name", "row"), SAMPLING + KNOBS)
@pytest.mark.by_day(12)
def test_every_flag_is_accepted_or_refused_in_one_line(ssd, name, row):
    assert ends_well(*ssd(*flags(name, row)))


@pytest.mark.nightly
@pytest.mark.parametrize("name", METHODS)
def test_pairs_of_flags_are_accepted_or_refused_in_one_line(ssd, name):
    ended = {str(row): ssd(*flags(name, row)) for row in pairs(name)}
    assert not {row: end for row, end in ended.items() if not ends_well(*end)}


def test_without_guidance_a_picture_is_drawn_and_its_recipe_draws_it_again(ssd, tmp_path):
    code, lines = ssd("--cfg", "1", drawn=True)
    assert code == 0, lines
    first = read_recipe(tmp_path / "x.png")
    assert first["cfg"] == 1
    code, lines = ssd("--like", str(tmp_path / "x.png"), drawn=True)
    assert code == 0 and read_recipe(tmp_path / "x.png")["tokens"] == first["tokens"], lines


# In the app


def as_sent(name: str, row: dict) -> dict:
    """Settings as the page sends them."""
    return {"prompt": PROMPT, "method": name, **row}


def planned(client, name: str, row: dict) -> str | None:
    """What is wrong with the answer to a plan; None if it is a line or a refusal."""
    answer = client.post("/api/plan", json={"settings": as_sent(name, row)})
    told = answer.json()
    if answer.status_code == 400:
        return None if refusal(told["error"]) else answer.text
    if answer.status_code != 200:
        return answer.text
    return None if refusal(told["problem"] or told["text"]) else answer.text


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.by_day(3)
def test_every_setting_has_a_plan_in_the_app(client, name):
    rows = [*one_by_one((*visible_knobs(METHODS[name]), *sampling_knobs())), *pairs(name)]
    wrong = {str(row): answer for row in rows if (answer := planned(client, name, row))}
    assert not wrong


def ended(client, answer) -> dict | str:
    """The job when it is over, or the line that refused it."""
    if answer.status_code == 400:
        return refusal(answer.json()["error"])
    assert answer.status_code == 200, answer.text
    job = client.worker.job(answer.json()["id"])
    if not (in_time := job.wait(PATIENCE)):
        job.cancel()  # the next case must not wait for it
    assert in_time, "a hang"
    return client.get(f"/api/jobs/{answer.json()['id']}").json()


def is_ended_well(job: dict | str) -> bool:
    """A picture, or one line."""
    if isinstance(job, str):
        return True
    if job["state"] == "failed":
        return bool(refusal(job["error"]))
    return job["state"] == "done" and len(job["saved"]) == 1


def test_without_guidance_a_picture_is_drawn_in_the_app(client):
    settings = as_sent(default_method().name, {"cfg": 1.0})
    job = ended(client, client.post("/api/draw", json={"settings": settings}))
    assert not isinstance(job, str) and job["state"] == "done" and job["saved"], job


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "row"), SAMPLING + KNOBS)
def test_settings_at_their_ends_are_drawn_in_the_app(client, name, row):
    assert is_ended_well(ended(client, client.post(
        "/api/draw", json={"settings": as_sent(name, row)})))


def test_nothing_was_switched_off(cache, loaded):
    """The step times of this file's runs were measured and kept."""
    request_of(loaded, default_method().name, {})
    assert StoredStepTimes(cache).entries
