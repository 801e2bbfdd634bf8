// The shipped network in a browser: src/ducos/runtime/network.py. The graphs run in onnxruntime;
// rows of the image pass piece by piece, and the arithmetic between them is that of surroundings.js.
import { nearest, plane, toBilinear } from "./sampling.js";
import { concatenated, Surroundings } from "./surroundings.js";

export const PIECES = ["fit", "start", "body", "propose", "hand_back", "settle"];
const ROWS = 64; // of the image that pass together
const PRELUDE = 4; // more rows above and below, for convolutions of one cell's reach

export class Network {
  // run(piece, { name: [shape, Float32Array or BigInt64Array] }) gives the outputs in their order,
  // { data, dims }; about: the JSON beside the graphs.
  constructor(run, about) {
    Object.assign(this, { run, about });
  }

  // image: three planes (H, W) in [0, 1]; low: a plane (h, w), normalised and without holes; trust:
  // (h, w) in [0, 1]; noise: one standard deviation of low; told: { mode, sensor }.
  // Gives depth and sigma, planes (H, W), in the range of low.
  async predict(image, low, trust, { noise = 0, told = {}, heard = () => {} }) {
    const around = new Surroundings(image, low, trust, this.about);
    const words = { mode: this.word("mode", told), sensor: this.word("sensor", told) };
    const [h, w] = around.lowSize;
    const [fit, tolerance, shrinking] = await this.run("fit", {
      colours: [[1, 3, h, w], concatenated(around.colours.map(({ data }) => data))],
      low: [[1, 1, h, w], low.data],
      trust: [[1, 1, h, w], trust.data],
      noise: [[1, 1, 1, 1], Float32Array.of(noise)],
      ratio: [[2], around.ratio],
      mode: words.mode,
    });
    around.fit = Array.from({ length: fit.dims[1] }, (_, k) => plane(fit.data.subarray(k * h * w, (k + 1) * h * w), h, w));
    around.shrinking = shrinking.data;
    const columns = [[around.size[1], 4], whole(around.columns.flatMap(({ index }) => index))];
    const features = await this.body(around, words, (share) => heard(0.5 * share));
    const made = await this.propose(features, around, columns, (share) => heard(0.5 + 0.2 * share));
    for (let turn = 0; turn < this.about.corrections; turn++) {
      await this.correct(made, around, columns);
      heard(0.7 + (0.2 * (turn + 1)) / this.about.corrections);
    }
    const depth = await this.settle(made.depth, around, columns);
    agree(depth, around, tolerance.data);
    heard(1);
    return { depth, sigma: made.sigma };
  }

  // Where a word stands among those that the network knows; the first one if it does not.
  word(subject, told) {
    return [[1], whole([Math.max(0, (this.about.words[subject] ?? []).indexOf(told[subject]))])];
  }

  // Features at a quarter of the resolution, of the padded image: { data, dims }.
  async body(around, words, heard) {
    const [H, W] = around.padded;
    const { stride } = this.about;
    let first = null;
    for (const [a, b] of strips(H)) {
      const [top, bottom] = [Math.max(0, a - PRELUDE), Math.min(H, b + PRELUDE)];
      const n = bottom - top;
      const inputs = Object.fromEntries(Object.entries(around.seen(top, bottom)).map(([name, data]) => [name, [[1, data.length / (n * W), n, W], data]]));
      const [part] = await this.run("start", {
        ...inputs,
        row_phase: [[n], around.phases[0].subarray(top, bottom)],
        column_phase: [[W], around.phases[1]],
        ratio: [[2], around.ratio],
        shrinking: [[1, 3], around.shrinking],
        ...words,
      });
      const [, C, rows, across] = part.dims;
      first ??= { data: new Float32Array((C * H * across) / stride), dims: [1, C, H / stride, across] };
      const skip = (a - top) / stride, count = (b - a) / stride;
      for (let c = 0; c < C; c++) {
        const from = (c * rows + skip) * across;
        first.data.set(part.data.subarray(from, from + count * across), ((c * H) / stride + a / stride) * across);
      }
      heard((0.6 * b) / H);
    }
    const [features] = await this.run("body", { image: [[1, 3, H, W], around.paddedImage], first: [first.dims, first.data] });
    return features;
  }

  // Depth, sigma and gate, planes (H, W); and of every strip the weights of its neighbours.
  async propose(features, around, columns, heard) {
    const [H, W] = around.size;
    const { stride } = this.about;
    const [, C, cells, across] = features.dims;
    const made = { weights: new Map() };
    const columnWeights = [[W, 4], Float32Array.from(around.columns.flatMap((each) => each.weights))];
    for (const name of ["depth", "gate", "sigma"]) made[name] = plane(new Float32Array(H * W), H, W);
    for (const [a, b] of strips(H)) {
      const [first, last] = [a / stride, Math.ceil(b / stride)];
      const [top, bottom] = [Math.max(0, first - 1), Math.min(cells, last + 1)];
      const { up, contrast, guided } = around.known(a, b);
      const inside = around.window(a, b);
      const n = b - a, lowShape = [1, 1, inside.bottom - inside.top, around.low.w];
      const rowsOf = (c) => features.data.subarray((c * cells + top) * across, (c * cells + bottom) * across);
      const [depth, weights, gate, sigma] = await this.run("propose", {
        features: [[1, C, bottom - top, across], concatenated(Array.from({ length: C }, (_, c) => rowsOf(c)))],
        up: [[1, 1, n, W], up],
        contrast: [[1, 1, n, W], contrast],
        guided: [[1, around.sides.length, n, W], guided],
        low: [lowShape, around.lowRows(around.low, inside)],
        trust: [lowShape, around.lowRows(around.trust, inside)],
        rows: [[n, 4], whole(inside.rows)],
        columns,
        row_weights: [[n, 4], Float32Array.from(inside.weights)],
        column_weights: columnWeights,
        skip: [[1], whole([(first - top) * stride])],
      });
      Object.entries({ depth, gate, sigma }).forEach(([name, { data }]) => made[name].data.set(data, a * W));
      made.weights.set(a, weights);
      heard(b / H);
    }
    return made;
  }

  // What the shrunk depth misses of the measurements is handed back to it.
  async correct({ depth, gate, weights }, around, columns) {
    const [H, W] = around.size;
    const shrunk = around.shrunk(depth);
    const missing = plane(shrunk.data.map((value, i) => (around.low.data[i] - value) * around.trust.data[i]), shrunk.h, shrunk.w);
    for (const [a, b] of strips(H)) {
      const inside = around.window(a, b);
      const n = b - a;
      const rows = ({ data }) => [[1, 1, n, W], data.subarray(a * W, b * W)];
      const [corrected] = await this.run("hand_back", {
        missing: [[1, 1, inside.bottom - inside.top, missing.w], around.lowRows(missing, inside)],
        depth: rows(depth),
        weights: [weights.get(a).dims, weights.get(a).data],
        gate: rows(gate),
        rows: [[n, 4], whole(inside.rows)],
        columns,
      });
      depth.data.set(corrected.data, a * W);
    }
  }

  // Kept to the range of the neighbours, with steeper edges.
  async settle(depth, around, columns) {
    const [H, W] = around.size;
    const reach = this.about.steepenings;
    const out = plane(new Float32Array(H * W), H, W);
    for (const [a, b] of strips(H)) {
      const [top, bottom] = [Math.max(0, a - reach), Math.min(H, b + reach)];
      const inside = around.window(top, bottom);
      const n = bottom - top;
      const [part] = await this.run("settle", {
        depth: [[1, 1, n, W], depth.data.subarray(top * W, bottom * W)],
        contrast: [[1, 1, n, W], around.known(top, bottom).contrast],
        low: [[1, 1, inside.bottom - inside.top, around.low.w], around.lowRows(around.low, inside)],
        rows: [[n, 4], whole(inside.rows)],
        columns,
        ratio: [[2], around.ratio],
        shrinking: [[1, 3], around.shrinking],
      });
      out.data.set(part.data.subarray((a - top) * W, (b - top) * W), a * W);
    }
    return out;
  }
}

// What the shrunk result misses of the measurements beyond the tolerance (h, w) is added, smoothly
// at first, then cell by cell.
function agree(depth, around, tolerance) {
  for (const grow of [toBilinear, toBilinear, nearest]) {
    const shrunk = around.shrunk(depth);
    const excess = plane(shrunk.data.map((value, i) => {
      const missing = around.low.data[i] - value;
      return (missing - Math.min(Math.max(missing, -tolerance[i]), tolerance[i])) * around.trust.data[i];
    }), shrunk.h, shrunk.w);
    if (excess.data.every((each) => each === 0)) return;
    for (const [a, b] of strips(depth.h)) {
      const more = grow(excess, around.size, [a, b]).data;
      for (let i = 0; i < more.length; i++) depth.data[a * depth.w + i] += more[i];
    }
  }
}

const whole = (numbers) => BigInt64Array.from(numbers, BigInt);

// Bounds of the rows that pass together; they begin at whole cells.
function* strips(rows) {
  for (let first = 0; first < rows; first += ROWS) yield [first, Math.min(rows, first + ROWS)];
}
