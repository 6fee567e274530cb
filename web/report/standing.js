// The heads that stand out, by rules that are written; then each of them with its map, its film and what is to be seen.
const ruleName = (rule) => {
  const number = numberNamed(rule.rule);
  return rule.title || (number ? titleOf(number) : rule.rule.replace(/_/g, ' '));
};
const lookOf = (i) => (facts.looks || []).findIndex((look) => look.head === i);
const makeRules = (section) => {
  const list = make('div', section, 'rules');
  list.style.setProperty('--across', evenly(facts.stands_out.length, 3));
  for (const rule of facts.stands_out) {
    const item = make('section', list, 'rule'), number = numberNamed(rule.rule);
    makeWords('h3', item, '', sentence(ruleName(rule), ''));
    makeWords('p', item, 'note', sentence(rule.text));
    const heads_ = make('ol', item);
    for (const one of rule.heads) {
      const line = make('li', heads_), look = lookOf(one.head);
      const link = makeWords('a', line, 'head', heads.names[one.head]);
      link.href = look >= 0 ? '#at=look-' + look : '#' + new URLSearchParams([['head', heads.names[one.head]]]);
      make('span', line, 'value', number ? numberText(number, one.value) : numberWords(one.value));
      if (one.text) makeWords('span', line, 'meaning', sentence(one.text));
    }
  }
};
const rulesOf = (i) => (facts.stands_out || []).filter((rule) => rule.heads.some((one) => one.head === i)).map(ruleName);
const makeLook = (section, look, at) => {
  const name = heads.names[look.head], item = make('article', section, 'look');
  item.id = 'look-' + at;
  item.setAttribute('aria-labelledby', 'look-' + at + '-title');
  const heading = makeWords('h3', item, '', name);
  heading.id = 'look-' + at + '-title';
  heading.tabIndex = -1;
  const what = make('p', item, 'what');
  makeClass(what, heads.class[look.head]);
  const rules = rulesOf(look.head);
  if (rules.length) make('span', what, 'meaning', 'stands out: ' + rules.join(', '));
  const pair = make('div', item, 'pair');
  if (look.map) makeMap(pair, {...look.map, bytes: bytesNamed(look.map.data)}, name);
  const right = make('div', pair, 'told');
  for (const text of look.text || []) makeWords('p', right, '', sentence(text));
  if (look.film) {
    const film = look.film, [t, y, x] = film.query || [];
    const over = (film.frames || []).some((_, frame) => pictureOf(film.frames, frame) !== null);
    if (film.text) makeWords('p', right, '', sentence(film.text));
    makeFilm(right, film, 'film of ' + name + (film.query ? ': where the query of frame ' + t + ', row ' + y + ', column ' + x + ' looks' : '') +
        ', ' + film.grid[0] + ' frames; weights from ' + octaveText(film.low) + ' to ' + octaveText(film.high));
    makeScale(right, octaveText(film.low), octaveText(film.high),
              'log scale' + (over ? '; over the recorded frames, in grey' : '') + (film.query ? '; the query is outlined' : ''), over ? overRamp : plainRamp);
  }
  makeCommand(right, look.command);
  const tools = make('p', right, 'tools');
  if (Number.isInteger(look.figure) && document.getElementById('figure-' + look.figure)) makeOpener(tools, item, look.figure, name);
  const link = make('a', tools, '', 'All its numbers');
  link.href = '#' + new URLSearchParams([['head', name]]);
  makeUnseen(link, ' (' + name + ')');
};
const makeStanding = () => {
  const rules = facts.stands_out || [], looks = facts.looks || [];
  if (!rules.length && !looks.length) return;
  const section = makeSection('stands-out', 'Heads that stand out');
  makeIntro(section, (rules.length ? 'The first heads by each of ' + rules.length + ' rules' : 'Heads') +
      (looks.length ? (rules.length ? ', and below each of them' : '') + ' with its map' : '') +
      (looks.some((look) => look.film) ? ' and, frame by frame, where one token of the video looks.' : '.'));
  if (rules.length) makeRules(section);
  looks.forEach((look, at) => makeLook(section, look, at));
};
