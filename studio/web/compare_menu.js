/** A menu of the last saved pictures: a click compares that one with the picture on the stage. */

import { button, make } from "./core/elements.js";
import { menuButton } from "./menu.js";
import { compareTwo, detailsOf } from "./picture_actions.js";

const LISTED = 16; // pictures

/** own(): id of the picture on the stage. first(): ids that are offered before all others. */
export function compareMenu(app, own, first) {
  const { words } = app;
  const items = () => {
    const list = make("div", "compare-list");
    fill(app, list, own(), first());
    return [make("p", "small hint", {}, [words.stage.compareWith]), list];
  };
  const made = menuButton(words.stage.compare, items, "button plain");
  made.button.dataset.tool = "compare";
  made.button.title = words.stage.compareHint;
  return made;
}

async function fill(app, list, own, first) {
  const answer = await app.attempt(app.api.get("history", { limit: LISTED + 1 }));
  const others = (answer?.entries ?? []).filter(({ id, kind }) => id !== own && kind !== "race");
  const rank = ({ id }) => (first.includes(id) ? 0 : 1);
  others.sort((a, b) => rank(a) - rank(b)); // stable: else the newest first
  list.replaceChildren(...others.slice(0, LISTED).map((entry) => tile(app, entry, own)));
  if (others.length === 0) list.append(make("p", "hint", {}, [app.words.stage.nothingToCompare]));
}

function tile(app, entry, own) {
  const { title, quality, thumbnail, seed } = entry;
  const name = [title, quality, seed].filter(Boolean).join(" · ");
  const image = make("img", "", { src: thumbnail, alt: "", height: "72", width: "72" });
  return button(image, async () => {
    const shown = await detailsOf(app, own);
    if (shown) compareTwo(app, [entry, shown]);
  }, { class: "", title: name, "aria-label": name });
}
