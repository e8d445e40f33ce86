/**
 * A button with a menu below it: a native popover, which closes by Escape and by clicks elsewhere.
 */

import { make } from "./core/elements.js";

let count = 0;

/** label: a text, or elements. items(): the elements of the menu, made whenever it opens. */
export function menuButton(label, items, className = "button") {
  count += 1;
  const menu = make("div", "menu stack", { popover: "", id: `menu-${count}` });
  const button = make("button", className, { type: "button", popovertarget: menu.id },
    [label].flat());
  menu.addEventListener("beforetoggle", ({ newState }) => {
    if (newState === "open") menu.replaceChildren(...items());
  });
  new ResizeObserver(() => menu.matches(":popover-open") && place(menu, button)).observe(menu);
  menu.addEventListener("click", ({ target }) => target.closest("a, button") && menu.hidePopover());
  return { button, menu };
}

/** Put the menu above or below its button, wholly inside the window, also once it has grown. */
function place(menu, button) {
  const { offsetWidth: width, offsetHeight: height } = menu;
  const box = button.getBoundingClientRect();
  const below = box.bottom + 4 + height < innerHeight ? box.bottom + 4 : box.top - 4 - height;
  Object.assign(menu.style, { inset: "auto", top: `${Math.max(4, below)}px`,
    left: `${Math.max(4, Math.min(box.left, innerWidth - width - 4))}px` });
}
