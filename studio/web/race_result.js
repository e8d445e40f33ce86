/** What came of a race: who was quickest, the guarantee in words, and a table of measurements. */

import { make } from "./core/elements.js";
import { extremes } from "./lineup.js";

/** The parts of the result; view: the race's; saved: its pictures. */
export function resultParts(app, view, { guarantee, rows: measured, problem }, saved) {
  const words = app.words.race;
  const rows = measured.map(([, ...rest], n) => [view.nameAt(saved[n].place), ...rest]);
  const lines = view.lineup.setting ? []
    : [quickestLine(app, rows), rows.length === 2 ? guarantee : ""];
  return [make("h2", "", {}, [words.result]),
    ...lines.filter(Boolean).map((line) => make("p", "", {}, [line])),
    ...(problem ? [make("p", "small bad", {}, [problem])] : []),
    make("details", "small", {}, [make("summary", "", {}, [words.figures]),
      table(words, view, rows, saved.map(({ place }) => view.cells[place][1]))])];
}

function quickestLine(app, rows) {
  const ends = extremes(rows);
  return ends && app.say(app.words.race.quickest, { name: ends.quickest.name,
    seconds: ends.quickest.seconds, times: ends.times.toFixed(1), other: ends.slowest.name });
}

const COLUMNS = ["method", "passes", "seconds", "picture"];

/** values: of the setting that the race has rows by, for each picture; null without one. */
function table(words, { lineup: { setting } }, rows, values) {
  const line = (tag, texts, attributes = {}) => make("tr", "", {}, texts.map((text, n) => make(tag,
    ["passes", "seconds"].includes(COLUMNS[n]) ? "number" : "", attributes, [text])));
  const group = (value) => make("tr", "race-group", {}, [make("th", "", { scope: "rowgroup",
    colspan: String(COLUMNS.length) }, [setting === "prompt" ? value
    : `${words[setting]} ${value}`])]);
  const groups = setting ? [...new Set(values)] : [null];
  return make("table", "small", { "aria-label": words.measured }, [
    make("thead", "", {}, [line("th", COLUMNS.map((key) => words[key]), { scope: "col" })]),
    ...groups.map((value) => make("tbody", "", {}, [...(setting ? [group(value)] : []),
      ...rows.filter((_, n) => values[n] === value).map((row) => line("td", row))]))]);
}
