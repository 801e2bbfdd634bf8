// Build the page: into the Python package, where the server computes, or for a folder of files
// without a server, with an engine of its own (see src/engine.js).
//
//   npm ci && npm run build
//   npm run static -- ENGINE.js OUT
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join, resolve } from "node:path";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [engine = here("src/server.js"), folder = here("../src/ducos/serve/page")] = process.argv.slice(2);
const out = resolve(folder);
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { page: here("src/main.js") },
  alias: { engine: resolve(engine) },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: out,
  legalComments: "none", // three.LICENSE.txt lies beside it
  banner: { js: "/* Built from page/ by `npm run build`. Holds three.js, MIT: three.LICENSE.txt */" },
});
await build({ entryPoints: { page: here("src/style.css") }, minify: true, outdir: out });
for (const name of ["index.html", "icon.svg"]) copyFileSync(here(name), join(out, name));
copyFileSync(here("node_modules/three/LICENSE"), join(out, "three.LICENSE.txt"));
copyFileSync(here("../src/ducos/pictures/palettes.png"), join(out, "palettes.png"));
