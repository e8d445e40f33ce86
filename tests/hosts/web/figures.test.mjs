/** The line of figures, what is said aloud, and the table of strings, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { aloud, details, figures, heading, problemText, secondsLeft } from "../../../web/preview/figures.js";
import { paragraphs } from "../../../web/preview/drawn_from.js";
import { IDLE, fold } from "../../../web/preview/protocol.js";
import { LANGUAGES, say, stringsFor } from "../../../web/preview/strings.js";
import { cancelled, finished, pass, rows, started } from "./messages.mjs";

const words = stringsFor("en");
const panel = (...messages) => messages.reduce(fold, IDLE).panels[0];

test("a run under way tells its row; passes, speed and acceptance are details", () => {
  const state = panel(started(), pass());
  assert.equal(figures(state, words), "row 1 of 4");
  assert.equal(details(state, words),
    "pass 3 of 9 · AR needs 12 · 120 tokens/s · 50% of drafts accepted");
});

test("the row is that of the last painted row, not of the run, which may be ahead", () => {
  assert.equal(figures(panel(started(), pass({ row: 3 })), words, 1), "row 1 of 4");
  assert.equal(figures(panel(started({ first_row: 2 }), pass({ row: 3 })), words, 0), "row 2 of 4");
});

test("the first picture says that it prepares until its first row is there", () => {
  const start = started({ prepares: true });
  assert.equal(figures(panel(start, pass({ index: 1, row: 0 })), words), words.prepares);
  assert.match(figures(panel(start, rows({ first: 0, last: 1 })), words), /^row 1 of/);
});

test("words that differ have the numbers of their pictures, over all panels", () => {
  const tent = [["a", false], [" lone", true], [" tent", false]], boat = [["a boat", false]];
  const of = (...each) => paragraphs(each.map((all) => panel(started({ pictures: all.length,
    words: all })))).map(({ pictures, pieces }) => [pictures, pieces]);
  assert.deepEqual(of([tent, tent]), [[null, tent]]);
  assert.deepEqual(of([tent, boat, tent]), [[[1, 3], tent], [[2], boat]]);
  assert.deepEqual(of([tent], [boat]), [[[1], tent], [[2], boat]]);
  assert.deepEqual(paragraphs([undefined, panel(started())]), []);
});

test("a run whose passes depend on the data tells the most there can be", () => {
  const text = details(panel(started({ passes: null, passes_max: 12 }), pass()), words);
  assert.match(text, /pass 3, at most 12 · AR needs 12/);
});

test("the time left follows the passes, or the rows where nobody knows the passes", () => {
  const left = (start, told) => secondsLeft(panel(started(start), pass(told)));
  assert.equal(left({ passes: 9 }, { index: 3, seconds: 4 }), 8);
  assert.equal(left({ passes: null, rows: 4, first_row: 0 }, { row: 1, seconds: 5 }), 15);
  assert.equal(left({ passes: null }, { row: 0, seconds: 5 }), null);
  assert.equal(left({ passes: 9 }, { index: 3, seconds: 1 }), null);
  const text = (seconds) => figures(panel(started(), pass({ seconds })), words);
  assert.equal(text(6), "row 1 of 4, about 12 s left");
  assert.equal(text(90), "row 1 of 4, about 3 min left");
});

test("what was not measured is left out, never shown as nothing", () => {
  const text = details(
    panel(started(), pass({ tokens_per_second: null, acceptance: null })), words);
  assert.equal(text, "pass 3 of 9 · AR needs 12");
  assert.equal(details(panel(started(), pass({ tokens_per_second: 0, acceptance: null })), words),
    text);
});

test("the end tells seconds and how the picture is", () => {
  const end = (changes) => figures(panel(started(), finished(changes)), words);
  assert.equal(end({}), "1.5 s, close to what the model draws");
  assert.equal(end({ seconds: 21.4, guarantee: "identical" }),
    "21 s, exactly as the model draws it");
});

test("the details of the end have identity only where it was measured", () => {
  const end = (changes) => details(panel(started(), finished(changes)), words);
  assert.equal(end({}), "9 passes, AR needs 12 · 8.0 tokens/s · 62% of drafts accepted");
  assert.match(end({ identical: 0.38 }), /38% of the tokens are AR's$/);
  assert.match(end({ acceptance: null }), /8\.0 tokens\/s$/);
});

test("AR itself is not said to be faster than AR", () => {
  const ar = { passes: 12, passes_max: 12 };
  assert.equal(figures(panel(started(ar)), words), "row 0 of 4");
  assert.equal(details(panel(started(ar)), words), "pass 0 of 12");
  const end = finished({ passes: 12, step_acceleration: 1, guarantee: "identical", identical: 1 });
  const state = panel(started({ ...ar, method: "ar" }), end);
  assert.equal(figures(state, words), "1.5 s, exactly as the model draws it");
  assert.equal(details(state, words), "12 passes · 8.0 tokens/s · 62% of drafts accepted");
});

test("an interrupted and a failed run say where they stopped", () => {
  const stopped = (reason) => figures(panel(started(), pass(), cancelled({ reason })), words);
  assert.match(stopped("interrupted"), /^stopped at row 1$/);
  assert.match(stopped("failed"), /^failed at row 1$/);
  assert.match(stopped("paused"), /^paused at row 1/);
  assert.match(stopped("guarantee"), /^stopped at row 1/);
});

test("a run seen from the middle has figures without a plan", () => {
  const middle = panel(pass());
  assert.equal(figures(middle, words), "row 1");
  assert.equal(details(middle, words), "pass 3 · 120 tokens/s · 50% of drafts accepted");
  assert.equal(heading(middle, words), words.middle);
  assert.equal(aloud(middle, words), "");
});

test("aloud are the start, the quarters and the end, not every pass", () => {
  const said = new Set();
  let state = fold(IDLE, started({ rows: 8 }));
  for (let last = 0; last <= 8; last++) {
    state = fold(state, pass({ first: 0, marks: ["c", "c"], row: last }));
    said.add(aloud(state.panels[0], words));
  }
  said.add(aloud(fold(state, finished()).panels[0], words));
  assert.deepEqual([...said], ["ssd rounds=2: started, 8 rows", "ssd rounds=2: row 2 of 8",
    "ssd rounds=2: row 4 of 8", "ssd rounds=2: row 6 of 8", "ssd rounds=2: row 8 of 8",
    "ssd rounds=2: done in 1.5 seconds"]);
});

test("a quarter that ends inside a row is said at the row that completes it", () => {
  const state = [started({ rows: 6 }), pass({ row: 2 })].reduce(fold, IDLE);
  assert.equal(aloud(state.panels[0], words), "ssd rounds=2: row 2 of 6");
});

test("another version gets one line that says what to do", () => {
  const line = problemText(fold(IDLE, started({ version: 2 })).problem, words);
  assert.match(line, /protocol 1.*sends 2.*Reload the page/);
  assert.equal(problemText(null, words), "");
  assert.match(problemText(fold(IDLE, rows({ top: -1 })).problem, words), /rows: top/);
});

test("the host's language is found, others fall back to English", () => {
  for (const name of ["zh", "zh-CN", "zh_TW", "ZH"]) {
    assert.equal(stringsFor(name), stringsFor("zh"), name);
  }
  for (const name of ["en-GB", "fr", "", null, undefined]) {
    assert.equal(stringsFor(name), stringsFor("en"), String(name));
  }
});

test("every string exists in every language with the same values to fill in", () => {
  const values = (text) => (text.match(/\{\w+\}/g) ?? []).sort();
  for (const language of LANGUAGES) {
    const table = stringsFor(language);
    assert.deepEqual(Object.keys(table).sort(), Object.keys(words).sort());
    for (const part of ["guarantee", "touch"]) {
      assert.deepEqual(Object.keys(table[part]).sort(), Object.keys(words[part]).sort());
    }
    for (const key of Object.keys(words).filter((name) => typeof words[name] === "string")) {
      assert.deepEqual(values(table[key]), values(words[key]), `${language} ${key}`);
    }
  }
});

test("every line of figures can be said in Chinese", () => {
  const chinese = stringsFor("zh-CN");
  for (const messages of [[started(), pass()], [started(), finished({ identical: 1 })],
    [started(), cancelled()], [pass()]]) {
    for (const line of [figures, details]) {
      const text = line(panel(...messages), chinese);
      assert.match(text, /[\u4e00-\u9fff]/);
      assert.doesNotMatch(text, /undefined|null|[{}]/);
    }
  }
});

test("values are filled in wherever they stand", () => {
  assert.equal(say("{a} of {b}, {a}", { a: 1, b: "$&" }), "1 of $&, 1");
});
