/**
 * Which cells of a picture are to be redrawn, and the shapes that mark them. Pure.
 *
 * Points are in cells: [0, 0] is the top left corner of the picture, [columns, rows] its bottom
 * right one. Shapes are lists of cells in raster order of a grid {rows, columns}.
 */

export class Mask {
  /** cells: 1 where a cell is redrawn. */
  constructor(rows, columns, cells = new Uint8Array(rows * columns)) {
    Object.assign(this, { rows, columns, cells });
  }

  get count() {
    return this.cells.reduce((sum, cell) => sum + cell, 0);
  }

  has(x, y) {
    return x >= 0 && y >= 0 && x < this.columns && y < this.rows
      && this.cells[y * this.columns + x] === 1;
  }

  /** The same with the cells of a shape redrawn, or kept. */
  with(shape, on = true) {
    const cells = this.cells.slice();
    for (const cell of shape) cells[cell] = on ? 1 : 0;
    return new Mask(this.rows, this.columns, cells);
  }

  inverted() {
    return new Mask(this.rows, this.columns, this.cells.map((cell) => 1 - cell));
  }

  cleared() {
    return new Mask(this.rows, this.columns);
  }

  equals(other) {
    return this.cells.every((cell, i) => cell === other.cells[i]);
  }

  /** The cells that stay, as a recipe packs them: eight a byte. */
  packed() {
    const bytes = new Uint8Array(Math.ceil(this.cells.length / 8));
    this.cells.forEach((cell, i) => {
      if (!cell) bytes[i >> 3] |= 128 >> (i & 7);
    });
    return { shape: [this.rows, this.columns], data: btoa(String.fromCharCode(...bytes)) };
  }

  static unpacked({ shape: [rows, columns], data }) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const cells = Uint8Array.from({ length: rows * columns },
      (_, i) => (bytes[i >> 3] & (128 >> (i & 7)) ? 0 : 1));
    return new Mask(rows, columns, cells);
  }
}

/** The cells that a test of their middle chooses. */
function chosen({ rows, columns }, test) {
  const cells = [];
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) if (test(x + 0.5, y + 0.5)) cells.push(y * columns + x);
  }
  return cells;
}

/** The cell under a point, as [x, y]; of a point beside the picture the nearest one. */
export function cellAt({ rows, columns }, [x, y]) {
  const within = (value, most) => Math.min(Math.max(Math.floor(value), 0), most - 1);
  return [within(x, columns), within(y, rows)];
}

/** What a round brush covers from one point to another; size: its diameter. */
export function stroke(grid, from, to, size) {
  const steps = Math.ceil(4 * Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]))) || 1;
  const touched = Array.from({ length: steps + 1 }, (_, i) => cellAt(grid,
    [from[0] + (i / steps) * (to[0] - from[0]), from[1] + (i / steps) * (to[1] - from[1])]))
    .map(([x, y]) => y * grid.columns + x);
  return [...touched, ...chosen(grid, (x, y) => distance([x, y], from, to) < size / 2)];
}

/** From a point to the line between two others. */
function distance([x, y], [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const share = length ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
  return Math.hypot(x - ax - share * dx, y - ay - share * dy);
}

/** All cells that a rectangle between two corners touches. */
export function rectangle(grid, from, to) {
  const [[ax, ay], [bx, by]] = [cellAt(grid, from), cellAt(grid, to)];
  const between = (value, a, b) => value > Math.min(a, b) && value < Math.max(a, b) + 1;
  return chosen(grid, (x, y) => between(x, ax, bx) && between(y, ay, by));
}

/** The cells whose middle lies inside a closed line through these points, and those under it. */
export function lasso(grid, points) {
  const inside = chosen(grid, (x, y) => isInside([x, y], points));
  return [...inside, ...points.flatMap((point, i) => stroke(grid, point,
    points[(i + 1) % points.length], 0))];
}

function isInside([x, y], points) {
  let inside = false;
  points.forEach(([ax, ay], i) => {
    const [bx, by] = points[(i + 1) % points.length];
    if ((ay > y) !== (by > y) && x < ax + ((y - ay) / (by - ay)) * (bx - ax)) inside = !inside;
  });
  return inside;
}

/** All cells of the rows from `row` on. */
export function below(grid, row) {
  return chosen(grid, (_, y) => y > row);
}

/** Values that can be taken back: the present one, those before it and those that were undone. */
export class Undoable {
  #before = [];
  #after = [];

  constructor(value) {
    this.value = value;
  }

  get canUndo() {
    return this.#before.length > 0;
  }

  get canRedo() {
    return this.#after.length > 0;
  }

  set(value) {
    this.#before.push(this.value);
    this.#after = [];
    this.value = value;
  }

  undo() {
    if (this.canUndo) this.#move(this.#before, this.#after);
  }

  redo() {
    if (this.canRedo) this.#move(this.#after, this.#before);
  }

  #move(from, to) {
    to.push(this.value);
    this.value = from.pop();
  }
}
