/* Tabs, the linked text, maps of units and attention, and figures saved as SVG. Everything drawn is in the page. */
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };

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

  /* Numbers */
  const unpack = async ({ data, shape, low, high }) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return { bytes: new Uint8Array(await new Response(stream).arrayBuffer()), shape, low, high };
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rgb = (hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
  const mix = (from, to, share) => from.map((value, place) => Math.round(value + (to[place] - value) * share));

  /* A text whose tokens can have the focus, one at a time */
  const strip = (box, tokens, onFocus) => {
    box.replaceChildren(...tokens.map((token) => make("span", token)));
    const spans = [...box.children];
    let current = 0;
    spans.forEach((span, place) => { span.tabIndex = place === 0 ? 0 : -1; });
    const choose = (place) => {
      spans[current].classList.remove("is-current");
      spans[current].tabIndex = -1;
      current = Math.max(0, Math.min(place, spans.length - 1));
      spans[current].classList.add("is-current");
      spans[current].tabIndex = 0;
      onFocus(current);
    };
    box.addEventListener("mouseover", (event) => {
      const place = spans.indexOf(event.target);
      if (place >= 0) choose(place);
    });
    box.addEventListener("focusin", (event) => choose(spans.indexOf(event.target)));
    box.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: spans.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      choose(moves[event.key]);
      spans[current].focus();
    });
    return {
      choose,
      shade: (shares, name = "--accent") => spans.forEach((span, place) => {
        const share = shares[place];
        span.style.backgroundColor = share > 0.004
          ? `color-mix(in srgb, var(${name}) ${(100 * Math.min(1, share)).toFixed(0)}%, transparent)` : "";
      }),
      shadeSigned: (values) => spans.forEach((span, place) => {
        const value = values[place];
        const name = value < 0 ? "--c1" : "--c0";
        span.style.backgroundColor = value === undefined ? ""
          : `color-mix(in srgb, var(${name}) ${(85 * Math.min(1, Math.abs(value))).toFixed(0)}%, transparent)`;
      }),
    };
  };

  /* A table of bytes as a picture */
  const drawMap = (canvas, rows, columns, at, isSigned) => {
    canvas.width = columns;
    canvas.height = rows;
    const image = new ImageData(columns, rows);
    const paper = rgb(colour("--paper")), up = rgb(colour("--c0")), down = rgb(colour("--c1"));
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const value = at(row, column);
        const tone = isSigned && value < 0 ? down : up;
        image.data.set([...mix(paper, tone, Math.min(1, Math.abs(value))), 255], 4 * (row * columns + column));
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
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

  const within = (view, model) => {
    const column = document.querySelector(`[data-view="${view}"][data-model="${model}"]`);
    const part = (name) => column && column.querySelector(`[data-part="${name}"]`);
    return { column, part };
  };

  /* What a token did, in one card: its cost, what was expected, gates and states, where it looked */
  const describe = (card, model, place) => {
    const title = make("h4", model.tokens[place]);
    const list = make("dl");
    const say = (term, ...facts) => {
      const dd = make("dd");
      dd.append(...facts);
      list.append(make("dt", term), dd);
    };
    if (model.bits[place] !== null && model.bits[place] !== undefined) say("cost", `${model.bits[place]} bits`);
    const options = (list_) => list_.map(([piece, p]) => {
      const line = make("div");
      const bar = make("meter");
      bar.max = 1;
      bar.value = p;
      const word = make("bdi", piece);
      line.append(bar, " ", word, ` ${(100 * p).toFixed(1)} %`);
      return line;
    });
    const [here, next] = [place > 0 && model.expected[place - 1], model.expected[place]];
    if (here && here.length) say("expected here", ...options(here));
    if (next && next.length) say(model.task === "label" ? "answers" : "expected next", ...options(model.task === "label" ? next : next.slice(0, 3)));
    for (const layer of model.insides) {
      const [steps, units] = layer.shape;
      if (place >= steps) continue;
      const row = layer.bytes.subarray(place * units, (place + 1) * units);
      const value = (byte) => layer.low + (byte / 255) * (layer.high - layer.low);
      if (layer.what === "belief") {
        const best = row.indexOf(Math.max(...row));
        say(layer.name, `state ${best + 1}: ${(100 * value(row[best])).toFixed(0)} %`);
      } else if (units === 1) say(layer.name, value(row[0]).toFixed(0));
      else {
        const mean = row.reduce((sum, byte) => sum + value(byte), 0) / units;
        say(layer.name, `${mean.toFixed(2)} on average, ${value(Math.min(...row)).toFixed(2)} to ${value(Math.max(...row)).toFixed(2)}`);
      }
    }
    for (const map of model.maps) {
      const [heads, steps, seen] = map.shape;
      if (place >= steps || map.kind === "self") continue;
      const names = map.kind === "cross" ? model.source : model.tokens;
      const sums = new Float64Array(seen);
      for (let head = 0; head < heads; head += 1) {
        for (let s = 0; s < seen; s += 1) sums[s] += (map.bytes[(head * steps + place) * seen + s] / 255) ** 2 / heads;
      }
      const order = [...sums.keys()].sort((a, b) => sums[b] - sums[a]).slice(0, 3).filter((s) => sums[s] > 0.02);
      say(`looks at (${map.name})`, order.map((s) => `${names[s]} ${(100 * sums[s]).toFixed(0)} %`).join(", "));
    }
    card.replaceChildren(title, list);
  };

  const reading = (model, number) => {
    const { column, part } = within("reading", number);
    if (!column || !part("tokens")) return;
    const text = strip(part("tokens"), model.tokens, (place) => describe(part("card"), model, place));
    text.shade(model.bits.map((bits) => (bits === null ? 0 : bits / 10)), "--s7");
    const first = Math.min(1, model.tokens.length - 1);
    text.choose(first);
  };

  const inside = (model, number) => {
    const { column, part } = within("inside", number);
    if (!column || !part("controls") || !model.insides.length) return;
    let layer = model.insides[0], unit = 0;
    const text = strip(part("tokens"), model.tokens, (place) => { readout.textContent = said(place); });
    const readout = make("output");
    const value = (place, u) => {
      const [steps, units] = layer.shape;
      return place < steps ? layer.low + (layer.bytes[place * units + u] / 255) * (layer.high - layer.low) : undefined;
    };
    const said = (place) => {
      const found = value(place, unit);
      return found === undefined ? "" : `${model.tokens[place]}: ${found.toFixed(3)}`;
    };
    const scale = () => Math.max(Math.abs(layer.low), Math.abs(layer.high)) || 1;
    const draw = () => {
      const [steps, units] = layer.shape;
      text.shadeSigned(model.tokens.map((_, place) => {
        const found = value(place, unit);
        return found === undefined ? undefined : found / scale();
      }));
      drawMap(part("map"), units, steps, (row, step) => value(step, row) / scale(), true);
      which.value = unit;
      which.max = units - 1;
    };
    const [chooser, field] = select("Show", model.insides.map((each) => each.name), (place) => {
      layer = model.insides[place];
      unit = Math.min(unit, layer.shape[1] - 1);
      draw();
    });
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
        layer = model.insides[Number(button.dataset.layer)];
        unit = Number(button.dataset.unit);
        draw();
        part("tokens").scrollIntoView({ block: "nearest" });
      });
    }
    document.addEventListener("redraw", draw);
    draw();
  };

  const attention = (model, number) => {
    const { column, part } = within("attention", number);
    if (!column || !part("controls") || !model.maps.length) return;
    let map = model.maps.find((each) => each.kind !== "self") || model.maps[0];
    let head = -1, place = model.tokens.length - 1;
    const weight = (t, s) => {
      const [heads, steps, seen] = map.shape;
      const one = (h) => (map.bytes[(h * steps + t) * seen + s] / 255) ** 2;
      if (head >= 0) return one(head);
      let sum = 0;
      for (let h = 0; h < heads; h += 1) sum += one(h);
      return sum / heads;
    };
    const names = (side) => (side === "rows" ? map.kind === "self" && model.source.length : map.kind !== "causal" && model.source.length)
      ? model.source : model.tokens;
    let text, seenText;
    const look = (chosen) => {
      place = Math.min(chosen, map.shape[1] - 1);
      const shares = Array.from({ length: map.shape[2] }, (_, s) => weight(place, s));
      (seenText || text).shade(shares);
    };
    const build = () => {
      const [rows, columns] = [names("rows"), names("columns")];
      text = strip(part("tokens"), rows, look);
      const other = part("source");
      other.hidden = rows === columns;
      seenText = rows === columns ? null : strip(other, columns, () => {});
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
      drawMap(part("map"), steps, seen, (t, s) => Math.sqrt(weight(t, s)), false);
      look(place);
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
    part("controls").append(chooser, box);
    part("map").addEventListener("click", (event) => {
      text.choose(Math.min(map.shape[1] - 1, Math.floor((event.offsetY / part("map").clientHeight) * map.shape[1])));
    });
    document.addEventListener("redraw", draw);
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
      drawMap(part("map"), rows, columns, (r, c) => (map.low + (map.bytes[r * columns + c] / 255) * (map.high - map.low)) / most, true);
    };
    document.addEventListener("redraw", draw);
    draw();
  };

  /* Figures as SVG files: the style they have here goes with them, as attributes, since the page allows no inline style */
  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size",
    "font-weight", "text-anchor", "text-decoration", "display"];
  const asSvg = (figure) => {
    const canvas = figure.querySelector("canvas");
    if (canvas) {
      const [w, h] = [canvas.clientWidth, canvas.clientHeight];
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}"><image width="${w}" height="${h}" `
        + `preserveAspectRatio="none" image-rendering="pixelated" href="${canvas.toDataURL()}"/></svg>`;
    }
    const svg = figure.querySelector("svg");
    const copy = svg.cloneNode(true);
    const [from, to] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
    from.forEach((element, place) => {
      const style = getComputedStyle(element);
      for (const name of KEPT) to[place].setAttribute(name, style.getPropertyValue(name));
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    return new XMLSerializer().serializeToString(copy);
  };
  const savable = () => {
    for (const figure of document.querySelectorAll("figure")) {
      if (!figure.querySelector("svg, canvas")) continue;
      const button = make("button", "Save as SVG", "save");
      button.type = "button";
      button.addEventListener("click", () => {
        const link = make("a");
        link.href = URL.createObjectURL(new Blob([asSvg(figure)], { type: "image/svg+xml" }));
        const view = figure.closest("[data-view]");
        link.download = `${view ? view.dataset.view : "figure"}.svg`;
        link.click();
        URL.revokeObjectURL(link.href);
      });
      figure.append(button);
    }
  };

  const begin = async () => {
    for (let number = 0; find(`model-${number}`); number += 1) {
      const model = JSON.parse(find(`model-${number}`).textContent);
      const opened = async (each) => ({ ...each, ...(await unpack(each)) });
      model.insides = await Promise.all(model.inside.map(opened));
      model.maps = await Promise.all(model.attention.map(opened));
      reading(model, number);
      inside(model, number);
      attention(model, number);
      await positions(number);
    }
    savable();
    if (links.length) open(links.find((link) => link.hash === location.hash) || links[0]);
    document.documentElement.dataset.ready = "yes";
  };
  find("theme").addEventListener("click", () => document.dispatchEvent(new Event("redraw")));
  begin();
})();
