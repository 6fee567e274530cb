#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/tensor_files.h"
#include "tests/support/zip_bytes.h"

using namespace attnscope::test;

namespace {

struct BadFile {
  std::string name, bytes;
  std::string message;  ///< after "attnscope: FILE: "
};

std::string pickle_archive(const std::string& pickle, const std::string& order = "little") {
  return zip_bytes({{"a/data.pkl", pickle}, {"a/byteorder", order}});
}

/// One of each format's kinds; tests/io has them all.
std::vector<BadFile> bad_files() {
  const std::string header = R"({"q":{"dtype":"F32","shape":[1,1,4,2],"data_offsets":[0,32]},)"
                             R"("k":{"dtype":"F32","shape":[1,1,4,2],"data_offsets":[16,48]}})";
  const std::string npy =
      npy_bytes("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n", "12345678");
  const std::string hdf5 = read_file(test_data("dumps/qk.h5"));
  return {
      {"a.safetensors", "", "header: a safetensors file has at least 8 bytes (got 0)"},
      {"a.safetensors", safetensors_bytes(header, std::string(48, '\0')),
       "tensor k: overlaps the one before it (got begin 16, expected 32)"},
      {"a.npy", npy, "header: the dtype '|O' is not supported"},
      {"a.npz", zip_bytes({{"q.npy", "x", false, 1}}), "member q.npy: is encrypted"},
      {"a.npz", std::string("PK\3\4 and no more"),
       "zip: has no directory at its end: the file is cut short or no zip file"},
      {"a.pt",
       pickle_archive("\x80\x02"
                      "cos\nsystem\n)R."),
       "data.pkl: byte 2: the global os.system is not allowed"},
      {"a.pt", pickle_archive("\x80\x02N.", "big"), "byteorder: expected little (got \"big\")"},
      {"a.h5", hdf5.substr(0, hdf5.size() / 2), "cannot be opened as HDF5: "},
      {"a.h5", "\x89HDF\r\n\x1a", "is no safetensors, .npy, .npz, .pt or HDF5 file"},
  };
}

}  // namespace

TEST_CASE("files that cannot be read are one line, exit code 1, and nothing else") {
  for (const BadFile& bad : bad_files()) {
    for (const std::string command : {"info", "export"}) {
      const TemporaryFolder folder;
      const std::string path = folder / bad.name;
      std::ofstream(path, std::ios::binary) << bad.bytes;
      std::vector<std::string> arguments{command, path};
      if (command == "export") arguments.insert(arguments.end(), {"-o", folder / "out.h5"});
      const auto result = run_attnscope(arguments);
      INFO(command << " " << bad.name << "\n" << result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.err.rfind("attnscope: " + path + ": " + bad.message, 0) == 0);
      CHECK(result.err.find('\n') == result.err.size() - 1);
      CHECK(result.out.empty());
      CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
    }
  }
}
