// The page: draw or erase, and see at once what the model makes of it.
"use strict";

const model = JSON.parse(document.getElementById("model").textContent);
const side = model.side, run = runner(model.graph), SHOWN = 8;
const paper = document.getElementById("paper");
let pixels = new Array(side * side).fill(0), erases = false, last = null;

function colours() {
  const style = getComputedStyle(document.documentElement);
  return ["--canvas", "--stroke"].map((name) => style.getPropertyValue(name).match(/\d+/g).map(Number));
}

// entries from 0 to 1 as a picture of side x side pixels
function paint(canvas, entries) {
  const [from, to] = colours(), context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  entries.forEach((entry, i) => {
    const share = Math.min(Math.max(entry, 0), 1);
    from.forEach((own, c) => { image.data[4 * i + c] = own + share * (to[c] - own); });
    image.data[4 * i + 3] = 255;
  });
  canvas.width = canvas.height = side;
  context.putImageData(image, 0, 0);
}

function picture(entries, words) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", words);
  const most = Math.max(...entries, 1e-12);
  paint(canvas, entries.map((entry) => entry / most));
  return canvas;
}

function element(kind, text, ...children) {
  const made = document.createElement(kind);
  made.textContent = text;
  made.append(...children);
  return made;
}

// what the model says: scores of the classes, the largest wins, and codes
function classify(drawn) {
  const { scores, codes } = run(drawn.map((share) => share * model.ink));
  const winner = scores.indexOf(Math.max(...scores));
  return { label: model.labels[winner], winner, scores, codes };
}

function showClasses({ scores, winner }) {
  const lowest = Math.min(...scores), range = Math.max(...scores) - lowest || 1;
  const rows = scores.map((score, c) => {
    const shown = model.residuals ? -score : score;
    const length = model.residuals ? (-score / -lowest || 0) : (score - lowest) / range;
    const bar = element("i", "");
    bar.style.width = `${100 * length}%`;
    const row = element("li", "", element("b", model.labels[c]), element("span", "", bar), element("em", shown.toFixed(3)));
    if (c === winner) row.className = "winner";
    return row;
  });
  document.getElementById("classes").replaceChildren(...rows);
}

function showAtoms({ codes, winner }) {
  const used = codes.map((code, atom) => [Math.abs(code), atom])
    .filter(([weight, atom]) => weight > 0 && (model.together || model.atomClasses[atom] === winner))
    .sort((a, b) => b[0] - a[0]).slice(0, SHOWN);
  const figures = used.map(([weight, atom]) => {
    const label = model.labels[model.atomClasses[atom]], at = atom * side * side;
    const words = `${model.together ? `${label}: ` : ""}${weight.toFixed(2)}`;
    return element("figure", "", picture(model.atoms.slice(at, at + side * side), words), element("figcaption", words));
  });
  document.getElementById("atoms").replaceChildren(...figures);
}

function show(drawn) {
  pixels = Array.from(drawn);
  paint(paper, pixels);
  const empty = pixels.every((share) => share === 0);
  document.body.classList.toggle("empty", empty);
  document.getElementById("label").textContent = empty ? "–" : "";
  if (empty) {
    for (const name of ["classes", "atoms"]) document.getElementById(name).replaceChildren();
    return null;
  }
  const found = classify(pixels);
  document.getElementById("label").textContent = found.label;
  showClasses(found);
  showAtoms(found);
  return found;
}

// a soft round brush, about as wide as the strokes of the digits
function brush(x, y) {
  for (let i = 0; i < pixels.length; i++) {
    const far = Math.hypot((i % side) + 0.5 - x, Math.floor(i / side) + 0.5 - y) * 8 / side;
    const share = Math.min(Math.max(1.3 - far, 0), 1);
    pixels[i] = erases ? pixels[i] * (1 - share) : Math.max(pixels[i], share);
    if (pixels[i] < 0.02) pixels[i] = 0;
  }
}

function place(event) {
  const box = paper.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top].map((at) => at * side / box.width);
}

function stroke(event) {
  if (last === null) return;
  const [x, y] = place(event), steps = Math.ceil(2 * Math.hypot(x - last[0], y - last[1])) || 1;
  for (let k = 1; k <= steps; k++) {
    brush(last[0] + (x - last[0]) * k / steps, last[1] + (y - last[1]) * k / steps);
  }
  last = [x, y];
  show(pixels);
}

paper.addEventListener("pointerdown", (event) => {
  paper.setPointerCapture(event.pointerId);
  last = place(event);
  stroke(event);
});
paper.addEventListener("pointermove", stroke);
for (const end of ["pointerup", "pointercancel"]) paper.addEventListener(end, () => { last = null; });
document.getElementById("erase").addEventListener("click", (event) => {
  erases = !erases;
  event.target.setAttribute("aria-pressed", String(erases));
});
document.getElementById("clear").addEventListener("click", () => show(new Array(side * side).fill(0)));

model.examples.forEach((example, i) => {
  const button = element("button", "", picture(example, `example ${i + 1}`));
  button.addEventListener("click", () => show(example));
  document.getElementById("examples").append(button);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
show(model.examples[0] ?? pixels);
