// NPY: one array behind a short header.
import { Refused } from "../refused.js";

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const TYPES = {
  u1: ["getUint8", 1], i1: ["getInt8", 1], u2: ["getUint16", 2], i2: ["getInt16", 2], u4: ["getUint32", 4], i4: ["getInt32", 4],
  f4: ["getFloat32", 4], f8: ["getFloat64", 8],
};

export const isNpy = (bytes) => MAGIC.every((byte, i) => bytes[i] === byte);

// { data, h, w, channels, bits, whole, signed, facts }; data: Float64Array (h, w, channels).
export function readNpy(bytes) {
  const refused = (why) => new Refused("input", `This NPY file cannot be used: ${why}.`);
  const numbers = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = bytes[6] >= 2;
  const length = wide ? numbers.getUint32(8, true) : numbers.getUint16(8, true);
  const start = (wide ? 12 : 10) + length;
  const head = new TextDecoder("latin1").decode(bytes.subarray(wide ? 12 : 10, start));
  const [, order, type] = head.match(/'descr': *'([<>|=]?)(\w+)'/) ?? [];
  const shape = head.match(/'shape': *\(([\d, ]*)\)/)?.[1].split(",").filter((side) => side.trim()).map(Number);
  if (!(type in TYPES) || !shape) throw refused("its numbers must be integers up to 32 bits, float32 or float64");
  while (shape.length > 2 && shape[0] === 1) shape.shift();
  const [h, w, channels = 1] = shape;
  if (shape.length < 2 || shape.length > 3 || !h || !w || channels > 4) throw refused(`its shape is (${shape.join(", ")}), and a map is (h, w)`);
  const [read, size] = TYPES[type];
  if (start + h * w * channels * size > bytes.length) throw refused("its end is missing");
  const data = new Float64Array(h * w * channels);
  const columnwise = /'fortran_order': *True/.test(head);
  const place = (i) => (columnwise ? ((i % h) * w + (Math.floor(i / h) % w)) * channels + Math.floor(i / (h * w)) : i);
  for (let i = 0; i < data.length; i++) data[place(i)] = numbers[read](start + i * size, order !== ">");
  return { data, h, w, channels, bits: 8 * size, whole: type[0] !== "f", signed: type[0] === "i", facts: {} };
}

// The NPY of float32 (h, w).
export function writeNpy(data, h, w) {
  const words = `{'descr': '<f4', 'fortran_order': False, 'shape': (${h}, ${w}), }`;
  const head = words.padEnd(Math.ceil((10 + words.length + 1) / 64) * 64 - 11) + "\n";
  const start = new Uint8Array(10 + head.length);
  start.set([...MAGIC, 1, 0, head.length & 255, head.length >> 8]);
  start.set(new TextEncoder().encode(head), 10);
  return new Blob([start, data], { type: "application/x-npy" });
}
