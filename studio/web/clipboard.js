/** The clipboard, also on pages that have none by the browser's rules. */

import { make } from "./core/elements.js";

/**
 * Copy a text; whether that worked. Browsers give `navigator.clipboard` only to pages served by
 * https or from this machine: elsewhere a selected text is copied instead.
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const field = make("textarea", "", { readonly: "" });
  const before = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  before?.focus();
  return copied;
}

/** Copy a picture; resolves to whether the browser allowed it. */
export async function copyPicture(address) {
  const png = fetch(address).then((answer) => answer.blob());
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    return true;
  } catch {
    return false;
  }
}
