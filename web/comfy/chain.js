/** Extends functions and properties of the host's objects. Nothing runs on import. */

/** Make a function of a node or a widget call `first` before its own code. */
export function chain(object, name, first) {
  const then = object[name];
  object[name] = function (...args) {
    first(...args);
    return then?.apply(this, args);
  };
}

/** A property that is computed whenever it is read. */
export function derive(object, name, get) {
  Object.defineProperty(object, name, { get, set() {}, configurable: true, enumerable: true });
}
