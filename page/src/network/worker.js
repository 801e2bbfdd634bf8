// The thread that computes, so that the page stays awake. A message { id, ask, files, options } is
// answered by any number of { id, heard } and one { id, made } or { id, problem }.
import * as ort from "onnxruntime-web/wasm";
import { Refused } from "../refused.js";
import { findings } from "./findings.js";
import { Network, PIECES } from "./network.js";
import { readColours, readNumbers } from "./pair.js";
import { checkSizes, superResolve } from "./upscale.js";
import { checkDense, measurementsOf } from "./units.js";

const MOST_THREADS = 4;
const LARGEST = 12; // megapixels of a photo: beyond them the memory of a page does not suffice

// Threads share memory, which a browser allows to pages with two headers only: docs/serve.md.
ort.env.wasm.numThreads = self.crossOriginIsolated ? Math.min(MOST_THREADS, navigator.hardwareConcurrency) : 1;
ort.env.wasm.wasmPaths = { mjs: new URL("ort-wasm-simd-threaded.mjs", self.location).href, wasm: new URL("ort-wasm-simd-threaded.wasm", self.location).href };

const fetched = async (name) => {
  const answer = await fetch(name).catch(() => null);
  if (!answer?.ok) throw new Refused("unreachable", `The page's file ${name} is not there.`);
  return answer;
};

async function openNetwork() {
  const about = await (await fetched("network.json")).json();
  const bytes = async (name) => new Uint8Array(await (await fetched(name)).arrayBuffer());
  const [weights, ...graphs] = await Promise.all([`${about.stem}.safetensors`, ...PIECES.map((piece) => `${about.stem}.${piece}.onnx`)].map(bytes));
  const settings = {
    externalData: [{ path: `${about.stem}.safetensors`, data: weights }],
    // An arena keeps all that it ever held, and more: of a large image, twice the need.
    enableCpuMemArena: false, enableMemPattern: false,
  };
  const sessions = {};
  for (const [k, piece] of PIECES.entries()) sessions[piece] = await ort.InferenceSession.create(graphs[k], settings);
  return new Network((piece, inputs) => run(sessions[piece], inputs), about);
}

async function run(session, inputs) {
  const tensor = ([shape, data]) => new ort.Tensor(data instanceof Float32Array ? "float32" : "int64", data, shape);
  const outputs = await session.run(Object.fromEntries(session.inputNames.map((name) => [name, tensor(inputs[name])])));
  return session.outputNames.map((name) => ({ data: outputs[name].data, dims: outputs[name].dims }));
}

let network = null; // a promise, once it is asked for

async function read(files, options) {
  const image = await readColours(files.rgb);
  const pixels = image[0].h * image[0].w;
  if (pixels > LARGEST * 1e6) throw new Refused("input", `The photo has ${(pixels / 1e6).toFixed(0)} megapixels; this page takes ${LARGEST}. Make it smaller, or: pip install ducos.`);
  const mask = files.mask ? await readNumbers(files.mask, "The mask") : null;
  return { image, low: measurementsOf(await readNumbers(files.depth, "The depth map"), { ...options, mask }) };
}

const ANSWERS = {
  async examine({ files, options }) {
    const { image, low } = await read(files, options);
    return findings(image[0], low);
  },
  async upscale({ files, options }, heard) {
    const { image, low } = await read(files, options);
    checkSizes(image[0], low.depth, options.any_aspect);
    checkDense(low);
    heard({ state: "loading" });
    network ??= openNetwork();
    network.catch(() => (network = null));
    const opened = await network;
    return superResolve(opened, image, low, options, (share) => heard({ state: "running", share }));
  },
};

self.addEventListener("message", async ({ data: { id, ask, ...given } }) => {
  try {
    const made = await ANSWERS[ask](given, (heard) => self.postMessage({ id, heard }));
    self.postMessage({ id, made });
  } catch (problem) {
    const code = problem.code ?? "unknown";
    const memory = /memory|bad_alloc|allocation/i.test(problem.message);
    self.postMessage({ id, problem: { code, sentence: memory ? "The memory of this page does not suffice; take a smaller photo, or: pip install ducos." : problem.message } });
  }
});
