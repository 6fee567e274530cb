'use strict';
// The page around the window: says what is missing before anything is loaded, then starts it; what it says
// later (browser.js) stands over the canvas.
const page = {
  element: (id) => document.getElementById(id),

  /// Over all of the window; `button` and what it does may be left out.
  cover(title, text, button, act) {
    page.element('cover-title').textContent = title;
    page.element('cover-text').textContent = text;
    const key = page.element('cover-button');
    key.hidden = !button;
    key.textContent = button || '';
    key.onclick = act || null;
    page.element('cover').hidden = false;
    if (button) key.focus();
  },
  uncover() {
    page.element('cover').hidden = true;
    page.element('canvas').focus();
  },
  /// At the upper edge, with the window still in use; empty: away with it.
  banner(text) {
    page.element('banner').textContent = text;
    page.element('banner').hidden = text === '';
  },

  /// Each of these modules is valid where the browser knows what it is made of.
  knows(bytes) {
    return WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0].concat(bytes)));
  },
  /// What the browser lacks; empty: nothing.
  missing() {
    if (typeof WebAssembly !== 'object') return 'WebAssembly';
    // A function that makes a vector of four numbers; a tag of an exception.
    const simd = [1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 17, 11];
    const exceptions = [1, 4, 1, 96, 0, 0, 13, 3, 1, 0, 0];
    if (!page.knows(simd)) return 'WebAssembly with SIMD';
    if (!page.knows(exceptions)) return 'WebAssembly with exceptions';
    if (!page.element('canvas').getContext('webgl2', page.drawing)) return 'WebGL 2';
    return '';
  },
  /// How the window draws (web_screen.cpp): its canvas gets one context, which takes a while.
  drawing: {alpha: false, depth: false, stencil: false, antialias: false},

  /// The program, from the first moment on: it comes and is compiled while the rest is looked at.
  program: null,
  fetchProgram() {
    if (typeof WebAssembly !== 'object' || !WebAssembly.compileStreaming) return;
    page.program = WebAssembly.compileStreaming(fetch('window.wasm', {credentials: 'same-origin'}));
    page.program.catch(() => {});  // whoever wants it is told
    const script = document.createElement('link');
    script.rel = 'preload';
    script.as = 'script';
    script.href = 'window.js';
    document.head.appendChild(script);
  },

  start() {
    page.fetchProgram();
    const missing = page.missing();
    if (missing) {
      page.cover('This browser cannot show the window',
                 'It lacks ' + missing + '. Chromium and Chrome from 95 on, Firefox from 100 on and ' +
                     'Safari from 16.4 on have it, where drawing by the graphics card is not ' +
                     'switched off.');
      return;
    }
    page.banner('loading \u2026');
    const script = document.createElement('script');
    script.src = 'window.js';
    script.onerror = () => page.cover('The window did not load',
                                      'The server does not answer. Is attnscope serve still running?',
                                      'Try again', () => location.reload());
    document.body.appendChild(script);
  },
};

// What the window's program is told, and where it tells of itself (emscripten's name for it).
var Module = {
  canvas: page.element('canvas'),
  printErr: (text) => console.error(text),
  print: (text) => console.log(text),
  instantiateWasm(imports, done) {
    const program = page.program || fetch('window.wasm', {credentials: 'same-origin'}).then(
        (answer) => answer.arrayBuffer()).then((bytes) => WebAssembly.compile(bytes));
    program.then((module) => WebAssembly.instantiate(module, imports)).then(
        (instance) => done(instance),
        (error) => page.cover('The window did not load', String(error.message || error), 'Try again',
                              () => location.reload()));
    return {};
  },
  onAbort: (what) => page.cover('The window has stopped', String(what), 'Reload', () => location.reload()),
};

page.start();
