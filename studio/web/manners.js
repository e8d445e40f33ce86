/** What the page does by itself when somebody types or clicks; Gradio's components by their ids. */

/** A seed that somebody typed or pasted is meant: it is kept. Gradio tells of keys alone. */
document.addEventListener("input", ({ target }) => {
  const lock = document.querySelector("#lock input");
  if (target.closest("#seed") && lock?.checked === false) lock.click();
});

/** On a phone the stage is not where the button is that starts it. */
const STAGES = { draw: "create-stage", race: "race-stage", redo: "redo-stage" };
document.addEventListener("click", ({ target }) => {
  const stage = STAGES[target.closest("button")?.id];
  if (stage && matchMedia("(max-width: 600px)").matches) {
    document.getElementById(stage).scrollIntoView();
  }
});

/** There, what was not done is told out of sight, under the prompt: it comes into sight. */
new MutationObserver((changes) => {
  const told = changes.some(({ target, addedNodes }) => addedNodes.length
    && target.parentElement?.closest("#trouble") && target.querySelector("[role=alert]"));
  if (told && matchMedia("(max-width: 600px)").matches) {
    document.getElementById("trouble").scrollIntoView({ block: "center" });
  }
}).observe(document.documentElement, { childList: true, subtree: true });
