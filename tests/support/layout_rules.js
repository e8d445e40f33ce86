/**
 * What is wrong with a page as it stands: one line for each fault, the rule first.
 * The last function is called in the page; it changes nothing there.
 */

const CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary, " +
  "[role=button], [role=slider], [role=tab], [role=radio], [role=option], [role=menuitem]";
const FIELDS = "input, select, textarea";
const PICTURES = "img, canvas, video";
const SLACK = 1.5; // px, of rounding
const GLYPHS = 4; // px by which the box of a line of text is taller than its line

/** Computed styles, each asked for once. */
const styles = new Map();
function styleOf(element) {
  if (!styles.has(element)) styles.set(element, getComputedStyle(element));
  return styles.get(element);
}

function called(element) {
  const name = element.id ? `#${element.id}` : [...element.classList].map((c) => `.${c}`).join("");
  const text = (element.getAttribute("aria-label") || element.innerText || "").trim();
  return `${element.localName}${name}${text ? ` "${text.replace(/\s+/g, " ").slice(0, 40)}"` : ""}`;
}

function* upwards(element) {
  for (let node = element; node; node = node.parentElement) yield node;
}

/** Only for screen readers: of a pixel, or clipped away. */
function isUnseen(element) {
  return [...upwards(element)].some((node) => {
    const { clipPath, clip, overflow, position } = styleOf(node);
    const tiny = node.offsetWidth <= 1 && node.offsetHeight <= 1 && !node.matches(PICTURES);
    return /^inset\((50|100)%/.test(clipPath) || /^rect\((0px|1px)/.test(clip)
      || (overflow !== "visible" && position === "absolute" && tiny);
  });
}

function isShown(element) {
  return element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })
    && !isUnseen(element);
}

/** What one can press or fill in; a field that lies unseen over its label is that label. */
function controlsIn(root) {
  const found = new Set();
  for (const control of root.querySelectorAll(CONTROLS)) {
    if (isShown(control)) found.add(control);
    else if (control.matches("label input") && isShown(control.closest("label")))
      found.add(control.closest("label"));
  }
  return [...found];
}

/** Texts that can be read: {element, rects}. */
function textsIn(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, style, textarea, option, svg"))
      continue;
    if (!isShown(element) || /^rgba\(.*, 0\)$/.test(styleOf(element).color)) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    found.push({ element, rects: [...range.getClientRects()].filter(hasArea) });
  }
  return found;
}

function hasArea({ width, height }) {
  return width >= 0.5 && height >= 0.5;
}

/** The box inside the borders of an element, as it is on the screen. */
function innerBox(element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  const [x, y] = [width / element.offsetWidth || 1, height / element.offsetHeight || 1];
  const box = { left: left + x * element.clientLeft, top: top + y * element.clientTop };
  box.right = box.left + x * element.clientWidth;
  box.bottom = box.top + y * element.clientHeight;
  return box;
}

const AXES = [["left", "right", "overflowX", "scrollWidth", "clientWidth"],
  ["top", "bottom", "overflowY", "scrollHeight", "clientHeight"]];

function hasBox(element) {
  return !/^(inline|contents)$/.test(styleOf(element).display);
}

/** What clips an element: the ancestors that contain it, as far as the viewport. */
function* clippers(element) {
  if (!element.matches(CONTROLS) && hasBox(element)) yield element;
  for (let node = element; ;) {
    const { position } = styleOf(node);
    if (position === "fixed") return;
    node = position === "absolute" ? node.offsetParent : node.parentElement;
    if (!node || node === document.body || node === document.documentElement) return;
    if (hasBox(node)) yield node;
  }
}

function isFixed(element) {
  for (const node of [element, ...clippers(element)]) {
    if (styleOf(node).position === "fixed") return true;
  }
  return false;
}

/** Whether the whole of a shortened text can be read in a tooltip. */
function tellsTheWhole(clipper) {
  const { textOverflow, webkitLineClamp } = styleOf(clipper);
  return (textOverflow === "ellipsis" || webkitLineClamp !== "none")
    && clipper.closest("[title]") !== null;
}

/**
 * The part of a box that is in sight: {box, cut}. box is null where one must scroll to it; cut:
 * what hides some of it for good.
 */
function seen(element, rect, slack = [SLACK, SLACK]) {
  const box = { left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom };
  let cut = "";
  for (const clipper of clippers(element)) {
    const around = innerBox(clipper);
    AXES.forEach(([near, far, overflow, whole, part], axis) => {
      const how = styleOf(clipper)[overflow];
      if (how === "visible") return;
      const over = Math.max(around[near] - box[near], box[far] - around[far]);
      const scrolls = /auto|scroll/.test(how) && clipper[whole] > clipper[part] + 1;
      if (over > slack[axis] && !scrolls && !tellsTheWhole(clipper))
        cut ||= `${Math.round(over)} px of it by ${called(clipper)}`;
      box[near] = Math.max(box[near], around[near]);
      box[far] = Math.min(box[far], around[far]);
    });
    if (box.right <= box.left || box.bottom <= box.top) return { box: null, cut };
  }
  return { box, cut: cut || cutByTheWindow(element, box) };
}

/** What no scrolling brings into the window. */
function cutByTheWindow(element, rect) {
  const fixed = isFixed(element);
  const [x, y] = fixed ? [0, 0] : [scrollX, scrollY];
  if (rect.right + x <= 0 || rect.bottom + y <= 0) return ""; // a skip link waits out there
  const over = Math.max(-rect.left - x, -rect.top - y,
    fixed ? rect.bottom - innerHeight : 0, fixed ? rect.right - innerWidth : 0);
  return over > SLACK ? `${Math.round(over)} px of it by the window` : "";
}

// The rules: each adds its lines.

function withoutSize(root, texts, controls, say) {
  for (const { element, rects } of texts) if (rects.length === 0) say("no size", element);
  for (const element of [...controls, ...root.querySelectorAll(PICTURES)]) {
    const isThere = element.checkVisibility({ checkVisibilityCSS: true }) && !isUnseen(element);
    if (isThere && !hasArea(element.getBoundingClientRect())) say("no size", element);
  }
}

function cutOff(texts, controls, say) {
  for (const { element, rects } of texts) {
    const control = element.closest("button, summary, a.button, label");
    for (const rect of rects) {
      const { cut } = seen(element, rect, [SLACK, GLYPHS]);
      const out = control && spill(rect, control.getBoundingClientRect());
      if (cut || out) say("cut off", element, cut || `${out} px of its text leave it`);
      if (cut || out) break;
    }
  }
  for (const control of controls) {
    const { cut } = seen(control, control.getBoundingClientRect());
    if (cut) say("cut off", control, cut);
    const over = control.matches(FIELDS) ? hiddenValue(control) : 0;
    if (over > SLACK) say("cut off", control, `${Math.round(over)} px of what stands in it`);
  }
}

function spill(text, box) {
  const over = Math.max(box.left - text.left, text.right - box.right,
    box.top - text.top - GLYPHS, text.bottom - box.bottom - GLYPHS);
  return over > SLACK ? Math.round(over) : 0;
}

/** How many px of the value of a field are out of its sight. */
function hiddenValue(field) {
  const style = styleOf(field);
  if (field.matches("textarea"))
    return style.overflowY === "hidden" ? field.scrollHeight - field.clientHeight : 0;
  if (/^(range|checkbox|radio|file|color|image|button|submit)$/.test(field.type)) return 0;
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const text = field.matches("select") ? field.selectedOptions[0]?.text ?? ""
    : field.value || field.placeholder;
  const arrows = field.matches("select") ? 16 : 0;
  const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return text && !field.title ? pen.measureText(text).width + arrows - room : 0;
}

/** Dialogs, menus and sheets over half of the window lie over the page on purpose. */
function layerOf(element) {
  return [...upwards(element)].find((node) => node.matches("dialog, [popover]")
    || (styleOf(node).position === "fixed" && node.offsetWidth * node.offsetHeight
      > innerWidth * innerHeight / 2)) ?? null;
}

/** What stays while the page goes on under it. */
function stays(element) {
  return [...upwards(element)].some((node) => /fixed|sticky/.test(styleOf(node).position));
}

function canScroll(element) {
  const page = document.documentElement;
  return page.scrollHeight > page.clientHeight + 1 || [...clippers(element)].some((node) =>
    /auto|scroll/.test(styleOf(node).overflowY) && node.scrollHeight > node.clientHeight + 1);
}

/** Whether one of them only passes below the other while the page is scrolled. */
function passes(one, other) {
  return stays(one) !== stays(other) && canScroll(stays(one) ? other : one);
}

function overlapping(controls, say) {
  const boxes = controls.map((control) => seen(control, control.getBoundingClientRect()).box);
  controls.forEach((one, i) => {
    if (!boxes[i]) return;
    for (let j = i + 1; j < controls.length; j += 1) {
      const other = controls[j];
      if (!boxes[j] || one.contains(other) || other.contains(one)) continue;
      if (layerOf(one) === layerOf(other) && meet(boxes[i], boxes[j]) && !passes(one, other)
          && !isBadge(one, other) && !isBadge(other, one))
        say("overlap", one, `and ${called(other)}`);
    }
    covered(one, boxes[i], say);
  });
}

function meet(a, b) {
  return Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > SLACK;
}

/** Whether the first stands on a corner of the second, which is four times as large or more. */
function isBadge(one, other) {
  const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
  const inside = a.left >= b.left - SLACK && a.right <= b.right + SLACK
    && a.top >= b.top - SLACK && a.bottom <= b.bottom + SLACK;
  return inside && 4 * a.width * a.height <= b.width * b.height;
}

/** Something that is no control lies over the middle of one. */
function covered(control, box, say) {
  const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const hit = document.elementFromPoint(x, y);
  if (!hit || control.contains(hit) || hit.contains(control) || control.closest("[inert]")) return;
  if (control.disabled || styleOf(control).pointerEvents === "none") return;
  if (layerOf(hit) !== layerOf(control) || hit.closest(CONTROLS) || passes(hit, control)) return;
  if (!hit.closest("label")?.contains(control)) say("overlap", control, `under ${called(hit)}`);
}

/** strips: selectors of what may be scrolled sideways, such as a strip of films. */
function sideways(root, texts, controls, strips, say) {
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth + 1)
    say("sideways", page, `${page.scrollWidth} px in ${page.clientWidth}`);
  const allowed = (element) => strips.some((strip) => element.closest(strip));
  for (const element of root.querySelectorAll("*")) {
    const scrolls = /auto|scroll/.test(styleOf(element).overflowX) && isShown(element);
    if (scrolls && element.scrollWidth > element.clientWidth + 1 && !allowed(element)
        && !element.matches(FIELDS))
      say("sideways", element, `${element.scrollWidth} px in ${element.clientWidth}`);
  }
  const things = [...texts.flatMap(({ element, rects }) => rects.map((rect) => [element, rect])),
    ...controls.map((control) => [control, control.getBoundingClientRect()])];
  for (const [element, rect] of things) {
    const { box } = seen(element, rect);
    if (box && box.right > page.clientWidth + SLACK && !isFixed(element) && !allowed(element))
      say("sideways", element, `${Math.round(box.right - page.clientWidth)} px to the right`);
  }
}

/** main: selectors of what must be in sight and can be pressed now. */
function mainControls(main, say) {
  for (const name of main) {
    const control = [...document.querySelectorAll(name)].find(isShown);
    if (!control) {
      say("main control", document.body, `${name} is not shown`);
      continue;
    }
    const { left, top, right, bottom } = control.getBoundingClientRect();
    const over = Math.max(-left, -top, right - innerWidth, bottom - innerHeight);
    if (over > SLACK) say("main control", control, `${Math.round(over)} px outside the window`);
    else if (control.disabled) say("main control", control, "cannot be pressed");
    else if (seen(control, control.getBoundingClientRect()).box === null)
      say("main control", control, "is scrolled out of sight");
  }
}

/** The greatest difference of a channel within a picture, or -1 where nothing is painted. */
function contrast(picture) {
  const side = 24;
  const probe = document.createElement("canvas");
  Object.assign(probe, { width: side, height: side });
  const context = probe.getContext("2d", { willReadFrequently: true });
  context.drawImage(picture, 0, 0, side, side);
  const { data } = context.getImageData(0, 0, side, side);
  const low = [255, 255, 255, 255], high = [0, 0, 0, 0];
  data.forEach((value, i) => {
    low[i % 4] = Math.min(low[i % 4], value);
    high[i % 4] = Math.max(high[i % 4], value);
  });
  return high[3] === 0 ? -1 : Math.max(...high.map((value, i) => value - low[i]));
}

function isLoaded(picture) {
  return picture.localName === "canvas" ? picture.width * picture.height > 0
    : picture.complete && picture.naturalWidth > 0;
}

function emptyPictures(root, say) {
  const shown = [...root.querySelectorAll("img, canvas")].filter((picture) => {
    const { box } = isShown(picture) ? seen(picture, picture.getBoundingClientRect()) : {};
    return box && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  });
  const found = new Map(shown.map((one) => [one, isLoaded(one) ? contrast(one) : -1]));
  for (const [picture, difference] of found) {
    if (difference > 2) continue;
    const { left, right, top, bottom } = picture.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const below = shown.some((other) => {
      const box = other.getBoundingClientRect();
      return found.get(other) > 2 && box.left < x && box.right > x && box.top < y && box.bottom > y;
    });
    if (!below) say("picture", picture, difference < 0 ? "is empty" : "has one colour");
  }
}

function focusLost(say) {
  const { activeElement, body, documentElement } = document;
  if ([null, body, documentElement].includes(activeElement))
    say("focus", body, "has the focus after a key");
}

function layoutFaults({ root, main, afterKey, strips }) {
  const found = new Set();
  const say = (rule, element, more = "") => found.add(
    `${rule}: ${called(element).slice(0, 120)}${more ? `: ${more}` : ""}`);
  const modal = [...document.querySelectorAll("dialog:modal")].at(-1);
  for (const part of modal ? [modal] : document.querySelectorAll(root)) {
    const [texts, controls] = [textsIn(part), controlsIn(part)];
    withoutSize(part, texts, controls, say);
    cutOff(texts, controls, say);
    overlapping(controls, say);
    sideways(part, texts, controls, strips, say);
    emptyPictures(part, say);
  }
  mainControls(main, say);
  if (afterKey) focusLost(say);
  return [...found];
}
