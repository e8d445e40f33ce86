/** Functions of the host's objects that do something more. Nothing runs on import. */

/** Do something before what a node or a widget does already. */
export function chain(object, name, first) {
  const then = object[name];
  object[name] = function (...args) {
    first(...args);
    return then?.apply(this, args);
  };
}
