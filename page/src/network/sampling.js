// Resampling of planes by the rules of kernels.js: first one axis, then the other.
//
// A plane is { data, h, w }: row after row, Float32Array or Float64Array.
import { area, bicubic, bilinear, nearestIndex, spline } from "./kernels.js";

export const plane = (data, h, w) => ({ data, h, w });

// A plane made of the values of up to three others, pixel by pixel.
export function mapped(make, first, second = first, third = first) {
  const data = new first.data.constructor(first.data.length);
  const [a, b, c] = [first.data, second.data, third.data];
  for (let i = 0; i < data.length; i++) data[i] = make(a[i], b[i], c[i]);
  return plane(data, first.h, first.w);
}

// (h, w) -> (H, W), or rows [a, b) of it.
export function resampled(x, [H, W], rule, [a, b] = [0, H]) {
  const rows = taken(rule, x.h, H, a, b);
  const columns = taken(rule, x.w, W, 0, W);
  const [top, bottom] = reached(rows);
  const part = plane(x.data.subarray(top * x.w, bottom * x.w), bottom - top, x.w);
  // The smaller map in between is the cheaper one.
  if (W * (bottom - top) <= x.w * (b - a)) return down(across(part, columns, rule), rows, top);
  return across(down(part, rows, top), columns, rule);
}

const taken = (rule, n, N, a, b) => Array.from({ length: b - a }, (_, i) => rule(a + i, n, N));
const reached = (rows) => [Math.min(...ends(rows, 0)), Math.max(...ends(rows, 1))];
const ends = (rows, last) => [rows[0], rows[rows.length - 1]].map(({ first, weights }) => first + last * weights.length);

function down({ data: from, w }, rows, top) {
  const data = new from.constructor(rows.length * w);
  const sum = new Float64Array(w);
  rows.forEach(({ first, weights }, i) => {
    sum.fill(0);
    weights.forEach((weight, k) => {
      if (weight === 0) return;
      const start = (first - top + k) * w;
      for (let j = 0; j < w; j++) sum[j] += weight * from[start + j];
    });
    data.set(sum, i * w);
  });
  return plane(data, rows.length, w);
}

function across(x, columns, rule) {
  const { data: from, h, w } = x;
  const W = columns.length;
  if (w === W && !rule.smooths) return x;
  const data = new from.constructor(h * W);
  for (let j = 0; j < W; j++) {
    const { first, weights } = columns[j];
    const count = weights.length;
    for (let i = 0; i < h; i++) {
      const start = i * w + first;
      let sum = 0;
      for (let k = 0; k < count; k++) sum += weights[k] * from[start + k];
      data[i * W + j] = sum;
    }
  }
  return plane(data, h, W);
}

export function nearest(x, [H, W], [a, b] = [0, H]) {
  const data = new x.data.constructor((b - a) * W);
  const columns = Int32Array.from({ length: W }, (_, j) => nearestIndex(j, x.w, W));
  for (let i = a; i < b; i++) {
    const start = nearestIndex(i, x.h, H) * x.w;
    for (let j = 0; j < W; j++) data[(i - a) * W + j] = x.data[start + columns[j]];
  }
  return plane(data, b - a, W);
}

export const toBicubic = (x, size, rows) => resampled(x, size, bicubic, rows);
export const toBilinear = (x, size, rows) => resampled(x, size, bilinear, rows);
export const toArea = (x, size) => resampled(x, size, area);
export const toSplineMean = (x, size, rows) => resampled(x, size, spline, rows);
