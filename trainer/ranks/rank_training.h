#pragma once

// What a session asks of the ranks that train one model together, whichever way
// they share its state.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/network/transformer.h"
#include "trainer/ranks/communicator.h"
#include "trainer/record/timeline.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// The calls of one step, on every rank in the same order:
//
//   BeginForward, the forward pass, BeginBackward, the backward pass,
//   EndBackward        each micro-batch
//   EndUpdate          behind the optimizer's update
class RankTraining {
 public:
  explicit RankTraining(Communicator& communicator)
      : communicator_(communicator) {}
  virtual ~RankTraining() = default;
  RankTraining(const RankTraining&) = delete;
  RankTraining& operator=(const RankTraining&) = delete;

  // What this rank's optimizer updates: all that trains, or its share of it.
  virtual std::vector<Parameter> Updated() const = 0;
  // Room for all parameters, so that they can be written; ShareParameters()
  // comes behind.
  virtual void HoldParameters() {}
  // Rank 0's parameters to all ranks, of which each keeps what it has to.
  virtual void ShareParameters() = 0;

  // All parameters are here, as the last update left them, until the next
  // forward pass.
  virtual void GatherParameters() {}
  // Adds up a number of this rank's part over all ranks, in place; nullptr
  // where each rank has all.
  virtual std::function<void(const at::Tensor&)> SumOverShares() {
    return nullptr;
  }

  // What the forward pass is to call at the ends of its parts; may be empty.
  virtual PartEnd BeginForward() { return {}; }
  // `loss` is this rank's of the whole step, given with its last micro-batch,
  // whose gradients, with those accumulated before, are the step's.
  virtual void BeginBackward(const at::Tensor& loss, bool last) = 0;
  virtual void EndBackward() = 0;
  virtual void EndUpdate() {}

  // Those of the step's last backward pass; nullopt where gradients do not go
  // by buckets.
  virtual std::optional<GradientTimes> TakeGradientTimes() = 0;
  // Time that the step waited for what others send; nullopt where that is not
  // known.
  virtual std::optional<double> TakeWaited() { return std::nullopt; }
  virtual std::vector<int64_t> bucket_bytes() const { return {}; }
  // What layer_ready speaks of: "bert.encoder.layer.3", "bert.embeddings".
  virtual std::vector<std::string> layers() const { return {}; }

  // Behind the step's last EndBackward(): the mean over ranks, and whether one
  // of them asked to stop, so that all stop behind the same step.
  virtual double loss() const = 0;
  virtual bool stop_asked() const = 0;
  void AskToStop(bool stop) { ask_to_stop_ = stop; }

  Communicator& communicator() const { return communicator_; }

 protected:
  bool asked_to_stop() const { return ask_to_stop_; }

 private:
  Communicator& communicator_;
  bool ask_to_stop_ = false;
};

// The layer of a parameter: of "bert.encoder.layer.3.output.dense.weight"
// "bert.encoder.layer.3", a block; of "bert.embeddings.LayerNorm.bias"
// "bert.embeddings", none.
struct LayerName {
  std::string name;
  bool block = false;
};
LayerName LayerOf(const std::string& parameter);

}  // namespace trainfare::trainer
