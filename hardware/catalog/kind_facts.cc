#include "hardware/catalog/kind_facts.h"

#include <array>
#include <mutex>
#include <tuple>
#include <utility>

#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::hardware {
namespace {

std::string FileOf(std::string_view name) {
  return ShippedDirectory("hardware/kinds") + "/" + std::string(name) + ".yaml";
}

// { from: 1 min, to: 10 min }
std::pair<model::Seconds<>, model::Seconds<>> TimeRange(const Reader& map) {
  const model::Seconds<> from = map.Time("from");
  const model::Seconds<> to = map.Time("to");
  if (from.base() <= 0 || to < from) {
    map.Fail("to", "expected no less than from, which is above 0 s");
  }
  return {from, to};
}

CompilerFacts ReadCompiler(const Reader& map) {
  CompilerFacts compiler;
  compiler.levels = map.OptionalInteger("levels", 1, 9).value_or(0);
  std::tie(compiler.shortest_compile, compiler.longest_compile) =
      TimeRange(map.Map("graph_time"));
  return compiler;
}

// A number of a parameter in its unit.
double ReadNumber(const Reader& map,
                  std::string_view key,
                  const ParameterInfo& info) {
  return info.unit == "s" ? model::ToSeconds(map.Time(key))
                          : map.Number(key, 0.0, Reader::kNoBound);
}

// A prior within the parameter's bounds, and its width.
void ReadBelief(const Reader& map,
                const ParameterInfo& info,
                double& prior,
                double& sigma) {
  prior = ReadNumber(map, "value", info);
  sigma = map.Number("sigma", 0.001, 10.0);
  if (prior < info.lower || prior > info.upper) {
    map.Fail("value", "expected one between from and to");
  }
}

// A prior, its width and its bounds: all times, or all numbers.
void ReadPrior(const Reader& map, ParameterInfo& info) {
  if (ParseQuantity<model::Seconds<>>(map.Text("value"))) info.unit = "s";
  info.lower = ReadNumber(map, "from", info);
  info.upper = ReadNumber(map, "to", info);
  ReadBelief(map, info, info.prior, info.prior_sigma);
  if (map.Has("scale")) {
    info.transform = map.Choice<Transform>(
        "scale", {{"log", Transform::kLog}, {"linear", Transform::kLinear}});
  }
  if (info.transform == Transform::kLog && info.lower <= 0) {
    map.Fail("from", "expected one above 0, whose logarithm is fitted");
  }
}

void ReadParameters(const Reader& map, KindFacts& facts) {
  const auto keep = [&](std::string text) -> std::string_view {
    return facts.words.emplace_back(std::move(text));
  };
  for (const std::string& name : map.Keys()) {
    const Reader one = map.Map(name);
    ParameterInfo info;
    info.name = keep(name);
    info.meaning = keep(one.Text("meaning"));
    info.determined_by = keep(one.Text("determined_by"));
    ReadPrior(one.Map("prior"), info);
    if (one.Has("alone")) {
      ReadBelief(one.Map("alone"), info, info.alone_prior, info.alone_sigma);
    }
    facts.parameters.push_back(info);
  }
}

ProcessorFacts ReadProcessor(const Reader& root) {
  ProcessorFacts facts;
  facts.flops_per_special_op =
      root.Map("elementwise").Number("special_op", 0.0, 1e4);
  const Reader map = root.Map("processor");
  facts.vector_units = map.Number("vector_units", 1.0, 16.0);
  facts.amx_bf16 = map.Number("amx_bf16", 1.0, 256.0);
  facts.vector_bf16 = map.Number("vector_bf16", 1.0, 256.0);
  facts.clock = map.Frequency("clock");
  facts.core_bandwidth = map.Bandwidth("core_bandwidth");
  facts.socket_bandwidth = map.Bandwidth("socket_bandwidth");
  return facts;
}

KindFacts ReadFacts(DeviceKind kind) {
  const Reader root = Reader::FromFile(FileOf(ToText(kind)));
  KindFacts facts;
  ReadParameters(root.Map("parameters"), facts);
  facts.parameters_at = root.Position("parameters");
  if (const auto intervals = root.OptionalMap("intervals")) {
    facts.width_extrapolated = intervals->Number("extrapolated", 0.01, 10.0);
    facts.width_datasheet = intervals->Number("datasheet", 0.01, 10.0);
    facts.width_over_ranks = intervals->Number("over_ranks", 0.01, 10.0);
  }
  if (kind == DeviceKind::kGpu) facts.gpu = ReadGpuFacts(root);
  if (kind == DeviceKind::kCpu) facts.processor = ReadProcessor(root);
  if (const auto memory = root.OptionalMap("memory")) {
    facts.context = memory->Bytes("context");
    facts.workspace = memory->Bytes("workspace");
  }
  if (const auto power = root.OptionalMap("power")) {
    facts.other_work_power_share = power->Number("other_work", 0.0, 1.0);
    facts.rest_power_share = power->Number("rest", 0.0, 0.99);
  }
  if (const auto ranks = root.OptionalMap("ranks")) {
    facts.rank_host = ranks->Time("host");
    facts.rank_host_sigma = ranks->Number("host_sigma", 0.01, 5.0);
  }
  if (const auto sources = root.OptionalMap("sources")) {
    facts.source_sigma = sources->Number("sigma", 0.0, 3.0);
    // For readers.
    sources->Integer("pairs", 1, 1'000'000);
  }
  if (const auto generations = root.OptionalMap("generations")) {
    for (const std::string& name : generations->Keys()) {
      facts.generations.emplace(name,
                                ReadGpuGeneration(generations->Map(name)));
    }
  }
  if (const auto compiler = root.OptionalMap("compiler")) {
    facts.compiler = ReadCompiler(*compiler);
  }
  root.Text("source");
  root.Date("date");
  root.Finish();
  return facts;
}

LinkFacts ReadLinks(const Reader& links) {
  LinkFacts read;
  read.ring_share = links.Number("ring_share", 0.01, 1.0);
  read.ring_share_sigma = links.Number("ring_share_sigma", 0.0, 3.0);
  const Reader summing = links.Map("summing_switch");
  read.summing_switch = {summing.Number("share", 0.01, 2.0),
                         summing.Time("latency")};
  read.through_processor = links.Bandwidth("through_processor");
  read.unnamed_network_sigma = links.Number("unnamed_network_sigma", 0.0, 3.0);
  read.peer_step = links.Time("peer_step");
  read.host_step = links.Time("host_step");
  read.network_step = links.Time("network_step");
  return read;
}

HostFacts ReadHosts(const Reader& hosts) {
  HostFacts read;
  read.copy_share = hosts.Number("copy_share", 0.01, 1.0);
  read.copy_share_sigma = hosts.Number("copy_share_sigma", 0.0, 3.0);
  read.update = hosts.Bandwidth("update");
  read.update_sigma = hosts.Number("update_sigma", 0.0, 3.0);
  read.small_unit = hosts.Time("small_unit");
  read.small_unit_sigma = hosts.Number("small_unit_sigma", 0.01, 3.0);
  read.expert_matrix = hosts.Time("expert_matrix");
  read.expert_matrix_sigma = hosts.Number("expert_matrix_sigma", 0.01, 3.0);
  read.module_launch_share = hosts.Number("module_launch_share", 0.1, 10.0);
  return read;
}

ErrorFacts ReadErrors(const Reader& errors) {
  ErrorFacts read;
  read.reach = errors.Number("reach", 1.01, 1e6);
  read.power_reach = errors.Number("power_reach", 1.01, 1e6);
  read.other_settings = errors.Number("other_settings", 0.0, 1.0);
  read.beyond = errors.Number("beyond", 0.0, 3.0);
  return read;
}

RunFacts ReadRuns(const Reader& root) {
  RunFacts read;
  const Reader start_up = root.Map("start_up");
  read.process_start = start_up.Time("process");
  read.parameters_read = start_up.Bandwidth("parameters");
  read.start_factor = start_up.Number("within_factor", 1.0, 100.0);
  std::tie(read.shortest_renting, read.longest_renting) =
      TimeRange(start_up.Map("renting"));
  std::tie(read.shortest_compiling, read.longest_compiling) =
      TimeRange(start_up.Map("compiling"));
  read.slowest_write = root.Map("checkpoints").Bandwidth("slowest_write");
  const Reader loading = root.Map("loading");
  read.token_load = loading.Bytes("token") / loading.Bandwidth("one_process");
  return read;
}

struct AnyFacts {
  LinkFacts links;
  HostFacts hosts;
  ErrorFacts errors;
  RunFacts runs;
};

// What every device has, of one file, which is read once.
const AnyFacts& FactsOfAny() {
  static const AnyFacts facts = [] {
    const Reader root = Reader::FromFile(FileOf("any"));
    AnyFacts read{ReadLinks(root.Map("links")),
                  ReadHosts(root.Map("hosts")),
                  ReadErrors(root.Map("errors")),
                  ReadRuns(root)};
    root.Text("source");
    root.Date("date");
    root.Finish();
    return read;
  }();
  return facts;
}

}  // namespace

const KindFacts& FactsOfKind(DeviceKind kind) {
  static std::array<std::once_flag, kDeviceKinds.size()> once;
  static std::array<KindFacts, kDeviceKinds.size()> facts;
  const auto index = static_cast<size_t>(kind);
  std::call_once(once.at(index), [&] { facts.at(index) = ReadFacts(kind); });
  return facts.at(index);
}

const LinkFacts& FactsOfLinks() { return FactsOfAny().links; }

const HostFacts& FactsOfHosts() { return FactsOfAny().hosts; }

const ErrorFacts& FactsOfErrors() { return FactsOfAny().errors; }

const RunFacts& FactsOfRuns() { return FactsOfAny().runs; }

}  // namespace trainfare::hardware
