// The small maps of all heads that the grid shows, painted when they come into view.
const unpainted = new Map();   // canvas to head
const paintTile = (canvas) => {
  if (!unpainted.has(canvas)) return;
  paintThumb(canvas, mapOf(unpainted.get(canvas)));
  unpainted.delete(canvas);
};
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    paintTile(entry.target);
  }
}, {rootMargin: '400px'});
beforePaper.push(() => [...unpainted.keys()].forEach(paintTile));
const makeTile = (list, i) => {
  const item = make('li', list, 'tile');
  const link = make('a', item);
  link.href = '#' + new URLSearchParams([['head', heads.names[i]]]);
  const canvas = make('canvas', link);
  canvas.width = facts.maps.cols;
  canvas.height = facts.maps.rows;
  canvas.style.aspectRatio = facts.maps.cols + '/' + facts.maps.rows;
  canvas.setAttribute('aria-hidden', 'true');
  const name = make('span', link, 'tilename');
  if (heads.class[i]) make('i', name).style.background = cssOf(classColour(heads.class[i]));
  make('span', name, '', 'H' + heads.head[i]).setAttribute('aria-hidden', 'true');
  link.setAttribute('aria-label', heads.names[i] + ', ' + heads.class[i] + ': map');
  link.title = heads.names[i] + ', ' + heads.class[i];
  unpainted.set(canvas, i);
  watcher.observe(canvas);
};
const kMostTiles = 12;
const makeGallery = () => {
  if (!facts.maps || !facts.maps.heads.length) return;
  const section = makeSection('maps', 'Maps of all heads');
  makeIntro(section, 'Each map on a log scale of its own; a cell shows its largest weight; queries down, keys across. Lines part text and frames; ' +
      'the bar beside a name has the colour of its class.' + (facets.length ? ' These are the heads that the grid shows.' : ''));
  const showFacets = makeFacets(section), none = make('p', section, 'note', 'The page has no map of these heads.');
  const list = make('div', section, 'gallery');
  const show = () => {
    showFacets();
    watcher.disconnect();
    unpainted.clear();
    list.replaceChildren();
    const shown = shownHeads().filter((i) => mapIndex.has(i));
    none.hidden = shown.length > 0;
    for (const row of gridRows(shown)) {
      const line = make('div', list, 'row');
      makeWords('h3', line, '', row.name);
      const tiles = make('ul', line);
      tiles.style.setProperty('--across', evenly(row.cells.size, row.cells.size > 2 * kMostTiles ? 16 : kMostTiles));
      for (const i of row.cells.values()) makeTile(tiles, i);
    }
  };
  followers.push((changed) => { if (changed.facets) show(); });
  show();
};
