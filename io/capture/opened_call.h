#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/capture/call_facts.h"
#include "io/capture/call_tensors.h"
#include "io/capture/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// One call as it stands in its files: tensors that are open, and what was recorded of them.
struct OpenedCall {
  std::filesystem::path file;  ///< that names the call
  CallFacts facts;
  CallTensors tensors;
  std::vector<std::string> unknown = {};  ///< tensors that are not understood
  bool guess = false;                     ///< what is not told may be guessed
  std::vector<std::string> notes = {};
};

/// A file that holds a call of its own.
struct CaptureFile {
  /// What capture.json says of it: calls[index] of `root`.
  struct Listing {
    std::string catalogue;  ///< the path of capture.json
    std::shared_ptr<const nlohmann::json> root;
    size_t index = 0;
  };
  std::filesystem::path path;
  std::optional<Listing> listing = {};
  /// The file, where it had to be opened to tell what it is; null: not yet.
  std::shared_ptr<const TensorFile> opened = nullptr;
};

/// Tensors without metadata: FILE or FILE:KEY each.
struct BareTensors {
  std::string q;
  std::string k;
  std::string v;  ///< may be empty
};

/// Opens the call's tensors, with those that --cu-seqlens names in place of the recorded ones. A
/// file that neither says that it is in the capture format nor is listed is taken as one call for
/// the names of its tensors. Throws Error(file), Error(usage) for what options name.
OpenedCall open_call_file(const CaptureFile& file, const FactOverrides& overrides,
                          const ReadControl& control);
/// The same of bare tensors.
OpenedCall open_bare_tensors(const BareTensors& tensors, const FactOverrides& overrides,
                             const ReadControl& control);

}  // namespace attnscope
