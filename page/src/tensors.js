// safetensors: 8 bytes of length, a JSON header, raw numbers.
const ARRAYS = { F32: Float32Array, U8: Uint8Array, BOOL: Uint8Array };

export function readTensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const start = 8 + length;
  const read = { facts: JSON.parse(header.__metadata__.facts) };
  delete header.__metadata__;
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
    const [from, to] = data_offsets;
    // A copy: the offset need not suit the numbers' size.
    read[name] = { data: new ARRAYS[dtype](buffer.slice(start + from, start + to)), shape };
  }
  return read;
}
