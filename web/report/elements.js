// The page of `attnscope report`: what its sections are made of.
const root = document.getElementById('report');
const main = document.createElement('main');
const beforePaper = [];   // what is done before the page is printed: paper shows all there is
const contents = [];   // {id, title}

/// A section with its heading, which the contents lead to.
const makeSection = (id, title) => {
  const section = make('section', main);
  section.id = id;
  section.setAttribute('aria-labelledby', id + '-title');
  const heading = make('h2', section, '', title);
  heading.id = id + '-title';
  heading.tabIndex = -1;
  contents.push({id, title});
  return section;
};
/// What a section says before it shows anything.
const makeIntro = (parent, text) => makeWords('p', parent, 'intro', text);
const makeCommand = (parent, text) => {
  if (!text) return;
  const holder = make('p', parent, 'command', 'made by ');
  const code = make('code', holder);
  code.dir = 'ltr';
  // No word is broken at its hyphens: --steps.
  text.split(' ').forEach((word, at) => {
    if (at) code.append(' ');
    make('span', code, '', word);
  });
};
/// A text that others wrote in a line of its own: it begins large and ends, and its numbers are not parted from their %.
const sentence = (text, end = '.') => text.charAt(0).toUpperCase() + text.slice(1).replace(/(\d) %/g, '$1\u00a0%') + (/[.!?:]$/.test(text) ? '' : end);
const makeList = (parent, name, texts) => {
  const list = make('ul', parent, name);
  for (const text of texts) makeWords('li', list, '', text);
  return list;
};
/// Keys stop at a part that scrolls, and at no other.
const scrollers = new ResizeObserver((entries) => {
  for (const {target} of entries) target.tabIndex = target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1 ? 0 : -1;
});
/// A table within a part of the page that scrolls by itself, also by keys.
const makeTable = (parent, name, title) => {
  const holder = make('div', parent, 'scroll');
  scrollers.observe(holder);
  holder.setAttribute('role', 'region');
  holder.setAttribute('aria-label', title);
  const table = make('table', holder, name);
  make('caption', table, 'unseen', title);
  return table;
};
/// The headings of a table's columns, of which those from `firstNumber` on have numbers below.
const makeHeads = (table, texts, firstNumber = texts.length) => {
  const line = make('tr', make('thead', table));
  texts.forEach((text, at) => { makeWords('th', line, at >= firstNumber ? 'number' : '', text).scope = 'col'; });
};
const makeUnseen = (parent, text) => make('span', parent, 'unseen', text);
/// Buttons of which one is pressed: for few values.
const makeToggles = (parent, label, values, change) => {
  const group = make('div', parent, 'toggles');
  group.setAttribute('role', 'group');
  group.setAttribute('aria-label', label);
  make('span', group, 'label', label).setAttribute('aria-hidden', 'true');
  const buttons = values.map(([value, text]) => {
    const button = make('button', group, '', text);
    button.type = 'button';
    button.onclick = () => change(value);
    return button;
  });
  return {show: (value) => buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(values[i][0] === value)))};
};
/// A share of 1 as a bar with its number.
const makeBar = (parent, share, text) => {
  parent.classList.add('bar');
  parent.style.setProperty('--share', Math.max(0, Math.min(1, share)).toFixed(4));
  make('span', parent, '', text);
};
const shareText = (share) => share === null || share === undefined ? '–' : shareWords(share);
const kSvg = 'http://www.w3.org/2000/svg';
const makeSvg = (tag, parent, values, text) => {
  const element = document.createElementNS(kSvg, tag);
  for (const [key, value] of Object.entries(values || {})) {
    element.setAttribute(key, typeof value === 'number' ? +value.toFixed(2) : value);
  }
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
