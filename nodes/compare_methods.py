"""Compare Methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import AR, METHODS, SSD, Method, default_method
from ..ssd_core.errors import SSDError
from ..ssd_core.output.guarantees import method_help
from ..ssd_core.runs.comparison import Comparison, runnable
from . import inputs, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .types import MethodType

NONE = "none"
PLACES = range(1, 7)
USUAL = dict(enumerate((AR.name, default_method().name, SSD.name), 1))


class CompareMethods(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            node_id="SSD_CompareMethods", display_name="Compare Methods (SSD)",
            description="Up to six methods draw the same prompt with the same seed, one after the "
                        "other. Makes one labelled sheet, and a table of what was measured. It "
                        "leaves out a method that cannot run here, and says why.",
            inputs=[
                inputs.backbone(), inputs.heads(),
                *(MethodType.Input(f"method_{n}", optional=True,
                                   tooltip=f"Takes the place of draw_{n}, with knobs of your own.")
                  for n in PLACES),
                *inputs.subject(),
                *(io.Combo.Input(f"draw_{n}", options=[NONE, *METHODS],
                                 default=USUAL.get(n, NONE), tooltip=method_help()[0])
                  for n in PLACES),
                inputs.preview(), *inputs.sampling()],
            outputs=[
                io.Image.Output(display_name="sheet",
                                tooltip="All pictures, labelled with passes, seconds, what the "
                                        "method promises and the share of AR's tokens."),
                io.String.Output(display_name="table", tooltip="What was measured, as text."),
                io.Image.Output(display_name="images", tooltip="The pictures as a batch, in "
                                                               "order.")],
            **search_aliases("grid", "xy plot", "benchmark"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, prompt: str, negative: str, size: str,
                preview: str, heads: weights.LoadedHeads | None = None,
                expand: bool = False, **widgets: Any) -> io.NodeOutput:
        sampling = requests.sampling_of(widgets)
        fitting, left_out = runnable(chosen(widgets), lambda method: requests.request_of(
            backbone, heads, method, sampling, prompt, negative, size, named=True,
            expand=expand))
        if not fitting:
            raise SSDError("; ".join(left_out))
        runs = [running.NodeRun(request, backbone, heads) for request in fitting.values()]
        ui = cls.draw(runs, preview, together=False)
        notes = [*left_out, *dict.fromkeys(note for run in runs
                                           for note in (*run.word_notes, *run.notes))]
        table = Comparison.of((run.result for run in runs), map(localized, notes)).table()
        return io.NodeOutput(outcome.sheet_output(runs, notes), table,
                             outcome.image_output(runs), ui=ui)


def chosen(widgets: Mapping[str, Any]) -> dict[str, Method]:
    """The methods in order: those connected, else those named; SSDError if there are none."""
    named = {n: (widgets.get(f"method_{n}"), widgets.get(f"draw_{n}", NONE)) for n in PLACES}
    methods = {n: linked or METHODS[name]() for n, (linked, name) in named.items()
               if linked or name != NONE}
    if not methods:
        raise SSDError("no method was chosen: set draw_1 to a method, or connect one")
    return {f"{n}. {method.name}": method for n, method in methods.items()}
