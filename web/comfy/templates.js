/**
 * Our workflows: sorts them in the template browser by their numbers, and shows their notes and
 * titles in the page's language. Knows no ComfyUI by itself.
 */

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
