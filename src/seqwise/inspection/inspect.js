/* The page itself: tabs, what was read, units, attention, positions. Everything drawn is in the page. */
/* Tabs */
const links = [...document.querySelectorAll("nav a")];
const open = (link, { focus = false } = {}) => {
  for (const other of links) {
    const isOpen = other === link;
    other.setAttribute("aria-selected", isOpen);
    other.tabIndex = isOpen ? 0 : -1;
    find(other.hash.slice(1)).hidden = !isOpen;
  }
  if (focus) link.focus();
  document.dispatchEvent(new Event("redraw"));
};
document.querySelector("nav ul").setAttribute("role", "tablist");
links.forEach((link, place) => {
  link.setAttribute("role", "tab");
  link.setAttribute("aria-controls", link.hash.slice(1));
  find(link.hash.slice(1)).setAttribute("role", "tabpanel");
  link.parentElement.setAttribute("role", "presentation");
  link.addEventListener("click", (event) => {
    event.preventDefault();
    open(link);
  });
  link.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: links.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    open(links[(moves[event.key] + links.length) % links.length], { focus: true });
  });
});

/* The number of a unit at a step, and where a token looks: a row of attention belongs to the token that was read, one
   of a target that looks at its source to the token that is written, which is the next */
const valueOf = (layer, place, unit) => {
  const [steps, units] = layer.shape;
  if (place < 0 || place >= steps) return undefined;
  return layer.low[unit] + (layer.bytes[place * units + unit] / 255) * (layer.high[unit] - layer.low[unit]);
};
const shiftOf = (map) => (map.kind === "cross" ? 1 : 0);
const weightOf = (map, head, row, seen) => {
  const [heads, rows, columns] = map.shape;
  const one = (h) => (map.bytes[(h * rows + row) * columns + seen] / 255) ** 2;
  if (head >= 0) return one(head);
  let sum = 0;
  for (let h = 0; h < heads; h += 1) sum += one(h);
  return sum / heads;
};
const mostSeen = (model, map, head, row) => {
  const names = map.kind === "causal" || !model.source.length ? model.pieces : model.source;
  const shares = Array.from({ length: map.shape[2] }, (_, seen) => weightOf(map, head, row, seen));
  const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, 3);
  return order.filter((seen) => shares[seen] > 0.02).map((seen) => `${named(names[seen])} ${perCent(shares[seen])}`).join(", ");
};

/* What a token did, in one card: its cost, what was expected, gates and states, where it looked */
const describe = (card, model, place) => {
  const list = make("dl");
  const say = (term, ...facts) => {
    const dd = make("dd");
    dd.append(...facts);
    list.append(make("dt", term), dd);
  };
  const bits = model.bits[place];
  if (bits === "impossible") say("cost", "without end: the model held it for impossible");
  else if (bits !== null && bits !== undefined) say("cost", `${bits} bits`);
  const [here, next] = [place > 0 && model.expected[place - 1], model.expected[place]];
  if (here && here.length && !model.answers) say("expected here", ...optionLines(here));
  if (next && next.length) {
    if (model.answers) say("answers", ...optionLines(next));
    else say("expected next", ...optionLines(next.slice(0, 3)));
  }
  for (const layer of model.insides) {
    if (layer.side !== "pieces" || place >= layer.shape[0]) continue;
    const values = Array.from({ length: layer.shape[1] }, (_, unit) => valueOf(layer, place, unit));
    const best = values.indexOf(Math.max(...values));
    if (layer.what === "belief") say(layer.name, `state ${best}: ${perCent(values[best])}`);
    else if (layer.what === "tokens used") say(layer.name, values[0].toFixed(0));
    else if (values.length <= 6) say(layer.name, values.map(digits).join(", "));
    else {
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      say(layer.name, `${digits(mean)} on average, ${digits(Math.min(...values))} to ${digits(Math.max(...values))}`);
    }
  }
  for (const map of model.maps) {
    const row = place - shiftOf(map);
    if (row < 0 || row >= map.shape[1] || (map.kind === "self" && model.source.length)) continue;
    say(map.verb === "looks at" ? `looks at (${map.name})` : map.verb, mostSeen(model, map, -1, row));
  }
  card.replaceChildren(make("h4", named(model.pieces[place])), list);
};

const reading = (model, number) => {
  const { column, part } = within("reading", number);
  if (!column || !part("tokens")) return;
  const text = strip(part("tokens"), model.pieces, (place) => describe(part("card"), model, place));
  const most = Math.max(4, ...models.flatMap((each) => each.bits.filter((bits) => typeof bits === "number")));
  text.shade(model.bits.map((bits) => (bits === "impossible" ? 1 : Math.max(0, bits) / most)), "--s7");
  const answered = model.answers ? model.expected.findIndex((options) => options.length) : -1;
  text.show(answered >= 0 ? answered : Math.min(1, model.pieces.length - 1));
  if (part("source")) strip(part("source"), model.source, () => {}, { side: "source" });
};

const inside = (model, number) => {
  const { column, part } = within("inside", number);
  if (!column || !part("controls") || !model.insides.length) return;
  let layer, unit = 0, place = 0, text, pieces;
  const readout = make("output");
  const tell = (at) => {
    place = at;
    const value = valueOf(layer, at, unit);
    readout.textContent = value === undefined ? "" : `${named(pieces[at])}: ${digits(value)}`;
  };
  const draw = () => {
    const [steps, units] = layer.shape;
    const alike = models.flatMap((each) => each.insides.filter((other) => other.name === layer.name));
    const most = Math.max(...alike.flatMap((each) => [...each.low, ...each.high].map(Math.abs))) || 1;
    text.shadeSigned(pieces.map((_, at) => (valueOf(layer, at, unit) || 0) / most));
    drawMap(part, units, steps, (row, step) => valueOf(layer, step, row) / most, { isSigned: true, over: pieces });
    which.value = unit;
    which.max = units - 1;
    tell(place);
  };
  const open = (at) => {
    layer = model.insides[at];
    pieces = model[layer.side];
    unit = Math.min(unit, layer.shape[1] - 1);
    place = Math.min(place, pieces.length - 1);
    text = strip(part("tokens"), pieces, tell, { side: layer.side });
    draw();
  };
  const [chooser, field] = select("Show", model.insides.map((each) => each.name), open);
  const box = make("label", "unit");
  const which = make("input");
  which.type = "number";
  which.min = 0;
  which.addEventListener("input", () => {
    unit = Math.max(0, Math.min(Number(which.value) || 0, layer.shape[1] - 1));
    draw();
  });
  box.append(which);
  part("controls").append(chooser, box, readout);
  part("map").addEventListener("click", (event) => {
    unit = Math.min(layer.shape[1] - 1, Math.floor((event.offsetY / part("map").clientHeight) * layer.shape[1]));
    draw();
  });
  for (const button of column.querySelectorAll("button[data-layer]")) {
    button.addEventListener("click", () => {
      field.value = button.dataset.layer;
      unit = Number(button.dataset.unit);
      open(Number(button.dataset.layer));
      part("tokens").scrollIntoView({ block: "nearest" });
    });
  }
  document.addEventListener("redraw", draw);
  open(0);
};

const attention = (model, number) => {
  const { column, part } = within("attention", number);
  if (!column || !part("controls") || !model.maps.length) return;
  let map = model.maps.find((each) => each.kind !== "self") || model.maps[0];
  let head = -1, row = 0, text, seenText;
  const readout = make("output");
  const look = (at) => {
    row = Math.min(at, map.shape[1] - 1);
    (seenText || text).shade(Array.from({ length: map.shape[2] }, (_, seen) => Math.sqrt(weightOf(map, head, row, seen))));
    readout.textContent = `${named(rows[row])} ${map.verb} ${mostSeen(model, map, head, row)}`;
  };
  let rows, columns;
  const build = () => {
    const ofSource = map.kind === "self" && model.source.length > 0;
    rows = ofSource ? model.source : model.pieces.slice(shiftOf(map));
    columns = map.kind === "causal" || !model.source.length ? model.pieces : model.source;
    const [rowSide, shift] = [ofSource ? "source" : "pieces", shiftOf(map)];
    text = strip(part("tokens"), rows, look, { side: rowSide, shift });
    seenText = null;
    if (map.kind === "cross") seenText = strip(part("source"), columns, () => {}, { side: "source" });
    else part("source").hidden = true;
    heads.replaceChildren(...["all heads", ...Array.from({ length: map.shape[0] }, (_, h) => `head ${h + 1}`)].map((name, at) => {
      const option = make("option", name);
      option.value = at - 1;
      return option;
    }));
    head = -1;
    draw();
  };
  const draw = () => {
    const [, steps, seen] = map.shape;
    drawMap(part, steps, seen, (t, s) => Math.sqrt(weightOf(map, head, t, s)), { beside: rows.slice(0, steps), over: columns.slice(0, seen) });
    look(row);
  };
  const [chooser, field] = select("Layer", model.maps.map((each) => each.name), (at) => {
    map = model.maps[at];
    build();
  });
  field.value = model.maps.indexOf(map);
  const [box, heads] = select("Head", [], (at) => {
    head = at;
    draw();
  });
  part("controls").append(chooser, box, readout);
  part("map").addEventListener("click", (event) => {
    text.choose(Math.min(map.shape[1] - 1, Math.floor((event.offsetY / part("map").clientHeight) * map.shape[1])));
  });
  document.addEventListener("redraw", draw);
  row = map.shape[1] - 1;
  build();
};

const positions = async (number) => {
  const { part } = within("positions", number);
  const data = find(`positions-${number}`);
  if (!data) return;
  const map = await unpack(JSON.parse(data.textContent));
  const draw = () => {
    const [rows, columns] = map.shape;
    const most = Math.max(Math.abs(map.low), Math.abs(map.high)) || 1;
    const at = (row, column) => (map.low + (map.bytes[row * columns + column] / 255) * (map.high - map.low)) / most;
    drawMap(part, rows, columns, at, { isSigned: true });
  };
  document.addEventListener("redraw", draw);
  draw();
};

const begin = async () => {
  for (let number = 0; find(`model-${number}`); number += 1) {
    const model = JSON.parse(find(`model-${number}`).textContent);
    const opened = async (each) => ({ ...each, ...(await unpack(each)) });
    model.insides = await Promise.all(model.inside.map(opened));
    model.maps = await Promise.all(model.attention.map(opened));
    models.push(model);
  }
  for (const [number, model] of models.entries()) {
    reading(model, number);
    tagging(model, number);
    evidence(model, number);
    inside(model, number);
    attention(model, number);
    await positions(number);
  }
  choosePanels();
  savable();
  if (links.length) open(links.find((link) => link.hash === location.hash) || links[0]);
  document.documentElement.dataset.ready = "yes";
};
find("theme").addEventListener("click", () => document.dispatchEvent(new Event("redraw")));
begin().catch((error) => {
  const told = make("p", `This browser could not draw the page (${error.message}); a newer one can.`, "warning");
  document.querySelector("main").prepend(told);
});
