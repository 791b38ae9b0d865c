// A page opened from a folder can't read others, so that its search shows no excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What is folded is printed unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// What scrolls sideways is reached by the keyboard, too.
addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("pre, .table-wrapper, div.formula")) if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
});
