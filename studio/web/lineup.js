/**
 * Who races: racers side by side, and rows by the values of another setting. Pure.
 *
 * A line-up is {racers, setting, values}; without rows the setting is "" and there are no values.
 */

const SEEDS = 2n ** 64n;

/** The values in a text: one a line for prompts, else with commas or blanks between them. */
export function valuesIn(setting, text) {
  const parts = text.split(setting === "prompt" ? "\n" : /[\s,，;；、]+/);
  return parts.map((part) => part.trim()).filter(Boolean);
}

/** Whether all values can be ones of this setting. */
export function areValues(setting, values) {
  if (setting === "prompt") return true;
  if (setting === "seed") return values.every((value) => /^[0-9]{1,20}$/.test(value));
  return values.every((value) => Number.isFinite(Number(value)));
}

/** What the server takes for them: seeds stay text, since numbers end at 2^53. */
export function sentValues(setting, values) {
  return setting === "cfg" || setting === "temperature" ? values.map(Number) : values;
}

/** A text to begin with, around the value that the settings have. */
export function firstValues(setting, settings) {
  if (setting === "seed") {
    const seed = BigInt(settings.seed);
    return [0n, 1n, 2n].map((n) => (seed + n) % SEEDS).join(", ");
  }
  return { cfg: "1, 2, 4", temperature: "0.7, 1, 1.3",
    prompt: settings.prompt && `${settings.prompt}\n` }[setting] ?? "";
}

/** How many pictures a line-up has. */
export const picturesOf = ({ racers, values }) => racers.length * Math.max(1, values.length);

/** [racer, value] of each picture, row by row; the value is null without rows. */
export function cellsOf({ racers, values }) {
  const rows = values.length ? values : [null];
  return rows.flatMap((value) => racers.map((racer) => [racer, value]));
}

/** The quickest and the slowest of the measured rows [name, passes, seconds, ...]. */
export function extremes(rows) {
  const timed = rows.map(([name, , seconds]) => ({ name, seconds: Number(seconds) }))
    .filter(({ seconds }) => seconds > 0).sort((a, b) => a.seconds - b.seconds);
  const [quickest, slowest] = [timed[0], timed.at(-1)];
  if (!quickest || slowest.seconds / quickest.seconds < 1.05) return null;
  return { quickest, slowest, times: slowest.seconds / quickest.seconds };
}
