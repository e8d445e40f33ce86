/** ComfyUI registration: a preview on the nodes that decode, fed by the server's messages. */

import { app } from "../../scripts/app.js";
import { api } from "../../scripts/api.js";
import { Preview } from "./preview.js";
import { nodeAt } from "./routing.js";

const EVENT = "ssd.preview";
const MIN_HEIGHT = { SSD_Sampler: 260, SSD_Race: 260 };

/** Previews by node; weak, since the frontend also makes nodes that it never puts in a graph. */
const previews = new WeakMap();

app.registerExtension({
  name: "ssd.preview",
  setup() {
    api.addEventListener(EVENT, ({ detail }) => deliver(detail));
  },
  nodeCreated(node) {
    if (Object.hasOwn(MIN_HEIGHT, node.comfyClass)) attach(node);
  },
});

function deliver(message) {
  if (message?.node == null) return;
  const node = nodeAt(app.graph, message.node);
  if (node) previews.get(node)?.feed(message);
}

function attach(node) {
  const preview = new Preview({ language: language(), fills: true });
  const widget = node.addDOMWidget("ssd_preview", "ssd_preview", preview.element, {
    serialize: false,
    hideOnZoom: false,
    getMinHeight: () => MIN_HEIGHT[node.comfyClass],
  });
  widget.serialize = false; // the option keeps it out of the prompt, this out of the workflow
  previews.set(node, preview);
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
