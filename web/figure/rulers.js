// Rulers at the map's left and upper edges: the text and frames by name, below them rows (y), cells (x) or words as room
// allows; and lines through the map where these begin.
const kLeastFrame = 8;     // CSS pixels between lines of frames
const kWideRow = 64;       // of a row of the grid from which on rows have the names, and cells the marks
const axisOf = (side, list, first, length, isDown) => ({side, list, first, length, isDown, shown: length / view.scale});
const axes = () => [
  axisOf(K, parts.keys, view.col, area.width, false),
  axisOf(Q, parts.rows, view.row, area.height, true),
];
/// Stretches of a part that a ruler names: the part, or the rows of its grid where these are wide.
const stretchesOf = (axis, part) => {
  if (!part.grid) return [part];
  const [height, width] = part.grid, {side} = axis;
  if (width / side.stride * view.scale < kWideRow * ratio) return [part];
  const stretches = [], place = (token) => Math.ceil((token - side.first) / side.stride);
  for (let y = 0; y < height; ++y) {
    const begin = Math.max(part.begin, place(part.token + y * width)), end = Math.min(part.end, place(part.token + (y + 1) * width));
    if (end > axis.first && begin < axis.first + axis.shown) stretches.push({...part, begin, end, name: part.name + ' y' + y, y});
  }
  return stretches;
};
const seenParts = (axis) => axis.list.filter((part) => part.end > axis.first && part.begin < axis.first + axis.shown);

/// Names of stretches where they fit: those that are no frames first, then every n-th frame.
const namesOf = (axis, stretches, extent) => {
  const at = (place) => (place - axis.first) * view.scale;
  const placed = [];
  const put = (stretch) => {
    const long = extent(stretch.name);
    const from = Math.max(0, at(stretch.begin)), to = Math.min(axis.length, at(stretch.end));
    const middle = Math.max(long / 2, Math.min(axis.length - long / 2, (from + to) / 2));
    const gap = 4 * ratio, over = (begin) => placed.find((other) => begin < other.end + gap && begin + long > other.begin - gap);
    let begin = middle - long / 2;
    if (stretch.frame >= 0 && (begin < from - long / 2 || begin + long > to + long / 2)) return;
    // Behind the text's name, which is longer than the text, a frame's may still have room in its frame.
    const before = over(begin);
    if (before) begin = before.end + gap;
    if (before && (over(begin) || begin + long > to)) return;
    placed.push({begin, end: begin + long, middle: begin + long / 2, text: stretch.name});
  };
  for (const stretch of stretches) if (stretch.frame < 0) put(stretch);
  const frames = stretches.filter((stretch) => stretch.frame >= 0);
  const longest = Math.max(1, ...frames.map((stretch) => extent(stretch.name))) + 6 * ratio;
  const pitch = Math.max(0.01, ...frames.map((stretch) => (stretch.end - stretch.begin) * view.scale));
  const step = roundStep(longest / pitch);
  for (const stretch of frames) if ((stretch.y === undefined ? stretch.frame : stretch.y) % step === 0) put(stretch);
  return placed;
};
/// Marks within a stretch: its rows, its cells, its words or its tokens, every n-th.
const marksOf = (axis, stretch, extent) => {
  const {side} = axis, marks = [];
  const pixels = view.scale / side.stride;   // a token
  const isFrame = stretch.grid !== null, byRow = isFrame && stretch.y === undefined;
  const width = byRow ? stretch.grid[1] : 1, first = stretch.token + (stretch.y || 0) * (isFrame ? stretch.grid[1] : 0);
  const count = byRow ? stretch.grid[0] : isFrame ? stretch.grid[1] : stretch.tokens;
  const text = (n) => byRow ? 'y' + n : isFrame ? 'x' + n : wordAt(side, first + n) === null ? String(n) : wordAt(side, first + n);
  const usual = Math.max(extent(text(count - 1)), extent(text(0))) + 5 * ratio;
  const step = roundStep(usual / (width * pixels));
  if (2 * step > count) return marks;
  const lead = (first - side.first) / side.stride, from = Math.max(0, Math.floor((axis.first - lead) * side.stride / width / step) * step);
  for (let n = from; n < count; n += step) {
    const middle = (lead + ((n + 0.5) * width - 0.5 * (side.stride > 1 ? 1 : 0)) / side.stride - axis.first) * view.scale;
    if (middle > Math.min(axis.length, (side.count - axis.first) * view.scale)) break;
    const long = extent(text(n));
    if (middle < long / 2 || middle > axis.length - long / 2) continue;
    const room = step * width * pixels, word = wordAt(side, first + n);
    // Beside the map a word is turned, where its cell is high enough; else the token's number stands there.
    const isTurned = axis.isDown && !isFrame && word !== null && textWidth(word, 10 * ratio) <= room;
    marks.push({middle, long, isTurned, text: axis.isDown ? (isFrame || isTurned ? text(n) : String(n)) : clipped(text(n), room, extent)});
  }
  return marks;
};
/// Of marks that would lie over each other where stretches meet, the later ones.
const apart = (marks) => {
  const kept = [];
  for (const mark of marks) {
    const last = kept[kept.length - 1];
    if (last && mark.middle - mark.long / 2 < last.middle + last.long / 2) kept.pop();
    kept.push(mark);
  }
  return kept;
};
/// A text as far as there is room for it, and no more than `most` letters of one that is cut.
const clipped = (text, room, extent, most = 24) => {
  if (extent(text) <= room) return text;
  let kept = text.slice(0, most);
  while (kept.length > 1 && extent(kept + '…') > room) kept = kept.slice(0, -1);
  return kept + '…';
};

const drawRuler = (pen, axis) => {
  const size = 11 * ratio, small = 10 * ratio;
  const stretches = seenParts(axis).flatMap((part) => stretchesOf(axis, part));
  const end = Math.min(axis.length, (axis.side.count - axis.first) * view.scale);
  const put = (middle, depth, text, look) => axis.isDown ?
      pen.text(depth, area.y + middle, text, look) : pen.text(area.x + middle, depth, text, look);
  const names = namesOf(axis, stretches, (text) => textWidth(text, size));
  for (const name of names) {
    put(name.middle, 9 * ratio, name.text, {size, colour: front, turned: axis.isDown});
  }
  const depth = axis.isDown ? area.x - 4 * ratio : area.y - 9 * ratio;
  const extent = axis.isDown ? () => small : (text) => textWidth(text, small);
  const lines = stretches.filter((stretch) => stretch.frame < 0 || (stretch.end - stretch.begin) * view.scale >= kLeastFrame * ratio)
                    .map((stretch) => (stretch.begin - axis.first) * view.scale).filter((at) => at >= 0 && at <= end);
  // A line would strike through a mark that stands on it.
  const isClear = (mark) => lines.every((at) => Math.abs(mark.middle - at) >= mark.long / 2);
  for (const mark of apart(stretches.flatMap((stretch) => marksOf(axis, stretch, extent)).filter(isClear))) {
    const align = axis.isDown && !mark.isTurned ? 'end' : 'middle';
    put(mark.middle, depth - (mark.isTurned ? 4 * ratio : 0), mark.text, {size: small, colour: soft, align, turned: mark.isTurned});
  }
  for (const at of lines) {
    const from = (names.some((name) => name.begin < at && name.end > at) ? 17 : 3) * ratio;
    if (axis.isDown) pen.line(from, area.y + at, area.x, area.y + at, soft, 0.5 * ratio);
    else pen.line(area.x + at, from, area.x + at, area.y, soft, 0.5 * ratio);
  }
  if (axis.isDown) pen.line(area.x, area.y, area.x, area.y + end, soft, ratio);
  else pen.line(area.x, area.y, area.x + end, area.y, soft, ratio);
};
/// Lines through the map where parts begin; frames that are narrow have none.
const drawLines = (pen, axis, across) => {
  const wide = seenParts(axis).flatMap((part) => stretchesOf(axis, part));
  for (const stretch of wide) {
    const isFrame = stretch.frame >= 0 && stretch.begin !== 0;
    const border = stretch.frame < 0 || axis.list.some((part) => part.frame < 0 && part.end === stretch.begin);
    const at = (stretch.begin - axis.first) * view.scale;
    if (at <= 0 || at > axis.length) continue;
    if (isFrame && !border && (stretch.end - stretch.begin) * view.scale < kLeastFrame * ratio) continue;
    const colour = border ? 'rgba(255,255,255,.85)' : stretch.y > 0 ? 'rgba(255,255,255,.18)' : 'rgba(255,255,255,.4)';
    // A dark companion shows the line where the map is bright.
    for (const [shift, ink] of [[1, 'rgba(0,0,0,.25)'], [0, colour]]) {
      const place = Math.round(at) + (shift + 0.5) * Math.max(1, ratio / 2);
      if (axis.isDown) pen.line(area.x, area.y + place, area.x + across, area.y + place, ink, Math.max(1, ratio / 2));
      else pen.line(area.x + place, area.y, area.x + place, area.y + across, ink, Math.max(1, ratio / 2));
    }
  }
};
