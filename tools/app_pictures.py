"""Pictures of the app's tabs for the README, from the app itself in a headless Chromium.

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
from playwright.sync_api import Page, sync_playwright

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from soak import CHROMIUM, PATIENCE, ROOT, app, draw, open_tab, race, seeds  # noqa: E402

WIDTH, TALLEST = 960, 1100  # px as saved


def lock(page: Page, seed: int) -> None:
    page.fill("#seed :is(textarea, input)", str(seed))
    page.check("#lock input")


def redo(page: Page) -> None:
    open_tab(page, "Redo from a row")
    page.locator("#redo-recent img").first.click()
    page.wait_for_selector("#redo-stage .ssd-frame")
    page.locator("#redo-stage [role=slider]").press("PageDown")


def finished_seeds(page: Page) -> None:
    """Eight seeds, two of them finished."""
    seeds(page)
    for card in (2, 5):
        page.locator("#seeds-grid input[type=checkbox]").nth(card).check()
    page.click("#seeds-finish:not([disabled])")
    page.wait_for_function("() => document.querySelectorAll('.ssd-seed-tools').length === 2",
                           timeout=PATIENCE)
    page.wait_for_selector("#seeds-start:not([disabled])", timeout=PATIENCE)


def history(page: Page) -> None:
    open_tab(page, "History")
    page.locator("#history img").nth(1).click()
    page.wait_for_selector(".studio-details img")


def backbones(page: Page) -> None:
    open_tab(page, "Models")
    page.click("#backbone-fit")
    page.wait_for_selector("#backbone-status p")


def doctor(page: Page) -> None:
    open_tab(page, "Doctor")
    page.wait_for_function("() => document.querySelector('#doctor-report textarea').value")


STEPS = {"create": draw, "race": race, "redo": redo, "seeds": finished_seeds, "history": history,
         "backbones": backbones, "doctor": doctor}


def save(page: Page, path: Path, whole: bool = True) -> None:
    """Save the page (or its visible part), reduced, and cropped if it is very long."""
    page.mouse.move(0, 0)
    if whole:
        page.evaluate("window.scrollTo(0, 0)")
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
            app(args.folder or Path(temporary)) as (address, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        for name, step in STEPS.items():
            if name == "create":
                page.goto(address)
                page.wait_for_selector("#plan p", timeout=PATIENCE)
                lock(page, 7)
            step(page)
            save(page, args.out / f"{name}.webp")
        phone = browser.new_page(viewport={"width": 390, "height": 844})
        phone.goto(address)
        phone.wait_for_selector("#plan p", state="attached", timeout=PATIENCE)
        phone.click(".studio-fold")
        lock(phone, 7)
        phone.click(".studio-fold")
        draw(phone)
        phone.evaluate("scrollTo(0, 0)")
        save(phone, args.out / "phone.webp", whole=False)
        browser.close()
