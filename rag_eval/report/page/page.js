"use strict";
(async () => {
const $ = (id) => document.getElementById(id);

/** An element with attributes and children; texts become text nodes, never markup. */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// Packed data

async function inflate(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

async function inflateJson(text) {
  return JSON.parse(new TextDecoder().decode(await inflate(text)));
}

const meta = JSON.parse($("meta").textContent);
const NOT_APPLICABLE = -1, FAILED = -2;
const columns = meta.columns, RQS = 0;
const count = meta.cases, rowCount = meta.rows;
const blockElements = [...document.querySelectorAll("script.texts")];
const blocks = new Map();

function block(number) {
  if (!blocks.has(number)) blocks.set(number, inflateJson(blockElements[number].textContent));
  return blocks.get(number);
}

async function textsOf(row) {
  return (await block(data.block[row]))[data.position[row]] || { c: [] };
}

/** The numbers: columns of 32 bits, then of 16 bits, then of 8 bits. */
function readNumbers(buffer) {
  let offset = 0;
  const take = (Kind, length) => {
    const column = new Kind(buffer, offset, length);
    offset += column.byteLength;
    return column;
  };
  const found = {};
  for (const name of ["row", "slice", "block", "position"]) found[name] = take(Uint32Array, rowCount);
  found.rowOf = take(Uint32Array, count);
  found.bot = take(Uint16Array, count);
  found.below = take(Uint16Array, count);
  found.values = columns.map(() => take(Int16Array, count));
  found.modes = take(Uint8Array, count);
  found.flags = take(Uint8Array, count);
  found.why = take(Uint8Array, rowCount);
  return found;
}

let data, queries, spread;
try {
  const [numbers, snippets] = await Promise.all(
    [inflate($("numbers").textContent), inflateJson($("queries").textContent)]);
  data = readNumbers(numbers);
  queries = snippets;
} catch (error) {
  const problem = $("problem");
  problem.textContent = "This browser cannot show the table of all cases; the cases with the lowest RQS are below. " +
    "A current Chrome, Edge, Firefox or Safari can.";
  problem.hidden = false;
  return;
}

/** Per row: the highest RQS of a bot minus the lowest, in ten thousandths; negative with fewer than two. */
spread = new Int16Array(rowCount).fill(-1);
{
  const low = new Int16Array(rowCount).fill(-1), high = new Int16Array(rowCount);
  const seen = new Uint16Array(rowCount);
  for (let i = 0; i < count; i++) {
    const value = data.values[RQS][i], row = data.rowOf[i];
    if (value < 0) continue;
    if (!seen[row]++) low[row] = high[row] = value;
    else {
      if (value < low[row]) low[row] = value;
      if (value > high[row]) high[row] = value;
    }
  }
  for (let row = 0; row < rowCount; row++) if (seen[row] > 1) spread[row] = high[row] - low[row];
}

// Words

const bot = (i) => meta.bots[data.bot[i]];
const modesOf = (i) => meta.modes.filter((_, bit) => data.modes[i] >> bit & 1);
const isBelow = (i, column) => data.below[i] >> column & 1;
const rowNumber = (i) => data.row[data.rowOf[i]];
const hash = (i) => `#row-${rowNumber(i)}-${data.bot[i] + 1}`;
const number = (value) => (Math.round(value / 100) / 100).toFixed(2);
const WHY = ["", "worst", "random", "worst, random"];
const why = (i) => WHY[data.why[data.rowOf[i]]];

function scoreText(column, value) {
  if (value === NOT_APPLICABLE) return "–";
  if (value === FAILED) return "failed";
  if (columns[column].id === "rubric") return value ? "PASS" : "FAIL";
  return number(value);
}

// The table's columns: id, heading, what a cell shows, what it is sorted by (numbers; -1 is last)

const METRICS = ["answer_correctness", "faithfulness", "answer_relevancy", "context_precision", "context_recall"];
const isNarrow = matchMedia("(max-width: 700px)").matches;
const shownAtFirst = new Set(isNarrow
  ? ["row", "query", "bot", "rqs", "mode", "why"]
  : ["row", "query", "bot", "rqs", "mode", "why", "rubric", ...METRICS]);

const table = [
  { id: "row", label: "Row", kind: "num", text: (i) => String(rowNumber(i)), key: (i) => rowNumber(i) },
  { id: "query", label: "Query", kind: "text", text: (i) => queries[data.rowOf[i]] },
  { id: "bot", label: "Bot", kind: "name", text: bot, key: (i) => data.bot[i] },
  ...columns.map((column, index) => ({
    id: column.id, label: column.label, kind: "num score", column: index,
    text: (i) => scoreText(index, data.values[index][i]), key: (i) => data.values[index][i],
  })),
  { id: "mode", label: "Failure mode", kind: "mode", text: (i) => modesOf(i).join(" | "),
    key: (i) => data.modes[i] & 8 ? 0 : data.modes[i] & 16 ? 1 : 2 + data.modes[i] },
];
if (meta.bots.length > 1) {
  table.push({ id: "spread", label: "Spread", title: "Highest minus lowest RQS of the bots on this row", kind: "num",
    text: (i) => spread[data.rowOf[i]] < 0 ? "–" : number(spread[data.rowOf[i]]), key: (i) => spread[data.rowOf[i]] });
}
if (meta.sliceBy) {
  table.push({ id: "slice", label: meta.sliceBy, kind: "name", text: (i) => meta.slices[data.slice[data.rowOf[i]]],
    key: (i) => data.slice[data.rowOf[i]] });
}
if (meta.flags.length) {
  table.push({ id: "flags", label: "Flags", kind: "name", key: (i) => data.flags[i],
    text: (i) => meta.flags.filter((_, bit) => data.flags[i] >> bit & 1).join(", ") });
}
if (data.why.some((reason) => reason)) {
  table.push({ id: "why", label: "Chosen as", kind: "name", text: why, key: (i) => data.why[data.rowOf[i]] });
}
if (!meta.hasTexts) table.splice(1, 1);
if (meta.bots.length === 1) shownAtFirst.delete("bot");
for (const each of table) each.isShown = shownAtFirst.has(each.id);

// Filters

const state = { bot: "", mode: "", metric: "", limit: null, slice: "", flag: "", why: "", differ: false, text: "",
  sort: "rqs", down: false };
let order = new Uint32Array(0);
let haystack = null;

function passes(i, words, metric, limit) {
  if (state.bot !== "" && data.bot[i] !== +state.bot) return false;
  if (state.mode !== "" && !(data.modes[i] >> +state.mode & 1)) return false;
  if (state.slice !== "" && data.slice[data.rowOf[i]] !== +state.slice) return false;
  if (state.flag !== "" && !(data.flags[i] >> +state.flag & 1)) return false;
  if (state.why !== "" && !(data.why[data.rowOf[i]] & +state.why)) return false;
  if (state.differ && spread[data.rowOf[i]] < 2000) return false;
  if (metric !== null) {
    if (metric < 0) { if (!data.below[i]) return false; }
    else if (limit === null) { if (!isBelow(i, metric)) return false; }
    else if (data.values[metric][i] < 0 || data.values[metric][i] >= limit) return false;
  }
  return words === "" || haystack[i].includes(words) || haystack.rows[data.rowOf[i]].includes(words);
}

function update() {
  const words = state.text === "" ? "" : state.text.toLowerCase();
  const metric = state.metric === "" ? null : +state.metric;
  const known = metric > 0 ? columns[metric].limit : null;
  const limit = state.limit === null || state.limit === known ? null : Math.round(state.limit * 10000);
  const found = new Uint32Array(count);
  let length = 0;
  for (let i = 0; i < count; i++) if (passes(i, words, metric, limit)) found[length++] = i;
  order = sorted(found.subarray(0, length));
  body.scrollTop = 0;
  current = 0;
  draw(true);
  const all = `${count.toLocaleString("en")} ${count === 1 ? "case" : "cases"}`;
  told.textContent = length === count ? all : `${length.toLocaleString("en")} of ${all}`;
  reset.hidden = length === count && !isFiltered();
}

const isFiltered = () => ["bot", "mode", "metric", "slice", "flag", "why", "text"].some((name) => state[name] !== "") ||
  state.differ;

/** By the chosen column, ties in the order of the input; cases without a value come last. */
function sorted(cases) {
  const column = table.find((each) => each.id === state.sort);
  const sign = state.down ? -1 : 1;
  if (!column.key) {
    const rank = queryRanks();
    return cases.sort((one, other) => sign * (rank[data.rowOf[one]] - rank[data.rowOf[other]]) || one - other);
  }
  const keys = new Int32Array(count);
  for (const i of cases) {
    const key = column.key(i);
    keys[i] = key < 0 ? 0x7fffffff : sign * key;
  }
  return cases.sort((one, other) => keys[one] - keys[other] || one - other);
}

let ranks = null;
function queryRanks() {
  if (!ranks) {
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    ranks = new Uint32Array(rowCount);
    [...queries.keys()].sort((one, other) => compare(queries[one], queries[other]))
      .forEach((row, rank) => { ranks[row] = rank; });
  }
  return ranks;
}

/** Every text once in lower case: those of the row, and the response and advice of each case. */
async function readHaystack() {
  if (haystack) return;
  const texts = new Array(count);
  texts.rows = new Array(rowCount);
  const firstCase = new Map();
  for (let i = 0; i < count; i++) firstCase.set(data.rowOf[i] * 65536 + data.bot[i], i);
  for (let row = 0; row < rowCount; row++) {
    const found = await textsOf(row);
    texts.rows[row] = [found.q, found.g, ...[found, ...found.c].flatMap((each) => (each.t || []).map((turn) => turn[1])), ...(found.k || [])].join("\n").toLowerCase();
    for (const each of found.c) {
      texts[firstCase.get(row * 65536 + each.b)] = [each.a, each.w].join("\n").toLowerCase();
    }
  }
  for (let i = 0; i < count; i++) texts[i] = texts[i] || "";
  haystack = texts;
}

// The table: only the rows in sight are there

const HEIGHT = 34;
const told = el("span", { id: "told", role: "status", "aria-live": "polite" });
const reset = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => resetFilters() }, "Clear filters");
const heads = el("tr");
const rows = el("tbody");
const body = el("div", { id: "rows", class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of cases",
  onscroll: () => requestAnimationFrame(() => draw(false)) });
const grid = el("table", { class: "grid", "aria-label": "Cases" }, el("thead", {}, heads), rows);
body.append(grid);
let first = -1;
let current = 0;

function draw(isNew) {
  const seen = Math.ceil((body.clientHeight || 600) / HEIGHT) + 12;
  const start = Math.max(0, Math.min(Math.floor(body.scrollTop / HEIGHT) - 6, order.length - seen));
  if (!isNew && start === first) return;
  const focused = document.activeElement && document.activeElement.closest("tr[data-at]");
  const at = focused ? +focused.dataset.at : -1;
  first = start;
  const shown = table.filter((column) => column.isShown);
  if (isNew) drawHeads(shown);
  const end = Math.min(order.length, start + seen);
  const lines = [spacer(start * HEIGHT, shown.length)];
  for (let position = start; position < end; position++) lines.push(line(position, shown));
  lines.push(spacer((order.length - end) * HEIGHT, shown.length));
  if (!order.length) {
    lines.push(el("tr", {}, el("td", { colspan: shown.length, class: "empty" }, "No case matches these filters.")));
  }
  rows.replaceChildren(...lines);
  grid.setAttribute("aria-rowcount", order.length + 1);
  if (at >= start && at < end) focusLine(at);
}

function spacer(height, span) {
  const cell = el("td", { colspan: span });
  cell.style.height = `${height}px`;
  const row = el("tr", { class: "space", "aria-hidden": "true" }, cell);
  row.hidden = height === 0;
  return row;
}

function drawHeads(shown) {
  heads.replaceChildren(...shown.map((column) => {
    const isSorted = state.sort === column.id;
    return el("th", { scope: "col", class: `${column.kind} c-${column.id}`, title: column.title,
      "aria-sort": isSorted ? (state.down ? "descending" : "ascending") : "none" },
    el("button", { type: "button", onclick: () => sortBy(column.id) }, column.label,
      el("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (state.down ? "▼" : "▲") : "")));
  }));
}

function sortBy(id) {
  state.down = state.sort === id ? !state.down : false;
  state.sort = id;
  update();
  heads.querySelector("[aria-sort=ascending] button, [aria-sort=descending] button")?.focus();
}

function line(position, shown) {
  const i = order[position];
  return el("tr", { "data-at": position, "aria-rowindex": position + 2, onclick: () => { location.hash = hash(i); } },
    ...shown.map((column) => cell(i, column, position)));
}

function cell(i, column, position) {
  const text = column.text(i);
  const node = el("td", { class: `${column.kind} c-${column.id}` });
  if (column.id === "row") {
    node.append(el("a", { href: hash(i), tabindex: position === current ? "0" : "-1",
      "aria-label": `Row ${text}, ${bot(i)}` }, text));
  } else if (column.column !== undefined) {
    const value = data.values[column.column][i];
    const isRed = isBelow(i, column.column) || (column.id === "rubric" && value === 0);
    node.append(isRed ? el("b", { class: "red", title: "below the threshold" }, text) : text);
    if (value < 0) node.classList.add("none");
  } else if (column.id === "mode") {
    const ok = data.modes[i] >> meta.modes.indexOf("OK") & 1;
    node.append(el("span", { class: ok ? "ok" : "bad" }, `${ok ? "✓" : "✗"} ${text}`));
  } else {
    if (column.id === "query") node.setAttribute("title", text);
    node.append(el("bdi", {}, text));
  }
  return node;
}

function focusLine(position) {
  current = Math.max(0, Math.min(position, order.length - 1));
  const top = current * HEIGHT;
  if (top < body.scrollTop) body.scrollTop = top;
  const room = body.clientHeight - 2 * HEIGHT;
  if (top > body.scrollTop + room) body.scrollTop = top - room;
  draw(false);
  for (const link of rows.querySelectorAll("a[tabindex='0']")) link.tabIndex = -1;
  const link = rows.querySelector(`tr[data-at='${current}'] a`);
  if (link) {
    link.tabIndex = 0;
    link.focus({ preventScroll: true });
  }
}

body.addEventListener("keydown", (event) => {
  const page = Math.floor(body.clientHeight / HEIGHT) - 2;
  const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
  if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    const isInside = event.target.closest("tr[data-at]");
    focusLine(isInside ? current + steps[event.key] : current);
  }
});

// The tools above the table

function select(name, label, options) {
  const choice = el("select", { id: `f-${name}`, onchange: () => { state[name] = choice.value; changed(name); } },
    el("option", { value: "" }, "All"), ...options.map(([value, text]) => el("option", { value }, text)));
  return el("label", {}, el("span", {}, label), choice);
}

function changed(name) {
  if (name === "metric") {
    const metric = state.metric;
    const limit = metric === "" || metric === "-1" ? null : columns[metric].limit ?? 0.5;
    state.limit = limit;
    limitInput.value = limit === null ? "" : limit;
    limitInput.parentNode.hidden = limit === null;
  }
  update();
}

const limitInput = el("input", { type: "number", min: "0", max: "1", step: "0.05", id: "f-limit", oninput: () => {
  state.limit = limitInput.value === "" ? null : +limitInput.value;
  update();
} });

let searching = 0;
const search = el("input", { type: "search", id: "f-text", autocomplete: "off", spellcheck: "false",
  placeholder: "Query, response, chunks …", oninput: async () => {
    const mine = ++searching;
    const wanted = search.value;
    if (wanted && !haystack) {
      told.textContent = "Reading the texts …";
      await readHaystack();
    }
    if (mine === searching) {
      state.text = wanted;
      update();
    }
  } });

const differ = el("input", { type: "checkbox", id: "f-differ", onchange: () => { state.differ = differ.checked; update(); } });

function resetFilters() {
  for (const name of ["bot", "mode", "metric", "slice", "flag", "why", "text"]) state[name] = "";
  state.limit = null;
  state.differ = differ.checked = false;
  for (const node of tools.querySelectorAll("select, input[type=search]")) node.value = "";
  limitInput.parentNode.hidden = true;
  update();
  search.focus();
}

function setFilter(name, value) {
  state[name] = value;
  $(`f-${name}`).value = value;
}

const numbered = (names) => names.map((name, index) => [String(index), name]);
const tools = el("form", { class: "tools", role: "search", "aria-label": "Filter the cases",
  onsubmit: (event) => event.preventDefault() },
meta.hasTexts ? el("label", { class: "grow" }, el("span", {}, "Text"), search) : null,
meta.bots.length > 1 ? select("bot", "Bot", numbered(meta.bots)) : null,
select("mode", "Failure mode", numbered(meta.modes)),
select("metric", "Below threshold", [["-1", "Any metric"],
  ...columns.map((column, index) => [String(index), column.label])
    .filter(([index]) => !["rubric", "toxicity"].includes(columns[index].id))]),
el("label", { hidden: true }, el("span", {}, "Below"), limitInput),
meta.slices.length ? select("slice", meta.sliceBy,
  meta.slices.map((name, index) => [String(index), name || "(none)"])) : null,
meta.flags.length ? select("flag", "Flag", numbered(meta.flags)) : null,
table.some((column) => column.id === "why") ? select("why", "Chosen as", [["1", "worst"], ["2", "random"]]) : null,
meta.bots.length > 1 ? el("label", { class: "check", title: "Highest minus lowest RQS of the row is at least 0.20" },
  differ, el("span", {}, "Bots differ")) : null);

const chooser = el("details", { class: "menu" }, el("summary", {}, "Columns"), el("div", {},
  ...table.filter((column) => column.id !== "row").map((column) => {
    const box = el("input", { type: "checkbox", onchange: () => { column.isShown = box.checked; draw(true); } });
    box.checked = column.isShown;
    return el("label", {}, box, column.title || column.label);
  })));
document.addEventListener("click", (event) => { if (!chooser.contains(event.target)) chooser.open = false; });
chooser.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { chooser.open = false; chooser.firstChild.focus(); }
});

// The filtered rows as CSV

const FORMULA = /^[=+\-@\t\r\n\0＝＋－＠]/;
const quoted = (text) => `"${(FORMULA.test(text) ? "'" : "") + text.replaceAll('"', '""')}"`;

async function csv() {
  const head = ["Row", "Bot", ...columns.map((column) => column.label), "Failure Mode"];
  if (meta.sliceBy) head.push(meta.sliceBy);
  if (meta.hasTexts) head.push("Query", "Ground Truth", "Response", "Context", "Recommendation");
  const lines = [head.map(quoted).join(",")];
  for (const i of order) {
    const values = columns.map((_, index) => data.values[index][i]);
    const cells = [rowNumber(i), quoted(bot(i)), ...values.map((value) => value < 0 ? "" : value / 10000),
      quoted(modesOf(i).join(" | "))];
    if (meta.sliceBy) cells.push(quoted(meta.slices[data.slice[data.rowOf[i]]]));
    if (meta.hasTexts) {
      const row = await textsOf(data.rowOf[i]);
      const mine = row.c.find((each) => each.b === data.bot[i]) || {};
      const chunks = (mine.k || []).map((index) => row.k[index]);
      const context = chunks.length < 2 ? chunks.join("") : chunks.map((text, rank) => `[${rank + 1}] ${text}`).join("\n\n");
      cells.push(...[row.q || "", row.g || "", mine.a || "", context, mine.w || ""].map(quoted));
    }
    lines.push(cells.join(","));
  }
  return `\ufeff${lines.join("\r\n")}\r\n`;
}

async function saveCsv() {
  const link = el("a", { download: `${meta.file}-cases.csv`,
    href: URL.createObjectURL(new Blob([await csv()], { type: "text/csv;charset=utf-8" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// One case

const dialog = $("case");
let opened = -1;
let lens = "grounding";
const LENSES = {
  grounding: { label: "Supported by the chunks", metrics: ["faithfulness", "context_recall"] },
  correctness: { label: "Matches the ground truth", metrics: ["answer_correctness"] },
};
const RESPONSE = 0, REFERENCE = 1, QUERY = 2, CHUNKS = 3;
const PARTS = { statement: RESPONSE, sentence: RESPONSE, response: RESPONSE };

/** What a piece of evidence is, read from its list. */
function evidenceOf(item, label) {
  const [subject, verdict, good, place, reason, rank] = item;
  return { subject, verdict, good: !!good, place, reason: reason || "", rank, label };
}

function textOf(evidence, row, mine) {
  if (typeof evidence.place === "string") return evidence.place;
  const [part, start, length] = evidence.place;
  if (part >= CHUNKS) return row.k[part - CHUNKS];
  return ([mine.a, row.g, row.q][part] || "").substr(start, length);
}

const tokens = (text) => {
  const found = new Set();
  const plain = text.normalize("NFKC").toLowerCase();
  if (Intl.Segmenter) {
    for (const piece of new Intl.Segmenter(undefined, { granularity: "word" }).segment(plain)) {
      if (piece.isWordLike) found.add(piece.segment);
    }
    return found;
  }
  for (const match of plain.matchAll(/[\p{L}\p{N}]+/gu)) found.add(match[0]);
  return found;
};

function sentences(text) {
  const found = [];
  if (Intl.Segmenter) {
    for (const piece of new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text)) {
      found.push([piece.index, piece.segment.trimEnd().length]);
    }
  } else for (const match of text.matchAll(/[^.!?\n]+[.!?]*/g)) found.push([match.index, match[0].length]);
  return found.filter(([, length]) => length);
}

/** Where evidence is in a text: [start, length, whether it is only similar], or null. */
function find(evidence, part, text) {
  const place = evidence.place;
  if (typeof place !== "string") return place[0] === part ? [place[1], place[2], false] : null;
  const expected = evidence.subject.startsWith("reference") ? REFERENCE : PARTS[evidence.subject];
  if (expected !== part || !text || text.length > 50000) return null;
  const words = place.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const exact = words.length < 400 && place.trim() ? new RegExp(words.join("\\s+")).exec(text) : null;
  if (exact) return [exact.index, exact[0].length, false];
  const wanted = tokens(place);
  let best = null, most = 0.6;
  for (const [start, length] of sentences(text)) {
    const there = tokens(text.substr(start, length));
    let shared = 0;
    for (const word of wanted) if (there.has(word)) shared++;
    if (wanted.size && shared / wanted.size >= most && (!best || shared / wanted.size > most)) {
      best = [start, length, true];
      most = shared / wanted.size;
    }
  }
  return best;
}

/** A text with its evidence marked: `marks` are [start, length, similar, evidence]. A long one is shown in part. */
function marked(text, marks, limit = 20000) {
  const node = el("div", { class: "text", dir: "auto" });
  const fill = (end) => {
    const edges = [...new Set([0, end, ...marks.flatMap(([start, length]) => [start, start + length])])]
      .filter((edge) => edge <= end).sort((one, other) => one - other);
    const parts = [];
    for (let k = 0; k + 1 < edges.length; k++) {
      const piece = text.slice(edges[k], edges[k + 1]);
      const here = marks.filter(([start, length]) => start <= edges[k] && start + length >= edges[k + 1]);
      if (!here.length) { parts.push(piece); continue; }
      const isBad = here.some((mark) => !mark[3].good);
      const isSimilar = here.every((mark) => mark[2]);
      parts.push(el("mark", { class: `${isBad ? "bad" : "good"}${isSimilar ? " similar" : ""}`,
        title: here.map((mark) => [mark[3].verdict, mark[3].reason].filter(Boolean).join(": ")).join("\n") }, piece));
      const ending = here.filter(([start, length]) => start + length === edges[k + 1]);
      if (ending.length) {
        parts.push(el("sup", {}, ending.map((mark) => `${mark[2] ? "≈" : ""}${mark[3].good ? "✓" : "✗"}${mark[3].number}`).join(" ")));
      }
    }
    node.replaceChildren(...parts);
    if (end < text.length) {
      node.append(" … ", el("button", { type: "button", class: "quiet", onclick: () => fill(text.length) },
        `Show all ${text.length.toLocaleString("en")} characters`));
    }
  };
  fill(Math.min(text.length, text.length > limit * 1.1 ? limit : text.length));
  return node;
}

function marksIn(part, text, evidence) {
  return evidence.filter((each) => LENSES[lens].metrics.includes(each.metric))
    .map((each) => { const found = find(each, part, text); return found && [...found, each]; }).filter(Boolean);
}

/** All evidence on one bot's case, numbered through. */
function evidenceOn(mine) {
  const found = [];
  for (const column of columns) {
    for (const item of mine.s?.[column.id]?.e || []) {
      found.push({ ...evidenceOf(item, column.label), metric: column.id, number: found.length + 1 });
    }
  }
  return found;
}

function casesOf(row) {
  const found = [];
  for (let i = 0; i < count; i++) if (data.rowOf[i] === row) found.push(i);
  return found;
}

function findCase(row, number) {
  const at = data.row.indexOf(row);
  if (at < 0) return -1;
  const cases = casesOf(at);
  return cases.find((i) => data.bot[i] === number - 1) ??
    cases.reduce((worst, i) => data.values[RQS][i] >= 0 && (data.values[RQS][worst] < 0 ||
      data.values[RQS][i] < data.values[RQS][worst]) ? i : worst, cases[0]);
}

async function route() {
  const match = /^#row-(\d+)(?:-(\d+))?$/.exec(location.hash);
  if (!match) {
    if (dialog.open) dialog.close();
    return;
  }
  const i = findCase(+match[1], +match[2]);
  if (i < 0) {
    opened = -1;
    show(header(`Row ${match[1]}`, null), el("p", { class: "pad" }, meta.cases < meta.allCases
      ? `Row ${match[1]} is not in this page: the page was cut to fit its size. The workbook and the JSON have it.`
      : `There is no row ${match[1]} in this run.`));
    return;
  }
  opened = i;
  await drawCase(i);
}

function show(...content) {
  dialog.replaceChildren(...content);
  if (!dialog.open) {
    dialog.showModal();
    document.documentElement.classList.add("viewing");
  }
}

function header(title, position, name = "") {
  const step = (by, label, key) => el("button", { type: "button", "aria-keyshortcuts": key,
    "aria-disabled": position !== null && order[position + by] !== undefined ? null : "true",
    title: `${label} (${key})`, onclick: () => move(by) }, by < 0 ? `← ${label}` : `${label} →`);
  const place = position === null || position < 0 ? "" : `${(position + 1).toLocaleString("en")} of ${order.length.toLocaleString("en")}`;
  return el("div", { class: "bar" }, el("b", { id: "case-title" }, title, name ? ", " : "", el("bdi", {}, name)), el("span", { class: "dim", role: "status" }, place),
    el("span", { class: "grow" }), step(-1, "Previous", "k"), step(1, "Next", "j"),
    el("button", { type: "button", class: "close", title: "Close (Esc)", onclick: () => dialog.close() }, "Close ✕"));
}

function move(by) {
  const position = order.indexOf(opened);
  const next = position < 0 ? order[0] : order[position + by];
  if (next !== undefined) location.replace(hash(next));
}

async function drawCase(i) {
  const row = await textsOf(data.rowOf[i]);
  if (i !== opened) return;
  const cases = casesOf(data.rowOf[i]);
  const mine = row.c.find((each) => each.b === data.bot[i]) || {};
  const evidence = evidenceOn(mine);
  const has = ({ metrics }) => row.c.some((each) => metrics.some((metric) => each.s?.[metric]?.e?.length));
  const hasLenses = Object.values(LENSES).every(has);
  if (!hasLenses) lens = has(LENSES.correctness) ? "correctness" : "grounding";
  const focus = document.activeElement && dialog.contains(document.activeElement) ? document.activeElement.title : "";
  const scroll = dialog.querySelector(".case")?.scrollTop || 0;
  const isSameRow = dialog.dataset.row === String(rowNumber(i));
  dialog.dataset.row = rowNumber(i);
  const facts = Object.entries(row.x || {}).map(([name, text]) => el("li", {}, el("span", { class: "dim" }, `${name}: `), el("bdi", {}, text)));
  if (why(i)) facts.push(el("li", {}, el("span", { class: "dim" }, "Chosen as: "), why(i)));
  const content = el("div", { class: "case", tabindex: "-1" },
    row.q === undefined ? null : el("section", { class: "query" }, turnsOf(mine.t || row.t), el("h3", {}, "Query"), el("div", { class: "large" }, marked(row.q, [], 1500)),
      facts.length ? el("ul", { class: "byline" }, ...facts) : null),
    hasLenses ? lensChoice(i) : null,
    el("section", { "aria-label": "Responses" }, el("div", { class: "bots" }, ...cases.map((each) => botCard(each, i, row)))),
    row.g === undefined ? null : el("section", {}, heading("Ground truth", cases.length > 1 ? bot(i) : ""),
      marked(row.g, marksIn(REFERENCE, row.g, evidence))),
    chunksOf(mine, row, evidence, i, cases.length),
    mine.w ? el("section", {}, heading("What to do", cases.length > 1 ? bot(i) : ""), el("div", { class: "text", dir: "auto" }, mine.w)) : null,
    rubricOf(mine), pairsOf(row, i), documentsOf(mine), evidenceList(evidence, mine, row, i, cases.length));
  show(header(`Row ${rowNumber(i)}`, order.indexOf(i), bot(i)), content);
  content.scrollTop = isSameRow ? scroll : 0;
  const strip = content.querySelector(".bots"), card = content.querySelector(".chosen");
  strip.scrollLeft = card.offsetLeft - strip.offsetLeft - 3;
  const again = [...dialog.querySelectorAll("button")].find((button) => button.title && button.title === focus);
  (again || content).focus({ preventScroll: true });
}

const heading = (title, name) => el("h3", {}, title, name ? el("small", {}, " for ", el("bdi", {}, name)) : "");

function turnsOf(turns) {
  if (!turns || !turns.length) return null;
  return el("details", { class: "turns" }, el("summary", {}, `Earlier turns (${turns.length})`),
    el("ul", {}, ...turns.map(([role, text]) => el("li", {}, el("span", { class: "dim" }, `${role}: `), el("bdi", {}, text)))));
}

function lensChoice(i) {
  return el("div", { class: "lens", role: "group", "aria-label": "What the marks show" }, el("span", { class: "dim" }, "Marks: "),
    ...Object.entries(LENSES).map(([name, { label }]) => el("button", { type: "button", title: label,
      "aria-pressed": String(lens === name), onclick: () => { lens = name; drawCase(i); } }, label)));
}

function botCard(i, chosen, row) {
  const mine = row.c.find((each) => each.b === data.bot[i]) || {};
  const evidence = evidenceOn(mine);
  const isChosen = i === chosen;
  const name = meta.bots.length > 1
    ? el("button", { type: "button", class: "name", "aria-pressed": String(isChosen), title: `Evidence for ${bot(i)}`,
      onclick: () => location.replace(hash(i)) }, el("bdi", {}, bot(i)))
    : el("bdi", { class: "name" }, bot(i));
  const ok = modesOf(i).includes("OK");
  const scores = columns.slice(1).map((column, k) => {
    const index = k + 1, value = data.values[index][i];
    const score = mine.s?.[column.id] || {};
    const note = [score.o && score.c ? `${score.c}: ${score.r || ""}` : score.r,
      mine.h?.[column.id] !== undefined ? `human label: ${number(Math.round(mine.h[column.id] * 10000))}` : ""].filter(Boolean).join("; ");
    return el("tr", {}, el("th", { scope: "row" }, column.label),
      el("td", { class: "num" }, isBelow(i, index) || (column.id === "rubric" && value === 0)
        ? el("b", { class: "red" }, scoreText(index, value)) : scoreText(index, value)),
      el("td", { class: "note" }, note));
  });
  return el("article", { class: isChosen ? "bot chosen" : "bot" },
    el("div", { class: "top" }, name, el("span", { class: "score" }, "RQS ", el("b", {}, scoreText(RQS, data.values[RQS][i])))),
    el("p", { class: ok ? "ok" : "bad" }, `${ok ? "✓" : "✗"} ${modesOf(i).join(" | ")}`),
    ...(mine.f || []).map((flag) => el("p", { class: "flag" }, `⚑ ${flag}`)),
    mine.a === undefined
      ? meta.hasTexts ? el("p", { class: "dim" }, mine.m ? "(no response in the input)" : "(empty response)") : null
      : marked(mine.a, marksIn(RESPONSE, mine.a, evidence)),
    el("table", { class: "scores" }, el("tbody", {}, ...scores, ...(mine.t || []).map(([label, value]) =>
      el("tr", {}, el("th", { scope: "row" }, label), el("td", { class: "num" }, value), el("td", { class: "note" }))))));
}

function chunksOf(mine, row, evidence, i, bots) {
  if (!mine.k) return null;
  const title = heading(`Chunks (${mine.k.length})`, bots > 1 ? bot(i) : "");
  if (!mine.k.length) return el("section", {}, title, el("p", { class: "dim" }, "Nothing was retrieved."));
  return el("section", {}, title, el("ol", { class: "chunks" }, ...mine.k.map((index, rank) => {
    const text = row.k[index];
    const tags = evidence.filter((each) => each.rank === rank + 1).map((each) =>
      el("p", { class: each.good ? "ok" : "bad" }, `${each.good ? "✓" : "✗"} ${each.label}: ${each.verdict}`,
        each.subject !== "chunk" ? el("span", { class: "dim" }, `: ${textOf(each, row, mine).slice(0, 300)}`)
          : each.reason ? el("span", { class: "dim" }, `. ${each.reason}`) : ""));
    const isLong = text.length > 700;
    const full = marked(text, []);
    const short = isLong ? el("details", {}, el("summary", { dir: "auto" }, `${text.slice(0, 500)} …`), full) : full;
    return el("li", {}, short, ...tags);
  })));
}

function rubricOf(mine) {
  const rubric = mine.r;
  if (!rubric) return null;
  const lines = (rubric.v || []).map(([criterion, mandatory, passed, reason]) => el("li", {},
    el("b", { class: passed ? "ok" : "bad" }, `${passed ? "✓" : "✗"} ${criterion}${mandatory ? " (mandatory)" : ""}`), reason ? `: ${reason}` : ""));
  const points = rubric.of === undefined ? "" : `, ${rubric.n} of ${rubric.of} points`;
  const result = rubric.p === undefined ? rubric.r || rubric.o : `${rubric.p ? "PASS" : "FAIL"}${points}`;
  return el("section", {}, el("h3", {}, `Rubric: ${result}`), el("ul", { class: "plain" }, ...lines));
}

function pairsOf(row, i) {
  const found = row.c.flatMap((one) => (one.v || []).map(([other, preferred, reason]) => [meta.bots[one.b], other, preferred, reason]))
    .filter(([one, other]) => one === bot(i) || other === bot(i));
  if (!found.length) return null;
  const cases = casesOf(data.rowOf[i]);
  const name = (wanted) => {
    const at = wanted === bot(i) ? undefined : cases.find((each) => bot(each) === wanted);
    return at === undefined ? el("bdi", {}, wanted) : el("button", { type: "button", class: "link", title: `Show ${wanted}`,
      onclick: () => location.replace(hash(at)) }, el("bdi", {}, wanted));
  };
  return el("section", {}, el("h3", {}, "Head to head"), el("ul", { class: "plain" }, ...found.map(([one, other, preferred, reason]) =>
    el("li", {}, ...(one === other ? [] : [name(one), " against ", name(other), ": "]), el("b", {}, preferred),
      el("span", { class: "dim" }, reason ? `. ${reason}` : "")))));
}

function documentsOf(mine) {
  if (!mine.d) return null;
  const [gold, retrieved] = mine.d;
  const got = new Set(retrieved);
  return el("section", {}, el("h3", {}, "Gold documents"), el("ul", { class: "plain" }, ...gold.map((id) =>
    el("li", { class: got.has(id) ? "ok" : "bad" }, `${got.has(id) ? "✓ retrieved" : "✗ missing"}: ${id}`))));
}

function evidenceList(evidence, mine, row, i, bots) {
  const groups = columns.map((column, index) => {
    const items = evidence.filter((each) => each.metric === column.id && !(each.rank && each.subject === "chunk"));
    if (!items.length) return null;
    return el("div", {}, el("h4", {}, `${column.label} ${scoreText(index, data.values[index][i])}`), el("ul", { class: "evidence" },
      ...items.map((each) => {
        const part = each.subject.startsWith("reference") ? REFERENCE : PARTS[each.subject];
        const source = part === RESPONSE ? mine.a : part === REFERENCE ? row.g : "";
        const place = part === undefined ? undefined : find(each, part, source);
        const where = place === undefined || (place && !place[2]) ? "" : place ? " (a similar sentence is marked)" : " (not found in the text)";
        return el("li", {}, el("b", { class: each.good ? "ok" : "bad" }, `${each.good ? "✓" : "✗"}${each.number} ${each.subject}: ${each.verdict}${each.rank ? ` (chunk ${each.rank})` : ""}`),
          marked(textOf(each, row, mine), [], 1500), el("span", { class: "dim" }, where),
          each.reason ? el("p", { class: "dim", dir: "auto" }, each.reason) : null);
      })));
  }).filter(Boolean);
  return groups.length ? el("section", {}, heading("What the judge saw", bots > 1 ? bot(i) : ""), ...groups) : null;
}

dialog.addEventListener("close", () => {
  document.documentElement.classList.remove("viewing");
  const position = order.indexOf(opened);
  opened = -1;
  if (location.hash.startsWith("#row-")) {
    try {
      history.replaceState(null, "", location.href.split("#")[0]);
    } catch (error) {
      location.hash = "cases";
    }
  }
  if (position >= 0) focusLine(position);
});
dialog.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1 };
  if (event.key in steps) { event.preventDefault(); move(steps[event.key]); }
});
addEventListener("hashchange", route);
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("main details:not([open])")) {
    folded.open = true;
    addEventListener("afterprint", () => { folded.open = false; }, { once: true });
  }
});

// Begin

$("app").append(tools, el("div", { class: "line" }, told, reset, el("span", { class: "grow" }), chooser,
  el("button", { type: "button", title: "The filtered cases, in their order", onclick: saveCsv }, "Save CSV")), body);
$("app").hidden = false;
for (const mark of document.querySelectorAll("[data-bot]")) {
  const wanted = mark.dataset;
  mark.replaceWith(el("button", { type: "button", class: "link", title: "Show these cases", onclick: () => {
    resetFilters();
    if (meta.bots.length > 1) setFilter("bot", wanted.bot);
    if (wanted.mode !== undefined) setFilter("mode", wanted.mode);
    update();
    $("cases").scrollIntoView();
  } }, ...mark.childNodes));
}
document.documentElement.classList.add("js");
update();
addEventListener("resize", () => draw(true));
await route();
document.documentElement.dataset.ready = "true";
performance.mark("ready");
})();
