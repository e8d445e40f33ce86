/**
 * Height on a node: the preview gets what the node has to spare, the prompts keep a few lines.
 */

const PROMPT = 64; // px that a text widget takes at most

/** Nodes as ComfyUI draws them on its canvas share spare height among widgets of no limit. */
export function limitTexts(node) {
  for (const { element, options } of node.widgets ?? []) {
    if (element instanceof HTMLTextAreaElement) options.getMaxHeight ??= () => PROMPT;
  }
}

/**
 * In Nodes 2.0 the widgets are rows of a grid, and the frontend says which of them grow: let only
 * the preview's. The rows are written where the style sheet looks for them.
 */
export function claimRow(element) {
  const observer = new ResizeObserver(() => {
    const grid = element.closest(".lg-node-widgets");
    if (!grid) return;
    const row = [...grid.children].findIndex((child) => child.contains(element));
    const others = row > 0 ? `repeat(${row}, min-content)` : "";
    grid.style.setProperty("--ssd-rows", `${others} minmax(min-content, 1fr)`);
  });
  observer.observe(element);
  return observer;
}

/**
 * Where elements stood. Nodes 2.0 keeps the place of a widget whose node was replaced by another
 * of the same id, as undo does, and leaves it empty.
 */
export class Places {
  #places = new Map();

  left(node, element) {
    this.#places.set(keyOf(node, element), element.parentElement);
  }

  /** Put the new node's element there, unless the frontend does so itself; it takes its time. */
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
