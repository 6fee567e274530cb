// The page's elements, from its head to its foot.
/// Within another page this one has its map, its film and the author's caption, and nothing else.
const isEmbedded = window.parent !== window || new URLSearchParams(location.search).has('embed');
const root = document.getElementById('figure');
root.classList.toggle('embedded', isEmbedded);
const cutText = (side, name) => side.count === side.total ? '' :
    'Of ' + side.total + ' ' + name + ' the page has ' + side.count + ', from ' + side.first + ' on' +
    (side.stride > 1 ? ', one in ' + side.stride : '') + '. ';
const makeHeader = () => {
  const header = make('header', root);
  makeWords('h1', header, '', facts.title);
  if (facts.caption) makeWords('p', header, 'caption', facts.caption);
  make('p', header, 'what', 'attention map, queries down, keys to the right; ' + facts.score + ', mask: ' + facts.mask +
       ', scale ' + facts.scale.toPrecision(6) + ', ' + facts.dtype + ', ' + facts.dim + ' channels');
  if (facts.prompt) makeWords('p', header, 'prompt', 'prompt: ' + facts.prompt);
  const cut = cutText(Q, 'queries') + cutText(K, 'keys');
  if (cut) make('p', header, 'cut', cut + 'Weights are those of the whole map.');
  if (facts.evicted) make('p', header, '', 'Keys that a cache had dropped before a query came count as masked.');
};
makeHeader();
const main = make('main', root);
const left = make('div', main, 'map'), right = make('div', main, 'row');
const tools = make('div', left, 'tools');
const holder = make('div', left, 'holder');
const canvas = make('canvas', holder, 'view');
canvas.tabIndex = 0;
canvas.setAttribute('role', 'application');
canvas.setAttribute('aria-label', facts.title + ': attention map of ' + Q.count + ' queries (down) and ' + K.count +
    ' keys (across). Arrow keys move a cell, Enter picks it, plus and minus zoom, Shift and arrows pan.');
const corner = make('div', holder, 'corner');
const tip = make('div', holder, 'tip');
tip.hidden = true;
tip.setAttribute('aria-hidden', 'true');   // keys have it read out below
const read = make('div', left, 'read', matchMedia('(pointer: coarse)').matches ?
    'Two fingers zoom and move; a tap picks a query, and from then on one finger moves the map.' : isEmbedded ?
    'Ctrl + wheel zooms, dragging moves, a click picks a query.' :
    'The wheel zooms, dragging moves, a click picks a query; arrow keys, Enter, + and − do the same.');
read.setAttribute('role', 'status');
read.setAttribute('aria-live', 'polite');
const tell = (text) => { read.textContent = text; read.className = 'read'; };
const say = (text) => { read.textContent = text; read.className = 'read problem'; };
const rowTitle = make('p', right, 'picked', 'no query is picked');
rowTitle.setAttribute('aria-live', 'polite');
const film = make('canvas', right, 'film');
film.setAttribute('role', 'img');
film.setAttribute('aria-label', 'the weights over the token grid, frame by frame; the table below has the largest');
film.hidden = true;
const filmNote = make('p', right, 'note', '');
const words = make('div', right, 'words');
const largest = make('table', right, 'largest');
const footer = make('footer', root);
make('p', footer, '', 'This page contains the queries and keys of this head: whoever has the page has these.');
const makeFooter = () => {
  const how = make('details', footer);
  make('summary', how, '', 'how it was made');
  make('p', how, '', 'By attnscope ' + facts.version + ' with ');
  make('code', how.lastChild, '', facts.command);
  make('p', how, '', 'Row sums by the backend ' + facts.backend + '; numbers that are read off are computed here. ' +
       'The page’s program is attnscope’s, under the MIT license, with parts of Highway (Apache 2.0), musl (MIT) and LLVM’s ' +
       'libraries (Apache 2.0 with LLVM exceptions); what it shows belongs to who made it.');
};
makeFooter();
