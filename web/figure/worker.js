// The engine of the page of `attnscope figure`, which answers one question at a time: in a worker, which runs the two
// functions below and nothing else, or in the page itself where that may have no worker.
'use strict';
const makeEngine = () => {
  let engine = null;

  const none = () => 0;
  const imports = {
    env: {emscripten_notify_memory_growth: none},
    wasi_snapshot_preview1: {
      proc_exit: (code) => { throw new Error('the engine ended with ' + code); },
      fd_seek: none, fd_write: none, fd_read: none, fd_close: none,
      environ_sizes_get: (count, size) => {
        new Uint32Array(engine.memory.buffer)[count >> 2] = 0;
        new Uint32Array(engine.memory.buffer)[size >> 2] = 0;
        return 0;
      },
      environ_get: none,
    },
  };

  const problem = () => {
    const bytes = new Uint8Array(engine.memory.buffer);
    const at = engine.attnscope_problem();
    return new TextDecoder().decode(bytes.slice(at, bytes.indexOf(0, at)));
  };

  const put = (bytes) => {
    if (!bytes) return 0;
    const at = engine.attnscope_reserve(bytes.byteLength);
    if (!at) throw new Error('the browser has no memory left for this page');
    new Uint8Array(engine.memory.buffer).set(new Uint8Array(bytes), at);
    return at;
  };

  const take = (at, count) => {
    if (!at) throw new Error(problem());
    return new Float32Array(engine.memory.buffer, at, count).slice();
  };

  const open = async (m) => {
    engine = (await WebAssembly.instantiate(m.engine, imports)).instance.exports;
    engine._initialize();
    const places = [new Float64Array(m.numbers).buffer, m.q, m.k, m.sums, m.exponents, m.lists, m.starts, m.runs].map(put);
    const opened = engine.attnscope_open(...places);
    places.filter(Boolean).forEach((at) => engine.attnscope_release(at));
    if (!opened) throw new Error(problem());
    return [];
  };

  const answers = {
    open,
    entries: (m) => take(engine.attnscope_entries(m.row, m.rows, m.key, m.keys, m.quantity, 1), m.rows * m.keys),
    texels: (m) => take(engine.attnscope_texels(m.level, m.row, m.rows, m.col, m.cols), 2 * m.rows * m.cols),
    mass_ends: (m) => {
      const places = [m.cells, m.masses].map(put);
      const found = engine.attnscope_mass_ends(...places, m.count);
      places.forEach((at) => engine.attnscope_release(at));
      if (!found) throw new Error(problem());
      return new Float64Array(engine.memory.buffer, found, 2).slice();
    },
    lse: (m) => new Float64Array([engine.attnscope_lse(m.row)]),
  };

  /// What is to be sent back of a question.
  return async (m) => {
    try {
      return {values: await answers[m.what](m)};
    } catch (error) {
      return {problem: String(error.message || error)};
    }
  };
};

/// All that the worker does.
const serveQuestions = (answer) => {
  onmessage = async (event) => {
    const answered = await answer(event.data);
    postMessage(answered, answered.values && answered.values.buffer ? [answered.values.buffer] : []);
  };
  postMessage({started: true});
};
