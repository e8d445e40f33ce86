"""Downloads from the Hugging Face Hub: only on request, locked, with progress, cancellable.

quotes.py lists the files, transfer.py writes them, hub_client.py implements the Hub's protocol.

We do not use huggingface_hub's `snapshot_download`: with a local_dir it keeps a file with a wrong
checksum, replaces the user's own files, and cannot be cancelled while a connection hangs (seen in
versions 0.33, 0.36 and 2.4; in 2.4 cancelling takes ten seconds). Before version 1, which the
transformers of older ComfyUIs cannot have, it tells no bytes and ends with a broken connection.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from ..errors import SSDError
from .hub_client import check_online
from .quotes import DownloadPlan, missing_bytes, quote
from .transfer import DownloadCancelled, Transfer, unwritable

__all__ = ["DownloadCancelled", "DownloadPlan", "download", "fetch", "quote"]

POLL = 0.2  # seconds between calls of `cancelled`
RESERVE = 64 << 20  # bytes to leave free on the disk

Progress = Callable[[int, int, str], None]
T = TypeVar("T")


def download(name: str, models_dir: str | Path = "models", progress: Progress | None = None,
             cancelled: Callable[[], bool] | None = None, revision: str | None = None) -> Path:
    """Download a backbone into models_dir/ssd_backbones/NAME and return that folder.

    progress(done_bytes, total_bytes, file) and cancelled() are called in the caller's thread, five
    times a second. Raises SSDError (DownloadCancelled if `cancelled` returned true). Downloaded
    bytes are kept, and the next call resumes.
    """
    stop = threading.Event()
    plan = run_cancellable(lambda: quote(name, models_dir, revision), stop,
                           lambda: require_wanted(name, cancelled))
    return fetch(plan, progress, cancelled)


def fetch(plan: DownloadPlan, progress: Progress | None = None,
          cancelled: Callable[[], bool] | None = None) -> Path:
    """Download the files of a quote; hosts show it to the user before."""
    check_online(file.repo for file in plan.files)
    transfer = Transfer(plan)

    def tell() -> None:
        if progress is not None:
            progress(transfer.done, plan.bytes, transfer.file)

    def poll() -> None:
        tell()
        require_wanted(plan.name, cancelled)

    check_space(plan)
    with locked(plan):
        run_cancellable(transfer.run, transfer.stop, poll)
    tell()
    shutil.rmtree(plan.staging, ignore_errors=True)
    return plan.destination


def require_wanted(name: str, cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise DownloadCancelled(f"the download of {name} was cancelled; what has arrived is kept, "
                                "start it again to go on")


def run_cancellable(work: Callable[[], T], stop: threading.Event, poll: Callable[[], None]) -> T:
    """Run `work` in a thread and poll in this one; an exception from `poll` sets `stop`.

    A hanging connection cannot block the caller: its thread is abandoned, and ends without writing
    once the connection responds.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        while not result.done():
            poll()
            wait([result], POLL)
    finally:
        stop.set()
        wait([result], 5 * POLL)
    return result.result()


def locked(plan: DownloadPlan) -> AbstractContextManager:
    """Lock the staging folder, so that only one run downloads into it."""
    from filelock import FileLock, Timeout

    try:
        plan.staging.mkdir(parents=True, exist_ok=True)
        return FileLock(plan.staging / "lock").acquire(timeout=0)
    except Timeout as error:
        raise SSDError(f"{plan.name} is being downloaded to {plan.destination} already: wait "
                       "for that, or cancel it") from error
    except OSError as error:
        raise unwritable(plan, error) from error


def check_space(plan: DownloadPlan) -> None:
    missing = sum(missing_bytes(file, plan.destination) for file in plan.files)
    folder = next(path for path in plan.destination.absolute().parents if path.is_dir())
    free = shutil.disk_usage(folder).free
    if missing and missing + RESERVE > free:
        raise SSDError(f"{plan.name} needs {missing / 1e9:.1f} GB more on the disk of "
                       f"{plan.destination.parent}, {free / 1e9:.1f} GB are free: make room or "
                       "choose another models folder")
