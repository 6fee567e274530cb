// The picture of the map: its tiles, numbers in cells that are large enough, rulers, and what is picked.
const kNumbers = 52;   // CSS pixels of a cell from which on its number is in it
const numbers = new Map();   // a window of exact entries
const drawNumbers = (pen, rows, cols) => {
  const cell = view.scale;
  if (cell < kNumbers * ratio || !ready) return;
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
  const size = Math.round(Math.min(13 * ratio, cell / 5)), width = cols[1] - cols[0];
  for (let r = rows[0]; r < rows[1]; ++r) {
    for (let c = cols[0]; c < cols[1]; ++c) {
      const value = values[(r - rows[0]) * width + c - cols[0]];
      const text = numberWords(value), [x, y] = [xOf(c + 0.5), yOf(r + 0.5)], half = textWidth(text, size) / 2;
      // A part of a number could be taken for another number.
      if (x - half < area.x || x + half > area.x + area.width || y - size / 2 < area.y || y + size / 2 > area.y + area.height) continue;
      pen.text(x, y, text, {size, colour: value === 0 ? front : inkOn(rgbOf(Math.log2(value)))});
    }
  }
};
const drawTiles = (pen, level) => {
  const size = kTile * 2 ** level;
  eachSeenTile(level, (row, col) => {
    const tile = wantTile(level, row, col);
    if (!tile) return;
    // At whole pixels, so that no seam shows between neighbours.
    const x = Math.round(xOf(col * size)), y = Math.round(yOf(row * size));
    const w = Math.round(xOf(col * size + tile.cols * 2 ** level)) - x;
    const h = Math.round(yOf(row * size + tile.rows * 2 ** level)) - y;
    pen.box(x, y, w, h, none);
    pen.image(tileCanvas(tile), x, y, w, h);
  });
};
/// The map's pixels, in its area alone.
const drawPixels = (context) => {
  const pen = canvasPen(context), side = 2 ** facts.level;
  context.save();
  context.imageSmoothingEnabled = false;
  context.beginPath();
  context.rect(area.x, area.y, Math.min(area.width, xOf(K.count) - area.x), Math.min(area.height, yOf(Q.count) - area.y));
  context.clip();
  pen.box(area.x, area.y, area.width, area.height, none);
  pen.image(baseCanvas(), xOf(0), yOf(0), facts.texels[1] * side * view.scale, facts.texels[0] * side * view.scale);
  wished = [];
  if (ready && hasTiles()) drawTiles(pen, shownLevel());
  context.restore();
};
/// A frame around places, as far as they are seen.
const drawPlaces = (pen, rows, keys, colour, width = 1.5) => {
  const x0 = Math.max(area.x, xOf(keys[0])), x1 = Math.min(area.x + area.width, xOf(keys[1]));
  const y0 = Math.max(area.y, yOf(rows[0])), y1 = Math.min(area.y + area.height, yOf(rows[1]));
  if (x1 < area.x || y1 < area.y || x0 > area.x + area.width || y0 > area.y + area.height) return;
  pen.frame(x0, y0, Math.max(ratio, x1 - x0), Math.max(ratio, y1 - y0), colour, width * ratio);
};
/// All that is drawn over the pixels.
const drawMarks = (pen) => {
  const [across, down] = axes();
  drawLines(pen, across, Math.min(area.height, yOf(Q.count) - area.y));
  drawLines(pen, down, Math.min(area.width, xOf(K.count) - area.x));
  drawNumbers(pen, seenRows(), seenKeys());
  drawRuler(pen, across);
  drawRuler(pen, down);
  if (picked) drawPlaces(pen, picked.isKey ? [0, Q.count] : [picked.at, picked.at + 1],
                         picked.isKey ? [picked.at, picked.at + 1] : [0, K.count], '#ff5252');
};
let frame = 0;
const soon = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw(); }); };
const draw = () => {
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, canvas.width, canvas.height);
  drawPixels(context);
  const pen = canvasPen(context);
  drawMarks(pen);
  if (cursor) {
    for (const [colour, width] of [['#000', 4], ['#fff', 1.5]]) {
      drawPlaces(pen, [cursor.row, cursor.row + 1], [cursor.key, cursor.key + 1], colour, width);
    }
    const r = 5 * ratio, x = xOf(cursor.key + 0.5), y = yOf(cursor.row + 0.5);
    if (view.scale < r) pen.frame(x - r, y - r, 2 * r, 2 * r, '#fff', 1.5 * ratio);
  }
  tellAddress();
  next();
};
