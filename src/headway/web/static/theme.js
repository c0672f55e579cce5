/*
 * Light or dark: as the system says, or as the reader chose, which this browser remembers.
 * A classic script in the head, so that the page is never painted in the wrong colours first.
 */
(() => {
  const KEY = "headway-theme";
  const root = document.documentElement;

  /** @returns {"auto" | "light" | "dark"} */
  function chosen() {
    try {
      const kept = localStorage.getItem(KEY);
      return kept === "light" || kept === "dark" ? kept : "auto";
    } catch {
      return "auto"; // storage may be forbidden
    }
  }

  /** @param {string} theme */
  function use(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  }

  use(chosen());
  document.addEventListener("DOMContentLoaded", () => {
    for (const input of document.querySelectorAll("input[name=theme]")) {
      if (!(input instanceof HTMLInputElement)) continue;
      input.checked = input.value === chosen();
      input.addEventListener("change", () => {
        try {
          localStorage.setItem(KEY, input.value);
        } catch {
          // then it holds for this page only
        }
        use(input.value);
      });
    }
  });
})();
