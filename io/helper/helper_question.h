#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/files/json_types.h"

namespace attnscope {

/// Something the helper process can be asked about a file. One constant stands beside each reader,
/// which asks with it (ask_helper), and in the list that the helper serves (serve_helper).
struct HelperQuestion {
  std::string_view name;  ///< how the two processes call it
  /// The function that answers in the helper, with the name of the file and the question's
  /// arguments. It may crash and may never return; what it throws reaches who asked.
  Json (*answer)(const std::string& file, const Json& arguments);
};

}  // namespace attnscope
