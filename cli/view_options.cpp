#include "cli/view_options.h"

#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/problem/problem_names.h"

namespace attnscope {

CommandParser add_view_options(CLI::App& app, ViewRequest& o) {
  CommandParser command(app, "view", "the window: a map at any zoom, and any token's volume");
  add_capture_options_of_two(command, o.capture, o.second);
  command.add_option("SECOND", o.second, "a second capture, of which a head is side B")
      .type_name("SECOND");
  const std::string start = "What is shown first";
  add_query_options(command, o.query, false);
  command.add_flag("--reverse", o.reverse, "show who attends to the token");
  command.add_option("--zoom", o.zoom, "show these queries and keys of the map, half-open")
      .type_name("Q0,Q1,K0,K1")
      .group(start);
  command
      .add_option("--order", o.order,
                  "the matrix's tokens in this order: {}, or FILE with the token at each place")
      .words(token_order_names())
      .type_name("NAME|FILE")
      .group(start);
  command
      .add_option("--order-keys", o.order_keys, "the keys in this order, where it is another one")
      .words(token_order_names())
      .type_name("NAME|FILE")
      .group(start);
  command.add_option("--theme", o.theme, "{}")
      .one_of({"light", "dark"})
      .type_name("NAME")
      .group(start);
  command
      .add_option("--size", o.size,
                  "of the window in pixels (default: 1280x800 times the display's scale)")
      .type_name("WxH")
      .group(start);
  command
      .add_flag(
          "--follow", o.follow,
          "show calls as a model that is still running adds them to the folder CAPTURE, which "
          "need not be there yet")
      .group(start);
  command
      .add_option("--remote-program", o.remote_program,
                  "of CAPTURE on another machine, ssh://[user@]host[:port]/path: the program there "
                  "(default attnscope)")
      .type_name("PATH")
      .group(start);
  const std::string files = "Sessions, pictures, scripts";
  command.add_option("--session", o.session, "restore this session, and save it with Ctrl+S")
      .type_name("FILE")
      .group(files);
  command
      .add_option("--screenshot", o.screenshot,
                  "write the window as a .png when all of it is exact, and end; no window is seen")
      .type_name("FILE")
      .group(files);
  command
      .add_option("--script", o.script,
                  "run these commands without a visible window: see docs/window-scripts.md")
      .type_name("FILE")
      .group(files);
  command.add_flag("--force", o.force, "pictures and sessions replace files that exist");
  add_alone_option(command, o.alone);
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  command
      .add_option("--texture-memory", o.texture_memory,
                  "graphics memory for tiles (default 512MiB)")
      .type_name("SIZE")
      .group("Computation");
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "Examples:\n"
      "  attnscope view samples/moving-shapes\n"
      "  attnscope view dump/ --layers 12 --heads 3 --query 6,15,22\n"
      "  attnscope view --q q.npy --k k.npy --preset cogvideox-5b\n"
      "  attnscope view maps.h5         # an export of weights, logits, rows or blocks, or its "
      ".part\n"
      "  attnscope view dump/ --follow  # while the model runs\n"
      "  attnscope view base/ tuned/    # two captures, compared\n"
      "  attnscope view ssh://server/data/dump      # on another machine\n"
      "  attnscope view dump/ --theme light --size 1600x1000 --screenshot map.png\n"
      "  attnscope view dump/ --script tour.txt     # also on a server without a screen");
  return command;
}

}  // namespace attnscope
