// The page's head: what could not be read comes first, then what was captured and how that is known.
const kHow = {
  recorded: 'stands in the files', told: 'was told by an option', guessed: 'is attnscope’s guess', found: 'is computed from the tensors',
};
const makeTitle = () => {
  const header = make('header', root, 'top');
  makeWords('h1', header, '', facts.title);
  const line = make('p', header, 'byline');
  const kind = {capture: 'Attention of a capture', table: 'Attention in numbers', export: 'Exported attention maps', pair: 'Attention of two captures'}[facts.subject];
  make('span', line, '', (kind || 'Attention') + ': ');
  (facts.input || []).forEach((name, at) => {
    if (at) line.append(', ');
    make('bdi', line, '', name);
  });
  if (facts.problems && facts.problems.length) {
    const box = make('section', header, 'problems');
    box.setAttribute('aria-labelledby', 'problems-title');
    make('h2', box, '', facts.problems.length === 1 ? 'A problem' : facts.problems.length + ' problems').id = 'problems-title';
    makeList(box, '', facts.problems);
  }
  return header;
};
const kChecks = {true: ['✓', 'passed: '], false: ['✗', 'failed: '], null: ['–', 'nothing to check: ']};
const makeChecks = (section) => {
  if (!facts.checks || !facts.checks.length) return;
  make('h3', section, '', 'Checked');
  const list = make('ul', section, 'checks');
  for (const check of facts.checks) {
    const [sign, text] = kChecks[String(check.ok)] || kChecks.null, item = make('li', list, check.ok === false ? 'failed' : check.ok ? 'passed' : '');
    make('span', item, 'sign', sign).setAttribute('aria-hidden', 'true');
    const said = make('span', item);
    makeUnseen(said, text);
    makeWords('bdi', said, '', check.text);
  }
};
const makeLacks = (section) => {
  if (!facts.lacks || !facts.lacks.length) return;
  make('h3', section, '', 'What this page lacks');
  makeList(section, 'lacks', facts.lacks);
};
const makeAbout = () => {
  const section = makeSection('about', 'What was captured'), about = facts.about || [];
  if (about.length) {
    const list = make('dl', section, 'facts');
    for (const fact of about) {
      const line = make('div', list);
      makeWords('dt', line, '', fact.label);
      const said = make('dd', line);
      const text = makeWords('div', said, 'text' + (fact.text.length > 400 ? ' long' : fact.text.length > 40 ? ' wide' : ''), fact.text);
      if (fact.text.length > 400) {
        text.tabIndex = 0;   // it scrolls, also by keys
        text.setAttribute('role', 'region');
        text.setAttribute('aria-label', fact.label);
      }
      if (fact.how) make('span', said, 'how ' + fact.how, fact.how);
    }
    const used = Object.keys(kHow).filter((how) => about.some((fact) => fact.how === how));
    if (used.length) make('p', section, 'note', used.map((how) => how + ': ' + kHow[how]).join('; ') + '.');
  }
  if (facts.sample) {
    makeWords('p', section, 'note', 'Numbers of heads are means over ' + facts.sample.rows + ' rows of each head; ± is their standard error.');
  }
  makeChecks(section);
  makeLacks(section);
};
const makeMeanings = () => {
  if (!numbers.length) return;
  const section = makeSection('numbers', 'What each number means');
  makeIntro(section, 'What the numbers of the heads are, and the command that computes each.');
  const list = make('div', section, 'meanings');
  for (const number of numbers) {
    const item = make('details', list);
    const summary = make('summary', item);
    makeWords('span', summary, '', titleOf(number));
    if (titleOf(number) !== number.name) make('code', summary, '', number.name);
    if (number.text) makeWords('p', item, '', number.text);
    makeCommand(item, number.command);
  }
};
const makeFooter = () => {
  const footer = make('footer', root);
  make('p', footer, '', 'By attnscope ' + facts.version + (facts.capture_hash ? '; the capture’s hash is ' + facts.capture_hash : '') + '.');
  makeCommand(footer, facts.command);
  make('p', footer, '', 'This page holds ' + (facts.maps ? 'numbers and small maps' : numbers.length ? 'numbers' : 'names of heads') + (document.getElementById('figure-0') ?
      ', and of the heads whose maps can be looked into also their queries and keys' : '') +
      (facts.pictures && facts.pictures.length ? ', and the recorded frames' : '') + ': whoever has the page has these. It asks for nothing from elsewhere.');
};
