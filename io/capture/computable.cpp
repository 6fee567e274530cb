#include "io/capture/computable.h"

#include <set>

#include "core/base/error.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/named_folder.h"
#include "io/capture/partial_calls.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

/// A key that shapes maps but is not understood, and the file that has it.
struct ShapingKey {
  std::string file, what;
};

void add_shaping(const std::string& file, const std::vector<std::string>& unknown,
                 std::vector<ShapingKey>& found) {
  for (const std::string& what : unknown) {
    if (shaping_name(unknown_key(what)) != nullptr) found.push_back({file, what});
  }
}

}  // namespace

std::string shaping_fault(const Capture& capture) {
  std::vector<ShapingKey> found;
  add_shaping(capture.path().string(), capture.unknown_keys(), found);
  for (const CallEntry& call : capture.calls()) {
    add_shaping(call.file.string(), call.unknown_keys, found);
  }
  if (found.empty()) return "";
  std::set<std::string> names;
  for (const ShapingKey& each : found) {
    names.insert(std::string(last_part(unknown_key(each.what))));
  }
  std::string ignore, others;
  for (const std::string& name : names) {
    ignore += (ignore.empty() ? "--ignore " : " --ignore ") + name;
    const bool is_first = name == last_part(unknown_key(found.front().what));
    if (!is_first) others += (others.empty() ? " (and " : ", ") + name;
  }
  if (!others.empty()) others += ")";
  const ShapingName& first = *shaping_name(unknown_key(found.front().what));
  const std::string way = first.way_out.empty()
                              ? ", which is not supported"
                              : ", which is not understood here: " + std::string(first.way_out);
  return file_error(found.front().file, found.front().what + others,
                    std::string(first.what) + way + (first.way_out.empty() ? ": " : "; ") + ignore +
                        " makes the map without it")
      .what();
}

void require_computable(const Capture& capture) {
  require_whole_calls(capture);
  const std::string fault = shaping_fault(capture);
  if (!fault.empty()) throw Error(ErrorCode::file, fault);
}

std::vector<std::string> not_understood(const Capture& capture) {
  std::vector<std::string> list;
  std::set<std::string> seen;
  const auto add = [&](const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      if (seen.insert(key).second) list.push_back(key);
    }
  };
  add(capture.unknown_keys());
  for (const CallEntry& call : capture.calls()) add(call.unknown_keys);
  return list;
}

std::string not_understood_text(const Capture& capture) {
  const std::vector<std::string> list = not_understood(capture);
  return list.empty() ? "" : one_line("not understood: " + first_names(list, "name"));
}

}  // namespace attnscope
