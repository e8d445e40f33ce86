"""`ssd compare`: one prompt and seed by several methods, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from ..engine.events import Finished
from ..engine.methods import AR, Method
from ..files import written_whole
from ..front.compare import identical_share, side_by_side, verdict
from ..front.labels import equal_tokens
from ..front.recipe import to_bytes
from ..model.sampling import Sampling
from .generate import Prompt, result_of, save_all, summary
from .options import Drawing, Json, Loading, Picture, flag
from .output import Reporter
from .paths import check_writable
from .session import Loaded, check_words, decode, load, pictures
from .specs import parse_methods


@dataclass(frozen=True)
class Contest:
    """Which methods, and where to."""

    methods: str = flag("ar,exact", "Between commas; knobs as in ssd:rounds=1:acceptance=coupled.")
    out: Path = flag(Path("outputs"), "Folder for the pictures.")


def command(prompt: Prompt, contest: Contest, drawing: Drawing, picture: Picture,
            loading: Loading, json: Json = False) -> None:
    """Draw a prompt with the same seed by several methods and show what differs."""
    report, sampling = Reporter(json), drawing.sampling()
    methods, prompts = parse_methods(contest.methods), picture.prompts(prompt)
    sheet = contest.out / f"compare-{sampling.seed}.png"
    files = picture_files(contest.out, methods, sampling.seeds(len(prompts)))
    check_writable([sheet, *(path for paths in files.values() for path in paths)])
    loaded = load(loading, [method for _, method in methods], picture.pixels())
    check_words(loaded.backbone, prompt, picture)
    runs = {label: decode(loaded, prompts, method, sampling, label, negative=picture.negative)
            for label, method in methods}
    for label, method in methods:
        save_all(loaded, runs[label], files[label], method, sampling, prompt=prompt,
                 negative=picture.negative)
    results = judged(loaded, methods, runs, files, sampling)
    save_sheet(loaded, runs, results, sheet)
    tell(report, results, sheet)


def picture_files(folder: Path, methods: list[tuple[str, Method]],
                  seeds: list[int]) -> dict[str, list[Path]]:
    """METHOD-SEED.png by label."""
    return {label: [folder / f"{file_name(label)}-{seed}.png" for seed in seeds]
            for label, _ in methods}


def tell(report: Reporter, results: list[dict], sheet: Path) -> None:
    for result in results:
        report.say(f"{summary(result)}\n  {result['verdict']}{share_text(result)}")
    report.say(f"side by side: {sheet}")
    report.result({"results": results, "image": str(sheet),
                   "identical_tokens": mean_share(results)})


def judged(loaded: Loaded, methods: list[tuple[str, Method]], runs: dict[str, Finished],
           files: dict[str, list[Path]], sampling: Sampling) -> list[dict]:
    """One generate object a method, with verdict and share of tokens equal to AR's (or None)."""
    baseline = next((runs[label].tokens for label, m in methods if isinstance(m, AR)), None)
    results, dtype = [], loaded.backbone.dtype
    for label, method in methods:
        share = None if baseline is None else identical_share(runs[label].tokens, baseline)
        result = result_of(loaded, runs[label], files[label], label, sampling)
        results.append({**result, "verdict": verdict(method, dtype, share),
                        "identical_tokens": share, "is_ar": isinstance(method, AR)})
    return results


def mean_share(results: list[dict]) -> float | None:
    """Mean share of tokens equal to AR's over the other methods; None where AR did not run."""
    shares = [r["identical_tokens"] for r in results if not r["is_ar"]]
    return None if not shares or None in shares else sum(shares) / len(shares)


def save_sheet(loaded: Loaded, runs: dict[str, Finished], results: list[dict], path: Path) -> None:
    """The first picture of every method, stamped."""
    firsts = torch.stack([run.tokens[0] for run in runs.values()])
    drawn = [to_bytes(one) for one in pictures(loaded.backbone, firsts)]
    image = side_by_side(drawn, [stamp(result) for result in results])
    with written_whole(path) as temporary:
        image.save(temporary, format="PNG")


def stamp(result: dict) -> list[str]:
    return [result["method"], f"{result['seconds']:.2f} s, {result['passes']} passes",
            f"{result['verdict']}{share_text(result)}"]


def share_text(result: dict) -> str:
    return "" if result["is_ar"] else equal_tokens(result["identical_tokens"])


def file_name(label: str) -> str:
    """A label as part of a file name on every system."""
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in label)
