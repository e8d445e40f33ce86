"""Run by ComfyUI's Python in its folder: CPU seconds of ComfyUI's own start, and of the pack's.

Both are of one process, so that neither a busy machine nor a slow one changes their ratio.
"""

import asyncio
import sys
import time

from in_comfyui import ROOT

# isort: split
import comfy_config.config_parser  # noqa: F401  which the first of all packs pays for
import server

server.PromptServer(asyncio.new_event_loop())
own = time.process_time()
assert asyncio.run(server.nodes.load_custom_node(str(ROOT))), f"{ROOT} was not loaded"
sys.stdout.write(f"{own} {time.process_time() - own}\n")
