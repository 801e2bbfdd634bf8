// A recording: frames under a time slider; those seen last are kept.
import { $ } from "./dom.js";

const KEPT = 8;

export class Player {
  constructor(work) {
    this.work = work; // async (frame) -> scene
    this.frames = [];
    this.scenes = new Map();
    this.playing = false;
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("time").addEventListener("input", () => this.label());
    $("time").addEventListener("change", () => this.go(Number($("time").value)));
  }

  open(frames, first = 0) {
    this.frames = frames;
    this.scenes.clear();
    $("player").hidden = frames.length === 0;
    $("time").max = Math.max(0, frames.length - 1);
    if (frames.length) return this.go(Math.min(first, frames.length - 1));
  }

  label() {
    const number = Number($("time").value);
    $("frame").textContent = `${number + 1} / ${this.frames.length}`;
    $("time").setAttribute("aria-valuetext", `frame ${number + 1} of ${this.frames.length}`);
  }

  async go(number) {
    $("time").value = number;
    this.number = number;
    this.label();
    const known = this.scenes.get(number);
    const scene = await this.work(this.frames[number], number, known);
    if (!scene) return false;
    this.scenes.delete(number);
    this.scenes.set(number, scene);
    if (this.scenes.size > KEPT) this.scenes.delete(this.scenes.keys().next().value);
    return true;
  }

  async play(on) {
    this.playing = on;
    $("play").setAttribute("aria-pressed", String(on));
    $("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    while (this.playing) {
      const next = (Number($("time").value) + 1) % this.frames.length;
      const [went] = await Promise.all([this.go(next), new Promise((later) => setTimeout(later, 120))]);
      if (!went) this.play(false);
    }
  }
}
