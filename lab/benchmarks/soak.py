"""Ten minutes of the app: runs, stops, races, seeds, reloads and closed tabs; is memory back after?

    python lab/benchmarks/soak.py [--minutes 10] [--out lab/benchmarks/results/soak.md]

Starts gradio_app.py on a free port with a folder of its own, drives it in a headless Chromium and
reads the server's resident memory from the system (Linux). The first rounds warm up: libraries
load, allocators grow. The result is whether memory still grows after them.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conditions import conditions, table, write_page
from playwright.sync_api import Page, sync_playwright
from script import options

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
WARM_UP = 5  # rounds
PATIENCE = 120_000  # ms


@contextmanager
def app(folder: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """Start the app as users do; returns its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(ROOT / "gradio_app.py"), "--port", str(port), "--output-dir",
               str(folder / "outputs"), "--models-dir", str(folder / "models")]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield wait_for(f"http://127.0.0.1:{port}/", process), process
    finally:
        process.terminate()
        process.wait(20)


def wait_for(address: str, process: subprocess.Popen) -> str:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"gradio_app.py ended with exit code {process.returncode}")
        try:
            urllib.request.urlopen(address, timeout=1).close()
            return address
        except OSError:
            time.sleep(0.1)
    raise SystemExit("gradio_app.py does not answer")


def resident_mib(process: subprocess.Popen) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024


# What visitors do


def go(page: Page, place: str) -> None:
    """Go to a place of the page."""
    page.evaluate("place => { location.hash = place; }", place)
    page.wait_for_selector(f"#{place}:not([hidden]) > *", timeout=PATIENCE)


def draw(page: Page) -> None:
    go(page, "create")
    with page.expect_response("**/api/draw") as answer:
        page.click("#draw")
    job = answer.value.json()["id"]
    page.wait_for_selector(f"#create-stage [data-job='{job}'][data-state=done]", timeout=PATIENCE)


def stop(page: Page) -> None:
    """Stop a run of many pictures, which takes seconds."""
    go(page, "create")
    page.fill("#pictures", "32")
    page.press("#pictures", "Tab")
    page.click("#draw")
    page.click("#stop", timeout=PATIENCE)
    page.wait_for_selector("#stop:disabled", timeout=PATIENCE)
    page.fill("#pictures", "1")
    page.press("#pictures", "Tab")


def race(page: Page) -> None:
    go(page, "race")
    page.click("#race-start")
    page.wait_for_selector("#race-result h2", timeout=PATIENCE)


def seeds(page: Page) -> None:
    """Start eight and finish none: the next start, or leaving the page, releases them."""
    go(page, "seeds")
    page.click("#seeds-start")
    page.wait_for_selector("#seeds-grid [data-state=paused] >> nth=7", timeout=PATIENCE)


def reload(page: Page) -> None:
    go(page, "create")
    page.click("#draw")
    page.reload()
    page.wait_for_selector("body[data-ready]", timeout=PATIENCE)


STEPS: tuple[Callable[[Page], None], ...] = (draw, stop, race, seeds, reload)


def soak(minutes: float, address: str, process: subprocess.Popen) -> list[float]:
    """Resident MiB after every round; a round does all steps in a tab and closes it."""
    seen, end = [], time.monotonic() + 60 * minutes
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        while time.monotonic() < end or len(seen) < WARM_UP + 3:
            page = browser.new_page()
            page.goto(address)
            page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
            for step in STEPS:
                step(page)
            page.close()
            time.sleep(1)
            seen.append(resident_mib(process))
            print(f"round {len(seen)}: {seen[-1]:.0f} MiB", flush=True)
        browser.close()
    return seen


def main() -> None:
    parser = options(__doc__, "soak.md")
    parser.add_argument("--minutes", type=float, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, app(Path(folder)) as (address, process):
        start = resident_mib(process)
        seen = soak(args.minutes, address, process)
    third = max(1, (len(seen) - WARM_UP) // 3)
    first, last = seen[WARM_UP : WARM_UP + third], seen[-third:]
    rows = [["before the first visitor", f"{start:.0f}"], [f"after {WARM_UP} rounds of warm-up",
            f"{seen[WARM_UP - 1]:.0f}"], ["first third after that, median",
            f"{statistics.median(first):.0f}"], ["last third, median",
            f"{statistics.median(last):.0f}"], ["highest", f"{max(seen):.0f}"]]
    where = conditions(alone=False)
    write_page(args.out, "Soak of the app", f"{where}; {args.minutes:g} minutes, {len(seen)} "
               "rounds. A round: open a tab, draw, draw and stop, race, start eight seeds and "
               "leave them, reload during a run, close the tab.",
               table(["server, resident", "MiB"], rows))


if __name__ == "__main__":
    main()
