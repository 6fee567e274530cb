// Which keys matter: how few hold the mass, what masks of blocks would keep, sinks, padding, frames.
const headOrNumber = (parent, i) => { if (Number.isInteger(i) && heads.names[i] !== undefined) headLink(parent, i); else make('span', parent, '', '–'); };
const makeCurveTable = (parent, curves) => {
  const more = make('details', parent);
  make('summary', more, '', 'The curves as a table');
  const table_ = makeTable(more, '', 'share of the keys that hold a share of the mass, by layer');
  makeHeads(table_, ['', ...curves[0].recall.map((recall) => shareText(recall) + ' of the mass')], 1);
  const body = make('tbody', table_);
  for (const curve of curves) {
    const line = make('tr', body);
    makeWords('th', line, '', curve.name).scope = 'row';
    curve.density.forEach((share) => make('td', line, 'number', shareText(share)));
  }
};
const makeKept = (section, kept) => {
  make('h3', section, '', 'What a sparse mask keeps');
  const known = kept.some((one) => Number.isFinite(one.density));
  makeIntro(section, 'The share of the mass that is kept where each row keeps so many of its keys: by whole blocks, as fast kernels skip them, and by as ' +
      'many single entries, which nothing can do better than.' + (known ? ' Whole blocks, and those that are always kept, are more than was asked for.' : ''));
  const table_ = makeTable(section, 'kept', 'mass that is kept');
  makeHeads(table_, [known ? 'asked for' : 'keys kept', ...(known ? ['keys kept'] : []), 'blocks, mean', 'entries, mean', 'blocks, worst head', 'entries, worst head']);
  const body = make('tbody', table_);
  for (const one of kept) {
    const line = make('tr', body);
    make('th', line, '', shareText(one.keep)).scope = 'row';
    if (known) make('td', line, '', shareText(one.density));
    for (const what of [one.blocks, one.entries]) makeBar(make('td', line, 'number'), what ? what.recall : 0, what ? shareText(what.recall) : '–');
    for (const what of [one.blocks, one.entries]) {
      const cell = make('td', line, 'number', what && what.worst !== undefined ? shareText(what.worst) + ' ' : '–');
      if (what && Number.isInteger(what.worst_head)) headOrNumber(cell, what.worst_head);
    }
  }
};
const makeKeptByLayer = (section, lines) => {
  const more = make('details', section), keeps = lines[0].keep;
  make('summary', more, '', 'By layer');
  const table_ = makeTable(more, 'kept', 'mass that is kept, by layer');
  makeHeads(table_, ['layer', ...keeps.map((keep) => 'blocks, ' + shareText(keep)), ...keeps.map((keep) => 'entries, ' + shareText(keep))]);
  const body = make('tbody', table_);
  for (const one of lines) {
    const line = make('tr', body);
    make('th', line, '', one.layer === null ? 'all' : String(one.layer)).scope = 'row';
    for (const share of [...one.blocks, ...one.entries]) makeBar(make('td', line, 'number'), share || 0, shareText(share));
  }
};
const makeSinks = (section, sinks) => {
  make('h3', section, '', 'Sinks');
  makeIntro(section, 'Keys that all rows of a head look at, with their mean weight. One of the video is named by its (frame, row, column).');
  const table_ = makeTable(section, 'sinks', 'heads with sinks, and their keys');
  makeHeads(table_, ['head', 'keys, most first']);
  const body = make('tbody', table_);
  for (const one of sinks) {
    const line = make('tr', body), name = make('th', line);
    name.scope = 'row';
    headOrNumber(name, one.head);
    const list = make('ul', make('td', line), 'keys');
    for (const key of one.keys) {
      const item = make('li', list);
      makeWords('bdi', item, '', key.name);
      makeBar(make('span', item, 'number'), key.mass, shareText(key.mass));
    }
  }
};
const makeFrames = (section, frames) => {
  make('h3', section, '', 'From frame to frame');
  makeIntro(section, 'The mean share of their mass that the queries of one part (rows) give the keys of another (columns), in percent, over all heads.');
  const {names, mean} = frames, table_ = makeTable(section, 'matrix' + (names.length > 26 ? ' small' : ''), 'mean mass from part to part, in percent');
  const high = Math.max(...mean.flat().filter((share) => share !== null), 1e-9);
  makeHeads(table_, ['', ...names]);
  const body = make('tbody', table_);
  mean.forEach((row, at) => {
    const line = make('tr', body);
    makeWords('th', line, '', names[at]).scope = 'row';
    row.forEach((share, to) => {
      const cell = make('td', line, '', share === null ? '–' : (100 * share).toFixed(share < 0.0995 ? 1 : 0));
      cell.title = names[at] + ' to ' + names[to] + ': ' + shareText(share, 2);
      if (share !== null) paint(cell, rgbAt(share / high));
    });
  });
  makeScale(section, '0', shareText(high), 'even scale');
};
const makeSparsity = () => {
  const sparsity = facts.sparsity;
  if (!sparsity) return;
  const section = makeSection('sparsity', 'Sparsity'), full = (list) => Array.isArray(list) && list.length > 0;
  if (sparsity.text) makeIntro(section, sparsity.text);
  if (full(sparsity.curves)) {
    make('h3', section, '', 'How few keys hold the mass');
    makeChart(section, sparsity.curves, sparsity.ticks);
    makeCurveTable(section, sparsity.curves);
  }
  if (full(sparsity.kept)) makeKept(section, sparsity.kept);
  if (full(sparsity.kept_by_layer)) makeKeptByLayer(section, sparsity.kept_by_layer);
  if (full(sparsity.sinks)) makeSinks(section, sparsity.sinks);
  if (sparsity.padding) {
    make('h3', section, '', 'Padding');
    const holder = makeIntro(section, sparsity.padding.text);
    (sparsity.padding.heads || []).forEach((i, at) => {
      holder.append(at ? ', ' : ' ');
      headLink(holder, i);
    });
  }
  if (sparsity.frames && full(sparsity.frames.mean)) makeFrames(section, sparsity.frames);
  makeCommand(section, sparsity.command);
};
