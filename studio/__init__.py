"""The app (`ssd app`): its own page, served by gradio.Server. Only server and programs import gradio."""
