// Mouse, fingers and keys on the map. One finger scrolls the page until the map was tapped; two pinch and move. Within
// another page the wheel scrolls that page until the map was clicked, or with Ctrl or ⌘ held.
let cursor = null;      // the cell that keys move, {row, key}
let clicked = null;     // the cell that was clicked last, where keys begin
let isHeld = false;     // clicked or tapped, and not let go yet
const pointers = new Map();   // the fingers and buttons that are down: id to [x, y] of the canvas
let drag = null, hover = 0;
const place = (event) => {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
};
/// The cell at a pixel; null beside the map.
const cellAt = (x, y) => {
  const row = Math.floor(rowAt(y)), key = Math.floor(keyAt(x));
  const isOn = x >= area.x && y >= area.y && row >= 0 && row < Q.count && key >= 0 && key < K.count;
  return isOn ? {row, key} : null;
};
const takeHold = () => { isHeld = true; canvas.classList.add('held'); };
const letGo = () => { isHeld = false; canvas.classList.remove('held'); };
const cellText = async (cell) => {
  const entry = await entryOf(cell.row, cell.key);
  return 'query ' + placeText(Q, cell.row) + '\nkey ' + placeText(K, cell.key) + '\n' + entryText(entry);
};
/// Beside the pointer, on the side where there is room.
const showTip = async (event) => {
  const cell = cellAt(...place(event)), mine = ++hover;
  if (!cell || !ready) { tip.hidden = true; return; }
  const text = await cellText(cell);
  if (mine !== hover) return;
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  tip.hidden = false;
  tip.textContent = text;
  tip.style.left = Math.max(0, x + 16 + tip.offsetWidth > box.width ? x - 12 - tip.offsetWidth : x + 16) + 'px';
  tip.style.top = Math.max(0, y + 16 + tip.offsetHeight > box.height ? y - 12 - tip.offsetHeight : y + 16) + 'px';
};
const hideTip = () => { ++hover; tip.hidden = true; };
const pinch = (event) => {
  const before = [...pointers.values()];
  pointers.set(event.pointerId, place(event));
  const after = [...pointers.values()];
  const middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], apart = ([a, b]) => Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1]));
  const [from, to] = [middle(before), middle(after)];
  view.col -= (to[0] - from[0]) / view.scale;
  view.row -= (to[1] - from[1]) / view.scale;
  zoomAt(...to, apart(after) / apart(before));
  soon();
};
/// Of a pinch the finger that stays goes on moving the map, and picks nothing.
const release = (id) => {
  const wasPinch = pointers.size === 2;
  pointers.delete(id);
  drag = wasPinch ? {at: [...pointers.values()][0], moved: true, isRest: true} : null;
};
const onDown = (event) => {
  if (event.pointerType === 'mouse' && event.button !== 0) return;
  pointers.set(event.pointerId, place(event));
  hideTip();
  drag = pointers.size === 1 ? {at: place(event), moved: false} : null;
  if (event.pointerType !== 'touch' || isHeld) canvas.setPointerCapture(event.pointerId);
};
const onMove = (event) => {
  // The button was let go where nobody told.
  if (event.buttons === 0) { pointers.clear(); drag = null; }
  if (!pointers.size) { showTip(event).catch((error) => say(error.message)); return; }
  if (pointers.size === 2 && pointers.has(event.pointerId)) { pinch(event); return; }
  if (!drag) return;
  const [x, y] = place(event), [dx, dy] = [x - drag.at[0], y - drag.at[1]];
  if (!drag.moved && Math.hypot(dx, dy) < 4 * ratio) return;
  drag.moved = true;
  if (event.pointerType === 'touch' && !isHeld && !drag.isRest) return;
  drag.at = [x, y];
  pointers.set(event.pointerId, drag.at);
  view.col -= dx / view.scale;
  view.row -= dy / view.scale;
  holdView();
  soon();
};
const onUp = (event) => {
  const cell = drag && !drag.moved && cellAt(...place(event));
  if (pointers.has(event.pointerId)) release(event.pointerId);
  if (!cell) return;
  takeHold();
  [cursor, clicked] = [null, cell];
  if (!ready) return;
  pickCell(cell.row, cell.key);
  // A finger has no place to rest at where it would be told.
  if (event.pointerType === 'touch') cellText(cell).then(tell, (error) => say(error.message));
};
const onWheel = (event) => {
  if (isEmbedded && !isHeld && !event.ctrlKey && !event.metaKey) {
    read.textContent = 'Ctrl + wheel zooms, or the wheel alone after a click into the map.';
    return;
  }
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode === 1 ? 33 : event.deltaMode === 2 ? 400 : 1);
  hideTip();
  zoomAt(...place(event), 2 ** (-pixels / 200));
  soon();
};
/// Cells that an arrow moves by: one, or what four pixels cover.
const cursorStep = () => Math.max(1, Math.round(4 * ratio / view.scale));
const moveCursor = async (down, across) => {
  const rows = seenRows(), keys = seenKeys(), isSeen = ([first, end], at) => at >= first && at < end;
  const begin = clicked && isSeen(rows, clicked.row) && isSeen(keys, clicked.key) ? clicked :
      {row: (rows[0] + rows[1]) >> 1, key: (keys[0] + keys[1]) >> 1};
  const at = cursor || begin, step = cursor ? cursorStep() : 0;
  const mine = {row: Math.max(0, Math.min(Q.count - 1, at.row + down * step)), key: Math.max(0, Math.min(K.count - 1, at.key + across * step))};
  cursor = mine;
  reveal(cursor.row, cursor.key);
  soon();
  await opened;
  const text = await cellText(mine);
  if (cursor === mine) tell(text);
};
const pan = (down, across) => {
  const step = 60 * ratio / view.scale;
  view.row += down * step;
  view.col += across * step;
  holdView();
  soon();
};
const zoomBy = (factor) => {
  if (cursor) zoomAt(xOf(cursor.key + 0.5), yOf(cursor.row + 0.5), factor);
  else zoomAt(area.x + area.width / 2, area.y + area.height / 2, factor);
  soon();
};
const kArrows = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
const onKey = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = kArrows[event.key];
  const keys = {
    '+': () => zoomBy(2), '=': () => zoomBy(2), '-': () => zoomBy(0.5), '0': () => { fit(); soon(); },
    Enter: () => { if (cursor && ready) pickCell(cursor.row, cursor.key); },
    // Where there is nothing to let go of, the key is that of the page around this one.
    Escape: cursor || isHeld ? () => { cursor = null; letGo(); soon(); } : null,
  };
  const act = arrow ? () => (event.shiftKey ? pan(...arrow) : moveCursor(...arrow).catch((error) => say(error.message))) : keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
};
const listen = () => {
  canvas.addEventListener('wheel', onWheel, {passive: false});
  canvas.addEventListener('pointerdown', onDown);
  canvas.addEventListener('pointermove', onMove);
  canvas.addEventListener('pointerup', onUp);
  for (const name of ['pointercancel', 'lostpointercapture']) {
    canvas.addEventListener(name, (event) => { if (pointers.has(event.pointerId)) release(event.pointerId); });
  }
  canvas.addEventListener('pointerleave', hideTip);
  // Two fingers are the map's: a browser would scroll or magnify the page.
  for (const name of ['touchstart', 'touchmove']) {
    canvas.addEventListener(name, (event) => { if (event.touches.length > 1 || drag && drag.isRest) event.preventDefault(); }, {passive: false});
  }
  canvas.addEventListener('keydown', onKey);
  document.addEventListener('pointerdown', (event) => { if (!holder.contains(event.target)) letGo(); });
  film.addEventListener('click', (event) => {
    if (!picked || !ready) return;
    const box = film.getBoundingClientRect();
    const token = filmToken(listed(picked), (event.clientX - box.left) * film.width / box.width,
                            (event.clientY - box.top) * film.height / box.height);
    if (token !== null) pickToken(token);
  });
};
/// The film's token as the next query (or key): the one of its place in a grid that is alike.
const pickToken = (token) => {
  const from = listed(picked), to = own(picked);
  if (!to.film || to.film.grid.join() !== from.film.grid.join()) {
    say('The ' + (picked.isKey ? 'keys' : 'queries') + ' of this map have another grid than this film: a click there picks none.');
    return;
  }
  const wanted = to.film.begin + token - from.film.begin;
  if (wanted < to.first || wanted > stored(to, to.count - 1)) {
    say('This page has not that ' + (picked.isKey ? 'key' : 'query') + '.');
    return;
  }
  pickCellOf({at: placeOf(to, wanted), isKey: picked.isKey});
};
