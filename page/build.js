// Build the page into the Python package: npm ci && npm run build
// With --network FOLDER: what a page needs besides to run the network in its visitors' browsers,
// into that folder; scripts/static_page.py --network calls it.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const modules = { bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none" };
const network = process.argv.indexOf("--network");
await (network < 0 ? page(new URL("../src/ducos/serve/page/", import.meta.url).pathname) : networkInto(process.argv[network + 1]));

async function page(outdir) {
  mkdirSync(outdir, { recursive: true });
  // Who computes is a file of its own, which a page without a server replaces: see src/engine.js.
  const apart = {
    name: "engine",
    setup: (on) => on.onResolve({ filter: /^engine$/ }, () => ({ path: "./engine.js", external: true })),
  };
  await build({
    ...modules,
    outdir,
    entryPoints: { page: "src/main.js" },
    plugins: [apart],
    // three.LICENSE.txt lies beside it
    banner: { js: "/* Built from page/ by `npm run build`. Holds three.js, MIT: three.LICENSE.txt */" },
  });
  await build({ ...modules, outdir, entryPoints: { engine: "src/server.js", gallery: "src/gallery.js" } });
  await build({ entryPoints: { page: "src/style.css" }, minify: true, outdir });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(name, join(outdir, name));
  copyFileSync("node_modules/three/LICENSE", join(outdir, "three.LICENSE.txt"));
  copyFileSync("../src/ducos/pictures/palettes.png", join(outdir, "palettes.png"));
}

async function networkInto(folder) {
  const outdir = join(folder, "network");
  mkdirSync(outdir, { recursive: true });
  await build({ ...modules, outdir: folder, entryPoints: { engine: "src/local.js" } });
  await build({
    ...modules,
    outdir,
    entryPoints: { worker: "src/network/worker.js" },
    conditions: ["onnxruntime-web-use-extern-wasm"],
    banner: { js: "/* Built from page/ by `npm run build`. Holds onnxruntime-web, MIT: onnxruntime.LICENSE.txt */" },
  });
  for (const end of ["mjs", "wasm"]) {
    const name = `ort-wasm-simd-threaded.${end}`;
    copyFileSync(join("node_modules/onnxruntime-web/dist", name), join(outdir, name));
  }
}
