// The page of `attnscope figure`. Everything that a capture's author wrote goes into it as text, never as markup.
if (typeof document !== 'undefined') (() => {
const facts = JSON.parse(document.getElementById('facts').textContent);
const Q = facts.queries, K = facts.keys;
const kTile = 256;

// --- what the page carries ---
const bytesOf = (name) => {
  const element = document.getElementById('data-' + name);
  if (!element) return null;
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  element.remove();
  return bytes.buffer;
};
const octaves = (code) => code === 0 ? -Infinity : (code - 1) / 512 - 127;
const base = new Uint16Array(bytesOf('base'));

// --- the engine: one question at a time, the latest wishes first ---
let busy = null, send = null;   // `send` is there once the engine has started
const asked = [];   // what somebody waits for
let wished = [];    // tiles that the view wants; replaced by each picture
const start = (question) => {
  busy = question;
  send(question.message, question.transfer || []);
};
const next = () => {
  if (busy || !send) return;
  const question = asked.shift() || wished.shift();
  if (question) start(question);
};
const answered = (data) => {
  const question = busy;
  busy = null;
  if (data.problem) question.fail(new Error(data.problem));
  else question.done(data.values);
  next();
};
const ask = (message, transfer) => new Promise((done, fail) => {
  asked.push({message, transfer, done, fail});
  next();
});
// Whoever shows this page within another one may allow it no worker.
const startInPage = () => {
  if (send) return;
  const answer = makeEngine();
  // After what is to be seen has been drawn.
  send = (message) => setTimeout(() => answer(message).then(answered), 0);
  make('p', footer, 'inpage', 'The page may have no worker here, so that it computes by itself: it stands still meanwhile.');
  next();
};
const startWorker = (script) => {
  const worker = new Worker(URL.createObjectURL(new Blob([script], {type: 'text/javascript'})));
  worker.onmessage = (event) => {
    if (!event.data.started) { answered(event.data); return; }
    send = (message, transfer) => worker.postMessage(message, transfer);
    next();
  };
  worker.onerror = (event) => {
    event.preventDefault();
    if (send) say('the engine failed: ' + event.message);
    else startInPage();
  };
};

// --- elements ---
const make = (tag, parent, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
const root = document.getElementById('figure');
const header = make('header', root);
make('h1', header, '', facts.title);
make('p', header, '', 'attention map, queries down, keys to the right; ' + facts.score + ', mask: ' + facts.mask +
     ', scale ' + facts.scale.toPrecision(6) + ', ' + facts.dtype + ', ' + facts.dim + ' channels');
if (facts.prompt) make('p', header, 'prompt', 'prompt: ' + facts.prompt);
const cutText = (side, name) => side.count === side.total ? '' :
    'Of ' + side.total + ' ' + name + ' the page has ' + side.count + ', from ' + side.first + ' on' +
    (side.stride > 1 ? ', one in ' + side.stride : '') + '. ';
const cut = cutText(Q, 'queries') + cutText(K, 'keys');
if (cut) make('p', header, 'cut', cut + 'Weights are those of the whole map.');
if (facts.evicted) make('p', header, '', 'Keys that a cache had dropped before a query came count as masked.');
const main = make('main', root);
const left = make('div', main, 'map'), right = make('div', main, 'row');
const tools = make('div', left, 'tools');
const choice = (label, values, change) => {
  const holder = make('label', tools, '', label + ' ');
  const select = make('select', holder);
  for (const value of values) make('option', select, '', value).value = value;
  select.onchange = () => change(select.value);
  return select;
};
const canvas = make('canvas', left, 'view');
canvas.tabIndex = 0;
const read = make('div', left, 'read', 'The wheel zooms, dragging moves, a click picks a query; arrow keys, + and − do the same.');
const rowTitle = make('p', right, '', 'no query is picked');
const film = make('canvas', right, 'film');
const filmNote = make('p', right, 'note', '');
const words = make('div', right, 'words');
const footer = make('footer', root);
make('p', footer, '', 'This page contains the queries and keys of this head: whoever has the page has these.');
const made = make('p', footer, '', 'Made by attnscope ' + facts.version + ' with ');
make('code', made, '', facts.command);
make('p', footer, '', 'Row sums by the backend ' + facts.backend + '; numbers that are read off are computed here. ' +
     'The page’s program is attnscope’s, under the MIT license, with parts of Highway (Apache 2.0), musl (MIT) and LLVM’s ' +
     'libraries (Apache 2.0 with LLVM exceptions); what it shows belongs to who made it.');
const say = (text) => { read.textContent = text; read.className = 'read problem'; };

// --- places of the sequence ---
const stored = (side, i) => side.first + i * side.stride;
const wordAt = (side, index) => {
  const w = side.words;
  if (!w || index < w.begin || index - w.begin >= w.text.length) return null;
  return w.text[index - w.begin];
};
const placeText = (side, i) => {
  const index = stored(side, i);
  const segment = side.segments.find((s) => index >= s.begin && index < s.end);
  if (!segment) return String(index);
  const at = index - segment.begin;
  let text = segment.name + ' ' + at;
  if (segment.grid) {
    const [, h, w] = segment.grid;
    text = segment.name + ' (' + [Math.floor(at / (h * w)), Math.floor(at / w) % h, at % w].join(', ') + ')';
  } else if (segment.valid !== undefined && at >= segment.valid) {
    text = 'padding ' + at;
  }
  const word = wordAt(side, index);
  return index + ' ' + text + (word === null ? '' : ' “' + word + '”');
};

// --- colours ---
let table = null, pool = 0;
const range = facts.range.slice();
const chooseColours = (name) => {
  const text = facts.colours[name];
  table = new Uint8Array(768);
  for (let i = 0; i < 768; ++i) table[i] = parseInt(text.substr(2 * i, 2), 16);
  paintScale();
};
const scaleCanvas = document.createElement('canvas');
const paintScale = () => {
  scaleCanvas.width = 256;
  scaleCanvas.height = 1;
  const context = scaleCanvas.getContext('2d'), image = context.createImageData(256, 1);
  for (let i = 0; i < 256; ++i) image.data.set([table[3 * i], table[3 * i + 1], table[3 * i + 2], 255], 4 * i);
  context.putImageData(image, 0, 0);
};
// Weights of 0 and masked ones stay clear: the page's own colour shows.
const picture = (width, height, octave) => {
  const tile = document.createElement('canvas');
  tile.width = width;
  tile.height = height;
  const context = tile.getContext('2d'), image = context.createImageData(width, height);
  const [low, high] = range;
  for (let i = 0; i < width * height; ++i) {
    const value = octave(i);
    if (value === -Infinity) continue;
    const unit = Math.max(0, Math.min(1, (value - low) / (high - low)));
    const colour = 3 * Math.round(255 * unit);
    image.data[4 * i] = table[colour];
    image.data[4 * i + 1] = table[colour + 1];
    image.data[4 * i + 2] = table[colour + 2];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return tile;
};

// --- tiles: the base that came with the page, finer ones computed ---
const tiles = new Map();   // "level/row/col": {values, rows, cols, canvas}
let basePicture = null;
const forget = () => {
  basePicture = null;
  for (const tile of tiles.values()) tile.canvas = null;
  draw();
};
const texelsOf = (side, level) => Math.ceil(side.count / 2 ** level);
const wantTile = (level, row, col) => {
  const key = level + '/' + row + '/' + col;
  const found = tiles.get(key);
  if (found) {
    tiles.delete(key);
    tiles.set(key, found);   // the one used last goes last
    return found;
  }
  const rows = Math.min(kTile, texelsOf(Q, level) - row * kTile);
  const cols = Math.min(kTile, texelsOf(K, level) - col * kTile);
  if (busy && busy.key === key) return null;
  wished.push({
    key,
    message: {what: 'texels', level, row: row * kTile, rows, col: col * kTile, cols},
    done: (values) => {
      tiles.set(key, {values, rows, cols, canvas: null});
      for (const old of tiles.keys()) {
        if (tiles.size <= 160) break;
        tiles.delete(old);
      }
      soon();
    },
    fail: (error) => say(error.message),
  });
  return null;
};
const tileCanvas = (tile) => {
  if (!tile.canvas) {
    const offset = pool * tile.rows * tile.cols;
    tile.canvas = picture(tile.cols, tile.rows, (i) => Math.log2(tile.values[offset + i]));
  }
  return tile.canvas;
};
const baseCanvas = () => {
  if (!basePicture) {
    const [rows, cols] = facts.texels, offset = pool * rows * cols;
    basePicture = picture(cols, rows, (i) => octaves(base[offset + i]));
  }
  return basePicture;
};

// --- the view: `scale` pixels an entry, the entry at the canvas's corner ---
const view = {scale: 1, row: 0, col: 0};
let picked = -1, ready = false, ratio = 1;
const fit = () => {
  view.scale = Math.min(canvas.width / K.count, canvas.height / Q.count);
  view.row = (Q.count - canvas.height / view.scale) / 2;
  view.col = (K.count - canvas.width / view.scale) / 2;
};
const least = () => 0.5 * Math.min(canvas.width / K.count, canvas.height / Q.count);
const hold = (first, shown, count) => shown >= count ? (count - shown) / 2 : Math.max(0, Math.min(first, count - shown));
const settle = () => {
  view.scale = Math.max(least(), Math.min(120 * ratio, view.scale));
  view.row = hold(view.row, canvas.height / view.scale, Q.count);
  view.col = hold(view.col, canvas.width / view.scale, K.count);
  soon();
};
const zoomAt = (x, y, factor) => {
  const row = view.row + y / view.scale, col = view.col + x / view.scale;
  view.scale = Math.max(least(), Math.min(120 * ratio, view.scale * factor));
  view.row = row - y / view.scale;
  view.col = col - x / view.scale;
  settle();
};
let frame = 0;
const soon = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw(); }); };

const numbers = new Map();   // a window of exact entries, for cells that are large enough
const drawNumbers = (context, rows, cols) => {
  const cell = view.scale;
  if (cell < 52 * ratio || !ready) return;
  const key = [rows, cols].join();
  const values = numbers.get(key);
  if (!values) {
    if (numbers.has(key)) return;
    numbers.clear();
    numbers.set(key, null);
    ask({what: 'entries', row: rows[0], rows: rows[1] - rows[0], key: cols[0], keys: cols[1] - cols[0], quantity: 0})
        .then((found) => { if (numbers.has(key)) { numbers.set(key, found); soon(); } }, (error) => say(error.message));
    return;
  }
  context.font = Math.round(Math.min(13 * ratio, cell / 6)) + 'px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  const width = cols[1] - cols[0];
  for (let r = rows[0]; r < rows[1]; ++r) {
    for (let c = cols[0]; c < cols[1]; ++c) {
      const value = values[(r - rows[0]) * width + c - cols[0]];
      const unit = (Math.log2(value) - range[0]) / (range[1] - range[0]);
      context.fillStyle = value === 0 ? front : unit > 0.6 ? '#000' : '#fff';
      context.fillText(value === 0 ? '0' : value.toExponential(2), (c + 0.5 - view.col) * cell, (r + 0.5 - view.row) * cell);
    }
  }
};
const drawTiles = (context, level) => {
  const size = kTile * 2 ** level;
  const last = (first, shown, count) => Math.floor(Math.min(count - 1, first + shown) / size);
  const bottom = last(view.row, canvas.height / view.scale, Q.count);
  const right_ = last(view.col, canvas.width / view.scale, K.count);
  for (let row = Math.max(0, Math.floor(view.row / size)); row <= bottom; ++row) {
    for (let col = Math.max(0, Math.floor(view.col / size)); col <= right_; ++col) {
      const tile = wantTile(level, row, col);
      if (!tile) continue;
      // At whole pixels, so that no seam shows between neighbours.
      const across = (c) => Math.round((c - view.col) * view.scale), down = (r) => Math.round((r - view.row) * view.scale);
      const x = across(col * size), y = down(row * size);
      const w = across(col * size + tile.cols * 2 ** level) - x, h = down(row * size + tile.rows * 2 ** level) - y;
      context.fillStyle = none;
      context.fillRect(x, y, w, h);
      context.drawImage(tileCanvas(tile), x, y, w, h);
    }
  }
};
let front = '', none = '';   // the page's own colours
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  front = style.getPropertyValue('--front').trim();
  none = style.getPropertyValue('--none').trim();
};
readColours();
const draw = () => {
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = false;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.save();
  context.beginPath();
  context.rect(-view.col * view.scale, -view.row * view.scale, K.count * view.scale, Q.count * view.scale);
  context.clip();
  context.fillStyle = none;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const side = 2 ** facts.level;
  context.drawImage(baseCanvas(), -view.col * view.scale, -view.row * view.scale, facts.texels[1] * side * view.scale,
                    facts.texels[0] * side * view.scale);
  wished = [];
  const level = Math.max(0, Math.floor(Math.log2(1 / view.scale) + 0.5));
  if (ready && (level < facts.level || facts.level === 0)) drawTiles(context, Math.min(level, facts.level));
  const rows = [Math.max(0, Math.floor(view.row)), Math.min(Q.count, Math.ceil(view.row + canvas.height / view.scale))];
  const cols = [Math.max(0, Math.floor(view.col)), Math.min(K.count, Math.ceil(view.col + canvas.width / view.scale))];
  drawNumbers(context, rows, cols);
  context.restore();
  if (picked >= 0) {
    context.strokeStyle = '#ff5252';
    context.lineWidth = ratio;
    context.strokeRect(-view.col * view.scale, (picked - view.row) * view.scale, K.count * view.scale, Math.max(ratio, view.scale));
  }
  next();
};

// --- the picked query's row ---
const exact = (value) => value === 0 ? '0' : value.toPrecision(9).replace(/\.?0+(e|$)/, '$1');
const frontOf = (value) => Math.log2(value) > (range[0] + range[1]) / 2 ? '#000' : '#fff';
const colourOf = (value) => {
  const unit = Math.max(0, Math.min(1, (Math.log2(value) - range[0]) / (range[1] - range[0])));
  const at = 3 * Math.round(255 * unit);
  return value === 0 ? 'transparent' : 'rgb(' + [table[at], table[at + 1], table[at + 2]].join() + ')';
};
const drawFilm = (values) => {
  if (!K.film) { film.hidden = true; return; }
  const [frames, height, width] = K.film.grid;
  const across = Math.ceil(Math.sqrt(frames * height / width)), gap = 4;
  const zoom = Math.max(1, Math.min(12, Math.floor((560 * ratio / across - gap) / width)));
  film.width = across * (width * zoom + gap);
  film.height = Math.ceil(frames / across) * (height * zoom + gap);
  const context = film.getContext('2d');
  context.imageSmoothingEnabled = false;
  const cells = new Float64Array(frames * height * width).fill(NaN);   // NaN: the page has not that key
  // Of keys that a stride left out, the nearest one that is here stands in their cells.
  const last = stored(K, K.count - 1) + (K.stride >> 1);
  for (let at = 0; at < cells.length; ++at) {
    const key = K.film.begin + at;
    if (key < K.first || key > last) continue;
    cells[at] = values[Math.min(K.count - 1, Math.round((key - K.first) / K.stride))];
  }
  filmNote.textContent = K.stride === 1 ? '' :
      'One key in ' + K.stride + ' is here: cells of the others show the nearest one of the sequence.';
  for (let t = 0; t < frames; ++t) {
    const x = t % across * (width * zoom + gap), y = Math.floor(t / across) * (height * zoom + gap);
    context.fillStyle = none;
    context.fillRect(x, y, width * zoom, height * zoom);
    const from = t * height * width;
    const image = picture(width, height, (i) => cells[from + i] >= 0 ? Math.log2(cells[from + i]) : -Infinity);
    context.drawImage(image, x, y, width * zoom, height * zoom);
  }
};
const drawWords = (values) => {
  words.replaceChildren();
  if (!K.words) return;
  for (let i = 0; i < K.count; ++i) {
    const word = wordAt(K, stored(K, i));
    if (word === null) continue;
    const span = make('span', words, '', word);
    span.style.background = colourOf(values[i]);
    if (values[i] > 0) span.style.color = frontOf(values[i]);
    span.title = placeText(K, i) + ': ' + exact(values[i]);
    words.appendChild(document.createTextNode(' '));
  }
};
const rowOf = (row) => ask({what: 'entries', row, rows: 1, key: 0, keys: K.count, quantity: 0});
let rowValues = null;
const showRow = () => {
  if (!rowValues) return;
  drawFilm(rowValues);
  drawWords(rowValues);
};
const pick = async (row) => {
  picked = row;
  soon();
  const values = await rowOf(row);
  const lse = (await ask({what: 'lse', row}))[0];
  if (picked !== row) return;
  rowValues = values;
  let best = 0, sum = 0;
  for (let i = 0; i < values.length; ++i) { sum += values[i]; if (values[i] > values[best]) best = i; }
  rowTitle.textContent = 'query ' + placeText(Q, row) + ': largest weight ' + exact(values[best]) + ' on key ' + placeText(K, best) +
      '; the keys here have ' + sum.toPrecision(6) + (Number.isNaN(lse) ? '' : '; LSE ' + lse.toPrecision(9));
  showRow();
};
const entryOf = async (row, key) => {
  const weight = (await ask({what: 'entries', row, rows: 1, key, keys: 1, quantity: 0}))[0];
  const linear = facts.score.startsWith('linear');
  const logit = linear ? NaN : (await ask({what: 'entries', row, rows: 1, key, keys: 1, quantity: 1}))[0];
  return {weight, logit};
};

// --- the hand ---
const place = (event) => {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
};
let drag = null, hover = 0;
const readAt = async (x, y) => {
  const row = Math.floor(view.row + y / view.scale), key = Math.floor(view.col + x / view.scale);
  if (row < 0 || row >= Q.count || key < 0 || key >= K.count || !ready) return;
  const mine = ++hover;
  const entry = await entryOf(row, key);
  if (mine !== hover) return;
  read.className = 'read';
  read.textContent = 'query ' + placeText(Q, row) + '\nkey ' + placeText(K, key) + '\nweight ' + exact(entry.weight) +
      (Number.isNaN(entry.logit) ? '' : '   logit ' + (entry.logit === -Infinity ? 'masked' : exact(entry.logit)));
};
canvas.addEventListener('wheel', (event) => {
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode === 1 ? 33 : event.deltaMode === 2 ? 400 : 1);
  zoomAt(...place(event), 2 ** (-pixels / 200));
}, {passive: false});
canvas.addEventListener('pointerdown', (event) => {
  canvas.setPointerCapture(event.pointerId);
  drag = {at: place(event), moved: false};
});
canvas.addEventListener('pointermove', (event) => {
  const [x, y] = place(event);
  if (!drag) { readAt(x, y).catch((error) => say(error.message)); return; }
  const [dx, dy] = [x - drag.at[0], y - drag.at[1]];
  if (!drag.moved && Math.hypot(dx, dy) < 4 * ratio) return;
  drag = {at: [x, y], moved: true};
  view.col -= dx / view.scale;
  view.row -= dy / view.scale;
  settle();
});
canvas.addEventListener('pointerup', (event) => {
  const click = drag && !drag.moved;
  drag = null;
  if (!click || !ready) return;
  const row = Math.floor(view.row + place(event)[1] / view.scale);
  if (row >= 0 && row < Q.count) pick(row).catch((error) => say(error.message));
});
canvas.addEventListener('keydown', (event) => {
  const step = 60 * ratio / view.scale;
  const keys = {
    ArrowLeft: () => { view.col -= step; settle(); }, ArrowRight: () => { view.col += step; settle(); },
    ArrowUp: () => { view.row -= step; settle(); }, ArrowDown: () => { view.row += step; settle(); },
    '+': () => zoomAt(canvas.width / 2, canvas.height / 2, 2), '-': () => zoomAt(canvas.width / 2, canvas.height / 2, 0.5),
    '0': () => { fit(); soon(); },
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
const resize = () => {
  ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const first = canvas.width === 300 && canvas.height === 150;
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  if (first || view.scale <= 2 * least()) fit();
  settle();
};
new ResizeObserver(resize).observe(canvas);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); forget(); showRow(); });

choice('shown', ['largest of a cell', 'mean of a cell'], (name) => { pool = name.startsWith('mean') ? 1 : 0; forget(); });
choice('colours', Object.keys(facts.colours), (name) => { chooseColours(name); forget(); showRow(); });
make('button', tools, '', 'whole map').onclick = () => { fit(); soon(); };
const legend = make('span', tools, 'legend');
make('span', legend, '', (2 ** range[0]).toExponential(1));
scaleCanvas.className = 'scale';
legend.appendChild(scaleCanvas);
make('span', legend, '', (2 ** range[1]).toExponential(1) + ' (log)');
make('span', tools, 'legend', 'grey: 0 or masked');
chooseColours(Object.keys(facts.colours)[0]);
resize();

try {
  startWorker(document.currentScript.textContent);
} catch (error) {
  startInPage();
}
const data = Object.fromEntries(['engine', 'q', 'k', 'sums', 'exponents', 'lists', 'starts', 'runs'].map((name) => [name, bytesOf(name)]));
const opened = ask({
  what: 'open', ...data,
  numbers: [facts.dtype_number, Q.count, K.count, facts.dim, facts.scale, facts.score_number, K.count === K.total ? 1 : 0,
            facts.mask_lists, facts.mask_runs],
}, Object.values(data).filter(Boolean)).then(() => { ready = true; soon(); }, (error) => { say(error.message); throw error; });

// For whoever looks into the page by program: places are those of the page, from 0 on.
window.attnscope = {
  facts, view, ready: opened,
  entry: async (row, key) => { await opened; return entryOf(row, key); },
  row: async (row) => { await opened; return rowOf(row); },
  texels: async (level, row, rows, col, cols) => { await opened; return ask({what: 'texels', level, row, rows, col, cols}); },
  pick: async (row) => { await opened; return pick(row); },
  idle: () => !busy && asked.length === 0 && wished.length === 0,
};
})();
