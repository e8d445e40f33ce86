/** The right side of the head: the model in use, and the gear with what is seldom needed. */

import { button, make } from "./core/elements.js";
import { segments } from "./form.js";
import { icon } from "./icons.js";
import { keep, recall } from "./kept.js";
import { queueMenu } from "./queue.js";

const THEME = "theme";

/** The elements for the head. */
export function headMenu(app) {
  const { words } = app;
  const model = make("a", "button plain small", { href: "#models", title: words.head.model,
    id: "model-in-use" }, [app.schema.model.name]);
  const menu = make("div", "menu stack", { popover: "", id: "gear-menu" }, [
    ...["models", "doctor"].map((name) => make("a", "button plain",
      { href: `#${name}` }, [words.places[name]])),
    keysButton(app), make("hr", ""), themeChoice(words.head), languageChoice(app),
    make("span", "", { id: "notify" }),
    make("hr", ""), make("span", "small hint", {},
      [app.say(words.head[app.schema.local ? "about" : "aboutShared"],
        { version: app.schema.version })]),
  ]);
  menu.addEventListener("click",
    ({ target }) => target.closest("a, #open-keys") && menu.hidePopover());
  const gear = make("button", "button plain icon", { type: "button", id: "gear",
    popovertarget: "gear-menu", "aria-label": words.head.gear, title: words.head.gear },
  [icon("gear")]);
  return [...queueMenu(app), model, gear, menu];
}

function keysButton(app) {
  return button([app.words.keys.title, make("kbd", "", { "aria-hidden": "true" }, ["?"])],
    async () => (await import("./shortcuts.js")).openSheet(app),
    { class: "button plain", id: "open-keys" });
}

/** The language of the page, which the server reads from a cookie. */
function languageChoice({ words, language }) {
  const options = [{ value: "en", label: "English" }, { value: "zh", label: "中文" }];
  const { element, set } = segments("language", words.head.language, options, (value) => {
    document.cookie = `ssd-language=${value}; max-age=31536000; samesite=lax`;
    location.reload();
  });
  set(language);
  element.id = "language";
  return element;
}

function themeChoice(words) {
  const options = ["auto", "light", "dark"].map((value) => ({ value, label: words[value] }));
  const { element, set } = segments("theme", words.theme, options, (value) => {
    apply(value);
    keep(THEME, value);
  });
  const theme = recall(THEME, "auto");
  set(theme);
  apply(theme);
  return element;
}

function apply(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
