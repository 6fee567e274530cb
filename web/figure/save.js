// The picture that is seen, with its rulers and a colour bar, as a PNG or an SVG file.
const kHead = 26, kFoot = 30, kEdge = 12;   // CSS pixels around the map
const pictureSize = () => [
  Math.ceil(Math.min(canvas.width, xOf(K.count) + kEdge * ratio)),
  Math.ceil(Math.min(canvas.height, yOf(Q.count))) + Math.ceil((kHead + kFoot) * ratio),
];
const drawFrameOf = (pen, width, height) => {
  const size = 12 * ratio, y = height - kFoot * ratio / 2;
  const title = clipped(facts.title, width - 12 * ratio, (text) => textWidth(text, 13 * ratio));
  pen.text(6 * ratio, -kHead * ratio / 2, title, {size: 13 * ratio, colour: front, align: 'start'});
  const bar = document.createElement('canvas'), low = area.x + 60 * ratio, length = Math.min(200 * ratio, width - low - 70 * ratio);
  bar.width = 256;
  bar.height = 1;
  canvasPen(bar.getContext('2d')).image(picture(256, 1, (i) => range[0] + (range[1] - range[0]) * i / 255), 0, 0, 256, 1);
  const down = y - kHead * ratio;
  pen.text(low - 6 * ratio, down, shortNumber(2 ** range[0]), {size, colour: front, align: 'end'});
  pen.image(bar, low, down - 6 * ratio, length, 12 * ratio);
  pen.text(low + length + 6 * ratio, down, shortNumber(2 ** range[1]) + ' (log)', {size, colour: front, align: 'start'});
};
const makePng = () => {
  const [width, height] = pictureSize(), whole = document.createElement('canvas');
  whole.width = width;
  whole.height = height;
  const context = whole.getContext('2d'), pen = canvasPen(context);
  pen.box(0, 0, width, height, back);
  context.translate(0, kHead * ratio);
  drawPixels(context);
  drawMarks(pen);
  drawFrameOf(pen, width, height);
  return new Promise((done) => whole.toBlob(done, 'image/png'));
};
const makeSvg = () => {
  const [width, height] = pictureSize(), svg = document.createElementNS(kSvg, 'svg');
  svg.setAttribute('viewBox', [0, -Math.round(kHead * ratio), width, height].join(' '));
  svg.setAttribute('width', width / ratio);
  svg.setAttribute('height', height / ratio);
  const pen = svgPen(svg), pixels = document.createElement('canvas');
  pen.box(0, -kHead * ratio, width, height, back);
  pixels.width = Math.max(1, Math.ceil(Math.min(canvas.width, xOf(K.count)) - area.x));
  pixels.height = Math.max(1, Math.ceil(Math.min(canvas.height, yOf(Q.count)) - area.y));
  const context = pixels.getContext('2d');
  context.translate(-area.x, -area.y);
  drawPixels(context);
  pen.image(pixels, area.x, area.y, pixels.width, pixels.height);
  drawMarks(pen);
  drawFrameOf(pen, width, height);
  return new Blob([new XMLSerializer().serializeToString(svg)], {type: 'image/svg+xml'});
};
const save = async (made, ending) => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await made());
  link.download = 'attention' + ending;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
