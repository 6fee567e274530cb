#include "python/native/recorded_call.h"

#include <memory>
#include <utility>
#include <vector>

#include "io/capture/call/call_builder.h"
#include "io/capture/call/opened_call.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {
namespace {

/// Arrays as a file of tensors.
class ArrayFile : public TensorFile {
 public:
  ArrayFile(const std::string& name, std::map<std::string, DataArray> tensors,
            std::map<std::string, std::string> metadata)
      : TensorFile(name), metadata_(std::move(metadata)) {
    for (auto& [key, array] : tensors) {
      tensors_.emplace(key, array_tensor(name + ": " + key, std::move(array)));
    }
  }

  std::vector<std::string> keys() const override {
    std::vector<std::string> keys;
    for (const auto& [key, tensor] : tensors_) keys.push_back(key);
    return keys;
  }
  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    const auto found = tensors_.find(key);
    if (found == tensors_.end()) throw missing_tensor(*this, key);
    return found->second;
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  std::map<std::string, std::shared_ptr<const TensorSource>> tensors_;
  const std::map<std::string, std::string> metadata_;
};

}  // namespace

CallHandle recorded_call(const std::string& name, std::map<std::string, DataArray> tensors,
                         std::map<std::string, std::string> metadata) {
  CaptureFile file{name};
  file.opened = std::make_shared<const ArrayFile>(name, std::move(tensors), std::move(metadata));
  const FactOverrides as_recorded;
  BuiltCall built = build_call(collect_facts(open_call_file(file, as_recorded, {}), as_recorded),
                               as_recorded, {});
  return {std::make_shared<const CallEntry>(std::move(built.entry)), nullptr};
}

}  // namespace attnscope
