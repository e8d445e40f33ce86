"""`ssd compare`: draw one prompt and seed with several methods, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..engine.methods import Method
from ..files import atomic_write
from ..output.drawing import Drawing
from ..runs.comparison import HEAD, Comparison, checked_requests, is_ar
from ..runs.request import Request, Result
from .generate import Prompt, print_words, result_of, save_all, summary
from .options import Json, Loading, PictureOptions, SamplingOptions, flag
from .output import Reporter, note
from .paths import check_writable, free
from .saving import kept_when_stopped, saving
from .session import decode, load, print_notes
from .specs import ALL, parse_methods


@dataclass(frozen=True)
class CompareOptions:
    """Methods and output."""

    methods: str = flag("ar,exact", "Separated by commas; knobs as in "
                                    "ssd:rounds=1:acceptance=coupled. all: every method at its own "
                                    "settings, without those that cannot run here.")
    out: Path = flag(Path("outputs"), "Folder for the pictures.")


def command(prompt: Prompt, trial: CompareOptions, drawing: SamplingOptions,
            picture: PictureOptions, loading: Loading, json: Json = False) -> None:
    """Draw a prompt with the same seed by several methods and show the differences."""
    report, sampling = Reporter(json), drawing.sampling()
    methods = parse_methods(trial.methods)
    files, sheet = files_of(trial.out, [label for label, _ in methods],
                            sampling.seeds(picture.batch))
    backbone, heads = load(loading, [method for _, method in methods], picture.pixels())

    def request_of(method: Method) -> Request:
        drawing = Drawing(prompt, picture.negative, method, sampling, pictures=picture.batch,
                          expand=picture.expand)
        return Request(backbone, heads, drawing, fall_back=False)

    requests, left_out = checked_requests(
        None if trial.methods.strip() == ALL else dict(methods), request_of)
    first = next(iter(requests.values()))
    print_notes(first, picture.strict_words)
    print_words(first, report, prompt)
    for line in left_out:
        note(line)
    comparison = draw(requests, left_out, files)
    save_sheet(comparison, sheet)
    print_results(report, comparison, files, sheet, prompt)


def draw(requests: dict[str, Request], left_out: list[str],
         files: dict[str, list[Path]]) -> Comparison:
    """Draw and save the pictures of every method."""
    results = {label: Result(request) for label, request in requests.items()}
    with kept_when_stopped([(result, files[label]) for label, result in results.items()]):
        for label, result in results.items():
            decode(result, label)
        comparison = Comparison(results, left_out)
        for label, result in results.items():
            save_all([result], files[label])
    return comparison


def files_of(folder: Path, labels: list[str],
             seeds: list[int]) -> tuple[dict[str, list[Path]], Path]:
    """METHOD-SEED.png by label, and the sheet; numbered if such files exist."""
    def named(ending: str) -> list[Path]:
        stems = [f"{file_name(label)}-{seed}" for label in labels for seed in seeds]
        return [folder / f"{stem}{ending}.png" for stem in (*stems, f"compare-{seeds[0]}")]

    *drawn, sheet = free(named)
    check_writable([*drawn, sheet])
    each = len(seeds)
    return {label: drawn[n * each : (n + 1) * each] for n, label in enumerate(labels)}, sheet


def print_results(report: Reporter, comparison: Comparison, files: dict[str, list[Path]],
                  sheet: Path, typed: str) -> None:
    """Report each method as `generate` does, then all of them in a table."""
    results = []
    for label, run in comparison.results.items():
        result = result_of([run], files[label], label, typed)
        report.print(summary(result))
        results.append({**result, "guarantee": run.guarantee, "identical_tokens": run.share,
                        "is_ar": is_ar(run)})
    report.table({heading: heading for heading in HEAD}, comparison.rows())
    report.print(f"side by side: {sheet}")
    report.result({"results": results, "image": str(sheet), "left_out": comparison.left_out,
                   "identical_tokens": mean_share(results)})


def mean_share(results: list[dict]) -> float | None:
    """Mean share of tokens equal to AR's over the other methods; None if AR did not run."""
    shares = [r["identical_tokens"] for r in results if not r["is_ar"]]
    return None if not shares or None in shares else sum(shares) / len(shares)


def save_sheet(comparison: Comparison, path: Path) -> None:
    """Save the first picture of every method with its words."""
    sheet = comparison.sheet()

    def write(path: Path) -> None:
        with atomic_write(path) as temporary:
            sheet.save(temporary, format="PNG")

    with saving() as save:
        save(path, write)


def file_name(label: str) -> str:
    """A label made safe for file names on every system."""
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in label)
