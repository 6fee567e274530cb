// Pens draw lines and words: on a canvas, or as elements of an SVG. Texts are {size, colour, align, turned}: `align`
// is start, middle or end; turned ones are read from below, about their place. Places are pixels of the canvas.
const kFont = 'system-ui, sans-serif';
const measuring = document.createElement('canvas').getContext('2d');
const textWidth = (text, size) => {
  measuring.font = size + 'px ' + kFont;
  return measuring.measureText(text).width;
};
const canvasPen = (context) => ({
  line: (x0, y0, x1, y1, colour, width) => {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  },
  frame: (x, y, width, height, colour, line) => {
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(x, y, width, height);
  },
  box: (x, y, width, height, colour) => {
    context.fillStyle = colour;
    context.fillRect(x, y, width, height);
  },
  image: (source, x, y, width, height) => context.drawImage(source, x, y, width, height),
  text: (x, y, text, {size, colour, align = 'middle', turned = false}) => {
    context.save();
    context.translate(x, y);
    if (turned) context.rotate(-Math.PI / 2);
    context.font = size + 'px ' + kFont;
    context.fillStyle = colour;
    context.textAlign = {start: 'left', middle: 'center', end: 'right'}[align];
    context.textBaseline = 'middle';
    context.fillText(text, 0, 0);
    context.restore();
  },
});
const kSvg = 'http://www.w3.org/2000/svg';
/// Draws into an SVG element; elements are made one by one, so that texts stay texts.
const svgPen = (svg) => {
  const add = (name, values, text) => {
    const element = document.createElementNS(kSvg, name);
    for (const [key, value] of Object.entries(values)) element.setAttribute(key, typeof value === 'number' ? +value.toFixed(2) : value);
    if (text !== undefined) element.textContent = text;
    svg.appendChild(element);
    return element;
  };
  return {
    line: (x1, y1, x2, y2, stroke, width) => add('line', {x1, y1, x2, y2, stroke, 'stroke-width': width}),
    frame: (x, y, width, height, stroke, line) =>
        add('rect', {x, y, width, height, stroke, fill: 'none', 'stroke-width': line}),
    box: (x, y, width, height, fill) => add('rect', {x, y, width, height, fill}),
    image: (source, x, y, width, height) => add('image', {
      x, y, width, height, href: source.toDataURL('image/png'), preserveAspectRatio: 'none', style: 'image-rendering: pixelated',
    }),
    text: (x, y, text, {size, colour, align = 'middle', turned = false}) => add('text', {
      ...(turned ? {transform: 'translate(' + x.toFixed(2) + ' ' + y.toFixed(2) + ') rotate(-90)'} : {x, y}),
      fill: colour, 'font-size': size, 'font-family': kFont, 'text-anchor': align, 'dominant-baseline': 'central',
    }, text),
  };
};
