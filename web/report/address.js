// The page's address tells what is looked at: head= its name, n= what the grid is coloured by, step=, branch= … which
// heads it shows, at= the section.
const headNamed = (name) => heads.names.indexOf(name);
let chosenByHand = false;   // the head that the page begins with stands in no address
const addressText = (at) => {
  const words = [];
  if (state.head !== null && chosenByHand) words.push(['head', heads.names[state.head]]);
  if (state.number !== kFirstNumber) words.push(['n', state.number]);
  for (const facet of facets) {
    const value = state.facets[facet.name];
    const isTold = state.head !== null && chosenByHand && heads[facet.name][state.head] === value;
    if (!isTold && value !== facet.values[0]) words.push([facet.name, String(value)]);
  }
  if (at) words.push(['at', at]);
  return String(new URLSearchParams(words));
};
let known = location.hash;   // the address as it was followed or told last
const keepAddress = (text) => {
  try { history.replaceState(null, '', text ? '#' + text : location.pathname + location.search); } catch (error) { return; }
  known = location.hash;
};
let tellLater = 0;
const tellAddress = () => {
  // Browsers take some changes a second and no more.
  if (tellLater) return;
  tellLater = setTimeout(() => {
    tellLater = 0;
    // Somebody has put another address here, which is about to be followed.
    if (location.hash === known) keepAddress(addressText());
  }, 200);
};
/// Brings a section into view, for eyes and for keys.
const goTo = (id) => {
  const heading = document.getElementById(id + '-title') || document.getElementById(id);
  if (!heading) return false;
  heading.scrollIntoView({block: 'start'});
  heading.focus({preventScroll: true});
  return true;
};
/// Does what an address asks for, and returns what of it is not here.
const followAddress = (hash) => {
  known = hash;
  const text = hash.replace(/^#/, ''), missing = [];
  if (!text) return missing;
  if (!text.includes('=')) {
    if (!goTo(decodeURIComponent(text))) missing.push(text);
    return missing;
  }
  const words = new URLSearchParams(text), wanted = {facets: {}};
  for (const [name, value] of words) {
    const facet = facets.find((one) => one.name === name);
    if (name === 'head' && headNamed(value) >= 0) wanted.head = headNamed(value);
    else if (name === 'n' && (value === 'class' || numberNamed(value))) wanted.number = value;
    else if (facet && facet.values.some((one) => String(one) === value)) wanted.facets[name] = facet.values.find((one) => String(one) === value);
    else if (!(name === 'at' && document.getElementById(value))) missing.push(name + '=' + value);
  }
  if (wanted.head !== undefined) chosenByHand = true;
  change(wanted);
  if (words.has('at')) goTo(words.get('at'));
  else if (wanted.head !== undefined) goTo('head');
  return missing;
};
