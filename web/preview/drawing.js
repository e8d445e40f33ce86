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
 * Paints strips strictly in the order they were added, although decoding is asynchronous. After
 * `close` it paints nothing more, not even strips that are being decoded.
 */
export class StripQueue {
  #tail = Promise.resolve();
  #closed = false;

  constructor(decode = decodePng) {
    this.decode = decode;
  }

  /**
   * Paint a strip with its first line at `top` px by paint(bitmap, top). `finished`: the picture at
   * its end, if that is known (a bitmap, or the promise of one); its pixels then take the place of
   * all that is painted on `canvas`.
   */
  add(strip, top, { paint, canvas, finished = null }) {
    const painted = () => this.#paint(strip, top, { paint, canvas, finished });
    this.#tail = this.#tail.then(painted).catch((error) => {
      console.warn("SSD preview: a strip could not be painted:", error);
    });
  }

  /** Call back once everything added so far is painted; never after `close`. */
  whenPainted(done) {
    this.#tail = this.#tail.then(() => this.#closed || done());
  }

  async #paint(strip, top, { paint, canvas, finished }) {
    if (this.#closed) return;
    const [bitmap, whole] = await Promise.all([this.decode(strip), finished]);
    if (!this.#closed) {
      paint(bitmap, top);
      if (whole) drawWhereOpaque(canvas.getContext("2d"), whole);
    }
    bitmap.close();
  }

  /** Resolves when everything added so far is on its canvas. */
  settled() {
    return this.#tail;
  }

  close() {
    this.#closed = true;
  }
}

function drawWhereOpaque(context, bitmap) {
  context.globalCompositeOperation = "source-atop";
  context.drawImage(bitmap, 0, 0);
  context.globalCompositeOperation = "source-over";
}

const LEGIBLE = { phone: 150, screen: 240 }; // px that a panel needs for its figures
const WORDS = 140; // px of words above and below a panel's pictures

/**
 * Columns for `count` panels in a box {width, height}; the last line is nearly full.
 *
 * Without a height (null) it is as many as stay legible, at least two; with a height, the
 * arrangement with the largest pictures.
 */
export function panelColumns(count, { width, height }) {
  const columns = Array.from({ length: count }, (_, i) => Math.ceil(count / (count - i)));
  if (height === null) {
    const least = width < 2 * LEGIBLE.screen ? LEGIBLE.phone : LEGIBLE.screen;
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
 * Columns and scale for `count` pictures of width x height px in a box {width, height}.
 *
 * The scale is any number, except just above one screen pixel per picture pixel: there it is 1,
 * because pixels of uneven width would show. `density`: screen pixels per CSS px. Without a height
 * (null) the arrangement is square and of any height. `most`: the largest scale. `smooth`: whether
 * enlarged pixels are blended, so that any scale looks fine.
 */
export function fit(count, width, height, box, density = 1,
  { most = Infinity, smooth = false } = {}) {
  const square = Math.ceil(Math.sqrt(count));
  if (box.height === null) return { columns: square, scale: scaleFor(square) };
  let best = { columns: square, scale: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const scale = scaleFor(columns);
    if (scale > best.scale) best = { columns, scale };
  }
  return best;

  function scaleFor(columns) {
    const lines = Math.ceil(count / columns);
    const across = (box.width - GAP * (columns - 1)) / (columns * width);
    const down = (box.height - GAP * (lines - 1)) / (lines * height);
    const least = box.height === null ? across : Math.min(across, down);
    const room = Math.max(0, Math.min(least, most));
    return !smooth && room >= 1 && room * density < FRACTIONAL ? 1 / density : room;
  }
}
