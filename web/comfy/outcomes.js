/**
 * Shows the server's errors and notes on a run: on their node, or as the page's own message if the
 * node is hidden. The start of the next run removes them. Knows no ComfyUI by itself: `host` has
 * nodeOf(id), previewOf(node), nodeErrors(), toasts(), words() and isForm().
 */

import { Sentences, refusals } from "./failures.js";

const STEP = 100, MOST = 600; // ms between two looks at what the server refused, and how many

export class Outcomes {
  #sentences;
  #timer;
  #failed = new Set(); // previews

  constructor(host) {
    this.host = host;
    this.toasts = new Toasts(host.toasts);
    this.#sentences = new Sentences(host.words);
  }

  /** Follow the events of ComfyUI's `api`. */
  watch(api) {
    api.addEventListener("execution_start", () => {
      this.#begin();
      this.#look(); // a part of the prompt may have been refused
    });
    api.addEventListener("execution_error", ({ detail }) => this.#raised(detail));
    api.addEventListener("promptQueueing", () => {
      this.#begin();
      this.#lookLater(MOST); // what was refused before is still there
    });
    api.addEventListener("promptQueued", () => this.#look());
  }

  /** ComfyUI's page keeps what the server refused, but tells nobody. `looks`: those to come. */
  #look(looks = 0) {
    clearTimeout(this.#timer);
    const errors = this.host.nodeErrors();
    if (errors) this.#refused(errors);
    else if (looks > 0) this.#lookLater(looks - 1);
  }

  #lookLater(looks) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(looks), STEP);
  }

  #raised({ node_id: id, node_type: kind, exception_message: sentence }) {
    if (kind?.startsWith("SSD_")) this.#fail(id, sentence.trim());
  }

  /** A prompt, or a part of it, was refused before anything ran. */
  #refused(nodeErrors) {
    const errors = refusals(nodeErrors);
    for (const [id, sentence] of errors) this.#fail(id, sentence);
    if (errors.length && this.host.isForm()) markInputs(errors.map(([id]) => id));
  }

  #fail(id, sentence) {
    const node = this.host.nodeOf(id);
    if (!node) return;
    const preview = this.host.previewOf(node);
    if (preview) this.#failed.add(preview);
    if (preview) preview.fail(sentence);
    else this.#sentences.show(node, sentence);
    const isInside = String(id).includes(":"); // a subgraph
    if (this.host.isForm() || isInside) this.toasts.add("error", node.title, sentence);
  }

  /** Show the notes of a run that starts; its node shows them too. */
  noted({ node: id, notes = [] }) {
    if (!this.host.isForm()) return;
    this.toasts.add("warn", this.host.nodeOf(id)?.title ?? "SSD", notes.join("\n"));
  }

  /** The same for a node's `ui` output, which may be of an earlier run. */
  notedIn(output) {
    const messages = output?.ssd_preview?.at(-1)?.messages ?? [];
    messages.filter(({ kind }) => kind === "started").forEach((start) => this.noted(start));
  }

  /** Remove the sentence on a node: its reason is gone. */
  forget(node) {
    this.#sentences.forget(node);
  }

  #begin() {
    this.#sentences.clear();
    for (const preview of this.#failed) preview.sayError();
    this.#failed.clear();
    this.toasts.clear();
  }
}

/** Mark a form's inputs of these nodes, for the style sheet. */
function markInputs(ids) {
  for (const item of document.querySelectorAll("[data-widget-key]")) {
    const [, id] = item.dataset.widgetKey.split(":");
    if (ids.includes(id)) item.dataset.ssd = "";
  }
}

/**
 * The page's own messages, for nodes that are hidden: in app mode and inside a subgraph. Each is
 * shown once, until the next run begins. `manager()` is ComfyUI's, or undefined.
 */
class Toasts {
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
