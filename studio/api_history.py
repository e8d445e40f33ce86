"""Endpoints of saved pictures: list, mark, delete, bring back, pack, and restore their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import PurePosixPath, PureWindowsPath
from tempfile import SpooledTemporaryFile
from urllib.parse import quote
from zipfile import ZIP_STORED, ZipFile

from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from ssd_core import SSDError
from ssd_core.output.drawing import whole
from ssd_core.output.foreign import told_by
from ssd_core.output.recipe import CHUNK, parsed

from . import edits, panels, runs
from .calls import Call
from .entries import called, restored, saved_at
from .errors import in_language
from .facts import hint_text, restored_text, wanted, why_empty
from .history import Entry
from .pictures import as_letter, as_png, decoded, opaque_cells, texts_of
from .settings import LONGEST_TEXT, anew
from .views import details_view, entry_view, restored_view
from .words import CHINESE, say

PAGE, MOST_ENTRIES = 24, 500  # pictures in one answer


def history(call: Call) -> dict:
    """Saved pictures, newest first: those that match `search` and, with `favourites`, are marked.
    """
    services, language = call.services, call.language
    search, only = call.query("search"), call.query("favourites") == "true"
    limit = min(max(1, whole("limit", call.query("limit", str(PAGE)))), MOST_ENTRIES)
    before = call.query("before")
    last = call.entry(before).id if before else None
    entries = services.history.entries(limit + 1, last, wanted(services, search, only, language))
    marked = services.history.favourites.ids
    hint = hint_text(services, why_empty(entries, search, only or bool(before)), language)
    return {"entries": [entry_view(services, entry, language, marked)
                        for entry in entries[:limit]],
            "more": len(entries) > limit, "hint": hint}


def details(call: Call) -> dict:
    entry = call.entry(call.path["entry"])
    return details_view(call.services, entry, call.language)


def thumbnail(call: Call) -> Response:
    entry = call.entry(call.path["entry"])
    return Response(call.services.history.thumbnail(entry), media_type="image/jpeg")


def delete(call: Call) -> dict:
    """Delete pictures; `undo` brings them back for a while."""
    call.require_local()
    entries = [call.entry(id_) for id_ in call.ids()]
    for entry in entries:
        call.services.history.delete(entry.id)
    return {"deleted": [entry.id for entry in entries]}


def undo(call: Call) -> dict:
    call.require_local()
    entries = [call.services.history.restore_deleted(id_) for id_ in call.ids()]
    return {"restored": [entry.id for entry in entries]}


def favourite(call: Call) -> dict:
    """Mark pictures as favourites, or take the marks away."""
    ids = [call.entry(id_).id for id_ in call.ids()]
    call.services.history.favourites.mark(ids, call.flag("favourite", True))
    return {"ids": ids, "favourite": call.flag("favourite", True)}


def send(call: Call) -> Response:
    """A picture as a postcard: one HTML file that opens anywhere without a network."""
    history, id_ = call.services.history, call.query("id")
    name, drawn = PurePosixPath(id_).stem, datetime.now()
    if (png := history.unsaved.get(id_)) is None:
        entry = call.entry(id_)
        png, drawn = history.png(entry.id), datetime.fromisoformat(saved_at(entry.path))
        name = called(entry.prompt, entry.seed, entry.path.stem)
    page = as_letter(png, f"{name}.png", drawn, call.language == CHINESE)
    named = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}.html"}
    return Response(page, media_type="text/html", headers=named)


def zipped(call: Call) -> Response:
    """The pictures that `?id=...&id=...` names, byte for byte, in one file."""
    entries = [call.entry(id_) for id_ in call.parameters.getlist("id")[:MOST_ENTRIES]]
    if not entries:
        raise SSDError("no picture was chosen: name some by id")
    packed = SpooledTemporaryFile(32 << 20)  # noqa: SIM115 - closed once it is sent
    with ZipFile(packed, "w", ZIP_STORED) as archive:
        for name, entry in zip(names_of(entries), entries, strict=True):
            archive.writestr(name, call.services.history.png(entry.id))
    packed.seek(0)
    named = {"content-disposition": 'attachment; filename="pictures.zip"'}
    return StreamingResponse(iter(lambda: packed.read(1 << 20), b""), headers=named,
                             media_type="application/zip", background=BackgroundTask(packed.close))


def names_of(entries: Sequence[Entry]) -> list[str]:
    """What the pictures are called in a folder of their own; no two have the same name."""
    names: list[str] = []
    for entry in entries:
        stem = called(entry.prompt, entry.seed, entry.path.stem)
        numbered = (f"{stem}{'' if n == 1 else f'-{n}'}.png" for n in count(1))
        names.append(next(name for name in numbered if name not in names))
    return names


def add(call: Call) -> dict:
    """Put a picture, which is the body of the request, into the history, so that it can be redone.

    One of another size is cropped and scaled. `how`: where its tokens come from. `keep_mask`: the
    cells that are not transparent, null if all are opaque.
    """
    services, name = call.services, bare_name(call.query("name", "picture.png"))
    backbone = services.library.current.backbone
    entry = services.history.add(as_png(call.body, name, backbone.sizes), name)
    source = runs.look(services.history, entry.path, backbone)
    return {**entry_view(services, entry, call.language, ()),
            "how": in_language(call.language, source.how), "encoded": source.encoded,
            "keep_mask": opaque_cells(call.body, name, backbone.resized(
                (entry.width, entry.height)))}


def restore_upload(call: Call) -> dict:
    """The settings of a picture that is the body of the request, null if it holds none.

    Of another program's picture they are prompt, negative prompt and seed. `?name=`: what it is
    called.
    """
    name, language = bare_name(call.query("name", "picture.png")), call.language
    with decoded(call.body, name) as image:
        texts = texts_of(image)
    if CHUNK not in texts:
        return restored_elsewhere(told_by(texts), name, language)
    try:
        recipe = parsed(name, texts[CHUNK])
        drawing = restored(name, recipe)
    except SSDError as error:
        return {"settings": None, "text": in_language(language, str(error))}
    return restored_view(anew(drawing), restored_text(call.services, name, recipe, language),
                         {"draft_hash": call.services.library.drafts_of(recipe) or ""})


def restored_elsewhere(words: Mapping[str, str], name: str, language: str) -> dict:
    """What another program told of a picture, as settings."""
    if not words:
        return {"settings": None, "text": say(language, "no_settings", name=name)}
    words = {name: text[:LONGEST_TEXT] for name, text in words.items()}
    return {"settings": {"prompt_expanded": None, "negative_expanded": None, "open": [], **words},
            "text": say(language, "restored_words", name=name)}


def restore_entry(call: Call) -> dict:
    """The settings of a saved picture; those of an edited one name the picture before the edit,
    those of one that was drawn below another picture name that one.
    """
    services, entry = call.services, call.entry(call.query("id"))
    drawing, recipe = services.history.restore(entry.path)
    drawing, parent = edits.edited_again(services.history, entry, drawing)
    drawing, panel = panels.below_again(services.history, entry, drawing)
    text = restored_text(services, entry.path.name, {**recipe, "keep_rows": 0}, call.language)
    return restored_view(drawing, text, {
        "parent": parent, "panel": panel.id, "control": panel.control, "subject": panel.subject,
        "draft_hash": services.library.drafts_of(recipe) or ""})


def steps(call: Call) -> dict:
    """The pictures that were made from each other, this one among them, the first one first."""
    services, entry = call.services, call.entry(call.query("id"))
    marked = services.history.favourites.ids
    return {"entries": [entry_view(services, step, call.language, marked)
                        for step in edits.family(services.history, entry)]}


def bare_name(name: str) -> str:
    """The last part of a file's name, to be shown and for nothing else."""
    last = PureWindowsPath(PurePosixPath(name).name).name
    return "".join(sign for sign in last if sign.isprintable())[:100] or "picture.png"
