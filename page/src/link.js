// The view in the address: what is after # brings it back.
export function readLink() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const numbers = (name) => (hash.get(name) ?? "").split(",").map(Number);
  return {
    example: hash.get("example"),
    job: hash.get("job"),
    recording: hash.get("recording"),
    frame: Number(hash.get("frame") ?? 0),
    left: hash.get("left"),
    overlay: hash.get("overlay"),
    palette: hash.get("palette"),
    split: hash.has("split") ? Number(hash.get("split")) : null,
    range: hash.has("range") ? numbers("range") : null,
    line: hash.has("line") ? numbers("line") : null,
    pose: hash.has("pose") ? numbers("pose") : null,
    shape: hash.get("shape"),
    both: hash.get("both") === "1",
    flying: hash.get("flying") === "1",
  };
}

export function writeLink(parts) {
  const hash = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    hash.set(name, Array.isArray(value) ? value.join(",") : value === true ? "1" : String(value));
  }
  history.replaceState(null, "", `#${hash}`);
}
