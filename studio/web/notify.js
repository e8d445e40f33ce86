/** Tells that a long run has ended while the page was out of sight, if that was asked for. */

import { check } from "./form.js";
import { isOver } from "./jobs.js";
import { keep, recall } from "./kept.js";

const KEY = "notify";
const LONG = 15; // s; shorter runs are waited for
const NOTE = 660; // Hz

const asked = () => recall(KEY, false);

/** The switch for the gear; switching it on asks the browser for permission. */
export function notifySwitch(app) {
  const { words } = app;
  const { element } = check(words.head.notify, asked(), (on) => {
    keep(KEY, on);
    if (on) globalThis.Notification?.requestPermission?.();
  });
  watch(app);
  return element;
}

function watch(app) {
  let open = new Set();
  app.jobs.watch((jobs) => {
    const ended = jobs.filter((job) => open.has(job.id) && isOver(job));
    open = new Set(jobs.filter((job) => !isOver(job)).map(({ id }) => id));
    const long = ended.find(({ seconds }) => seconds >= LONG);
    if (long && asked() && document.hidden) tell(app, long);
  });
}

function tell(app, job) {
  const line = app.say(app.words.head.ended, { prompt: job.settings?.prompt || job.kind });
  const granted = globalThis.Notification?.permission === "granted";
  if (granted) new Notification("SSD Studio", { body: line });
  else sound();
}

/** A short soft tone. */
function sound() {
  const context = new AudioContext();
  const [tone, volume] = [context.createOscillator(), context.createGain()];
  tone.frequency.value = NOTE;
  volume.gain.setValueAtTime(0.1, context.currentTime);
  volume.gain.exponentialRampToValueAtTime(0.001, context.currentTime + 0.6);
  tone.connect(volume).connect(context.destination);
  tone.start();
  tone.stop(context.currentTime + 0.6);
  tone.addEventListener("ended", () => context.close());
}
