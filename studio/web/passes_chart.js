/** A chart of the passes that the last pictures took, by quality, with a mark where drafts changed.
 * Pure but for the elements it makes: a list of pictures to a figure and its table. */

import { make } from "./core/elements.js";

const [HEIGHT, LEFT, BELOW, ABOVE, RIGHT] = [212, 44, 28, 16, 8];
const [WIDE, NARROW, PHONE] = [720, 340, "(max-width: 720px)"]; // so that letters keep their size
const LEAST = 2; // pictures that make a line
const LINES = 4; // of the grid
let space = null; // of SVG's elements, as the browser's parser names it

/**
 * pictures: [{quality, passes, seconds, drafts}], the latest last; drafts: the beginning of their
 * hash, "" for none. Returns elements; none if there are too few pictures.
 */
export function passesChart(app, pictures) {
  const words = app.words.learning;
  if (pictures.length < LEAST) return [];
  const qualities = [...new Set(pictures.map(({ quality }) => quality))];
  return [make("h3", "", {}, [words.chart]), make("figure", "passes-chart", {}, [
    drawing(app, pictures, qualities), legend(qualities, pictures, words)]), table(app, pictures)];
}

function drawing(app, pictures, qualities) {
  const words = app.words.learning;
  const width = matchMedia(PHONE).matches ? NARROW : WIDE;
  const most = ceiling(Math.max(...pictures.map(({ passes }) => passes)));
  const x = (n) => LEFT + (width - LEFT - RIGHT) * (n + 0.5) / pictures.length;
  const y = (passes) => HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * passes / most;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": app.say(words.chartName, { count: pictures.length }) });
  for (let n = 0; n <= LINES; n += 1) {
    const passes = most * n / LINES;
    svg.append(shape("path", { class: "grid", d: `M${LEFT} ${y(passes)}H${width - RIGHT}` }),
      label(LEFT - 8, y(passes) + 4, String(passes), "end"));
  }
  svg.append(label(LEFT, HEIGHT - 8, words.oldest, "start"),
    label(width - RIGHT, HEIGHT - 8, words.latest, "end"));
  for (const n of changes(pictures)) {
    const at = (x(n - 1) + x(n)) / 2;
    svg.append(shape("path", { class: "change", d: `M${at} 6V${HEIGHT - BELOW}` }));
  }
  qualities.forEach((quality, n) => svg.append(line(pictures, quality, n, x, y)));
  return svg;
}

/** Where drafts learned: the first pictures by drafts that no picture of their quality had. */
export function changes(pictures) {
  const before = new Map(); // by quality: the drafts of its last picture
  let marked = null;
  return pictures.flatMap(({ quality, drafts }, n) => {
    const changed = drafts !== "" && drafts !== marked
      && before.has(quality) && before.get(quality) !== drafts;
    before.set(quality, drafts);
    if (changed) marked = drafts;
    return changed ? [n] : [];
  });
}

/** A number of few digits, not below this one, that four lines divide. */
export function ceiling(most) {
  const scale = 10 ** Math.floor(Math.log10(Math.max(most, 10)) - 1);
  return [4, 8, 12, 16, 20, 24, 32, 40, 60, 80, 100].map((n) => n * scale)
    .find((n) => n >= most);
}

function line(pictures, quality, n, x, y) {
  const own = pictures.map((picture, place) => ({ ...picture, place }))
    .filter((picture) => picture.quality === quality);
  const points = own.map(({ passes, place }) => `${x(place)} ${y(passes)}`);
  const group = shape("g", { class: `series-${n % 4}` });
  group.append(shape("path", { class: "line", d: `M${points.join("L")}` }));
  for (const { passes, place } of own) group.append(dot(n % 4, x(place), y(passes)));
  return group;
}

/** A mark of each series' own shape, so that colour is not all that tells them apart. */
function dot(n, x, y) {
  if (n === 0) return shape("circle", { cx: x, cy: y, r: 3.5 });
  const d = [`M${x - 3} ${y - 3}h6v6h-6z`, `M${x} ${y - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z`,
    `M${x} ${y - 4}l4.5 7.5h-9z`][n - 1];
  return shape("path", { d });
}

function legend(qualities, pictures, words) {
  const named = (name, className, mark) => {
    const sign = shape("svg", { viewBox: "0 0 10 10", class: className, "aria-hidden": "true" });
    sign.append(mark);
    return make("li", "row", {}, [sign, name]);
  };
  const marks = qualities.map((quality, n) => named(quality, `series-${n % 4}`, dot(n % 4, 5, 5)));
  if (changes(pictures).length) {
    marks.push(named(words.newDrafts, "", shape("path", { class: "change", d: "M5 0V10" })));
  }
  return make("figcaption", "small hint", {}, [make("ul", "row", {}, marks)]);
}

/** The means of each quality and of each version of the drafts. */
function table(app, pictures) {
  const words = app.words.learning;
  const groups = new Map();
  for (const picture of pictures) {
    const key = `${picture.quality} ${picture.drafts}`;
    groups.set(key, [...groups.get(key) ?? [], picture]);
  }
  const heads = [words.quality, words.drafts, words.pictures, words.passes, words.seconds];
  const rows = [...groups.values()].map((own) => make("tr", "", {}, [
    make("th", "", { scope: "row" }, [own[0].quality]),
    ...[own[0].drafts || words.noDrafts, String(own.length), mean(own, "passes").toFixed(0),
      mean(own, "seconds").toFixed(1)].map(
      (text) => make("td", "", {}, [text]))]));
  return make("details", "small", { id: "passes-table" }, [
    make("summary", "", {}, [words.asTable]), make("table", "", {}, [
      make("thead", "", {}, [make("tr", "", {},
        heads.map((head) => make("th", "", { scope: "col" }, [head])))]),
      make("tbody", "", {}, rows)])]);
}

const mean = (pictures, name) => pictures.reduce((sum, each) => sum + each[name], 0)
  / pictures.length;

function shape(tag, attributes) {
  space ??= new DOMParser().parseFromString("<svg></svg>", "text/html")
    .querySelector("svg").namespaceURI;
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function label(x, y, text, anchor) {
  const element = shape("text", { x, y, "text-anchor": anchor });
  element.append(text);
  return element;
}
