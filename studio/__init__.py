"""The Gradio app, opened by `python gradio_app.py`. Only page, tabs, server and words know gradio."""
