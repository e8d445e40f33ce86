/**
 * Picks pictures by a click in the preview of a sampler: writes their numbers to the connected
 * Finish nodes.
 */

import { targetsOf, widgetOf } from "./graph.js";

export const PICKER = "SSD_Finish";
const PICKED = "ssd-picked";

/** A text such as "1, 3-5" with picture `number` added, or removed if the text has it. */
export function toggled(text, number) {
  const numbers = new Set(numbersIn(text));
  if (!numbers.delete(number)) numbers.add(number);
  return [...numbers].sort((a, b) => a - b).join(", ");
}

/** The numbers of a text such as "1, 3-5"; anything else is ignored. */
export function numbersIn(text) {
  const parts = String(text ?? "").replace(/\s*[-–]\s*/g, "-").split(/[\s,，、;]+/);
  return parts.flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    if (!(first >= 1 && last >= first && last < 1000)) return [];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** Make clicks on a preview's pictures pick them; `output`: the one linked to the Finish nodes. */
export function pickByClick(node, element, output, changed) {
  element.addEventListener("click", (event) => {
    const picture = event.target.closest?.(".ssd-picture");
    const pickers = targetsOf(node, output).filter(({ type }) => type === PICKER);
    if (!picture || !pickers.length) return;
    const number = [...element.querySelectorAll(".ssd-picture")].indexOf(picture) + 1;
    for (const picker of pickers) {
      const widget = widgetOf(picker, "pictures");
      widget.value = toggled(widget.value, number);
      widget.callback?.(widget.value);
    }
    changed();
  });
}

/** Mark the pictures of a preview that the connected Finish nodes name. */
export function markPicked(node, element, output) {
  const pickers = targetsOf(node, output).filter(({ type }) => type === PICKER);
  const numbers = new Set(pickers.flatMap((node) => numbersIn(widgetOf(node, "pictures")?.value)));
  element.classList.toggle("ssd-picks", pickers.length > 0);
  [...element.querySelectorAll(".ssd-picture")].forEach((picture, index) => {
    picture.classList.toggle(PICKED, numbers.has(index + 1));
  });
}
