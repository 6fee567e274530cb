// The start of the page, and what whoever looks into it by program finds.
let ready = false;
const resize = () => {
  ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const wasWhole = canvas.width === 300 && canvas.height === 150 || isWhole();
  // As high as the whole map wants to be, within what a screen has. A frame's own height may follow from this one.
  const wanted = kRulers.top + (box.width - kRulers.left) * Q.count / K.count;
  const high = Math.round(Math.max(240, Math.min(isEmbedded ? 560 : 0.74 * window.innerHeight, wanted)));
  canvas.style.height = high + 'px';
  const size = [box.width, high].map((length) => Math.max(1, Math.round(length * ratio)));
  if (canvas.width === size[0] && canvas.height === size[1]) return;
  [canvas.width, canvas.height] = size;
  layOut(...size);
  if (wasWhole) fit();
  holdView();
  draw();   // at once: a canvas of another size is empty
};
const makeTools = () => {
  makeLegend(tools);
  makeChoice(tools, 'a click picks', [['query', 'a query'], ['key', 'a key: who attends to it']], (name) => { clicksPickKeys = name === 'key'; });
  makeButton(tools, 'PNG', 'save the picture as PNG', () => save(makePng, '.png'));
  makeButton(tools, 'SVG', 'save the picture as SVG', () => save(makeSvg, '.svg'));
  makeButton(corner, '+', 'zoom in', () => zoomBy(2));
  makeButton(corner, '−', 'zoom out', () => zoomBy(0.5));
  makeButton(corner, '⤢', 'whole map', () => { fit(); soon(); });
};
/// Tells the page around this one how high it would like to be.
const tellHeight = () => window.parent.postMessage({format: facts.format, height: Math.ceil(root.getBoundingClientRect().height)}, '*');

readColours();
setTable(Object.keys(facts.colours)[0]);
resize();
startWorker(() => make('p', footer, 'inpage', 'The page may have no worker here, so that it computes by itself: it stands still meanwhile.'), say);
const opened = openEngine().then(() => { ready = true; soon(); }, (error) => { say(error.message); throw error; });
if (facts.start.zoom) showTokens(facts.start.zoom);
if (facts.start.query !== null && !/[#&][qk]=/.test(location.hash)) pickCellOf({at: placeOf(Q, facts.start.query), isKey: false});
told = addressText();
makeTools();
followAddress(location.hash);
recolour();
listen();
window.addEventListener('hashchange', () => { followAddress(location.hash); recolour(); });
new ResizeObserver(resize).observe(canvas);
for (const media of ['(prefers-color-scheme: dark)', 'print']) {
  matchMedia(media).addEventListener('change', () => { readColours(); recolour(); draw(); });
}
if (window.parent !== window) new ResizeObserver(tellHeight).observe(root);

// For whoever looks into the page by program: places are those of the page, from 0 on.
window.attnscope = {
  facts, view, ready: opened,
  entry: async (row, key) => { await opened; return entryOf(row, key); },
  row: async (row) => { await opened; return rowOf(row); },
  texels: async (level, row, rows, col, cols) => { await opened; return ask({what: 'texels', level, row, rows, col, cols}); },
  pick: async (row) => { await opened; return pick(row); },
  picked: () => picked,
  range: () => range.map((octave) => 2 ** octave),
  cursor: () => cursor,
  column: async (key) => { await opened; return columnOf(key); },
  /// The middles of a cell of the map and of one of the film: CSS pixels from the corner of their canvas.
  mapPlace: (row, key) => [xOf(key + 0.5) / ratio, yOf(row + 0.5) / ratio],
  filmPlace: (t, y, x) => {
    const layout = filmLayout(listed(picked)), [left_, top_] = layout.place(t);
    return [(left_ + (x + 0.5) * layout.zoom) / ratio, (top_ + (y + 0.5) * layout.zoom) / ratio];
  },
  idle: () => !busy && asked.length === 0 && wished.length === 0,
};
