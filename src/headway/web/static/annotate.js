/** The annotate page: its parts, its keys, and its messages. */

import { Refused, sentence as inWords } from "./api.js";
import { byId, set } from "./dom.js";
import { Editor } from "./editor.js";
import { closeFromOutside } from "./export.js";
import { fillIcons } from "./icons.js";
import { keysHelp, queryHelp } from "./keys.js";
import { ModelPanel } from "./model-panel.js";
import { notice, settled } from "./notices.js";
import { SentenceList } from "./sentence-list.js";
import { Session } from "./session.js";
import { messageItem, WordPanel } from "./word-panel.js";

const session = new Session();
const list = new SentenceList(session, (sentence) => void open(sentence));
const editor = new Editor(session, () => panel.show());
const panel = new WordPanel(session, editor);
new ModelPanel(session);

const note = /** @type {HTMLInputElement} */ (byId("note"));
const doneButton = byId("done");
const nextButton = byId("next-todo");
const savedMark = byId("saved");

// --- moving between sentences ---

/** @param {number} sentence */
async function open(sentence) {
  document.body.classList.remove("listing");
  try {
    await session.open(sentence);
  } catch (error) {
    notice("open", "bad", inWords(error), [["Try again", () => void open(sentence)]]);
    return;
  }
  settled("open");
  settled("refused");
  history.replaceState(null, "", `#${sentence + 1}`);
}

/** @param {number} way @param {boolean} todo */
async function go(way, todo) {
  const next = await list.neighbour(way, todo);
  if (next !== null) await open(next);
  else if (todo)
    notice("end", "note", "There is no further sentence to do in this list.", [["Fine", () => settled("end")]]);
}

// --- showing ---

session.addEventListener("view", (event) => {
  const { view, before, why } = /** @type {CustomEvent} */ (event).detail;
  byId("sentence-panel").hidden = false;
  editor.show(view, before, why);
  panel.show();
  byId("sentence-title").textContent = `Sentence ${view.sentence + 1}`;
  byId("sentence-id").textContent = view.id === String(view.sentence + 1) ? "" : (view.id ?? "");
  byId("sentence-text").textContent = view.text;
  set(byId("undo"), "aria-disabled", view.can_undo ? null : "true");
  set(byId("redo"), "aria-disabled", view.can_redo ? null : "true");
  const hadFocus = document.activeElement === doneButton || document.activeElement === nextButton;
  doneButton.hidden = view.done;
  nextButton.hidden = !view.done;
  byId("not-done").hidden = !view.done;
  if (hadFocus) (view.done ? nextButton : doneButton).focus();
  byId("sentence-panel").classList.toggle("is-done", view.done);
  const general = view.messages.filter((/** @type {any} */ message) => message.word === null);
  if (view.problem) general.unshift({ word: null, level: "warning", rule: "no-tree", text: view.problem });
  byId("sentence-messages").replaceChildren(...general.map(messageItem));
  if (document.activeElement !== note) note.value = view.note;
  if (why === "open") {
    list.select(view.sentence);
    settled("end");
  } else list.refresh(view);
  if (why === "changed") progressSoon();
  if (why === "elsewhere" && before?.version !== view.version) whisper("This sentence was changed in another window.");
});

session.addEventListener("overview", () => {
  const { file, progress, changed_underneath: changed, sentences, problem, reloaded } = session.overview;
  const name = String(file).split("/").pop();
  byId("file").textContent = name ?? "";
  byId("file").title = file;
  document.title = `${name} · Headway`;
  byId("progress-text").textContent = progress.text;
  const bar = /** @type {HTMLProgressElement} */ (byId("progress"));
  bar.max = Math.max(1, progress.all);
  bar.value = progress.done;
  byId("empty").hidden = sentences > 0;
  if (changed) {
    notice(
      "file",
      "bad",
      `Another program has changed ${name}. Nothing is written until you choose: take that version, or overwrite it with yours.`,
      [
        ["Take that version", () => void session.command("file", { choice: "reload" })],
        ["Overwrite it", () => void session.command("file", { choice: "overwrite" })],
      ],
    );
  } else settled("file");
  if (problem && !changed)
    notice("problem", "bad", `${inWords(problem)} Your changes are safe in the journal beside it.`);
  else settled("problem");
  showReloaded(reloaded ?? []);
});

let settledReload = "[]";

/** Changes that a file which was taken over lacks. @param {{sentence: number}[]} lost */
function showReloaded(lost) {
  const key = JSON.stringify(lost);
  if (key === settledReload) return;
  const numbers = lost.map((each) => each.sentence + 1).join(", ");
  const text = `The file was read again. It lacks your changes to ${lost.length === 1 ? "sentence" : "sentences"} ${numbers}; they are kept in the journal that was set aside beside the file.`;
  notice("reloaded", "note", text, [
    [
      "Close",
      () => {
        settledReload = key;
        settled("reloaded");
      },
    ],
  ]);
}

/** @type {number | undefined} */
let counting;
function progressSoon() {
  clearTimeout(counting);
  counting = setTimeout(() => session.refreshOverview().catch(() => {}), 300);
}

/** @type {number | undefined} */
let passing;

/** @param {string} text */
function whisper(text) {
  const toast = byId("toast");
  toast.textContent = text;
  toast.classList.add("on");
  clearTimeout(passing);
  passing = setTimeout(() => toast.classList.remove("on"), 3000);
}

// --- what is saved, and what is not ---

function showSaved() {
  const { saved, isReachable } = session;
  savedMark.dataset.state = isReachable ? saved : "unsaved";
  savedMark.textContent = !isReachable
    ? "No connection"
    : { saved: "Saved", saving: "Saving…", unsaved: "Not saved" }[saved];
}

/** What was tried, in words. */
function attempt() {
  return session.unsaved.map((change) => `“${change.said}”`).join(", ");
}

/** @type {[string, () => void][]} */
const OFFER = [
  ["Apply it again", () => void again()],
  ["Leave it", () => leave()],
];

async function again() {
  settled("conflict");
  settled("unsaved");
  try {
    await session.again();
  } catch (error) {
    notice("unsaved", "bad", `${inWords(error)} Your change ${attempt()} is not saved.`, OFFER);
  }
}

function leave() {
  settled("conflict");
  settled("unsaved");
  session.forget();
}

for (const name of ["saving", "lost", "back", "view"]) session.addEventListener(name, showSaved);
session.addEventListener("conflict", () => {
  notice(
    "conflict",
    "bad",
    `Somebody else changed this sentence at the same time. The page shows it as it is now; your change ${attempt()} is not saved.`,
    OFFER,
  );
});
session.addEventListener("refused", (event) => {
  const error = /** @type {CustomEvent} */ (event).detail;
  notice("refused", "bad", inWords(error), [["Close", () => settled("refused")]]);
  if (session.unsaved.length) notice("unsaved", "bad", `Your change ${attempt()} is not saved.`, OFFER);
});
session.addEventListener("saving", () => {
  if (session.saved === "saving") settled("refused");
});
session.addEventListener("lost", () => {
  const lost = session.unsaved.length ? ` Your change ${attempt()} is not saved.` : " What you did before is saved.";
  notice("lost", "bad", `The server does not answer. Trying to reach it again…${lost}`);
});
session.addEventListener("back", () => {
  settled("lost");
  whisper("The server is back.");
  if (session.unsaved.length)
    notice("unsaved", "bad", `The server is back. Your change ${attempt()} was not saved.`, OFFER);
});
window.addEventListener("beforeunload", (event) => {
  if (session.saved !== "saved") event.preventDefault();
});

// --- keys and buttons ---

/** @param {string} id @param {() => void} act */
function onClick(id, act) {
  byId(id).addEventListener("click", () => {
    if (byId(id).getAttribute("aria-disabled") !== "true") act();
  });
}

onClick("undo", () => editor.undo());
onClick("redo", () => editor.redo());
onClick("accept", () => editor.accept());
onClick("done", () => editor.setDone(true));
onClick("not-done", () => editor.setDone(false));
onClick("next-todo", () => void go(1, true));
onClick("previous", () => void go(-1, false));
onClick("next", () => void go(1, false));
onClick("keys-help", () => dialog("keys-dialog").showModal());
onClick("query-help", () => dialog("query-dialog").showModal());
onClick("show-list", () => document.body.classList.toggle("listing"));

// On narrow screens the list lies over the sentence.
byId("sentence-panel").addEventListener("pointerdown", (event) => {
  if (!(event.target instanceof Element && event.target.closest("#show-list")))
    document.body.classList.remove("listing");
});
byId("side").addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.body.classList.remove("listing");
});

/** @param {string} id */
const dialog = (id) => /** @type {HTMLDialogElement} */ (byId(id));

note.addEventListener("change", () => {
  if (note.value.trim() !== session.view?.note)
    editor.edit({ action: "note", text: note.value }, `the note “${note.value}”`);
});
note.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === "Escape") editor.tree.focus(editor.word);
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const target = /** @type {HTMLElement} */ (event.target);
  const isField = target.matches("input, textarea, select");
  const control = event.ctrlKey || event.metaKey;
  if (isField && !(target instanceof HTMLInputElement && target.type === "radio")) {
    if (event.key === "Escape") editor.tree.focus(editor.word);
    return;
  }
  if (control && event.key.toLowerCase() === "z") (event.shiftKey ? editor.redo : editor.undo).call(editor);
  else if (control && event.key.toLowerCase() === "y") editor.redo();
  else if (control || event.altKey || !pressed(event, target)) return;
  event.preventDefault();
});

/** @param {KeyboardEvent} event @param {HTMLElement} target */
function pressed(event, target) {
  const atTree = target === document.body || Boolean(target.closest("#stage"));
  const isButton = target.matches("button, summary, a");
  if (isButton && (event.key === "Enter" || event.key === " ")) return false;
  if (editor.key(event, atTree)) return true;
  if (event.key === "d") editor.setDone(!session.view?.done);
  else if (event.key === "j") void go(1, false);
  else if (event.key === "k") void go(-1, false);
  else if (event.key === "e") panel.focusFields();
  else if (event.key === "/") {
    document.body.classList.add("listing");
    byId("query").focus();
  } else if (event.key === "?") dialog("keys-dialog").showModal();
  else if (event.key === "Enter" && session.view?.done) void go(1, true);
  else return false;
  return true;
}

// --- the beginning ---

async function start() {
  fillIcons();
  byId("keys-list").append(...keysHelp());
  byId("query-list").append(...queryHelp());
  closeFromOutside(/** @type {HTMLDetailsElement} */ (byId("settings")));
  try {
    await session.start();
  } catch (error) {
    const isClosed = error instanceof Refused && error.status === 404;
    byId("workspace").hidden = true;
    byId("closed").hidden = !isClosed;
    if (!isClosed) notice("start", "bad", inWords(error), [["Try again", () => location.reload()]]);
    return;
  }
  await list.load();
  const asked = Number(location.hash.slice(1));
  const isThere = Number.isInteger(asked) && asked >= 1 && asked <= session.overview.sentences;
  const first = isThere ? asked - 1 : (list.rows.find((row) => !row.done) ?? list.rows[0])?.sentence;
  if (first !== undefined) await open(first);
  showSaved();
}

void start();
