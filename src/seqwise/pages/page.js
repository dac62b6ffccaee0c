"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  document.documentElement.classList.add("js");

  /* The style sheet has one block of dark colours; the button decides when it holds. */
  const dark = [...document.styleSheets[0].cssRules].find(
    (rule) => rule.media && rule.media.mediaText.includes("prefers-color-scheme"),
  );
  const theme = find("theme");
  const setDark = (isDark) => theme.setAttribute("aria-pressed", isDark);
  setDark(matchMedia("(prefers-color-scheme: dark)").matches);
  theme.addEventListener("click", () => {
    const isDark = theme.getAttribute("aria-pressed") !== "true";
    dark.media.mediaText = isDark ? "screen" : "not all";
    setDark(isDark);
  });

  /* Charts that take turns: the value of each radio button is the id of its chart. */
  for (const group of document.querySelectorAll("[data-panels]")) {
    const show = () => {
      for (const radio of group.querySelectorAll("input")) find(radio.value).hidden = !radio.checked;
    };
    group.addEventListener("change", show);
    show();
  }
})();
