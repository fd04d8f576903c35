// The page of smt ui: asks for a frame ten times a second and shows it. No other site is asked for anything,
// and what programs choose (names, reasons) is only ever set as text.
"use strict";

const kFrameMs = 100, kTableMs = 500, kAnnounceMs = 5000, kRetryMs = 1000, kFiguresFrames = 50;
const at = id => document.getElementById(id);

let about = null, paused = false, ended = false, shown = null, onMap = null, frames = [], due = 0;
let position = 0, seeked = true, names = new Map();

// ---- Asking

function token() {
  const given = location.hash.slice(1);
  if (/^[0-9a-f]{32}$/.test(given)) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);   // it is in no history and no picture of the screen
  }
  return sessionStorage.getItem("token") || "";
}
const kToken = token();

async function ask(path, wish) {
  const headers = {Authorization: "Bearer " + kToken};
  const options = wish ? {method: "POST", headers: {...headers, "Content-Type": "application/json"},
                          body: JSON.stringify(wish)} : {headers};
  const answer = await fetch(path, options);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim());
  return text;
}

function say(problem) {
  if (at("problem").textContent !== problem) at("problem").textContent = problem;
  at("problem").hidden = !problem;
}

async function change(path, wish, button) {
  button.disabled = true;
  at("said").textContent = "";
  let done = false;
  try {
    at("said").textContent = await ask(path, wish);
    done = true;
  } catch (problem) {
    at("said").textContent = "Not done: " + problem.message;
  }
  button.disabled = false;
  return done;
}

// ---- Words

function duration(ns) {
  if (ns < 1e3) return ns + " ns";
  const [value, unit] = ns < 1e6 ? [ns / 1e3, "us"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)) + " " + unit;
}
const pair = quantiles => quantiles ? `${duration(quantiles[0])}, ${duration(quantiles[1])}` : "-";

function bytes(count) {
  const mebibytes = count / 2 ** 20;
  return mebibytes < 1024 ? mebibytes.toFixed(mebibytes < 10 ? 1 : 0) + " MiB" : (mebibytes / 1024).toFixed(1) + " GiB";
}

// As a memory limit is written.
function limitText(count) {
  if (!count) return "all";
  const unit = [["G", 2 ** 30], ["M", 2 ** 20], ["", 1]].find(([, size]) => count % size === 0);
  return count / unit[1] + unit[0];
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function swatch(id) {
  const made = element("span", {class: "swatch", "aria-hidden": "true"}, letter(id));
  made.style.background = colour(id);
  made.style.color = ink(id);
  return made;
}

// A moment since the beginning of what is known.
const moment = (state, ns) => duration(Math.max(0, ns - state.begin));

// ---- Tables

let lastDecision = 0, unsaid = 0, saidAt = 0;

function showDecisions(state) {
  put(at("decided"), state.decided ? `${state.decided.toLocaleString("en")} so far` : "None yet");
  const newest = state.decisions.at(-1);
  if (newest && newest.id === lastDecision && !seeked) return [];
  const fresh = state.decisions.filter(each => each.at > state.from && (seeked || each.id > lastDecision));
  lastDecision = newest ? newest.id : 0;
  at("decisions").replaceChildren(...state.decisions.slice().reverse().map(each => element("tr", {},
    element("td", {}, moment(state, each.at)),
    element("td", {}, swatch(each.tenant), names.get(each.tenant) || ""),
    element("td", {title: each.text}, each.text))));
  unsaid += fresh.length;
  return fresh;
}

function announce(state) {
  const now = performance.now(), newest = state.decisions.at(-1);
  if (!unsaid || !newest || now - saidAt < kAnnounceMs) return;
  if (at("announce").checked) {
    const others = unsaid > 1 ? `, and ${unsaid - 1} before` : "";
    put(at("announced"), `${names.get(newest.tenant) || ""}: ${newest.text}${others}`);
  }
  [unsaid, saidAt] = [0, now];
}

// What was typed; what is refused stays, to be corrected.
async function setAll(tenant, inputs, button) {
  const {priority, weight, limit} = inputs, terms = {tenant};
  if (priority.dirty) terms.priority = priority.value.trim();
  if (weight.dirty) terms.weight = weight.value.trim();
  const asks = [];
  if (priority.dirty || weight.dirty) asks.push(["terms", terms, [priority, weight]]);
  if (limit.dirty) asks.push(["memory", {tenant, limit: limit.value.trim()}, [limit]]);
  for (const [path, wish, of] of asks) {
    if (!await change(path, wish, button)) return;
    for (const each of of) each.dirty = false;
  }
}

const rows = new Map();

function makeRow(tenant) {
  const cells = {};
  const cell = (name, kind = "number") => cells[name] = element("td", {class: kind});
  const name = element("th", {scope: "row"}, swatch(tenant.id), tenant.name);
  const inputs = {};
  const field = (key, words) => {
    const made = inputs[key] = element("input", {"aria-label": `${words} of ${tenant.name}`, form: `set-${tenant.id}`,
                                                 spellcheck: "false", autocomplete: "off"});
    made.addEventListener("input", () => made.dirty = true);
    return made;
  };
  const set = element("button", {"aria-label": `Set priority, weight and memory limit of ${tenant.name}`}, "Set");
  const limit = element("form", {class: "limit", id: `set-${tenant.id}`}, field("limit", "Memory limit, such as 4G or all,"), set);
  limit.addEventListener("submit", event => {
    event.preventDefault();
    setAll(tenant.name, inputs, set);
  });
  const suspend = element("button", {type: "button"});
  suspend.addEventListener("click", () => change(suspend.dataset.what, {tenant: tenant.name}, suspend));
  const words = element("span");
  const bar = element("i");
  bar.style.background = colour(tenant.id);
  const share = element("span");
  const row = element("tr", {}, name,
    element("td", {class: "live-only number short"}, field("priority", "Priority")),
    element("td", {class: "live-only number short"}, field("weight", "Weight")),
    element("td", {class: "number"}, element("span", {class: "bar", "aria-hidden": "true"}, bar), share),
    cell("launches"), cell("run"), cell("latency"), cell("stop"), cell("memory", "live-only number"),
    element("td", {class: "live-only"}, limit),
    element("td", {class: "live-only"}, element("div", {class: "state"}, words, suspend)));
  return {row, cells, inputs, set, suspend, words, bar, share, name: tenant.name};
}

function stateOf(now) {
  if (!now) return "left";
  const words = [];
  if (now.programs > 1) words.push(`${now.programs} programs`);
  if (now.suspended) words.push(`suspended, ${bytes(now.away)} in host memory`);
  if (now.out) words.push(`out until its turn, ${bytes(now.away)} in host memory`);
  if (now.waits_for) words.push("waits for " + now.waits_for);
  if (now.target) words.push(`target ${duration(now.p99_us * 1000)}: ${now.target}` +
                             (now.seen_p99_us ? `, ${duration(now.seen_p99_us * 1000)} seen` : ""));
  return words.join("; ");
}

function fillRow(made, tenant, state, share) {
  const {cells} = made, now = tenant.now, seconds = (state.to - state.over) / 1e9;
  const percent = Math.round(share * 1000) / 10;
  made.bar.style.width = Math.min(100, percent) + "%";
  put(made.share, state.placed ? percent.toFixed(1) + " %" : "-");
  put(cells.launches, seconds > 0 ? Math.round(tenant.launches / seconds).toLocaleString("en") : "-");
  for (const each of ["run", "latency", "stop"]) put(cells[each], pair(tenant[each]));
  put(cells.memory, now ? bytes(now.memory) : "-");
  put(made.words, stateOf(now));
  made.words.title = made.words.textContent;
  const values = now ? {priority: now.priority, weight: Number(now.weight.toPrecision(4)), limit: limitText(now.limit)} : {};
  for (const [key, input] of Object.entries(made.inputs)) {
    input.hidden = !now;
    if (!input.dirty && document.activeElement !== input) input.value = values[key];
  }
  for (const each of [made.set, made.suspend]) each.hidden = !now;
  made.suspend.dataset.what = now && now.suspended ? "resume" : "suspend";
  put(made.suspend, now && now.suspended ? "Resume" : "Suspend");
  made.suspend.setAttribute("aria-label", `${made.suspend.textContent} ${made.name}`);
}

// The part of all multiprocessors' time in the last frames.
function shares() {
  const sums = new Map();
  let time = 0;
  for (const each of frames) {
    time += each.length * each.count;
    for (const [id, part] of each.parts) sums.set(id, (sums.get(id) || 0) + part * each.length);
  }
  return id => time ? (sums.get(id) || 0) / time : 0;
}

function showTenants(state) {
  const share = shares(), there = new Set();
  for (const tenant of state.tenants) {
    there.add(tenant.id);
    if (!rows.has(tenant.id)) rows.set(tenant.id, makeRow(tenant));
    fillRow(rows.get(tenant.id), tenant, state, share(tenant.id));
  }
  for (const id of [...rows.keys()].filter(id => !there.has(id))) rows.get(id).row.remove(), rows.delete(id);
  const wanted = [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([, made]) => made.row);
  wanted.forEach((row, i) => {
    if (at("tenants").children[i] !== row) at("tenants").insertBefore(row, at("tenants").children[i] || null);
  });
  const busy = state.tenants.map(each => [share(each.id), each.name]).filter(([part]) => part >= 0.005);
  put(at("sms-text"), !state.sms.length ? "No program has run yet"
    : !state.placed && state.tenants.length
    ? "Where blocks run is not recorded: start the server with SMT_JOURNAL=mapping"
    : `${state.sms.length} multiprocessors. Lately ` + (busy.length ? busy.sort((a, b) => b[0] - a[0])
      .map(([part, name]) => `${name} had ${(part * 100).toFixed(0)} %`).join(", ") : "nothing ran"));
}

function showServer(state) {
  const server = state.server, clock = state.clock === "virtual" ? ", its clock is virtual" : "";
  if (about.replay) return put(at("server"), `Recording ${about.replay.file}${clock}`);
  if (!server) return put(at("server"), "No server answers");
  put(at("server"), `${server.device}${clock}, up ${Math.round(server.uptime_ms / 1000)} s`);
  const policy = at("policy");
  if (document.activeElement !== policy && !policy.dirty) policy.value = server.policy;
}

// ---- Frames

let tableAt = 0;

function show(state) {
  for (const each of state.tenants) names.set(each.id, each.name);
  const again = shown && state.from === state.to && !seeked;   // nothing has ended since
  const decided = showDecisions(state);
  if (!again && state.sms.length) {
    const parts = new Map();
    for (const sm of state.sms)
      for (let i = 0; i < sm.length; i += 2) parts.set(sm[i], (parts.get(sm[i]) || 0) + sm[i + 1] / 100);
    frames.push({length: state.to - state.from, count: state.sms.length, parts, from: state.from});
    if (frames.length > kFiguresFrames) frames.shift();
    drawMap(state);
    onMap = state;
    drawTracks(state, decided, seeked);
  }
  if (performance.now() - tableAt > kTableMs || seeked) {
    showServer(state);
    showTenants(state);
    tableAt = performance.now();
  }
  announce(state);
  seeked = false;
  shown = state;
}

function step() {   // ns of the recording in a frame
  const {begin, end} = about.replay, seconds = Number(at("speed").value);
  return seconds ? (end - begin) / seconds * kFrameMs / 1000 : kFrameMs * 1e6;
}

function query() {
  if (!about.replay) {
    const from = shown ? shown.to : "", over = frames.length ? frames[0].from : "";
    return `state?from=${from}&over=${over}`;
  }
  const {begin, end} = about.replay, from = position;
  if (!paused) position = Math.min(end, position + step());
  const to = Math.max(position, Math.min(end, begin + 1)), over = Math.max(begin, to - kFiguresFrames * step());
  if (position >= end && !paused) ended = true, pause(true);
  return `state?from=${Math.round(seeked ? Math.max(begin, to - step()) : from)}&to=${Math.round(to)}&over=${Math.round(over)}`;
}

function showPosition() {
  if (!about.replay) return;
  const {begin, end} = about.replay;
  if (document.activeElement !== at("position") || !paused)
    at("position").value = Math.round((position - begin) / (end - begin) * 1000);
  const text = `${duration(Math.round(position - begin))} of ${duration(end - begin)}`;
  put(at("time"), text);
  at("position").setAttribute("aria-valuetext", text);
}

async function next() {
  let wait = kFrameMs;
  try {
    if (!about) begin(JSON.parse(await ask("about")));
    if ((!paused || seeked) && !document.hidden) show(JSON.parse(await ask(query())));
    showPosition();
    say("");
  } catch (problem) {
    say(problem instanceof TypeError ? "smt ui does not answer. Does it still run?" : problem.message);
    wait = kRetryMs;
  }
  // By when it was due, not by when it was done: else each frame would be late by what the ones before took.
  due = Math.max(due + wait, performance.now());
  setTimeout(next, due - performance.now());
}

function restart() {   // of the pictures and figures, at another place of the recording
  frames = [];
  [seeked, shown] = [true, null];
}

function pause(wanted) {
  paused = wanted;
  put(at("pause"), paused ? "Go on" : "Pause");
}

function begin(told) {
  about = told;
  document.body.classList.toggle("is-replay", Boolean(about.replay));
  at("replay").hidden = !about.replay;
  at("policy").replaceChildren(...about.policies.map(name => element("option", {}, name)));
  if (!about.replay) return;
  position = about.replay.begin;
  at("as-it-was").hidden = about.replay.clock === "virtual";
}

// The map is as it was, for another size or another light.
function drawAgain() {
  if (onMap) drawMap(onMap);
}
addEventListener("resize", drawAgain);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
at("pause").addEventListener("click", () => {
  if (ended && paused) position = about.replay.begin, restart();
  ended = false;
  pause(!paused);
});
at("position").addEventListener("input", event => {
  const {begin, end} = about.replay;
  position = begin + (end - begin) * event.target.value / 1000;
  ended = false;
  restart();
});
at("replay").addEventListener("submit", event => event.preventDefault());
at("policy").addEventListener("change", () => at("policy").dirty = true);
at("policy-form").addEventListener("submit", event => {
  event.preventDefault();
  change("policy", {policy: at("policy").value}, event.submitter || at("policy-form").querySelector("button"))
    .then(() => at("policy").dirty = false);
});
next();
