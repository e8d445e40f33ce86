/** The prompts that this browser drew last, in a menu. */

import { button, make } from "./core/elements.js";
import { keep, recall } from "./kept.js";
import { sign } from "./icons.js";
import { menuButton } from "./menu.js";

const KEY = "prompts";
const MOST = 12;

/** The latest first. */
export function recentPrompts() {
  const prompts = recall(KEY, []);
  return Array.isArray(prompts) ? prompts.filter((text) => typeof text === "string") : [];
}

export function rememberPrompt(typed) {
  const prompt = typed.trim();
  if (!prompt) return;
  const prompts = [prompt, ...recentPrompts().filter((text) => text !== prompt)].slice(0, MOST);
  keep(KEY, prompts);
}

/** {button, menu}: a click on a prompt writes it into the box. */
export function recentMenu(app) {
  const { words } = app.words;
  const made = menuButton(sign("recent", words.recent), () => {
    const prompts = recentPrompts().map((prompt) => choice(app, prompt));
    return prompts.length ? prompts : [make("p", "hint small", {}, [words.noRecent])];
  }, "button plain icon");
  Object.assign(made.button, { id: "recent", title: words.recent });
  made.menu.classList.add("recent-menu");
  return made;
}

function choice(app, prompt) {
  return button(make("span", "clip", {}, [prompt]), () => app.settings.set({ prompt }),
    { class: "button plain", title: prompt });
}
