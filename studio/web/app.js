/** Starts the page: reads the schema, then shows the place that the address names. */

import { Api } from "./api.js";
import { make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { headMenu } from "./head.js";
import { Jobs } from "./jobs.js";
import { Places } from "./places.js";
import { Planner } from "./planner.js";
import { Settings } from "./settings.js";

/** What every place gets: the server, the settings, the jobs, the texts and the way about. */
export class App {
  constructor(api, schema) {
    Object.assign(this, { api, schema, words: schema.page, settings: new Settings(schema) });
    this.jobs = new Jobs(api, (line) => document.getElementById("lost").replaceChildren(
      ...(line ? [make("div", "toast bad", {}, [line])] : [])));
    this.planner = new Planner(this);
    this.places = new Places(this);
    this.language = schema.language;
    this.settings.watch(() => this.toasts?.settle());
  }

  /** Go to a place with something for it, such as {like: id of a picture}. */
  go(place, value) {
    return this.places.go(place, value);
  }

  say(template, values) {
    return say(template, values);
  }

  async toast(line, options) {
    const { Toasts } = await import("./toasts.js");
    this.toasts ??= new Toasts(document.getElementById("toasts"), this.words.common);
    this.toasts.say(line, options);
  }

  /**
   * Await what the server does; an error becomes a toast unless the place says it already, and the
   * answer is then null.
   */
  async attempt(promise) {
    const since = performance.now();
    try {
      const answer = await promise;
      this.toasts?.settle(since);
      return answer;
    } catch ({ message }) {
      const said = [...document.querySelectorAll("#main .bad")].find(
        (line) => line.textContent === message && line.checkVisibility());
      if (said) said.scrollIntoView({ block: "nearest" });
      else this.toast(message, { bad: true });
      return null;
    }
  }
}

/** The first stop of the Tab key goes past the head; the address stays that of the place. */
function skipLink({ words }) {
  const link = document.getElementById("skip");
  link.append(words.head.skip);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
}

/** The schema stands in the page, which spares a question. */
async function start() {
  const schema = JSON.parse(document.getElementById("schema").textContent);
  const app = new App(new Api({ lost: schema.page.common.lost }), schema);
  document.getElementById("places").append(
    ...app.places.links(["create", "race", "seeds", "history"]));
  document.getElementById("head-side").append(...headMenu(app));
  skipLink(app);
  await app.places.start();
  app.jobs.refresh();
  document.body.dataset.ready = "true";
  performance.mark("usable");
  await later(app);
}

/** What nobody needs at once. */
async function later(app) {
  const [{ takeIncoming }, { notifySwitch }, { listenForSheet }] = await Promise.all(
    [import("./incoming.js"), import("./notify.js"), import("./shortcuts.js")]);
  takeIncoming(app);
  listenForSheet(app);
  document.getElementById("notify").replaceWith(notifySwitch(app));
}

start();
