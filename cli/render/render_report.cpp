#include "cli/render/render_report.h"

#include <fmt/core.h>

#include "cli/common/left_out_names.h"
#include "cli/run/run_steps.h"
#include "io/files/json_types.h"

namespace attnscope {

void report_written(const RenderRequest& request, const Console& console,
                    const WrittenPicture& written) {
  console.say(fmt::format(
      "wrote {} ({}, {}, {}{})", request.out, written.picture,
      heads_text(static_cast<int64_t>(written.heads)),
      page_text(written.width, written.height, style_of(request.page, request.out)), written.note));
  if (!request.json) return;
  OrderedJson json{{"format", "attnscope-render/1"}, {"file", request.out},
                   {"picture", written.picture},     {"heads", written.heads},
                   {"width", written.width},         {"height", written.height}};
  json.update(written.facts);
  json["drawn"] = written.drawn;
  add_left_out(json, request.capture);
  print_json(json, true);
}

}  // namespace attnscope
