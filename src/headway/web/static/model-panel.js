/** What is written to the file, and the model: retraining, its result, and the way back. */

import { sentence as inWords } from "./api.js";
import { byId, html, set } from "./dom.js";

export class ModelPanel {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.name = byId("model-name");
    this.state = byId("retraining");
    this.retrain = byId("retrain");
    this.bar = /** @type {HTMLProgressElement} */ (byId("retraining-bar"));
    this.write = /** @type {HTMLSelectElement} */ (byId("write"));
    this.swap = byId("swap");
    this.write.addEventListener("change", () => void session.command("settings", { write: this.write.value }));
    this.retrain.addEventListener("click", () => {
      if (this.retrain.getAttribute("aria-disabled") !== "true") void session.command("retrain", {});
    });
    session.addEventListener("overview", () => this.#show());
  }

  #show() {
    const { model, write, retraining } = this.session.overview;
    this.name.textContent = model ?? "none";
    this.write.value = write;
    const { state, text, pass: passed, passes, in_use: inUse, can_choose: canChoose } = retraining;
    set(this.retrain, "aria-disabled", state === "running" ? "true" : null);
    this.bar.hidden = state !== "running";
    if (passes) this.bar.value = (passed ?? 0) / passes;
    else this.bar.removeAttribute("value");
    this.state.textContent = text ? inWords(text) : "";
    const other = inUse === "new" ? "old" : "new";
    const choose = () => void this.session.command("model", { use: other });
    const title = other === "old" ? "Back to the old model" : "Use the new model";
    this.swap.replaceChildren(
      ...(canChoose ? [html("button", { type: "button", class: "small", onclick: choose }, title)] : []),
    );
  }
}
