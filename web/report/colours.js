// Colours: a table for numbers, and those of classes, which the program's charts have too.
const table = new Uint8Array(bytesOf('colours'));
const rgbAt = (unit) => {
  const at = 3 * Math.round(255 * Math.max(0, Math.min(1, unit)));
  return [table[at], table[at + 1], table[at + 2]];
};
/// Over a picture a weight covers the more the larger it is: red, green, blue, and how much of 255 it covers.
const rgbaOver = (unit) => [...rgbAt(0.3 + 0.7 * unit), Math.round(235 * Math.sqrt(unit))];
const ramp = (colourAt) => 'linear-gradient(90deg, ' + Array.from({length: 17}, (_, i) => colourAt(i / 16)).join(', ') + ')';
const plainRamp = ramp((unit) => cssOf(rgbAt(unit)));
const overRamp = ramp((unit) => {
  const [r, g, b, a] = rgbaOver(unit);
  return 'rgba(' + [r, g, b, (a / 255).toFixed(3)].join() + ')';
}) + ', #777';
/// Of a class that a table names and this program does not know: yellow.
const classColour = (name) => (facts.classes.find((one) => one.name === name) || {colour: [240, 228, 66]}).colour;
/// Paints an element in a colour, with an ink that is read on it.
const paint = (element, rgb) => {
  element.style.background = rgb ? cssOf(rgb) : '';
  element.style.color = rgb ? inkOn(rgb) : '';
};
const makeClass = (parent, name) => {
  if (!name) return;
  paint(make('span', parent, 'class', name), classColour(name));
};
/// A scale of colours with its ends written.
const makeScale = (parent, low, high, note, colours = plainRamp) => {
  const holder = make('span', parent, 'scale');
  make('span', holder, 'end', low);
  make('span', holder, 'ramp').style.background = colours;
  make('span', holder, 'end', high);
  if (note) make('span', holder, 'note', note);
  return holder;
};
