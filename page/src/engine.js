// Who computes. The page asks an engine and never a server directly:
//
//   limits()                          bytes, pixels and seconds that are allowed; null if unreachable
//   models(), examples(), recordings()
//   examine(files, options, signal)   findings of the doctor
//   upscale(files, options, heard, signal) -> { job, facts, maps, view }
//   restore(job)                      the same of a job that was done before
//   download(job, format, degrees)    a Blob
//
// A build without a server plugs in here: an engine of the same methods that runs the network in the
// browser, chosen by <meta name="ducos-engine" content="browser">.
import { ServerEngine } from "./server.js";

const ENGINES = { server: ServerEngine };

export function createEngine() {
  const asked = document.querySelector("meta[name=ducos-engine]")?.content ?? "server";
  return new ENGINES[asked]();
}
