// Heads as columns of numbers: which there are, what is chosen among them, and how their numbers are written.
const heads = facts.heads || {names: [], class: [], head: [], values: {}, errors: {}};
const kHeads = heads.names.length;
const numbers = (facts.numbers || []).filter((number) => heads.values && heads.values[number.name]);
const numberNamed = (name) => numbers.find((number) => number.name === name);

const hasClasses = heads.class.some(Boolean), kFirstNumber = hasClasses || !numbers.length ? 'class' : numbers[0].name;
/// An export tells which heads it has and nothing of them.
const hasDetails = hasClasses || numbers.length > 0 || Boolean(facts.maps);

const distinct = (column) => column ? [...new Set(column)] : [];
/// What chooses a set of layers × heads among all heads: those of which there are several.
const facets = ['side', 'step', 'branch', 'kind', 'chunk', 'batch'].map((name) => ({name, values: distinct(heads[name])}))
    .filter((facet) => facet.values.length > 1);
const facetText = (name, value) => name === 'side' ? (facts.input[value] || 'capture ' + (value + 1)) :
    value === null ? 'no ' + name : ['step', 'chunk', 'batch'].includes(name) ? name + ' ' + value : String(value);

/// The one state of the page: what the grid is coloured by, which heads it shows, which head is looked at.
const state = {number: kFirstNumber, head: null, facets: Object.fromEntries(facets.map((facet) => [facet.name, facet.values[0]]))};
const isShown = (i) => facets.every((facet) => heads[facet.name][i] === state.facets[facet.name]);
const shownHeads = () => Array.from({length: kHeads}, (_, i) => i).filter(isShown);
const followers = [];   // called with {head, number, facets}: what has changed
const change = (values) => {
  const changed = {};
  if (values.head !== undefined && values.head !== state.head) {
    state.head = values.head;
    changed.head = true;
    // The grid shows the head that is looked at.
    for (const facet of facets) {
      if (state.facets[facet.name] === heads[facet.name][values.head]) continue;
      state.facets[facet.name] = heads[facet.name][values.head];
      changed.facets = true;
    }
  }
  if (values.number !== undefined && values.number !== state.number) {
    state.number = values.number;
    changed.number = true;
  }
  for (const [name, value] of Object.entries(values.facets || {})) {
    if (state.facets[name] === value) continue;
    state.facets[name] = value;
    changed.facets = true;
  }
  if (Object.keys(changed).length) followers.forEach((follow) => follow(changed));
};

/// The place of a head in the model, beside its number within the layer.
const rowKey = (i) => [heads.layer, heads.block, heads.slot].map((column) => column ? column[i] : null);
const hasSlots = distinct(heads.slot).length > 1, hasBlocks = distinct(heads.block).length > 1;
const rowName = ([layer, block, slot]) => {
  const words = [];
  if (layer !== null && layer !== undefined) words.push('L' + layer);
  else if (block !== null && block !== undefined) words.push(String(block));
  if (hasSlots && slot !== null && slot !== undefined) words.push(String(slot));
  if (words.length === 0 && hasBlocks) words.push('?');
  return words.join(' ') || 'all';
};

// --- how numbers are written ---
/// What a number is called where there is little room: a label may be a sentence.
const titleOf = (number) => number.label && number.label !== number.text && number.label.length <= 32 ? number.label : number.name;
const numberText = (number, value) => {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value), decimals = number.decimals || 0;
  return size !== 0 && (size < 0.5 * 10 ** -decimals || size >= 1e6) ? numberWords(value) : value.toFixed(decimals);
};
const valueOf = (name, i) => heads.values[name] ? heads.values[name][i] : null;
const errorOf = (name, i) => heads.errors && heads.errors[name] ? heads.errors[name][i] : null;
/// "0.412 ± 0.003".
const fullText = (number, i) => {
  const error = errorOf(number.name, i);
  return numberText(number, valueOf(number.name, i)) + (error === null || error === undefined ? '' : ' ± ' + numberWords(error));
};
/// A link that opens a head's details.
const headLink = (parent, i) => {
  if (!hasDetails) return makeWords('span', parent, 'head', heads.names[i]);
  const link = makeWords('a', parent, 'head', heads.names[i]);
  link.href = '#' + new URLSearchParams([['head', heads.names[i]]]);
  return link;
};

// --- colours of numbers ---
const scales = new Map();
/// Where a number lies between the ends of all heads: {low, high, log, unit}; null where no head has it.
const scaleOf = (name) => {
  if (scales.has(name)) return scales.get(name);
  let low = Infinity, high = -Infinity;
  for (const value of heads.values[name]) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  // Shares of 1 keep an even scale however small one is.
  const log = low > 0 && high > 1 && high / low >= 1000;
  const at = log ? Math.log : (value) => value, extent = at(high) - at(low);
  const scale = low > high ? null : {low, high, log, unit: (value) => extent > 0 ? (at(value) - at(low)) / extent : 0.5};
  scales.set(name, scale);
  return scale;
};
