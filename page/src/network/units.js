// What stored numbers mean in metres, and which of them are measurements: files/units.py, depth.py.
import { Refused } from "../refused.js";
import { plane } from "./sampling.js";
import { quantiles } from "./statistics.js";

const UNITS = { m: 1, cm: 0.01, mm: 0.001 };
const NAMES = { m: "metres", cm: "centimetres", mm: "millimetres", relative: "relative levels" };
const FARTHEST = 60000; // metres; what is farther is the sky of a renderer, or a code
const LARGEST_LEVEL = 1e18;

// stored: { data, h, w, bits, whole, signed, facts } as the readers of ../formats give it.
// Gives { depth, valid, unit, scale, note, guessed }, planes (h, w); valid holds 0 and 1.
export function measurementsOf(stored, { unit = "auto", scale = null, mask = null }) {
  const { data, h, w, bits, whole } = stored;
  const valid = new Float32Array(h * w).fill(1);
  const most = 2 ** (stored.signed ? bits - 1 : bits) - 1;
  data.forEach((value, i) => {
    if (!Number.isFinite(value)) valid[i] = 0;
    if (whole && bits > 8 && (value === 65535 || value === most)) valid[i] = 0;
  });
  if (mask) {
    if (mask.h !== h || mask.w !== w) throw new Refused("input", `The mask is ${mask.w}×${mask.h} and the depth map ${w}×${h}; make them equal.`);
    mask.data.forEach((value, i) => value === 0 && (valid[i] = 0));
  }
  const meaning = given(unit, scale) ?? stated(stored.facts) ?? guessed(stored, valid);
  const depth = new Float32Array(h * w);
  let [negative, some] = [0, 0];
  data.forEach((value, i) => {
    if (meaning.unit !== "relative") {
      if (value === 65535 || value > FARTHEST / meaning.scale) valid[i] = 0;
      if (valid[i] && value !== 0) some++;
      if (valid[i] && value < 0) {
        negative++;
        valid[i] = 0;
      }
    }
    depth[i] = value * meaning.scale;
    if (!(Math.abs(depth[i]) <= LARGEST_LEVEL) || (meaning.zeroIsHole && depth[i] === 0)) valid[i] = 0;
    if (!valid[i]) depth[i] = 0;
  });
  if (negative > 0.1 * some) {
    throw new Refused("input", `${Math.round((100 * negative) / some)} % of the measurements are negative; depth grows away from the camera, so flip the sign, or say that the numbers are no distances.`);
  }
  if (!valid.some((each) => each > 0)) throw new Refused("input", `The depth map has no valid pixel (unit ${meaning.how}: ${meaning.words}).`);
  return {
    depth: plane(depth, h, w), valid: plane(valid, h, w), unit: meaning.unit, scale: meaning.scale,
    note: `unit ${meaning.how}: ${meaning.words}`, guessed: meaning.how === "guessed",
  };
}

function given(unit, scale) {
  if (scale && unit === "relative") return { unit, scale, how: "given", words: NAMES.relative, zeroIsHole: false };
  if (scale) return { unit: "custom", scale, how: "given", words: stepOf(scale), zeroIsHole: true };
  if (unit === "auto") return null;
  return { unit, scale: UNITS[unit] ?? 1, how: "given", words: NAMES[unit], zeroIsHole: unit !== "relative" };
}

// What a file that ducos wrote says about itself.
function stated(facts) {
  if (!facts?.depth_unit && !facts?.depth_scale) return null;
  const unit = facts.depth_unit ?? "custom";
  const scale = facts.depth_scale === undefined ? (UNITS[unit] ?? 1) : Number(facts.depth_scale);
  if (!(unit in NAMES || unit === "custom") || !(Number.isFinite(scale) && scale > 0)) {
    throw new Refused("input", "The depth map states a unit that makes no sense; choose what its numbers are.");
  }
  const usual = unit === "relative" || scale === UNITS[unit];
  const zeroIsHole = facts.depth_invalid === undefined ? unit !== "relative" : facts.depth_invalid === "0";
  return { unit, scale, how: "read from the file", words: usual ? NAMES[unit] : stepOf(scale), zeroIsHole };
}

// By number type and size: 8-bit integers are levels, wider ones millimetres; floating point is
// metres up to a median of 100, and levels if the largest is exactly 1.
function guessed({ data, bits, whole }, valid) {
  const kind = whole ? `${bits}-bit integers` : "floating point";
  const positive = data.filter((value, i) => valid[i] && value > 0 && (whole || value < FARTHEST));
  const normalised = !whole && positive.length > 0 && positive.reduce((a, b) => Math.max(a, b)) === 1;
  if (normalised || (whole && bits === 8)) {
    const why = normalised ? `${kind}, largest value exactly 1` : kind;
    return { unit: "relative", scale: 1, how: "guessed", words: `relative levels (${why})`, zeroIsHole: false };
  }
  const median = positive.length ? quantiles(positive, 0.5)[0] : 0;
  const unit = whole || median > 100 ? "mm" : "m";
  const metres = median * UNITS[unit];
  const doubt = metres >= 0.1 && metres <= (whole ? 8 : 100) ? "" : `; a median of ${Number(metres.toPrecision(3))} m is unusual, so choose another unit if this is wrong`;
  return { unit, scale: UNITS[unit], how: "guessed", words: `${NAMES[unit]} (${kind}, median ${Number(median.toPrecision(4))})${doubt}`, zeroIsHole: true };
}

const stepOf = (scale) => (scale < 0.01 ? `${Number((scale * 1000).toPrecision(6))} mm per step` : `${Number(scale.toPrecision(6))} m per step`);

// Points rather than a map: few pixels, and next to none with all neighbours.
export function isScattered({ valid: { data, h, w } }) {
  const count = data.reduce((sum, each) => sum + each, 0);
  if (count >= 0.1 * h * w || Math.min(h, w) < 3) return false;
  let whole = 0;
  for (let i = 1; i < h - 1; i++) {
    for (let j = 1; j < w - 1; j++) {
      const around = [-1, 0, 1].flatMap((y) => [-1, 0, 1].map((x) => data[(i + y) * w + j + x]));
      if (around.every((each) => each > 0)) whole++;
    }
  }
  return whole < 0.1 * count;
}

export function checkDense(low) {
  if (isScattered(low)) throw new Refused("input", "These are scattered points, not a map, which this page does not spread; pip install ducos does.");
}
