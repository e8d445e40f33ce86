/** What waits to be drawn: seen, reordered, emptied; the last run can be asked for again. */

import { make } from "./core/elements.js";
import { isOver, neverBegan } from "./jobs.js";

const MOVABLE = new Set(["draw", "edit", "redo", "control", "race"]);

export function queueList(app, stage) {
  const { words, jobs } = app;
  const list = make("ol", "queue stack");
  const act = (name, label, run) => {
    const button = make("button", "button plain small", { type: "button", id: name }, [label]);
    button.addEventListener("click", () => app.attempt(run()));
    return button;
  };
  const clear = act("queue-clear", words.queue.clear,
    () => emptied(app, "clear", jobs.active.filter(({ state }) => state === "waiting")));
  const stop = act("queue-stop", words.queue.stopAll, () => emptied(app, "stop", jobs.active));
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

/** Empty the queue; what was in it can be asked for again, in its order. */
async function emptied(app, action, taken) {
  const { words, jobs } = app;
  const again = taken.filter(({ kind }) => MOVABLE.has(kind));
  await jobs.queue(action);
  const run = async () => {
    for (const { id } of again) await app.attempt(jobs.act(id, "repeat", { same: true }));
  };
  app.toast(app.say(words.queue.emptied, { count: taken.length }),
    again.length ? { action: { label: words.common.undo, run } } : {});
}

/** Take a waiting job out; it can be put back to its place. */
async function removed(app, job, next) {
  const { words, jobs } = app;
  if (!MOVABLE.has(job.kind)) return jobs.remove(job.id);
  await jobs.act(job.id, "stop");
  const run = async () => {
    const again = await app.attempt(jobs.act(job.id, "repeat", { same: true }));
    if (again && next && jobs.job(next.id)?.state === "waiting") {
      await app.attempt(jobs.act(again.id, "move", { before: next.id }));
    }
  };
  return app.toast(words.queue.removed, { action: { label: words.common.undo, run } });
}

const lastOf = (jobs) => jobs.list.findLast((job) => isOver(job) && MOVABLE.has(job.kind)
  && !neverBegan(job));

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
  out.addEventListener("click", () => app.attempt(removed(app, job, waiting[place + 1])));
  const seed = job.settings?.seed; // tells pictures of one prompt from each other
  const seeded = seed
    ? [make("span", "small hint", {}, [app.say(words.stage.seed, { seed })])] : [];
  return make("li", "queued row", { "data-id": job.id },
    [make("span", "grow queued-what", { title: prompt },
      [make("span", "clip", {}, [prompt]), ...seeded]), up, down, out]);
}
