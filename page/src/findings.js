// What the doctor found, in words, with a button where the page can do what is advised.
import { element } from "./dom.js";

const MARKS = { good: "✓", note: "i", warning: "!", error: "✕" };
// Code of a finding -> what to choose, and the words on the button.
const REMEDIES = {
  "flying-pixels": [{ sensor: "tof" }, "It is time of flight"],
  misaligned: [{ shift: "auto" }, "Move it back"],
};

const TAKEN = "This is taken into account: see the options below.";

export function showFindings(list, report, apply, chosen) {
  const rows = report.findings.map(({ code, severity, sentence, advice }) => {
    const remedy = REMEDIES[code];
    // Nobody needs to be told what is chosen already.
    const followed = remedy && Object.entries(remedy[0]).every(([name, value]) => chosen[name] === value);
    return followed ? row(severity, sentence, TAKEN, null, apply) : row(severity, sentence, advice, remedy, apply);
  });
  if (report.facts.depth_size) rows.unshift(row(report.sound ? "good" : "note", sizes(report)));
  list.replaceChildren(...rows);
}

export function showSentence(list, severity, sentence) {
  list.replaceChildren(row(severity, sentence));
}

function sizes({ sound, facts }) {
  const [h, w] = facts.depth_size;
  const [H, W] = facts.colour_size;
  return `${sound ? "The files fit" : "The files were read"}: photo ${W}×${H}, depth ${w}×${h}. ${capital(facts.unit_decision)}.`;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function row(severity, sentence, advice, remedy, apply) {
  const words = element("span", {}, capital(sentence));
  if (advice) words.append(element("span", { className: "advice" }, forPage(advice)));
  const made = element("li", { className: severity }, element("span", { className: "mark", ariaHidden: "true" }, MARKS[severity]), words);
  if (remedy) {
    const [changes, label] = remedy;
    made.append(element("button", { type: "button", onclick: () => apply(changes) }, label));
  }
  return made;
}

// Advice speaks of the command's options; here they are fields.
export function forPage(advice) {
  return capital(advice.replace(/pass --/g, "choose ").replace(/--([a-z-]+)/g, (_, name) => name.replaceAll("-", " ")));
}
