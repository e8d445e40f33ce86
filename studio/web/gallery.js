/**
 * What stands on the stage before the first picture: finished postcards, whose words can be drawn.
 */

import { button, make } from "./core/elements.js";

const SHOWN = 6;

export function gallery(app) {
  const { words, schema, settings } = app;
  const tiles = schema.examples.slice(0, SHOWN).map(({ prompt, picture, seed }) => {
    const image = make("img", "", { src: picture, alt: "", width: "384", height: "384" });
    const tile = button([image, make("span", "", {}, [prompt])], () => {
      settings.set({ prompt, ...(seed ? { seed } : {}) });
      app.draw();
    }, { class: "example" });
    return make("li", "", {}, [tile]);
  });
  const element = make("div", "gallery", { id: "gallery" }, [
    make("h2", "title", {}, [words.stage.welcome]),
    make("p", "hint", {}, [words.stage.welcomeHint]), make("ul", "", {}, tiles)]);
  return { element, dispose: () => element.remove() };
}
