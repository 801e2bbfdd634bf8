// The whole way of one pair, without doctor, cameras and priors: upscaling/on_onnx.py, upscaler.py.
import { Refused } from "../refused.js";
import { FARTHER, filled, maskedBicubic } from "./filling.js";
import { flyingPixels } from "./flying.js";
import { mapped, nearest, plane, toArea, toBicubic } from "./sampling.js";
import { highest, measured, noiseOf } from "./statistics.js";

const MARGIN = 0.25; // of the range of the measurements: by how much a result may leave it
const LARGEST_ASPECT_MISMATCH = 1.25;
const REPAIRED = ["tof"]; // sensors whose silhouettes are wrong by more than a pixel of their map
const NOT_EXAMINED = "whether the depth lies where the photo has its edges was not examined: ducos doctor does that";
const ASSUMED_VIEW = 60; // degrees across, where nobody says

export const modeOf = (mode, sensor) => (mode === "auto" ? (REPAIRED.includes(sensor) ? "repair" : "faithful") : mode);

export function checkSizes({ h: H, w: W }, { h, w }, anyAspect) {
  const ratio = H / h / (W / w);
  const mismatch = Math.max(ratio, 1 / ratio);
  if (anyAspect || mismatch <= LARGEST_ASPECT_MISMATCH) return;
  const turned = (H > W && h < w) || (H < W && h > w) ? " (is one of them turned by 90°?)" : "";
  throw new Refused("input", `The photo is ${W}×${H} but the depth map ${w}×${h}: their proportions differ by ${mismatch.toFixed(2)}×${turned}; crop both to the same view, or choose "Accept other proportions" if they do show the same.`);
}

// image: three planes; low: see units.js; network: see network.js. Gives the maps and facts that
// scene.js shows: what `packed` and `view_of` of serve/maps.py put into a file.
export async function superResolve(network, image, low, options, heard) {
  const size = [image[0].h, image[0].w];
  checkSizes(image[0], low.depth, options.any_aspect);
  const noise = noiseOf(low);
  const { normalised, trust, span, lowest } = prepared(image, low);
  const told = { mode: modeOf(options.mode, options.sensor), sensor: options.sensor };
  const found = await network.predict(image, normalised, trust, { noise: noise / span, told, heard });
  const bounds = allowedRange(low);
  const inMetres = (each) => mapped((value) => Math.min(Math.max(value * span + lowest, bounds[0]), bounds[1]), each);
  const full = inMetres(found.depth);
  const source = traced(low.valid, size);
  const valid = source.map((from) => (options.keep_holes && from !== 1 ? 0 : 1));
  const depth = mapped((value, there) => (there ? value : 0), full, plane(valid, ...size));
  const sigma = mapped((value) => value * span, found.sigma);
  const bicubic = mapped((value, there) => (there ? value : 0), inMetres(toBicubic(normalised, size)), plane(valid, ...size));
  const camera = assumedCamera(size);
  const kept = source.map((from, i) => (valid[i] ? from : 0));
  const maps = {
    depth: shaped(depth.data, size), valid: shaped(valid, size), source: shaped(kept, size), sigma: shaped(sigma.data, size),
    low: shaped(low.depth.data, [low.depth.h, low.depth.w]), low_valid: shaped(Uint8Array.from(low.valid.data), [low.depth.h, low.depth.w]),
  };
  const view = {
    image: shaped(bytesOf(image), [...size, 3]), bicubic: shaped(bicubic.data, size),
    flying: shaped(flyingPixels(depth, valid, camera, sigma, kept.map((from) => (from === 1 ? 1 : 0))), size),
    bicubic_flying: shaped(flyingPixels(bicubic, valid, camera), size),
    facts: { camera: { ...camera, assumed: true }, metric: low.unit !== "relative" },
  };
  const shown = measured({ depth, valid: plane(valid, ...size) });
  const facts = {
    model: network.about.name, mode: told.mode, sensor: options.sensor, unit_decision: low.note,
    residual: disagreement(full, low), noise, notes: [low.note, NOT_EXAMINED], warnings: [],
    min: shown.reduce((a, b) => Math.min(a, b)), max: shown.reduce((a, b) => Math.max(a, b)),
  };
  return { facts, maps, view };
}

const shaped = (data, shape) => ({ data, shape });

// The map as the network sees it: no finer than the image, without holes, its range 0 to 1.
function prepared(image, low) {
  let { depth, valid } = low;
  const size = [Math.min(depth.h, image[0].h), Math.min(depth.w, image[0].w)];
  if (size[0] !== depth.h || size[1] !== depth.w) [depth, valid] = maskedBicubic(depth, valid, size);
  const known = measured({ depth, valid });
  const lowest = known.length ? known.reduce((a, b) => Math.min(a, b)) : 0;
  const highest = known.length ? known.reduce((a, b) => Math.max(a, b)) : 0;
  const span = highest > lowest ? Math.fround(highest - lowest) : 1;
  const guide = image.map((each) => toArea(each, size));
  const whole = filled(depth, valid, guide, low.unit === "relative" ? 0 : FARTHER);
  return { normalised: mapped((value) => Math.fround(value - lowest) / span, whole), trust: valid, span, lowest };
}

// The range of the measurements and a quarter of it on both sides; nothing is nearer than half the
// nearest measurement.
function allowedRange(low) {
  const known = measured(low);
  const lowest = known.reduce((a, b) => Math.min(a, b)), highest = known.reduce((a, b) => Math.max(a, b));
  const spare = MARGIN * (highest - lowest);
  return [Math.max(lowest - spare, lowest >= 0 ? 0.5 * lowest : -Infinity), highest + spare];
}

// Where each pixel comes from: 1 measured, 2 a measurement is near, 3 inferred.
function traced(valid, size) {
  const near = highest(valid, 2);
  const source = plane(Uint8Array.from(valid.data, (there, i) => (there ? 1 : near.data[i] ? 2 : 3)), valid.h, valid.w);
  return nearest(source, size).data;
}

// RMS difference between the result, shrunk to the size of the input, and the valid input.
function disagreement(full, low) {
  const { h, w } = low.depth;
  const shrunk = toArea(full, [h, w]);
  let [sum, count] = [0, 0];
  shrunk.data.forEach((value, i) => {
    if (!low.valid.data[i]) return;
    sum += (value - low.depth.data[i]) ** 2;
    count++;
  });
  return Math.sqrt(sum / count);
}

function assumedCamera([H, W]) {
  const fx = W / 2 / Math.tan((ASSUMED_VIEW * Math.PI) / 360);
  return { fx, fy: fx, cx: (W - 1) / 2, cy: (H - 1) / 2 };
}

// Planes as (H, W, 3) bytes.
function bytesOf(image) {
  const bytes = new Uint8Array(3 * image[0].data.length);
  image.forEach(({ data }, channel) => data.forEach((value, i) => (bytes[3 * i + channel] = Math.min(255, Math.max(0, Math.round(value * 255))))));
  return bytes;
}
