"""The Gradio app (`ssd app`). page, tabs, server and words know gradio."""
