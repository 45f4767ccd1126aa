"use strict";
// Unpacks the page that the card carries into a window of its own; where none may be opened, offers it as a file.
(function () {
  const link = document.querySelector("[data-page]");
  if (!link) {
    return;
  }
  const unpacked = function () {
    const packed = atob(document.getElementById(link.dataset.page).textContent);
    const bytes = Uint8Array.from(packed, function (each) {
      return each.charCodeAt(0);
    });
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  link.addEventListener("click", function (event) {
    if (link.hasAttribute("download")) {
      return;
    }
    event.preventDefault();
    const view = window.open("", "_blank");
    unpacked().then(function (text) {
      if (view) {
        view.document.write(text);
        view.document.close();
      } else {
        link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
        link.setAttribute("download", "certcal.html");
        link.textContent = "Save the full page";
      }
    });
  });
})();
