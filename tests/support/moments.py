"""Moments of the app in which one looks at it: reached in one long visit, as a person would.

The app is as shipped: the real model, estimates on, a cache and a history of its own. Runs are held
in mid-run. Knows the app's page, nothing of what is looked for.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from ssd_core import kept_files

from .page_moments import laid_out
from .studio_visit import App, Visitor, served

PROMPTS = {"en": "a red house on the left, on a lake, hills behind, at sunset",
           "zh": "左边一座红色的房子，在湖上，后面有山丘，日落时分"}
OTHERS = {"en": "a blue house on the left, on a lake, hills behind, at sunset",
          "zh": "左边一座蓝色的房子，在湖上，后面有山丘，日落时分"}
UNKNOWN = {"en": "a red hous near a zzxq, a dog, no trees, {at noon|at night}",
           "zh": "红色的房子，恐龙，没有树，{中午|夜晚}"}
DROP = """async ([base64, name, type]) => {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name, { type }));
  for (const kind of ["dragover", "drop"]) {
    const drag = new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true });
    document.body.dispatchEvent(drag);
  }
}"""
# The number of rows that the first picture on a stage says it has.
ROWS_SAID = """([stage, row]) => {
  const said = document.querySelector(`${stage} .ssd-summary`)?.innerText.match(/\\d+/);
  return said && Number(said[0]) >= row;
}"""


# Whether what there is in the window of images has come, or has failed to.
SEEN = """() => [...document.images].every((image) => {
  const { top, bottom } = image.getBoundingClientRect();
  return image.complete || bottom < 0 || top > innerHeight || !image.checkVisibility();
})"""


@dataclass(frozen=True)
class Screen:
    """A size of the window; those with touch need a visit of their own."""

    width: int
    height: int
    touch: bool = False

    @property
    def name(self) -> str:
        return f"{self.width}x{self.height}"

    @property
    def viewport(self) -> dict[str, int]:
        return {"width": self.width, "height": self.height}


DESK = (Screen(1366, 768), Screen(1920, 1080))
TABLET = (Screen(768, 1024, touch=True),)
PHONE = (Screen(390, 844, touch=True), Screen(320, 640, touch=True))
SCHEMES = ("light", "dark")
LANGUAGES = {"en": "en-GB", "zh": "zh-CN"}


@dataclass(frozen=True)
class Moment:
    """What the page shows now, the controls that are needed, and whether a key led there."""

    name: str
    main: tuple[str, ...] = ()
    after_key: bool = False


@contextmanager
def as_shipped(folder: Path) -> Iterator[App]:
    """The app as users start it, measuring its step times in a cache of its own."""
    with patch.dict(os.environ, {kept_files.VARIABLE: str(folder / "cache")}):
        with served(folder) as app:
            yield app


def context(language: str, screen: Screen) -> Mapping[str, object]:
    """Options of the browser's context for a visit in this language on such a screen."""
    touch = {"has_touch": True, "is_mobile": True} if screen.touch else {}
    return {"locale": LANGUAGES[language], "viewport": screen.viewport, **touch}


def looks(page, screens, schemes) -> Iterator[str]:
    """Show the moment on each of these screens and in these colours; ends as it began."""
    for screen in screens:
        page.set_viewport_size(screen.viewport)
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(SEEN)
            laid_out(page)
            yield f"{screen.name} {scheme}"
    page.set_viewport_size(screens[0].viewport)
    page.emulate_media(color_scheme=schemes[0])
    laid_out(page)


def moments(visitor: Visitor, app: App, language: str, touch: bool) -> Iterator[Moment]:
    """All moments, in the order of a visit."""
    walk = Walk(visitor, app, language, touch)
    for part in (walk.words, walk.run, walk.queue, walk.error, walk.replay, walk.edit, walk.race,
                 walk.seeds, walk.history, walk.models, walk.drop):
        yield from part()


class Walk:
    """One visit: each method leads on from where the one before ended."""

    def __init__(self, visitor: Visitor, app: App, language: str, touch: bool) -> None:
        self.visitor, self.page, self.app = visitor, visitor.page, app
        self.language, self.touch = language, touch
        self.prompt = PROMPTS[language]

    def press(self, name: str) -> None:
        """A finger or a mouse, whichever the visitor has."""
        if self.touch:
            self.page.tap(name)
        else:
            self.page.click(name)

    def shown(self, name: str) -> None:
        self.page.wait_for_selector(name)

    def rows(self, row: int, stage: str = "#create-stage") -> None:
        self.page.wait_for_function(ROWS_SAID, arg=[stage, row])

    def words(self) -> Iterator[Moment]:
        self.shown("#plan:not(:empty)")
        yield Moment("first visit", main=("#draw", "#prompt"))
        self.page.fill("#prompt", UNKNOWN[self.language])
        self.shown(".prompt-layer mark")
        self.shown("#prompt-notes p")
        self.shown("#draw-all")
        yield Moment("unknown words", main=("#draw",))

    def draw(self) -> bool:
        """Ask for a picture; whether by the keyboard."""
        self.page.fill("#prompt", self.prompt)
        with self.page.expect_response("**/api/draw"):
            if self.touch:
                self.page.tap("#draw")
            else:
                self.page.press("#prompt", "Control+Enter")
        return not self.touch

    def run(self) -> Iterator[Moment]:
        with self.app.holding(5) as hold:
            by_key = self.draw()
            hold.to(5)
            self.rows(5)
            yield Moment("mid-run, row 5", main=("#stop",), after_key=by_key)
            hold.to(18)
            self.rows(18)
            yield Moment("mid-run, row 18", main=("#stop",))
            self.press("#stop")
            self.shown("#keep-top")
        yield Moment("stopped", main=("#draw", "#keep-top"))

    def queue(self) -> Iterator[Moment]:
        with self.app.holding(3) as hold:
            self.draw()
            hold.to(3)
            for _ in range(3):
                self.draw()
            self.press("#queue-open")
            self.shown("#queue .queued >> nth=2")
            yield Moment("three in the queue", main=("#stop",))
            with self.page.expect_response("**/move"):
                self.page.press("#queue .queued >> nth=1 >> [data-act=up]", "Enter")
            laid_out(self.page)
            yield Moment("moved in the queue", main=("#stop",), after_key=True)
            self.press("#queue-clear")
            self.page.wait_for_selector("#queue", state="hidden")
        self.shown("#create-stage [data-state=done]")
        self.shown("#tools [data-tool=vary]")
        self.shown("#filmstrip button")
        yield Moment("drawn", main=("#draw",))

    def error(self) -> Iterator[Moment]:
        self.visitor.type_half_a_character()
        self.press("#draw")
        self.shown("#plan.bad")
        yield Moment("an error", main=("#draw",))
        self.page.fill("#prompt", self.prompt)

    def replay(self) -> Iterator[Moment]:
        self.press("#more-tools")
        yield Moment("the menu of a picture")
        self.press("[data-tool=replay]")
        self.shown(".scrubber input")
        self.page.wait_for_function("() => document.querySelector('.scrubber input').value > 400")
        yield Moment("Replay playing", main=(".play",))
        self.press("#more-tools")
        self.press("[data-tool=replay]")
        self.page.wait_for_selector(".scrubber", state="detached")

    def edit(self) -> Iterator[Moment]:
        self.shown("#create-stage .edit")
        self.page.fill("#prompt", OTHERS[self.language])
        self.shown(".edit-legend")
        yield Moment("Edit, by words", main=("#edit-apply",))
        self.page.fill("#prompt", self.prompt)
        self.page.wait_for_selector(".edit-legend", state="hidden")
        self.page.press("#prompt", "Tab")
        self.page.keyboard.press("b")
        self.paint()
        self.shown("#edit-apply:enabled")
        yield Moment("Edit, painted", main=("#edit-apply",))
        self.press("#edit-apply")
        self.shown("#steps button >> nth=1")
        self.page.wait_for_selector(".mask-field[data-busy]", state="detached")
        yield Moment("Edit, applied")
        self.page.keyboard.press("Control+z")
        self.shown("#steps button[aria-pressed=true] >> nth=0")
        self.shown("#edit-apply:enabled")
        yield Moment("Edit, undone", main=("#edit-apply",), after_key=True)

    def paint(self) -> None:
        self.page.locator(".mask-field").evaluate(
            "(field) => field.scrollIntoView({ block: 'center' })")
        laid_out(self.page)
        box = self.page.locator(".mask-field").bounding_box()
        places = [(box["x"] + x * box["width"], box["y"] + 0.5 * box["height"])
                  for x in (0.3, 0.6)]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        self.page.mouse.move(*places[1], steps=4)
        self.page.mouse.up()

    def race(self) -> Iterator[Moment]:
        self.page.fill("#prompt", self.prompt)
        self.visitor.go("race")
        for n, racer in enumerate(("balanced", "fast")):
            self.page.locator(".racer select").nth(n).select_option(racer)
        with self.app.holding(9) as hold:
            self.press("#race-start")
            hold.to(9)
            self.page.wait_for_function(
                "() => document.querySelectorAll('#race-stage .ssd-panel').length === 2")
            yield Moment("Race, mid-run", main=("#race-stop",))
        self.shown("#race-result")
        yield Moment("Race, done", main=("#race-start",))

    def seeds(self) -> Iterator[Moment]:
        self.visitor.go("seeds")
        yield Moment("Seeds, before", main=("#seeds-start",))
        self.page.locator("#seeds-count").fill("4")
        self.press("label:has(input[value=third])")
        self.press("#seeds-start")
        self.shown(".seed[data-state=paused] >> nth=3")
        self.press(".seed[data-state=paused] >> nth=1")
        self.shown("#seeds-finish:enabled")
        self.page.wait_for_function("""() => [
          ...document.querySelectorAll(".seed canvas.ssd-pixels")].every((canvas) => canvas.width
            && canvas.getContext("2d").getImageData(0, 0, canvas.width, 1).data.some(Boolean))""")
        yield Moment("Seeds, ticked", main=("#seeds-finish",))

    def history(self) -> Iterator[Moment]:
        self.visitor.go("history")
        self.shown(".picture-open >> nth=1")
        yield Moment("History")
        self.press(".picture-open >> nth=1")
        self.shown("#picture-panel img")
        yield Moment("History, a picture", main=("[data-action=restore]",))

    def models(self) -> Iterator[Moment]:
        self.visitor.go("models")
        self.shown("[data-model=postcard] .fit:not(:empty)")
        yield Moment("Models")
        self.visitor.go("doctor")
        self.shown("#doctor-report:not(:empty)")
        yield Moment("Doctor")

    def drop(self) -> Iterator[Moment]:
        self.visitor.go("create")
        self.page.fill("#prompt", "")
        file = base64.b64encode(self.app.pictures[0].read_bytes()).decode()
        self.page.evaluate(DROP, [file, "house.png", "image/png"])
        self.shown(".toast")
        yield Moment("a dropped file", main=("#draw",))
