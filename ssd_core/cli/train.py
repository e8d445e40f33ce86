"""`ssd train STAGE`: train the bundled backbone, or any backbone's heads; flags are recipe fields.
"""

from __future__ import annotations

import importlib
import json as json_module
import math
from dataclasses import replace
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import SSDError
from ..launched import is_first, launched
from .beside import take
from .options import Json, takes_groups
from .output import note

STAGES = {"tokenizer": "TokenizerRecipe", "backbone": "BackboneRecipe", "blend": "BlendRecipe",
          "upsample": "UpsampleRecipe", "self-distill": "SelfDistillRecipe", "heads": "HeadsRecipe",
          "classifier": "ClassifierRecipe", "mulo": "MuloRecipe"}
OF_HEADS = ("self-distill", "heads")  # in ssd_core; the others are the laboratory's
TELL_COSTS = ("self-distill", "heads", "mulo")  # for any backbone, may take days
TOGETHER = ("heads",)  # several processes may share the work


class Stages(TyperGroup):
    """Imports a stage only when it is used, so that other commands start fast."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(STAGES)

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        return stage_command(cmd_name) if cmd_name in STAGES else None


app = typer.Typer(cls=Stages, help="Train a stage of the bundled backbone; self-distill and heads "
                                   "make draft heads for any backbone, mulo joins two sizes.")


@app.callback()
def stages() -> None:
    pass


def require_numbers(recipe: Any) -> None:
    """Raise SSDError for a number that no generator or optimizer takes."""
    for name, value in vars(recipe).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise SSDError(f"{name} {value}: must be a number")
    if not 0 <= recipe.seed < 1 << 63:
        raise SSDError(f"seed {recipe.seed}: must lie in 0 .. 2^63 - 1")


def stage_command(stage: str) -> Any:
    """A stage's module as a command, with one flag per field of its recipe."""
    from ..train.common import keep_freed_memory, silent
    from ..weights.load import pick_device

    if stage not in OF_HEADS:
        take("ssd_lab")
    room = "ssd_core" if stage in OF_HEADS else "ssd_lab"
    module = importlib.import_module(f"{room}.train.{stage.replace('-', '_')}")

    def command(recipe: Any, json: Json = True) -> None:
        if launched() > 1 and stage not in TOGETHER:
            raise SSDError(f"train {stage} runs in one process, {launched()} were started: only "
                           f"train {', '.join(TOGETHER)} shares its work")
        keep_freed_memory()
        require_numbers(recipe)
        if stage not in OF_HEADS and hasattr(recipe, "device"):
            recipe = replace(recipe, device=str(pick_device(recipe.device)))
        say = note if is_first() else silent
        train = partial(module.train, say=say) if stage in TELL_COSTS else module.train
        result = train(recipe)
        if is_first():
            for sentence in result.get("sentences", ()):
                note(sentence)
            typer.echo(json_module.dumps(result))

    command.__annotations__["recipe"] = getattr(module, STAGES[stage])
    command.__doc__ = module.__doc__
    single = typer.Typer(add_completion=False)
    single.command(stage)(takes_groups(command))
    return typer.main.get_command(single)
