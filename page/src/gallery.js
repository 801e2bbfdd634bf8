// The engine of a page without a server: the bundled pairs, whose results lie beside the page as
// files (scripts/static_page.py). local.js extends it by a network that runs in the browser.
import { Refused } from "./refused.js";
import { readTensors } from "./tensors.js";

const USUAL = { keep_holes: false, any_aspect: false, sensor: "unknown", unit: "auto", mode: "auto", shift: "check", model: "" };
const HERE = "For files and options of your own: pip install 'ducos[serve]', then ducos serve --open.";
const DEGREES = 60; // field of view of the stored clouds and meshes

export class Engine {
  constructor() {
    this.from = new WeakMap(); // File -> pair
  }

  async fetched(address) {
    const answer = await fetch(address).catch(() => null);
    if (!answer?.ok) throw new Refused("unreachable", `The page's file ${address} is not there.`);
    return answer;
  }

  async limits() {
    try {
      this.about ??= await (await this.fetched("gallery.json")).json();
    } catch {
      return null;
    }
    return { ready: true, version: this.about.version, body: Infinity, keep: 0 };
  }

  privacy() {
    return "Nothing is sent anywhere: this page brings its pairs along.";
  }

  async models() {
    return [{ name: this.about.model, default: true }];
  }

  async examples() {
    return this.about.pairs;
  }

  async recordings() {
    return {};
  }

  async frame() {
    throw new Refused("elsewhere", `This page has no recordings. ${HERE}`);
  }

  async file(address, name) {
    const file = new File([await (await this.fetched(address)).blob()], name);
    this.from.set(file, this.about.pairs.find((pair) => pair.rgb === address || pair.depth === address));
    return file;
  }

  pairOf(files, options) {
    const pair = this.from.get(files.rgb);
    const more = Object.entries(files).some(([kind, file]) => file && !["rgb", "depth"].includes(kind));
    if (!pair || pair !== this.from.get(files.depth) || more) throw new Refused("elsewhere", `This page shows its own pairs only. ${HERE}`);
    const stored = { ...USUAL, ...pair.options };
    if (Object.entries(options).some(([name, value]) => value !== stored[name])) throw new Refused("elsewhere", `This page shows results with its own options only. ${HERE}`);
    return pair;
  }

  async examine(files, { unit }) {
    return (await this.fetched(`gallery/${this.pairOf(files, { unit }).name}/report.json`)).json();
  }

  async upscale(files, options, heard) {
    const pair = this.pairOf(files, options);
    heard({ state: "running", ahead: 0, share: 0 });
    return this.restore(pair.name);
  }

  async restore(job) {
    const names = ["result.safetensors", "result.view.safetensors"];
    const [maps, view] = await Promise.all(names.map(async (name) => readTensors(await (await this.fetched(`gallery/${job}/${name}`)).arrayBuffer())));
    return { job, facts: maps.facts, maps, view };
  }

  async download(job, format, degrees) {
    if (degrees !== null && degrees !== DEGREES) throw new Refused("elsewhere", `Stored with a field of view of ${DEGREES}° only. ${HERE}`);
    return (await this.fetched(`gallery/${job}/result.${this.about.suffixes[format]}`)).blob();
  }
}
