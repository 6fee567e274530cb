// A table of all heads: any numbers as columns, sorted by any of them, searched by words and conditions.
const kFirstColumns = 10, kMostLines = 1500;
const listing = {chosen: null, sort: null, up: true, words: '', table: null, said: null, body: null, heading: null};
const kConditions = {
  '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b, '=': (a, b) => a === b,
};
/// A word of the search as what it asks of a head: entropy<2, class=temporal, or letters of its name or class.
const conditionOf = (word) => {
  const found = /^([\w.]+)(<=|>=|<|>|=)(.+)$/.exec(word);
  if (found) {
    const [, name, sign, text] = found, limit = Number(text);
    if (heads.values[name]) return (i) => valueOf(name, i) !== null && kConditions[sign](valueOf(name, i), limit);
    if (Array.isArray(heads[name])) {
      return (i) => Number.isNaN(limit) ? String(heads[name][i]) === text : kConditions[sign](heads[name][i], limit);
    }
  }
  const low = word.toLowerCase();
  return (i) => (heads.names[i] + ' ' + heads.class[i]).toLowerCase().includes(low);
};
const foundHeads = () => {
  const conditions = listing.words.split(/\s+/).filter(Boolean).map(conditionOf);
  const found = Array.from({length: kHeads}, (_, i) => i).filter((i) => conditions.every((holds) => holds(i)));
  const {sort, up} = listing;
  if (sort === null) return up ? found : found.reverse();
  const value = sort === 'class' ? (i) => heads.class[i] : (i) => valueOf(sort, i);
  // Heads without the number come last either way.
  return found.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1) || a - b;
  });
};
const fillTable = () => {
  const found = foundHeads(), columns = numbers.filter((number) => listing.chosen.has(number.name));
  const body = document.createElement('tbody');
  for (const i of found.slice(0, kMostLines)) {
    const line = make('tr', body), name = make('th', line);
    name.scope = 'row';
    headLink(name, i);
    if (hasClasses) makeClass(make('td', line), heads.class[i]);
    for (const number of columns) make('td', line, 'number', numberText(number, valueOf(number.name, i)));
  }
  if (listing.body) listing.body.replaceWith(body);
  else listing.table.appendChild(body);
  listing.body = body;
  listing.said.textContent = found.length + ' of ' + kHeads + ' heads' +
      (found.length > kMostLines ? '; the first ' + kMostLines + ' of them are listed: a search tells which' : '');
};
const makeHeading = (line, name, text, title) => {
  const cell = make('th', line);
  cell.scope = 'col';
  const button = make('button', cell, 'sort', text);
  button.type = 'button';
  button.title = title;
  const isHere = listing.sort === name;
  cell.setAttribute('aria-sort', isHere ? listing.up ? 'ascending' : 'descending' : 'none');
  button.onclick = () => {
    // Numbers begin with the largest: these are looked for.
    listing.up = listing.sort === name ? !listing.up : name === null || name === 'class';
    listing.sort = name;
    makeHeadings();
    listing.heading.querySelector('[aria-sort$="scending"] button').focus();
    fillTable();
  };
};
const makeHeadings = () => {
  listing.heading.replaceChildren();
  makeHeading(listing.heading, null, 'head', 'in the order of the capture');
  if (hasClasses) makeHeading(listing.heading, 'class', 'class', 'class');
  for (const number of numbers) {
    if (listing.chosen.has(number.name)) makeHeading(listing.heading, number.name, number.heading || number.name, number.label || number.name);
  }
};
const makeColumns = (parent) => {
  const holder = make('details', parent, 'columns');
  make('summary', holder, '', 'columns');
  const list = make('div', holder, 'checks');
  for (const number of numbers) {
    const label = make('label', list), box = make('input', label);
    box.type = 'checkbox';
    box.checked = listing.chosen.has(number.name);
    label.append(' ' + titleOf(number));
    box.onchange = () => {
      listing.chosen[box.checked ? 'add' : 'delete'](number.name);
      makeHeadings();
      fillTable();
    };
  }
};
const makeListing = () => {
  if (kHeads === 0) return;
  const section = makeSection('table', 'Table of all heads');
  makeIntro(section, (numbers.length ? 'Numbers are rounded; a heading sorts by its column. ' : '') + 'A search takes parts of names' + (hasClasses ? ' and classes' : '') +
      (numbers.length ? ', and conditions as ' + numbers[0].name + '<2' : '') + '; a head is listed where all of them hold.');
  const spoken = (facts.stands_out || []).map((one) => one.rule).filter(numberNamed);
  const first = numbers.map((number) => number.name).filter((name) => !spoken.includes(name)).slice(0, Math.max(0, kFirstColumns - spoken.length));
  listing.chosen = new Set([...first, ...spoken]);
  const tools = make('div', section, 'tools');
  const label = make('label', tools, 'search', 'search '), search = make('input', label);
  search.type = 'search';
  search.placeholder = 'L2' + (hasClasses ? ' temporal' : '') + (numbers.length ? ' ' + numbers[0].name + '<2' : '');
  search.oninput = () => { listing.words = search.value; fillTable(); };
  listing.said = make('span', tools, 'note');
  listing.said.setAttribute('role', 'status');
  if (numbers.length > 1) makeColumns(section);
  listing.table = makeTable(section, 'heads', 'all heads with their numbers');
  listing.heading = make('tr', make('thead', listing.table));
  makeHeadings();
  fillTable();
};
