#pragma once

// What is taken of every device of a kind until its own file says otherwise,
// from hardware/kinds/*.yaml: figures with their source, none of a formula.

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hardware/catalog/compiler_facts.h"
#include "hardware/catalog/device_kind.h"
#include "hardware/catalog/gpu_facts.h"
#include "hardware/catalog/gpu_generation.h"
#include "hardware/catalog/parameter.h"
#include "model/collective.h"
#include "model/units.h"

namespace trainfare::hardware {

// What is taken of a processor where the operating system does not tell.
struct ProcessorFacts {
  // What a vector instruction costs for a transcendental function.
  double flops_per_special_op = 0;
  double vector_units = 1;  // multiply-add units of a core
  // bf16 work of matrix instructions, and of dot products, over fp32 work of
  // the vector units.
  double amx_bf16 = 1;
  double vector_bf16 = 1;
  model::Hertz<> clock;
  // Of memory, what one core draws and what a socket has.
  model::BytesPerSecond<> core_bandwidth;
  model::BytesPerSecond<> socket_bandwidth;
};

struct KindFacts {
  // The free parameters of the kind's model with their priors, the words that
  // these point to, and where in the file they stand: "file:line:col".
  std::vector<ParameterInfo> parameters;
  std::list<std::string> words;
  std::string parameters_at;
  // What an interval of training is multiplied by, in the logarithm, so that
  // 80 % hold, by its grade: the 80th percentile of
  // |log(measured / predicted)| over half of it, of rows that were left out
  // (docs/results/intervals.md). Sums of variances take all priors as
  // independent, which they are not, and over ranks the scatter of runs over
  // them twice, in the step's own and in the ranks'. A fit that knows no step
  // has a datasheet's; `over_ranks` is of links that nobody timed, among the
  // fit's runs. 1: of too few devices are there rows.
  double width_extrapolated = 1.0;
  double width_datasheet = 1.0;
  double width_over_ranks = 1.0;
  // Device memory that the driver, the framework and its kernels take, and the
  // workspace of the matrix library.
  model::Bytes<> context;
  model::Bytes<> workspace;
  double other_work_power_share = 0;
  double rest_power_share = 0;
  // What training over several ranks adds to a step on the host, which feeds
  // them and runs the front end, and how far that may be off, as the standard
  // deviation of its logarithm; 0: nothing is known to be added.
  model::Seconds<> rank_host;
  double rank_host_sigma = 0;
  // What all runs of one source share, over its hosts, software and cooling, as
  // the standard deviation of log(time); 0: no two measured one such device.
  double source_sigma = 0;
  // By compute capability ("8.0"), exactly.
  std::map<std::string, GpuGeneration, std::less<>> generations;
  std::optional<CompilerFacts> compiler;
  // Of one kind each; others have defaults that nobody asks for.
  GpuFacts gpu;
  ProcessorFacts processor;
};

// What the file of a kind says. Read once.
const KindFacts& FactsOfKind(DeviceKind kind);
inline const GpuFacts& FactsOfGpus() {
  // Every kernel of a step asks.
  static const GpuFacts& facts = FactsOfKind(DeviceKind::kGpu).gpu;
  return facts;
}
inline const ProcessorFacts& FactsOfProcessors() {
  return FactsOfKind(DeviceKind::kCpu).processor;
}

// What is taken of links between devices that nobody measured.
struct LinkFacts {
  double ring_share = 0;        // of a link's bandwidth that a ring gets
  double ring_share_sigma = 0;  // of the logarithm of that share
  // Between devices on the host's bus, from one root port to the next.
  model::BytesPerSecond<> through_processor;
  // The deviation of the logarithm of a network's bandwidth between hosts where
  // nobody named it.
  double unnamed_network_sigma = 0;
  model::SummingSwitch summing_switch;  // between devices, where one sums
  model::Seconds<> peer_step;           // of one step of a ring between peers
  model::Seconds<> host_step;           // the same over the host's bus
  model::Seconds<> network_step;        // between hosts
};

const LinkFacts& FactsOfLinks();  // read once

// What is taken of a host's memory where state is offloaded to it.
struct HostFacts {
  double copy_share = 0;  // of a device's link to it that copies get
  double copy_share_sigma = 0;
  // What an update streams through it, over all ranks of a host, and how far
  // that may be off, as the standard deviation of its logarithm.
  model::BytesPerSecond<> update;
  double update_sigma = 0;
  // Exposed by each gather or sum of a unit too small to hide any, and by each
  // matrix of an expert that is gathered when it is called.
  model::Seconds<> small_unit;
  double small_unit_sigma = 0;  // of its logarithm, as the next
  model::Seconds<> expert_matrix;
  double expert_matrix_sigma = 0;
  // Of a launch by a framework what one takes where Python modules run much
  // between kernels of a library.
  double module_launch_share = 1;
};

const HostFacts& FactsOfHosts();  // read once

// How what a formula gets wrong varies from place to place
// (calibrate/fit/discrepancy.h).
struct ErrorFacts {
  // Factor in batch, in length, in hidden size squared and in layers over which
  // it is alike, and in a limit of power over the board's own.
  double reach = 1;
  double power_reach = 1;
  // Correlation over stacks, precisions and kinds of work.
  double other_settings = 0;
  // Standard deviation of log(time) that a factor e adds beyond the tokens,
  // lengths or parameters that were measured.
  double beyond = 0;
};

const ErrorFacts& FactsOfErrors();  // read once

// What is taken of the times besides the steps that a scenario leaves open.
struct RunFacts {
  // A process to its first step: `process_start`, and every parameter in 16
  // bits at that rate; 80 % of processes within a factor of it, both ways.
  model::Seconds<> process_start;
  model::BytesPerSecond<> parameters_read;
  double start_factor = 1;
  // From asking for an instance to its first process, 80 %.
  model::Seconds<> shortest_renting;
  model::Seconds<> longest_renting;
  // Of a stack that compiles its graphs when it starts, 80 %.
  model::Seconds<> shortest_compiling;
  model::Seconds<> longest_compiling;
  // How slowly one host may write a checkpoint.
  model::BytesPerSecond<> slowest_write;
  // What the process of one rank takes to read a token of tokenised text.
  model::Seconds<> token_load;
};

const RunFacts& FactsOfRuns();  // read once

}  // namespace trainfare::hardware
