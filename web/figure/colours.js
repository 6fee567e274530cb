// Colours: a table of 256 over a range of log₂ of weights.
const base = new Uint16Array(bytesOf('base'));
const octaves = (code) => code === 0 ? -Infinity : (code - 1) / 512 - 127;
let table = null, tableName = '', pool = 0;   // pool: 0 the largest weights of cells, 1 their means
let front = '', back = '', soft = '', none = '';   // the page's own colours
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  [front, back, soft, none] = ['--front', '--back', '--soft', '--none'].map((name) => style.getPropertyValue(name).trim());
};
const setTable = (name) => {
  const text = facts.colours[name];
  tableName = name;
  table = new Uint8Array(768);
  for (let i = 0; i < 768; ++i) table[i] = parseInt(text.substr(2 * i, 2), 16);
};

/// At least an octave, so that an even map is shown in the middle of the colours.
const widened = (low, high) => {
  const more = Math.max(0, 1 - (high - low)) / 2;
  return [low - more, high + more];
};
const largestOctave = base.reduce((most, code) => Math.max(most, octaves(code)), -Infinity);
/// Log₂ of the weights that the colour bar reaches from and to.
const barEnds = () => [Math.min(facts.range[0], range[0]), Math.max(facts.range[1], largestOctave, range[1])];
/// How the range is chosen: by the mass of the whole map, of all that is there, or by hand. The engine finds that of
/// what is seen.
let rangeBy = 'mass', range = facts.range.slice();
const rangeWays = {
  mass: () => widened(...facts.mass_ends[pool]),
  all: () => facts.range.slice(),
  hand: () => range,
};
const chooseRange = () => { range = rangeWays[rangeBy](); };
/// Where the mass of what is seen is; null where all of that is 0.
const seenRange = async () => {
  const values = [], masses = [];
  eachSeenCell((value, mass) => { values.push(value); masses.push(mass); });
  if (values.length === 0) return null;
  const [cells, held] = [values, masses].map((list) => new Float32Array(list).buffer);
  const ends = await ask({what: 'mass_ends', cells, masses: held, count: values.length}, [cells, held]);
  return widened(...Array.from(ends, Math.log2));
};

const unitOf = (octave) => Math.max(0, Math.min(1, (octave - range[0]) / (range[1] - range[0])));
/// Red, green and blue of a weight that is not 0.
const rgbOf = (octave) => {
  const at = 3 * Math.round(255 * unitOf(octave));
  return [table[at], table[at + 1], table[at + 2]];
};
// Weights of 0 and masked ones stay clear: the page's own colour shows.
const picture = (width, height, octave) => {
  const tile = document.createElement('canvas');
  tile.width = width;
  tile.height = height;
  const context = tile.getContext('2d'), image = context.createImageData(width, height);
  for (let i = 0; i < width * height; ++i) {
    const value = octave(i);
    if (value === -Infinity) continue;
    const colour = 3 * Math.round(255 * unitOf(value));
    image.data[4 * i] = table[colour];
    image.data[4 * i + 1] = table[colour + 1];
    image.data[4 * i + 2] = table[colour + 2];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return tile;
};
