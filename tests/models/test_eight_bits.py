"""dtype `8bit`: the faster of int8 and fp8, by measurement; reports say which."""

from functools import cache

import pytest
import torch
from support.mock_backbone import tiny_postcard

from ssd_core import SSDError, kept_entries, load_backbone, methods
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.runs import diagnostics
from ssd_core.weights import eight_bits
from ssd_core.weights.fit import fit, multiplies_integers
from ssd_core.weights.model_size import stored_dtype

CPU = torch.device("cpu")


@pytest.fixture
def both(monkeypatch, tmp_path):
    """A device with both dtypes, whose products take as many milliseconds as the test says."""
    ms, quantised = {}, []
    monkeypatch.setattr(kept_entries, "cache_folder", lambda: tmp_path)

    def quantiser(kind, device):
        if kind not in ms:
            raise SSDError("not here")
        return lambda weight: quantised.append(kind) or weight

    monkeypatch.setattr(eight_bits, "quantiser", quantiser)
    monkeypatch.setattr(eight_bits, "WIDTH", 8)
    monkeypatch.setattr(eight_bits, "best_of", lambda work, device: ms[quantised[-1]] / 1000)
    monkeypatch.setattr(eight_bits, "measured", cache(eight_bits.measured.__wrapped__))
    return ms


@pytest.mark.parametrize(("int8", "fp8"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_one_is_taken_and_named(both, int8, fp8):
    both |= {"int8": int8, "fp8": fp8}
    chosen = "int8" if int8 < fp8 else "fp8"
    assert eight_bits.fastest(CPU) == chosen
    line = eight_bits.about(CPU)
    assert line.startswith(f"dtype 8bit: {chosen}, measured") and f"fp8 {fp8:.3f} ms" in line
    assert line in diagnostics.report([], place=CPU)
    both |= {"int8": fp8, "fp8": int8}
    eight_bits.measured.cache_clear()
    assert eight_bits.fastest(CPU) == chosen, "measured once on a machine, whatever its load later"


def test_what_is_not_offered_or_switched_off_is_not_measured(both, monkeypatch):
    both |= {"int8": 2.0}
    monkeypatch.setattr(eight_bits, "measured", lambda device: pytest.fail("one is left"))
    assert eight_bits.fastest(CPU) == "int8" and "fp8 does not work here" in eight_bits.about(CPU)
    both |= {"fp8": 1.0}
    monkeypatch.setattr(eight_bits, "fault_of", lambda path, device: "wrong" * (
        path == "dtype fp8"))
    assert eight_bits.fastest(CPU) == "int8"


def test_a_dtype_that_fails_while_it_is_timed_is_not_taken(both, monkeypatch):
    both |= {"int8": 2.0, "fp8": 1.0}
    real = eight_bits.timed

    def timed(weights, *more):
        if len(calls) == 1:
            raise RuntimeError("no kernel")
        calls.append(1)
        return real(weights, *more)

    calls = []
    monkeypatch.setattr(eight_bits, "timed", timed)
    assert eight_bits.fastest(CPU) == "int8" and list(eight_bits.measured(CPU)) == ["int8"]


def test_a_backbone_loads_in_it_and_fits_like_it(tmp_path):
    postcard.save(tiny_postcard(), path := tmp_path / "backbone.safetensors")
    backbone = load_backbone(path, "cpu", "8bit")
    assert stored_dtype(backbone) == "int8"
    sizes = [fit(backbone, methods.AR(), dtype=dtype, device="cpu").weights
             for dtype in ("8bit", "int8", "fp32")]
    assert sizes[0] == sizes[1] and (sizes[1] < sizes[2]) == multiplies_integers(CPU)


def test_plan_says_which_dtypes_would_be_loaded(capsys):
    assert main(["plan", "--json"]) == 0
    assert "dtype auto: " in (err := capsys.readouterr().err) and "; dtype 8bit: " in err
    assert main(["plan", "--grid", "4x4", "--json"]) == 0
    assert "8bit" not in capsys.readouterr().err
