// The part of the map that is seen: `scale` pixels of the canvas an entry, the entry at the corner of the map's area,
// which lies right of and below the rulers.
const kRulers = {left: 40, top: 36};   // CSS pixels; the left one at least
/// CSS pixels of the left ruler: its names, and right of them the longest of its marks.
const leftRuler = () => {
  const longest = parts.rows.map((part) => part.grid ? 'x' + (Math.max(...part.grid) - 1) : String(part.tokens - 1));
  return Math.max(kRulers.left, Math.ceil(23 + Math.max(0, ...longest.map((text) => textWidth(text, 10)))));
};
const area = {x: 0, y: 0, width: 1, height: 1};
const view = {scale: 1, row: 0, col: 0};
let ratio = 1;
const layOut = (width, height) => {
  area.x = Math.round(leftRuler() * ratio);
  area.y = Math.round(kRulers.top * ratio);
  area.width = Math.max(1, width - area.x);
  area.height = Math.max(1, height - area.y);
};
const wholeScale = () => Math.min(area.width / K.count, area.height / Q.count);
const least = () => 0.5 * wholeScale();
const most = () => 120 * ratio;
const clampScale = (scale) => Math.max(least(), Math.min(most(), scale));
const hold = (first, shown, count) => Math.max(0, Math.min(first, count - shown));
const holdView = () => {
  view.scale = clampScale(view.scale);
  view.row = hold(view.row, area.height / view.scale, Q.count);
  view.col = hold(view.col, area.width / view.scale, K.count);
};
const fit = () => {
  view.scale = wholeScale();
  view.row = view.col = 0;
};
/// CSS pixels of the whole map's short side below which the first view is no longer the whole map.
const kNarrow = 100;
const isNarrow = () => wholeScale() * Math.min(Q.count, K.count) < kNarrow * ratio;
const filledScale = () => clampScale(Math.max(area.width / K.count, area.height / Q.count));
/// The short side fills its side, around a row (or a key).
const fitShortSide = (at, isKey) => {
  view.scale = filledScale();
  view.row = isKey ? 0 : at - area.height / view.scale / 2;
  view.col = isKey ? at - area.width / view.scale / 2 : 0;
  holdView();
};
/// Pixels of the canvas to places of the map, and back.
const rowAt = (y) => view.row + (y - area.y) / view.scale;
const keyAt = (x) => view.col + (x - area.x) / view.scale;
const xOf = (key) => area.x + (key - view.col) * view.scale;
const yOf = (row) => area.y + (row - view.row) * view.scale;
const zoomAt = (x, y, factor) => {
  const row = rowAt(y), key = keyAt(x);
  view.scale = clampScale(view.scale * factor);
  view.row = row - (y - area.y) / view.scale;
  view.col = key - (x - area.x) / view.scale;
  holdView();
};
/// Rows and keys that are seen, whole ones: [first, end).
const seenRows = () => [Math.max(0, Math.floor(view.row)), Math.min(Q.count, Math.ceil(view.row + area.height / view.scale))];
const seenKeys = () => [Math.max(0, Math.floor(view.col)), Math.min(K.count, Math.ceil(view.col + area.width / view.scale))];
/// Shows these places, all of them, and what lies beside them where the area has another shape.
const showPlaces = (rows, keys) => {
  view.scale = clampScale(Math.min(area.width / (keys[1] - keys[0]), area.height / (rows[1] - rows[0])));
  view.row = rows[0];
  view.col = keys[0];
  holdView();
};
/// Moves the view no further than it takes to see the cell.
const reveal = (row, key) => {
  const margin = 1;
  view.row = Math.min(row - margin, Math.max(row + 1 + margin - area.height / view.scale, view.row));
  view.col = Math.min(key - margin, Math.max(key + 1 + margin - area.width / view.scale, view.col));
  holdView();
};
