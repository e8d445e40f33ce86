/**
 * What a click on a word does to a prompt. Pure: text to text.
 *
 * A prompt is read as parts between commas. A part with the name of a thing is about that thing;
 * colours and places go to the thing that was named last. A scene has one part of each attribute.
 */

const COMMA = /\s*[,，、]\s*/;
/** If all words are known, sentences and "and" also separate parts; other prose stays as typed. */
const BREAK = /\s*(?:[,，、.。;；]|\band\b|和|与)\s*/i;
const CHINESE = /[\u3400-\u9fff]/;

const partsOf = (prompt, kinds) => prompt
  .split(kinds.some(({ role }) => role === "thing") ? BREAK : COMMA)
  .map((part) => part.trim()).filter(Boolean);
const joined = (parts) => parts.join(parts.some((part) => CHINESE.test(part)) ? "，" : ", ");
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A pattern for a phrase as a whole: Chinese has no blanks between words. */
function pattern(phrase) {
  const core = escaped(phrase);
  return new RegExp(CHINESE.test(phrase) ? core : `\\b${core}\\b`, "i");
}

/** The first of a chip's phrases that a part has, or undefined; longer phrases come first. */
function phraseIn(part, chip) {
  const phrases = [...chip.phrases].sort((a, b) => b.length - a.length);
  return phrases.find((phrase) => pattern(phrase).test(part));
}

const chipsOf = (kinds, role) => kinds.filter((kind) => kind.role === role)
  .flatMap((kind) => kind.chips);

/** The chip whose phrase in the part is longest, so that "boats" is not taken for "boat". */
function chipIn(part, chips) {
  const lengths = chips.map((chip) => [chip, phraseIn(part, chip)?.length ?? 0]);
  const best = lengths.reduce((a, b) => (b[1] > a[1] ? b : a), [null, 0]);
  return best[0];
}

/** The chip that a scene part is as a whole: "in the snow" is a ground, not a snowy peak. */
const sceneChip = (part, chips) => chips.find(
  (chip) => chip.phrases.some((phrase) => phrase.toLowerCase() === part.toLowerCase())) ?? null;

/** The position of the part about the thing that was named last, or -1. */
function lastThing(parts, kinds) {
  const things = chipsOf(kinds, "thing");
  return parts.findLastIndex((part) => chipIn(part, things) !== null);
}

/** Whether the prompt already has a chip's words. */
export function has(prompt, kind, chip, kinds) {
  const parts = partsOf(prompt, kinds);
  if (kind.role === "scene" || kind.role === "style") {
    return parts.some((part) => sceneChip(part, [chip]) !== null);
  }
  if (kind.role === "thing") {
    return parts.some((part) => chipIn(part, chipsOf(kinds, "thing")) === chip);
  }
  const at = lastThing(parts, kinds);
  return at >= 0 && chipIn(parts[at], kind.chips) === chip;
}

/** Whether a chip can be used now: colours and places need a thing. */
export function usable(prompt, kind, kinds) {
  return !["colour", "place"].includes(kind.role) || lastThing(partsOf(prompt, kinds), kinds) >= 0;
}

/** The prompt after a click on a chip; a second click removes the words of the first. */
export function clicked(prompt, kind, chip, kinds) {
  const parts = partsOf(prompt.replace(/[.。]\s*$/, ""), kinds);
  return joined(STEPS[kind.role](parts, kind, chip, kinds));
}

const STEPS = { thing, colour, place, scene, style: scene };

function thing(parts, kind, chip, kinds) {
  const index = parts.findIndex((part) => chipIn(part, kind.chips) === chip);
  if (index >= 0) return parts.toSpliced(index, 1);
  return parts.toSpliced(lastThing(parts, kinds) + 1, 0, withArticle(chip.phrases[0], chip.plural));
}

/** "a house", "some boats"; Chinese has no article. */
function withArticle(noun, plural) {
  if (CHINESE.test(noun)) return noun;
  if (plural) return `some ${noun}`;
  return /^[aeiou]/i.test(noun) ? `an ${noun}` : `a ${noun}`;
}

function colour(parts, kind, chip, kinds) {
  return atLastThing(parts, kinds, (part) => {
    const old = chipIn(part, kind.chips);
    const bare = old ? without(part, phraseIn(part, old)) : part;
    return old === chip ? bare : painted(bare, chip.phrases[0], kinds);
  });
}

/** The part with a colour before the thing's name. */
function painted(part, colour_, kinds) {
  const noun = phraseIn(part, chipIn(part, chipsOf(kinds, "thing")));
  const words = CHINESE.test(colour_) ? `${colour_}的` : `${colour_} `;
  return agreeing(part.replace(pattern(noun), (match) => words + match));
}

function without(part, phrase) {
  const gone = part.replace(new RegExp(`${pattern(phrase).source}的?\\s*`, "i"), "");
  return agreeing(gone.trim());
}

/** "a orange boat" becomes "an orange boat", and "an red boat" "a red boat". */
const agreeing = (part) => part.replace(/\ban?\s+(?=(\w))/gi,
  (_, next) => (/[aeiou]/i.test(next) ? "an " : "a "));

function place(parts, kind, chip, kinds) {
  return atLastThing(parts, kinds, (part) => {
    const old = chipIn(part, kind.chips);
    const bare = old ? without(part, phraseIn(part, old)) : part;
    const blank = CHINESE.test(chip.phrases[0]) ? "" : " ";
    return old === chip ? bare : `${bare}${blank}${chip.phrases[0]}`;
  });
}

function atLastThing(parts, kinds, change) {
  const at = lastThing(parts, kinds);
  return at < 0 ? parts : parts.with(at, change(parts[at]));
}

/** Replace the part of the chip's attribute; remove it if it is the chip's own. */
function scene(parts, kind, chip) {
  const rivals = kind.chips.filter((other) => other.attribute === chip.attribute);
  const at = parts.findIndex((part) => sceneChip(part, rivals) !== null);
  if (at < 0) return [...parts, chip.phrases[0]];
  return sceneChip(parts[at], [chip]) ? parts.toSpliced(at, 1) : parts.with(at, chip.phrases[0]);
}
