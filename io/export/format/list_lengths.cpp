#include "io/export/format/list_lengths.h"

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

Json read_lengths(const std::string& path, const Json& names) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  Json lengths = Json::array();
  for (const auto& name : names) {
    const std::string where = name.get<std::string>();
    const Hdf5Group list(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), path, where);
    const auto shape = reader.shape(reader.dataset(list.id(), "data"), where + "/data");
    const auto keys = reader.shape(reader.dataset(list.id(), "indices"), where + "/indices");
    if (shape.size() != 1 || shape[0] < 0 || keys != shape) {
      reader.bad(where, "is no list of kept weights");
    }
    lengths.push_back(shape[0]);
  }
  return lengths;
}

}  // namespace

const HelperQuestion kListLengthsQuestion{"the lists of a shard", read_lengths};

std::vector<int64_t> read_list_lengths(const std::filesystem::path& shard, const std::string& group,
                                       const std::vector<std::string>& lists) {
  Json names = Json::array();
  for (const std::string& list : lists) names.push_back("calls/" + group + "/" + list);
  return ask_helper(kListLengthsQuestion, shard.string(), names).get<std::vector<int64_t>>();
}

}  // namespace attnscope
