// Two captures: how their heads differ, pair by pair.
const kFirstPairs = 20;
const pairHeading = (name) => {
  const told = (facts.diff.numbers || []).find((number) => number && number.name === name) || numberNamed(name);
  return told || {name, label: name === 'js' ? 'Jensen–Shannon divergence' : name.replace(/_/g, ' '), decimals: 4};
};
const makeDiff = () => {
  const diff = facts.diff;
  if (!diff) return;
  const section = makeSection('differences', 'How the two differ');
  if (diff.text) makeIntro(section, diff.text);
  if (!diff.pairs || !diff.pairs.length) return;
  const columns = Object.keys(diff.pairs[0]).filter((name) => name !== 'a' && name !== 'b' && diff.pairs.some((pair) => typeof pair[name] === 'number'))
      .map(pairHeading);
  const sizeOf = (pair) => columns.length && pair[columns[0].name] !== null ? pair[columns[0].name] : -Infinity;
  const pairs = diff.pairs.slice().sort((a, b) => sizeOf(b) - sizeOf(a));
  const table_ = makeTable(section, 'pairs', 'pairs of heads, those that differ most first');
  makeHeads(table_, [...facts.input.slice(0, 2), ...columns.map((column) => titleOf(column))], 2);
  const body = make('tbody', table_);
  const add = (list) => {
    for (const pair of list) {
      const line = make('tr', body), name = make('th', line);
      name.scope = 'row';
      headOrNumber(name, pair.a);
      headOrNumber(make('td', line), pair.b);
      for (const column of columns) make('td', line, 'number', numberText(column, pair[column.name]));
    }
  };
  add(pairs.slice(0, kFirstPairs));
  if (pairs.length <= kFirstPairs) return;
  const more = make('button', make('p', section), '', 'All ' + pairs.length + ' pairs');
  more.type = 'button';
  more.onclick = () => {
    add(pairs.slice(kFirstPairs));
    more.parentNode.remove();
  };
  beforePaper.push(() => { if (more.isConnected) more.onclick(); });
};
