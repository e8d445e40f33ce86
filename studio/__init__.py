"""The Gradio app: what `python gradio_app.py` opens. Only page, tabs, server and words know gradio."""
