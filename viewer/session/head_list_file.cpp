#include "viewer/session/head_list_file.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "io/files/json_text.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

OrderedJson row_of(const HeadPattern& head) {
  OrderedJson row;
  const auto add = [&](const char* name, const auto& value) {
    if (value) row[name] = *value;
  };
  add("step", head.step);
  add("layer", head.layer);
  add("branch", head.branch);
  add("kind", head.kind);
  add("block", head.block);
  add("slot", head.slot);
  add("chunk", head.chunk);
  add("batch", head.batch);
  row["head"] = head.head;
  return row;
}

}  // namespace

void write_head_list(std::span<const HeadPattern> heads, const std::filesystem::path& file,
                     bool force, std::span<const std::filesystem::path> inputs) {
  if (file.extension() != ".json") {
    throw usage_error(one_line(file.string()) + ": the name of a list must end in .json");
  }
  std::string text = "{\"format\": \"attnscope-heads/1\",\n \"heads\": [";
  for (size_t i = 0; i < heads.size(); ++i) {
    text += (i == 0 ? "" : ",\n           ") + json_text(row_of(heads[i]));
  }
  text += "]}\n";
  OutputFile out(file, {.force = force, .inputs = inputs});
  out.create_part();
  out.write_at(std::as_bytes(std::span(text.data(), text.size())), 0);
  out.commit();
}

}  // namespace attnscope
