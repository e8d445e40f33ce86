"""The app (`ssd app`): its own page on gradio.Server. Only server and programs import gradio."""
