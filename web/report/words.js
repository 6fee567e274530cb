// Words of the prompt over the frames: where the video looks at each.
const makeWordStrips = () => {
  const words = facts.words;
  if (!words || !words.strips.length && !(words.left_out || []).length) return;
  const section = makeSection('words', 'Words over the frames');
  makeIntro(section, words.text);
  const over = (words.frames || []).some((_, t) => pictureOf(words.frames, t) !== null);
  if (words.strips.length) {
    makeScale(section, shareText(words.low || 0), shareText(words.high),
              'even scale, the same for all words' + (over ? '; over the recorded frames, in grey' : ''), over ? overRamp : plainRamp);
  }
  for (const strip of words.strips) {
    const item = make('section', section, 'strip'), heading = make('h3', item);
    make('bdi', heading, 'word', strip.word);
    make('span', heading, 'note', (strip.tokens > 1 ? ' tokens ' + strip.token + ' to ' + (strip.token + strip.tokens - 1) : ' token ' + strip.token) + ': ' +
         shareText(strip.mass) + ' of a row on average, at most ' + shareText(strip.largest));
    makeFilm(item, {data: strip.data, grid: words.grid, frames: words.frames, query: null}, 'where the video looks at “' + strip.word + '”: ' +
        shareText(strip.mass) + ' of a row on average, ' + words.grid[0] + ' frames');
  }
  if (words.heads && words.heads.length) {
    const holder = make('p', section, 'note', 'Mean of ');
    words.heads.forEach((i, at) => {
      if (at) holder.append(', ');
      headLink(holder, i);
    });
  }
  if (words.left_out && words.left_out.length) {
    const more = make('details', section);
    make('summary', more, '', 'Words without a strip');
    makeList(more, '', words.left_out);
  }
  makeCommand(section, words.command);
};
