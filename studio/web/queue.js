/** What waits to be drawn: seen, reordered, emptied; the last run can be asked for again. */

import { make } from "./core/elements.js";
import { isOver } from "./jobs.js";

const MOVABLE = new Set(["draw", "edit", "redo", "control", "race"]);

export function queueList(app, stage) {
  const { words, jobs } = app;
  const list = make("ol", "queue stack");
  const act = (name, label, run) => {
    const button = make("button", "button plain small", { type: "button", id: name }, [label]);
    button.addEventListener("click", () => app.attempt(run()));
    return button;
  };
  const clear = act("queue-clear", words.queue.clear, () => jobs.queue("clear"));
  const stop = act("queue-stop", words.queue.stopAll, () => jobs.queue("stop"));
  const repeat = act("queue-repeat", words.queue.repeat, () => {
    stage.follow();
    return jobs.act(lastOf(jobs).id, "repeat");
  });
  const title = make("h3", "grow");
  const head = make("div", "row", {}, [title, repeat, clear, stop]);
  const element = make("section", "stack queue-box", { "aria-label": words.queue.title,
    id: "queue" }, [head, list]);
  jobs.watch(() => {
    const waiting = jobs.list.filter(({ state }) => state === "waiting");
    title.textContent = waiting.length
      ? app.say(words.queue.count, { count: waiting.length }) : "";
    clear.hidden = waiting.length === 0;
    stop.hidden = waiting.length === 0 || jobs.running === null;
    repeat.hidden = jobs.active.length > 0 || lastOf(jobs) === undefined;
    list.replaceChildren(...waiting.map((job, n) => row(app, job, n, waiting)));
    element.hidden = waiting.length === 0 && repeat.hidden;
  });
  return element;
}

const lastOf = (jobs) => jobs.list.findLast((job) => isOver(job) && MOVABLE.has(job.kind));

/** A waiting job with its buttons. */
function row(app, job, place, waiting) {
  const { words, jobs } = app;
  const prompt = job.settings?.prompt || app.say(words.queue[job.kind] ?? job.kind, job);
  const move = (label, sign, before) => {
    const button = make("button", "button plain icon", { type: "button", title: label,
      "aria-label": `${label}: ${prompt}` }, [sign]);
    button.addEventListener("click", () => app.attempt(jobs.act(job.id, "move", { before })));
    return button;
  };
  const up = move(words.queue.up, "↑", waiting[place - 1]?.id ?? "");
  const down = move(words.queue.down, "↓", waiting[place + 2]?.id ?? "");
  up.disabled = place === 0;
  down.disabled = place === waiting.length - 1;
  const out = make("button", "button plain icon", { type: "button", title: words.queue.remove,
    "aria-label": `${words.queue.remove}: ${prompt}` }, ["×"]);
  out.addEventListener("click", () => app.attempt(jobs.remove(job.id)));
  const seed = job.settings?.seed; // tells pictures of one prompt from each other
  const seeded = seed
    ? [make("span", "small hint", {}, [app.say(words.stage.seed, { seed })])] : [];
  return make("li", "queued row", { "data-id": job.id },
    [make("span", "grow queued-what", { title: prompt },
      [make("span", "clip", {}, [prompt]), ...seeded]), up, down, out]);
}
