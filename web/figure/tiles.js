// Tiles of the map: the base that came with the page, finer ones computed while one looks.
const kTile = 256, kMostTiles = 160;
const tiles = new Map();   // "level/row/col": {values, rows, cols, canvas}
let basePicture = null;
const forgetPictures = () => {
  basePicture = null;
  for (const tile of tiles.values()) tile.canvas = null;
};
const texelsOf = (side, level) => Math.ceil(side.count / 2 ** level);
const tileKey = (level, row, col) => level + '/' + row + '/' + col;
/// The tile, or null and a wish for it.
const wantTile = (level, row, col) => {
  const key = tileKey(level, row, col);
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
        if (tiles.size <= kMostTiles) break;
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
const shownLevel = () => Math.min(facts.level, Math.max(0, Math.floor(Math.log2(1 / view.scale) + 0.5)));
const hasTiles = () => shownLevel() < facts.level || facts.level === 0;
/// Hands over row and column of each tile that is seen some of.
const eachSeenTile = (level, hand) => {
  const size = kTile * 2 ** level, rows = seenRows(), keys = seenKeys();
  for (let row = Math.floor(rows[0] / size); row * size < rows[1]; ++row) {
    for (let col = Math.floor(keys[0] / size); col * size < keys[1]; ++col) hand(row, col);
  }
};
/// Hands over the value and the mass of each cell that is seen and not 0: of tiles where these are there, else of the base.
const eachSeenCell = (hand) => {
  const level = shownLevel(), found = [];
  let complete = hasTiles();
  if (complete) {
    eachSeenTile(level, (row, col) => {
      const tile = tiles.get(tileKey(level, row, col));
      complete = complete && tile !== undefined;
      if (tile) found.push({values: tile.values, row: row * kTile, col: col * kTile, rows: tile.rows, cols: tile.cols, decode: (v) => v});
    });
  }
  const whole = {values: base, row: 0, col: 0, rows: facts.texels[0], cols: facts.texels[1],
                 decode: (code) => code === 0 ? 0 : 2 ** octaves(code)};
  const side = 2 ** (complete ? level : facts.level), rows = seenRows(), keys = seenKeys();
  for (const tile of complete ? found : [whole]) {
    const offset = tile.rows * tile.cols;
    for (let r = 0; r < tile.rows; ++r) {
      const row = (tile.row + r) * side;
      if (row + side <= rows[0] || row >= rows[1]) continue;
      for (let c = 0; c < tile.cols; ++c) {
        const key = (tile.col + c) * side;
        if (key + side <= keys[0] || key >= keys[1]) continue;
        const at = r * tile.cols + c, value = tile.decode(tile.values[pool * offset + at]);
        if (value > 0) hand(value, tile.decode(tile.values[offset + at]));
      }
    }
  }
};
