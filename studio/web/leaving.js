/**
 * What a page leaves to the next page of its tab: the words in its boxes, and unfinished jobs.
 *
 * Gradio loads the page again when the server was restarted. Words that were typed meanwhile are
 * then nowhere else, and only the page knows which run was lost.
 */

const KEY = "ssd-studio-left"; // read by page.py
const ON = "[data-state=running], [data-state=waiting], [data-state=paused]";

function boxes() {
  const entries = ["prompt", "negative"].map(
    (name) => [name, document.querySelector(`#${name} :is(textarea, input)`)?.value]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function jobs() {
  return [...document.querySelectorAll("ssd-stage[jobs], ssd-seeds[jobs]")]
    .filter((element) => element.querySelector(ON))
    .flatMap((element) => element.getAttribute("jobs").split(",")).filter(Boolean);
}

window.addEventListener("pagehide", () => {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ words: boxes(), jobs: jobs() }));
  } catch {
    // no storage: the next page begins with what the server remembers
  }
});
