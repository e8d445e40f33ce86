"""When a page is ready to be looked at: conditions that a busy machine only delays."""

# Styles are there, the observers of sizes were told, and nothing glides any more.
LAID_OUT = """async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const unstyled = () => [...document.querySelectorAll("link[rel=stylesheet]")]
    .some((link) => !link.sheet);
  while (unstyled()) await frame();
  await frame();
  await frame();
  await Promise.allSettled(document.getAnimations().map((one) => one.finished));
}"""

# Ends when nothing was added to the page or taken from it for twelve frames on end.
AT_REST = """() => new Promise((resolve, reject) => {
  let calm = 0, frames = 0;
  const observer = new MutationObserver(() => { calm = 0; });
  observer.observe(document.body, { subtree: true, childList: true });
  const look = () => {
    calm += 1;
    frames += 1;
    if (calm <= 12 && frames < 3000) return requestAnimationFrame(look);
    observer.disconnect();
    return calm > 12 ? resolve() : reject(new Error("the page does not come to rest"));
  };
  requestAnimationFrame(look);
})"""

# Counts what the page asks of its server, and notes what it decodes.
COUNTING = """(() => {
  if ("asked" in window) return; // an earlier test has told this page to count
  const { fetch, createImageBitmap } = window;
  Object.assign(window, { asked: 0, asking: 0, decoding: [] });
  window.fetch = async (...what) => {
    window.asked += 1;
    window.asking += 1;
    try { return await fetch(...what); } finally { window.asking -= 1; }
  };
  window.createImageBitmap = (...what) => {
    const bitmap = createImageBitmap(...what);
    window.decoding.push(bitmap);
    return bitmap;
  };
})()"""


def laid_out(page):
    page.evaluate(LAID_OUT)


def decoded(page):
    """Wait until all that the page began to decode is decoded, and those who wait were told."""
    page.evaluate("async () => { await Promise.allSettled(window.decoding); }")
    laid_out(page)


def turn(page, ms=400):
    """Let every shorter timer have its turn: timers of a page fire in the order they are due."""
    page.evaluate("(ms) => new Promise((resolve) => setTimeout(resolve, ms))", ms)


def asks_on(page):
    """Wait until the page asks its server once more."""
    page.wait_for_function("(before) => window.asked > before", arg=page.evaluate("window.asked"))


def quiet(page):
    """Whether the page, once what was due is asked and answered, asks no more."""
    turn(page)
    page.wait_for_function("() => window.asking === 0")
    before = page.evaluate("window.asked")
    turn(page)
    return page.evaluate("window.asked") == before
