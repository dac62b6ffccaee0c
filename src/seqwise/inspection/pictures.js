/* Panels of small pictures, of which one is shown at a time: that of the chosen head. */
const choosePanels = () => {
  for (const field of document.querySelectorAll("[data-chooses]")) {
    const panels = [...document.querySelectorAll(`[data-panel="${field.dataset.chooses}"]`)];
    field.addEventListener("change", () => panels.forEach((panel, place) => { panel.hidden = place !== Number(field.value); }));
  }
};
