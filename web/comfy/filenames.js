/** File names whose patterns the page fills in, as it does for ComfyUI's own save nodes. */

import { widgetOf } from "./graph.js";

const SAVERS = new Set(["SSD_SaveImage", "SSD_Replay"]);

/**
 * Let a saver send its name as `replace` fills in %date:...% and %Node.widget%. What it leaves is
 * filled in by the server (nodes/filenames.py).
 */
export function fillName(node, replace) {
  const widget = SAVERS.has(node.comfyClass) && widgetOf(node, "filename_prefix");
  if (widget) widget.serializeValue = () => replace(widget.value);
}
