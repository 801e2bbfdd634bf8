// Pixels that hang between two surfaces, or alone in the air: src/ducos/cameras/flying.py.
import { mapped } from "./sampling.js";
import { highest, lowest } from "./statistics.js";

const EDGE = 0.1; // a jump between two surfaces, of the nearer depth
const RADIUS = 2; // pixels within which it happens
const CLOSE = 0.02; // to a surface, of the depth
const UNSURE = 0.04; // sigma of what could be on either surface, of the depth
const STEEPEST = 80; // degrees between a surface and the image plane
const WAYS = [[0, 1], [1, 0], [1, 1], [1, -1]].map(([down, across]) => ({ down, across, length: Math.hypot(down, across) }));

// depth: a plane; valid: 0 and 1; camera: { fx, fy }; sigma: a plane, and measured: 0 and 1, if the
// model has them. Gives 0 and 1 of each pixel.
export function flyingPixels(depth, valid, camera, sigma = null, measured = null) {
  const { data: z, h, w } = depth;
  const tolerance = Math.tan((STEEPEST * Math.PI) / 180) / Math.sqrt(camera.fx * camera.fy);
  const flying = new Uint8Array(z.length);
  const step = (k, y, x) => (y >= 0 && y < h && x >= 0 && x < w && valid[y * w + x] ? z[y * w + x] - z[k] : NaN);
  for (let i = 0, k = 0; i < h; i++) {
    for (let j = 0; j < w; j++, k++) {
      if (!valid[k]) continue;
      let stair = false, lonely = true;
      for (const { down, across, length } of WAYS) {
        const limit = tolerance * length * z[k];
        const before = -step(k, i - down, j - across), behind = step(k, i + down, j + across);
        stair ||= (before > limit && behind > limit) || (before < -limit && behind < -limit);
        lonely &&= !(Math.abs(before) <= limit || Math.abs(behind) <= limit);
      }
      flying[k] = stair || lonely ? 1 : 0;
    }
  }
  if (sigma) doubted(flying, depth, valid, sigma, measured);
  return flying;
}

// At a depth edge those fly that lie between the surfaces and are unsure; also what was guessed.
function doubted(flying, depth, valid, sigma, measured) {
  const known = { ...depth, data: Uint8Array.from(valid) };
  const near = lowest(mapped((z, there) => (there ? z : Infinity), depth, known), RADIUS).data;
  const far = highest(mapped((z, there) => (there ? z : -Infinity), depth, known), RADIUS).data;
  depth.data.forEach((z, k) => {
    if (!valid[k]) return;
    const edge = far[k] > (1 + EDGE) * near[k];
    const between = Math.abs(z - near[k]) > CLOSE * z && Math.abs(z - far[k]) > CLOSE * z;
    const open = edge || !measured[k];
    if ((edge && between && sigma.data[k] > CLOSE * z) || (open && sigma.data[k] > UNSURE * z)) flying[k] = 1;
  });
}
