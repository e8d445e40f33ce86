/** The place with one text for a bug report: versions, device, models, the last error. */

import { addStyleSheet, make } from "./core/elements.js";
import { copyLine } from "./picture_actions.js";

export function mount(section, app) {
  addStyleSheet(new URL("doctor.css", import.meta.url).href);
  const words = app.words.doctor;
  const report = make("pre", "card report", { id: "doctor-report", tabindex: "0",
    "aria-label": words.report });
  const button = (id, label, run) => {
    const made = make("button", "button", { type: "button", id }, [label]);
    made.addEventListener("click", run);
    return made;
  };
  const refresh = async () => {
    const answer = await app.attempt(app.api.get("doctor"));
    if (answer) report.textContent = answer.report;
  };
  const test = async () => {
    const tested = document.getElementById("doctor-test");
    tested.disabled = true;
    const job = await app.attempt(app.jobs.submit("selftest", {}));
    if (job) {
      app.toast(words.testing);
      const ended = await app.jobs.ended(job.id);
      if (ended?.state === "done") app.toast(app.say(words.tested, ended.result));
      else if (ended?.error) app.toast(ended.error, { bad: true });
      await refresh();
    }
    tested.disabled = false;
  };
  section.append(make("div", "sheet", {}, [
    make("h1", "title", {}, [words.title]), make("p", "hint", {}, [words.hint]),
    make("div", "row", {}, [
      button("doctor-copy", words.copy, () => copyLine(app, report.textContent)),
      button("doctor-refresh", words.refresh, refresh),
      ...app.schema.local ? [button("doctor-test", words.test, test)] : []]),
    report]));
  return { shown: refresh };
}
