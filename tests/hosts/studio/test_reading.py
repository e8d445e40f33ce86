"""Files of the history that are none, or never answer: refused, without holding anybody up."""

import os
import threading
import time

import pytest
import torch

from ssd_core import SSDError
from ssd_core import files as reading
from studio import entries
from studio import history as history_module

PICTURE = torch.zeros(16, 16, 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_a_pipe_is_named_and_the_pictures_beside_it_are_listed(history):
    entry = history.save(PICTURE, None)
    pipe = entry.path.with_name("pipe.png")
    os.mkfifo(pipe)
    os.mkfifo(history.folder / "favourites.json")
    assert history.entries() == [entry] and not history.favourites.ids
    assert "not a regular file" in history.problems[pipe.relative_to(history.folder).as_posix()]
    for read in (history.restore, history_module.require_picture):
        with pytest.raises(SSDError, match="not a regular file"):
            read(pipe)


def test_a_file_that_hangs_is_given_up_and_asked_for_once(history, monkeypatch):
    fine, hung = history.save(PICTURE, None), history.save(PICTURE, None)
    over, readers = threading.Event(), []

    def read_entry(id_, path, real=history_module.read_entry):
        if path == hung.path:
            readers.append(threading.current_thread())
            over.wait(30)
        return real(id_, path)

    monkeypatch.setattr(history_module, "read_entry", read_entry)
    monkeypatch.setattr(reading, "SECONDS", 0.1)
    history._known.clear()
    assert history.entries() == history.entries() == [fine]
    assert "did not answer" in history.problems[hung.id]
    assert len(readers) == 1 and readers[0].daemon, "nor does the end of the program wait for it"
    over.set()
    readers[0].join(5)
    assert set(history.entries()) == {fine, hung}


def test_others_are_served_while_somebody_waits_for_a_file(history, monkeypatch):
    entry = history.save(PICTURE, None)
    over = threading.Event()
    monkeypatch.setattr(history_module, "shrunk", lambda path: over.wait(30) and b"")
    waiting = threading.Thread(target=history.thumbnail, args=(entry,))
    waiting.start()
    begin = time.monotonic()
    assert history.entries() == [entry] and history.unwritten(entry.path) is None
    assert time.monotonic() - begin < 5
    over.set()
    waiting.join()


def test_what_a_reader_raises_is_raised_where_it_is_waited_for(tmp_path):
    with pytest.raises(ZeroDivisionError):
        reading.answered(tmp_path, lambda: 1 / 0)
    assert reading.answered(tmp_path, lambda: 7) == 7


def test_two_pictures_of_files_are_decoded_at_once_and_never_more(history, monkeypatch):
    """Thumbnails, looks and panels of what lies in the folder, as uploads are."""
    saved, most, now = [history.save(torch.zeros(16, 16, 3), None) for _ in range(6)], [], []

    def upright(image, real=entries.upright):
        now.append(image)
        most.append(len(now))
        time.sleep(0.02)
        now.pop()
        return real(image)

    monkeypatch.setattr(entries, "upright", upright)
    threads = [threading.Thread(target=history.thumbnail, args=(entry,)) for entry in saved]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 6 and max(most) <= 2
