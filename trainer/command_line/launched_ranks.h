#pragma once

// This process as one of several ranks, where a launcher started it as one, and
// the options that say how they work together. The libraries behind the command
// line and the tensors stay out of this header.

#include <functional>
#include <optional>

#include "trainer/command_line/cli.h"
#include "trainer/ranks/ranks.h"

namespace c10 {
struct Device;
}  // namespace c10

namespace trainfare::trainer {

class Communicator;
struct BucketOptions;

class LaunchedRanks {
 public:
  LaunchedRanks() : place_(RankFromEnvironment()) {}

  const std::optional<RankPlace>& place() const { return place_; }
  BucketOptions buckets() const;

  void AddOptions(CLI::App* command);

  // `body` gets null where this process is alone. A failure here is told to
  // the other ranks.
  int Run(c10::Device device,
          const std::function<int(Communicator*)>& body) const;

 private:
  std::optional<RankPlace> place_;
  double bucket_mib_ = 25.0;
  double first_bucket_mib_ = 1.0;
  double lost_after_s_ = 15.0;
  std::optional<double> join_within_s_;
};

}  // namespace trainfare::trainer
