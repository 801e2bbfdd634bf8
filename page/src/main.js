// The page: files in, findings, options, the work, and views of what came out.
import { $, element, metres, segmented, toggle } from "./dom.js";
import { createEngine } from "./engine.js";
import { framesOf, showMeasurements, showThumb, sorted } from "./files.js";
import { forPage, showFindings, showSentence } from "./findings.js";
import { readLink, writeLink } from "./link.js";
import { drawRamp, loadPalettes, percentiles, scaleBetween } from "./palette.js";
import { PictureView } from "./picture.js";
import { Player } from "./player.js";
import { drawProfile } from "./profile.js";
import { Scene } from "./scene.js";
import { SpaceView } from "./space.js";

const FORMATS = [
  ["png", "PNG", "16 bit, mm"], ["exr", "EXR", "metres, all maps"], ["npz", "NPZ", "NumPy, all maps"],
  ["npy", "NPY", "NumPy, metres"], ["tiff", "TIFF", "metres"], ["pfm", "PFM", "metres"], ["h5", "HDF5", "all maps"],
  ["ply", "PLY", "point cloud"], ["glb", "GLB", "mesh"], ["preview", "Picture", "to look at"],
];
const SUFFIX = { tiff: "tif", preview: "preview.png" };

const engine = createEngine();
const files = { rgb: null, depth: null };
let beside = {}; // what a frame of a recording brings along: mask, confidence, cameras
let origin = {}; // of the files, for the link: { example } or { recording, frame }
let limits = null;
let scene = null;
let slider = scaleBetween(0, 1); // of the colour range
let working = null; // AbortController
let examining = null;

// ---------------------------------------------------------------- views

const picture = new PictureView({
  canvas: $("map"), split: $("split"), loupe: $("loupe"), probe: $("probe"),
  changed: () => remember(),
  drawn: (line) => drawProfile($("profile"), scene, line),
});
const space = new SpaceView({
  canvas: $("space"), distance: $("distance"),
  failed: (words) => { $("nospace").textContent = words; $("nospace").hidden = false; },
  changed: () => remember(),
});
const press = {
  left: segmented($("left"), (left) => { picture.set({ left }); remember(); }),
  overlay: segmented($("overlay"), (overlay) => { picture.set({ overlay }); legend(overlay); remember(); }),
  shape: segmented($("shape"), (shape) => { space.set({ shape }); remember(); }),
  lens: toggle($("lens"), (lens) => picture.set({ lens })),
  line: toggle($("line"), (on) => picture.setMode(on ? "line" : "look")),
  both: toggle($("both"), (both) => { space.set({ both }); sides(both); remember(); }),
  flying: toggle($("flying"), (flying) => { space.set({ flying }); remember(); }),
  measure: toggle($("measure"), (on) => {
    space.measuring = on;
    $("space").classList.toggle("measuring", on);
    $("distance").hidden = !on;
    $("distance").textContent = "click two points";
  }),
};
$("reset").addEventListener("click", () => { space.reset(); remember(); });
$("angle").addEventListener("input", () => {
  $("degrees").textContent = `${$("angle").value}°`;
  space.set({ degrees: Number($("angle").value) });
});
$("palette").addEventListener("change", () => { picture.set({ palette: $("palette").value }); setRange(); remember(); });
for (const id of ["low", "high"]) {
  $(id).addEventListener("input", () => setRange());
  $(id).addEventListener("change", () => remember());
}
new ResizeObserver(() => scene && drawProfile($("profile"), scene, picture.state.line)).observe($("profile"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => scene && drawProfile($("profile"), scene, picture.state.line));

function sides(both) {
  $("before").hidden = $("after").hidden = !both;
}

function legend(overlay) {
  $("sources").hidden = overlay !== "source";
  $("doubts").hidden = overlay !== "sigma";
}

function setRange() {
  const [low, high] = [Number($("low").value), Number($("high").value)].sort((a, b) => a - b);
  const range = [slider.value(low / 1000), slider.value(Math.max(high, low + 1) / 1000)];
  picture.set({ range });
  drawRamp($("ramp"), picture.state.palette, slider, range);
  const unit = scene?.metric ? " m" : "";
  $("near").textContent = metres(range[0]) + unit;
  $("far").textContent = metres(range[1]) + unit;
}

function show(made, link = null) {
  const first = scene === null;
  scene = made;
  if (files.depth) showMeasurements($("slot-depth"), scene);
  $("result").hidden = false;
  slider = scaleBetween(...percentiles(scene.depth, scene.valid, 0, 0.995));
  const [from, to] = link?.range ?? percentiles(scene.depth, scene.valid, 0.02, 0.98);
  $("low").value = Math.round(1000 * slider.share(from));
  $("high").value = Math.round(1000 * slider.share(to));
  const line = link?.line ? Object.fromEntries(["x0", "y0", "x1", "y1"].map((name, i) => [name, link.line[i]])) : scene.strongestEdge();
  picture.state.line = line;
  picture.show(scene);
  setRange();
  drawProfile($("profile"), scene, line);
  $("angle").parentElement.hidden = !scene.camera.assumed;
  $("nospace").hidden = scene.metric && Boolean(space.renderer);
  if (!scene.metric) $("nospace").textContent = "These numbers are not distances, so there is no 3D to show.";
  space.state.degrees = scene.camera.assumed ? Number($("angle").value) : null;
  if (space.renderer) space.show(scene, !first);
  flew();
  facts();
  if (link) restoreView(link);
  if (first) $("result").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  remember();
}

function flew() {
  const share = (flying) => (100 * flying.reduce((sum, each) => sum + each, 0)) / flying.length;
  $("flew").textContent = `Flying pixels: bicubic ${share(scene.bicubicFlying).toFixed(1)} %, result ${share(scene.flying).toFixed(1)} %`;
}

function facts() {
  const { facts: f, w, h, lowW, lowH, metric } = scene;
  const unit = metric ? " m" : "";
  const rows = [
    ...f.warnings.map((words) => element("li", { className: "warn" }, forPage(words))),
    ...[
      `${lowW}×${lowH} → ${w}×${h} with ${f.model}, mode ${f.mode}`,
      `Depth ${f.min.toFixed(3)} to ${f.max.toFixed(3)}${unit}`,
      `Agrees with the input to ${f.residual.toFixed(4)}${unit}; noise of the input ${f.noise.toFixed(4)}${unit}`,
      ...f.notes,
    ].map((words) => element("li", {}, words)),
  ];
  $("facts").replaceChildren(...rows);
}

// ---------------------------------------------------------------- the link

function remember() {
  if (!scene) return;
  const { left, overlay, palette, split, range, line } = picture.state;
  writeLink({
    ...origin,
    job: origin.example || origin.recording ? null : scene.job,
    left, overlay, palette,
    split: split.toFixed(3),
    range: range.map((value) => value.toFixed(3)),
    line: line && [line.x0, line.y0, line.x1, line.y1],
    shape: space.state.shape, both: space.state.both, flying: space.state.flying,
    pose: space.pose.length ? space.pose : null,
  });
}

function restoreView(link) {
  const allowed = (name, value) => $(name).querySelector(`[data-value="${CSS.escape(value ?? "")}"]`);
  for (const name of ["left", "overlay", "shape"]) if (allowed(name, link[name])) press[name](link[name]);
  if (link.palette && [...$("palette").options].some((each) => each.value === link.palette)) {
    $("palette").value = link.palette;
    picture.set({ palette: link.palette });
    setRange();
  }
  if (link.split !== null && link.split >= 0 && link.split <= 1) picture.set({ split: link.split });
  if (link.both) press.both(true);
  if (link.flying) press.flying(true);
  if (link.pose) space.pose = link.pose;
}

$("copy").addEventListener("click", async () => {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    $("copied").textContent = "Copied.";
  } catch {
    $("copied").textContent = "Copy it from the address bar.";
  }
});

// ---------------------------------------------------------------- files

async function take(slot, file) {
  if (origin.example || origin.recording) forget();
  files[slot] = file;
  origin = {};
  beside = {};
  player.open([]);
  reveal();
  if (files.rgb && files.depth) {
    const right = await sorted(files.rgb, files.depth);
    Object.assign(files, { rgb: right.rgb, depth: right.depth });
    await Promise.all([showThumb($("slot-rgb"), files.rgb), showThumb($("slot-depth"), files.depth)]);
    await examine(right.exchanged ? "Photo and depth map were exchanged; they are in their places now." : "");
    return;
  }
  await showThumb($(`slot-${slot}`), file);
}

// A pair of the server's leaves with its options: they do not fit somebody's own file.
function forget() {
  Object.assign(files, { rgb: null, depth: null });
  for (const slot of ["rgb", "depth"]) showThumb($(`slot-${slot}`), null);
  $("findings").replaceChildren();
  choose({});
}

function choose(said) {
  const usual = { sensor: "unknown", unit: "auto", mode: "auto", scale: "" };
  for (const [name, value] of Object.entries({ ...usual, ...said })) $("options").elements[name].value = value;
}

// Options come once there is something to choose them for.
function reveal() {
  $("options").hidden = $("act").hidden = !(files.rgb && files.depth);
}

function tooLarge() {
  const total = Object.values(files).reduce((sum, file) => sum + (file?.size ?? 0), 0);
  if (!limits || total <= limits.body * 0.999) return "";
  return `The files have ${(total / 1e6).toFixed(0)} MB together; this server takes ${(limits.body / 1e6).toFixed(0)} MB. Make them smaller.`;
}

let tell = () => {}; // shows once more what was found: advice depends on what is chosen

async function examine(before = "") {
  examining?.abort();
  const mine = (examining = new AbortController());
  tell = () => {};
  $("run").disabled = true;
  const large = tooLarge();
  if (large) return showSentence($("findings"), "error", large);
  showSentence($("findings"), "note", "Looking at the files …");
  try {
    const { unit, scale } = options();
    const report = await engine.examine({ ...files, mask: further().mask }, { unit, ...(scale ? { scale } : {}) }, mine.signal);
    if (mine.signal.aborted) return;
    tell = () => {
      showFindings($("findings"), report, apply, options());
      if (before) $("findings").prepend(element("li", { className: "note" }, element("span", { className: "mark" }, "⇄"), element("span", {}, before)));
    };
    tell();
    $("run").disabled = report.findings.some((finding) => finding.code === "unreadable");
  } catch (problem) {
    if (mine.signal.aborted) return;
    showSentence($("findings"), "error", problem.message);
    if (problem.code === "unreachable") lost(() => examine(before));
  }
}

function apply(changes) {
  for (const [name, value] of Object.entries(changes)) $("options").elements[name].value = value;
  tell();
  run();
}

for (const slot of ["rgb", "depth"]) {
  $(`file-${slot}`).addEventListener("change", (event) => event.target.files[0] && take(slot, event.target.files[0]));
}
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  for (const slot of ["rgb", "depth"]) $(`slot-${slot}`).classList.toggle("over", $(`slot-${slot}`).contains(event.target));
});
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  for (const slot of ["rgb", "depth"]) $(`slot-${slot}`).classList.remove("over");
  const dropped = [...event.dataTransfer.files];
  const recorded = dropped.find((file) => /\.(bag|mcap|db3|mkv|r3d|sens)$/i.test(file.name));
  if (recorded) return showSentence($("findings"), "note", `${recorded.name} is a recording: start the server with it, ducos serve --recording ${recorded.name}`);
  if (dropped.length >= 2) {
    await take("rgb", dropped[0]);
    await take("depth", dropped[1]);
  } else if (dropped.length === 1) {
    await take($("slot-depth").contains(event.target) ? "depth" : "rgb", dropped[0]);
  }
});
$("folder").addEventListener("change", (event) => {
  const frames = framesOf(event.target.files);
  if (origin.example || origin.recording) forget();
  origin = {};
  beside = {};
  if (frames.length) player.open(frames);
  else showSentence($("findings"), "error", "No frames there. Expected rgb/NAME.* with depth/NAME.*, or NAME_rgb.* with NAME_depth.*");
});

// ---------------------------------------------------------------- options

function options() {
  const form = $("options").elements;
  const said = { keep_holes: form.keep_holes.checked, any_aspect: form.any_aspect.checked };
  for (const name of ["sensor", "unit", "mode", "model", "shift"]) if (form[name].value) said[name] = form[name].value;
  if (form.scale.value) said.scale = Number(form.scale.value);
  if (said.scale && said.unit !== "relative") said.unit = "auto";
  return said;
}

function further() {
  const form = $("options").elements;
  const names = ["mask", "confidence", "prior", "rgb_intrinsics", "depth_intrinsics", "extrinsics"];
  return Object.fromEntries(names.map((name) => [name, form[name].files[0] ?? beside[name] ?? null]));
}

$("options").addEventListener("submit", (event) => event.preventDefault());
$("options").addEventListener("change", (event) => {
  if (!files.rgb || !files.depth) return;
  if (["unit", "scale", "mask"].includes(event.target.name)) examine();
  else tell();
  if (scene) $("run").textContent = "Sharpen again";
});

// ---------------------------------------------------------------- the work

$("run").addEventListener("click", () => run());
$("cancel").addEventListener("click", () => working?.abort());

async function run(link = null) {
  working?.abort();
  const mine = (working = new AbortController());
  busy(true);
  try {
    const made = await engine.upscale({ ...files, ...further() }, options(), heard, mine.signal);
    const done = new Scene(made);
    show(done, link);
    $("state").textContent = "Done.";
    return done;
  } catch (problem) {
    if (mine.signal.aborted) $("state").textContent = mine === working ? "Cancelled." : "";
    else {
      $("state").textContent = "";
      showSentence($("findings"), "error", problem.message);
      if (problem.code === "unreachable") lost(() => run(link));
    }
    return null;
  } finally {
    if (mine === working) busy(false);
  }
}

function heard(job) {
  if (job.state === "queued") $("state").textContent = job.ahead ? `${job.ahead} before you …` : "Starting …";
  if (job.state === "loading") $("state").textContent = "Loading the network …";
  if (job.state === "running") $("state").textContent = job.share > 0 ? `${Math.round(100 * job.share)} % done` : "Working …";
  if (job.share > 0) $("progress").value = job.share;
}

function busy(on) {
  reveal();
  $("cancel").hidden = $("progress").hidden = !on;
  $("progress").removeAttribute("value");
  $("run").disabled = on || !(files.rgb && files.depth);
  $("start").classList.toggle("ready", !on && !scene);
  $("start").setAttribute("aria-busy", String(on));
}

// ---------------------------------------------------------------- server

// Say so, look for it every second, and go on when it is back.
let looking = null;
function lost(again) {
  $("banner").hidden = false;
  $("banner").textContent = "The server does not answer. Looking for it …";
  clearInterval(looking);
  looking = setInterval(async () => {
    const found = await greet();
    if (!found?.ready) return;
    clearInterval(looking);
    $("banner").hidden = true;
    again();
  }, 1000);
}

async function greet() {
  limits = await engine.limits();
  const words = !limits ? "server not reachable" : limits.ready ? `ready, version ${limits.version}` : "starting";
  $("server").className = `server ${!limits ? "down" : limits.ready ? "up" : ""}`;
  $("server").querySelector(".words").textContent = words;
  if (limits) $("privacy").textContent = engine.privacy(limits);
  return limits;
}

// ---------------------------------------------------------------- pairs of the server

async function openExample(pair, link = null) {
  player.open([]);
  const [rgb, depth] = await Promise.all([engine.file(pair.rgb, "photo.png"), engine.file(pair.depth, `${pair.name}.png`)]);
  Object.assign(files, { rgb, depth });
  origin = { example: pair.name };
  beside = {};
  choose(pair.options);
  await Promise.all([showThumb($("slot-rgb"), rgb), showThumb($("slot-depth"), depth)]);
  const made = run(link);
  examine();
  return made;
}

async function openRecording(name, count, link = null) {
  const load = (number) => () => engine.frame(name, number);
  choose({});
  origin = { recording: name, frame: 0 };
  await player.open(Array.from({ length: count }, (_, i) => ({ name: `${i}`, load: load(i) })), link?.frame ?? 0);
}

const player = new Player(async (frame, number, known) => {
  if (origin.recording) origin.frame = number;
  if (known) {
    show(known);
    return known;
  }
  try {
    const { rgb, depth, ...more } = await frame.load();
    Object.assign(files, { rgb, depth });
    beside = more;
  } catch (problem) {
    showSentence($("findings"), "error", problem.message);
    return null;
  }
  showThumb($("slot-rgb"), files.rgb);
  showThumb($("slot-depth"), files.depth);
  return run();
});

async function download(format, button) {
  button.disabled = true;
  try {
    const needsAngle = ["ply", "glb"].includes(format) && scene.camera.assumed;
    const blob = await engine.download(scene.job, format, needsAngle ? Number($("angle").value) : null);
    const link = element("a", { href: URL.createObjectURL(blob), download: `sharp.${SUFFIX[format] ?? format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } catch (problem) {
    $("copied").textContent = problem.message;
  }
  button.disabled = false;
}

// Downloads and fields that this engine offers; all of them if it does not say.
function offer({ formats = null, lacks = [] }) {
  $("downloads").replaceChildren(
    ...FORMATS.filter(([format]) => !formats || formats.includes(format)).map(([format, name, about]) => {
      const button = element("button", { type: "button", id: `get-${format}` }, element("b", {}, `↓ ${name}`), element("small", {}, about));
      button.addEventListener("click", () => download(format, button));
      return button;
    }),
  );
  for (const name of lacks) $("options").elements[name].closest("label").hidden = true;
}

async function start() {
  await loadPalettes();
  const link = readLink();
  await greet();
  setInterval(greet, 15000);
  if (!limits) return lost(start);
  offer(limits);
  if (!limits.ready) setTimeout(greet, 2500);
  let pairs = [];
  try {
    const models = await engine.models();
    const usual = models.find((row) => row.default)?.name;
    $("options").elements.model.replaceChildren(
      element("option", { value: "" }, `as fits the files (${usual})`),
      ...models.map((row) => element("option", { value: row.name }, row.name)),
    );
    pairs = await engine.examples();
    const names = { table: "Example: table", tof: "Time of flight", stereo: "Stereo camera" };
    $("examples").replaceChildren(
      ...pairs.map((pair) => element("button", { type: "button", className: "chip", title: pair.about, id: `example-${pair.name}`, onclick: () => openExample(pair) }, names[pair.name] ?? pair.name)),
    );
    const recordings = await engine.recordings();
    $("recordings").replaceChildren(
      ...Object.entries(recordings).map(([name, count]) => element("button", { type: "button", className: "chip", onclick: () => openRecording(name, count) }, `▶ ${name}`)),
    );
    if (link.recording in recordings) return await openRecording(link.recording, recordings[link.recording], link);
  } catch (problem) {
    showSentence($("findings"), "error", problem.code === "token" ? "This server asks for a token: open the address that it printed." : problem.message);
    return;
  }
  const wanted = pairs.find((pair) => pair.name === link.example);
  if (wanted) await openExample(wanted, link);
  else if (link.job) {
    try {
      show(new Scene(await engine.restore(link.job)), link);
    } catch (problem) {
      showSentence($("findings"), "warning", `The result of this link is gone: ${problem.message}`);
    }
  }
}

start();
