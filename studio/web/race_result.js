/** What came of a race: who was quickest, the verdict in words, and a table of what was measured. */

import { make } from "./core/elements.js";
import { extremes } from "./lineup.js";

/** The parts of the result; view: the race's; saved: its pictures. */
export function resultParts(app, view, { verdict, rows: measured, problem }, saved) {
  const words = app.words.race;
  const cells = saved.map(({ place }) => view.cells[place]);
  const rows = measured.map(([, ...rest], n) => [view.nameOf(cells[n][0]), ...rest]);
  const { setting } = view.lineup;
  const values = setting ? cells.map(([, value]) => value) : null;
  const lines = setting ? [] : [quickestLine(app, rows), rows.length === 2 ? verdict : ""];
  return [make("h2", "", {}, [words.result]),
    ...lines.filter(Boolean).map((line) => make("p", "", {}, [line])),
    ...(problem ? [make("p", "small bad", {}, [problem])] : []),
    table(words, rows, values && words[setting], values)];
}

function quickestLine(app, rows) {
  const ends = extremes(rows);
  return ends && app.say(app.words.race.quickest, { name: ends.quickest.name,
    seconds: ends.quickest.seconds, times: ends.times.toFixed(1), other: ends.slowest.name });
}

/** setting, values: what the rows of the race differ in, and its value for each picture. */
function table(words, rows, setting, values) {
  const heads = [...(values ? [setting] : []), words.method, words.passes, words.seconds,
    words.picture];
  const line = (row, n) => make("tr", "", {}, (values ? [values[n], ...row] : row).map(cell));
  return make("table", "small", { "aria-label": words.measured }, [
    make("thead", "", {}, [make("tr", "", {}, heads.map((head) => make("th", "",
      { scope: "col" }, [head])))]),
    make("tbody", "", {}, rows.map(line))]);
}

const cell = (text) => make("td", /^[0-9.]+$/.test(text) ? "number" : "", {}, [text]);
