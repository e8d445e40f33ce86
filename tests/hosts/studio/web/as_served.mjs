/** Loads the studio's modules in bare Node, where `./core/` is not yet beside them as it is served. */

import { register } from "node:module";

const core = new URL("../../../../web/preview/", import.meta.url);
register(`data:text/javascript,${encodeURIComponent(`
  export const resolve = (name, context, next) => name.startsWith("./core/")
    ? next(new URL(name.slice(7), ${JSON.stringify(core.href)}).href, context)
    : next(name, context);
`)}`);

/** A module of studio/web by its file's name. */
export const load = (name) => import(new URL(`../../../../studio/web/${name}`, import.meta.url));
