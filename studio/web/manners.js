/** What the page does by itself when somebody types or clicks; Gradio's components by their ids. */

import { copyText } from "./clipboard.js";
import { rememberPrompt } from "./words.js";

/** A seed that somebody types or pastes is locked. (Gradio reports keys only.) */
document.addEventListener("input", ({ target }) => {
  const lock = document.querySelector("#lock input");
  if (target.closest("#seed") && lock?.checked === false) lock.click();
});

const STARTS = "#draw, #race, #redo, #seeds-start";

/** The button that starts a run on the tab that is open, if it can be pressed. */
function start() {
  return [...document.querySelectorAll(STARTS)].find(
    (button) => button.checkVisibility() && !button.disabled) ?? null;
}

/** Control (or Command) and Enter start a run from anywhere, Enter from a field of one line. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || event.shiftKey || event.altKey) return;
  const field = event.target.closest?.("#controls :is(input, textarea)");
  const oneLine = field?.matches(":is(#seed, #pictures, #negative) *");
  if (!(event.ctrlKey || event.metaKey || oneLine)) return;
  event.preventDefault();
  event.stopPropagation();
  // Gradio hears of numbers when their field is left.
  if (field?.type === "number") field.blur();
  setTimeout(() => start()?.click(), field?.type === "number" ? 50 : 0);
}, true);

/** The prompts that were drawn are offered again. */
document.addEventListener("click", ({ target }) => {
  const prompt = document.querySelector("#prompt textarea")?.value.trim();
  if (target.closest("button")?.matches(STARTS) && prompt) rememberPrompt(prompt);
});

/** On a phone the settings fold. */
document.addEventListener("click", ({ target }) => {
  const fold = target.closest(".studio-fold");
  if (!fold) return;
  const open = document.getElementById("settings").classList.toggle("studio-open");
  fold.setAttribute("aria-expanded", String(open));
});

/** Buttons with data-copy put it on the clipboard, and say so for a moment. */
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  if (!button || button.textContent === button.dataset.copied) return;
  if (!await copyText(button.dataset.copy)) return;
  const label = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => (button.textContent = label), 1500);
});

const PHONE = "(max-width: 800px)";

/** On a phone a run that starts brings its stage into sight. */
const STAGES = { draw: "create-stage", race: "race-stage", redo: "redo-stage",
  "seeds-start": "seeds-grid" };
document.addEventListener("click", ({ target }) => {
  const stage = STAGES[target.closest("button")?.id];
  if (stage && matchMedia(PHONE).matches) {
    document.getElementById(stage).scrollIntoView({ block: "center" });
  }
});

let looking = false; // a picture of the history was tapped, and its details have not come yet
document.addEventListener("click", ({ target }) => {
  looking ||= target.closest("#history button") !== null;
});

const isDetails = (node) => node.querySelector?.(".studio-details")
  || node.matches?.(".studio-details");

/** Its details stand below all the others. */
new MutationObserver((changes) => {
  if (!looking || !changes.some(({ addedNodes }) => [...addedNodes].some(isDetails))) return;
  looking = false;
  if (matchMedia(PHONE).matches) {
    document.getElementById("history-side").scrollIntoView({ block: "start" });
  }
}).observe(document.documentElement, { childList: true, subtree: true });

/** On phones, scroll to an error below the prompt, which would appear out of sight. */
new MutationObserver((changes) => {
  const reported = changes.some(({ target, addedNodes }) => addedNodes.length
    && target.parentElement?.closest("#trouble") && target.querySelector("[role=alert]"));
  if (reported && matchMedia(PHONE).matches) {
    document.getElementById("trouble").scrollIntoView({ block: "center" });
  }
}).observe(document.documentElement, { childList: true, subtree: true });
