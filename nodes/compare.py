"""Compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import AR, METHODS, Method, default_method
from ..ssd_core.errors import SSDError
from ..ssd_core.output.drawing import Drawing
from ..ssd_core.output.guarantees import method_help
from ..ssd_core.runs.comparison import Comparison, runnable
from . import inputs, outcome, requests, running, schedules, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .types import COMPARE, MethodType

NONE = "none"
PLACES = range(1, 7)
USUAL = dict(enumerate((AR.name, default_method().name), 1))
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
                inputs.model(),
                *(MethodType.Input(f"method_{n}", optional=True,
                                   tooltip=f"From Method, with knobs of your own; it takes the "
                                           f"place of draw_{n}.")
                  for n in PLACES),
                *inputs.subject(),
                *(io.Combo.Input(f"draw_{n}", options=[NONE, *schedules.NAMES],
                                 default=USUAL.get(n, NONE),
                                 tooltip=method_help(schedules.NAMES)[0])
                  for n in PLACES),
                inputs.preview(), *inputs.sampling()],
            outputs=[
                io.Image.Output(display_name="sheet",
                                tooltip="All pictures, labelled with passes, seconds, what the "
                                        "method guarantees and the share of AR's tokens."),
                io.Image.Output(display_name="images", tooltip="The pictures as a batch, in "
                                                               "order."),
                io.String.Output(display_name="table", tooltip="What was measured, as text.")],
            **search_aliases("race", "side by side", "grid", "xy plot", "benchmark", "speed"))

    @classmethod
    @readable_errors
    def execute(cls, model: weights.LoadedModel, prompt: str, negative: str, preview: bool,
                complete_prompt: bool, **widgets: Any) -> io.NodeOutput:
        sampling, size = requests.sampling_of(widgets), requests.asked_size(widgets)
        typed = requests.typed_words(prompt, negative)
        fitting, left_out = runnable(chosen(widgets), lambda method: requests.request_of(
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
        table = Comparison.of((run.result for run in runs), map(localized, notes)).table()
        return io.NodeOutput(outcome.sheet_output(runs, notes), outcome.image_output(runs), table,
                             ui=ui)


def chosen(widgets: Mapping[str, Any]) -> dict[str, Method]:
    """The methods in order: those connected, else those named; SSDError for fewer than two."""
    named = {n: (widgets.get(f"method_{n}"), widgets.get(f"draw_{n}", NONE)) for n in PLACES}
    methods = {n: linked or METHODS[name]() for n, (linked, name) in named.items()
               if linked or name != NONE}
    if len(methods) < 2:
        raise SSDError("there is nothing to compare: set draw_1 and draw_2 to a method each, or "
                       "connect two")
    return {f"{n}. {method.name}": method for n, method in methods.items()}


def fit_together(runs: Sequence[running.NodeRun]) -> bool:
    """Whether the memory of all runs is there at once."""
    loaded = list(dict.fromkeys(each for run in runs for each in run.weights))
    return weights.fits_on_device(loaded, sum(run.request.bytes_needed for run in runs))
