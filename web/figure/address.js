// The page's address tells the view: q=T,Y,X the query (or its token; k= a key), z=Q0,Q1,K0,K1 the tokens
// that are seen, c=mean, m= the colour table, r= the range of colours.
let told = null, tellLater = 0;
/// The page's address as it was followed or told last.
let known = '';
/// The words of z= that the address has, and the view that they gave.
let followed = null;
const viewNow = () => [view.scale, view.row, view.col, area.width, area.height].join();
const tokenWords = (side, i) => {
  const token = stored(side, i), f = side.film, at = f ? token - f.begin : -1;
  if (!f || at < 0 || at >= f.grid[0] * f.grid[1] * f.grid[2]) return String(token);
  const [, h, w] = f.grid;
  return [Math.floor(at / (h * w)), Math.floor(at / w) % h, at % w].join();
};
/// The token that T,Y,X or a number names; null where there is none of that name in the page.
const tokenNamed = (side, text) => {
  if (!/^\d+(,\d+)*$/.test(text)) return null;
  const n = text.split(',').map(Number), f = side.film;
  let token = n[0];
  if (n.length === 3) {
    if (!f || n.some((v, i) => v >= f.grid[i])) return null;
    token = f.begin + (n[0] * f.grid[1] + n[1]) * f.grid[2] + n[2];
  } else if (n.length !== 1) {
    return null;
  }
  return isHere(side, token) ? token : null;
};
const seenTokens = (side, first, shown) => {
  const begin = Math.max(0, Math.min(side.count - 1, Math.round(first)));
  return [stored(side, begin), stored(side, Math.max(begin + 1, Math.min(side.count, Math.round(first + shown))))];
};
const isWhole = () => view.scale <= 1.001 * wholeScale();
/// Whole tokens of a view that was asked for by whole tokens may round to others, and a reload would move it each time.
const isFollowed = () => followed !== null && followed.view === viewNow();
const seenWords = () => isFollowed() ? followed.text
  : [...seenTokens(Q, view.row, area.height / view.scale), ...seenTokens(K, view.col, area.width / view.scale)].join();
const addressText = () => {
  const words = [];
  if (picked) words.push((picked.isKey ? 'k=' : 'q=') + tokenWords(own(picked), picked.at));
  if (!isWhole() || facts.start.zoom || isNarrow()) {
    words.push('z=' + seenWords());
  }
  if (pool === 1) words.push('c=mean');
  if (tableName !== Object.keys(facts.colours)[0]) words.push('m=' + tableName);
  if (rangeBy === 'all') words.push('r=all');
  if (rangeBy === 'hand') words.push('r=' + range.map((octave) => Number((2 ** octave).toPrecision(3))).join());
  return words.join('&');
};
const tellAddress = () => {
  if (told === null || tellLater) return;
  // Browsers take some changes a second and no more.
  tellLater = setTimeout(() => {
    tellLater = 0;
    // Somebody has put another address here, which is about to be followed.
    if (location.hash !== known) return;
    const text = addressText();
    if (text === told) return;
    told = text;
    // A page without an address of its own (srcdoc) keeps none.
    try { history.replaceState(null, '', '#' + text); } catch (error) { return; }
    known = location.hash;
  }, 250);
};
/// Tokens Q0,Q1,K0,K1 as the view; false where they are none of the page's.
const showTokens = (tokens) => {
  const place = (side, token) => (token - side.first) / side.stride;
  const [q0, q1, k0, k1] = tokens;
  const rows = [Math.max(0, place(Q, q0)), Math.min(Q.count, place(Q, q1))];
  const keys = [Math.max(0, place(K, k0)), Math.min(K.count, place(K, k1))];
  if (!(rows[1] > rows[0] && keys[1] > keys[0])) return false;
  showPlaces(rows, keys);
  return true;
};
const readers = {
  q: (text) => {
    const token = tokenNamed(Q, text);
    if (token !== null) pickCellOf({at: placeOf(Q, token), isKey: false});
    return token !== null;
  },
  k: (text) => {
    const token = tokenNamed(K, text);
    if (token !== null) pickCellOf({at: placeOf(K, token), isKey: true});
    return token !== null;
  },
  z: (text) => {
    const tokens = text.split(',').map(Number);
    if (tokens.length !== 4 || !showTokens(tokens)) return false;
    followed = {text, view: viewNow()};
    return true;
  },
  c: (text) => {
    pool = text === 'mean' ? 1 : 0;
    return text === 'mean' || text === 'largest';
  },
  m: (text) => {
    if (!Object.hasOwn(facts.colours, text)) return false;
    setTable(text);
    return true;
  },
  r: (text) => {
    const ends = text.split(',').map((word) => Math.log2(Number(word)));
    if (text === 'all') rangeBy = 'all';
    else if (ends.length === 2 && ends.every(Number.isFinite) && ends[0] < ends[1]) [rangeBy, range] = ['hand', ends];
    else return false;
    return true;
  },
};
const pickCellOf = (wanted) => { show(wanted).catch((error) => say(error.message)); };
/// Shows what an address asks for, and says what of it is not here.
const followAddress = (hash) => {
  known = hash;
  const missing = [];
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
    if (!Object.hasOwn(readers, name) || !readers[name](text)) missing.push(name + '=' + text);
  }
  if (missing.length) say('The address asks for what this page has not: ' + missing.join(', '));
};
