/** Drafts that learn from the pictures of the history, beside the loaded model: what there is to
 * learn from, how far they have come, what it brought. */

import { button, make, setText } from "./core/elements.js";
import { check } from "./form.js";
import { isOver } from "./jobs.js";
import { passesChart } from "./passes_chart.js";
import { statusText, timeLeft } from "./status.js";

const LOOK = 5000; // ms between two looks for a lesson that began by itself

export class Learning {
  #timer = null;
  #lesson = null; // the job that is shown
  #latest = null; // the last one that began by itself
  #unfollow = () => {};

  /** ended(): a lesson is over, and others may show the model's drafts. */
  constructor(app, ended) {
    Object.assign(this, { app, ended, words: app.words.learning });
    const { words } = this;
    const { name } = app.schema.model;
    this.title = make("h2", "", { id: "learning-title" }, [app.say(words.title, { name })]);
    this.text = make("p", "", { id: "learning-text" }, [app.words.models.looking]);
    this.start = button(words.learn, () => app.attempt(app.jobs.submit("learn", {})),
      { id: "learn", disabled: "" });
    this.leftOut = make("details", "small", { hidden: "" });
    this.chart = make("div", "");
    this.element = make("section", "card stack learning", { "aria-labelledby": "learning-title" },
      [this.title, make("p", "hint", {}, [words.about]), this.text, this.leftOut,
        this.#actions(), this.#switch(), this.chart]);
    app.jobs.watch((jobs) => this.#jobs(jobs));
  }

  /** Learn, or Cancel with how far it has come; what is said of it stands below. */
  #actions() {
    const { words, app } = this;
    this.line = make("p", "", { role: "status", id: "learning-line" });
    this.bar = make("progress", "", { "aria-label": words.bar, max: "1", hidden: "" });
    this.stop = button(words.cancel, () => app.attempt(app.jobs.act(this.#lesson.id, "stop")),
      { id: "learn-cancel", class: "button danger", hidden: "" });
    return make("div", "stack", {},
      [make("div", "row", {}, [this.start, this.bar, this.stop]), this.line]);
  }

  #switch() {
    const { words, app } = this;
    const { box, element } = check(words.idle, false, async (on) => {
      const answer = await app.attempt(app.api.post("learn/idle", { on }));
      if (answer) this.#idle(answer);
      else box.checked = !on;
    });
    const hint = make("p", "hint small", { id: "learn-idle-hint" }, [words.idleHint]);
    box.id = "learn-idle";
    box.setAttribute("aria-describedby", hint.id);
    this.box = box;
    this.idle = make("div", "", {}, [element, hint]);
    return this.idle;
  }

  async shown() {
    const answer = await this.app.api.get("learn").catch(({ message }) => ({ problem: message }));
    if (answer.problem) { // another model is being loaded
      setText(this.text, answer.problem);
      return;
    }
    const { app, words } = this;
    this.answer = answer;
    const { text, left_out: leftOut } = answer;
    setText(this.text, text);
    setText(this.start, answer.begun ? words.goOn : words.learn);
    this.idle.hidden = answer.blocked;
    const count = leftOut.reduce((sum, each) => sum + each.count, 0);
    this.leftOut.hidden = count === 0;
    this.leftOut.replaceChildren(make("summary", "", {}, [app.say(words.leftOut, { count })]),
      make("ul", "hint", {}, leftOut.map((each) => make("li", "", {},
        [app.say(words.leftOutFor, each)]))));
    this.chart.replaceChildren(...passesChart(app, answer.passes));
    this.#idle(answer);
    this.#enable();
  }

  hidden() {
    clearTimeout(this.#timer);
  }

  /** A lesson that somebody asked for stands in the list of jobs. */
  #jobs(jobs) {
    const lesson = jobs.findLast(({ kind }) => kind === "learn");
    if (lesson) this.#show(lesson);
    this.#enable();
  }

  /** One that began by itself does not: it is looked for while this is in sight. */
  #idle({ while_idle: on, latest }) {
    const { app } = this;
    this.box.checked = on;
    if (latest && latest.id !== this.#latest?.id) {
      this.#unfollow();
      if (!isOver(latest)) {
        this.#unfollow = app.jobs.follow(latest.id, (entry) => {
          if (isOver(entry)) this.#look();
          else this.#show({ ...latest, ...entry, byItself: true });
        });
      }
    }
    if (latest && (isOver(latest) || latest.id !== this.#latest?.id)) {
      this.#show({ ...latest, byItself: true });
    }
    this.#latest = latest;
    clearTimeout(this.#timer);
    if (on && app.places.current === "models") {
      this.#timer = setTimeout(() => this.#look(), LOOK);
    }
  }

  async #look() {
    const answer = await this.app.api.get("learn/idle").catch(() => null);
    if (answer) this.#idle(answer);
  }

  /** How far a lesson has come, or what came of it; one that goes on is shown before others. */
  #show(lesson) {
    const earlier = this.#lesson;
    if (earlier && earlier.id !== lesson.id && !isOver(earlier) && isOver(lesson)) return;
    const { app } = this;
    this.#lesson = lesson;
    if (lesson.state === "running") this.bar.value = lesson.progress;
    else this.bar.removeAttribute("value");
    setText(this.line, this.#line(lesson));
    this.line.classList.toggle("bad", lesson.state === "failed");
    this.line.classList.toggle("good", lesson.result?.better ?? false);
    this.#enable();
    const ended = isOver(lesson) && earlier?.id === lesson.id && !isOver(earlier);
    if (ended && app.places.current === "models") this.ended();
  }

  #line(lesson) {
    const { words, app } = this;
    const { state, progress, result, error } = lesson;
    if (state === "running" && progress === 1) return words.measuring;
    if (state === "running") {
      const left = timeLeft(lesson, app.words.stage);
      return app.say(words[lesson.byItself ? "byItself" : "learning"],
        { left: left && app.say(words.left, { left }) });
    }
    const lines = { done: result?.text ?? "", failed: error ?? "",
      cancelled: words[lesson.byItself ? "paused" : "stopped"] };
    return lines[state] ?? statusText(lesson, app.words.stage);
  }

  /** Learn gives its place to Cancel, and the focus with it. */
  #enable() {
    const { start, stop, bar } = this;
    const going = this.#lesson !== null && !isOver(this.#lesson);
    const asked = going && !this.#lesson.byItself;
    const focused = [start, stop].includes(document.activeElement);
    bar.hidden = !going;
    stop.hidden = !asked;
    start.hidden = asked || (this.answer?.blocked ?? false);
    start.disabled = !this.answer?.can;
    if (focused) (asked ? stop : start).focus();
  }
}
