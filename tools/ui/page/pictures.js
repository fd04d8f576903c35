// Tenants' colours and letters, and the two pictures of the page.
"use strict";

const kColumn = 3, kMarks = 8, kLeastLetter = 8;   // CSS pixels
// Okabe and Ito's palette, which colour-blind people can tell apart, and two more; letters say the same.
const kColours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7ae6", "#b5bd3c"];
const kDark = "#0072b2";   // white is read on this one, black on the others
const colour = id => kColours[id % kColours.length];
const ink = id => colour(id) === kDark ? "#fff" : "#111";
const letter = id => String.fromCharCode(65 + id % 26) + (id >= 26 ? Math.floor(id / 26) : "");
const still = matchMedia("(prefers-reduced-motion: reduce)");

function canvas(id) {
  const made = document.getElementById(id), ratio = devicePixelRatio || 1;
  const width = Math.round(made.clientWidth * ratio), height = Math.round(made.clientHeight * ratio);
  const fresh = made.width !== width || made.height !== height;
  if (fresh) [made.width, made.height] = [width, height];
  return {made, draw: made.getContext("2d"), ratio, width, height, fresh};
}
const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name);

// Draws the parts [TENANT, PERCENT] of one multiprocessor into a box, one above the other, in two columns where
// they are many: so each has room for its letter.
function drawParts(draw, parts, x, y, width, height, least) {
  if (parts.length > 2 && width === height) {
    const half = Math.ceil(parts.length / 2), left = Math.round(width / 2);
    drawParts(draw, parts.slice(0, half), x, y, left, height, least);
    return drawParts(draw, parts.slice(half), x + left, y, width - left, height, least);
  }
  const all = parts.reduce((sum, [, part]) => sum + part, 0);
  let below = 0;
  for (const [tenant, part] of parts) {
    const high = height * part / Math.max(100, all);
    draw.fillStyle = colour(tenant);
    draw.fillRect(x, y + height - below - high, width, high);
    below += high;
    if (high < least || width < least) continue;
    draw.fillStyle = ink(tenant);
    draw.font = `600 ${Math.round(Math.min(height * 0.45, high, width))}px system-ui, "DejaVu Sans", sans-serif`;
    draw.fillText(letter(tenant), x + width / 2, y + height - below + high * 0.54);
  }
}

// Each multiprocessor is a square, filled from below by the parts of the frame that tenants had it.
function drawMap(state) {
  const {draw, width, height, ratio} = canvas("map"), count = state.sms.length;
  draw.clearRect(0, 0, width, height);
  if (!count) return;
  let columns = 1, size = 0;   // the largest squares that fit
  for (let i = 1; i <= count; ++i) {
    const fits = Math.min(width / i, height / Math.ceil(count / i));
    if (fits > size) [columns, size] = [i, fits];
  }
  const gap = Math.max(1, Math.round(2 * ratio));
  const idle = variable("--idle");
  draw.textAlign = "center";
  draw.textBaseline = "middle";
  state.sms.forEach((parts, sm) => {
    const x = Math.round(sm % columns * size), y = Math.round(Math.floor(sm / columns) * size);
    const side = Math.round(size) - gap;
    draw.fillStyle = idle;
    draw.fillRect(x, y, side, side);
    const pairs = [];
    for (let i = 0; i < parts.length; i += 2) pairs.push([parts[i], parts[i + 1]]);
    drawParts(draw, pairs, x, y, side, side, kLeastLetter * ratio);
  });
}

// The tenant that had most of it; of several that had about as much, each in turn.
function chosen(parts, turn) {
  let most = 0;
  for (let i = 1; i < parts.length; i += 2) most = Math.max(most, parts[i]);
  const those = [];
  for (let i = 0; i < parts.length; i += 2) if (parts[i + 1] >= 0.7 * most) those.push(parts[i]);
  return [those[turn % those.length], most];
}

let column = 0, turn = 0;
// A column for each frame; with less motion the columns stand still and the newest takes the oldest's place.
function drawTracks(state, decided, anew) {
  const {made, draw, ratio, width, height, fresh} = canvas("tracks"), count = state.sms.length;
  const wide = Math.max(1, Math.round(kColumn * ratio)), top = Math.round(kMarks * ratio);
  if (fresh || anew) draw.clearRect(0, 0, width, height), column = 0;
  let x = width - wide;
  if (still.matches) x = column++ * wide % width;
  else draw.drawImage(made, -wide, 0);
  draw.globalAlpha = 1;
  draw.clearRect(x, 0, wide, height);
  draw.fillStyle = variable("--idle");
  draw.fillRect(x, top, wide, height - top);
  state.sms.forEach((parts, sm) => {
    const y = top + Math.floor(sm * (height - top) / count);
    const high = top + Math.floor((sm + 1) * (height - top) / count) - y;
    if (!parts.length) return;
    const [whose, part] = chosen(parts, turn);
    draw.globalAlpha = 0.3 + 0.7 * Math.min(1, part / 100);
    draw.fillStyle = colour(whose);
    draw.fillRect(x, y, wide, high);
  });
  ++turn;
  draw.globalAlpha = 1;
  for (const each of decided) {
    draw.fillStyle = colour(each.tenant);
    draw.fillRect(x, 0, wide, top - ratio);
  }
}
