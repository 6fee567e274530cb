// The functions of browser.h. `page` is page.js's.
mergeInto(LibraryManager.library, {
  $browserText__deps: ['malloc'],
  $browserText: function(text) {
    var size = lengthBytesUTF8(text) + 1;
    var at = _malloc(size);
    stringToUTF8(text, at, size);
    return at;
  },

  // The script of a view stands in the address behind the token: "#token=…&view=layer+3;head+1".
  $browserAddress__deps: [],
  $browserAddress: {
    wanted: '',
    timer: 0,
    // A move is in the address at once, those that follow it within this are one: browsers let a page change its
    // address a few times a second.
    pause: 400,
    last: -1000,
    find: function(name) {
      var found = new RegExp('(?:^#|&)' + name + '=([^&]*)').exec(location.hash);
      return found ? found[1] : '';
    },
    encode: function(script) {
      return encodeURIComponent(script.replace(/\n$/, '')).replace(/%20/g, '+').replace(/%0A/g, ';')
          .replace(/%3A/g, ':').replace(/%2C/g, ',');
    },
    // What cannot be decoded is no script either, and the window says so.
    decode: function(text) {
      try {
        return decodeURIComponent(text.replace(/\+/g, ' ').replace(/;/g, '\n')).replace(/\0/g, '\ufffd');
      } catch (e) {
        return text;
      }
    },
    put: function() {
      clearTimeout(browserAddress.timer);
      browserAddress.timer = 0;
      if (!browserAddress.wanted || browserAddress.wanted === browserAddress.find('view')) return;
      browserAddress.last = performance.now();
      var hash = '#token=' + browserAddress.find('token') + '&view=' + browserAddress.wanted;
      try {
        history.replaceState(history.state, '', hash);
      } catch (e) {
        console.warn('the browser did not let the window keep its view in the address: ' + e.message);
      }
    }
  },

  browser_watch__deps: ['$browserText', '$browserAddress', 'free'],
  browser_watch: function() {
    var canvas = Module['canvas'];
    // A side of the canvas in device pixels, by the browser's own count where it has one that can be.
    var side = function(length, counted) {
      var computed = Math.round(length * window.devicePixelRatio);
      return counted && Math.abs(counted - computed) <= 1 ? counted : computed;
    };
    var tell = function(counted) {
      _web_resized(side(canvas.clientWidth, counted && counted.inlineSize),
                   side(canvas.clientHeight, counted && counted.blockSize), window.devicePixelRatio);
    };
    tell(null);
    var watch = new ResizeObserver(function(entries) {
      var box = entries[0].devicePixelContentBoxSize;
      tell(box ? box[0] : null);
    });
    try {
      watch.observe(canvas, {box: 'device-pixel-content-box'});
    } catch (e) {
      watch.observe(canvas);
    }
    // Also where the page was zoomed, or came to another screen.
    window.addEventListener('resize', function() { tell(null); });
    var watchScale = function() {
      var now = window.matchMedia('(resolution: ' + window.devicePixelRatio + 'dppx)');
      now.addEventListener('change', function() {
        tell(null);
        watchScale();
      }, {once: true});
    };
    watchScale();
    // Somebody has put another address here: that of a server that was started again, or of another view.
    window.addEventListener('hashchange', function() {
      var view = browserAddress.find('view');
      if (view && view !== browserAddress.wanted) location.reload(); else _web_act(2);
    });
    window.addEventListener('pagehide', browserAddress.put);
    canvas.addEventListener('contextmenu', function(e) { e.preventDefault(); });
    document.addEventListener('paste', function(e) {
      var text = browserText(e.clipboardData.getData('text/plain'));
      _web_pasted(text);
      _free(text);
      e.preventDefault();
    });
    // Scripts of the window, from the developers' console.
    var waiting = {}, last = 0;
    Module['scriptDone'] = function(number, lines, problem) {
      var promise = waiting[number];
      delete waiting[number];
      if (problem) promise.reject(new Error(problem)); else promise.resolve(lines);
    };
    window['attnscope'] = {
      'script': function(text) {
        return new Promise(function(resolve, reject) {
          waiting[++last] = {resolve: resolve, reject: reject};
          var at = browserText(text);
          _web_script(last, at);
          _free(at);
        });
      }
    };
    canvas.focus();
  },
  browser_address__deps: ['$browserText'],
  browser_address: function() {
    return browserText((location.protocol === 'https:' ? 'wss://' : 'ws://') + location.host +
                       location.pathname.replace(/[^\/]*$/, '') + 'tiles');
  },
  browser_token__deps: ['$browserText', '$browserAddress'],
  browser_token: function() {
    var token = browserAddress.find('token');
    return browserText(/^[0-9a-f]{32}$/.test(token) ? token : '');
  },
  browser_view__deps: ['$browserText', '$browserAddress'],
  browser_view: function() { return browserText(browserAddress.decode(browserAddress.find('view'))); },
  browser_keep_view__deps: ['$browserAddress'],
  browser_keep_view: function(script) {
    browserAddress.wanted = browserAddress.encode(UTF8ToString(script));
    var rest = browserAddress.last + browserAddress.pause - performance.now();
    if (rest <= 0) browserAddress.put();
    else if (!browserAddress.timer) browserAddress.timer = setTimeout(browserAddress.put, rest);
  },
  browser_set_title: function(title) { document.title = UTF8ToString(title); },
  browser_set_cursor: function(name) { Module['canvas'].style.cursor = UTF8ToString(name); },
  browser_copy: function(text) {
    if (!navigator.clipboard) return;
    navigator.clipboard.writeText(UTF8ToString(text)).catch(function() {
      page.banner('the browser did not let the window copy');
      setTimeout(function() { page.banner(''); }, 4000);
    });
  },
  browser_save_picture: function(name, rgb, width, height) {
    var canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    var context = canvas.getContext('2d');
    var picture = context.createImageData(width, height);
    for (var from = rgb, to = 0; to < picture.data.length; from += 3, to += 4) {
      picture.data[to] = HEAPU8[from];
      picture.data[to + 1] = HEAPU8[from + 1];
      picture.data[to + 2] = HEAPU8[from + 2];
      picture.data[to + 3] = 255;
    }
    context.putImageData(picture, 0, 0);
    var file = UTF8ToString(name);
    canvas.toBlob(function(blob) {
      var link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      link.download = file;
      link.click();
      setTimeout(function() { URL.revokeObjectURL(link.href); }, 60000);
    }, 'image/png');
  },
  browser_cover: function(title, text, button, action) {
    page.cover(UTF8ToString(title), UTF8ToString(text), UTF8ToString(button),
               action ? function() { _web_act(action); } : null);
  },
  browser_uncover: function() { page.uncover(); },
  browser_banner: function(text) { page.banner(UTF8ToString(text)); },
  browser_reload: function() { location.reload(); },
  browser_script_done: function(number, lines, problem) {
    Module['scriptDone'](number, UTF8ToString(lines), UTF8ToString(problem));
  },
});
