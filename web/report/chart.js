// The curve of each layer: which share of the keys holds which share of the mass. Across: the share of keys, on a log
// scale; up: the mass, by how much of it is missed, so that 90, 95 and 99 % lie apart.
const narrow = matchMedia('(max-width: 640px)');
const chartBox = () => ({...(narrow.matches ? {width: 380, height: 300} : {width: 720, height: 360}), left: 58, right: 26, top: 14, bottom: 46});
const missed = (recall) => -Math.log10(Math.max(1e-4, 1 - recall));
const dark = matchMedia('(prefers-color-scheme: dark)'), paper = matchMedia('print');
/// The part of the colours that is seen on the page's own, dark or light.
const curveColour = (unit) => {
  const isDark = getComputedStyle(document.documentElement).colorScheme === 'dark';
  return cssOf(rgbAt((isDark ? 0.32 : 0) + 0.66 * unit));
};
const chartPlaces = (curves) => {
  const shares = curves.flatMap((curve) => curve.density.filter((share) => share > 0));
  const recalls = curves.flatMap((curve) => curve.recall);
  const low = Math.min(...shares, 0.5), high = 1, box = chartBox(), {width, height, left, right, top, bottom} = box;
  const [least, most] = [missed(Math.min(...recalls)), missed(Math.max(...recalls))];
  return {
    box, recalls: [...new Set(recalls)].sort((a, b) => a - b),
    x: (share) => left + (width - left - right) * Math.log(Math.max(low, share) / low) / Math.log(high / low),
    y: (recall) => height - bottom - (height - top - bottom) * (most > least ? (missed(recall) - least) / (most - least) : 0.5),
  };
};
const drawAxes = (svg, places, ticks) => {
  const {width, height, left, right, top, bottom} = places.box;
  const axes = makeSvg('g', svg, {class: 'axes', 'aria-hidden': 'true'});
  let free = -Infinity;
  for (const tick of ticks) {
    const x = places.x(tick);
    makeSvg('line', axes, {x1: x, x2: x, y1: top, y2: height - bottom});
    if (x < free) continue;
    free = x + 40;
    makeSvg('text', axes, {x, y: height - bottom + 18, 'text-anchor': 'middle'}, shareText(tick));
  }
  for (const recall of places.recalls) {
    const y = places.y(recall);
    makeSvg('line', axes, {x1: left, x2: width - right, y1: y, y2: y});
    makeSvg('text', axes, {x: left - 8, y: y + 4, 'text-anchor': 'end'}, shareText(recall));
  }
  makeSvg('text', axes, {x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle', class: 'title'}, 'share of the keys that are kept (log)');
  makeSvg('text', axes, {transform: 'translate(12 ' + (top + (height - top - bottom) / 2) + ') rotate(-90)', 'text-anchor': 'middle', class: 'title'},
          'share of the mass that they hold');
};
const curveSentence = (curve, at) => curve.name + ': ' + shareText(curve.recall[at]) + ' of the mass in ' + shareText(curve.density[at]) + ' of the keys';
/// The points of a curve that are known.
const knownPoints = (curve) => {
  const known = curve.density.map((share, at) => [share, curve.recall[at]]).filter(([share]) => share !== null);
  return {name: curve.name, density: known.map(([share]) => share), recall: known.map(([, recall]) => recall)};
};
/// `ticks`: shares of keys that the axis names.
const makeChart = (parent, all, ticks) => {
  const curves = all.map(knownPoints).filter((curve) => curve.density.length);
  if (!curves.length) return;
  const holder = make('figure', parent, 'chart');
  const draw = () => {
    holder.replaceChildren();
    drawChart(holder, curves, ticks);
  };
  draw();
  for (const media of [dark, paper, narrow]) media.addEventListener('change', draw);
};
const drawChart = (holder, curves, ticks) => {
  const places = chartPlaces(curves), {width, height} = places.box;
  const svg = makeSvg('svg', holder, {viewBox: '0 0 ' + width + ' ' + height, role: 'application', tabindex: '0', 'aria-label':
      'recall against density, a curve for each of ' + curves.length + ' layers. Up and down choose a layer, left and right a point.'});
  drawAxes(svg, places, ticks);
  const lines = curves.map((curve) => makeSvg('polyline', svg, {class: 'curve', points: curve.density.map((share, at) =>
    places.x(share).toFixed(1) + ',' + places.y(curve.recall[at]).toFixed(1)).join(' ')}));
  const dot = makeSvg('circle', svg, {class: 'dot', r: 5, visibility: 'hidden'});
  const read = make('p', holder, 'read', 'Point at a curve to read it.');
  read.setAttribute('role', 'status');
  const legend = make('figcaption', holder);
  if (curves.length > 1) makeScale(legend, curves[0].name, curves[curves.length - 1].name, '', ramp(curveColour));
  else makeWords('span', legend, 'note', curves[0].name);
  lines.forEach((line, at) => { line.style.stroke = curveColour(curves.length > 1 ? at / (curves.length - 1) : 0.4); });
  let chosen = [0, 0];
  const show = (curve, at) => {
    chosen = [curve, at];
    lines.forEach((line, i) => line.classList.toggle('faint', i !== curve));
    const x = places.x(curves[curve].density[at]), y = places.y(curves[curve].recall[at]);
    for (const [name, value] of [['cx', x], ['cy', y], ['visibility', 'visible']]) dot.setAttribute(name, value);
    dot.style.fill = lines[curve].style.stroke;
    read.textContent = curveSentence(curves[curve], at);
  };
  const rest = () => {
    lines.forEach((line) => line.classList.remove('faint'));
    dot.setAttribute('visibility', 'hidden');
  };
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * width / box.width, y = (event.clientY - box.top) * height / box.height;
    read.ariaLive = 'off';   // keys have each point spoken
    let best = Infinity, found = [0, 0];
    curves.forEach((curve, i) => curve.density.forEach((share, at) => {
      const far = Math.hypot(places.x(share) - x, places.y(curve.recall[at]) - y);
      if (far < best) [best, found] = [far, [i, at]];
    }));
    show(...found);
  });
  svg.addEventListener('pointerleave', rest);
  svg.addEventListener('focus', () => show(...chosen));
  svg.addEventListener('blur', rest);
  svg.addEventListener('keydown', (event) => {
    const [down, right] = kMoves[event.key] || [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    read.ariaLive = 'polite';
    const curve = Math.max(0, Math.min(curves.length - 1, chosen[0] + down));
    show(curve, Math.max(0, Math.min(curves[curve].density.length - 1, chosen[1] + right)));
  });
};
