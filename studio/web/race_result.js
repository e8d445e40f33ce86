/** What came of a race: who was quickest, the verdict in words, and a table of measurements. */

import { make } from "./core/elements.js";
import { extremes } from "./lineup.js";

/** The parts of the result; view: the race's; saved: its pictures. */
export function resultParts(app, view, { verdict, rows: measured, problem }, saved) {
  const words = app.words.race;
  const { setting } = view.lineup;
  const rows = measured.map(([, ...rest], n) => [view.nameAt(saved[n].place), ...rest]);
  const lines = setting ? [] : [quickestLine(app, rows), rows.length === 2 ? verdict : ""];
  const columns = ["method", "passes", "seconds", "picture"];
  return [make("h2", "", {}, [words.result]),
    ...lines.filter(Boolean).map((line) => make("p", "", {}, [line])),
    ...(problem ? [make("p", "small bad", {}, [problem])] : []),
    setting ? table(words, [setting, ...columns],
      rows.map((row, n) => [view.cells[saved[n].place][1], ...row]))
      : table(words, columns, rows)];
}

function quickestLine(app, rows) {
  const ends = extremes(rows);
  return ends && app.say(app.words.race.quickest, { name: ends.quickest.name,
    seconds: ends.quickest.seconds, times: ends.times.toFixed(1), other: ends.slowest.name });
}

/** columns: keys of their headings. */
function table(words, columns, rows) {
  const line = (tag, texts, attributes = {}) => make("tr", "", {}, texts.map((text, n) => make(tag,
    ["passes", "seconds"].includes(columns[n]) ? "number" : "", attributes, [text])));
  return make("table", "small", { "aria-label": words.measured }, [
    make("thead", "", {}, [line("th", columns.map((key) => words[key]), { scope: "col" })]),
    make("tbody", "", {}, rows.map((row) => line("td", row)))]);
}
