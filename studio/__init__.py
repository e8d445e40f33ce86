"""The Gradio app, opened by `python gradio_app.py`. page, tabs, server and words know gradio."""
