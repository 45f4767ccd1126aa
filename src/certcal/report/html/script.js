"use strict";
// Shows one of several prepared states, hands out the numbers that are in the page, and opens everything for printing.
// No number is computed or formatted here.
(function () {
  const all = function (selector) {
    return Array.from(document.querySelectorAll(selector));
  };

  all("[data-needs-script]").forEach(function (each) {
    each.hidden = false;
  });

  const show = function (input) {
    const key = input.dataset.slider;
    all('[data-of="' + key + '"]').forEach(function (each) {
      each.toggleAttribute("hidden", each.dataset.frame !== input.value);
    });
    all('[data-row-of="' + key + '"]').forEach(function (each) {
      if (each.dataset.frame === input.value) {
        each.setAttribute("aria-current", "true");
      } else {
        each.removeAttribute("aria-current");
      }
    });
    const said = document.querySelector('[data-output="' + key + '"] [data-frame="' + input.value + '"]');
    if (said) {
      input.setAttribute("aria-valuetext", said.dataset.name);
    }
  };
  all("[data-slider]").forEach(function (input) {
    input.addEventListener("input", function () {
      show(input);
    });
    if (input.type !== "radio" || input.checked) {
      show(input);
    }
  });

  // Says which cell of a matrix the pointer is on, in the words of its table.
  all("[data-cells]").forEach(function (area) {
    const rows = document.getElementById(area.dataset.cells + "-numbers").tBodies[0].rows;
    const said = document.querySelector('[data-said="' + area.dataset.cells + '"]');
    const place = function (offset, size) {
      return Math.min(rows.length - 1, Math.max(0, Math.floor((offset / size) * rows.length)));
    };
    const tell = function (event) {
      const box = area.getBoundingClientRect();
      const across = place(event.clientX - box.left, box.width);
      const down = place(event.clientY - box.top, box.height);
      const value = rows[Math.max(across, down)].cells[1 + Math.min(across, down)].textContent;
      const names = rows[down].cells[0].textContent + " and " + rows[across].cells[0].textContent;
      said.textContent = names + ": " + (value || "undefined");
    };
    area.addEventListener("pointermove", tell);
    area.addEventListener("click", tell);
  });

  all("[data-download]").forEach(function (link) {
    const text = document.getElementById(link.dataset.download).textContent;
    link.href = URL.createObjectURL(new Blob([text, "\n"], { type: "application/json" }));
  });

  all("[data-copy]").forEach(function (button) {
    button.addEventListener("click", function () {
      const source = document.getElementById(button.dataset.copy);
      const select = function () {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        // Where the clipboard is refused, as to the page of a notebook's card, a selection may still be copied.
        button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
      };
      if (!navigator.clipboard) {
        select();
        return;
      }
      navigator.clipboard.writeText(source.textContent).then(function () {
        button.textContent = "Copied";
      }, select);
    });
  });

  let opened = [];
  window.addEventListener("beforeprint", function () {
    opened = all("details:not([open])");
    opened.forEach(function (each) {
      each.open = true;
    });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (each) {
      each.open = false;
    });
  });
})();
