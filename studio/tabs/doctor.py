"""The Doctor tab: one text for a bug report."""

from __future__ import annotations

import gradio as gr

from ssd_core.runs.diagnostics import report

from ..services import Services
from .common import PRIVATE


class Doctor:
    def __init__(self, services: Services, t: gr.I18n) -> None:
        self.services = services
        gr.Markdown(t("doctor_hint"))
        self.text = gr.Textbox(label=t("report"), lines=18, max_lines=40, interactive=False,
                               elem_id="doctor-report", buttons=["copy"])
        self.refresh = gr.Button(t("refresh"), elem_id="doctor-refresh")

    def wire(self, tab: gr.Tab) -> None:
        self.refresh.click(self.tell, None, self.text, api_name="doctor", show_progress="hidden")
        tab.select(self.tell, None, self.text, **PRIVATE)

    def tell(self) -> str:
        """Versions, device, found models, last error."""
        services = self.services
        text = report(services.library.doctor_lines(), services.worker.last_error)
        return services.for_visitors(text)
