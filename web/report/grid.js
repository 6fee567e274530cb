// Every head as a cell, layers down, heads across: coloured by its class or by any number.
const grid = {holder: null, beside: null, cells: new Map(), places: [], focus: null, read: null, legend: null, empty: null};
const cellColour = (i) => {
  if (state.number === 'class') return classColour(heads.class[i]);
  const value = valueOf(state.number, i), scale = scaleOf(state.number);
  return value === null || !scale ? null : rgbAt(scale.unit(value));
};
const cellText = (i) => state.number === 'class' ? heads.class[i] : numberText(numberNamed(state.number), valueOf(state.number, i));
const headSentence = (i) => {
  const words = [heads.names[i], heads.class[i]].filter(Boolean);
  if (state.number !== 'class') {
    const number = numberNamed(state.number);
    words.push(titleOf(number) + ' ' + fullText(number, i));
  } else {
    for (const number of numbers.slice(0, 3)) words.push((number.heading || number.name) + ' ' + numberText(number, valueOf(number.name, i)));
  }
  return words.join(', ');
};
const kTextColumns = 14;   // a grid of more has cells too narrow for words
const colourCells = () => {
  for (const [i, cell] of grid.cells) {
    const rgb = cellColour(i);
    paint(cell, rgb);
    cell.classList.toggle('none', !rgb);
    cell.setAttribute('aria-label', headSentence(i));
    cell.firstChild.textContent = cellText(i);
  }
  paintLegend(grid.legend, grid.cells.keys());
};
const markChosen = () => {
  for (const [i, cell] of grid.cells) cell.setAttribute('aria-selected', String(i === state.head));
};
const setFocus = (i, isMoved) => {
  if (grid.cells.has(grid.focus)) grid.cells.get(grid.focus).tabIndex = -1;
  grid.focus = i;
  const cell = grid.cells.get(i);
  cell.tabIndex = 0;
  if (isMoved) cell.focus();
};
/// Rows of the grid, each with its heads by their column.
const gridRows = (shown) => {
  const rows = new Map();
  for (const i of shown) {
    const place = rowKey(i);
    let key = JSON.stringify(place), name = rowName(place);
    // Heads of one place that nothing here tells apart have rows of their own, by their names.
    if (rows.has(key) && rows.get(key).cells.has(heads.head[i])) key = name = heads.names[i].replace(/\s*H\d+$/, '');
    while (rows.has(key) && rows.get(key).cells.has(heads.head[i])) key += ' ';
    if (!rows.has(key)) rows.set(key, {name, cells: new Map()});
    rows.get(key).cells.set(heads.head[i], i);
  }
  return [...rows.values()];
};
const makeCell = (line, i) => {
  const cell = make('div', line, 'cell');
  cell.setAttribute('role', 'gridcell');
  if (i === undefined) { cell.classList.add('absent'); return; }
  cell.tabIndex = -1;
  cell.dataset.head = i;
  make('span', cell).setAttribute('aria-hidden', 'true');
  grid.cells.set(i, cell);
};
const buildGrid = () => {
  const shown = shownHeads(), rows = gridRows(shown);
  const columns = [...new Set(shown.map((i) => heads.head[i]))].sort((a, b) => a - b);
  grid.cells.clear();
  grid.holder.replaceChildren();
  grid.holder.hidden = shown.length === 0;
  grid.empty.hidden = shown.length !== 0;
  grid.holder.style.setProperty('--columns', columns.length);
  grid.holder.classList.toggle('wordless', columns.length > kTextColumns);
  grid.holder.classList.toggle('roomy', columns.length <= 5);
  // Few heads have large cells, and the details beside or below them have what room is left.
  grid.holder.style.setProperty('--tall', Math.max(columns.length > kTextColumns ? 18 : 26, Math.min(54, Math.floor(280 / Math.max(1, rows.length)))) + 'px');
  grid.beside.classList.toggle('few', columns.length <= 6);
  grid.beside.classList.toggle('flat', columns.length > 6 && rows.length <= 12);
  const top = make('div', grid.holder, 'line');
  top.setAttribute('role', 'row');
  make('div', top, 'name corner', '').setAttribute('role', 'columnheader');
  const every = columns.length > 64 ? 16 : columns.length > 32 ? 8 : columns.length > 16 ? 4 : 1;
  columns.forEach((head, at) => {
    const name = make('div', top, 'name', at % every ? '' : 'H' + head);
    name.setAttribute('role', 'columnheader');
    name.setAttribute('aria-label', 'head ' + head);
  });
  grid.places = rows.map((row) => {
    const line = make('div', grid.holder, 'line');
    line.setAttribute('role', 'row');
    const name = makeWords('div', line, 'name', row.name);
    name.setAttribute('role', 'rowheader');
    name.title = row.name;
    return columns.map((head) => { makeCell(line, row.cells.get(head)); return row.cells.get(head); });
  });
  if (!shown.length) return;
  setFocus(shown.includes(state.head) ? state.head : shown[0]);
  colourCells();
  markChosen();
};
/// The head that a key leads to from another, over places where there is none.
const kMoves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
const neighbour = (i, event) => {
  const row = grid.places.findIndex((line) => line.includes(i)), col = grid.places[row].indexOf(i);
  const line = grid.places[row].filter((one) => one !== undefined);
  if (event.key === 'Home') return event.ctrlKey ? grid.places.flat().find((one) => one !== undefined) : line[0];
  if (event.key === 'End') return event.ctrlKey ? grid.places.flat().filter((one) => one !== undefined).pop() : line[line.length - 1];
  if (!kMoves[event.key]) return null;
  const [down, right] = kMoves[event.key];
  for (let r = row + down, c = col + right; grid.places[r] && c >= 0 && c < grid.places[r].length; r += down, c += right) {
    if (grid.places[r][c] !== undefined) return grid.places[r][c];
  }
  return i;
};
const choose = (i) => {
  chosenByHand = true;
  change({head: i});
};
const listenToGrid = () => {
  const headOf = (event) => {
    const cell = event.target.closest && event.target.closest('[data-head]');
    return cell ? Number(cell.dataset.head) : null;
  };
  const tell = (i) => { grid.read.textContent = i === null ? '\u00a0' : headSentence(i); };
  grid.holder.addEventListener('pointerover', (event) => tell(headOf(event)));
  grid.holder.addEventListener('pointerleave', () => tell(state.head));
  grid.holder.addEventListener('focusin', (event) => { if (headOf(event) !== null) tell(headOf(event)); });
  grid.holder.addEventListener('click', (event) => {
    const i = headOf(event);
    if (i === null) return;
    setFocus(i, true);
    choose(i);
  });
  grid.holder.addEventListener('keydown', (event) => {
    const i = headOf(event);
    if (i === null) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      choose(i);
      return;
    }
    const to = neighbour(i, event);
    if (to === null || to === undefined) return;
    event.preventDefault();
    setFocus(to, true);
  });
};
const makeGrid = () => {
  const section = makeSection('heads', 'Every head');
  makeIntro(section, kHeads === 1 ? 'One head, with what is known of it.' : shownHeads().length + ' heads' + (facets.length ? ' of ' + kHeads + ' are seen at a time' : '') +
      ': layers down, heads across. Choose one to see ' + (facts.maps ? 'its map and its numbers.' : 'its numbers.'));
  if (facts.not_reached && facts.not_reached.length) {
    const more = make('details', section, 'left');
    make('summary', more, '', facts.not_reached.length + ' heads were not reached within the time that was given.');
    makeWords('p', more, '', facts.not_reached.join(', '));
  }
  const tools = make('div', section, 'tools');
  const select = makeChoice(tools, 'colour by', numberChoices(), (name) => change({number: name}));
  const showFacets = makeFacets(section);
  const pair = make('div', section, 'beside'), left = make('div', pair, 'left');
  grid.beside = pair;
  grid.holder = make('div', left, 'grid');
  grid.holder.setAttribute('role', 'grid');
  grid.holder.setAttribute('aria-label', 'heads, layers down and heads across. Arrow keys move, Enter shows a head.');
  grid.empty = make('p', left, 'note', 'No head was recorded of this choice.');
  grid.read = make('p', left, 'read', '\u00a0');
  grid.read.setAttribute('aria-hidden', 'true');   // each cell has it as its name
  grid.legend = make('div', left, 'legend');
  listenToGrid();
  const show = (changed) => {
    select.value = state.number;
    showFacets();
    if (changed.facets) buildGrid();
    else if (changed.number) colourCells();
    if (changed.head) markChosen();
    if (changed.head && grid.cells.has(state.head)) setFocus(state.head);
    if (state.head !== null) grid.read.textContent = headSentence(state.head);
  };
  followers.push(show);
  show({facets: true});
  return pair;
};
