#include "calibrate/records/import/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unit_text.h"
#include "model/collective.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/limits.h"
#include "model/record_fields.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;
using Words = std::vector<std::string_view>;

constexpr std::string_view kProgram = "all_reduce_perf";

Words Split(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  Words words;
  for (size_t at = text.find_first_not_of(kBlank);
       at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return words;
}

// What follows `key` in a line of several; empty when it is not there.
std::string_view After(std::string_view line, std::string_view key) {
  const size_t found = line.find(key);
  return found == std::string_view::npos ? "" : line.substr(found + key.size());
}

// mpirun --tag-output writes "[1,0]<stdout>:" before every line.
std::string_view WithoutTag(std::string_view line) {
  const size_t end = line.find(">:");
  if (!line.starts_with('[') || end == std::string_view::npos ||
      line.find("]<std") > end) {
    return line;
  }
  return line.substr(end + 2);
}

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  void Take(std::string_view line) {
    ++line_;
    line = WithoutTag(line);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return;
    if (line[first] == '#') {
      Comment(line.substr(first + 1));
    } else if (line[first] >= '0' && line[first] <= '9' && !columns_.empty()) {
      Row(line);
    }
    // Else another program's: mpirun's banner, NCCL_DEBUG's lines.
  }

  std::vector<NcclTestsRun> Finish() {
    Close();
    if (runs_.empty()) {
      throw InputError(name_,
                       0,
                       0,
                       fmt::format("expected what {} of nccl-tests prints, got "
                                   "no line of its table",
                                   kProgram));
    }
    return std::move(runs_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw InputError(name_, line_, 0, message);
  }

  void Comment(std::string_view text) {
    const Words words = Split(text);
    if (words.empty()) return;
    if (words[0] == "nccl-tests" || words[0] == "Collective" ||
        words[0] == "nThread") {
      // Each of these may be the first line of a run.
      if (!run_.rows.empty()) Close();
    }
    if (words[0] == "nccl-tests") {
      run_.version = std::string(text.substr(text.find('n')));
      while (!run_.version.empty() && run_.version.back() <= ' ') {
        run_.version.pop_back();
      }
    } else if (const auto program = After(text, "test starting: ");
               !program.empty()) {
      const Words starting = Split(program);
      if (starting.empty()) {
        Fail(
            fmt::format("expected {} behind \"test starting:\", got nothing; "
                        "is the line cut off?",
                        kProgram));
      }
      const std::string_view path = starting.front();
      const std::string_view file = path.substr(path.rfind('/') + 1);
      if (!file.starts_with(kProgram)) {
        Fail(fmt::format("expected {}, got {}", kProgram, file));
      }
    } else if (words[0] == "nThread") {
      const Words after = Split(After(text, " iters: "));
      // "warmup iters: 5 iters: 20": the second.
      const Words second = Split(After(After(text, " iters: "), " iters: "));
      const Words& of = second.empty() ? after : second;
      if (!of.empty()) {
        run_.iterations =
            std::max<int64_t>(1, hardware::ParseInteger(of[0]).value_or(1));
      }
    } else if (words[0] == "Using" && words.size() > 1 &&
               words[1] == "devices") {
      if (!run_.rows.empty()) Close();
    } else if (words[0] == "Rank") {
      Rank(words, text);
    } else if (words[0] == "size") {
      columns_.assign(words.begin(), words.end());
    } else if (text.find("Avg bus bandwidth") != std::string_view::npos) {
      run_.ended = true;
    }
  }

  //  Rank  0 Group  0 Pid   1887 on   worker-1 device  0 [0x8d] NVIDIA H100 ..
  void Rank(const Words& words, std::string_view text) {
    if (!run_.rows.empty()) Close();
    const auto number = [&](std::string_view key) -> std::optional<int64_t> {
      const auto at = std::find(words.begin(), words.end(), key);
      if (at == words.end() || at + 1 == words.end()) return std::nullopt;
      return hardware::ParseInteger(*(at + 1));
    };
    const auto rank = number("Rank");
    const auto host = std::find(words.begin(), words.end(), "on");
    const size_t bus = text.find('[');
    const size_t bus_end =
        text.find(']', bus == std::string_view::npos ? 0 : bus);
    if (!rank || host == words.end() || host + 1 == words.end() ||
        bus_end == std::string_view::npos) {
      Fail(
          "expected \"Rank N .. on HOST device N [BUS] NAME\"; the line is "
          "cut off");
    }
    if (!ranks_.insert(*rank).second) {
      Fail(
          fmt::format("rank {} stands twice: each process measured itself "
                      "alone; build nccl-tests with MPI=1",
                      *rank));
    }
    groups_.insert(number("Group").value_or(0));
    if (groups_.size() > 1) {
      Fail("expected one group of ranks, got several (NCCL_TESTS_SPLIT)");
    }
    hosts_.insert(std::string(*(host + 1)));
    std::string_view device = text.substr(bus_end + 1);
    device =
        device.substr(std::min(device.find_first_not_of(' '), device.size()));
    while (!device.empty() && device.back() <= ' ') device.remove_suffix(1);
    if (device.empty()) Fail("expected the name of the device at the end");
    if (run_.device.empty()) run_.device = device;
    if (run_.device != device) {
      Fail(fmt::format(
          "expected one kind of device, got {} and {}", run_.device, device));
    }
  }

  // The last column of that name, so that in place comes before out of place.
  std::optional<size_t> Last(std::string_view name) const {
    for (size_t i = columns_.size(); i > 0; --i) {
      if (columns_[i - 1] == name) return i - 1;
    }
    return std::nullopt;
  }

  double Number(const Words& fields, size_t column) const {
    const auto value = hardware::ParseNumber(fields[column]);
    if (!value || *value < 0) {
      Fail(fmt::format("{}: expected a number, got \"{}\"",
                       columns_[column],
                       fields[column]));
    }
    return *value;
  }

  void Row(std::string_view line) {
    const Words fields = Split(line);
    // Its value has a blank in it: "2026-05-20 12:00:00".
    const size_t expected =
        columns_.size() + (columns_.back() == "timestamp" ? 1 : 0);
    if (fields.size() != expected) {
      Fail(
          fmt::format("expected {} columns ({} .. {}), got {}; is the line "
                      "cut off?",
                      expected,
                      columns_.front(),
                      columns_.back(),
                      fields.size()));
    }
    const auto time = Last("time");
    const auto algorithm = Last("algbw");
    const auto bus = Last("busbw");
    if (!time || !algorithm || !bus) {
      Fail(Last("cputime")
               ? "expected the time of the operation, got that of the host "
                 "(-C); run without it"
               : "expected columns time, algbw and busbw above the table");
    }
    if (run_.rows.empty()) CheckRanks();
    const auto size = hardware::ParseInteger(fields[0]);
    if (!size || *size < 0 || *size > model::kLargestCount) {
      Fail(fmt::format("size: expected bytes from 0 to {}, got \"{}\"",
                       model::kLargestCount,
                       fields[0]));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == "#wrong" && fields[i] != "N/A" &&
          Number(fields, i) > 0) {
        Fail(fmt::format("expected right results, got {} wrong elements",
                         fields[i]));
      }
    }
    const double time_us = Number(fields, *time);
    CheckBusBandwidth(Number(fields, *algorithm), Number(fields, *bus));
    if (*size == 0) return;  // what a rank without data takes
    if (time_us == 0) Fail("time: expected more than 0");
    run_.rows.push_back({line_,
                         model::Byte(static_cast<double>(*size)),
                         model::Microseconds(time_us)});
  }

  void CheckRanks() {
    run_.ranks = static_cast<int64_t>(ranks_.size());
    run_.hosts = static_cast<int64_t>(hosts_.size());
    if (run_.ranks < 2) {
      Fail(fmt::format("expected two ranks and more above the table, got {}",
                       run_.ranks));
    }
    // A node of many devices cuts its list at 2048 characters.
    if (*ranks_.rbegin() != run_.ranks - 1) {
      Fail(fmt::format("expected ranks 0 to {} above the table, got {} of them",
                       *ranks_.rbegin(),
                       run_.ranks));
    }
  }

  // Two decimals are printed, one from 10,000 on.
  void CheckBusBandwidth(double algorithm, double bus) const {
    const double factor =
        model::BusBytes(
            model::Collective::kAllReduce, run_.ranks, model::Byte(1))
            .base();
    const double half_digit = bus < 1e4 && algorithm < 1e4 ? 0.005 : 0.5;
    if (std::abs(bus - factor * algorithm) <=
        1.01 * half_digit * (1 + factor)) {
      return;
    }
    Fail(
        fmt::format("expected a busbw of {:.4g} times algbw as all-reduces "
                    "over {} ranks have, got {:.4g}; another collective?",
                    factor,
                    run_.ranks,
                    algorithm > 0 ? bus / algorithm : 0.0));
  }

  void Close() {
    if (!run_.rows.empty()) runs_.push_back(std::move(run_));
    run_ = {};
    ranks_.clear();
    groups_.clear();
    hosts_.clear();
    columns_.clear();
  }

  const std::string& name_;
  int line_ = 0;
  std::vector<NcclTestsRun> runs_;
  NcclTestsRun run_;
  std::set<int64_t> ranks_;
  std::set<int64_t> groups_;
  std::set<std::string> hosts_;
  std::vector<std::string> columns_;  // of the table; empty: no header yet
};

}  // namespace

std::vector<NcclTestsRun> ParseNcclTests(std::string_view text,
                                         const std::string& name) {
  Parser parser(name);
  hardware::ForEachLine(text,
                        [&](std::string_view line) { parser.Take(line); });
  return parser.Finish();
}

std::vector<NcclTestsRun> ReadNcclTests(const std::string& path) {
  return ParseNcclTests(
      hardware::ReadTextFile(path, "the output of nccl-tests"), path);
}

namespace {

// Where all of its records came from.
constexpr const char* kLauncher = "nccl-tests";

}  // namespace

std::string ToRecords(const std::vector<NcclTestsRun>& runs) {
  using Json = nlohmann::ordered_json;
  std::string lines;
  for (const NcclTestsRun& run : runs) {
    model::CollectiveRecord<Json> record;
    record.head.kind.kind = "collective";
    record.head.device = {
        .name = run.device, .kind = "cuda", .count = run.ranks};
    record.head.host = {{"count", run.hosts}};
    record.head.software = {
        {"program", run.version.empty() ? kLauncher : run.version.c_str()}};
    record.operation = model::ToText(model::Collective::kAllReduce);
    record.world_size = run.ranks;
    record.ranks = {.launcher = kLauncher, .backend = "nccl"};
    record.iterations = run.iterations;
    for (const NcclTestsRow& row : run.rows) {
      record.bytes = static_cast<int64_t>(model::ToBytes(row.size));
      record.samples = {{row.time}};
      Json json = Json::object();
      model::JsonFieldWriter writer(json);
      VisitCollective(writer, record);
      lines += hardware::WriteJson(json);
      lines += '\n';
    }
  }
  return lines;
}

bool AreNcclTestsRecords(std::string_view text) {
  const std::string mark = fmt::format("\"launcher\":\"{}\"", kLauncher);
  bool all = true;
  hardware::ForEachLine(text, [&](std::string_view line) {
    all = all && line.find(mark) != std::string_view::npos;
  });
  return all;
}

}  // namespace trainfare::calibrate
