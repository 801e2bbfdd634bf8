// Files of a pair as numbers: the colours as planes, the depth map as it was stored.
import { isNpy, readNpy } from "../formats/npy.js";
import { isPng, readPng } from "../formats/png.js";
import { Refused } from "../refused.js";
import { plane } from "./sampling.js";

const bytesOf = async (file) => new Uint8Array(await file.arrayBuffer());

// Three planes (H, W) in [0, 1]. PNG and NPY are read here, number by number; other pictures are
// left to the browser.
export async function readColours(file) {
  const bytes = await bytesOf(file);
  const stored = isPng(bytes) ? await readPng(bytes) : isNpy(bytes) ? readNpy(bytes) : await drawn(file);
  const { data, h, w, channels, bits, whole } = stored;
  const most = whole ? 2 ** bits - 1 : 1;
  if (!whole && data.some((value) => !(value >= -0.01 && value <= 1.01))) throw new Refused("input", "The photo has floating-point colours outside 0 to 1; divide them by 255.");
  const colour = channels >= 3 ? [0, 1, 2] : [0, 0, 0]; // grey three times; alpha is dropped
  return colour.map((c) => plane(Float32Array.from({ length: h * w }, (_, i) => Math.min(1, Math.max(0, data[i * channels + c] / most))), h, w));
}

async function drawn(file) {
  const picture = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).catch(() => {
    throw new Refused("input", "The photo is no picture that this browser can show; give PNG, JPEG, WebP or NPY.");
  });
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const pen = canvas.getContext("2d", { colorSpace: "srgb", willReadFrequently: true });
  pen.drawImage(picture, 0, 0);
  const { data, width: w, height: h } = pen.getImageData(0, 0, picture.width, picture.height);
  return { data, h, w, channels: 4, bits: 8, whole: true };
}

// One plane of numbers: { data, h, w, bits, whole, signed, facts }.
export async function readNumbers(file, what) {
  const bytes = await bytesOf(file);
  if (!isPng(bytes) && !isNpy(bytes)) throw new Refused("input", `${what} must be a PNG or NPY file on this page; for EXR, TIFF, NPZ and others: pip install 'ducos[serve]', then ducos serve --open.`);
  const stored = isPng(bytes) ? await readPng(bytes) : readNpy(bytes);
  if (stored.channels > 1) throw new Refused("input", `${what} has ${stored.channels} channels, but depth has one; a colour picture of depth cannot be turned back, give the raw depth.`);
  return stored;
}
