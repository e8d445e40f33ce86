"""`ssd generate`: pictures of a prompt, with their recipe inside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..backbones.base import Backbone
from ..engine.events import Finished
from ..engine.methods import Method
from ..errors import SSDError
from ..front.recipe import kept_tokens, make_recipe, save_png, tokens_sha256
from ..model.sampling import Sampling
from .options import Drawing, Json, Knobs, Loading, Picture, flag
from .output import Reporter
from .paths import batch_paths, check_writable, free_path
from .session import Loaded, check_words, decode, load, pictures

Prompt = Annotated[str, typer.Argument(help="What the picture shows.", show_default=False)]


@dataclass(frozen=True)
class Keeping:
    """Keep the top of a picture."""

    keep: Path | None = flag(None, "PNG whose top rows stand; needs --keep-rows.")
    keep_rows: int = flag(0, "Rows of tokens that stand.")

    def options(self, backbone: Backbone, report: Reporter) -> dict:
        """keep and keep_rows as `generate` takes them."""
        if self.keep is None:
            return {"keep_rows": self.keep_rows}
        if self.keep_rows == 0:
            raise SSDError("--keep needs --keep-rows: how many of its rows stand")
        tokens, how = kept_tokens(self.keep, backbone)
        report.say(f"keeping {self.keep_rows} rows of {self.keep} ({how})")
        return {"keep": tokens, "keep_rows": self.keep_rows}


@dataclass(frozen=True)
class Saving:
    """Where to."""

    out: Path | None = flag(None, "FILE.png; a batch makes FILE-0.png, FILE-1.png, ... "
                                  "Default: a new file named after backbone and seed.")


def command(prompt: Prompt, knobs: Knobs, drawing: Drawing, picture: Picture, keeping: Keeping,
            saving: Saving, loading: Loading, json: Json = False) -> None:
    """Draw a prompt and save the picture(s) with the recipe inside."""
    report, method, sampling = Reporter(json), knobs.chosen(), drawing.sampling()
    prompts = picture.prompts(prompt)
    stem = Path(loading.backbone).stem
    out = saving.out or free_path(f"{stem}-{sampling.seed}", len(prompts))
    paths = batch_paths(out, len(prompts))
    check_writable(paths)
    loaded = load(loading, [method], picture.pixels())
    check_words(loaded.backbone, prompt, picture)
    keep = keeping.options(loaded.backbone, report)
    finished = decode(loaded, prompts, method, sampling, method.name, negative=picture.negative,
                      **keep)
    save_all(loaded, finished, paths, method, sampling, prompt=prompt, negative=picture.negative,
             keep_rows=keeping.keep_rows)
    result = result_of(loaded, finished, paths, method.name, sampling)
    report.say(summary(result))
    report.result(result)


def save_all(loaded: Loaded, finished: Finished, paths: list[Path], method: Method,
             sampling: Sampling, **told: str | int | None) -> None:
    """One PNG a picture; `told` goes into the recipes as it is."""
    drawn = pictures(loaded.backbone, finished.tokens)
    heads = loaded.heads if method.uses_heads else None
    for index, path in enumerate(paths):
        recipe = make_recipe(loaded.backbone, heads, method, sampling,
                             finished.tokens[index], finished.stats, index=index, **told)
        save_png(path, drawn[index], recipe)


def result_of(loaded: Loaded, finished: Finished, paths: list[Path], label: str,
              sampling: Sampling) -> dict:
    """The JSON object of one run."""
    stats = finished.stats
    same = ("passes", "ar_passes", "step_acceleration", "tokens_per_second", "acceptance")
    return {"method": label, "backbone": loaded.backbone.name, **{key: stats[key] for key in same},
            "seconds": stats["seconds"]["total"], "seconds_by_stage": dict(stats["seconds"]),
            "seeds": sampling.seeds(len(paths)), "images": [str(path) for path in paths],
            "tokens_sha256": [tokens_sha256(tokens) for tokens in finished.tokens]}


def summary(result: dict) -> str:
    """The same for people."""
    accepted = ", ".join(f"{key} {value:.2f}" for key, value in result["acceptance"].items())
    lines = [f"{result['method']}: {result['passes']} passes (AR takes {result['ar_passes']}, "
             f"{result['step_acceleration']:.2f} times as many), {result['seconds']:.2f} s, "
             f"{result['tokens_per_second']:.0f} tokens/s"]
    if accepted:
        lines.append(f"  accepted by stage/round: {accepted}")
    return "\n".join([*lines, *(f"  {path}" for path in result["images"])])
