// The head that is looked at: its map and all its numbers.
const details = {holder: null, said: null};
/// A number over the steps of one head, where there are several.
const makeSteps = (parent) => {
  const facet = facets.find((one) => one.name === 'step'), i = state.head;
  if (!facet || state.number === 'class') return;
  const same = ['layer', 'block', 'slot', 'kind', 'branch', 'batch', 'head', 'side'].filter((name) => heads[name]);
  const points = [];
  for (let k = 0; k < kHeads; ++k) {
    const value = valueOf(state.number, k);
    if (value !== null && same.every((name) => heads[name][k] === heads[name][i])) points.push([facet.values.indexOf(heads.step[k]), value]);
  }
  if (points.length < 2) return;
  points.sort((a, b) => a[0] - b[0]);
  const number = numberNamed(state.number), values = points.map((point) => point[1]);
  const low = Math.min(...values), high = Math.max(...values), last = facet.values.length - 1;
  const place = ([step, value]) => [4 + 252 * step / last, high > low ? 36 - 32 * (value - low) / (high - low) : 20];
  const text = titleOf(number) + ' over the steps: ' + numberText(number, low) + ' to ' + numberText(number, high);
  const holder = make('p', parent, 'steps');
  const svg = makeSvg('svg', holder, {viewBox: '0 0 260 40', role: 'img', 'aria-label': text});
  makeSvg('polyline', svg, {points: points.map((point) => place(point).map((v) => v.toFixed(1)).join()).join(' ')});
  const here = points.find(([step]) => facet.values[step] === heads.step[i]);
  if (here) makeSvg('circle', svg, {cx: place(here)[0], cy: place(here)[1], r: 3.5});
  make('span', holder, 'note', text);
};
const makeNumbers = (parent, i) => {
  const holder = make('div', parent, 'scroll numbers');
  scrollers.observe(holder);
  holder.setAttribute('role', 'region');
  holder.setAttribute('aria-label', 'numbers of ' + heads.names[i]);
  const lines = make('table', holder);
  make('caption', lines, 'unseen', 'numbers of ' + heads.names[i] + ', with standard errors');
  for (const number of numbers) {
    if (valueOf(number.name, i) === null) continue;
    const line = make('tr', lines), name = make('th', line, '', titleOf(number));
    name.scope = 'row';
    name.title = number.label || number.name;
    make('td', line, 'number', fullText(number, i));
  }
};
const showDetails = () => {
  const {holder} = details, i = state.head;
  holder.replaceChildren();
  if (i === null) return;
  const heading = makeWords('h3', holder, '', heads.names[i]);
  heading.id = 'head-title';
  heading.tabIndex = -1;
  const line = make('p', holder, 'what');
  makeClass(line, heads.class[i]);
  const meaning = (facts.classes || []).find((one) => one.name === heads.class[i]);
  if (meaning) makeWords('span', line, 'meaning', meaning.text);
  const map = mapOf(i), look = (facts.looks || []).findIndex((one) => one.head === i);
  holder.classList.toggle('mapped', map !== null);
  if (map) makeMap(holder, map, heads.names[i]);
  else if (facts.maps) make('p', holder, 'note', 'The page has no map of this head.');
  const rest = make('div', holder, 'rest');
  if (look >= 0) {
    const link = make('a', make('p', rest), '', 'Why it stands out');
    link.href = '#at=look-' + look;
  }
  makeSteps(rest);
  makeNumbers(rest, i);
};
const makeDetails = (parent) => {
  details.holder = make('aside', parent, 'details');
  details.holder.id = 'head';
  details.holder.setAttribute('aria-label', 'the head that is looked at');
  details.said = make('p', parent, 'unseen');
  details.said.setAttribute('role', 'status');
  showDetails();
  followers.push((changed) => {
    if (!changed.head && !changed.number) return;
    showDetails();
    if (changed.head) details.said.textContent = 'Details of ' + headSentence(state.head);
  });
};
