"""What all tests share: the engine on the path (behind everything else), few and fixed examples.

`--nightly` runs what is too long for every change as well, and looks for new examples.
"""

import gc
import os
import sys
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch reads it: the workers share the cores
os.environ["SSD_CACHE"] = "off"  # nothing is timed or kept, in processes that tests start, too
if sys.dont_write_bytecode:  # compile once, not in each worker and each process of a test
    sys.dont_write_bytecode = os.environ.pop("PYTHONDONTWRITEBYTECODE", "") == ""

import pytest
import torch
from hypothesis import HealthCheck, settings
from support.preview_run import chromium

__all__ = ["chromium"]  # one browser for all tests: Playwright starts only once in a process

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from support.probed_once import probe_once  # noqa: E402
from support.small_bundle import write_small_bundle  # noqa: E402

from ssd_core.backbones.base import Backbone  # noqa: E402
from ssd_core.backbones.estimates import Estimates  # noqa: E402
from ssd_core.cli.beside import take  # noqa: E402
from ssd_core.weights import load as loading  # noqa: E402

take("ssd_lab")

settings.register_profile("engine", derandomize=True, deadline=None, max_examples=15,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("engine"), derandomize=False,
                          max_examples=250, print_blob=True)
torch.set_num_threads(1)


def pytest_addoption(parser):
    parser.addoption("--nightly", action="store_true",
                     help="run tests marked `nightly` too, with ten times as many random examples")


def pytest_configure(config):
    settings.load_profile("nightly" if config.getoption("--nightly") else "engine")


def spare_the_collector():
    """What lives now stays to the end: the collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish(session):
    spare_the_collector()
    gc.set_threshold(20_000, 50, 50)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item, nextitem):
    """A file's imports and caches outlive it; looking at them in vain took a tenth of a run."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        spare_the_collector()
    return result


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):  # a browser shares the cores
            item.add_marker(pytest.mark.flaky(reruns=1))
    if config.getoption("--nightly"):
        return
    for_the_night = {item for item in items if item.get_closest_marker("nightly")}
    for cases in cases_by_test(items).values():
        if mark := cases[0].get_closest_marker("by_day"):
            for_the_night |= set(cases) - set(spread(cases, *mark.args))
    if for_the_night:
        config.hook.pytest_deselected(items=list(for_the_night))
        items[:] = [item for item in items if item not in for_the_night]


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable():
    """Half a character in what a failed test says would end the worker that reports it."""
    return encodable((yield))


def encodable(value):
    """The value with each text in it as UTF-8 can hold it."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return type(value)(map(encodable, value)) if isinstance(value, list | tuple) else value


def pytest_runtest_logreport(report):
    """A first try that failed may have found a fault: it is shown even if the second one passes."""
    if report.outcome == "rerun":
        sys.__stdout__.write(f"\nfirst try of {report.nodeid}:\n{report.longreprtext}\n")


def cases_by_test(items):
    """The cases of each parametrized test, in order."""
    cases = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return cases


def spread(cases, count):
    """So many of the cases, at even distances; `by_day` of a law that all of them obey."""
    count = min(count, len(cases))
    return [cases[n * len(cases) // count] for n in range(count)]


@pytest.fixture(scope="session", autouse=True)
def weights_are_probed_once():
    """Nine tenths of what it takes to load a tiny model."""
    with pytest.MonkeyPatch.context() as patch:
        probe_once(patch, loading)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def small_assets(tmp_path_factory) -> Path:
    """The bundle with fewer cells, for `support.small_bundle`."""
    return write_small_bundle(tmp_path_factory.mktemp("assets"))


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A tiny checkpoint of every published layout, which tests leave as it is."""
    from support.layouts import every_layout

    return every_layout(tmp_path_factory)


@pytest.fixture(autouse=True)
def no_figures_of_other_tests(monkeypatch):
    """Plans tell what this process has seen runs take; no test tells another."""
    monkeypatch.setattr(Backbone, "estimates", Estimates())
    if commands := sys.modules.get("ssd_core.cli.session"):
        commands.estimates.cache_clear()
