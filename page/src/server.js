// The engine that asks the server which sent the page.
import { Refused } from "./refused.js";
import { readTensors } from "./tensors.js";

// The ending of a camera's file says how it is read; names of all other files stay here.
const NAMED = new Set(["rgb_intrinsics", "depth_intrinsics", "extrinsics"]);

export class Engine {
  constructor() {
    // A token comes once, in the address; it is taken out of it so that links do not carry it.
    const hash = new URLSearchParams(location.hash.slice(1));
    if (hash.has("token")) {
      sessionStorage.setItem("token", hash.get("token"));
      hash.delete("token");
      history.replaceState(null, "", `#${hash}`);
    }
    this.token = sessionStorage.getItem("token");
  }

  async call(path, options = {}) {
    const headers = { Accept: "application/json", ...options.headers };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    let answer;
    try {
      answer = await fetch(path, { ...options, headers });
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      throw new Refused("unreachable", "The server does not answer.");
    }
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    throw new Refused(said.code ?? "unknown", said.sentence ?? `The answer was ${answer.status}.`);
  }

  async json(path, options) {
    return (await this.call(path, options)).json();
  }

  async limits() {
    try {
      const health = await fetch("healthz").then((answer) => answer.json());
      return { ...health.limits, ready: health.ready, version: health.version };
    } catch {
      return null;
    }
  }

  async models() {
    return (await this.json("v1/models")).models;
  }

  async examples() {
    return (await this.json("v1/examples")).pairs;
  }

  async recordings() {
    return (await this.json("v1/recordings")).recordings;
  }

  async file(path, name) {
    return new File([await (await this.call(path)).blob()], name);
  }

  privacy(limits) {
    return `Your files go to this server only. They are deleted after ${Math.round(limits.keep / 60) || 1} min.`;
  }

  // Files of a frame by the names that `upscale` takes.
  async frame(recording, number) {
    const there = await this.json(`v1/recordings/${encodeURIComponent(recording)}/${number}`);
    const loads = Object.entries(there.files).map(async ([kind, place]) => [kind, await this.file(place.slice(1), `${recording} ${number + 1}`)]);
    return Object.fromEntries(await Promise.all(loads));
  }

  form(files, options) {
    const form = new FormData();
    for (const [name, file] of Object.entries(files)) if (file) form.append(name, file, NAMED.has(name) ? file.name : name);
    form.append("options", JSON.stringify(options));
    return form;
  }

  examine(files, options, signal) {
    return this.json("v1/doctor", { method: "POST", body: this.form(files, options), signal });
  }

  async upscale(files, options, heard, signal) {
    const body = this.form(files, options);
    let job = await this.json("v1/jobs", { method: "POST", body, signal });
    const cancel = () => this.call(job.links.self, { method: "DELETE" }).catch(() => {});
    signal?.addEventListener("abort", cancel);
    try {
      heard(job);
      for await (const state of this.follow(job.links.events, signal)) heard((job = state));
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
    if (job.problem) throw new Refused(job.problem.code, job.problem.sentence);
    if (job.state !== "done") throw new Refused("unreachable", "The server stopped in the middle.");
    return this.fetched(job);
  }

  async restore(id) {
    const job = await this.json(`v1/jobs/${encodeURIComponent(id)}`);
    return this.fetched(job);
  }

  async fetched(job) {
    const bytes = (name) => this.call(job.links.results[name]).then((answer) => answer.arrayBuffer());
    const [maps, view] = await Promise.all([bytes("maps"), bytes("view")]);
    return { job: job.id, facts: job.facts, maps: readTensors(maps), view: readTensors(view) };
  }

  // Server-sent events by fetch, since EventSource cannot show a token.
  async *follow(path, signal) {
    const answer = await this.call(path, { headers: { Accept: "text/event-stream" }, signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (true) {
      let piece;
      try {
        piece = await reader.read();
      } catch (problem) {
        if (problem.name === "AbortError") throw problem;
        throw new Refused("unreachable", "The server does not answer.");
      }
      if (piece.done) return;
      text += piece.value;
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const data = event.split("\n").find((line) => line.startsWith("data:"));
        if (data) yield JSON.parse(data.slice(5));
      }
    }
  }

  async download(job, format, degrees) {
    const asks = degrees ? `?field_of_view=${degrees}` : "";
    return (await this.call(`v1/jobs/${job}/results/${format}${asks}`)).blob();
  }
}
