"""On small machines OpenMP's idle threads sleep, unless the user has set a policy. Before torch.

By default they spin for the next matrix product. Where other programs keep the few cores busy they
spin against these: a picture that takes 2 seconds with sleeping threads then took up to 26. On an
idle machine sleeping costs a quarter of the speed (benchmarks/results/threads.md), so machines with
cores to spare keep the default. OpenMP reads the policy once, when torch is imported.
"""

import os
import sys

VARIABLE = "OMP_WAIT_POLICY"
SMALL = 4  # cores

if "torch" not in sys.modules and (os.cpu_count() or 1) <= SMALL:
    os.environ.setdefault(VARIABLE, "passive")
SLEEPING = os.environ.get(VARIABLE, "").lower() == "passive"
