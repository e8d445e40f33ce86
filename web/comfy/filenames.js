/** Fills in the patterns of file names, as the page does for ComfyUI's own save nodes. */

import { widgetOf } from "./graph.js";

const SAVERS = new Set(["SSD_SaveImage", "SSD_RunViewer"]);

/**
 * Make a saver send its name with %date:...% and %Node.widget% filled in by `replace`. The server
 * fills in the other patterns (nodes/filenames.py).
 */
export function fillName(node, replace) {
  const widget = SAVERS.has(node.comfyClass) && widgetOf(node, "filename_prefix");
  if (widget) widget.serializeValue = () => replace(widget.value);
}
