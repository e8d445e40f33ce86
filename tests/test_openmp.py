"""On small machines OpenMP's threads sleep while they wait: set before torch reads the policy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssd_core import openmp
from ssd_core.front.doctor import threads_line

ROOT = Path(__file__).resolve().parents[1]
AT_TORCH = """
import os, sys
class Spy:
    def find_spec(self, name, *_):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"))
            sys.stdout.flush()
            os._exit(0)
sys.meta_path.insert(0, Spy())
os.cpu_count = lambda: {cores}
import {module}
"""


def policy_when_torch_is_imported(module: str, cores: int = 2, **own: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != openmp.VARIABLE}
    code = AT_TORCH.format(module=module, cores=cores)
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**environment, **own},
                         capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize("module", ["ssd_core", "ssd_core.cli", "studio.start"])
def test_threads_sleep_where_cores_are_few(module):
    assert policy_when_torch_is_imported(module, cores=4) == "passive"
    assert policy_when_torch_is_imported(module, cores=5) == "None"


def test_the_user_s_own_policy_stays():
    assert policy_when_torch_is_imported("ssd_core", OMP_WAIT_POLICY="active") == "active"


def test_the_report_warns_of_spinning_threads_alone(monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for sleeping, lines in ((True, 0), (False, 1)):
        monkeypatch.setattr(openmp, "SLEEPING", sleeping)
        assert len(threads_line()) == lines
    assert "OMP_WAIT_POLICY=passive" in threads_line()[0]
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert threads_line() == []
