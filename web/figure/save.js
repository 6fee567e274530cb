// The picture that is seen, with its rulers and a colour bar, as a PNG or an SVG file.
const kHead = 26, kTitleLine = 17, kFoot = 30, kEdge = 12;   // CSS pixels around the map
const kLeastWidth = 300;   // CSS pixels: the colour bar and its numbers
/// The title in one line or two.
const titleLines = (width) => {
  const room = width - 12 * ratio, extent = (text) => textWidth(text, 13 * ratio), most = 400;
  const words = facts.title.split(' ');
  let count = words.length;
  while (count > 1 && extent(words.slice(0, count).join(' ')) > room) --count;
  const lines = [words.slice(0, count).join(' '), words.slice(count).join(' ')];
  return lines.filter(Boolean).map((line) => clipped(line, room, extent, most));
};
/// Pixels of the picture, and the lines of its title and the height of these.
const pictureFrame = () => {
  const width = Math.ceil(Math.max(kLeastWidth * ratio, Math.min(canvas.width, xOf(K.count) + kEdge * ratio)));
  const title = titleLines(width), head = Math.round((kHead + kTitleLine * Math.max(0, title.length - 1)) * ratio);
  return {width, title, head, height: Math.ceil(Math.min(canvas.height, yOf(Q.count))) + head + Math.ceil(kFoot * ratio)};
};
const drawFrameOf = (pen, {width, height, title, head}) => {
  const size = 12 * ratio, gap = 6 * ratio, y = height - kFoot * ratio / 2;
  title.forEach((line, i) => {
    pen.text(gap, (kHead / 2 + kTitleLine * i) * ratio - head, line, {size: 13 * ratio, colour: front, align: 'start'});
  });
  const ends = [numberWords(2 ** range[0]), numberWords(2 ** range[1]) + ' (log)'];
  const [before, after] = ends.map((text) => textWidth(text, size));
  const bar = document.createElement('canvas'), low = Math.max(area.x, before + 2 * gap);
  const length = Math.min(200 * ratio, width - low - after - 2 * gap);
  bar.width = 256;
  bar.height = 1;
  canvasPen(bar.getContext('2d')).image(picture(256, 1, (i) => range[0] + (range[1] - range[0]) * i / 255), 0, 0, 256, 1);
  const down = y - head;
  pen.text(low - gap, down, ends[0], {size, colour: front, align: 'end'});
  pen.image(bar, low, down - 6 * ratio, length, 12 * ratio);
  pen.text(low + length + gap, down, ends[1], {size, colour: front, align: 'start'});
};
const makePng = () => {
  const around = pictureFrame(), {width, height, head} = around, whole = document.createElement('canvas');
  whole.width = width;
  whole.height = height;
  const context = whole.getContext('2d'), pen = canvasPen(context);
  pen.box(0, 0, width, height, back);
  context.translate(0, head);
  drawPixels(context);
  drawMarks(pen);
  drawFrameOf(pen, around);
  return new Promise((done) => whole.toBlob(done, 'image/png'));
};
const makeSvg = () => {
  const around = pictureFrame(), {width, height, head} = around, svg = document.createElementNS(kSvg, 'svg');
  svg.setAttribute('viewBox', [0, -head, width, height].join(' '));
  svg.setAttribute('width', width / ratio);
  svg.setAttribute('height', height / ratio);
  const pen = svgPen(svg), pixels = document.createElement('canvas');
  pen.box(0, -head, width, height, back);
  pixels.width = Math.max(1, Math.ceil(Math.min(canvas.width, xOf(K.count)) - area.x));
  pixels.height = Math.max(1, Math.ceil(Math.min(canvas.height, yOf(Q.count)) - area.y));
  const context = pixels.getContext('2d');
  context.translate(-area.x, -area.y);
  drawPixels(context);
  pen.image(pixels, area.x, area.y, pixels.width, pixels.height);
  drawMarks(pen);
  drawFrameOf(pen, around);
  return new Blob([new XMLSerializer().serializeToString(svg)], {type: 'image/svg+xml'});
};
const save = async (made, ending) => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await made());
  link.download = 'attention' + ending;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
