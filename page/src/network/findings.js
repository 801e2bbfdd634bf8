// What can be said of a pair at a glance. `ducos doctor` says more: this looks at sizes, unit, holes.
import { Refused } from "../refused.js";
import { quantiles, measured } from "./statistics.js";
import { isScattered } from "./units.js";
import { checkSizes } from "./upscale.js";

const FEW_HOLES = 0.02, MANY_HOLES = 0.5; // of the map

// image, low: as in units.js; the answer is that of `examine` in ../engine.js.
export function findings(image, low) {
  const { h, w } = low.depth;
  const known = measured(low);
  const found = [];
  const say = (code, severity, sentence, advice = "") => found.push({ code, severity, sentence, advice });
  try {
    checkSizes(image, low.depth, false);
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    say("aspect", "warning", problem.message);
  }
  const [first, middle, last] = quantiles(known, 0.01, 0.5, 0.99);
  if (known.every((value) => value === known[0])) say("constant", "error", `the depth map is constant, ${middle} everywhere: nothing was measured`);
  else if (last - first < 0.01 * Math.abs(middle)) say("flat", "warning", "the depth map is flat: there are no depth edges to sharpen");
  if (low.note.includes("unusual")) say("unit-unsure", "warning", low.note, `choose what the numbers are`);
  if (low.unit === "relative" && low.guessed) say("relative", "note", `no metres: ${low.note}`, "if these are distances, choose what the numbers are");
  const holes = 1 - known.length / (h * w);
  if (isScattered(low)) say("scattered", "error", "scattered points, not a map: this page does not spread them", "pip install ducos does");
  else if (holes > FEW_HOLES) say("holes", holes > MANY_HOLES ? "warning" : "note", `${Math.round(100 * holes)} % of the depth map are holes; what fills them is inferred, not measured`);
  const sound = found.every(({ severity }) => severity === "note");
  return { sound, findings: found, facts: { colour_size: [image.h, image.w], depth_size: [h, w], unit_decision: low.note } };
}
