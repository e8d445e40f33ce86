"""The Gradio app (`ssd app`). Only page, tabs, server and words import gradio."""
