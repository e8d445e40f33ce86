/**
 * What ComfyUI's page does and its server cannot: patterns in file names, the page's language, and
 * the templates in their order and in that language. Knows no ComfyUI by itself.
 */

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

/** Sends the page's language to the server, for the errors, notes and reports of the nodes. */
export class Language {
  #sent = "";

  /** post: sends {page, language}; returns a promise. */
  constructor(post) {
    this.post = post;
  }

  /** Send the language, unless it was sent already or the page has no id yet. */
  send(page, language) {
    const message = JSON.stringify([page, language]);
    if (!page || message === this.#sent) return;
    this.#sent = message;
    this.post({ page, language }).catch(() => { this.#sent = ""; });
  }
}

const FIRST = "01_quick_start"; // how our list is known, whatever the pack's folder is called

/** Make ComfyUI's `api` give our list in order; the server lists it as the file system does. */
export function sortTemplates(api) {
  const { getWorkflowTemplates } = api;
  if (!getWorkflowTemplates) return;
  api.getWorkflowTemplates = async function (...args) {
    const lists = await getWorkflowTemplates.apply(this, args);
    Object.values(lists ?? {}).find((names) => names.includes?.(FIRST))?.sort();
    return lists;
  };
}

/** Translate the notes and titles of a graph by its own table; what was changed stays. */
export function translate(graph, language) {
  const texts = graph?.extra?.ssd_texts?.[language?.split("-")[0]];
  if (!texts) return;
  for (const shown of [...graph._nodes, ...graph._groups]) {
    shown.title = texts[shown.title] ?? shown.title;
    for (const widget of shown.type === "MarkdownNote" ? shown.widgets : []) {
      widget.value = texts[widget.value] ?? widget.value;
    }
  }
}
