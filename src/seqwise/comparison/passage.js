/* The passage: coloured anew for each model; one piece at a time can have the focus. */
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const passage = find("passage-text");
  if (!passage) return;
  const { cuts, models } = JSON.parse(find("surprise").textContent);
  const readout = find("readout");
  let current = 0;

  const colour = (model) => {
    const spans = cuts[model.cut].map((piece, place) => {
      const span = document.createElement("span");
      span.className = "s" + model.levels[place];
      span.title = model.bits[place] + " bits";
      span.textContent = piece;
      span.tabIndex = place === 0 ? 0 : -1;
      return span;
    });
    passage.replaceChildren(...spans);
    find("passage-about").textContent = model.about;
    readout.replaceChildren();
    current = 0;
  };
  const read = (span) => {
    const piece = document.createElement("bdi");
    piece.textContent = span.textContent;
    readout.replaceChildren(piece, " " + span.title);
  };
  const focus = (place) => {
    const span = passage.children[Math.max(0, Math.min(place, passage.children.length - 1))];
    span.focus();
  };

  passage.addEventListener("mouseover", (event) => event.target.title && read(event.target));
  passage.addEventListener("focusin", (event) => {
    passage.children[current].tabIndex = -1;
    current = [...passage.children].indexOf(event.target);
    event.target.tabIndex = 0;
    read(event.target);
  });
  passage.addEventListener("keydown", (event) => {
    const places = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: Infinity };
    if (!(event.key in places)) return;
    event.preventDefault();
    focus(places[event.key]);
  });

  const group = document.querySelector("[data-passage]");
  const choose = () => colour(models[group.querySelector("input:checked").value]);
  group.addEventListener("change", choose);
  choose();
})();
