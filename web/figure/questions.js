// Questions to the engine: one at a time, the latest wishes first.
let busy = null, send = null;   // `send` is there once the engine has started
const asked = [];   // what somebody waits for
let wished = [];    // tiles that the view wants; replaced by each picture
const start = (question) => {
  busy = question;
  send(question.message, question.transfer || []);
};
const next = () => {
  if (busy || !send) return;
  const question = asked.shift() || wished.shift();
  if (question) start(question);
};
const answered = (data) => {
  const question = busy;
  busy = null;
  if (data.problem) question.fail(new Error(data.problem));
  else question.done(data.values);
  next();
};
const ask = (message, transfer) => new Promise((done, fail) => {
  asked.push({message, transfer, done, fail});
  next();
});
/// Whoever shows this page within another one may allow it no worker: `tell` is called then.
const startInPage = (tell) => {
  if (send) return;
  const answer = makeEngine();
  // After what is to be seen has been drawn.
  send = (message) => setTimeout(() => answer(message).then(answered), 0);
  tell();
  next();
};
const startWorker = (tell, say) => {
  const script = '"use strict";(' + serveQuestions + ')((' + makeEngine + ')());';
  try {
    const worker = new Worker(URL.createObjectURL(new Blob([script], {type: 'text/javascript'})));
    worker.onmessage = (event) => {
      if (!event.data.started) { answered(event.data); return; }
      send = (message, transfer) => worker.postMessage(message, transfer);
      next();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (send) say('the engine failed: ' + event.message);
      else startInPage(tell);
    };
  } catch (error) {
    startInPage(tell);
  }
};
/// Hands the head over; from then on there are answers.
const openEngine = () => {
  const names = ['engine', 'q', 'k', 'sums', 'exponents', 'lists', 'starts', 'runs'];
  const data = Object.fromEntries(names.map((name) => [name, bytesOf(name)]));
  return ask({
    what: 'open', ...data,
    numbers: [facts.dtype_number, Q.count, K.count, facts.dim, facts.scale, facts.score_number, K.count === K.total && facts.sinks === 'none' ? 1 : 0,
              facts.mask_lists, facts.mask_runs, facts.score_cap],
  }, Object.values(data).filter(Boolean));
};

const rowOf = (row) => ask({what: 'entries', row, rows: 1, key: 0, keys: K.count, quantity: 0});
const columnOf = (key) => ask({what: 'entries', row: 0, rows: Q.count, key, keys: 1, quantity: 0});
const entryOf = async (row, key) => {
  const weight = (await ask({what: 'entries', row, rows: 1, key, keys: 1, quantity: 0}))[0];
  const linear = facts.score.startsWith('linear');
  const logit = linear ? NaN : (await ask({what: 'entries', row, rows: 1, key, keys: 1, quantity: 1}))[0];
  return {weight, logit};
};
const entryText = (entry) => 'weight ' + numberWords(entry.weight) + besideUniform(entry.weight) +
    (Number.isNaN(entry.logit) ? '' : '   logit ' + (entry.logit === -Infinity ? 'masked' : numberWords(entry.logit)));
