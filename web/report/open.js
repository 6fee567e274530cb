// Exact maps that open in the page: the page of `attnscope figure` of one head, within a frame that may run its script and
// nothing else. The parts that all figures have stand in this page once.
let opened = null;   // {frame, close}
const carried = (id) => document.getElementById(id).textContent;
// No tag of a script's stands whole in this one, which stands in a page itself.
const scriptElement = (values, text) => '<' + 'script ' + values + '>' + text + '</' + 'script>';
const figureDocument = (at) => {
  // These texts stand in this page as they do in a figure's: nothing in them ends their element.
  const prefix = 'figure-' + at + '-';
  const data = Array.from(document.querySelectorAll('script[type="text/plain"][id^="' + prefix + '"]'), (element) =>
    scriptElement('type="text/plain" id="data-' + element.id.slice(prefix.length) + '"', element.textContent));
  return ['<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="',
          'default-src \'none\'; script-src \'sha256-', carried('figure-digest'), '\' \'wasm-unsafe-eval\' blob:; worker-src blob:; ',
          'style-src \'unsafe-inline\'; img-src data: blob:; base-uri \'none\'; form-action \'none\'">',
          '<meta name="viewport" content="width=device-width, initial-scale=1"><style>', carried('figure-style'),
          '</style></head><body><div id="figure"></div>', scriptElement('type="application/json" id="facts"', carried('figure-' + at)),
          scriptElement('type="text/plain" id="data-engine"', carried('figure-engine')), ...data,
          scriptElement('', carried('figure-script')), '</body></html>'].join('');
};
const makeOpener = (tools, item, at, name) => {
  const button = make('button', tools, 'open', 'Look into this map');
  button.type = 'button';
  makeUnseen(button, ' (' + name + ')');
  button.setAttribute('aria-expanded', 'false');
  const close = () => {
    opened.holder.remove();   // and with it the frame's memory
    opened = null;
    button.setAttribute('aria-expanded', 'false');
    button.focus();
  };
  button.onclick = () => {
    const isHere = opened && opened.at === at;
    if (opened) opened.close();
    if (isHere) return;
    const holder = make('div', item, 'exact');
    holder.setAttribute('role', 'group');
    holder.setAttribute('aria-label', 'the exact map of ' + name);
    const head = make('div', holder, 'tools');
    makeWords('strong', head, '', name);
    make('span', head, 'note', 'every weight, computed in this page');
    const shut = make('button', head, 'close', 'Close');
    shut.type = 'button';
    shut.title = 'close the exact map (Esc)';
    shut.onclick = close;
    holder.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
    });
    const frame = document.createElement('iframe');
    frame.setAttribute('sandbox', 'allow-scripts');
    frame.title = 'the exact map of ' + name;
    frame.srcdoc = figureDocument(at);
    holder.appendChild(frame);
    opened = {at, holder, frame, close};
    button.setAttribute('aria-expanded', 'true');
    shut.focus();
  };
};
/// A figure tells how high it is, and which key closes it.
window.addEventListener('message', (event) => {
  if (!opened || event.source !== opened.frame.contentWindow || !event.data || event.data.format !== 'attnscope-figure/1') return;
  if (event.data.escape) { opened.close(); return; }
  if (Number.isFinite(event.data.height)) opened.frame.style.height = Math.max(200, Math.min(4000, event.data.height)) + 'px';
});
