// The colour bar: its ends are handles, and so are the choices of table and range.
const legend = {bar: null, picture: null, handles: [], numbers: [], ways: null, tables: null, pools: null};
const kWays = {mass: 'where the mass is', view: 'this view', all: 'all', hand: 'by hand'};
const unitOnBar = (octave) => {
  const [low, high] = barEnds();
  return Math.max(0, Math.min(1, (octave - low) / (high - low)));
};
const paintBar = () => {
  const [low, high] = barEnds();
  legend.picture.width = 256;
  legend.picture.height = 1;
  canvasPen(legend.picture.getContext('2d')).image(picture(256, 1, (i) => low + (high - low) * i / 255), 0, 0, 256, 1);
  legend.handles.forEach((handle, end) => {
    const text = largestOctave === -Infinity ? '–' : numberWords(2 ** range[end]);   // –: nothing to scale
    handle.style.left = 100 * unitOnBar(range[end]) + '%';
    handle.setAttribute('aria-valuemin', low.toFixed(2));
    handle.setAttribute('aria-valuemax', high.toFixed(2));
    handle.setAttribute('aria-valuenow', range[end].toFixed(2));
    handle.setAttribute('aria-valuetext', 'weight ' + text);
    legend.numbers[end].textContent = text;
  });
  legend.pools.value = pool ? 'mean' : 'largest';
  legend.ways.value = rangeBy;
  legend.tables.value = tableName;
};
/// Draws everything anew in the colours that are chosen by now.
const recolour = () => {
  chooseRange();
  forgetPictures();
  paintBar();
  paintRow();
  soon();
};
const moveEnd = (end, octave) => {
  const [low, high] = barEnds();
  rangeBy = 'hand';
  range[end] = Math.max(low, Math.min(high, octave));
  if (range[1] - range[0] < 0.25) range[end] = range[1 - end] + (end ? 0.25 : -0.25);
  recolour();
};
/// This view's range is taken once, so that colours do not change while one moves.
const chooseWay = async (way) => {
  if (way === 'view') {
    const seen = await seenRange().catch((error) => { say(error.message); return null; });
    if (seen) range = seen;
  }
  rangeBy = way === 'view' ? 'hand' : way;
  recolour();
};
const makeHandle = (end) => {
  const handle = make('span', legend.bar, 'handle');
  handle.tabIndex = 0;
  handle.setAttribute('role', 'slider');
  handle.setAttribute('aria-label', end ? 'upper end of the colours' : 'lower end of the colours');
  handle.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
  });
  handle.addEventListener('pointermove', (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = legend.picture.getBoundingClientRect(), [low, high] = barEnds();
    moveEnd(end, low + (high - low) * (event.clientX - box.left) / box.width);
  });
  handle.addEventListener('keydown', (event) => {
    const steps = {ArrowLeft: -0.5, ArrowDown: -0.5, ArrowRight: 0.5, ArrowUp: 0.5}[event.key];
    if (!steps) return;
    event.preventDefault();
    moveEnd(end, range[end] + steps);
  });
  return handle;
};
const makeLegend = (tools) => {
  legend.pools = makeChoice(tools, 'shown', [['largest', 'largest of a cell'], ['mean', 'mean of a cell']], (name) => {
    pool = name === 'mean' ? 1 : 0;
    recolour();
  });
  legend.tables = makeChoice(tools, 'colours', Object.keys(facts.colours).map((name) => [name, name]), (name) => {
    setTable(name);
    recolour();
  });
  legend.ways = makeChoice(tools, 'range', Object.entries(kWays), chooseWay);
  const holder = make('span', tools, 'legend');
  legend.numbers.push(make('span', holder, 'end'));
  legend.bar = make('span', holder, 'bar');
  legend.picture = make('canvas', legend.bar, 'scale');
  legend.handles.push(makeHandle(0), makeHandle(1));
  legend.numbers.push(make('span', holder, 'end'));
  make('span', tools, 'legend', 'log scale; grey: 0 or masked');
};
