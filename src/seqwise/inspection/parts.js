/* What all views are drawn with: texts whose tokens can have the focus, maps, lists to choose from. The scripts of the
   page stand one behind the other in one function, this one first (page.py). */
const find = (id) => document.getElementById(id);
const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
};

/* Numbers; all models are known before the first is drawn, as they share their scales */
const models = [];
const unpack = async ({ data, shape, low, high }) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return { bytes: new Uint8Array(await new Response(stream).arrayBuffer()), shape, low, high };
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = (hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
const mix = (from, to, share) => from.map((value, place) => Math.round(value + (to[place] - value) * share));
const digits = (value) => (Math.abs(value) < 1e-4 ? "0" : Number(value.toPrecision(3)).toString());
const named = (piece) => (piece.trimEnd() || piece).replace(/^ +/, (spaces) => "␣".repeat(spaces.length));
const perCent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

/* A text whose tokens can have the focus, one at a time. All strips of the same side follow one another: `shift` is
   how many tokens of the side stand before the first of this strip. */
const STRONGEST = 48;  // per cent of a colour, behind which letters can still be read
const strip = (box, pieces, onFocus, { side = "pieces", shift = 0 } = {}) => {
  if (box.handlers) box.handlers.abort();
  box.handlers = new AbortController();
  const until = { signal: box.handlers.signal };
  box.replaceChildren(...pieces.map((piece) => make("span", piece)));
  box.hidden = false;
  const spans = [...box.children];
  let current = 0;
  spans.forEach((span, place) => { span.tabIndex = place === 0 ? 0 : -1; });
  const show = (place) => {
    spans[current].classList.remove("is-current");
    spans[current].tabIndex = -1;
    current = Math.max(0, Math.min(place, spans.length - 1));
    spans[current].classList.add("is-current");
    spans[current].tabIndex = 0;
    onFocus(current);
  };
  const choose = (place) => {
    show(place);
    document.dispatchEvent(new CustomEvent("token", { detail: { place: current + shift, side, box } }));
  };
  document.addEventListener("token", ({ detail }) => {
    if (detail.box !== box && detail.side === side && detail.place >= shift) show(detail.place - shift);
  }, until);
  const chosen = (event) => {
    const place = spans.indexOf(event.target);
    if (place >= 0 && !spans[place].classList.contains("is-current")) choose(place);
  };
  box.addEventListener("mouseover", chosen, until);
  box.addEventListener("focusin", chosen, until);
  box.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: spans.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(moves[event.key]);
    spans[current].focus();
  }, until);
  const paint = (span, name, share) => {
    span.style.backgroundColor = share > 0.004
      ? `color-mix(in srgb, var(${name}) ${(STRONGEST * Math.min(1, share)).toFixed(0)}%, transparent)` : "";
  };
  return {
    choose,
    show,
    shade: (shares, name = "--accent") => spans.forEach((span, place) => paint(span, name, shares[place] || 0)),
    colour: (named) => spans.forEach((span, place) => paint(span, ...named[place])),
    setBelow: (texts) => spans.forEach((span, place) => { span.dataset.below = texts[place]; }),
    mark: (isMarked, name) => spans.forEach((span, place) => span.classList.toggle(name, isMarked[place])),
    shadeSigned: (values) => spans.forEach((span, place) => {
      paint(span, values[place] < 0 ? "--c1" : "--c0", Math.abs(values[place] || 0));
    }),
  };
};

/* A table of numbers as a picture, with names along its sides where there is room for them */
const MAX_NAMES = 60;
const drawMap = (part, rows, columns, at, { isSigned = false, beside = [], over = [] } = {}) => {
  const canvas = part("map");
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  const paper = rgb(colour("--paper")), up = rgb(colour("--c0")), down = rgb(colour("--c1")), none = rgb(colour("--rule"));
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const value = at(row, column);
      const tone = isSigned && value < 0 ? down : up;
      const drawn = Number.isNaN(value) ? none : mix(paper, tone, Math.min(1, Math.abs(value)));
      image.data.set([...drawn, 255], 4 * (row * columns + column));
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  const names = (list) => (list.length <= MAX_NAMES ? list : []).map((name) => make("span", named(name)));
  part("beside").replaceChildren(...names(beside));
  part("over").replaceChildren(...names(over));
};

const select = (label, options, onChange) => {
  const box = make("label", label);
  const field = make("select");
  options.forEach((option, place) => {
    const item = make("option", option);
    item.value = place;
    field.append(item);
  });
  field.addEventListener("change", () => onChange(Number(field.value)));
  box.append(field);
  return [box, field];
};

/* Names with a bar each for how probable they are */
const optionLines = (options) => options.map(([piece, p]) => {
  const line = make("div");
  const bar = make("meter");
  bar.max = 1;
  bar.value = p;
  line.append(bar, " ", make("bdi", piece), ` ${(100 * p).toFixed(1)} %`);
  return line;
});

const within = (view, model) => {
  const column = document.querySelector(`[data-view="${view}"][data-model="${model}"]`);
  const part = (name) => column && column.querySelector(`[data-part="${name}"]`);
  return { column, part };
};
