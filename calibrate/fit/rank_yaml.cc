#include "calibrate/fit/rank_yaml.h"

#include <fmt/format.h>

#include "calibrate/fit/run_yaml.h"
#include "calibrate/fit/yaml_text.h"

namespace trainfare::calibrate::internal {
namespace {

using hardware::Reader;

// As the bounds of fit_file.cc.
constexpr double kMostDeviation = 10.0;
constexpr int64_t kMostRanks = 100'000'000;

// `more`: what else stands in the map, from its comma on.
void WriteRing(std::string_view key,
               const RingFit& fit,
               const std::string& more,
               std::string& out) {
  out += fmt::format(
      "    {}: {{ step_latency: {}, step_latency_error: {}, link: {} B/s, "
      "link_error: {}, correlation: {}, scatter: {}{} }}\n",
      key,
      Seconds(fit.ring.step_latency),
      Seconds(fit.latency_error),
      fit.ring.link.base(),
      fit.link_error,
      fit.correlation,
      fit.scatter,
      more);
}

RingFit ReadRing(const Reader& map) {
  RingFit fit;
  fit.ring.step_latency = map.Time("step_latency", Reader::Sign::kZeroOrMore);
  fit.latency_error = map.Time("step_latency_error", Reader::Sign::kZeroOrMore);
  fit.ring.link = map.Bandwidth("link");
  fit.link_error = map.Number("link_error", 0.0, kMostDeviation);
  fit.correlation = map.Number("correlation", -1.0, 1.0);
  fit.scatter = map.Number("scatter", 0.0, kMostDeviation);
  return fit;
}

RankFit ReadGroup(const Reader& map) {
  RankFit group;
  RankNetwork& network = group.network;
  network.ranks = map.Integer("ranks", 2, kMostRanks);
  group.ranks_per_device = map.Integer("ranks_per_device", 1, network.ranks);
  group.backend = map.OptionalText("backend").value_or("");
  group.transport = map.OptionalText("transport").value_or("");
  group.source = map.OptionalText("source").value_or("");
  network.alone = ReadRing(map.Map("alone"));
  network.beside = network.alone;
  if (const auto beside = map.OptionalMap("beside")) {
    network.beside_timed = true;
    network.beside = ReadRing(*beside);
    network.speed = beside->Number("speed", 0.001, 1.0);
    network.speed_error = beside->Number("speed_error", 0.0, kMostDeviation);
  }
  // A rank that computes ten times as fast beside others is a mistake.
  const Reader share = map.Map("share");
  group.share = share.Number("value", 0.0001, 10.0);
  group.share_error = share.Number("error", 0.0, kMostDeviation);
  group.share_prior = share.Number("prior", 0.0001, 10.0);
  group.share_determined = share.Flag("determined");
  if (const auto host = map.OptionalMap("host")) {
    group.host = host->Time("value");
    group.host_error = host->Number("error", 0.0, kMostDeviation);
    group.host_prior = host->Time("prior");
    group.host_share_correlation = host->Number("correlation", -1.0, 1.0);
    group.host_determined = host->Flag("determined");
  }
  group.scatter = map.Number("scatter", 0.0, kMostDeviation);
  for (const Reader& row : map.Maps("all_reduces")) {
    group.all_reduces.push_back({row.Bytes("size"),
                                 row.Flag("beside"),
                                 row.Time("measured"),
                                 row.Time("modelled")});
  }
  for (const Reader& row : map.OptionalMaps("runs")) {
    group.runs.push_back(ReadRun(row));
  }
  return group;
}

}  // namespace

void WriteRanks(const std::vector<RankFit>& groups, std::string& out) {
  if (groups.empty()) return;
  out +=
      "# Ranks that train together. Errors: of a latency in seconds, of a "
      "link\n"
      "# and the share relative. beside: while the ranks compute, at `speed`.\n"
      "# host: what the host adds to a step, with its correlation to the "
      "share.\n"
      "ranks:\n";
  for (const RankFit& group : groups) {
    const RankNetwork& network = group.network;
    out += fmt::format("  - ranks: {}\n    ranks_per_device: {}\n",
                       network.ranks,
                       group.ranks_per_device);
    const auto text = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) {
        out += fmt::format("    {}: {}\n", key, Quoted(value));
      }
    };
    text("backend", group.backend);
    text("transport", group.transport);
    text("source", group.source);
    WriteRing("alone", network.alone, "", out);
    if (network.beside_timed) {
      WriteRing("beside",
                network.beside,
                fmt::format(", speed: {}, speed_error: {}",
                            network.speed,
                            network.speed_error),
                out);
    }
    out += fmt::format(
        "    share: {{ value: {}, error: {}, prior: {}, determined: {} }}\n",
        group.share,
        group.share_error,
        group.share_prior,
        group.share_determined);
    if (group.host_prior.base() > 0) {
      out += fmt::format(
          "    host: {{ value: {}, error: {}, prior: {}, correlation: {}, "
          "determined: {} }}\n",
          Seconds(group.host),
          group.host_error,
          Seconds(group.host_prior),
          group.host_share_correlation,
          group.host_determined);
    }
    out += fmt::format("    scatter: {}\n    all_reduces:\n", group.scatter);
    for (const FittedAllReduce& row : group.all_reduces) {
      out += fmt::format(
          "      - {{ size: {} B, beside: {}, measured: {}, modelled: {} }}\n",
          model::ToBytes(row.size),
          row.beside,
          Seconds(row.measured),
          Seconds(row.modelled));
    }
    if (!group.runs.empty()) out += "    runs:\n";
    WriteRuns(group.runs, "      ", out);
  }
}

std::vector<RankFit> ReadRanks(const Reader& root) {
  std::vector<RankFit> groups;
  for (const Reader& map : root.OptionalMaps("ranks")) {
    groups.push_back(ReadGroup(map));
  }
  return groups;
}

}  // namespace trainfare::calibrate::internal
