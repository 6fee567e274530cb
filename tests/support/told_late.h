#pragma once

#include <filesystem>
#include <string>

#include "tests/support/call_file.h"
#include "tests/support/temporary_folder.h"

namespace attnscope::test {

/// A call of a forward whose step or branch nobody told; a negative number is not stated.
struct UntoldCall {
  int64_t forward = 0, step = -1, of_step = -1, layer = -1, call = -1;
  std::string block = {};

  std::string name() const {
    return "f" + std::to_string(forward) + "_l" + std::to_string(layer) + block + "_c" +
           std::to_string(call) + ".safetensors";
  }
  CallFile file() const {
    CallFile file;
    file.version(2).pair({1, 2, 6, 4}, {1, 2, 6, 4}).fact("forward", std::to_string(forward));
    const auto add = [&](const char* name, int64_t number) {
      if (number >= 0) file.fact(name, std::to_string(number));
    };
    add("step", step);
    add("of_step", of_step);
    add("layer", layer);
    add("call", call);
    if (!block.empty()) file.fact("block", block).fact("slot", "attn");
    return file;
  }
  /// Its entry in capture.json.
  std::string entry() const {
    const std::string steps = step < 0 ? "" : R"(,"step":)" + std::to_string(step);
    return R"({"file":")" + name() + "\"" + steps + R"(,"forward":)" + std::to_string(forward) +
           "}";
  }
};

/// Calls with their capture.json, and `more` in it: `"forwards":[…]`.
inline std::string write_untold(const TemporaryFolder& folder, const std::vector<UntoldCall>& calls,
                                const std::string& more = "", const std::string& name = "dump") {
  const std::string path = folder / name;
  std::filesystem::create_directory(path);
  std::string list;
  for (const UntoldCall& call : calls) {
    call.file().write(path + "/" + call.name());
    list += (list.empty() ? "" : ",") + call.entry();
  }
  write_bytes(path + "/capture.json", R"({"format":"attnscope-capture/2","calls":[)" + list + "]" +
                                          (more.empty() ? "" : "," + more) + "}");
  return path;
}

/// Two forwards a step of two steps, two layers each; the second of a step of the other branch.
inline std::vector<UntoldCall> guided_calls() {
  std::vector<UntoldCall> calls;
  for (int64_t forward = 0; forward < 4; ++forward) {
    for (int64_t layer : {1, 3}) calls.push_back({forward, forward / 2, forward % 2, layer});
  }
  return calls;
}

/// `"forwards":[…]` of them.
inline std::string guided_forwards(const std::string& of_last = "") {
  std::string list;
  for (int64_t forward = 0; forward < 4; ++forward) {
    list += (forward == 0 ? "" : ",") + (R"({"forward":)" + std::to_string(forward)) +
            R"(,"step":)" + std::to_string(forward / 2) + R"(,"of_step":)" +
            std::to_string(forward % 2) + R"(,"timestep":)" + std::to_string(900 - forward / 2) +
            R"(,"transformer":"Wan","batch":1,"latents":)" + std::to_string(forward / 2) +
            R"(,"text":)" + std::to_string(forward % 2) + R"(,"chosen":true)" +
            (forward == 3 ? of_last : "") + "}";
  }
  return R"("forwards":[)" + list + "]";
}

}  // namespace attnscope::test
