/**
 * The page's own messages, for nodes that are hidden: in app mode and inside a subgraph. Each is
 * shown once, until the next run begins. Pure: `manager()` is ComfyUI's, or undefined.
 */

export class Toasts {
  #messages = [];

  constructor(manager) {
    this.manager = manager;
  }

  add(severity, summary, detail) {
    if (!detail || this.#messages.some((toast) => toast.detail === detail)) return;
    const message = { severity, summary, detail };
    this.#messages.push(message);
    this.manager()?.add(message);
  }

  clear() {
    for (const message of this.#messages) this.manager()?.remove?.(message);
    this.#messages = [];
  }
}
