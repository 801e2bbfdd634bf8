// What stands in the holes of a map before the network sees it: `fill_holes` of sampling.py.
import { mapped, plane, toArea, toBicubic, toBilinear } from "./sampling.js";

const LIKE_COLOUR = 0.07; // standard deviation of colours of one surface
const UNLIKE_WEIGHT = 0.01; // of a pixel of another colour
export const FARTHER = 2; // exponent of depth in the weights of what fills a hole
const TINY = 1.1754943508222875e-38;

// x, trust: planes; guide: three planes of the same size; far: FARTHER, or 0 for relative maps.
export function filled(x, trust, guide, far) {
  const smooth = continued(x, trust);
  const { h, w } = x;
  const known = Uint8Array.from(trust.data, (each) => each > 0);
  const count = known.reduce((sum, each) => sum + each, 0);
  if (count === 0 || count === known.length) return smooth;
  let [sum, weights] = [0, 0];
  trust.data.forEach((weight, i) => {
    sum += weight * smooth.data[i];
    weights += weight;
  });
  const typical = Math.max(sum / weights, TINY);
  const trusted = (i) => trust.data[i] * Math.min(20, Math.max(0.05, smooth.data[i] / typical)) ** far;
  const [total, mixed] = [new Float32Array(h * w), new Float32Array(h * w)];
  const vote = (hole, there, distance) => {
    let unlike = 0;
    for (const { data } of guide) unlike += (data[there] - data[hole]) ** 2;
    const alike = Math.exp(unlike / (-2 * LIKE_COLOUR ** 2)) + UNLIKE_WEIGHT;
    const says = (trusted(there) * alike) / distance ** 2;
    total[hole] += says;
    mixed[hole] += says * smooth.data[there];
  };
  // The next valid pixel before and behind each hole, along rows and columns.
  const walk = (start, step, n) => {
    for (const [from, direction] of [[0, 1], [n - 1, -1]]) {
      let last = -1;
      for (let k = from; k >= 0 && k < n; k += direction) {
        const i = start + k * step;
        if (known[i]) last = k;
        else if (last >= 0) vote(i, start + last * step, Math.abs(k - last));
      }
    }
  };
  for (let row = 0; row < h; row++) walk(row * w, 1, w);
  for (let column = 0; column < w; column++) walk(column, w, h);
  const data = smooth.data.map((value, i) => (total[i] > 0 && !known[i] ? mixed[i] / Math.max(total[i], TINY) : value));
  return plane(data, h, w);
}

// A smooth continuation into holes: ever coarser maps, back upon each other.
export function continued(x, trust) {
  const weighted = trust.data.some((each) => each > 0 && each < 1);
  const go = (x, weight) => {
    x = mapped((value, of) => (of > 0 ? value : 0), x, weight);
    if (x.data.length === 1 || weight.data.every((each) => each > 0)) return x;
    const half = [(x.h + 1) >> 1, (x.w + 1) >> 1];
    const pooled = toArea(weight, half);
    const coarse = mapped((sum, of) => (of > 0 ? sum / Math.max(of, TINY) : 0), toArea(mapped((value, of) => value * of, x, weight), half), pooled);
    const below = weighted ? pooled : mapped((of) => (of > 0 ? 1 : 0), pooled);
    return mapped((value, of, other) => (of > 0 ? value : other), x, weight, toBilinear(go(coarse, below), [x.h, x.w]));
  };
  return go(x, trust);
}

// A map that is finer than its image, shrunk: values, and a mask of 0 and 1.
export function maskedBicubic(x, valid, size) {
  const share = toBilinear(valid, size);
  return [toBicubic(continued(x, valid), size), mapped((of) => (of > 0.5 ? 1 : 0), share)];
}
