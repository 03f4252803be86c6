#include "calibrate/records/import/table_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "calibrate/records/import/table_parallel.h"
#include "calibrate/records/import/table_rules.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/files/unit_text.h"
#include "model/rounding.h"
#include "model/units.h"

namespace trainfare::calibrate {
namespace {

// A host's adapters: "Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x
// ConnectX-7 IB NDR 400Gb/s", "4x ConnectX-7 IB NDR 400Gb/Sec". Of several
// kinds those together are the fastest that the devices have.
constexpr std::string_view kComputeAdapters = "Compute:";
std::optional<model::BytesPerSecond<>> AdaptersOf(std::string_view listed) {
  if (const size_t own = listed.find(kComputeAdapters);
      own != std::string_view::npos) {
    listed.remove_prefix(own + kComputeAdapters.size());
    listed = listed.substr(0, listed.find(','));
  }
  const std::string text(listed);
  static const std::regex times_rate(R"((\d+) ?x ?[^:;,]*?(\d+) ?Gb)");
  double fastest = 0;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), times_rate);
       match != std::sregex_iterator();
       ++match) {
    const auto adapters = hardware::ParseNumber(match->str(1));
    const auto rate = hardware::ParseNumber(match->str(2));
    if (adapters && rate) fastest = std::max(fastest, *adapters * *rate);
  }
  if (fastest == 0) return std::nullopt;
  return model::GBPerSecond(fastest / 8.0);
}

// The words of the notes after "host network:", which a table may have in
// place of its column.
constexpr std::string_view kHostNetwork = "host network:";
std::string_view ListedInNotes(std::string_view notes) {
  const size_t at = notes.find(kHostNetwork);
  if (at == std::string_view::npos) return {};
  notes.remove_prefix(at + kHostNetwork.size());
  return notes.substr(0, notes.find(';'));
}

// The rate before words of the notes, "4 x 100 Gbit/s RoCE between nodes": of
// each host.
constexpr std::string_view kBetweenHosts = "between nodes";
constexpr std::string_view kHostRate = "Gbit/s";
std::optional<model::BytesPerSecond<>> RateBetweenHosts(
    const std::string& notes) {
  const size_t end = notes.find(kBetweenHosts);
  if (end == std::string::npos) return std::nullopt;
  const size_t begin = notes.find_last_of(";,", end);
  const std::string words =
      notes.substr(begin == std::string::npos ? 0 : begin + 1,
                   end - (begin == std::string::npos ? 0 : begin + 1));
  const size_t unit = words.find(kHostRate);
  if (unit == std::string::npos) return std::nullopt;
  double rate = 1;
  std::istringstream numbers(words.substr(0, unit));
  std::string word;
  bool any = false;
  while (numbers >> word) {
    if (word == "x") continue;
    const auto number = hardware::ParseNumber(word);
    // "InfiniBand 100": what stands before the figures is a name.
    any = number && *number > 0;
    rate = any ? rate * *number : 1;
  }
  if (!any) return std::nullopt;
  return model::GBPerSecond(rate / 8.0);
}

// All of what a host has, where its cell lists no adapters: "100 GbE", "3.2Tbps
// EFA", "8x400G". Throws Unused of another rate; "InfiniBand" says none.
std::optional<model::BytesPerSecond<>> RateOf(const std::string& cell) {
  if (cell.find_first_of(",;:") != std::string::npos) return std::nullopt;
  static const std::regex rate(
      R"(((\d+) ?x ?)?(\d+(\.\d+)?) ?([GT])(b|bit|bE|igE|)"
      R"(b ?/ ?[sS](ec)?|bit/s(ec)?|bps|bits)?\b(?! ?[bB]?/))",
      std::regex::icase);
  static const std::regex any_rate(R"(\d ?[KMGT]([bB]|\b))", std::regex::icase);
  std::smatch found;
  const bool bits = cell.find("GB") == std::string::npos &&
                    cell.find("TB") == std::string::npos;
  if (bits && std::regex_search(cell, found, rate)) {
    const auto number = hardware::ParseNumber(found.str(3));
    const auto adapters =
        hardware::ParseNumber(found.length(2) > 0 ? found.str(2) : "1");
    const bool tera = found.str(5) == "T" || found.str(5) == "t";
    if (number && adapters && *number * *adapters > 0) {
      return model::GBPerSecond(*number * *adapters * (tera ? 1e3 : 1) / 8.0);
    }
  }
  if (!std::regex_search(cell, any_rate)) return std::nullopt;
  throw Unused{
      fmt::format("host_network \"{}\" is not read: \"4x 100Gb/s\" is", cell)};
}

std::optional<model::BytesPerSecond<>> NetworkOf(const TableRow& row) {
  const std::string& cell = row["host_network"];
  if (const auto adapters = AdaptersOf(cell)) return adapters;
  if (const auto rate = RateOf(cell)) return rate;
  const std::string notes = row.AllNotes();
  if (const auto adapters = AdaptersOf(ListedInNotes(notes))) return adapters;
  return RateBetweenHosts(notes);
}

// Slices stand for hosts: what is between them is a network.
void SetSlices(const TableRow& row, int64_t slices, Observation& observation) {
  if (observation.device_count % slices != 0) {
    throw Unused{"devices that do not fill their slices"};
  }
  observation.hosts = slices;
  observation.network = NetworkOf(row);
  if (observation.network) return;
  const auto& known = RulesOfTables().slice_networks;
  const auto of_device = known.find(observation.device);
  if (of_device == known.end()) {
    throw Unused{"the network between its slices is not known"};
  }
  const int64_t chips = observation.device_count / slices;
  observation.network = of_device->second * static_cast<double>(chips);
}

}  // namespace

void SetHosts(const TableRow& row, Observation& observation) {
  if (const int64_t slices = SlicesOf(row); slices > 1) {
    SetSlices(row, slices, observation);
    return;
  }
  if (const auto hosts = row.Count("nodes")) {
    observation.hosts = *hosts;
  } else if (const auto each = row.Count("devices_per_node")) {
    observation.hosts = model::CeilDivide(observation.device_count, *each);
    if (observation.device_count > *each &&
        observation.device_count % *each != 0) {
      throw Unused{"devices that do not fill their hosts"};
    }
  }
  if (observation.device_count % observation.hosts != 0) {
    row.Fail(
        "nodes",
        fmt::format("a divisor of the {} devices", observation.device_count));
  }
  if (observation.hosts == 1) return;
  observation.network = NetworkOf(row);
  for (const auto& [column, unit] : RulesOfTables().measured_all_reduce) {
    const auto rate = hardware::ParseNumber(row[column]);
    if (!rate || *rate <= 0.0) continue;
    // A ring's share of its network is what was measured.
    observation.network = model::BytesPerSecond<>(
        *rate * unit / hardware::FactsOfLinks().ring_share);
  }
}

}  // namespace trainfare::calibrate
