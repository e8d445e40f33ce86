/**
 * Divides a node's height: the preview takes what it needs, the prompts keep a few lines.
 */

import { chain, derive } from "./chain.js";

const PROMPT = 64; // px that a text widget takes at most

/**
 * Add an element to a node as a widget that no workflow or prompt stores. The node decides its
 * width: the Properties panel writes its own on every widget, and the canvas would keep it.
 */
export function addElement(node, name, type, element, options) {
  const widget = node.addDOMWidget(name, type, element,
    { serialize: false, hideOnZoom: false, ...options });
  widget.serialize = false; // the option keeps it out of the prompt, this out of the workflow
  derive(widget, "width", () => undefined);
  return widget;
}

/** Limit a node's text widgets: the canvas shares spare height among widgets without a limit. */
export function limitTexts(node) {
  for (const { element, options } of node.widgets ?? []) {
    if (element instanceof HTMLTextAreaElement) options.getMaxHeight ??= () => PROMPT;
  }
}

/** The height in px that the children of an element take. */
export function heightOf(element) {
  const shown = [...element.children].filter((child) => child.offsetHeight > 1); // not `ssd-aloud`
  return Math.max(0, ...shown.map((child) => child.offsetTop + child.offsetHeight));
}

/**
 * Let a classic node be as high as its widgets need, again and again while the children of an
 * element change; one that the user made higher stays so. Nodes 2.0 grow by themselves.
 */
export function followHeight(node, element, isClassic) {
  let fitted = null;
  const observer = new ResizeObserver(() => {
    if (!isClassic() || node.flags?.collapsed || !element.isConnected) return;
    const least = node.computeSize()[1];
    if (node.size[1] < least || node.size[1] === fitted) node.setSize([node.size[0], least]);
    if (node.size[1] === least) fitted = least;
    node.setDirtyCanvas?.(true, true);
  });
  for (const child of element.children) observer.observe(child);
  return observer;
}

/** Give a loaded node its saved height: the page's lists of choices shrink it to its widgets. */
export function keepHeight(node) {
  chain(node, "onConfigure", ({ size }) => {
    if (size?.[1] > node.size[1]) node.setSize([node.size[0], size[1]]);
  });
}

/** Remove the text that ComfyUI's page shows on a node, and the room that it took. */
export function removeText(node) {
  const widget = node?.widgets?.find(({ name }) => name === "$$node-text-preview");
  if (!widget) return;
  const before = node.computeSize()[1];
  node.removeWidget(widget);
  if (node.size[1] <= before) node.setSize([node.size[0], node.computeSize()[1]]);
}

/**
 * Let only the preview's row grow. In Nodes 2.0 the widgets are rows of a grid, and the frontend
 * sets which of them grow. The rows are written where the style sheet reads them.
 */
export function claimRow(element) {
  let grid = null;
  const rows = new MutationObserver(() => claim()); // a choice of method has other knobs
  const size = new ResizeObserver(() => claim());
  const claim = () => {
    const found = element.closest(".lg-node-widgets");
    if (!found) return;
    if (found !== grid) {
      rows.disconnect();
      rows.observe(grid = found, { childList: true });
    }
    const row = [...grid.children].findIndex((child) => child.contains(element));
    const others = row > 0 ? `repeat(${row}, min-content)` : "";
    grid.style.setProperty("--ssd-rows", `${others} minmax(min-content, 1fr)`);
  };
  size.observe(element);
  return {
    disconnect() {
      size.disconnect();
      rows.disconnect();
    },
  };
}

/**
 * Remembers the parents of elements. When undo replaces a node by another one of the same id, Nodes
 * 2.0 keeps the old widget's parent and leaves it empty.
 */
export class Places {
  #places = new Map();

  left(node, element) {
    this.#places.set(keyOf(node, element), element.parentElement);
  }

  /** Put the new node's element there, unless the frontend does so itself after a while. */
  taken(node, element) {
    for (const wait of [0, 100, 500, 2000]) {
      setTimeout(() => {
        const place = this.#places.get(keyOf(node, element));
        if (node.graph && !element.isConnected && place?.isConnected) {
          place.replaceChildren(element);
        }
      }, wait);
    }
  }
}

const keyOf = (node, element) => `${node.id} ${element.classList[0]}`;
