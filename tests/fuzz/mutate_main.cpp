#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

#include "tests/fuzz/targets.h"

// Where the compiler has no libFuzzer: changes the seeds at random, without its feedback.
// fuzz_NAME [-runs=N] [-seed=N] FILE_OR_FOLDER…; libFuzzer's other options do nothing. The input of
// a crash is left in ./crash-input.
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;

Bytes current;  ///< the input at work

void save_current() {
  std::ofstream("crash-input", std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()),
             static_cast<std::streamsize>(current.size()));
}

void run(Bytes bytes) {
  current = std::move(bytes);
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

Bytes read_seed(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void mutate(Bytes& bytes, const std::vector<Bytes>& seeds, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  const size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes; ++i) {
    // Headers stand at both ends; what lies between is mostly numbers.
    const size_t end = below(4) == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 512);
    const size_t at =
        below(3) == 0 ? bytes.size() - std::min(end, bytes.size()) + below(end) : below(end);
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<uint8_t>(below(256));
        break;
      case 2: {
        constexpr uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
        for (size_t b = at; b < std::min(at + 1 + below(8), bytes.size()); ++b) {
          bytes[b] = kEdges[below(5)];
        }
        break;
      }
      case 3:
        bytes.resize(bytes.size() - below(std::min<size_t>(bytes.size(), 1 + below(200))));
        break;
      case 4:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at, bytes.size())),
                     static_cast<uint8_t>(below(256)));
        break;
      default: {
        const Bytes& other = seeds[below(seeds.size())];
        const size_t from = below(other.size());
        const size_t count = std::min({below(32), other.size() - from, bytes.size() - at});
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count,
                    bytes.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int64_t runs = 100'000;
  uint64_t seed = 1;
  std::vector<Bytes> seeds;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("-runs=")) {
      runs = std::atoll(argv[i] + 6);
    } else if (argument.starts_with("-seed=")) {
      seed = std::strtoull(argv[i] + 6, nullptr, 10);
    } else if (argument.starts_with("-")) {
      continue;
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        seeds.push_back(read_seed(entry.path()));
      }
    } else {
      seeds.push_back(read_seed(argument));
    }
  }
  if (seeds.empty()) seeds.emplace_back();
  __sanitizer_set_death_callback(save_current);
  for (const int signal : {SIGABRT, SIGALRM}) {
    std::signal(signal, [](int number) {
      save_current();
      std::signal(number, SIG_DFL);
      std::raise(number);
    });
  }
  for (const Bytes& bytes : seeds) run(bytes);
  std::mt19937_64 random(seed);
  constexpr unsigned kHangSeconds = 25;
  for (int64_t i = 0; i < runs; ++i) {
    Bytes bytes = seeds[random() % seeds.size()];
    mutate(bytes, seeds, random);
    if (i % 64 == 0) alarm(kHangSeconds);
    run(std::move(bytes));
  }
  alarm(0);
  std::cout << runs << " runs from " << seeds.size() << " seeds, no crash\n";
}
