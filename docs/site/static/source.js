// The same choice of light or dark as on the book's pages.
try { document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto"; } catch { /* no storage: as the system has it */ }
