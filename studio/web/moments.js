/** The moments of a run by its messages. Pure; as in the server's films (output/replay.py). */

const [SHORTEST, LONGEST] = [3, 12]; // s of a film; in between it takes as long as the run did

/** [seconds, message] in order, on each run's own clock; the panels of a race ran side by side. */
export function timed(messages) {
  const clocks = new Map();
  const moments = messages.map((message) => {
    const { panel, kind, seconds } = message;
    const before = kind === "started" ? 0 : clocks.get(panel) ?? 0;
    clocks.set(panel, Math.max(before, seconds ?? 0));
    return [clocks.get(panel), message];
  });
  return moments.sort((a, b) => a[0] - b[0]); // stable
}

/** The pictures of each run as they were decoded last (strips from the top down), by run. */
export function finishedStrips(messages) {
  return new Map(messages
    .filter(({ kind, refined, first }) => kind === "rows" && refined && first === 0)
    .map(({ run, strips }) => [run, strips]));
}

/** How many of these moments lie within the first `seconds`. */
export function upTo(moments, seconds) {
  return moments.filter(([time]) => time <= seconds).length;
}

/** Seconds that a film of a run takes. */
export function filmSeconds(ran) {
  return Math.min(LONGEST, Math.max(SHORTEST, ran));
}
