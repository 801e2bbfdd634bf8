// Colours of depth: the same tables as those of the previews.
const NAMES = ["turbo", "viridis", "magma", "inferno"];
const HOLE = 48;
let tables = null;

export async function loadPalettes() {
  const bitmap = await createImageBitmap(await (await fetch("palettes.png")).blob(), {
    colorSpaceConversion: "none",
  });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(bitmap, 0, 0);
  const data = pen.getImageData(0, 0, bitmap.width, bitmap.height).data;
  tables = Object.fromEntries(
    NAMES.map((name, row) => [name, data.slice(row * bitmap.width * 4, (row + 1) * bitmap.width * 4)]),
  );
  tables.grey = new Uint8ClampedArray(1024).map((_, i) => (i % 4 === 3 ? 255 : i >> 2));
}

// A canvas (w, h) of a map; invalid pixels are dark grey.
export function colourised(map, valid, w, h, range, palette) {
  const table = tables[palette];
  const picture = new ImageData(w, h);
  const pixels = new Uint32Array(picture.data.buffer);
  const colours = new Uint32Array(table.buffer.slice(table.byteOffset, table.byteOffset + 1024));
  const hole = 0xff000000 | (HOLE << 16) | (HOLE << 8) | HOLE;
  const factor = 255 / Math.max(1e-9, range[1] - range[0]);
  for (let i = 0; i < pixels.length; i++) {
    if (valid && !valid[i]) {
      pixels[i] = hole;
      continue;
    }
    const step = (map[i] - range[0]) * factor;
    pixels[i] = colours[step < 0 ? 0 : step > 255 ? 255 : Math.round(step)] | 0xff000000;
  }
  return onCanvas(picture);
}

export function onCanvas(picture) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext("2d").putImageData(picture, 0, 0);
  return canvas;
}

// The colours of the whole scale: between the handles the palette, its ends outside.
export function drawRamp(canvas, palette, { value }, range) {
  const row = new ImageData(256, 1);
  for (let i = 0; i < 256; i++) {
    const share = (value(i / 255) - range[0]) / Math.max(1e-9, range[1] - range[0]);
    const step = 4 * Math.round(255 * Math.max(0, Math.min(1, share)));
    row.data.set(tables[palette].slice(step, step + 3), 4 * i);
    row.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(row, 0, 0);
}

// The value at each share of a slider, and the share at which each value lies. Distances go by their
// inverse: what is near has most of the pixels and the finest steps, the background few.
export function scaleBetween(near, far) {
  const inverse = near > 0;
  const bent = inverse ? (v) => 1 / Math.max(v, 1e-9) : (v) => v;
  const [a, b] = [bent(near), bent(far)];
  return {
    value: (share) => { const at = a + (b - a) * share; return inverse ? 1 / at : at; },
    share: (value) => (bent(value) - a) / (b - a || 1),
  };
}

// Values below which the shares `from` and `to` of the valid pixels lie.
export function percentiles(map, valid, from, to) {
  const sample = [];
  const step = Math.max(1, Math.floor(map.length / 40000));
  for (let i = 0; i < map.length; i += step) if (!valid || valid[i]) sample.push(map[i]);
  sample.sort((a, b) => a - b);
  const at = (share) => sample[Math.min(sample.length - 1, Math.floor(share * sample.length))] ?? 0;
  return [at(from), at(to)];
}
