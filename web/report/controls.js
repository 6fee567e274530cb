// What chooses the heads that are seen, and what their colours mean.
const kStepsAsSlider = 3;
/// A slider where there are many values in an order, else buttons.
const makeFacet = (parent, facet) => {
  const {name, values} = facet, choose = (value) => change({facets: {[name]: value}});
  if (name !== 'step' || values.length < kStepsAsSlider) {
    const toggles = makeToggles(parent, name === 'side' ? 'capture' : name, values.map((value) => [value, facetText(name, value)]), choose);
    return () => toggles.show(state.facets[name]);
  }
  const holder = make('label', parent, 'slider', 'step ');
  const slider = make('input', holder);
  slider.type = 'range';
  slider.min = 0;
  slider.max = values.length - 1;
  slider.step = 1;
  slider.oninput = () => choose(values[Number(slider.value)]);
  const said = make('output', holder);
  return () => {
    const at = values.indexOf(state.facets[name]);
    slider.value = at;
    said.textContent = values[at] + ' (' + (at + 1) + ' of ' + values.length + ')';
    slider.setAttribute('aria-valuetext', 'step ' + said.textContent);
  };
};
const makeFacets = (parent) => {
  if (!facets.length) return () => {};
  const holder = make('div', parent, 'tools');
  const shows = facets.map((facet) => makeFacet(holder, facet)), paper = make('p', parent, 'paper note');
  return () => {
    shows.forEach((show) => show());
    paper.textContent = 'Seen: ' + facets.map(({name}) => facetText(name, state.facets[name])).join(', ') + '.';
  };
};
const numberChoices = () => [...(hasClasses ? [['class', 'class']] : []), ...numbers.map((number) => [number.name, titleOf(number)])];
/// What the colours mean: classes with how many heads of those that are seen have them, or a scale.
const paintLegend = (legend, shown) => {
  legend.replaceChildren();
  if (state.number === 'class') {
    const counts = new Map();
    for (const i of shown) counts.set(heads.class[i], (counts.get(heads.class[i]) || 0) + 1);
    const texts = new Map((facts.classes || []).map((one) => [one.name, one.text]));
    const list = (parent, names) => {
      const items = make('ul', parent, 'classes');
      for (const name of names) {
        const line = make('li', items);
        makeClass(line, name);
        make('span', line, 'count', String(counts.get(name) || 0));
        if (texts.get(name)) makeWords('span', line, 'meaning', texts.get(name));
      }
    };
    const names = [...new Set([...texts.keys(), ...counts.keys()])], without = names.filter((name) => !counts.has(name));
    list(legend, names.filter((name) => counts.has(name)));
    if (!without.length) return;
    const more = make('details', legend);
    make('summary', more, 'note', 'No head here: ' + without.join(', '));
    list(more, without);
    return;
  }
  const number = numberNamed(state.number), scale = scaleOf(state.number);
  if (!scale) { make('p', legend, 'note', 'No head has this number.'); return; }
  makeScale(legend, numberText(number, scale.low), numberText(number, scale.high),
            (scale.log ? 'log scale' : 'even scale') + ' over all heads; hatched: no number');
  if (number.text) makeWords('p', legend, 'note', number.text);
};
