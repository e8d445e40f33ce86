/**
 * Pictures picked by a click in the preview of Start Seeds: their numbers go to the Pick nodes that
 * are connected.
 */

import { targetsOf, widgetOf } from "./graph.js";

const PICKER = "SSD_Pick";
const PICKED = "ssd-picked";

/** "1, 3-5" with picture `number` put in, or taken out if it is there. */
export function toggled(text, number) {
  const numbers = new Set(numbersIn(text));
  if (!numbers.delete(number)) numbers.add(number);
  return [...numbers].sort((a, b) => a - b).join(", ");
}

/** The numbers of a text such as "1, 3-5"; what is no number is left out. */
export function numbersIn(text) {
  const parts = String(text ?? "").replace(/\s*[-–]\s*/g, "-").split(/[\s,，、;]+/);
  return parts.flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    if (!(first >= 1 && last >= first && last < 1000)) return [];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** Let clicks on the pictures of a node's preview pick them; `output` goes to the Pick nodes. */
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

/** Mark the pictures of a preview that the Pick nodes behind it name. */
export function markPicked(node, element, output) {
  const pickers = targetsOf(node, output).filter(({ type }) => type === PICKER);
  const numbers = new Set(pickers.flatMap((one) => numbersIn(widgetOf(one, "pictures")?.value)));
  element.classList.toggle("ssd-picks", pickers.length > 0);
  [...element.querySelectorAll(".ssd-picture")].forEach((picture, index) => {
    picture.classList.toggle(PICKED, numbers.has(index + 1));
  });
}
