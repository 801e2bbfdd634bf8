// Files that people drop: which is the photo and which the depth map, and frames of a folder.
import { colourised, percentiles } from "./palette.js";

export async function headOf(file) {
  return new Uint8Array(await file.slice(0, 32).arrayBuffer());
}

const starts = (head, ...bytes) => bytes.every((byte, i) => head[i] === byte);

// "depth" for what only a depth map is, "photo" for what only a photo is, else "either".
export async function kindOf(file) {
  const head = await headOf(file);
  if (starts(head, 0x89, 0x50, 0x4e, 0x47)) {
    const [bits, colour] = [head[24], head[25]];
    if (colour === 0 && bits === 16) return "depth";
    return colour === 2 || colour === 6 || colour === 3 ? "photo" : "either";
  }
  if (starts(head, 0xff, 0xd8) || starts(head, 0x52, 0x49, 0x46, 0x46)) return "photo"; // JPEG, WebP
  const numbers = [[0x76, 0x2f, 0x31, 0x01], [0x50, 0x66], [0x50, 0x4b, 3, 4], [0x89, 0x48, 0x44, 0x46]];
  if (numbers.some((bytes) => starts(head, ...bytes))) return "depth";
  return "either";
}

// Two files in the right order, and whether they had to be exchanged.
export async function sorted(rgb, depth) {
  const [first, second] = [await kindOf(rgb), await kindOf(depth)];
  const wrong =
    (first === "depth" && second !== "depth") || (second === "photo" && first !== "photo");
  return wrong ? { rgb: depth, depth: rgb, exchanged: true } : { rgb, depth, exchanged: false };
}

// Frames rgb/ID.* with depth/ID.*, or ID_rgb.* with ID_depth.*, sorted by name.
export function framesOf(files) {
  const found = { rgb: new Map(), depth: new Map() };
  for (const file of files) {
    const path = file.webkitRelativePath || file.name;
    const folder = path.match(/(?:^|\/)(rgb|depth)\/([^/]+)\.\w+$/);
    const suffix = path.match(/([^/]+)_(rgb|depth)\.\w+$/);
    if (folder) found[folder[1]].set(folder[2], file);
    else if (suffix) found[suffix[2]].set(suffix[1], file);
  }
  return [...found.rgb.keys()]
    .filter((name) => found.depth.has(name))
    .sort()
    .map((name) => ({ name, load: async () => ({ rgb: found.rgb.get(name), depth: found.depth.get(name) }) }));
}

// A small picture of a file in its slot; what the browser cannot show gets stripes.
export async function showThumb(slot, file) {
  slot.classList.toggle("has", Boolean(file));
  slot.querySelector(".name").textContent = file ? file.name : "";
  if (!file) return;
  const canvas = slot.querySelector("canvas");
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#273046";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  try {
    const bitmap = await createImageBitmap(file);
    const fit = Math.max(canvas.width / bitmap.width, canvas.height / bitmap.height);
    const [w, h] = [bitmap.width * fit, bitmap.height * fit];
    pen.imageSmoothingEnabled = fit < 1;
    pen.drawImage(bitmap, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
    if (slot.id === "slot-depth") stretched(pen, canvas);
  } catch {
    pen.fillStyle = "#35405c";
    for (let x = -200; x < 320; x += 24) {
      pen.beginPath();
      pen.moveTo(x, 200);
      pen.lineTo(x + 200, 0);
      pen.lineTo(x + 212, 0);
      pen.lineTo(x + 12, 200);
      pen.fill();
    }
  }
}

// The measurements as they were understood: also of files that no browser can show.
export function showMeasurements(slot, { low, lowValid, lowW, lowH }) {
  const canvas = slot.querySelector("canvas");
  const pen = canvas.getContext("2d");
  const fit = Math.max(canvas.width / lowW, canvas.height / lowH);
  const [w, h] = [lowW * fit, lowH * fit];
  const map = colourised(low, lowValid, lowW, lowH, percentiles(low, lowValid, 0.02, 0.98), "turbo");
  pen.imageSmoothingEnabled = fit < 1;
  pen.drawImage(map, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
}

// Depth in 16 bits is almost black as a picture: spread its levels over the colours.
function stretched(pen, canvas) {
  const picture = pen.getImageData(0, 0, canvas.width, canvas.height);
  const grey = new Float32Array(canvas.width * canvas.height).map((_, i) => picture.data[4 * i]);
  const valid = grey.map((level) => (level > 0 ? 1 : 0));
  const range = percentiles(grey, valid, 0.02, 0.9);
  pen.drawImage(colourised(grey, valid, canvas.width, canvas.height, range, "turbo"), 0, 0);
}
