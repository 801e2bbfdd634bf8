// A point cloud with colours: x right, y down, z forward, metres; what `Cloud.save` writes.

// One result as serve/maps.py describes it; degrees: field of view across, in place of the camera's.
export function writePly({ maps, view }, degrees) {
  const [h, w] = maps.depth.shape;
  const { cx, cy } = view.facts.camera;
  const focal = w / 2 / Math.tan((degrees * Math.PI) / 360);
  const kept = [];
  maps.depth.data.forEach((z, i) => maps.valid.data[i] && z > 0 && !view.flying.data[i] && kept.push(i));
  const vertices = new DataView(new ArrayBuffer(15 * kept.length));
  kept.forEach((i, k) => {
    const z = maps.depth.data[i];
    const place = [((i % w) - cx) / focal * z, (Math.floor(i / w) - cy) / focal * z, z];
    place.forEach((value, axis) => vertices.setFloat32(15 * k + 4 * axis, value, true));
    for (let c = 0; c < 3; c++) vertices.setUint8(15 * k + 12 + c, view.image.data[3 * i + c]);
  });
  const axes = ["x", "y", "z"].map((axis) => `property float ${axis}`);
  const colours = ["red", "green", "blue"].map((name) => `property uchar ${name}`);
  const head = ["ply", "format binary_little_endian 1.0", "comment x right, y down, z forward, metres", `element vertex ${kept.length}`, ...axes, ...colours, "end_header\n"];
  return new Blob([head.join("\n"), vertices], { type: "application/x-ply" });
}
