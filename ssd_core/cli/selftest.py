"""`ssd selftest`: find out what works on this machine, and switch off what does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import SSDError
from ..machine_faults import FULL, QUICK, found_on
from ..selftest.machine import Machine
from ..selftest.measuring import METHODS
from ..selftest.page import write
from ..selftest.suite import BACKBONE, SelfTest, dtypes_of
from ..weights.load import auto_dtype, pick_device
from .options import Json, Loading, flag
from .output import Reporter
from .session import load


@dataclass(frozen=True)
class SelfTestOptions:
    """What is tested."""

    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtypes: str = flag("all", "all that the device offers, or some, separated by commas.")
    quick: bool = flag(False, "At most 20 seconds instead of five minutes: the dtype in which "
                              "postcard is loaded, unless --dtypes names others.")
    report: str | None = flag(None, "A folder for a page and a picture to share: speed, memory, "
                                    "and whether tokens agreed.")
    backbone: str = flag("postcard", "What the report measures; the self-test takes postcard.")
    dtype: str = flag("auto", "The dtype of this backbone.")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME.")


def command(options: SelfTestOptions, json: Json = False) -> None:
    """Draw small pictures in every way this machine offers, and compare them.

    What fails is switched off on this machine until PyTorch, the driver or this program is updated.
    """
    reporter, device = Reporter(json), pick_device(options.device)
    machine = Machine.of(device)
    offered = dtypes_of(device)
    usual = auto_dtype(BACKBONE, device) if options.quick else "all"
    test = SelfTest(machine, chosen(options.dtypes, offered, usual),
                    QUICK if options.quick else FULL)
    for finding in test.findings():
        reporter.print(f"{finding.path}: {finding.check}: {finding.problem or 'passed'}")
    test.store()
    for dtype, reason in test.left_out.items():
        reporter.print(f"not tested: {dtype} ({reason})")
    off = found_on(device).faults
    for path, reason in off.items():
        reporter.print(f"switched off: {path} ({reason})")
    reporter.print(test.summary)
    written = write_report(options, test, reporter) if options.report else []
    reporter.result({"device": str(device), "summary": test.summary, "seconds": test.seconds,
                     "checks": [vars(finding) for finding in test.done],
                     "switched_off": dict(off), "not_tested": test.left_out, "files": written})


def chosen(dtypes: str, offered: tuple[str, ...], usual: str) -> list[str]:
    """The dtypes to test, checked, in the order in which the device offers them.

    usual: what "all" stands for, a dtype or all that are offered.
    """
    if dtypes == "all":
        return list(offered) if usual == "all" else [usual]
    names = [name.strip() for name in dtypes.split(",")]
    if unknown := next((name for name in names if name not in offered), None):
        raise SSDError(f"dtypes {unknown!r}: this device offers {', '.join(offered)}; choose all, "
                       "or some of them")
    return [name for name in offered if name in names]


def write_report(options: SelfTestOptions, test: SelfTest, reporter: Reporter) -> list[str]:
    """Measure, write the page and the picture, and return their paths."""
    loading = Loading(backbone=options.backbone, models_dir=options.models_dir,
                      device=options.device, dtype=options.dtype)
    backbone, heads = load(loading, METHODS)
    reporter.print(f"measuring {backbone.name} for the report, which takes a minute or two")
    paths = write(Path(options.report or "."), test, backbone, heads)
    for path in paths:
        reporter.print(f"written: {path}")
    return [str(path) for path in paths]
