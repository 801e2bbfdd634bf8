// Depth along a line: input, bicubic and result.
import { metres } from "./dom.js";

export function drawProfile(canvas, scene, line) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  pen.clearRect(0, 0, canvas.width, canvas.height);
  if (!scene || !line) return;
  const curves = along(scene, line);
  const values = curves.flatMap(([, points]) => points.filter((value) => value !== null));
  if (!values.length) return;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = 0.08 * (high - low || 1);
  const box = { left: 56 * ratio, right: canvas.width - 8 * ratio, top: 8 * ratio, bottom: canvas.height - 10 * ratio };
  const y = (value) => box.bottom - ((value - low + margin) / (high - low + 2 * margin)) * (box.bottom - box.top);
  pen.font = `${12 * ratio}px system-ui, sans-serif`;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of [low, (low + high) / 2, high]) {
    pen.strokeStyle = colour("line");
    pen.lineWidth = ratio;
    pen.beginPath();
    pen.moveTo(box.left, y(value));
    pen.lineTo(box.right, y(value));
    pen.stroke();
    pen.fillStyle = colour("soft");
    pen.fillText(scene.metric ? `${metres(value)} m` : metres(value), box.left - 6 * ratio, y(value));
  }
  for (const [name, points] of curves) {
    pen.strokeStyle = colour(name);
    pen.lineWidth = (name === "result" ? 3 : 2) * ratio;
    pen.setLineDash(name === "bicubic" ? [7 * ratio, 4 * ratio] : []);
    pen.beginPath();
    let up = true;
    points.forEach((value, i) => {
      if (value === null) {
        up = true;
        return;
      }
      const x = box.left + (i / Math.max(1, points.length - 1)) * (box.right - box.left);
      if (up) pen.moveTo(x, y(value));
      else pen.lineTo(x, y(value));
      up = false;
    });
    pen.stroke();
  }
  pen.setLineDash([]);
}

// [name, values] of each curve; null where there is a hole.
export function along(scene, { x0, y0, x1, y1 }) {
  const steps = Math.max(2, Math.round(Math.hypot(x1 - x0, y1 - y0)));
  const inside = (value, most) => Math.max(0, Math.min(most - 1, Math.round(value)));
  const here = Array.from({ length: steps + 1 }, (_, i) =>
    scene.at(inside(x0 + ((x1 - x0) * i) / steps, scene.w), inside(y0 + ((y1 - y0) * i) / steps, scene.h)),
  );
  return [
    ["input", here.map((at) => at.input)],
    ["bicubic", here.map((at) => at.bicubic)],
    ["result", here.map((at) => at.depth)],
  ];
}
