// Quantiles as numpy has them, the noise of a map, and windows around pixels.
import { plane } from "./sampling.js";

// Quantiles of numbers, between two of them linearly.
export function quantiles(values, ...shares) {
  const sorted = Float64Array.from(values).sort();
  return shares.map((share) => {
    const place = share * (sorted.length - 1);
    const [low, high] = [Math.floor(place), Math.ceil(place)];
    return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
  });
}

export const measured = ({ depth, valid }) => depth.data.filter((_, i) => valid.data[i]);

// Standard deviation of the noise of a map at its median depth: `noise_of` of doctor/pixels.py.
// Second differences along both axes vanish on planes of the inverse depth; their lower quartile
// belongs to smooth parts of the scene.
export function noiseOf(low) {
  const { depth, valid } = low;
  const { h, w } = depth;
  if (Math.min(h, w) < 3) return 0;
  const relative = low.unit === "relative";
  const [first, middle, last] = quantiles(measured(low), 0.01, 0.5, 0.99);
  const scale = relative ? Math.max(last - first, 1e-9) : middle;
  const values = Float64Array.from(depth.data, (value, i) => (relative ? value / scale : valid.data[i] ? scale / value : 0));
  const differences = [];
  for (let i = 1; i < h - 1; i++) {
    for (let j = 1; j < w - 1; j++) {
      let whole = true, sum = 0;
      for (let y = -1; y <= 1; y++) {
        for (let x = -1; x <= 1; x++) {
          const k = (i + y) * w + j + x;
          whole &&= valid.data[k] > 0;
          sum += (y ? 1 : -2) * (x ? 1 : -2) * values[k];
        }
      }
      if (whole) differences.push(Math.abs(sum / 6 / (relative ? 1 : values[i * w + j])));
    }
  }
  if (differences.length < 16) return 0;
  const level = quantiles(differences, 0.25)[0] / 0.3186; // quartile of |N(0, 1)|
  return level * (relative ? last - first : middle);
}

// The extreme of (2 reach + 1)² pixels around each; better(a, b): whether a counts rather than b.
export function extreme({ data, h, w }, reach, better) {
  const pass = (from, step, inside) =>
    from.map((value, i) => {
      for (let k = -reach; k <= reach; k++) if (inside(i, k) && better(from[i + k * step], value)) value = from[i + k * step];
      return value;
    });
  const along = pass(data, 1, (i, k) => (i % w) + k >= 0 && (i % w) + k < w);
  return plane(pass(along, w, (i, k) => i + k * w >= 0 && i + k * w < data.length), h, w);
}
export const highest = (x, reach) => extreme(x, reach, (a, b) => a > b);
export const lowest = (x, reach) => extreme(x, reach, (a, b) => a < b);
