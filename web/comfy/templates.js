/**
 * Sorts our workflows in the template browser by their numbers: the quick start comes first. The
 * server lists them as the file system does. Knows no ComfyUI by itself.
 */

const FIRST = "1_quick_start"; // how our list is known, whatever the pack's folder is called

/** Make ComfyUI's `api` give our list in order. */
export function sortTemplates(api) {
  const { getWorkflowTemplates } = api;
  if (!getWorkflowTemplates) return;
  api.getWorkflowTemplates = async function (...args) {
    const lists = await getWorkflowTemplates.apply(this, args);
    const ours = Object.values(lists ?? {}).find((names) => names.includes?.(FIRST));
    ours?.sort((a, b) => parseInt(a, 10) - parseInt(b, 10));
    return lists;
  };
}
