// One result as the page uses it: planes of one size, with what lies at a pixel.
const SOURCES = ["hole", "measured", "interpolated", "inferred"];

export class Scene {
  constructor({ job, facts, maps, view }) {
    Object.assign(this, { job, facts });
    [this.h, this.w] = maps.depth.shape;
    [this.lowH, this.lowW] = maps.low.shape;
    this.depth = maps.depth.data;
    this.valid = maps.valid.data;
    this.source = maps.source.data;
    this.sigma = maps.sigma?.data ?? null;
    this.low = maps.low.data;
    this.lowValid = maps.low_valid.data;
    this.bicubic = view.bicubic.data;
    this.image = view.image.data;
    this.flying = view.flying.data;
    this.bicubicFlying = view.bicubic_flying.data;
    this.rays = view.rays?.data ?? null;
    this.camera = view.facts.camera;
    this.metric = view.facts.metric;
  }

  // Index of the measurement whose pixel holds the centre of pixel (x, y).
  lowIndex(x, y) {
    const u = Math.min(this.lowW - 1, Math.floor(((x + 0.5) * this.lowW) / this.w));
    const v = Math.min(this.lowH - 1, Math.floor(((y + 0.5) * this.lowH) / this.h));
    return v * this.lowW + u;
  }

  at(x, y) {
    const i = y * this.w + x;
    const low = this.lowIndex(x, y);
    return {
      depth: this.valid[i] ? this.depth[i] : null,
      input: this.lowValid[low] ? this.low[low] : null,
      bicubic: this.bicubic[i],
      sigma: this.sigma && this.valid[i] ? this.sigma[i] : null,
      source: SOURCES[this.source[i]],
    };
  }

  // A plane with the measurement of each pixel, and where there is one.
  blownUp() {
    const depth = new Float32Array(this.w * this.h);
    const valid = new Uint8Array(this.w * this.h);
    for (let y = 0, i = 0; y < this.h; y++) {
      for (let x = 0; x < this.w; x++, i++) {
        const low = this.lowIndex(x, y);
        depth[i] = this.low[low];
        valid[i] = this.lowValid[low];
      }
    }
    return { depth, valid };
  }

  // A short line across the strongest depth edge, so that the profile shows one from the start.
  strongestEdge() {
    const { w, h, depth, valid } = this;
    const reach = Math.max(2, Math.round(w / 80));
    let best = { jump: 0, x: w >> 1, y: h >> 1 };
    for (let y = Math.round(h * 0.15); y < h * 0.85; y += 4) {
      for (let x = Math.round(w * 0.15); x < w * 0.85; x += 2) {
        const [a, b] = [y * w + x - reach, y * w + x + reach];
        if (!valid[a] || !valid[b]) continue;
        // Neighbouring rows must agree, so that it is an edge and no speck.
        const jump = Math.min(
          ...[-8, 0, 8].map((d) => Math.abs(depth[b + d * w] - depth[a + d * w]) / (depth[a + d * w] + depth[b + d * w])),
        );
        if (jump > best.jump) best = { jump, x, y };
      }
    }
    const half = Math.round(w * 0.11);
    return { x0: best.x - half, y0: best.y, x1: best.x + half, y1: best.y };
  }
}
