"""Run by ComfyUI's Python in its folder: CPU seconds of ComfyUI's own start, and of the pack's.

Both are of one process, so that neither a busy machine nor a slow one changes their ratio.
ComfyUI reads the arguments.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, os.getcwd())
PACK = Path(__file__).resolve().parents[2]

import comfy.options  # noqa: E402

comfy.options.enable_args_parsing()

import utils.extra_config  # noqa: E402, F401  as main.py does, before another takes the name

# isort: split
import comfy_config.config_parser  # noqa: E402, F401  which the first of all packs pays for
import server  # noqa: E402

server.PromptServer(asyncio.new_event_loop())
own = time.process_time()
assert asyncio.run(server.nodes.load_custom_node(str(PACK))), f"{PACK} was not loaded"
sys.stdout.write(f"{own} {time.process_time() - own}\n")
