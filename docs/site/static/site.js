// A page opened from a folder can't read others, so that its search shows no excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What is folded is printed unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// What scrolls sideways is reached by the keyboard, too.
addEventListener("DOMContentLoaded", () => {
  // First all are measured, then all are changed: in turn, each change would make the browser lay the page out again.
  const wide = [...document.querySelectorAll("pre, .table-wrapper, div.formula")].filter((one) => one.scrollWidth > one.clientWidth);
  for (const one of wide) one.tabIndex = 0;
});
