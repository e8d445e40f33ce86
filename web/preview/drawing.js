/**
 * Draws strips onto a canvas in their order and marks as patterned tints; computes fitting sizes.
 *
 * Knows canvases and pixels, nothing about messages, text or hosts.
 */

/** Overlay pixels per cell side, independent of the size of the picture's cells. */
export const CELL = 8;
export const GAP = 6;
const FRACTIONAL = 1.25; // screen pixels per picture pixel, from which any fraction looks fine

// Tints differ in hue, luminance and pattern; each of these alone is enough to tell them apart.
const SKY = [86, 180, 233, 72];
const ORANGE = [230, 159, 0, 110];
const BLACK = [40, 16, 0, 190];
const WHITE = [255, 255, 255, 230];
const GREY = [128, 128, 128, 70];
const NONE = [0, 0, 0, 0];

const PATTERNS = {
  a: () => SKY,
  r: (x, y) => ((x + y) % 4 === 0 ? BLACK : ORANGE),
  d: (x, y) => (x % 3 === 1 && y % 3 === 1 ? WHITE : GREY),
  c: () => GREY,
};

/** RGBA bytes [CELL * CELL * 4] of a mark's tile; its last row and column stay clear as a grid. */
export function tile(mark) {
  const pixels = new Uint8ClampedArray(CELL * CELL * 4);
  for (let y = 0; y < CELL - 1; y++) {
    for (let x = 0; x < CELL - 1; x++) {
      pixels.set((PATTERNS[mark] ?? (() => NONE))(x, y), (y * CELL + x) * 4);
    }
  }
  return pixels;
}

const TILES = new Map(Object.keys(PATTERNS).map((mark) => [mark.charCodeAt(0), tile(mark)]));
const COMMITTED = "c".charCodeAt(0);

/**
 * RGBA bytes of a whole overlay: marks are letter codes in raster order, `painted` the number of
 * painted rows. A committed cell is tinted only until its pixels are painted.
 */
export function overlayPixels(marks, columns, painted) {
  const pixels = new Uint8ClampedArray(marks.length * CELL * CELL * 4);
  for (let cell = 0; cell < marks.length; cell++) {
    const mark = marks[cell];
    const row = Math.floor(cell / columns);
    if (!TILES.has(mark) || (mark === COMMITTED && row < painted)) continue;
    copyTile(pixels, TILES.get(mark), row, cell % columns, columns);
  }
  return pixels;
}

function copyTile(pixels, source, row, column, columns) {
  for (let y = 0; y < CELL; y++) {
    const line = source.subarray(y * CELL * 4, (y + 1) * CELL * 4);
    pixels.set(line, ((row * CELL + y) * columns + column) * CELL * 4);
  }
}

export function paintOverlay(canvas, marks, columns, painted) {
  const pixels = overlayPixels(marks, columns, painted);
  const image = new ImageData(pixels, columns * CELL);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

export function clear(canvas) {
  canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
}

/** Decode a base64 PNG to an ImageBitmap; rejects if it is not one. */
export function decodePng(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return createImageBitmap(new Blob([bytes], { type: "image/png" }));
}

/**
 * Paints strips strictly in the order they were added, although decoding is asynchronous; those
 * that wait are painted together. After `close` it paints nothing more, not even strips that are
 * being decoded.
 */
export class StripQueue {
  #waiting = [];
  #work = null; // the promise of painting what waits
  #closed = false;

  constructor(decode = decodePng) {
    this.decode = decode;
  }

  /**
   * Paint a strip with its first line at `top` px by paint(bitmap, top), and call settle() once all
   * that waited with it is painted. `finished`: the picture at its end, if that is known (a bitmap,
   * or the promise of one); its pixels then take the place of all that is painted on `canvas`.
   */
  add(strip, top, { paint, canvas, settle = () => {}, finished = null }) {
    this.#push({ strip, top, paint, canvas, settle, finished });
  }

  /** Call back once everything added so far is painted; never after `close`. */
  whenPainted(done) {
    this.#push({ done });
  }

  #push(job) {
    this.#waiting.push(job);
    this.#work ??= this.#paintAll().finally(() => {
      this.#work = null;
    });
  }

  async #paintAll() {
    await null; // strips that come together are painted together
    while (this.#waiting.length) {
      const jobs = this.#waiting.splice(0);
      const made = await Promise.all(jobs.map((job) => this.#decoded(job)));
      if (!this.#closed) paintTogether(jobs, made);
      for (const { bitmap } of made) bitmap?.close();
    }
  }

  /** {bitmap, whole} of a job; empty if its strip is no picture. */
  async #decoded({ strip, finished }) {
    if (strip === undefined || this.#closed) return {};
    try {
      const [bitmap, whole] = await Promise.all([this.decode(strip), finished]);
      return { bitmap, whole };
    } catch (error) {
      console.warn("SSD preview: a strip could not be painted:", error);
      return {};
    }
  }

  /** Resolves when everything added so far is on its canvas. */
  async settled() {
    while (this.#work) await this.#work;
  }

  close() {
    this.#closed = true;
  }
}

function paintTogether(jobs, made) {
  jobs.forEach(({ paint, top }, i) => made[i].bitmap && paint(made[i].bitmap, top));
  for (const settle of new Set(jobs.map((job) => job.settle))) settle?.();
  const finished = new Map(jobs.map(({ canvas }, i) => [canvas, made[i].whole]));
  for (const [canvas, whole] of finished) {
    if (whole) drawWhereOpaque(canvas.getContext("2d"), whole);
  }
  for (const { done } of jobs) done?.();
}

function drawWhereOpaque(context, bitmap) {
  context.globalCompositeOperation = "source-atop";
  context.drawImage(bitmap, 0, 0);
  context.globalCompositeOperation = "source-over";
}

const LEGIBLE = { phone: 150, screen: 240 }; // px that a panel needs for its figures
const WORDS = 140; // px of words above and below a panel's pictures

/**
 * Columns for `count` panels in so many px; the last line is nearly full. Without a height (null)
 * it is as many as stay legible, at least two; with a height, those with the largest pictures.
 */
export function panelColumns(count, width, height = null, legible = LEGIBLE.screen) {
  const columns = Array.from({ length: count }, (_, i) => Math.ceil(count / (count - i)));
  if (height === null) {
    const least = width < 2 * legible ? LEGIBLE.phone : legible;
    const most = Math.max(2, Math.floor((width + GAP) / (least + GAP)));
    return Math.max(...columns.filter((n) => n <= most));
  }
  const side = (n) => {
    const lines = Math.ceil(count / n);
    return Math.min((width - GAP * (n - 1)) / n, (height - GAP * (lines - 1)) / lines - WORDS);
  };
  return columns.reduce((best, n) => (side(n) > side(best) ? n : best));
}

/**
 * Columns and scale for `count` pictures, `width` px wide each, in `room` px across: a square of
 * any height, or the largest pictures of `height` px each that fit into `tall` px.
 *
 * The scale is any number, except just above one screen pixel per picture pixel: there it is 1,
 * because pixels of uneven width would show. `density`: screen pixels per CSS px. `most`: the
 * largest scale. `smooth`: whether enlarged pixels are blended, so that any scale looks fine.
 */
export function fit(count, width, room, density = 1,
  { most = Infinity, smooth = false, height, tall = null } = {}) {
  const square = Math.ceil(Math.sqrt(count));
  const choices = tall === null ? [square] : Array.from({ length: count }, (_, i) => i + 1);
  const scaled = choices.map((columns) => ({ columns, scale: scaleFor(columns) }));
  return scaled.reduce((best, each) => (each.scale > best.scale ? each : best),
    { columns: square, scale: 0 });

  function scaleFor(columns) {
    const across = (room - GAP * (columns - 1)) / (columns * width);
    const lines = Math.ceil(count / columns);
    const down = tall === null ? Infinity : (tall - GAP * (lines - 1)) / (lines * height);
    const scale = Math.max(0, Math.min(across, down, most));
    return !smooth && scale >= 1 && scale * density < FRACTIONAL ? 1 / density : scale;
  }
}
