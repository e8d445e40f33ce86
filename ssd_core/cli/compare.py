"""`ssd compare`: draw one prompt and seed with several methods, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..engine.methods import AR, Method
from ..files import written_whole
from ..front.compare import side_by_side
from ..front.recipe import to_bytes
from ..front.request import Request, Result, compare_with_ar
from .generate import Prompt, result_of, save_all, summary
from .options import Drawing, Json, Loading, Picture, flag
from .output import Reporter
from .paths import check_writable
from .session import decode, load, tell_notes
from .specs import parse_methods


@dataclass(frozen=True)
class Contest:
    """Methods and output."""

    methods: str = flag("ar,exact", "Separated by commas; knobs as in "
                                       "ssd:rounds=1:acceptance=coupled.")
    out: Path = flag(Path("outputs"), "Folder for the pictures.")


def command(prompt: Prompt, contest: Contest, drawing: Drawing, picture: Picture,
            loading: Loading, json: Json = False) -> None:
    """Draw a prompt with the same seed by several methods and show the differences."""
    report, sampling = Reporter(json), drawing.sampling()
    methods = parse_methods(contest.methods)
    sheet = contest.out / f"compare-{sampling.seed}.png"
    files = picture_files(contest.out, methods, sampling.seeds(picture.batch))
    check_writable([sheet, *(path for paths in files.values() for path in paths)])
    backbone, heads = load(loading, [method for _, method in methods], picture.pixels())
    requests = {label: Request(backbone, heads, method, sampling, prompt, picture.negative,
                               pictures=picture.batch, fall_back=False)
                for label, method in methods}
    for request in requests.values():
        request.check()  # before any of them runs
    tell_notes(next(iter(requests.values())), picture.strict_words)
    runs = {label: decode(request, label) for label, request in requests.items()}
    compare_with_ar(list(runs.values()))
    for label, run in runs.items():
        save_all(run, files[label])
    save_sheet(runs, sheet)
    tell(report, runs, files, sheet)


def picture_files(folder: Path, methods: list[tuple[str, Method]],
                  seeds: list[int]) -> dict[str, list[Path]]:
    """METHOD-SEED.png, by label."""
    return {label: [folder / f"{file_name(label)}-{seed}.png" for seed in seeds]
            for label, _ in methods}


def tell(report: Reporter, runs: dict[str, Result], files: dict[str, list[Path]],
         sheet: Path) -> None:
    """Report each method as `generate` does, with its verdict and share of tokens equal to AR's."""
    results = []
    for label, run in runs.items():
        result = result_of(run, files[label], label)
        report.say(f"{summary(result)}\n  {run.stamp[-1]}")
        results.append({**result, "verdict": run.verdict, "identical_tokens": run.share,
                        "is_ar": isinstance(run.request.method, AR)})
    report.say(f"side by side: {sheet}")
    report.result({"results": results, "image": str(sheet),
                   "identical_tokens": mean_share(results)})


def mean_share(results: list[dict]) -> float | None:
    """Mean share of tokens equal to AR's over the other methods; None if AR did not run."""
    shares = [r["identical_tokens"] for r in results if not r["is_ar"]]
    return None if not shares or None in shares else sum(shares) / len(shares)


def save_sheet(runs: dict[str, Result], path: Path) -> None:
    """Save the first picture of every method with its stamp."""
    drawn = [to_bytes(next(run.pictures())) for run in runs.values()]
    image = side_by_side(drawn, [[label, *run.stamp[1:]] for label, run in runs.items()])
    with written_whole(path) as temporary:
        image.save(temporary, format="PNG")


def file_name(label: str) -> str:
    """A label made safe for file names on every system."""
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in label)
