"""ComfyUI's way in: the nodes, imported only when asked for, and the folder of browser modules.

Lazy, so that tests may import this package without ComfyUI; ComfyUI finds the templates in
`workflows/`, the names in `locales/` and the help in `web/docs/` by itself.
"""

WEB_DIRECTORY = "./web"
__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]


async def comfy_entrypoint():
    """The extension; ComfyUI calls this once at start."""
    from .nodes import SSDExtension

    return SSDExtension()
