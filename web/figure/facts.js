// The page of `attnscope figure`: the places of its sequences.
const Q = facts.queries, K = facts.keys;

// --- places of a sequence: `i` counts what the page has, a token counts in the whole sequence ---
const stored = (side, i) => side.first + i * side.stride;
/// The place that a token has, or the one that is next to it.
const placeOf = (side, token) => Math.max(0, Math.min(side.count - 1, Math.round((token - side.first) / side.stride)));
const isHere = (side, token) => stored(side, placeOf(side, token)) === token;
const wordAt = (side, index) => {
  const w = side.words;
  if (!w || index < w.begin || index - w.begin >= w.text.length) return null;
  return w.text[index - w.begin];
};
const segmentAt = (side, index) => side.segments.find((s) => index >= s.begin && index < s.end);
const placeText = (side, i) => {
  const index = stored(side, i);
  const segment = segmentAt(side, index);
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
  // The isolates keep a word that is written from the right from turning what stands beside it.
  return index + ' ' + text + (word === null ? '' : ' “\u2068' + word + '\u2069”');
};
/// The frames and the other parts that the page has of a sequence, each with its places [begin, end), in order.
const partsOf = (side) => {
  const parts = [];
  const place = (token) => Math.max(0, Math.min(side.count, Math.ceil((token - side.first) / side.stride)));
  const add = (token, end, more) => {
    const part = {token, tokens: end - token, begin: place(token), end: place(end), ...more};
    if (part.end > part.begin) parts.push(part);
  };
  const several = side.segments.filter((s) => s.grid).length > 1;
  for (const s of side.segments) {
    if (!s.grid) { add(s.begin, s.end, {name: s.name, frame: -1, grid: null}); continue; }
    const [frames, height, width] = s.grid, size = height * width;
    for (let t = 0; t < frames; ++t) {
      add(s.begin + t * size, s.begin + (t + 1) * size,
          {name: (several ? s.name + ' ' : '') + 't' + t, frame: t, grid: [height, width]});
    }
  }
  return parts;
};
const parts = {rows: partsOf(Q), keys: partsOf(K)};
/// A weight beside that of a row that has the same for every key.
const besideUniform = (weight) =>
    facts.score.startsWith('soft') && weight > 0 ? ' (' + numberWords(weight * K.total) + ' × uniform)' : '';
