// Build the page into the Python package: npm ci && npm run build
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";

const out = new URL("../src/ducos/serve/page/", import.meta.url).pathname;
mkdirSync(out, { recursive: true });
const modules = { bundle: true, minify: true, format: "esm", target: "es2022", outdir: out };
// Who computes is a file of its own, which a page without a server replaces: see src/engine.js.
const apart = {
  name: "engine",
  setup: (on) => on.onResolve({ filter: /^engine$/ }, () => ({ path: "./engine.js", external: true })),
};
await build({
  ...modules,
  entryPoints: { page: "src/main.js" },
  plugins: [apart],
  legalComments: "none", // three.LICENSE.txt lies beside it
  banner: { js: "/* Built from page/ by `npm run build`. Holds three.js, MIT: three.LICENSE.txt */" },
});
await build({ ...modules, entryPoints: { engine: "src/server.js", gallery: "src/gallery.js" } });
await build({ entryPoints: { page: "src/style.css" }, minify: true, outdir: out });
for (const name of ["index.html", "icon.svg"]) copyFileSync(name, out + name);
copyFileSync("node_modules/three/LICENSE", out + "three.LICENSE.txt");
copyFileSync("../src/ducos/pictures/palettes.png", out + "palettes.png");
