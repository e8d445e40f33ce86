"""Film of a real run as its live preview shows it: an animated WebP or GIF, or the messages.

    python tools/preview_film.py --methods ar,ssd:rounds=2 --out docs/race.webp
    python tools/preview_film.py --methods ar,ssd:rounds=2 --still 0.22 --out docs/mid_run.webp
    python tools/preview_film.py --methods exact --stop-at-row 6 --messages interrupted.json

The frames are screenshots of the real page in Chromium (preview_page.py) at times of the run's own
clock. The film shows every pass; --messages limits the preview to its usual share of the run's
time.
"""

from __future__ import annotations

import argparse
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path

import stills
from PIL import Image
from preview_page import browser, opened, served

from ssd_core import FinalRows, Finished, Sampling, load_backbone, load_heads
from ssd_core.cli.specs import parse_methods
from ssd_core.output.drawing import Drawing
from ssd_core.output.preview import Preview
from ssd_core.runs.live import LiveRun
from ssd_core.runs.request import Request
from ssd_core.runs.scheduling import race

PROMPT = "a red house on the left, a lake, at sunset"
FEED = """async (messages) => {
  for (const message of messages) preview.feed(message);
  await preview.settled();
}"""


class EveryPass(Preview):
    """Shows every pass at any cost, which the film's clock does not count."""

    def _left(self, share: float = 1.0) -> float:
        return math.inf


@dataclass(frozen=True)
class TimedMessage:
    """A message and the second of its run's own clock at which it was sent."""

    seconds: float
    message: dict


def record(args: argparse.Namespace, kind: type[Preview]) -> list[TimedMessage]:
    """Run all methods interleaved and return their previews' messages in order of time."""
    backbone = load_backbone(args.backbone)
    heads = load_heads(args.backbone, backbone)
    sampling = Sampling(seed=args.seed)
    runs = [LiveRun(Request(
        backbone, heads, Drawing(args.prompt, None, method, sampling, pictures=args.batch),
        fall_back=False)) for _, method in args.methods]
    messages: list[TimedMessage] = []

    def show(run: LiveRun, label: str, panel: int) -> None:
        run.preview = kind(backbone, run.request.method,
                           lambda message: messages.append(TimedMessage(run.seconds, message)),
                           label=label, pictures=args.batch, node="1", panel=panel)

    for panel, (run, (label, _)) in enumerate(zip(runs, args.methods, strict=True)):
        show(run, label, panel)
    for run, event in race(runs):
        if isinstance(event, Finished):
            run.finish(backbone.decode(event.tokens))
        if isinstance(event, FinalRows) and args.stop_at_row and event.last >= args.stop_at_row:
            run.cancel("interrupted")
            break
    return sorted(messages, key=lambda timed: timed.seconds)


def film(messages: list[TimedMessage], args: argparse.Namespace) -> list[Image.Image]:
    """Frames of the page, args.fps a second at args.speed of the real pace."""
    step, frames = args.speed / args.fps, []
    with served() as address, browser() as running:
        page = opened(running.new_context(reduced_motion="reduce", color_scheme=args.theme),
                      address)
        page.evaluate("""([width, overlay]) => {
          window.preview = mount({}, `width: ${width}px`);
          preview.setOverlay(overlay);
        }""", [args.width, args.overlay])
        for number in range(int(messages[-1].seconds / step) + 2):
            due = [timed.message for timed in messages
                   if (number - 1) * step < timed.seconds <= number * step]
            page.evaluate(FEED, due)
            shot = page.locator(".ssd-preview").screenshot()
            frames.append(Image.open(io.BytesIO(shot)).convert("RGB"))
    return frames


def save(frames: list[Image.Image], args: argparse.Namespace) -> None:
    """Save all frames in the size of the largest; the last one stays for a while.

    With args.still only the frame at that share of the film.
    """
    if args.still is not None:
        stills.save(frames[round(args.still * (len(frames) - 1))], args.out)
        return
    size = tuple(max(sides) for sides in zip(*(frame.size for frame in frames), strict=True))
    sheets = [Image.new("RGB", size, frames[0].getpixel((0, 0))) for _ in frames]
    for sheet, frame in zip(sheets, frames, strict=True):
        sheet.paste(frame)
    durations = [round(1000 / args.fps)] * (len(sheets) - 1) + [args.hold]
    sheets[0].save(args.out, save_all=True, append_images=sheets[1:], duration=durations, loop=0,
                   **({"quality": 60, "method": 6} if args.out.suffix == ".webp" else {}))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--methods", type=parse_methods, default="ssd:rounds=2",
                        help="one, or two for a race")
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--stop-at-row", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("preview.webp"), help=".webp or .gif")
    parser.add_argument("--messages", type=Path, help="write the messages and make no film")
    parser.add_argument("--still", type=float, metavar="SHARE",
                        help="save one frame: 0 is the first, 1 the last")
    parser.add_argument("--overlay", action="store_true")
    parser.add_argument("--theme", choices=["dark", "light"], default="dark")
    parser.add_argument("--width", type=int, default=420, help="of the preview, in px")
    parser.add_argument("--fps", type=float, default=12)
    parser.add_argument("--speed", type=float, default=1.0, help="0.5 = half the real pace")
    parser.add_argument("--hold", type=int, default=3000, help="ms that the last frame stays")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    if args.messages:
        messages = [timed.message for timed in record(args, Preview)]
        args.messages.write_text(json.dumps(messages, separators=(",", ":")) + "\n")
        return
    frames = film(record(args, EveryPass), args)
    save(frames, args)
    print(f"{args.out}: {len(frames)} frames, {args.out.stat().st_size / 1024:.0f} KiB, "
          f"{args.speed:g} times the real pace")


if __name__ == "__main__":
    main()
