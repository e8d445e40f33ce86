"""Pictures of visitors: how much memory large ones take, and that it comes back."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssd_core.output.picture_files import ENOUGH, reduced, upright

ROOT = Path(__file__).resolve().parents[3]
# Two visitors at once, each with 260 KB of 64 million pixels; what an app with a model needs beside
# them is there before they come.
SCRIPT = """
import io, sys, threading
from PIL import Image
from studio.pictures import as_png, decoded, opaque_cells
from ssd_core.backbones.postcard import save
from support.mock_backbone import tiny_postcard

def now(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith(name))

file = io.BytesIO()
Image.new("RGBA", (8192, 8192)).save(file, "PNG")
body, backbone = file.getvalue(), tiny_postcard()

def send():
    as_png(body, "x.png", backbone.sizes)
    opaque_cells(body, "x.png", backbone)

del file
from ssd_core.weights.memory import trim
trim()
open("/proc/self/clear_refs", "w").write("5")
idle = now("VmRSS")
threads = [threading.Thread(target=send) for _ in range(COUNT)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(now("VmHWM") - idle, now("VmRSS") - idle)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("count", [2, pytest.param(6, marks=pytest.mark.nightly)])
def test_large_pictures_take_little_memory_and_give_it_back(count):
    told = subprocess.run([sys.executable, "-c", SCRIPT.replace("COUNT", str(count))], cwd=ROOT,
                          env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"},
                          capture_output=True, text=True)
    peak, left = map(float, told.stdout.split())
    assert peak <= 0.5 and left <= 0.1, told.stdout


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK"])
def test_a_large_picture_looks_as_it_did(mode):
    """Beside the picture scaled as a whole, for every kind that is stored."""
    ramp = np.linspace(0, 255, 640, dtype=np.uint8)
    picture = Image.fromarray(np.stack(np.broadcast_arrays(
        ramp, ramp[:500, None], np.uint8(128), ramp[::-1]), -1)).convert(mode)
    small = upright(reduced(picture, 20_000))
    assert picture.size == (640, 500) and 20_000 <= small.width * small.height < 80_000
    whole = upright(picture).resize(small.size, Image.Resampling.BOX)
    assert np.abs(np.asarray(small, int) - np.asarray(whole, int)).max() <= 3


def test_what_is_not_large_keeps_every_pixel():
    picture = Image.new("RGB", (2048, 4096))
    assert reduced(picture, ENOUGH) is picture


def test_a_large_jpeg_is_decoded_small():
    from studio.pictures import decoded

    file = io.BytesIO()
    Image.new("L", (5000, 4000), 77).save(file, "JPEG")
    with decoded(file.getvalue(), "x") as image:
        assert image.size == (2500, 2000) and image.getpixel((9, 9)) == 77
