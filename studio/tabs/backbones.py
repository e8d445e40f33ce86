"""The Backbones tab: what was found and where, what fits, what can be downloaded, licences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from html import escape

import gradio as gr

from ssd_core import SSDError
from ssd_core.weights import hub
from ssd_core.weights.catalogue import CATALOGUE, Licence, known
from ssd_core.weights.memory import WEIGHT_BYTES

from ..downloads import Download, size_text
from ..errors import in_language
from ..models import InUse, load, names
from ..services import Services
from ..words import language_of, say
from .common import PRIVATE, line, over, owner_of, trouble
from .controls import Controls, takes_knobs

STEP = 0.3  # seconds between checks of a download


class Backbones:
    """The tab; if other machines can reach the app, it offers no switching and no downloads."""

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.found = gr.HTML(elem_id="backbones-found", js_on_load=None)
        with gr.Row():
            self.name = gr.Dropdown(names(services), value=services.library.current.name,
                                    label=t("backbone"), elem_id="backbone")
            self.dtype = gr.Dropdown(["auto", *WEIGHT_BYTES], value="auto", label=t("dtype"),
                                     info=t("dtype_hint"),
                                     elem_id="dtype")
            self.fit = gr.Button(t("fit"), elem_id="backbone-fit")
            self.use = gr.Button(t("use"), variant="primary", elem_id="backbone-use",
                                 visible=services.local)
        self.status = gr.HTML(elem_id="backbone-status", js_on_load=None)
        gr.Markdown(t("shared_hint"), visible=not services.local)
        with gr.Column(visible=services.local):
            self._elsewhere(t)

    def _elsewhere(self, t: gr.I18n) -> None:
        gr.Markdown(t("get"), elem_id="backbone-get")
        gr.Markdown(t("get_hint"))
        with gr.Row():
            self.known = gr.Dropdown([(row.title, name) for name, row in CATALOGUE.items()],
                                     label=t("known"), elem_id="known")
            self.ask = gr.Button(t("ask"), elem_id="backbone-ask")
        self.quote = gr.HTML(elem_id="backbone-quote", js_on_load=None)
        with gr.Row():
            self.get = gr.Button(t("download"), interactive=False, elem_id="backbone-download")
            self.cancel = gr.Button(t("cancel_download"), variant="stop", interactive=False,
                                    elem_id="backbone-cancel")
        self.progress = gr.HTML(elem_id="backbone-progress", js_on_load=None)
        self.quoted = gr.State(None)  # the model whose size is on the page: the one to download
        self.quote_outputs = [self.quote, self.get, self.quoted]
        self.download_outputs = [self.progress, self.get, self.cancel, self.found, self.name]

    def wire(self, tab: gr.Tab) -> None:
        knobs = self.controls.inputs
        tab.select(self.look, None, [self.found, self.name], **PRIVATE)
        self.fit.click(self.will_fit, [self.name, self.dtype, *knobs], self.status,
                       api_name="fit", show_progress="hidden")
        if self.services.local:
            self._wire_changes(tab)

    def _wire_changes(self, tab: gr.Tab) -> None:
        """Connect what only a user at this machine may do."""
        controls, knobs = self.controls, self.controls.inputs
        tab.select(self.about, self.known, self.quote_outputs, **PRIVATE)
        self.use.click(self.load, [self.name, self.dtype], [self.status, *knobs],
                       api_name="use_backbone", show_progress="hidden").then(
            controls.tell, controls.plan_inputs, controls.plan_outputs, **PRIVATE).then(
            controls.filled.tell, controls.word_inputs, controls.filled.element, **PRIVATE).then(
            controls.in_language, None, [controls.chips, controls.fold, controls.examples],
            **PRIVATE)
        self.known.change(self.about, self.known, self.quote_outputs, **PRIVATE)
        self.ask.click(self.get_quote, self.known, self.quote_outputs, **PRIVATE)
        self.get.click(self.download, self.quoted, self.download_outputs, **PRIVATE)
        self.cancel.click(self.cancelled, None, None, queue=False, **PRIVATE)

    # On this machine

    def in_use(self) -> tuple:
        """On a page that opens: the loaded model, maybe not the first one any more, its sizes,
        and the switch of what is filled in.
        """
        loaded = self.services.library.current
        return (gr.update(choices=names(self.services), value=loaded.name),
                gr.update(choices=self.controls.sizes(loaded.backbone.sizes)),
                self.controls.filled.available())

    def look(self, request: gr.Request) -> tuple:
        """The backbones found, and the folders searched."""
        library, language = self.services.library, language_of(request, self.services.language)
        readable = self.services.for_visitors
        rows = "".join(model_row(model, language, readable(str(model.path)))
                       for model in library.models())
        places = escape(say(language, "looked_in", places=" ; ".join(
            readable(str(place)) for place in library.places())))
        table = f'<table class="studio-table"><tbody>{rows}</tbody></table>'
        return table + f"<p>{places}</p>", gr.update(choices=names(self.services))

    @takes_knobs
    def will_fit(self, request: gr.Request, name: str, dtype: str, *values: object) -> str:
        language = language_of(request, self.services.language)
        try:
            settings = self.controls.read(values)
            return line(self.services.library.fit(name, settings, dtype))
        except SSDError as error:
            return trouble(self.services, language, str(error))

    async def load(self, request: gr.Request, name: str, dtype: str) -> AsyncIterator[list]:
        """Queue a job that replaces the loaded backbone, and follow it."""
        language = language_of(request, self.services.language)
        job = load(self.services, owner_of(self.services, request), name, dtype)
        as_they_are = [gr.skip()] * len(self.controls.inputs)
        yield [line(say(language, "loading", name=name)), *as_they_are]
        await over(job)
        if job.state != "done":
            yield [trouble(self.services, language, job.error or job.state), *as_they_are]
            return
        now: InUse = job.result
        text = say(language, "in_use", name=now.name, heads=say(
            language, "with_heads" if now.heads else "without_heads"))
        if now.problem:
            text += " " + in_language(language, now.problem)
        yield [line(text),
               *self.controls.adopted(now.preset, now.sizes)]

    # On the Hub

    def about(self, name: str | None, request: gr.Request) -> tuple:
        """Title, licence and size from the catalogue, without network access; nothing is quoted."""
        language = language_of(request, self.services.language)
        button = gr.update(interactive=False, value=say(language, "download"))
        if not name:
            return "", button, None
        row = known(name)
        about = (say(language, "about_size", size=size_text(row.about_bytes)) if row.about_bytes
                 else say(language, "ask_size"))
        return (f"<p><b>{escape(row.title)}</b>: {escape(about)} {escape(row.note)}</p>"
                + licence_html(row.licence), button, None)

    async def get_quote(self, name: str | None, request: gr.Request) -> tuple:
        """Exact size and destination from the Hub; enables the download button."""
        language = language_of(request, self.services.language)
        if not name:
            return "", gr.update(interactive=False), None
        try:
            quote = await asyncio.to_thread(hub.quote, name, self.services.library.models_dir)
        except SSDError as error:
            return trouble(self.services, language, str(error)), gr.update(interactive=False), None
        text = say(language, "quoted", name=name, size=size_text(quote.bytes),
                   missing=size_text(quote.missing), where=quote.destination)
        button = say(language, "download_so", size=size_text(quote.missing),
                     where=quote.destination)
        return (line(text) + licence_html(quote.licence),
                gr.update(interactive=True, value=button), name)

    async def download(self, name: str | None, request: gr.Request) -> AsyncIterator[tuple]:
        """Download the model whose size was asked for; None after another one was chosen."""
        language = language_of(request, self.services.language)
        idle = (gr.update(interactive=name is not None), gr.update(interactive=False))
        try:
            if name is None:
                raise SSDError(say(language, "ask_first"))
            download = self.services.downloads.start(name)
        except SSDError as error:
            yield trouble(self.services, language, str(error)), *idle, gr.skip(), gr.skip()
            return
        async for update in self.followed(download, request, again=True):
            yield update

    async def resume(self, request: gr.Request) -> AsyncIterator[tuple]:
        """On a reloaded page: the running download, or how the last one ended."""
        download = self.services.downloads.last
        if download is None:
            yield (gr.skip(),) * len(self.download_outputs)
            return
        async for update in self.followed(download, request):
            yield update

    async def followed(self, download: Download, request: gr.Request,
                       again: bool = False) -> AsyncIterator[tuple]:
        """Updates of the page until a download is over.

        again: its button may be pressed again, because the page still shows the quote.
        """
        language = language_of(request, self.services.language)
        while not download.over.is_set():
            yield (line(say(language, "downloading", done=size_text(download.done),
                            total=size_text(download.total), file=download.file)),
                   gr.update(interactive=False), gr.update(interactive=True), gr.skip(), gr.skip())
            await asyncio.sleep(STEP)
        if download.error:
            status = trouble(self.services, language, download.error)
        elif download.cancelled:
            status = line(say(language, "download_kept"))
        else:
            status = line(say(language, "downloaded", where=download.where))
        yield (status, gr.update(interactive=again), gr.update(interactive=False),
               *self.look(request))

    def cancelled(self) -> None:
        self.services.downloads.cancel()


def model_row(model, language: str, path: str) -> str:
    """One row of the table: name, family, path, licence, or why it cannot be read."""
    what = model.family if model.readable else model.why_not
    heads = say(language, "heads") if model.heads else ""
    cells = (model.name, what, heads, model.licence or "", path)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def licence_html(licence: Licence) -> str:
    return (f'<p>{escape(licence.name)} (<a href="{escape(licence.link)}" rel="noreferrer" '
            f'target="_blank">{escape(licence.link)}</a>): {escape(licence.restricts)}</p>')
