#pragma once

// The file that a run goes on from and saves to, and which run it is of.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/workload.h"
#include "trainer/data/data.h"
#include "trainer/ranks/communicator.h"
#include "trainer/runtime/aten.h"
#include "trainer/training/feed.h"
#include "trainer/training/options.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {

// What decides the losses of a run: all of it must be the same to go on.
std::map<std::string, std::string> RunIdentity(
    const TrainOptions& options,
    const model::Workload& workload,
    int64_t steps,
    size_t world_size,
    const std::vector<Example>& examples);

// Without a name it does nothing.
class CheckpointFile {
 public:
  // `run`: what must be the same to go on. Options must outlive it.
  CheckpointFile(const TrainOptions& options,
                 std::map<std::string, std::string> run,
                 const Share& share);

  // The step that the file is of; 0 where there is none yet.
  int64_t step() const { return step_; }

  // Model, optimizer, data and dropout as they were when it was saved.
  void Resume(int64_t steps, Session& session, Feed& feed);

  // Whether a file is asked for behind this step, which need not be the last.
  bool Due(int64_t step) const;
  void Save(int64_t step, Session& session, const Feed& feed);

 private:
  const TrainOptions& options_;
  std::map<std::string, std::string> run_;
  Share share_;
  int64_t step_ = 0;
};

// A checkpoint that only some ranks can see would let them drift apart.
void CheckSameStep(Communicator& ranks,
                   int64_t first_step,
                   const TrainOptions& options,
                   at::Device device);

}  // namespace trainfare::trainer
