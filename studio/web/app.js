/** Starts the page: asks for the schema, then shows the place that the address names. */

import { Api } from "./api.js";
import { make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { headMenu } from "./head.js";
import { takeIncoming } from "./incoming.js";
import { Jobs } from "./jobs.js";
import { Places } from "./places.js";
import { Planner } from "./planner.js";
import { Settings } from "./settings.js";
import { Toasts } from "./toasts.js";

/** What every place gets: the server, the settings, the jobs, the texts and the way about. */
export class App {
  constructor(api, schema) {
    Object.assign(this, { api, schema, words: schema.page, settings: new Settings(schema) });
    this.toasts = new Toasts(document.getElementById("toasts"), this.words.common);
    this.jobs = new Jobs(api, (line) => document.body.toggleAttribute("data-lost", line !== ""));
    this.planner = new Planner(this);
    this.places = new Places(this);
    this.language = schema.language;
  }

  /** Go to a place with something for it, such as {like: id of a picture}. */
  go(place, value) {
    return this.places.go(place, value);
  }

  say(template, values) {
    return say(template, values);
  }

  toast(line, options) {
    return this.toasts.say(line, options);
  }

  /** Await what the server does; an error becomes a toast, and the answer is then null. */
  async attempt(promise) {
    try {
      return await promise;
    } catch (error) {
      this.toast(error.message, { bad: true });
      return null;
    }
  }
}

async function start() {
  const api = new Api();
  let schema;
  try {
    schema = await api.get("schema");
  } catch (error) {
    document.getElementById("main").prepend(
      make("p", "notice", { role: "alert" }, [error.message]));
    return;
  }
  document.documentElement.lang = schema.language;
  const app = new App(api, schema);
  document.getElementById("places").append(
    ...app.places.links(["create", "race", "seeds", "history"]));
  document.getElementById("head-side").append(...headMenu(app));
  takeIncoming(app);
  await app.places.start();
  app.jobs.refresh();
  document.body.dataset.ready = "true";
}

start();
