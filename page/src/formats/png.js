// PNG as numbers: a browser's own decoder rounds 16 bits to 8. Reads all but interlaced files;
// writes grey of 16 bits.
import { Refused } from "../refused.js";

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const MOST_PIXELS = 1e8;

export const isPng = (bytes) => SIGNATURE.every((byte, i) => bytes[i] === byte);

// { data, h, w, channels, bits, whole, facts }; data: whole numbers (h, w, channels)
// as stored, a palette resolved to 3 channels of 8 bits; facts: what its text chunks say.
export async function readPng(bytes) {
  const damaged = (why) => new Refused("input", `This PNG is damaged: ${why}.`);
  const numbers = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts = [], facts = {};
  let head = null, palette = null;
  for (let at = 8, name = ""; name !== "IEND"; ) {
    if (at + 12 > bytes.length) throw damaged("its end is missing");
    const length = numbers.getUint32(at);
    if (at + 12 + length > bytes.length) throw damaged("its end is missing");
    const body = bytes.subarray(at + 8, at + 8 + length);
    name = letters(bytes.subarray(at + 4, at + 8));
    if (checksum(bytes.subarray(at + 4, at + 8 + length)) !== numbers.getUint32(at + 8 + length)) throw damaged(`the checksum of ${name} is wrong`);
    if (name === "IHDR") head = { w: numbers.getUint32(at + 8), h: numbers.getUint32(at + 12), bits: body[8], colour: body[9], interlaced: body[12] };
    if (name === "PLTE") palette = body;
    if (name === "IDAT") parts.push(body);
    if (name === "tEXt") {
      const end = body.indexOf(0);
      const key = letters(body.subarray(0, end));
      if (key.startsWith("depth_")) facts[key] = letters(body.subarray(end + 1));
    }
    at += 12 + length;
  }
  if (!head || !(head.colour in CHANNELS)) throw damaged("its header is missing");
  if (head.interlaced) throw new Refused("input", "This PNG is interlaced, which this page does not read; save it without.");
  if (head.w * head.h > MOST_PIXELS) throw new Refused("input", `This PNG has ${head.w}×${head.h} pixels, too many for this page.`);
  const samples = CHANNELS[head.colour];
  const width = Math.ceil((head.w * samples * head.bits) / 8);
  const raw = await passed(new Blob(parts), new DecompressionStream("deflate")).catch(() => new Uint8Array());
  if (raw.length < (width + 1) * head.h) throw damaged("its pixels could not be unpacked");
  const lines = unfiltered(raw, width, head.h, Math.max(1, (samples * head.bits) / 8));
  const stored = unpacked(lines, width, head, samples);
  if (head.colour !== 3) return { data: stored, h: head.h, w: head.w, channels: samples, bits: Math.max(8, head.bits), whole: true, facts };
  if (!palette) throw damaged("its palette is missing");
  const colours = new Uint8Array(3 * stored.length);
  stored.forEach((index, i) => colours.set(palette.subarray(3 * index, 3 * index + 3), 3 * i));
  return { data: colours, h: head.h, w: head.w, channels: 3, bits: 8, whole: true, facts };
}

// Each line says how it was foretold from the pixels left of it and above it.
function unfiltered(raw, width, h, step) {
  const lines = new Uint8Array(width * h);
  for (let i = 0; i < h; i++) {
    const kind = raw[i * (width + 1)];
    const from = i * (width + 1) + 1, to = i * width;
    for (let j = 0; j < width; j++) {
      const left = j >= step ? lines[to + j - step] : 0;
      const above = i ? lines[to + j - width] : 0;
      const corner = i && j >= step ? lines[to + j - width - step] : 0;
      const foretold = kind === 0 ? 0 : kind === 1 ? left : kind === 2 ? above : kind === 3 ? (left + above) >> 1 : paeth(left, above, corner);
      lines[to + j] = raw[from + j] + foretold;
    }
  }
  return lines;
}

function paeth(left, above, corner) {
  const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

// Grey of fewer than 8 bits is spread to 0 to 255; indices of a palette stay.
function unpacked(lines, width, { w, h, bits, colour }, samples) {
  const data = new (bits === 16 ? Uint16Array : Uint8Array)(w * h * samples);
  const spread = bits < 8 && colour === 0 ? 255 / (2 ** bits - 1) : 1;
  for (let i = 0, k = 0; i < h; i++) {
    const from = i * width;
    for (let j = 0; j < w * samples; j++, k++) {
      if (bits === 16) data[k] = (lines[from + 2 * j] << 8) | lines[from + 2 * j + 1];
      else if (bits === 8) data[k] = lines[from + j];
      else data[k] = spread * ((lines[from + ((j * bits) >> 3)] >> (8 - bits - ((j * bits) & 7))) & (2 ** bits - 1));
    }
  }
  return data;
}

// A PNG of grey values (h, w) of 16 bits, whole numbers 0 to 65535, with texts.
export async function writePng(values, h, w, facts) {
  const lines = new Uint8Array((2 * w + 1) * h);
  for (let i = 0, k = 0; i < h; i++) {
    for (let j = 0; j < w; j++, k++) {
      const at = i * (2 * w + 1) + 1 + 2 * j;
      [lines[at], lines[at + 1]] = [values[k] >> 8, values[k] & 255];
    }
  }
  const head = new DataView(new ArrayBuffer(13));
  head.setUint32(0, w);
  head.setUint32(4, h);
  head.setUint8(8, 16);
  const texts = Object.entries(facts).map(([name, text]) => chunk("tEXt", codes(`${name}\0${text}`)));
  const packed = await passed(new Blob([lines]), new CompressionStream("deflate"));
  return new Blob([Uint8Array.from(SIGNATURE), chunk("IHDR", new Uint8Array(head.buffer)), ...texts, chunk("IDAT", packed), chunk("IEND", new Uint8Array())], { type: "image/png" });
}

function chunk(name, body) {
  const made = new Uint8Array(12 + body.length);
  const numbers = new DataView(made.buffer);
  numbers.setUint32(0, body.length);
  made.set(codes(name), 4);
  made.set(body, 8);
  numbers.setUint32(8 + body.length, checksum(made.subarray(4, 8 + body.length)));
  return made;
}

const passed = async (blob, through) => new Uint8Array(await new Response(blob.stream().pipeThrough(through)).arrayBuffer());
const letters = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
const codes = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = TABLE[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}
