// Small things for the document.
export const $ = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A group of buttons of which one is pressed; `chosen` is called with its value.
export function segmented(group, chosen) {
  const buttons = [...group.querySelectorAll("button")];
  const press = (value, tell = true) => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.dataset.value === value));
    if (tell) chosen(value);
  };
  for (const each of buttons) each.addEventListener("click", () => press(each.dataset.value));
  return press;
}

// A button that is on or off.
export function toggle(button, changed) {
  const set = (on, tell = true) => {
    button.setAttribute("aria-pressed", String(on));
    if (tell) changed(on);
  };
  button.addEventListener("click", () => set(button.getAttribute("aria-pressed") !== "true"));
  return set;
}

export const metres = (value) =>
  value >= 100 ? value.toFixed(1) : value >= 10 ? value.toFixed(2) : value.toFixed(3);
