// What the doctor found, in words, with a button where the page can do what is advised.
import { element } from "./dom.js";

const MARKS = { good: "✓", note: "i", warning: "!", error: "✕" };
// Code of a finding -> what to choose, and the words on the button.
const REMEDIES = {
  "flying-pixels": [{ sensor: "tof" }, "It is time of flight"],
  misaligned: [{ shift: "auto" }, "Move it back"],
};

export function showFindings(list, report, apply, chosen) {
  const open = (remedy) => remedy && Object.entries(remedy[0]).some(([name, value]) => chosen[name] !== value);
  const rows = report.findings.map((finding) => row(finding.severity, finding.sentence, finding.advice, open(REMEDIES[finding.code]) ? REMEDIES[finding.code] : null, apply));
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
