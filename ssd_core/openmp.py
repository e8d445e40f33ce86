"""Lets OpenMP's idle threads sleep, unless the user has set a waiting policy. Import before torch.

By default they spin for the next matrix product. Where other programs keep the cores busy they
spin against these: a picture that takes 2 seconds with sleeping threads then took 26
(benchmarks/results/threads.md). OpenMP reads the policy once, when torch is imported.
"""

import os
import sys

VARIABLE = "OMP_WAIT_POLICY"

if "torch" not in sys.modules:
    os.environ.setdefault(VARIABLE, "passive")
SLEEPING = os.environ.get(VARIABLE, "").lower() == "passive"
