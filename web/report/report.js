// The start of the page, and what whoever looks into it by program finds.
const makeContents = (header) => {
  const nav = make('nav', header, 'contents');
  nav.setAttribute('aria-label', 'contents');
  const list = make('ul', nav);
  for (const {id, title} of contents) {
    const link = make('a', make('li', list), '', title);
    link.href = '#at=' + id;
  }
};
const start = () => {
  const header = makeTitle();
  makeAbout();
  if (hasDetails) makeDetails(makeGrid());
  makeStanding();
  makeWordStrips();
  makeSparsity();
  makeDiff();
  makeGallery();
  makeListing();
  makeMeanings();
  makeContents(header);
  root.appendChild(main);
  makeFooter();
  const said = make('p', header, 'missing');
  said.setAttribute('role', 'status');
  const follow = () => {
    const missing = followAddress(location.hash);
    clearTimeout(tellLater);
    tellLater = 0;
    // What an address leaves out stays as it is, and is kept when the page is loaded anew.
    if (location.hash.includes('=')) keepAddress(addressText(new URLSearchParams(location.hash.slice(1)).get('at')));
    said.textContent = missing.length ? 'The address asks for what this page has not: ' + missing.join(', ') : '';
  };
  follow();
  // Without a wish the page begins with the first head that stands out.
  if (hasDetails && state.head === null) {
    const rule = (facts.stands_out || []).find((one) => one.heads.length);
    const shown = shownHeads(), first = rule ? rule.heads[0].head : shown[0];
    if (first !== undefined && isShown(first)) change({head: first});
    else if (shown.length) change({head: shown[0]});
  }
  followers.push(tellAddress);
  window.addEventListener('hashchange', follow);
};
start();

let closedForPaper = [];
window.addEventListener('beforeprint', () => {
  beforePaper.forEach((act) => act());
  closedForPaper = Array.from(document.querySelectorAll('details:not([open])'));
  closedForPaper.forEach((one) => { one.open = true; });
});
window.addEventListener('afterprint', () => {
  closedForPaper.forEach((one) => { one.open = false; });
  closedForPaper = [];
});
// For whoever looks into the page by program.
window.attnscopeReport = {
  facts, state, change: (values) => change(values),
  /// The bytes that the page has under a name.
  bytes: (name) => Array.from(bytesNamed(name)),
  unpainted: () => unpainted.size,
  opened: () => opened && opened.frame,
};
