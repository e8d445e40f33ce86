"""Pictures of the app's places for the README, from the app itself in a headless Chromium.

The pictures show the path of the app's output folder: choose one that may be public.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

import stills
from PIL import Image
from playwright.sync_api import Page
from preview_page import browser

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "lab" / "benchmarks"), str(ROOT / "tests")]

from soak import PATIENCE, draw, go, race, seeds  # noqa: E402
from support.moments import ROWS_SAID, as_shipped  # noqa: E402
from support.page_moments import laid_out  # noqa: E402
from support.studio_visit import App  # noqa: E402

WIDTH, TALLEST = 960, 1100  # px as saved
HALF = 12  # rows of 24


PROMPTS = ("castle in the mountains", "lighthouse at night", "yellow tent under the stars",
           "a windmill in a wheat field", "a red house and a blue boat", "a red house by the sea")


def ask(page: Page, prompt: str, seed: int) -> None:
    page.fill("#prompt", prompt)
    page.fill("#seed", str(seed))
    page.press("#seed", "Tab")


def create(page: Page, app: App, path: Path) -> None:
    """Save the page in mid-run: five pictures are there, the sixth is half drawn."""
    for prompt in PROMPTS[:-1]:
        ask(page, prompt, 0)
        draw(page)
    page.wait_for_selector("#filmstrip button >> nth=4")
    ask(page, PROMPTS[-1], 0)
    with app.holding(HALF) as hold:
        page.click("#draw")
        hold.to(HALF)
        page.wait_for_function(ROWS_SAID, arg=["#create-stage", HALF])
        laid_out(page)
        save(page, path)
    page.wait_for_selector("#filmstrip button >> nth=5")


def all_qualities(page: Page) -> None:
    go(page, "create")
    ask(page, PROMPTS[0], 0)
    go(page, "race")
    page.get_by_role("button", name="All qualities").click()
    race(page)


def edit(page: Page) -> None:
    go(page, "create")
    page.locator("#filmstrip button").first.click()
    page.hover(".mask-field")
    page.locator(".touch-things button", has_text="house").press("Enter")
    page.locator(".touch-chip", has_text="blue").focus()
    page.wait_for_selector(".edit-legend", timeout=PATIENCE)


def finished_seeds(page: Page) -> None:
    """Eight seeds, two of them finished."""
    go(page, "create")
    ask(page, PROMPTS[1], 1)
    seeds(page)
    for tile in (2, 5):
        page.locator("#seeds-grid .seed-label").nth(tile).click()
    page.click("#seeds-finish")
    page.wait_for_selector("#seeds-grid [data-state=done] >> nth=1", timeout=PATIENCE)


def history(page: Page) -> None:
    go(page, "history")
    page.locator("#history img").nth(1).click()
    page.wait_for_selector("#picture-panel img")


def models(page: Page) -> None:
    go(page, "models")
    page.wait_for_selector("#models table")


def doctor(page: Page) -> None:
    go(page, "doctor")
    page.wait_for_selector("#doctor-report:not(:empty)")


STEPS = {"race": all_qualities, "edit": edit, "seeds": finished_seeds, "history": history,
         "models": models, "doctor": doctor}


def save(page: Page, path: Path, whole: bool = True) -> None:
    """Save the page (or its visible part), reduced, and cropped if it is very long."""
    page.mouse.move(0, 0)
    if whole:
        page.evaluate("[window, ...document.querySelectorAll('.panel')].forEach("
                      "(one) => one.scrollTo(0, 0))")
    page.wait_for_timeout(600)
    picture = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    width = min(WIDTH, picture.width)
    picture = picture.resize((width, picture.height * width // picture.width), Image.LANCZOS)
    picture = picture.crop((0, 0, width, min(picture.height, TALLEST)))
    stills.save(picture, path)
    print(f"{path}: {picture.width}x{picture.height}, {path.stat().st_size // 1000} kB")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "app")
    parser.add_argument("--folder", type=Path, help="default: a temporary one")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, \
            as_shipped(args.folder or Path(temporary)) as app, browser() as chromium:
        page = opened(chromium, app, 1366, 768)
        create(page, app, args.out / "create.webp")
        for name, step in STEPS.items():
            step(page)
            save(page, args.out / f"{name}.webp")
        phone = opened(chromium, app, 390, 844)
        ask(phone, PROMPTS[0], 1)
        draw(phone)
        phone.evaluate("scrollTo(0, 0)")
        save(phone, args.out / "phone.webp", whole=False)


def opened(chromium, app: App, width: int, height: int) -> Page:
    page = chromium.new_page(viewport={"width": width, "height": height})
    page.goto(app.address)
    page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
    return page
