#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/common/console.h"
#include "cli/render/render_options.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A picture that was written to -o.
struct WrittenPicture {
  std::string_view picture;  ///< "matrix"
  size_t heads = 0;
  int width = 0, height = 0;
  std::string note = {};                      ///< "; 3 of 64 cells are not there"
  OrderedJson facts = OrderedJson::object();  ///< for --json, behind the rest
  OrderedJson drawn = OrderedJson::array();   ///< the heads, with what is drawn of each
};

/// Says that it was written, and prints it with --json.
void report_written(const RenderRequest& request, const Console& console,
                    const WrittenPicture& written);

}  // namespace attnscope
