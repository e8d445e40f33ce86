/** Shows the text for a bug report in a dialog. */

import { addStyleSheet, button, make } from "../preview/elements.js";

/** words: those of the page's language. */
export function showReport(report, words) {
  addStyleSheet();
  const text = make("pre", "", { tabindex: "0" }, [report]);
  const dialog = make("dialog", "ssd-report", { "aria-label": words.report }, [
    text,
    button(words.copy, () => navigator.clipboard.writeText(report)),
    button(words.touch.close, () => dialog.close()),
  ]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
