/**
 * What becomes of a run, in the words of the server, where it is seen: on the node it is about, and
 * as the page's own message where no node is in sight. All of it goes when the next run begins.
 * Knows no ComfyUI by itself: `host` has nodeOf(id), previewOf(node), toasts() and isForm().
 */

import { Sentences, refusals } from "./failures.js";
import { Toasts } from "./toasts.js";

export class Outcomes {
  #sentences = new Sentences();
  #failed = new Set(); // previews

  constructor(host) {
    this.host = host;
    this.toasts = new Toasts(host.toasts);
  }

  /** Follow what `api`, as ComfyUI's page has it, is told by the server. */
  watch(api) {
    api.addEventListener("execution_start", () => this.#begin());
    api.addEventListener("execution_error", ({ detail }) => this.#raised(detail));
    const { queuePrompt } = api;
    const outcomes = this;
    api.queuePrompt = async function (...args) {
      outcomes.#begin();
      try {
        const answer = await queuePrompt.apply(this, args);
        outcomes.#refused(answer?.node_errors);
        return answer;
      } catch (error) {
        outcomes.#refused(error?.response?.node_errors);
        throw error;
      }
    };
  }

  #raised({ node_id: id, node_type: kind, exception_message: sentence }) {
    if (kind?.startsWith("SSD_")) this.#fail(id, sentence.trim());
  }

  /** A prompt, or a part of it, was refused before anything ran. */
  #refused(nodeErrors) {
    const found = refusals(nodeErrors);
    for (const [id, sentence] of found) this.#fail(id, sentence);
    if (found.length && this.host.isForm()) markInputs(found.map(([id]) => id));
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

  /** What a run that starts wants its user to know; the node says it, too. */
  noted({ node: id, notes = [] }) {
    if (!this.host.isForm()) return;
    this.toasts.add("warn", this.host.nodeOf(id)?.title ?? "SSD", notes.join("\n"));
  }

  /** The same for a node's `ui` output, which may be of an earlier run. */
  shown(output) {
    const messages = output?.ssd_preview?.at(-1)?.messages ?? [];
    messages.filter(({ kind }) => kind === "started").forEach((one) => this.noted(one));
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
