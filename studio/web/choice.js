/** Which pictures of a list are chosen; Shift takes in all from the last one that was turned. */

export class Choice {
  #ids = new Set();
  #last = null;

  /** changed(): called after each change. */
  constructor(changed) {
    this.changed = changed;
  }

  get size() {
    return this.#ids.size;
  }

  has(id) {
    return this.#ids.has(id);
  }

  /** The chosen ones in the order of a list. */
  among(ids) {
    return ids.filter((id) => this.#ids.has(id));
  }

  /** Turn one on or off; ids: the whole list, if all from the last one are to be turned with it. */
  turn(id, on = !this.has(id), ids = null) {
    for (const each of ids ? between(ids, this.#last, id) : [id]) {
      if (on) this.#ids.add(each);
      else this.#ids.delete(each);
    }
    this.#last = id;
    this.changed();
  }

  /** Forget some, or all. */
  drop(ids = [...this.#ids]) {
    for (const id of ids) this.#ids.delete(id);
    this.changed();
  }
}

/** The part of a list from one item to another, in either order; the other alone if one is gone. */
export function between(ids, from, to) {
  const [a, b] = [ids.indexOf(from), ids.indexOf(to)];
  return a < 0 || b < 0 ? [to] : ids.slice(Math.min(a, b), Math.max(a, b) + 1);
}
