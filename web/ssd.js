/** ComfyUI registration: a preview on the nodes that decode, fed by the server's messages. */

import { app } from "../../scripts/app.js";
import { api } from "../../scripts/api.js";
import { Preview } from "./preview.js";
import { nodeAt } from "./routing.js";

const EVENT = "ssd.preview";
/** Least sizes in px: a postcard at native pixels and all of its text, twice on Race. */
const NODES = {
  SSD_Sampler: { width: 300, height: 330 },
  SSD_Race: { width: 460, height: 350 },
};

const MARGIN = 10; // px that classic nodes leave above and below a widget

/** Previews by node; weak, since the frontend also makes nodes that it never puts in a graph. */
const previews = new WeakMap();

app.registerExtension({
  name: "ssd.preview",
  setup() {
    api.addEventListener(EVENT, ({ detail }) => deliver(detail));
  },
  nodeCreated(node) {
    if (Object.hasOwn(NODES, node.comfyClass)) attach(node);
  },
});

function deliver(message) {
  if (message?.node == null) return;
  const node = nodeAt(app.graph, message.node);
  if (node) previews.get(node)?.feed(message);
}

function attach(node) {
  const { width, height } = NODES[node.comfyClass];
  const preview = new Preview({ language: language(), fills: true });
  preview.element.style.minHeight = `${height}px`; // Nodes 2.0 does not ask getMinHeight
  // Classic nodes keep the wheel from the canvas; Nodes 2.0 takes it before it comes here.
  preview.element.addEventListener("wheel", (event) => app.canvas.processMouseWheel(event));
  const widget = node.addDOMWidget("ssd_preview", "ssd_preview", preview.element, {
    serialize: false,
    hideOnZoom: false,
    getMinHeight: () => height + 2 * MARGIN,
  });
  widget.serialize = false; // the option keeps it out of the prompt, this out of the workflow
  previews.set(node, preview);
  node.setSize([Math.max(node.size[0], width), node.size[1]]);
  const onRemoved = node.onRemoved;
  node.onRemoved = function (...args) {
    previews.delete(node);
    preview.dispose();
    return onRemoved?.apply(this, args);
  };
}

function language() {
  return app.extensionManager?.setting?.get("Comfy.Locale") ?? navigator.language;
}
