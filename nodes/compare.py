"""Compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import Method
from ..ssd_core.errors import SSDError
from ..ssd_core.output.choices import REFERENCE, SSD_CHOICE
from ..ssd_core.output.drawing import Drawing
from . import inputs
from .drawing import DrawingNode, outputs
from .errors import readable_errors
from .language import localized
from .later import comparison, outcome, requests, running, schedules, weights
from .types import COMPARE, LoadedModel
from .widgets import NONE

USUAL = {"method_1": REFERENCE, "method_2": SSD_CHOICE,
         **{f"method_{n}": NONE for n in range(3, 7)}}
IN_TURN = ("there is not enough memory to draw with all methods at once: they draw one after the "
           "other")


class Compare(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            COMPARE, node_id="SSD_Compare", display_name="Compare (SSD)",
            description="Two to six methods draw the same prompt with the same seed, side by side "
                        "and each on its own clock. Makes a labelled sheet and a table of what "
                        "was measured. A method that cannot run here is left out, and the table "
                        "says why.",
            inputs=[
                inputs.model(), *inputs.subject(),
                *(inputs.method(name, usual, without=True) for name, usual in USUAL.items()),
                inputs.preview(), *inputs.sampling()],
            outputs=[
                *outputs(),
                io.Image.Output(display_name="sheet",
                                tooltip="All pictures, labelled with passes, seconds, what the "
                                        "method guarantees and the share of AR's tokens."),
                io.String.Output(display_name="table", tooltip="What was measured, as text.")],
            search_aliases=["race", "side by side", "grid", "xy plot", "benchmark", "speed"])

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, prompt: str, negative: str, preview: bool,
                complete_prompt: bool, **widgets: Any) -> io.NodeOutput:
        sampling, size = requests.sampling_of(widgets), requests.asked_size(widgets)
        typed = requests.typed_words(prompt, negative)
        fitting, left_out = comparison.runnable(chosen(widgets), lambda method: requests.request_of(
            model, Drawing(prompt, typed.negative, method, sampling, size, expand=complete_prompt),
            named=True))
        if not fitting:
            raise SSDError("; ".join(left_out))
        runs = [running.NodeRun(request, model) for request in fitting.values()]
        together = fit_together(runs)
        if not together:
            runs[0].node_notes = [IN_TURN]
        ui = cls.draw(runs, preview, together=together)
        notes = [*left_out, *dict.fromkeys(note for run in runs
                                           for note in (*run.word_notes, *run.notes))]
        compared = comparison.Comparison.of((run.result for run in runs), map(localized, notes))
        return io.NodeOutput(*outcome.of(runs), outcome.sheet_output(runs, notes),
                             compared.table(), ui=ui)


def chosen(widgets: Mapping[str, Any]) -> dict[str, Method]:
    """The methods in order; SSDError for fewer than two."""
    asked = {name: widgets.get(name) or {name: usual} for name, usual in USUAL.items()}
    methods = [schedules.chosen(value, name)[0] for name, value in asked.items()
               if value[name] != NONE]
    if len(methods) < 2:
        raise SSDError("there is nothing to compare: set method_1 and method_2 to a method each")
    return {f"{n}. {method.name}": method for n, method in enumerate(methods, 1)}


def fit_together(runs: Sequence[running.NodeRun]) -> bool:
    """Whether the memory of all runs is there at once."""
    loaded = list(dict.fromkeys(each for run in runs for each in run.weights))
    return weights.fits_on_device(loaded, sum(run.request.bytes_needed for run in runs))
