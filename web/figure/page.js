// What the pages of `attnscope figure` and `attnscope report` have in common: their facts and bytes, how elements are
// made and how numbers are written. The scripts of a page are one script in it, in the order that web/CMakeLists.txt
// tells. Everything that a capture's author wrote goes into the page as text, never as markup.
'use strict';
const facts = JSON.parse(document.getElementById('facts').textContent);

const bytesOf = (name) => {
  const element = document.getElementById('data-' + name);
  if (!element) return null;
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  element.remove();
  return bytes.buffer;
};

/// An element as the last one of `parent`.
const make = (tag, parent, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
/// An element for a text of the author's: its direction is its own, and ends with it.
const makeWords = (tag, parent, name, text) => {
  const element = make(tag, parent, name, text);
  element.dir = 'auto';
  return element;
};

// Numbers as core/base/number_words.h has them for pictures and windows: a test holds these two to it. They are here, and
// not in the engine, since a page is drawn before it has an engine, and without one.
/// [the digits, those of whole numbers all; the power of ten of the first].
const roundedDigits = (value, digits) => {
  const parts = (count) => value.toExponential(count - 1).split('e').map(Number), found = parts(digits);
  return found[1] >= digits && found[1] < 6 ? parts(found[1] + 1) : found;
};
/// Three digits: 0.26, 17776, 2.6×10⁻⁵.
const numberWords = (value, digits = 3) => {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf';
  if (value === 0) return '0';
  const [first, power] = roundedDigits(value, digits);
  if (power >= -3 && power < 6) return String(Number(first + 'e' + power));
  const raised = (power < 0 ? '⁻' : '') + String(Math.abs(power)).replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit]);
  return (Math.abs(first) === 1 ? (first < 0 ? '-' : '') : first + '×') + '10' + raised;
};
/// A part of 1: 12.3 %, 0.00028 %, 99.98 %.
const shareWords = (share) => {
  const size = Math.abs(share);
  if (!Number.isFinite(share) || size > 0 && size < 1e-8 || size > 1e4) return numberWords(share);
  if (share === 0) return '0\u00a0%';
  let [first, power] = roundedDigits(100 * share, 3);
  for (let digits = 4; size < 1 && power > 1 && digits <= 8; ++digits) {
    [first, power] = (100 * share).toExponential(digits - 1).split('e').map(Number);
  }
  return Number(first + 'e' + power) + '\u00a0%';
};
/// The smallest of 1, 2, 5, 10, 20 … that is not below `value`.
const roundStep = (value) => {
  for (let power = 1;; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power >= value) return factor * power;
  }
};
const cssOf = (rgb) => 'rgb(' + rgb.join() + ')';
/// Black or white, the one that stands out more: by 4.5 : 1 at least on every colour there is (WCAG 2).
const inkOn = (rgb) => {
  const [r, g, b] = rgb.map((c) => c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return luminance > 0.179 ? '#000' : '#fff';
};
const makeChoice = (parent, label, values, change) => {
  const wrapper = make('label', parent, '', label + ' ');
  const select = make('select', wrapper);
  for (const [value, text] of values) make('option', select, '', text).value = value;
  select.onchange = () => change(select.value);
  return select;
};
const makeButton = (parent, text, title, act) => {
  const button = make('button', parent, '', text);
  button.type = 'button';
  button.title = title;
  button.setAttribute('aria-label', title);
  button.onclick = act;
  return button;
};
