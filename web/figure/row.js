// The picked query's row, or the picked key's column: over the token grid, over the words, and its ten largest weights.
let picked = null;   // {at, isKey}
let shownValues = null;
const kFilmGap = 4, kFilmName = 14, kFilmEdge = 5;   // CSS pixels
const listed = (p) => p.isKey ? Q : K;   // the side that the values are of
const own = (p) => p.isKey ? K : Q;
/// Where the film's frames stand on its canvas; null where the side has no grid.
const filmLayout = (side) => {
  if (!side.film) return null;
  const [frames, height, width] = side.film.grid;
  const room = Math.max(200, Math.min(620, right.clientWidth || 560)) * ratio, gap = kFilmGap * ratio, name = kFilmName * ratio;
  const edge = kFilmEdge * ratio;   // for the frame of a cell at the film's edge
  const across = Math.max(1, Math.min(frames, Math.ceil(Math.sqrt(frames * height / width))));
  const zoom = Math.max(1, Math.min(20 * ratio, Math.floor(((room - 2 * edge + gap) / across - gap) / width)));
  const place = (t) => [edge + t % across * (width * zoom + gap), Math.floor(t / across) * (height * zoom + gap + name) + name];
  return {frames, height, width, zoom, place, across: 2 * edge - gap + across * (width * zoom + gap),
          down: edge - gap + Math.ceil(frames / across) * (height * zoom + gap + name)};
};
/// The token that the picked one is among those of the film, where both have the same grid; −1 where it is none.
const ownCell = (side, p) => {
  const token = stored(own(p), p.at) - (own(p).film ? own(p).film.begin : 0), mine = own(p).film;
  if (!mine || mine.grid.join() !== side.film.grid.join()) return -1;
  return token >= 0 && token < mine.grid[0] * mine.grid[1] * mine.grid[2] ? token : -1;
};
/// A weight for each cell of the film; NaN where the page has not that token.
const filmCells = (side, values) => {
  const [frames, height, width] = side.film.grid;
  const cells = new Float64Array(frames * height * width).fill(NaN);
  // Of tokens that a stride left out, the nearest one that is here stands in their cells.
  for (let at = 0; at < cells.length; ++at) {
    const token = side.film.begin + at;
    if (token >= side.first && token < side.end) cells[at] = values[placeOf(side, token)];
  }
  return cells;
};
const drawFilm = (values, side) => {
  const layout = filmLayout(side);
  film.hidden = !layout;
  filmNote.textContent = '';
  if (!layout) return;
  const {frames, height, width, zoom} = layout, cells = filmCells(side, values);
  film.width = layout.across;
  film.height = layout.down;
  film.style.width = layout.across / ratio + 'px';
  const context = film.getContext('2d'), pen = canvasPen(context), size = height * width;
  context.imageSmoothingEnabled = false;
  if (side.stride > 1) {
    filmNote.textContent = 'One ' + (picked.isKey ? 'query' : 'key') + ' in ' + side.stride +
        ' is here: cells of the others show the nearest one of the sequence.';
  }
  const mine = ownCell(side, picked);
  for (let t = 0; t < frames; ++t) {
    const [x, y] = layout.place(t);
    pen.box(x, y, width * zoom, height * zoom, none);
    const image = picture(width, height, (i) => cells[t * size + i] >= 0 ? Math.log2(cells[t * size + i]) : -Infinity);
    pen.image(image, x, y, width * zoom, height * zoom);
    const isOwn = mine >= 0 && Math.floor(mine / size) === t;
    pen.text(x, y - kFilmName * ratio / 2, 't' + t + (isOwn ? (picked.isKey ? ' · key' : ' · query') : ''),
             {size: 11 * ratio, colour: isOwn ? front : soft, align: 'start'});
    if (!isOwn) continue;
    const cell = mine % size, [cx, cy] = [x + cell % width * zoom, y + Math.floor(cell / width) * zoom];
    // Further away from a small cell, so that its colour is seen.
    const away = (zoom < 8 * ratio ? 3 : 1) * ratio;
    pen.frame(cx - away, cy - away, zoom + 2 * away, zoom + 2 * away, '#fff', ratio);
    pen.frame(cx - away - ratio, cy - away - ratio, zoom + 2 * (away + ratio), zoom + 2 * (away + ratio), '#ff5252', 1.5 * ratio);
  }
};
/// The token of the sequence at a place of the film's canvas; null between frames.
const filmToken = (side, x, y) => {
  const layout = filmLayout(side);
  for (let t = 0; layout && t < layout.frames; ++t) {
    const [left_, top_] = layout.place(t);
    const col = Math.floor((x - left_) / layout.zoom), row = Math.floor((y - top_) / layout.zoom);
    if (col < 0 || row < 0 || col >= layout.width || row >= layout.height) continue;
    return side.film.begin + (t * layout.height + row) * layout.width + col;
  }
  return null;
};
const drawWords = (values, side) => {
  words.replaceChildren();
  if (!side.words) return;
  for (let i = 0; i < side.count; ++i) {
    const word = wordAt(side, stored(side, i));
    if (word === null) continue;
    const span = makeWords('bdi', words, '', word);
    if (values[i] > 0) {
      const colour = rgbOf(Math.log2(values[i]));
      span.style.background = cssOf(colour);
      span.style.color = inkOn(colour);
    }
    span.title = placeText(side, i) + ': ' + numberWords(values[i]);
    words.appendChild(document.createTextNode(' '));
  }
};
const kListed = 10;
const drawTable = (values, side) => {
  largest.replaceChildren();
  const order = Array.from(values.keys()).filter((i) => values[i] > 0).sort((a, b) => values[b] - values[a] || a - b).slice(0, kListed);
  largest.hidden = order.length === 0;
  make('caption', largest, '', order.length === 1 ? 'the largest weight' : 'the ' + order.length + ' largest weights');
  const head = make('tr', make('thead', largest));
  for (const text of [picked.isKey ? 'query' : 'key', 'weight', '× uniform']) make('th', head, '', text).scope = 'col';
  const body = make('tbody', largest);
  for (const i of order) {
    const line = make('tr', body);
    make('td', line, '', placeText(side, i));
    make('td', line, 'number', numberWords(values[i]));
    make('td', line, 'number', facts.score.startsWith('soft') ? numberWords(values[i] * K.total) : '–');
  }
};
/// Film and words: all that has colours.
const paintRow = () => {
  if (!shownValues) return;
  const side = listed(picked);
  drawFilm(shownValues, side);
  drawWords(shownValues, side);
};
const titleOf = (values, lse) => {
  let best = 0, sum = 0;
  for (let i = 0; i < values.length; ++i) { sum += values[i]; if (values[i] > values[best]) best = i; }
  const name = (picked.isKey ? 'key ' : 'query ') + placeText(own(picked), picked.at);
  if (!(values[best] > 0)) return name + ': all weights are 0 or masked';
  const text = name + ': largest weight ' +
      numberWords(values[best]) + ' ' + (picked.isKey ? 'of query ' : 'on key ') + placeText(listed(picked), best);
  if (picked.isKey) return text + '; the queries here give it ' + numberWords(sum / values.length) + ' on average';
  return text + '; mass of the keys here ' + numberWords(sum) + (Number.isNaN(lse) ? '' : '; LSE ' + lse.toPrecision(6));
};
const show = async (wanted) => {
  picked = wanted;
  soon();
  const values = await (wanted.isKey ? columnOf(wanted.at) : rowOf(wanted.at));
  const lse = wanted.isKey ? NaN : (await ask({what: 'lse', row: wanted.at}))[0];
  if (picked !== wanted) return;
  shownValues = values;
  rowTitle.textContent = titleOf(values, lse);
  paintRow();
  drawTable(values, listed(wanted));
};
const pick = (row) => show({at: row, isKey: false});
const pickKey = (key) => show({at: key, isKey: true});
/// Picks the query of a cell, or its key where clicks do so.
const pickCell = (row, key) => (clicksPickKeys ? pickKey(key) : pick(row)).catch((error) => say(error.message));
let clicksPickKeys = false;
