/** How the cells look that are to be redrawn: tinted, with a light line in a dark one around. */

const TINT = "rgb(255 92 40 / 40%)";
const LINES = [["rgb(0 0 0 / 70%)", 3], ["#fff", 1.25]]; // colour and CSS px

/** Paint a mask on a canvas in as many pixels as the screen has on `element`. */
export function paintMask(canvas, { clientWidth: wide, clientHeight: tall }, mask) {
  if (wide === 0) return;
  const density = window.devicePixelRatio;
  Object.assign(canvas, { width: Math.round(wide * density), height: Math.round(tall * density) });
  const context = canvas.getContext("2d");
  const edges = new Path2D();
  context.fillStyle = TINT;
  const across = (x) => Math.round((x * canvas.width) / mask.columns);
  const down = (y) => Math.round((y * canvas.height) / mask.rows);
  for (let y = 0; y <= mask.rows; y++) {
    for (let x = 0; x <= mask.columns; x++) {
      const [left, top, right, bottom] = [across(x), down(y), across(x + 1), down(y + 1)];
      const here = mask.has(x, y);
      if (here) context.fillRect(left, top, right - left, bottom - top);
      if (here !== mask.has(x - 1, y)) line(edges, left, top, left, bottom);
      if (here !== mask.has(x, y - 1)) line(edges, left, top, right, top);
    }
  }
  context.lineCap = "square";
  for (const [strokeStyle, width] of LINES) {
    Object.assign(context, { strokeStyle, lineWidth: width * density });
    context.stroke(edges);
  }
}

function line(path, x, y, toX, toY) {
  path.moveTo(x, y);
  path.lineTo(toX, toY);
}
