"""The app for those without ComfyUI; gradio_app.py beside this folder opens it."""
