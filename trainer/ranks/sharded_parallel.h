#pragma once

// Ranks that divide training state: gradients and optimizer state by buckets
// (ZeRO stages 1 and 2; Rajbhandari et al. 2020), or parameters too, gathered a
// block ahead of its use and summed behind it (ZeRO 3, FSDP; Zhao et al. 2023).
// docs/models/sharding.md says what is sent when.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/workload.h"
#include "trainer/ranks/flat_parameters.h"
#include "trainer/ranks/rank_training.h"

namespace trainfare::trainer {

class ShardedParallel final : public RankTraining {
 public:
  // `parallel.shard` is not kNone; parameters become parts of units.
  ShardedParallel(Communicator& communicator,
                  const std::vector<Parameter>& parameters,
                  const model::Parallel& parallel);
  ~ShardedParallel() override;

  std::vector<Parameter> Updated() const override;
  void HoldParameters() override;
  void ShareParameters() override;
  void GatherParameters() override;
  std::function<void(const at::Tensor&)> SumOverShares() override {
    return [this](const at::Tensor& sum) {
      communicator().AllReduce(sum)->Wait();
    };
  }

  PartEnd BeginForward() override;
  void BeginBackward(const at::Tensor& loss, bool last) override;
  void EndBackward() override;
  void EndUpdate() override;

  std::optional<GradientTimes> TakeGradientTimes() override {
    return std::nullopt;
  }
  std::optional<double> TakeWaited() override;
  double loss() const override { return loss_; }
  bool stop_asked() const override { return stop_asked_; }

 private:
  class Hook;
  // Parameters of a unit that are of one kind, and their gradients.
  struct Piece {
    explicit Piece(FlatParameters parameters) : flat(std::move(parameters)) {}
    FlatParameters flat;
    at::Tensor gradients;      // of flat.whole(), while they gather
    std::vector<bool> filled;  // by slot
    size_t missing = 0;        // slots without a gradient
    at::Tensor received;       // this rank's part of the sum, under way
    at::Tensor summed;         // of the step's micro-batches
    std::unique_ptr<Transfer> reduction;
  };
  // What is gathered together.
  struct Unit {
    std::vector<Piece> pieces;
    std::vector<std::unique_ptr<Transfer>> gathers;  // under way
    bool gathered = false;                           // or under way
  };

  void MakeUnits(const std::vector<Parameter>& parameters);
  void AddUnit(const std::vector<Parameter>& parameters);

  // Units by number: gathers are asked for ahead, and waited for.
  void Gather(size_t unit);
  void GatherAhead(const std::vector<size_t>& order, size_t place);
  void AwaitGather(size_t unit);
  void LetGo(size_t unit);
  void WaitFor(Transfer& transfer);

  void OnBlockEnd(const at::Tensor& output);
  void OnBlockGradient(size_t place);
  static void MakeGradients(Piece& piece);
  void OnGradient(Piece& piece, size_t slot);
  void Reduce(Piece& piece);
  void ReduceTheRest(Piece& piece);
  void AddUp(Piece& piece);
  static void GiveGradients(const Piece& piece);
  void SendStatus(const at::Tensor& loss);

  model::Parallel parallel_;
  bool divides_parameters_;
  bool divides_gradients_;
  at::Device device_;
  std::vector<Unit> units_;  // of divided parameters the first is the root
  std::vector<Parameter> updated_;

  // The micro-batch in hand: blocks in the order of the forward pass, and those
  // of them that have a backward pass in the order of that.
  std::vector<size_t> forward_order_;
  size_t forward_place_ = 0;
  std::vector<size_t> backward_order_;
  std::vector<size_t> with_gradient_;
  bool reduces_ = false;  // this backward pass sends its gradients

  at::Tensor status_;  // the wish to stop, and the loss
  std::unique_ptr<Transfer> status_transfer_;
  double loss_ = 0;
  bool stop_asked_ = false;
  double waited_s_ = 0;
};

}  // namespace trainfare::trainer
