#include "cli/bench/bench_report.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/common/console.h"
#include "core/base/memory_budget.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

/// The processor's own name where the system tells it, else its architecture.
std::string processor_name(const std::string& machine) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return machine;
}

void print_ceilings(const Ceilings& ceilings) {
  fmt::print("FMA peak       {:.0f} GFLOP/s (one thread {:.0f})\n", ceilings.cpu.fma_gflops,
             ceilings.cpu.fma_gflops_one_thread);
  if (ceilings.cpu.bf16_gflops > 0) {
    fmt::print("bf16 dot peak  {:.0f} GFLOP/s\n", ceilings.cpu.bf16_gflops);
  }
  fmt::print("exp2 rate      {:.1f} G/s\n", ceilings.cpu.exp_gigaelements);
  if (ceilings.cpu.tile_gflops > 0) {
    fmt::print("AMX peak       {:.0f} GFLOP/s; exp2 by table {:.1f} G/s\n",
               ceilings.cpu.tile_gflops, ceilings.cpu.table_exp_gigaelements);
  }
  if (!ceilings.disk) return;
  const DiskCeilings& disk = *ceilings.disk;
  fmt::print("disk write     {}B/s; until durable {}B/s", format_count(disk.buffered),
             format_count(disk.durable));
  if (disk.direct > 0) fmt::print(", past the page cache {}B/s", format_count(disk.direct));
  fmt::print(" ({})\n", disk.folder);
}

}  // namespace

void print_bench_table(const BenchReport& report) {
  fmt::print("backend        {}\n", report.backend.description());
  if (report.ceilings != nullptr) print_ceilings(*report.ceilings);
  fmt::print("\n{:<44} {:>9} {:>9} {:>10} {:>9} {:>9} {:>6} {:>10}\n", "", "seconds", "GFLOP/s",
             "Gentries/s", "GB/s", "floor s", "ratio", "memory");
  for (const BenchResult& r : report.results) {
    const bool floor = r.floor_seconds > 0;
    fmt::print("{:<44} {:>9.4f} {:>9.1f} {:>10.3f} {:>9.2f} {:>9} {:>6} {:>10}\n", r.name,
               r.seconds, r.flops / r.seconds * 1e-9, r.entries / r.seconds * 1e-9,
               r.bytes / r.seconds * 1e-9, floor ? fmt::format("{:.4f}", r.floor_seconds) : "-",
               floor ? fmt::format("{:.2f}", r.seconds / r.floor_seconds) : "-",
               format_bytes(r.memory_bytes));
  }
}

void print_bench_json(const BenchReport& report) {
  utsname names{};
  uname(&names);
  OrderedJson json;
  json["format"] = "attnscope-bench/1";
  json["machine"] = {{"kernel", std::string(names.sysname) + " " + names.release},
                     {"processor", processor_name(names.machine)},
                     {"backend", report.backend.description()},
                     {"threads", report.backend.workers()}};
  if (report.ceilings != nullptr) {
    const Ceilings& ceilings = *report.ceilings;
    json["machine"].update(
        OrderedJson{{"fma_gflops", ceilings.cpu.fma_gflops},
                    {"fma_gflops_one_thread", ceilings.cpu.fma_gflops_one_thread},
                    {"bf16_gflops", ceilings.cpu.bf16_gflops},
                    {"exp_gigaelements", ceilings.cpu.exp_gigaelements},
                    {"amx_gflops", ceilings.cpu.tile_gflops},
                    {"table_exp_gigaelements", ceilings.cpu.table_exp_gigaelements}});
    if (ceilings.disk) {
      json["machine"].update(OrderedJson{{"write_bytes_per_second", ceilings.disk->buffered},
                                         {"durable_write_bytes_per_second", ceilings.disk->durable},
                                         {"direct_write_bytes_per_second", ceilings.disk->direct}});
    }
  }
  json["results"] = OrderedJson::array();
  for (const BenchResult& r : report.results) {
    json["results"].push_back({{"name", r.name},
                               {"seconds", r.seconds},
                               {"gflops", r.flops / r.seconds * 1e-9},
                               {"entries_per_second", r.entries / r.seconds},
                               {"bytes_per_second", r.bytes / r.seconds},
                               {"memory_bytes", r.memory_bytes}});
    if (r.floor_seconds <= 0) continue;
    json["results"].back()["floor_seconds"] = r.floor_seconds;
    json["results"].back()["ratio_to_floor"] = r.seconds / r.floor_seconds;
  }
  print_json(json, true);
}

}  // namespace attnscope
