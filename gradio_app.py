"""Start the app, which needs no ComfyUI, on this machine.

    python gradio_app.py [--backbone NAME] [--heads NAME] [--models-dir DIR] [--output-dir DIR]
                         [--host 127.0.0.1] [--port 7860] [--share] [--language auto|en|zh]
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    from studio.start import run
except ModuleNotFoundError as missing:
    if missing.name not in ("gradio", "typer"):
        raise
    sys.exit(f"gradio_app.py: {missing.name} is missing: run `python install.py app`, or "
             "`pip install gradio typer`, with this Python")

if __name__ == "__main__":
    run("gradio_app.py", Path(__file__).resolve().parent)
