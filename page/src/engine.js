// Who computes. The page asks an engine and never a server directly. It is a file of its own,
// engine.js beside page.js, so that one build serves all: the wheel has server.js there, a page
// without a server gallery.js, local.js or any other module that exports a class `Engine`.
//
//   limits()                    { ready, version, body, keep }; null if it cannot be reached; also
//                               { formats, lacks } if it does not offer all downloads and fields
//   privacy(limits)             a sentence for the foot of the page: where files go
//   models()                    [{ name, default }]
//   examples()                  [{ name, about, rgb, depth, options }], addresses for `file`
//   recordings()                { name: number of frames }
//   file(address, name)         a File
//   frame(recording, number)    { rgb, depth, mask?, confidence?, rgb_intrinsics?, ... }, Files
//   examine(files, options, signal)         what the doctor finds: { sound, findings, facts }
//   upscale(files, options, heard, signal)  { job, facts, maps, view }, see scene.js;
//                               heard({ state, ahead, share }) tells how far it is;
//                               state is queued, loading (the network) or running
//   restore(job)                the same of a job that was done before
//   download(job, format, degrees)          a Blob
//
// All but `privacy` give a promise. What cannot be done is thrown as an Error with a `code`, see
// refused.js; its sentence is shown. The code "unreachable" lets the page look for it again.
import { Engine } from "engine";

export const createEngine = () => new Engine();
