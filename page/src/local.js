// The engine of a page whose visitors' browsers compute: scripts/static_page.py --network. The work
// is done by network/worker.js; files stay where they are.
import { writeNpy } from "./formats/npy.js";
import { writePly } from "./formats/ply.js";
import { writePng } from "./formats/png.js";
import { Engine as Gallery } from "./gallery.js";
import { Refused } from "./refused.js";

const KEPT = 8; // results, for downloads and recordings
const LARGEST_STEP = 65534; // of a 16-bit PNG; 65535 is everybody's code for a hole
const MORE = "That needs the whole program: pip install 'ducos[serve]', then ducos serve --open.";
// Fields of the form that nothing here answers to.
const LACKS = ["confidence", "prior", "rgb_intrinsics", "depth_intrinsics", "extrinsics", "shift"];

const WRITERS = {
  png: asPng,
  npy: ({ maps: { depth, valid }, view }) => writeNpy(depth.data.map((z, i) => (valid.data[i] ? z : view.facts.metric ? 0 : NaN)), ...depth.shape),
  ply: writePly,
};

export class Engine extends Gallery {
  constructor() {
    super();
    this.worker = null;
    this.asked = new Map(); // id of a question -> what to do with its answer
    this.number = 0;
    this.results = new Map();
  }

  async limits() {
    const there = await super.limits();
    return there && { ...there, formats: Object.keys(WRITERS), lacks: LACKS };
  }

  privacy() {
    return "Your files do not leave this computer: the network runs in this page. Recordings, cameras and more formats: ducos serve.";
  }

  async frame() {
    throw new Refused("elsewhere", `This page has no recordings. ${MORE}`);
  }

  examine(files, options) {
    return this.ask("examine", files, options);
  }

  async upscale(files, options, heard, signal) {
    const beyond = LACKS.filter((name) => files[name]);
    if (beyond.length) throw new Refused("elsewhere", `This page does not take the file for ${beyond.join(", ")}. ${MORE}`);
    const made = await this.ask("upscale", files, options, heard, signal);
    const result = { job: `local-${++this.number}`, ...made };
    this.results.set(result.job, result);
    if (this.results.size > KEPT) this.results.delete(this.results.keys().next().value);
    return result;
  }

  // A question to the worker. Work cannot be stopped inside it, so it is ended and started again.
  ask(ask, files, options, heard = () => {}, signal = null) {
    this.worker ??= this.started();
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      const stop = () => this.end(new Refused("cancelled", "Cancelled."));
      signal?.addEventListener("abort", stop);
      const finish = (then) => (value) => {
        this.asked.delete(id);
        signal?.removeEventListener("abort", stop);
        then(value);
      };
      this.asked.set(id, { heard, resolve: finish(resolve), reject: finish(reject) });
      const { rgb, depth, mask } = files;
      this.worker.postMessage({ id, ask, files: { rgb, depth, mask }, options });
    });
  }

  started() {
    const worker = new Worker("network/worker.js", { type: "module" });
    worker.addEventListener("message", ({ data: { id, heard, made, problem } }) => {
      const asked = this.asked.get(id);
      if (heard) asked?.heard(heard);
      else if (problem) asked?.reject(new Refused(problem.code, problem.sentence));
      else asked?.resolve(made);
    });
    worker.addEventListener("error", () => this.end(new Refused("unreachable", "The page's program could not be loaded or has stopped.")));
    return worker;
  }

  end(problem) {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject } of [...this.asked.values()]) reject(problem);
  }

  async restore(job) {
    const result = this.results.get(job);
    if (!result) throw new Refused("gone", "it was in the memory of a page that is closed.");
    return result;
  }

  async download(job, format, degrees) {
    const result = await this.restore(job);
    if (!(format in WRITERS)) throw new Refused("elsewhere", `This page does not write ${format}. ${MORE}`);
    if (format === "ply" && !result.view.facts.metric) throw new Refused("input", "A cloud needs metres; choose what the numbers are.");
    return WRITERS[format](result, degrees);
  }
}

// 16 bits: millimetres, or of a relative map the finest step of 1, 2 or 5 times a power of ten.
async function asPng({ facts, maps: { depth, valid }, view }) {
  const { metric } = view.facts;
  const scale = metric ? 0.001 : finestStep(facts.max);
  const steps = Uint16Array.from(depth.data, (z, i) => {
    if (!valid.data[i]) return metric ? 0 : 65535;
    return Math.max(metric ? 1 : 0, Math.round(z / scale));
  });
  if (facts.max / scale > LARGEST_STEP) throw new Refused("input", `The result reaches ${facts.max.toFixed(1)} m, beyond the 65 m of a 16-bit PNG of millimetres; take NPY.`);
  if (facts.min < 0) throw new Refused("input", "The result has levels below 0, which a PNG cannot hold; take NPY.");
  const texts = { depth_unit: metric ? "mm" : "relative", depth_scale: String(scale), depth_invalid: metric ? "0" : "65535" };
  return writePng(steps, depth.shape[0], depth.shape[1], texts);
}

function finestStep(most) {
  if (most <= 0) return 1;
  const power = Math.floor(Math.log10(most / LARGEST_STEP));
  const steps = [power, power + 1].flatMap((exponent) => [1, 2, 5].map((digit) => Number(`${digit}e${exponent}`)));
  return steps.find((step) => most / step <= LARGEST_STEP);
}
