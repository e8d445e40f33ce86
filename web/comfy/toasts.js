/**
 * The page's own messages, for where no node is in sight: in app mode, and inside a subgraph. Each
 * is shown once, until the next run begins. Pure: `manager()` is ComfyUI's, or nothing.
 */

export class Toasts {
  #shown = [];

  constructor(manager) {
    this.manager = manager;
  }

  add(severity, summary, detail) {
    if (!detail || this.#shown.some((one) => one.detail === detail)) return;
    const message = { severity, summary, detail };
    this.#shown.push(message);
    this.manager()?.add(message);
  }

  clear() {
    for (const message of this.#shown) this.manager()?.remove?.(message);
    this.#shown = [];
  }
}
