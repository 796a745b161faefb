/* Search of the documentation from file://, where browsers start no worker: the worker runs in a hidden frame instead.
   The site's theme asks for a script of this name; this one is ours, so that no page asks the network for it. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      const answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.postMessage = (data) => setTimeout(() => answer(structuredClone(data)));
      inside.importScripts = (...paths) => {
        for (const path of paths) inside.document.write(`<script src="${path}"><\/script>`);
      };
      this.ready = new Promise((resolve) => {
        inside.whenReady = resolve;
        inside.document.open();
        inside.document.write(`<script src="${url}"><\/script><script>whenReady()<\/script>`);
        inside.document.close();
      });
    }
    postMessage(data) {
      this.ready.then(() => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        this.frame.contentWindow.dispatchEvent(event);
      });
    }
    terminate() {
      this.frame.remove();
    }
  };
}
