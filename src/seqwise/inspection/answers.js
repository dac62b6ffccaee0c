/* What was answered to a text, and why: words with what each did for the answer, and words with their tags. */
const signed = (value) => `${Number(value.toFixed(2)) < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`; // no sign of nothing

/* A text for each way to ask, all of one answer at a time */
const evidence = (model, number) => {
  const { column, part } = within("answer", number);
  const found = model.evidence;
  if (!column || !found) return;
  const readout = make("output");
  let answer = 0, place = 0;
  const tell = (at) => {
    place = at;
    const said = found.methods.map(({ name, values }) => `${name} ${signed(values[answer][at])}`);
    readout.textContent = found.words.length ? `${found.words[at]}: ${said.join(", ")}` : "";
  };
  const texts = found.methods.map((_, at) => strip(part(`method-${at}`), found.words, tell, { side: "words" }));
  for (const text of texts) text.mark(found.beginsText, "begins-text");
  const most = (name) => Math.max(1e-9, ...models.flatMap((each) => (each.evidence ? each.evidence.methods : []))
    .filter((method) => method.name === name).flatMap((method) => method.values.flat().map(Math.abs)));
  const draw = () => {
    found.methods.forEach(({ name, values, elsewhere }, at) => {
      const scale = most(name);
      texts[at].shadeSigned(values[answer].map((value) => value / scale));
      texts[at].setBelow(values[answer].map(signed));
      const sum = signed(values[answer].reduce((all, value) => all + value, 0));
      const rest = elsewhere.length ? `, and ${signed(elsewhere[answer])} elsewhere` : "";
      part(`sum-${at}`).textContent = `all words together ${sum}${rest}`;
    });
    part("score").textContent = found.told[answer];
    for (const box of column.querySelectorAll("[data-answer]")) box.hidden = Number(box.dataset.answer) !== answer;
    tell(place);
  };
  if (found.answers.length > 1) {
    part("controls").append(select("What speaks for", found.answers, (at) => {
      answer = at;
      draw();
    })[0]);
  }
  part("controls").append(readout);
  if (part("pooling")) {
    const looked = strip(part("pooling"), model.pieces.map((piece) => piece.trim() || piece), () => {});
    const strongest = Math.max(...found.pooling);
    looked.shade(found.pooling.map((share) => share / strongest));
    looked.setBelow(found.pooling.map(perCent));
  }
  draw();
};

/* Tags below their words; what a chosen one rests on; what a CRF lets follow what */
const tagging = (model, number) => {
  const { column, part } = within("answer", number);
  const found = model.tagging;
  if (!column || !found) return;
  const kinds = [...new Set(models.flatMap((each) => (each.tagging ? each.tagging.words : [])).map((word) => word.kind))]
    .filter((kind) => kind);
  const WAYS = {
    "kind of tag": ({ kind }) => [`--c${kinds.indexOf(kind) % 8}`, kind ? 0.8 : 0],
    "doubt (1 − probability)": ({ probability }) => ["--s7", 1 - probability],
    "cost of the tag that was wanted": ({ bits }) => ["--s7", bits === "impossible" ? 1 : (bits || 0) / 8],
  };
  const ways = Object.keys(WAYS).slice(0, found.words.some(({ wanted }) => wanted !== null) ? 3 : 2);
  const names = found.words.map(({ word }) => word);
  let rests;
  const tell = (at) => {
    const { word, tag, options, wanted, bits } = found.words[at];
    const list = make("dl");
    const say = (term, ...facts) => {
      const dd = make("dd");
      dd.append(...facts);
      list.append(make("dt", term), dd);
    };
    say("tag", tag);
    if (wanted !== null) say("wanted", wanted === tag ? "the same" : wanted);
    if (bits === "impossible") say("cost", "without end: training never had this tag");
    else if (bits !== null) say("cost", `${bits} bits`);
    say("alternatives", ...optionLines(options));
    part("tag-card").replaceChildren(make("h4", word), list);
    if (!rests) return;
    const row = found.restsOn[at];
    const strongest = Math.max(...found.restsOn.flat().map(Math.abs)) || 1;
    rests.shadeSigned(row.map((value) => value / strongest));
    rests.setBelow(row.map(signed));
    part("rests-on").textContent = `${word}, tagged ${tag}`;
  };
  if (part("rests")) rests = strip(part("rests"), names, () => {}, { side: "rests" });
  const text = strip(part("tagged"), names, tell, { side: "tagged" });
  text.setBelow(found.words.map(({ tag, probability }) => `${tag}\n${perCent(probability)}`));
  const isWrong = found.words.map(({ tag, wanted }) => wanted !== null && wanted !== tag);
  text.mark(isWrong, "is-wrong");
  const paint = (way) => text.colour(found.words.map(WAYS[ways[way]]));
  part("tag-controls").append(select("Colour by", ways, paint)[0]);
  paint(0);
  const first = isWrong.includes(true) ? isWrong.indexOf(true) : found.words.findIndex(({ kind }) => kind);
  text.show(Math.max(0, first));
  if (found.transitions) transitions(found.transitions, part);
};

const transitions = ({ tags, scores }, part) => {
  const most = Math.max(...scores.flat().map((score) => Math.abs(score || 0))) || 1;
  const draw = () => drawMap(part, tags.length, tags.length, (row, column) => (scores[row][column] === null
    ? NaN : scores[row][column] / most), { isSigned: true, beside: tags, over: tags });
  const at = (size, offset) => Math.min(tags.length - 1, Math.max(0, Math.floor((offset / size) * tags.length)));
  part("map").addEventListener("mousemove", (event) => {
    const row = at(part("map").clientHeight, event.offsetY), column = at(part("map").clientWidth, event.offsetX);
    const score = scores[row][column] === null ? "ruled out" : signed(scores[row][column]);
    part("transition").textContent = `${tags[row]}, then ${tags[column]}: ${score}`;
  });
  document.addEventListener("redraw", draw);
  draw();
};
