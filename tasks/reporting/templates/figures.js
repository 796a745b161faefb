(function () {
  "use strict";
  // The SVG stays unless its interactive twin was drawn completely.
  async function enliven(panel) {
    const chart = panel.querySelector(".chart");
    const spec = JSON.parse(panel.querySelector("script.spec").textContent);
    const fresh = document.createElement("div");
    await window.vegaEmbed(fresh, spec, { actions: false, renderer: "svg", ast: true, mode: "vega-lite" });
    if (!fresh.querySelector("svg")) return;
    chart.replaceChildren(fresh);
    chart.dataset.live = "true";
  }
  async function all() {
    if (!window.vegaEmbed) return;
    for (const panel of document.querySelectorAll(".panel")) {
      try { await enliven(panel); } catch (error) { /* the static figure says the same */ }
    }
    document.documentElement.dataset.figures = "live";
  }
  all();
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });
})();
