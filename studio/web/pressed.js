/** A click must end where it began: what moves the page waits while a button is pressed. */

const LONGEST = 1000; // ms; a pointer may be released outside the window
const CONTROLS = "button, a, summary, label";
const page = globalThis.document; // none in Node
let waiting = null; // what to do after the click; null while no button is pressed

page?.addEventListener("pointerdown", ({ target }) => {
  if (waiting || !target.closest(CONTROLS)) return;
  waiting = [];
  setTimeout(release, LONGEST);
}, true);
for (const end of ["pointerup", "pointercancel"]) {
  page?.addEventListener(end, () => setTimeout(release), true); // the click comes before
}

/** Do something now, or after the click that is being made. */
export function afterClick(act) {
  if (waiting) waiting.push(act);
  else act();
}

function release() {
  const acts = waiting ?? [];
  waiting = null;
  for (const act of acts) act();
}
