/* Figures as SVG files: the style they have here goes with them, as attributes, since the page allows no inline style */
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size",
  "font-weight", "text-anchor", "text-decoration", "display"];
const ROOM = 100;
const NAMESPACE = "http://www.w3.org/2000/svg";
const elsewhere = document.implementation.createDocument(NAMESPACE, "svg");  // where pictures are not loaded
const drawn = (tag, attributes, text) => {
  const element = elsewhere.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
/* Texts and maps: each piece where it stands on the page, on what lies behind it */
const pictureOf = (figure) => {
  const frame = figure.getBoundingClientRect();
  const svg = drawn("svg", {});
  let [wide, high] = [0, 0];
  const cover = (x, y) => { [wide, high] = [Math.max(wide, x), Math.max(high, y)]; };
  for (const canvas of figure.querySelectorAll("canvas")) {
    const at = canvas.getBoundingClientRect();
    const place = { x: at.x - frame.x, y: at.y - frame.y, width: at.width, height: at.height };
    cover(place.x + place.width, place.y + place.height);
    svg.append(drawn("image", { ...place, preserveAspectRatio: "none", "image-rendering": "pixelated", href: canvas.toDataURL() }));
  }
  for (const span of figure.querySelectorAll("span")) {
    const style = getComputedStyle(span), below = (span.dataset.below || "").split("\n").filter((line) => line);
    for (const [line, at] of [...span.getClientRects()].entries()) {
      const [x, y] = [at.x - frame.x, at.y - frame.y];
      cover(x + at.width, y + at.height);
      svg.append(drawn("rect", { x, y, width: at.width, height: at.height, fill: style.backgroundColor }));
      if (line > 0) continue;
      const upright = style.writingMode.startsWith("vertical");
      const start = upright ? { transform: `translate(${x + at.width * 0.3} ${y}) rotate(90)` } : { x, y: y + (below.length ? 16 : at.height * 0.75) };
      const font = { "font-family": style.fontFamily, "font-size": style.fontSize, fill: style.color, "xml:space": "preserve" };
      svg.append(drawn("text", { ...start, ...font }, span.textContent));
      below.forEach((line, row) => {
        const y0 = y + at.height - (below.length - row - 0.75) * 10;
        svg.append(drawn("text", { x, y: y0, "font-family": style.fontFamily, "font-size": "9px", fill: colour("--soft") }, line));
      });
    }
  }
  svg.setAttribute("width", wide + 10);
  svg.setAttribute("height", high + 10);
  return svg;
};
const copyOf = (svg) => {
  const copy = svg.cloneNode(true);
  const [from, to] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const name of KEPT) to[place].setAttribute(name, style.getPropertyValue(name));
  });
  if (svg.classList.contains("chart")) {  // on the page, names may stand out to the right
    const [x, y, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    copy.setAttribute("viewBox", [x, y, width + ROOM, height].join(" "));
  }
  return copy;
};
/* Small pictures: each where it stands, with what it shows of others, which would be missing in a file of its own */
const tilesOf = (figure) => {
  const frame = figure.getBoundingClientRect();
  const svg = drawn("svg", {});
  let [wide, high] = [0, 0];
  for (const item of figure.querySelectorAll("li")) {
    const seen = item.querySelector("svg.seen, img"), at = seen.getBoundingClientRect();
    const place = { x: at.x - frame.x, y: at.y - frame.y, width: at.width, height: at.height };
    let copy = drawn("image", { href: seen.src, "image-rendering": "pixelated" });
    if (seen.tagName !== "IMG") {
      copy = copyOf(seen);
      for (const use of copy.querySelectorAll("use")) use.replaceWith(find(use.getAttribute("href").slice(1)).cloneNode());
      for (const image of copy.querySelectorAll("image")) image.removeAttribute("id");
    }
    for (const [name, value] of Object.entries(place)) copy.setAttribute(name, value);
    svg.append(copy);
    for (const line of item.querySelectorAll(".name, small")) {
      const box = line.getBoundingClientRect(), style = getComputedStyle(line);
      const font = { "font-family": style.fontFamily, "font-size": style.fontSize, fill: style.color };
      svg.append(drawn("text", { x: box.x - frame.x, y: box.bottom - frame.y - 4, ...font }, line.textContent));
    }
    const end = item.getBoundingClientRect();
    [wide, high] = [Math.max(wide, end.right - frame.x), Math.max(high, end.bottom - frame.y)];
  }
  svg.setAttribute("width", wide);
  svg.setAttribute("height", high);
  return svg;
};
const asSvg = (figure) => {
  const chart = figure.querySelector("svg");
  const svg = figure.classList.contains("pictures") ? tilesOf(figure) : chart ? copyOf(chart) : pictureOf(figure);
  svg.setAttribute("xmlns", NAMESPACE);
  svg.prepend(drawn("rect", { width: "100%", height: "100%", fill: colour("--paper") }));
  return new XMLSerializer().serializeToString(svg);
};
const savable = () => {
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.querySelector("svg, canvas, .strip-text")) continue;
    const button = make("button", "Save as SVG", "save");
    button.type = "button";
    const view = figure.closest("[data-view]");
    const all = [...view.querySelectorAll("figure")];
    const name = [view.dataset.view, Number(view.dataset.model) + 1, all.indexOf(figure) + 1].join("-");
    button.addEventListener("click", () => {
      const link = make("a");
      link.href = URL.createObjectURL(new Blob([asSvg(figure)], { type: "image/svg+xml" }));
      link.download = `${name}.svg`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    figure.append(button);
  }
};
