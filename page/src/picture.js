// The map under a slider: input, bicubic or photo on the left, the result on the right.
import { colourised, onCanvas } from "./palette.js";
import { metres } from "./dom.js";

const SOURCE_COLOURS = [[48, 48, 48], [47, 158, 98], [240, 180, 41], [214, 69, 107]];

export class PictureView {
  constructor({ canvas, split, loupe, probe, changed, drawn }) {
    Object.assign(this, { canvas, split, loupe, probe, changed, drawn });
    this.pen = canvas.getContext("2d");
    this.state = { left: "input", overlay: "none", split: 0.5, lens: true, palette: "turbo", range: [0, 1], line: null };
    this.mode = "look";
    this.pointer = null;
    this.pictures = new Map();
    this.listen();
    new ResizeObserver(() => this.fit()).observe(canvas.parentElement);
  }

  show(scene) {
    this.scene = scene;
    this.blown = scene.blownUp();
    this.pictures.clear();
    this.fit();
  }

  set(changes) {
    Object.assign(this.state, changes);
    if ("palette" in changes || "range" in changes) this.pictures.clear();
    this.draw();
  }

  fit() {
    if (!this.scene) return;
    const width = this.canvas.parentElement.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round((width * ratio * this.scene.h) / this.scene.w);
    this.canvas.style.aspectRatio = `${this.scene.w} / ${this.scene.h}`;
    this.draw();
  }

  // A canvas of one layer, made once per palette and range.
  layer(name) {
    if (!this.pictures.has(name)) this.pictures.set(name, this.made(name));
    return this.pictures.get(name);
  }

  made(name) {
    const { w, h, lowW, lowH, depth, valid, low, lowValid, bicubic, sigma, source, image } = this.scene;
    const { range, palette } = this.state;
    if (name === "input") return colourised(low, lowValid, lowW, lowH, range, palette);
    if (name === "bicubic") return colourised(bicubic, null, w, h, range, palette);
    if (name === "result") return colourised(depth, valid, w, h, range, palette);
    if (name === "sigma") {
      const shares = sigma ? sigma.map((s, i) => s / Math.max(depth[i], 1e-6)) : new Float32Array(w * h);
      return colourised(shares, valid, w, h, [0, 0.05], "inferno");
    }
    const picture = new ImageData(w, h);
    for (let i = 0; i < w * h; i++) {
      const colour = name === "photo" ? image.subarray(3 * i, 3 * i + 3) : SOURCE_COLOURS[source[i]];
      picture.data.set(colour, 4 * i);
      picture.data[4 * i + 3] = 255;
    }
    return onCanvas(picture);
  }

  get right() {
    return this.state.overlay === "none" ? "result" : this.state.overlay;
  }

  draw() {
    if (!this.scene) return;
    const { canvas, pen, state } = this;
    const cut = Math.round(state.split * canvas.width);
    const paint = (name, from, to) => {
      pen.save();
      pen.beginPath();
      pen.rect(from, 0, to - from, canvas.height);
      pen.clip();
      const layer = this.layer(name);
      pen.imageSmoothingEnabled = name === "photo" || (name !== "input" && layer.width > canvas.width);
      pen.drawImage(layer, 0, 0, canvas.width, canvas.height);
      pen.restore();
    };
    paint(state.left, 0, cut);
    paint(this.right, cut, canvas.width);
    this.drawLine();
    this.drawProbe();
    this.split.style.left = `${100 * state.split}%`;
    this.split.setAttribute("aria-valuenow", Math.round(100 * state.split));
    this.drawLoupe();
  }

  drawLine() {
    const { line } = this.state;
    if (!line) return;
    const fx = this.canvas.width / this.scene.w;
    const { pen } = this;
    for (const [width, colour] of [[5, "#000a"], [2.5, "#fff"]]) {
      pen.lineWidth = width * (window.devicePixelRatio || 1);
      pen.strokeStyle = colour;
      pen.beginPath();
      pen.moveTo((line.x0 + 0.5) * fx, (line.y0 + 0.5) * fx);
      pen.lineTo((line.x1 + 0.5) * fx, (line.y1 + 0.5) * fx);
      pen.stroke();
    }
    for (const [x, y] of [[line.x0, line.y0], [line.x1, line.y1]]) {
      pen.fillStyle = "#fff";
      pen.beginPath();
      pen.arc((x + 0.5) * fx, (y + 0.5) * fx, 5 * (window.devicePixelRatio || 1), 0, 7);
      pen.fill();
      pen.stroke();
    }
  }

  drawProbe() {
    if (!this.pointer || !this.byKeys) return;
    const fx = this.canvas.width / this.scene.w;
    const [x, y] = [(this.pointer.x + 0.5) * fx, (this.pointer.y + 0.5) * fx];
    this.pen.strokeStyle = "#fff";
    this.pen.lineWidth = 2;
    this.pen.strokeRect(x - 9, y - 9, 18, 18);
  }

  // Nearest pixels around the pointer, with the same cut between left and right.
  drawLoupe() {
    const { loupe, pointer, scene, state } = this;
    loupe.hidden = !(state.lens && pointer && this.mode === "look");
    if (loupe.hidden) return;
    const pen = loupe.getContext("2d");
    const across = Math.max(16, Math.round(scene.w / 18));
    const zoom = loupe.width / across;
    const [left, top] = [pointer.x + 0.5 - across / 2, pointer.y + 0.5 - across / 2];
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = "#0d1119";
    pen.fillRect(0, 0, loupe.width, loupe.height);
    const cut = (state.split * scene.w - left) * zoom;
    for (const [name, from, to] of [[state.left, 0, cut], [this.right, cut, loupe.width]]) {
      const layer = this.layer(name);
      const [sx, sy] = [layer.width / scene.w, layer.height / scene.h];
      pen.save();
      pen.beginPath();
      pen.rect(from, 0, to - from, loupe.height);
      pen.clip();
      pen.drawImage(layer, left * sx, top * sy, across * sx, across * sy, 0, 0, loupe.width, loupe.height);
      pen.restore();
    }
    pen.strokeStyle = "#fff";
    pen.strokeRect(loupe.width / 2 - zoom / 2, loupe.height / 2 - zoom / 2, zoom, zoom);
    const box = this.canvas.getBoundingClientRect();
    const scale = box.width / scene.w;
    const size = loupe.offsetWidth;
    let x = pointer.x * scale + 26;
    let y = pointer.y * scale - size - 18;
    if (x + size > box.width) x = pointer.x * scale - size - 26;
    if (y < 4) y = pointer.y * scale + 26;
    loupe.style.left = `${Math.max(2, Math.min(x, box.width - size - 2))}px`;
    loupe.style.top = `${Math.max(2, Math.min(y, box.height - size - 2))}px`;
  }

  tell() {
    const { pointer, scene } = this;
    if (!pointer) return;
    const here = scene.at(pointer.x, pointer.y);
    const unit = scene.metric ? " m" : "";
    const value = (number) => (number === null ? "hole" : `${metres(number)}${unit}`);
    const doubt = here.sigma === null ? "" : ` ± ${metres(here.sigma)}`;
    this.probe.replaceChildren(
      `x ${pointer.x}, y ${pointer.y}: `,
      Object.assign(document.createElement("b"), { textContent: `${value(here.depth)}${doubt}` }),
      ` (${here.source}), input ${value(here.input)}, bicubic ${value(here.bicubic)}`,
    );
  }

  pixelAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const clamp = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value)));
    return {
      x: clamp(((event.clientX - box.left) / box.width) * this.scene.w, this.scene.w),
      y: clamp(((event.clientY - box.top) / box.height) * this.scene.h, this.scene.h),
    };
  }

  point(pixel, byKeys = false) {
    this.pointer = pixel;
    this.byKeys = byKeys;
    this.tell();
    this.draw();
  }

  listen() {
    const { canvas, split } = this;
    let start = null;
    canvas.addEventListener("pointermove", (event) => {
      if (!this.scene) return;
      const pixel = this.pixelAt(event);
      if (start) this.set({ line: { x0: start.x, y0: start.y, x1: pixel.x, y1: pixel.y } });
      if (start) this.drawn(this.state.line);
      this.point(pixel);
    });
    canvas.parentElement.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (this.mode !== "line") return;
      canvas.setPointerCapture(event.pointerId);
      start = this.pixelAt(event);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        if (start) this.changed();
        start = null;
      });
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
    split.addEventListener("pointerdown", (event) => split.setPointerCapture(event.pointerId));
    split.addEventListener("pointermove", (event) => {
      if (!split.hasPointerCapture(event.pointerId)) {
        if (this.scene) this.point(this.pixelAt(event)); // the handle hides no metres
        return;
      }
      const box = canvas.getBoundingClientRect();
      this.set({ split: Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) });
    });
    split.addEventListener("pointerup", () => this.changed());
    split.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      this.set({ split: Math.max(0, Math.min(1, this.state.split + steps[event.key])) });
      this.changed();
    });
  }

  // Arrow keys move the probe; Enter in line mode sets one end of the line, then the other.
  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!this.scene) return;
    const from = this.pointer ?? { x: this.scene.w >> 1, y: this.scene.h >> 1 };
    if (event.key in moves) {
      event.preventDefault();
      const step = event.shiftKey ? 10 : 1;
      const [dx, dy] = moves[event.key];
      const x = Math.max(0, Math.min(this.scene.w - 1, from.x + dx * step));
      const y = Math.max(0, Math.min(this.scene.h - 1, from.y + dy * step));
      this.point({ x, y }, true);
    } else if (event.key === "Enter" && this.mode === "line") {
      const line = this.anchor
        ? { x0: this.anchor.x, y0: this.anchor.y, x1: from.x, y1: from.y }
        : { x0: from.x, y0: from.y, x1: from.x, y1: from.y };
      this.anchor = this.anchor ? null : from;
      this.set({ line });
      this.drawn(line);
      this.changed();
    }
  }

  setMode(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("drawing", mode === "line");
    this.draw();
  }
}
