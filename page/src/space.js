// The scene in space: points or a mesh, before and after side by side, distances.
import {
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  Line,
  LineBasicMaterial,
  Mesh,
  PerspectiveCamera,
  Points,
  Scene as World,
  ShaderMaterial,
  Vector3,
  WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { metres } from "./dom.js";

const MOST_POINTS = 1_200_000;
const STEEPEST = Math.tan((80 * Math.PI) / 180); // as in ducos.cameras
const FLYING = [1, 0.1, 0.75];

// A point is as large as its pixel was, so that surfaces look closed.
const POINT = {
  vertexShader: `
    attribute vec3 color; uniform float focal; uniform float pixels; varying vec3 shade;
    void main() {
      shade = color;
      vec4 seen = modelViewMatrix * vec4(position, 1.0);
      gl_Position = projectionMatrix * seen;
      gl_PointSize = clamp(1.35 * pixels * abs(position.z) / (focal * max(0.01, -seen.z)), 1.0, 24.0);
    }`,
  fragmentShader: "varying vec3 shade; void main() { gl_FragColor = vec4(shade, 1.0); }",
};

export class SpaceView {
  constructor({ canvas, distance, failed, changed }) {
    Object.assign(this, { canvas, distance, changed });
    this.state = { shape: "points", both: false, flying: false, degrees: 60 };
    this.measuring = false;
    this.picked = [];
    try {
      this.renderer = new WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
    } catch {
      failed("This browser shows no 3D. Everything else works.");
      return;
    }
    this.camera = new PerspectiveCamera(50, 1, 0.01, 1000);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = false;
    this.controls.addEventListener("change", () => this.draw());
    this.controls.addEventListener("end", () => changed());
    this.worlds = { before: new World(), after: new World() };
    this.listen();
    new ResizeObserver(() => this.fit()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(scene, keepView = false) {
    this.scene = scene;
    this.picked = [];
    this.distance.hidden = true;
    if (!scene.camera.assumed) this.state.degrees = null;
    this.rebuild();
    if (!keepView) this.reset();
    this.fit();
  }

  set(changes) {
    Object.assign(this.state, changes);
    if (!this.scene || !this.renderer) return;
    if ("shape" in changes || "flying" in changes || "degrees" in changes) this.rebuild();
    this.draw();
  }

  get focal() {
    const { camera, w } = this.scene;
    if (this.state.degrees === null) return { ...camera };
    const f = (0.5 * w) / Math.tan((this.state.degrees * Math.PI) / 360);
    return { fx: f, fy: f, cx: camera.cx, cy: camera.cy };
  }

  rebuild() {
    if (!this.renderer || !this.scene.metric) return;
    const { depth, valid, flying, bicubic, bicubicFlying } = this.scene;
    this.fill("after", depth, valid, flying);
    this.fill("before", bicubic, null, bicubicFlying);
    this.mark();
  }

  fill(name, depth, valid, flying) {
    const world = this.worlds[name];
    for (const child of [...world.children]) {
      child.geometry.dispose();
      child.material.dispose();
      world.remove(child);
    }
    const { w, h, image, rays } = this.scene;
    const { fx, fy, cx, cy } = this.focal;
    const stride = Math.ceil(Math.sqrt((w * h) / MOST_POINTS));
    const [columns, rows] = [Math.ceil(w / stride), Math.ceil(h / stride)];
    const place = new Float32Array(3 * columns * rows);
    const colour = new Float32Array(3 * columns * rows);
    const index = new Int32Array(columns * rows).fill(-1);
    let count = 0;
    for (let v = 0; v < rows; v++) {
      for (let u = 0; u < columns; u++) {
        const i = v * stride * w + u * stride;
        const z = depth[i];
        if ((valid && !valid[i]) || !(z > 0) || (flying[i] && !this.state.flying)) continue;
        const x = rays && this.state.degrees === null ? rays[2 * i] : (u * stride - cx) / fx;
        const y = rays && this.state.degrees === null ? rays[2 * i + 1] : (v * stride - cy) / fy;
        place.set([x * z, -y * z, -z], 3 * count);
        if (flying[i]) colour.set(FLYING, 3 * count);
        else for (let k = 0; k < 3; k++) colour[3 * count + k] = image[3 * i + k] / 255;
        index[v * columns + u] = count++;
      }
    }
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(place.slice(0, 3 * count), 3));
    geometry.setAttribute("color", new BufferAttribute(colour.slice(0, 3 * count), 3));
    geometry.computeBoundingSphere();
    if (this.state.shape === "mesh") {
      geometry.setIndex(triangles(index, place, columns, rows, (STEEPEST * stride) / Math.sqrt(fx * fy)));
      // Colours are shown as they are: no light falls on a photograph.
      world.add(new Mesh(geometry, new ShaderMaterial({ ...POINT, side: DoubleSide, uniforms: this.uniforms(fx / stride) })));
    } else {
      world.add(new Points(geometry, new ShaderMaterial({ ...POINT, uniforms: this.uniforms(fx / stride) })));
    }
  }

  uniforms(focal) {
    return { focal: { value: focal }, pixels: { value: 500 } };
  }

  reset() {
    if (!this.renderer || !this.scene) return;
    const near = this.scene.depth.filter((z, i) => i % 97 === 0 && this.scene.valid[i]).sort();
    const middle = near[near.length >> 1] || 1;
    this.controls.target.set(0, 0, -middle);
    this.camera.position.set(0.22 * middle, 0.16 * middle, 0.12 * middle);
    this.camera.near = middle / 200;
    this.camera.far = middle * 200;
    const { fy } = this.focal;
    this.camera.fov = (2 * Math.atan((0.5 * this.scene.h) / fy) * 180) / Math.PI;
    this.controls.update();
    this.fit();
  }

  get pose() {
    if (!this.renderer) return [];
    const round = (value) => Number(value.toFixed(4));
    return [...this.camera.position.toArray(), ...this.controls.target.toArray()].map(round);
  }

  set pose(values) {
    if (!this.renderer || values.length !== 6 || values.some((value) => !Number.isFinite(value))) return;
    this.camera.position.fromArray(values.slice(0, 3));
    this.controls.target.fromArray(values.slice(3));
    this.controls.update();
    this.draw();
  }

  fit() {
    if (!this.renderer || !this.scene) return;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    if (!w || !h) return;
    this.renderer.setPixelRatio(Math.min(2, window.devicePixelRatio || 1));
    this.renderer.setSize(w, h, false);
    this.draw();
  }

  draw() {
    if (!this.renderer || !this.scene) return;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const panes = this.state.both ? [["before", 0, w / 2], ["after", w / 2, w / 2]] : [["after", 0, w]];
    this.renderer.setScissorTest(true);
    for (const [name, from, width] of panes) {
      this.renderer.setViewport(from, 0, width, h);
      this.renderer.setScissor(from, 0, width, h);
      this.renderer.setClearColor(0x0d1119);
      this.camera.aspect = width / h;
      this.camera.updateProjectionMatrix();
      const pixels = (h * this.renderer.getPixelRatio()) / (2 * Math.tan((this.camera.fov * Math.PI) / 360));
      for (const child of this.worlds[name].children) {
        if (child.material.uniforms?.pixels) child.material.uniforms.pixels.value = pixels;
      }
      this.renderer.render(this.worlds[name], this.camera);
    }
  }

  // The nearest point to the eye of those under the pointer.
  pick(x, y) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const half = this.state.both ? w / 2 : w;
    const name = this.state.both && x < half ? "before" : "after";
    const local = this.state.both && x >= half ? x - half : x;
    this.camera.aspect = half / h;
    this.camera.updateProjectionMatrix();
    this.camera.updateMatrixWorld();
    const place = this.worlds[name].children[0]?.geometry.getAttribute("position");
    if (!place) return null;
    const point = new Vector3();
    let best = null;
    for (let i = 0; i < place.count; i++) {
      point.fromBufferAttribute(place, i);
      const distance = point.distanceTo(this.camera.position);
      point.project(this.camera);
      if (point.z < -1 || point.z > 1) continue;
      const off = Math.hypot(((point.x + 1) / 2) * half - local, ((1 - point.y) / 2) * h - y);
      if (off > 6) continue;
      const score = distance * (1 + off / 60);
      if (!best || score < best.score) best = { score, i };
    }
    return best && new Vector3().fromBufferAttribute(place, best.i);
  }

  measureAt(x, y) {
    const point = this.pick(x, y);
    this.distance.hidden = false;
    if (!point) {
      this.distance.textContent = "nothing there: click on the scene";
      return;
    }
    if (this.picked.length === 2) this.picked = [];
    this.picked.push(point);
    this.distance.textContent =
      this.picked.length === 1
        ? "now click the second point"
        : `${metres(this.picked[0].distanceTo(this.picked[1]))} m`;
    this.mark();
    this.draw();
  }

  mark() {
    for (const world of Object.values(this.worlds)) {
      for (const child of world.children.filter((each) => each.name === "mark")) world.remove(child);
      if (!this.picked.length) continue;
      const ends = this.picked.length === 2 ? this.picked : [this.picked[0], this.picked[0]];
      const line = new Line(
        new BufferGeometry().setFromPoints(ends),
        new LineBasicMaterial({ color: 0xffe14d, depthTest: false, linewidth: 2 }),
      );
      const dots = new Points(
        new BufferGeometry().setFromPoints(ends),
        new ShaderMaterial({
          vertexShader: "void main() { gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); gl_PointSize = 11.0; }",
          fragmentShader: "void main() { if (length(gl_PointCoord - 0.5) > 0.5) discard; gl_FragColor = vec4(1.0, 0.88, 0.3, 1.0); }",
          depthTest: false,
        }),
      );
      for (const each of [line, dots]) {
        each.name = "mark";
        each.renderOrder = 1;
        world.add(each);
      }
    }
  }

  listen() {
    const { canvas } = this;
    let down = null;
    canvas.addEventListener("pointerdown", (event) => (down = [event.clientX, event.clientY]));
    canvas.addEventListener("pointerup", (event) => {
      const still = down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 5;
      if (!this.measuring || !still) return;
      const box = canvas.getBoundingClientRect();
      this.measureAt(event.clientX - box.left, event.clientY - box.top);
    });
    canvas.addEventListener("keydown", (event) => {
      const turns = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (event.key in turns) this.turn(...turns[event.key]);
      else if (event.key === "+" || event.key === "=") this.near(0.9);
      else if (event.key === "-") this.near(1.1);
      else if (event.key === "Enter" && this.measuring) this.measureAt(canvas.clientWidth / (this.state.both ? 4 : 2), canvas.clientHeight / 2);
      else return;
      event.preventDefault();
      this.changed();
    });
  }

  turn(right, up) {
    const off = this.camera.position.clone().sub(this.controls.target);
    off.applyAxisAngle(new Vector3(0, 1, 0), 0.08 * right);
    off.applyAxisAngle(new Vector3().crossVectors(off, this.camera.up).normalize(), 0.06 * up);
    this.camera.position.copy(this.controls.target).add(off);
    this.controls.update();
    this.draw();
  }

  near(factor) {
    const { target } = this.controls;
    this.camera.position.sub(target).multiplyScalar(factor).add(target);
    this.controls.update();
    this.draw();
  }
}

// Two triangles for each square of neighbours; none spans a depth jump.
function triangles(index, place, columns, rows, tolerance) {
  const corners = [];
  const push = (a, b, c) => {
    if (a < 0 || b < 0 || c < 0) return;
    const [za, zb, zc] = [-place[3 * a + 2], -place[3 * b + 2], -place[3 * c + 2]];
    const [least, most] = [Math.min(za, zb, zc), Math.max(za, zb, zc)];
    if (most - least <= Math.SQRT2 * tolerance * least) corners.push(a, b, c);
  };
  for (let v = 0; v + 1 < rows; v++) {
    for (let u = 0; u + 1 < columns; u++) {
      const i = v * columns + u;
      push(index[i], index[i + columns], index[i + 1]);
      push(index[i + 1], index[i + columns], index[i + columns + 1]);
    }
  }
  return corners;
}
