// What surrounds each pixel, for some rows of an image: src/ducos/runtime/surroundings.py.
import { paddedAxes, taps } from "./kernels.js";
import { mapped, nearest, plane, toArea, toBicubic, toBilinear, toSplineMean } from "./sampling.js";

const FLAT = 1e-7; // variance by rounding: such a map has no contrast
const AT_ONCE = 1e6; // pixels of an image whose maps are made once and kept

export class Surroundings {
  // image: three planes (H, W); low, trust: planes (h, w); about: sides and multiple of the pieces.
  // `fit`, planes (h, w), and `shrinking`, three shares, are set when they are known.
  constructor(image, low, trust, about) {
    Object.assign(this, { image, low, trust, sides: about.sides });
    this.size = [image[0].h, image[0].w];
    this.lowSize = [low.h, low.w];
    this.ratio = Float32Array.from(this.size, (N, axis) => N / this.lowSize[axis]);
    this.colours = image.map((each) => toArea(each, this.lowSize));
    this.padding = paddedAxes(this.size, about.multiple);
    this.padded = this.padding.map((axis) => axis.length);
    const neighbours = this.size.map((N, axis) => Array.from({ length: N }, (_, i) => taps(i, this.lowSize[axis], N)));
    [this.rows, this.columns] = neighbours;
    this.phases = this.padding.map((axis, k) => Float32Array.from(axis, (i) => neighbours[k][i].phase));
    this.centred = plane(Float64Array.from(low.data, (value) => value - 0.5), low.h, low.w);
    this.squares = mapped((value) => value * value, this.centred);
    this.missing = trust.data.every((each) => each === 1) ? null : mapped((each) => 1 - each, trust);
  }

  // The planes of the padded image, one after the other: (3, H', W').
  get paddedImage() {
    const [rows, columns] = this.padding;
    return concatenated(this.image.map((each) => gathered(each, rows, columns)));
  }

  // Of rows [a, b), (n, W) each: `up`, the bicubic depth; mean and contrast of the neighbours;
  // `hole`, which share of them is none; `guided`, one after the other, the depths of the colours.
  known(a, b) {
    const [H, W] = this.size;
    if (H * W > AT_ONCE) return this.made(a, b);
    this.kept ??= this.made(0, H);
    const rows = (each, count = 1) => {
      const part = new Float32Array(count * (b - a) * W);
      for (let k = 0; k < count; k++) part.set(each.subarray((k * H + a) * W, (k * H + b) * W), k * (b - a) * W);
      return part;
    };
    return Object.fromEntries(Object.entries(this.kept).map(([name, each]) => [name, rows(each, name === "guided" ? this.sides.length : 1)]));
  }

  made(a, b) {
    const { size } = this;
    const up = toBicubic(this.low, size, [a, b]).data;
    // In double precision, as a difference of squares.
    const middle = toSplineMean(this.centred, size, [a, b]).data;
    const squares = toSplineMean(this.squares, size, [a, b]).data;
    const contrast = Float32Array.from(middle, (mean, i) => 2 * Math.sqrt(Math.max(0, squares[i] - mean * mean - FLAT)));
    const mean = Float32Array.from(middle, (value) => value + 0.5);
    const hole = this.missing ? toSplineMean(this.missing, size, [a, b]).data : new Float32Array(up.length);
    return { up, mean, contrast, hole, guided: this.guided(a, b, up, contrast) };
  }

  guided(a, b, up, contrast) {
    const fit = this.fit.map((each) => toBilinear(each, this.size, [a, b]).data);
    const from = a * this.size[1];
    const [red, green, blue] = this.image.map(({ data }) => data);
    return concatenated(
      this.sides.map((_, number) => {
        const [r, g, b, intercept] = fit.slice(4 * number, 4 * number + 4);
        const depth = new Float32Array(up.length);
        for (let i = 0; i < depth.length; i++) {
          const said = r[i] * red[from + i] + g[i] * green[from + i] + b[i] * blue[from + i] + intercept[i];
          const away = (number + 1) * contrast[i];
          depth[i] = Math.min(Math.max(said, up[i] - away), up[i] + away);
        }
        return depth;
      }),
    );
  }

  // What the body sees of rows [a, b) of the padded image: names and (planes, n, W') each.
  seen(a, b) {
    const index = this.padding[0].subarray(a, b);
    const [top, bottom] = [Math.min(...index), Math.max(...index) + 1];
    const W = this.size[1];
    const rows = index.map((i) => i - top);
    const put = (data) => {
      const each = (bottom - top) * W;
      const count = data.length / each;
      return concatenated(Array.from({ length: count }, (_, k) => gathered(plane(data.subarray(k * each, (k + 1) * each), bottom - top, W), rows, this.padding[1])));
    };
    const image = concatenated(this.image.map(({ data }) => data.subarray(top * W, bottom * W)));
    return Object.fromEntries(Object.entries({ image, ...this.known(top, bottom) }).map(([name, data]) => [name, put(data)]));
  }

  // Where the neighbours of rows [a, b) lie: rows [top, bottom) of the measurements, and which of
  // these are the four of each row, with the spline's weights.
  window(a, b) {
    const inside = this.rows.slice(a, b);
    const all = inside.flatMap(({ index }) => index);
    const [top, bottom] = [Math.min(...all), Math.max(...all) + 1];
    return { top, bottom, rows: all.map((i) => i - top), weights: inside.flatMap(({ weights }) => weights) };
  }

  // Rows [top, bottom) of a map of the size of the measurements.
  lowRows(map, { top, bottom }) {
    return map.data.subarray(top * map.w, bottom * map.w);
  }

  // To the size of the measurements, as these were shrunk.
  shrunk(depth) {
    const data = new Float32Array(this.low.data.length);
    [toArea, toBicubic, nearest].forEach((way, k) => {
      if (this.shrinking[k] > 0) way(depth, this.lowSize).data.forEach((value, i) => (data[i] += this.shrinking[k] * value));
    });
    return plane(data, ...this.lowSize);
  }
}

function gathered({ data, w }, rows, columns) {
  const made = new Float32Array(rows.length * columns.length);
  let k = 0;
  for (const i of rows) for (const j of columns) made[k++] = data[i * w + j];
  return made;
}

export function concatenated(parts) {
  const made = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let start = 0;
  for (const part of parts) {
    made.set(part, start);
    start += part.length;
  }
  return made;
}
