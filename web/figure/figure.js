// The start of the page, and what whoever looks into it by program finds.
let ready = false;
const resize = () => {
  const before = {ratio, width: area.width};
  ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const wasWhole = canvas.width === 300 && canvas.height === 150 || isWhole();
  const wasFilled = view.scale === filledScale(), wasFollowed = isFollowed();
  // As high as the whole map wants to be, within what a screen has. A frame's own height may follow from this one.
  const wanted = kRulers.top + (box.width - leftRuler()) * Q.count / K.count;
  const high = Math.round(Math.max(240, Math.min(isEmbedded ? 560 : 0.74 * window.innerHeight, wanted)));
  canvas.style.height = high + 'px';
  const size = [box.width, high].map((length) => Math.max(1, Math.round(length * ratio)));
  if (canvas.width === size[0] && canvas.height === size[1] && ratio === before.ratio) return;
  [canvas.width, canvas.height] = size;
  layOut(...size);
  // On another screen, or where the browser magnifies its pages, the same keys are seen.
  if (ratio !== before.ratio) view.scale *= area.width / before.width;
  if (wasWhole) fit();
  else if (wasFilled) view.scale = filledScale();
  // The tokens that an address asks for fill the area of any shape: it changes as the page comes to stand.
  if (wasFollowed) showTokens(followed.text.split(',').map(Number));
  holdView();
  if (wasFollowed) followed.view = viewNow();
  draw();   // at once: a canvas of another size is empty
  if (ratio !== before.ratio) paintRow();
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
// An address that asks for the start alone is none.
const first = facts.start.query === null ? null : {at: placeOf(Q, facts.start.query), isKey: false};
picked = first;
const beginNarrow = () => { if (picked && isNarrow()) fitShortSide(picked.at, picked.isKey); };
if (!facts.start.zoom) beginNarrow();
told = addressText();
picked = null;
makeTools();
followAddress(location.hash);
if (!picked && first) pickCellOf(first);
if (!facts.start.zoom && !/[#&]z=/.test(location.hash)) beginNarrow();
recolour();
listen();
window.addEventListener('hashchange', () => { followAddress(location.hash); recolour(); });
new ResizeObserver(resize).observe(canvas);
// Another ratio of pixels leaves the canvas its size.
const watchRatio = () => matchMedia('(resolution: ' + window.devicePixelRatio + 'dppx)')
    .addEventListener('change', () => { resize(); watchRatio(); }, {once: true});
watchRatio();
window.addEventListener('resize', resize);
for (const media of ['(prefers-color-scheme: dark)', 'print']) {
  matchMedia(media).addEventListener('change', () => { readColours(); recolour(); draw(); });
}
if (window.parent !== window) {
  new ResizeObserver(tellHeight).observe(root);
  // What closes this page in another one closes it also from within.
  window.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !event.defaultPrevented) window.parent.postMessage({format: facts.format, escape: true}, '*');
  });
}

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
