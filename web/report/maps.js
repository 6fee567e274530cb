// Small maps and films: bytes as pixels. 0 is masked or nothing; 1 to 255 run over the map's own range.
const held = new Map();
/// The bytes of a name, decoded once.
const bytesNamed = (name) => {
  if (!held.has(name)) held.set(name, new Uint8Array(bytesOf(name) || 0));
  return held.get(name);
};
/// Red, green, blue and cover of each byte.
const coloursOf = (rgba) => new Uint8ClampedArray(Array.from({length: 256}, (_, byte) => byte ? rgba((byte - 1) / 254) : [0, 0, 0, 0]).flat());
const kPlain = coloursOf((unit) => [...rgbAt(unit), 255]), kOver = coloursOf(rgbaOver);
/// A canvas of one pixel a cell.
const makePixels = (bytes, rows, cols, overPicture) => {
  const canvas = document.createElement('canvas');
  canvas.width = cols;
  canvas.height = rows;
  const context = canvas.getContext('2d'), image = context.createImageData(cols, rows), data = image.data;
  const colours = overPicture ? kOver : kPlain;
  for (let i = 0; i < rows * cols; ++i) {
    if (bytes[i] === 0) continue;
    const colour = 4 * bytes[i];
    for (let k = 0; k < 4; ++k) data[4 * i + k] = colours[colour + k];
  }
  context.putImageData(image, 0, 0);
  return canvas;
};
const octaveText = (octave) => octave === null || octave === undefined ? '–' : numberWords(2 ** octave);

// --- maps ---
/// A head's small map: {bytes, rows, cols, low, high}; null where it has none.
const mapIndex = new Map((facts.maps ? facts.maps.heads : []).map((head, at) => [head, at]));
const mapOf = (i) => {
  if (!mapIndex.has(i)) return null;
  const {data, rows, cols, low, high, query_marks, key_marks} = facts.maps, at = mapIndex.get(i);
  return {bytes: bytesNamed(data).subarray(at * rows * cols, (at + 1) * rows * cols), rows, cols, low: low[at], high: high[at],
          query_marks, key_marks};
};
/// Where one part of a sequence ends and another begins, in parts of the side's length.
const bordersOf = (marks, cells) => (marks || []).map(([, begin]) => begin / cells).filter((at) => at > 0.001 && at < 0.999);
/// A map in few pixels, with its parts told apart by lines.
const paintThumb = (canvas, map) => {
  const zoom = Math.max(1, Math.ceil(96 / Math.max(map.rows, map.cols)));
  canvas.width = map.cols * zoom;
  canvas.height = map.rows * zoom;
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = false;
  context.drawImage(makePixels(map.bytes, map.rows, map.cols), 0, 0, canvas.width, canvas.height);
  context.fillStyle = 'rgba(255, 255, 255, 0.45)';
  for (const at of bordersOf(map.key_marks, map.cols)) context.fillRect(Math.round(at * canvas.width), 0, 1, canvas.height);
  for (const at of bordersOf(map.query_marks, map.rows)) context.fillRect(0, Math.round(at * canvas.height), canvas.width, 1);
};
/// The names of a side's parts, where there is room for them: the map is some 260 pixels wide.
const makeMarks = (parent, name, marks, cells, start) => {
  const holder = make('div', parent, name);
  holder.setAttribute('aria-hidden', 'true');
  let free = -Infinity;
  for (const [text, begin, end] of marks || []) {
    const middle = (begin + end) / 2 / cells, half = (start === 'left' ? 2.8 * text.length : 7) / 260;
    if (middle - half < free) continue;
    free = middle + half;
    make('span', holder, '', text).style[start] = 100 * middle + '%';
  }
};
/// A map with the names of its parts and its scale.
const makeMap = (parent, map, label) => {
  const figure = make('figure', parent, 'map');
  const frame = make('div', figure, 'frame');
  makeMarks(frame, 'across', map.key_marks, map.cols, 'left');
  makeMarks(frame, 'down', map.query_marks, map.rows, 'top');
  const pixels = make('div', frame, 'pixels');
  pixels.setAttribute('role', 'img');
  pixels.setAttribute('aria-label', label + ': attention map, queries down, keys across; weights from ' + octaveText(map.low) +
      ' to ' + octaveText(map.high));
  pixels.appendChild(makePixels(map.bytes, map.rows, map.cols)).style.aspectRatio = map.cols + '/' + map.rows;
  for (const [borders, name, start] of [[bordersOf(map.key_marks, map.cols), 'v', 'left'], [bordersOf(map.query_marks, map.rows), 'h', 'top']]) {
    for (const at of borders) make('i', pixels, name).style[start] = 100 * at + '%';
  }
  const caption = make('figcaption', figure);
  makeScale(caption, octaveText(map.low), octaveText(map.high), 'log scale; queries down, keys across');
  return figure;
};

// --- pictures of the video, and films over them ---
const pictureUrls = new Map();
const pictureUrl = (at) => {
  if (!pictureUrls.has(at)) {
    const {data, type} = facts.pictures[at];
    pictureUrls.set(at, URL.createObjectURL(new Blob([bytesNamed(data)], {type})));
  }
  return pictureUrls.get(at);
};
const pictureOf = (frames, t) => frames && facts.pictures && Number.isInteger(frames[t]) && facts.pictures[frames[t]] ? frames[t] : null;
/// How many stand in a line, at most `most`, so that all lines have about as many.
const evenly = (count, most) => Math.ceil(count / Math.ceil(count / most));
const kMostAcross = 8;
/// One frame after the other: {data, grid, query, frames}; `label` tells what is seen.
const makeFilm = (parent, film, label) => {
  const [count, height, width] = film.grid, bytes = bytesNamed(film.data), size = height * width;
  const holder = make('div', parent, 'film');
  holder.setAttribute('role', 'img');
  holder.setAttribute('aria-label', label);
  holder.style.setProperty('--across', evenly(count, kMostAcross));
  for (let t = 0; t < count; ++t) {
    const frame = make('figure', holder, 'still'), box = make('div', frame, 'pixels'), at = pictureOf(film.frames, t);
    box.style.aspectRatio = width + '/' + height;
    if (at !== null) {
      const image = make('img', box);
      image.alt = '';
      image.src = pictureUrl(at);
    }
    box.appendChild(makePixels(bytes.subarray(t * size, (t + 1) * size), height, width, at !== null));
    const isOwn = film.query && film.query[0] === t;
    if (isOwn) {
      const mark = make('b', box, 'query'), [, y, x] = film.query;
      Object.assign(mark.style, {left: 100 * x / width + '%', top: 100 * y / height + '%', width: 100 / width + '%', height: 100 / height + '%'});
    }
    make('figcaption', frame, isOwn ? 'own' : '', 't' + t + (isOwn ? ' · query' : ''));
  }
  return holder;
};
