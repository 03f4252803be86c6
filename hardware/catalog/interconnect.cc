#include "hardware/catalog/interconnect.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::hardware {

std::string_view ToText(InterconnectReach reach) {
  return reach == InterconnectReach::kHost ? "host" : "network";
}

Interconnect LoadInterconnect(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  Interconnect interconnect;
  interconnect.name = Stem(path);
  interconnect.reach = root.Choice<InterconnectReach>(
      "reach",
      {{"host", InterconnectReach::kHost},
       {"network", InterconnectReach::kNetwork}});
  interconnect.bandwidth = root.Bandwidth("bandwidth");
  if (interconnect.bandwidth < model::GBPerSecond(0.1) ||
      interconnect.bandwidth > model::GBPerSecond(10000)) {
    root.Fail("bandwidth",
              "out of the range that a link can have; is the prefix right?");
  }
  if (const auto least = root.OptionalBandwidth("through_processor")) {
    interconnect.bandwidth = std::min(interconnect.bandwidth, *least);
  }
  interconnect.latency = root.Time("latency");
  if (interconnect.latency > model::Milliseconds(10)) {
    root.Fail("latency", "expected at most 10 ms; is the prefix right?");
  }
  interconnect.sums_in_switch =
      root.OptionalFlag("sums_in_switch").value_or(false);
  interconnect.source =
      fmt::format("{} ({})", root.Text("source"), root.Date("date"));
  interconnect.recalled = root.OptionalTexts("recalled");
  interconnect.notes = root.OptionalTexts("notes");
  root.Finish();
  return interconnect;
}

Interconnect FindInterconnect(std::string_view name) {
  // A ranking asks for the same few again and again.
  static std::mutex mutex;
  static std::map<std::string, Interconnect, std::less<>> found;
  const std::lock_guard lock(mutex);
  const auto known = found.find(name);
  if (known != found.end()) return known->second;
  static const std::vector<std::string> files =
      YamlFiles(DataDirectory("interconnects"));
  std::vector<std::string> names;
  for (const std::string& file : files) {
    names.push_back(Stem(file));
    if (names.back() != name) continue;
    return found.emplace(std::string(name), LoadInterconnect(file))
        .first->second;
  }
  throw model::InputError(
      fmt::format("unknown interconnect \"{}\"{}",
                  name,
                  model::DidYouMean(name, model::NameViews(names))));
}

}  // namespace trainfare::hardware
