"""The ComfyUI entry point: the nodes, imported lazily, and the folder of browser modules.

Lazy, so that tests can import this package without ComfyUI. ComfyUI itself finds the templates in
`workflows/`, the names in `locales/` and the help in `web/docs/`.
"""

WEB_DIRECTORY = "./web"
__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]


async def comfy_entrypoint():
    """Return the extension; ComfyUI calls this once at start."""
    from .nodes import SSDExtension

    return SSDExtension()
