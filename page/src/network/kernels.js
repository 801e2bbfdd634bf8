// The rule of every resampling: src/ducos/kernels.py and sampling.py, for one axis at a time.
//
// Pixel i of n covers [i, i+1)/n of the image. A rule tells which of n pixels make pixel i of N:
// { first, weights }, the weights of pixels first, first + 1, ... A test compares with Python.
const single = Math.fround;

const cubic = (d) => (d < 1 ? (1.5 * d - 2.5) * d * d + 1 : d < 2 ? ((2.5 - 0.5 * d) * d - 4) * d + 2 : 0);
const triangle = (d) => Math.max(0, 1 - d);

// Pillow's: where it shrinks, the kernel is as wide as a target pixel.
const antialiased = (kernel, reach) => (i, n, N) => {
  const larger = Math.max(n, N);
  const centre = ((2 * i + 1) * n - N) / (2 * N);
  const width = (reach * larger) / N;
  const [first, last] = [Math.max(0, Math.floor(centre - width)), Math.min(n - 1, Math.ceil(centre + width))];
  const weights = [];
  for (let j = first; j <= last; j++) weights.push(kernel(Math.abs((2 * i + 1) * n - (2 * j + 1) * N) / (2 * larger)));
  const sum = weights.reduce((a, b) => a + b, 0);
  return { first, weights: weights.map((weight) => weight / sum) };
};
export const bicubic = antialiased(cubic, 2);
export const bilinear = antialiased(triangle, 1);

// The mean of all pixels that a target pixel touches.
export function area(i, n, N) {
  const first = Math.floor((i * n) / N);
  const end = Math.floor(((i + 1) * n + N - 1) / N);
  return { first, weights: new Array(end - first).fill(1 / (end - first)) };
}

// Which of n pixels holds the centre of pixel i of N; on a border, the right one.
export const nearestIndex = (i, n, N) => Math.floor(((2 * i + 1) * n) / (2 * N));

// Of pixel i of N: its 4 neighbours among n, the cubic B-spline's weights of these, and where
// between two pixels it lies. In single precision, as in Python: a local contrast is a small
// difference of large numbers and shows the last bit of the weights.
export function taps(i, n, N) {
  const centre = (2 * i + 1) * n + N;
  const after = Math.floor(centre / (2 * N));
  const phase = single((centre - after * 2 * N) / (2 * N));
  const index = [], weights = [];
  for (let offset = -1; offset <= 2; offset++) {
    index.push(Math.min(n - 1, Math.max(0, after - 1 + offset)));
    weights.push(splineAt(single(Math.abs(offset - phase))));
  }
  return { index, weights, phase };
}

function splineAt(d) {
  if (d < 1) {
    const square = single(d * d);
    return single(single(single(2 / 3) - square) + single(single(square * d) / 2));
  }
  const left = single(Math.max(0, 2 - d));
  return single(single(single(left * left) * left) / 6);
}

export function spline(i, n, N) {
  const { index, weights } = taps(i, n, N);
  const first = index[0];
  const all = new Array(index[3] - first + 1).fill(0);
  index.forEach((j, k) => (all[j - first] += weights[k])); // those beyond a border count for the border
  return { first, weights: all };
}
spline.smooths = true; // it changes a map even where the size stays

// Which pixel each one of a padded axis repeats: mirrored where it is large enough, else the last.
export function paddedAxes(size, multiple) {
  const wide = size.map((n) => Math.ceil(n / multiple) * multiple);
  const mirrored = size.every((n, axis) => 2 * n > wide[axis]);
  return size.map((n, axis) =>
    Int32Array.from({ length: wide[axis] }, (_, i) => {
      const beyond = Math.max(0, i - (n - 1));
      return i - beyond - (mirrored ? beyond : 0);
    }),
  );
}
