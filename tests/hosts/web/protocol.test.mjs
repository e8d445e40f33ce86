/** The protocol's checks and its state, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { IDLE, complaint, fold, meanAcceptance } from "../../../web/preview/protocol.js";
import { STRIP, cancelled, cells, finished, marksOf, pass, rows, started } from "./messages.mjs";

const run = (...messages) => messages.reduce(fold, IDLE);

test("messages of every kind pass the check", () => {
  for (const message of [started(), pass(), rows(), finished(), cancelled()]) {
    assert.equal(complaint(message), null, message.kind);
  }
});

test("null is legal where the protocol says so", () => {
  const open = [
    started({ passes: null, node: null }), pass({ acceptance: null, tokens_per_second: null }),
    pass({ first: [0, 4] }), finished({ step_acceleration: null, acceptance: null }),
  ];
  for (const message of open) assert.equal(complaint(message), null, JSON.stringify(message));
});

for (const [name, message] of Object.entries({
  rows: started({ rows: 0 }),
  label: started({ label: undefined }),
  passes_max: started({ passes_max: null }),
  acceptance: pass({ acceptance: 1.5 }),
  seconds: pass({ seconds: NaN }),
  marks: pass({ marks: ["ax", "aa"] }),
  first: pass({ first: "0" }),
  strips: rows({ strips: ["data:image/png;base64,AAAA"] }),
  refined: rows({ refined: 1 }),
  identical: finished({ identical: 2 }),
  reason: cancelled({ reason: null }),
  panel: rows({ panel: 64 }),
  run: pass({ run: undefined }),
})) {
  test(`a wrong ${name} is refused by its name, and the state keeps its panels`, () => {
    const before = run(started());
    const after = fold(before, message);
    assert.deepEqual(after.problem, { kind: message.kind, field: name });
    assert.equal(after.panels, before.panels);
  });
}

test("what is no message at all is refused without throwing", () => {
  for (const nonsense of [null, undefined, 3, "rows", [], {}]) {
    assert.deepEqual(fold(IDLE, nonsense).problem, { version: null });
  }
});

test("another version is told once and cleared by the next good message", () => {
  const refused = fold(IDLE, started({ version: 2 }));
  assert.deepEqual(refused.problem, { version: 2 });
  assert.equal(fold(refused, rows({ version: 2 })), refused);
  assert.equal(fold(refused, started()).problem, null);
});

test("unknown kinds are ignored, those with an object's own names too", () => {
  const state = run(started());
  for (const kind of ["confetti", "toString", "__proto__", "constructor"]) {
    assert.equal(fold(state, { ...pass(), kind }), state, kind);
  }
});

test("unknown fields are ignored", () => {
  assert.equal(run(started({ mood: "sunny" })).panels[0].start.columns, 3);
});

test("six panels are kept apart, whichever speaks", () => {
  const numbers = [5, 0, 3, 1, 4, 2];
  const state = run(...numbers.map((panel) => started({ panel, run: `run ${panel}` })));
  assert.deepEqual(Object.keys(state.panels), ["0", "1", "2", "3", "4", "5"]);
  assert.equal(state.panels[5].run, "run 5");
});

test("a start opens an empty panel at its first row", () => {
  const panel = run(started({ first_row: 2 })).panels[0];
  assert.deepEqual(marksOf(panel), ["............", "............"]);
  assert.equal(panel.row, 2);
  assert.equal(panel.end, null);
});

test("a pass writes its marks from its first cell on", () => {
  const panel = run(started(), pass()).panels[0];
  assert.deepEqual(marksOf(panel), ["...ard......", "...aac......"]);
  assert.deepEqual([panel.index, panel.row, panel.stage], [3, 1, "joint"]);
});

test("cells that a pass did not touch stay as they are: rows in flight make a diagonal", () => {
  const panel = run(started(), pass({ first: 0, marks: ["ca.c", "c"] }),
    pass({ first: 1, marks: ["...cd..c", "."] })).panels[0];
  assert.deepEqual(marksOf(panel), ["ca.ccd..c...", "c..........."]);
});

test("cells in flight are read, and neither finish a row nor change a mark", () => {
  const before = run(started(), pass());
  const after = fold(before, cells());
  assert.notEqual(after, before);
  assert.deepEqual(after.panels[0], before.panels[0]);
});

test("pictures at different places have a first cell each", () => {
  const panel = run(started(), pass({ first: [0, 6], marks: ["a", "rr"] })).panels[0];
  assert.deepEqual(marksOf(panel), ["a...........", "......rr...."]);
});

test("a commit keeps what a judgement said and settles drafts", () => {
  const panel = run(started(), pass({ first: 0, marks: ["ard", "add"] }),
    pass({ first: 0, marks: ["cccc", "cccc"] })).panels[0];
  assert.deepEqual(marksOf(panel), ["arcc........", "accc........"]);
});

test("final rows settle their cells and move the pen, never back", () => {
  const state = run(started(), pass({ first: 0, marks: ["rdd", "aaa"], row: 0 }),
    rows({ first: 0, last: 2 }), rows({ first: 0, last: 1, refined: true }));
  assert.deepEqual(marksOf(state.panels[0]), ["rccccc......", "aaaccc......"]);
  assert.equal(state.panels[0].row, 2);
});

test("rows may tell how far the run is; where they do not, that stands as it was", () => {
  const state = run(started(), pass(), rows({ index: 5, seconds: 0.9, tokens_per_second: 60 }));
  assert.deepEqual([state.panels[0].index, state.panels[0].tokensPerSecond], [5, 60]);
  assert.equal(fold(state, rows()).panels[0].index, 5);
});

test("folding changes no earlier state", () => {
  const before = run(started());
  const copy = structuredClone(before);
  fold(before, pass());
  fold(before, rows());
  assert.deepEqual(before, copy);
});

test("what does not fit the started picture is refused", () => {
  const state = run(started());
  for (const [message, field] of [
    [pass({ marks: ["a"] }), "marks"], [pass({ first: 10 }), "first"],
    [pass({ first: [0] }), "first"], [rows({ last: 5 }), "last"],
    [rows({ first: 2, last: 1 }), "last"], [rows({ strips: [STRIP] }), "strips"],
    [cells({ last: 5 }), "last"], [cells({ strips: [STRIP] }), "strips"],
  ]) {
    const after = fold(state, message);
    assert.deepEqual(after.problem, { kind: message.kind, field });
    assert.equal(after.panels, state.panels);
  }
});

for (const end of [finished(), cancelled()]) {
  test(`after ${end.kind} the run says nothing more`, () => {
    const state = run(started(), rows(), end);
    for (const late of [pass(), rows({ last: 4 }), finished(), cancelled(), started()]) {
      assert.equal(fold(state, late), state, late.kind);
    }
  });
}

test("the other panel of a race goes on after the first has finished", () => {
  const state = run(started(), started({ panel: 1, label: "ar" }), finished(),
    pass({ panel: 1 }));
  assert.equal(state.panels[1].index, 3);
  assert.equal(state.panels[0].end.kind, "finished");
});

test("panels of a race may have a run each or share one", () => {
  for (const other of ["first", "second"]) {
    const state = run(started(), started({ panel: 1, run: other }), pass({ panel: 1, run: other }),
      pass());
    assert.deepEqual([state.panels[0].index, state.panels[1].index], [3, 3], other);
  }
});

test("a new run takes the old one's place in its own panel", () => {
  const state = run(started(), started({ panel: 1 }), pass({ panel: 1 }),
    started({ run: "second" }));
  assert.deepEqual([state.panels[0].run, state.panels[1].run], ["second", "first"]);
  assert.equal(state.panels[1].index, 3);
});

test("messages of an older run are ignored, its start as well", () => {
  const state = run(started(), started({ run: "second" }));
  for (const old of [started(), pass(), rows(), finished()]) {
    assert.equal(fold(state, old), state, old.kind);
  }
});

test("a stranger's messages do not disturb a run under way", () => {
  const state = run(started());
  assert.equal(fold(state, rows({ run: "stranger" })), state);
});

test("a run seen from the middle has figures and no picture, and a start still takes over", () => {
  const state = run(pass(), rows({ last: 3 }));
  assert.equal(state.panels[0].start, null);
  assert.deepEqual([state.panels[0].index, state.panels[0].row], [3, 3]);
  assert.equal(fold(state, finished()).panels[0].end.kind, "finished");
  assert.equal(fold(state, started({ run: "second" })).panels[0].run, "second");
});

test("a run is picked up from the middle after another has ended", () => {
  const state = run(started(), finished(), pass({ run: "second" }));
  assert.deepEqual([state.panels[0].run, state.panels[0].start], ["second", null]);
});

test("acceptance is the mean over the passes that judged", () => {
  const state = run(started(), pass({ acceptance: null }), pass({ acceptance: 0.4 }),
    pass({ acceptance: 0.8 }));
  assert.ok(Math.abs(meanAcceptance(state.panels[0]) - 0.6) < 1e-9);
  assert.equal(meanAcceptance(run(started()).panels[0]), null);
});

test("stages and rounds weigh the same in the acceptance, as at the end", () => {
  const state = run(started(), pass({ round: 1, acceptance: 0.4 }),
    pass({ round: 1, acceptance: 0.6 }), pass({ round: 2, acceptance: 0.9 }));
  assert.ok(Math.abs(meanAcceptance(state.panels[0]) - 0.7) < 1e-9);
});

test("long sessions remember only so many runs", () => {
  const starts = Array.from({ length: 100 }, (_, i) => started({ run: `run ${i}` }));
  const state = run(...starts);
  assert.equal(state.past.length, 32);
  assert.ok(state.past.includes("run 98"));
});
