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
