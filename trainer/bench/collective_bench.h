#pragma once

// Collectives timed by themselves (docs/models/data_parallel.md): what latency
// and bandwidth between the ranks are fitted to.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/collective.h"
#include "trainer/ranks/communicator.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct CollectiveBenchOptions {
  std::vector<model::Collective> operations = {model::Collective::kAllReduce};
  // The sizes of one rank's message, fp32 numbers, as gradient buckets are.
  std::vector<int64_t> bytes = {1 << 20, 2 << 20, 4 << 20, 8 << 20, 25 << 20};
  int64_t samples = 5;
  std::string out = "-";
};

// The rate of a device that computed `rounds` products while messages travelled
// until `message_end_s`, and went on alone until `compute_end_s`: products a
// second beside the messages.
//
//   v = (N - r (t_c - t_m)) / t_m      N products in all, r a second alone
//
// nullopt where the messages outlasted the products.
std::optional<double> RoundsBeside(int64_t rounds,
                                   double compute_end_s,
                                   double message_end_s,
                                   double rounds_alone_per_s);

// Two records an operation and size, by itself and beside computation. Returns
// the exit code.
int RunCollectiveBench(const CollectiveBenchOptions& options,
                       at::Device device,
                       Communicator& ranks);

}  // namespace trainfare::trainer
