/** The place with one text for a bug report: versions, device, models, the last error. */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { isOver } from "./jobs.js";
import { copyLine } from "./picture_actions.js";
import { statusText } from "./status.js";

const LIMIT = 300; // s of a self-test

export function mount(section, app) {
  addStyleSheet(new URL("doctor.css", import.meta.url).href);
  const words = app.words.doctor;
  const report = make("pre", "card report", { id: "doctor-report", tabindex: "0",
    "aria-label": words.report });
  const refresh = async () => {
    const answer = await app.attempt(app.api.get("doctor"));
    if (answer) report.textContent = answer.report;
  };
  const test = button(words.test, () => app.attempt(app.jobs.submit("selftest", {})),
    { id: "doctor-test" });
  section.append(make("div", "sheet", {}, [
    make("h1", "title", {}, [words.title]), make("p", "hint", {}, [words.hint]),
    make("div", "row", {}, [
      button(words.copy, () => copyLine(app, report.textContent), { id: "doctor-copy" }),
      button(words.refresh, refresh, { id: "doctor-refresh" }),
      ...app.schema.local ? [test] : []]),
    selfTest(app, test, refresh), report]));
  return { shown: refresh };
}

/**
 * How far the self-test has come, with its Stop, then what it found. start: its button. over(): a
 * report is due.
 */
function selfTest(app, start, over) {
  const { doctor: words, stage } = app.words;
  const line = make("p", "", { role: "status", id: "doctor-testing" });
  const bar = make("progress", "", { "aria-label": words.test, max: "1" });
  let shown = null;
  let stopping = null; // id of the one that ends after its check
  const stop = button(app.words.create.stop, () => {
    stopping = shown.id;
    app.attempt(app.jobs.act(shown.id, "stop"));
  }, { class: "button danger", id: "doctor-stop" });
  const element = make("div", "stack card", { hidden: "" }, [line,
    make("div", "row", {}, [bar, stop])]);
  app.jobs.watch((jobs) => {
    const job = jobs.findLast(({ kind }) => kind === "selftest");
    if (!job) return;
    const active = !isOver(job);
    if (!active && shown?.id === job.id && !isOver(shown)) over();
    shown = job;
    element.hidden = false;
    start.disabled = active;
    if (!active && document.activeElement === stop) start.focus();
    bar.parentElement.hidden = !active;
    if (job.state === "waiting") bar.removeAttribute("value");
    else bar.value = Math.min(1, job.seconds / LIMIT);
    const lines = { running: job.id === stopping ? words.stopping : words.testing,
      done: job.result?.summary ?? "", failed: job.error ?? "", cancelled: words.stopped };
    setText(line, lines[job.state] ?? statusText(job, stage));
    line.classList.toggle("bad", job.state === "failed");
  });
  return element;
}
