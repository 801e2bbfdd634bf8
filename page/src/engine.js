// Who computes. The page asks an engine and never a server directly; the build chooses which:
// `npm run build` takes server.js, `npm run static -- ENGINE.js OUT` any other module.
// An engine is a class `Engine` with these methods (all but `privacy` give a promise):
//
//   limits()                    { ready, version, body, keep }; null if it cannot be reached
//   privacy(limits)             a sentence for the foot of the page: where files go
//   models()                    [{ name, default }]
//   examples()                  [{ name, about, rgb, depth, options }], addresses for `file`
//   recordings()                { name: number of frames }
//   file(address, name)         a File
//   frame(recording, number)    { rgb, depth, mask?, confidence?, rgb_intrinsics?, ... }, Files
//   examine(files, options, signal)         what the doctor finds: { sound, findings, facts }
//   upscale(files, options, heard, signal)  { job, facts, maps, view }, see scene.js;
//                               heard({ state, ahead, share }) tells how far it is
//   restore(job)                the same of a job that was done before
//   download(job, format, degrees)          a Blob
//
// What cannot be done is thrown as `Refused`, with a sentence for people.
import { Engine } from "engine";

export const createEngine = () => new Engine();
