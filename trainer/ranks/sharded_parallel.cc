#include "trainer/ranks/sharded_parallel.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "model/error.h"
#include "model/sharding.h"
#include "trainer/device/device_clock.h"

namespace trainfare::trainer {
namespace {

// Number 0 of units whose parameters are divided: what is in no block, gathered
// from its first use to the end of the backward pass.
constexpr size_t kRoot = 0;

}  // namespace

class ShardedParallel::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(ShardedParallel& owner, Piece& piece, size_t slot)
      : owner_(owner), piece_(piece), slot_(slot) {}
  void operator()(const at::Tensor&) override {
    owner_.OnGradient(piece_, slot_);
  }

 private:
  ShardedParallel& owner_;
  Piece& piece_;
  size_t slot_;
};

ShardedParallel::ShardedParallel(Communicator& communicator,
                                 const std::vector<Parameter>& parameters,
                                 const model::Parallel& parallel)
    : RankTraining(communicator),
      parallel_(parallel),
      divides_parameters_(model::ShardsParameters(parallel)),
      divides_gradients_(model::ShardsGradients(parallel)),
      device_(parameters.at(0).value.device()) {
  ENSURE(communicator.world_size() > 1, "ranks to divide state over");
  MakeUnits(parameters);
  for (Unit& unit : units_) {
    for (Piece& piece : unit.pieces) {
      if (!piece.flat.trained()) continue;
      for (size_t i = 0; i < piece.flat.slots().size(); ++i) {
        torch::autograd::impl::set_post_acc_grad_hooks(
            piece.flat.slots()[i].parameter,
            std::make_unique<Hook>(*this, piece, i));
      }
      for (const FlatParameters::Slice& slice : piece.flat.slices()) {
        updated_.push_back(slice.part);
      }
    }
  }
}

ShardedParallel::~ShardedParallel() {
  for (const Unit& unit : units_) {
    for (const Piece& piece : unit.pieces) {
      for (const FlatParameters::Slot& slot : piece.flat.slots()) {
        torch::autograd::impl::set_post_acc_grad_hooks(slot.parameter, nullptr);
      }
    }
  }
}

void ShardedParallel::MakeUnits(const std::vector<Parameter>& parameters) {
  std::vector<std::vector<Parameter>> lists(1);
  if (divides_parameters_) {
    std::map<std::string, size_t> blocks;
    for (const Parameter& one : parameters) {
      const LayerName layer = LayerOf(one.name);
      if (!layer.block) {
        lists[kRoot].push_back(one);
        continue;
      }
      const auto [found, added] = blocks.emplace(layer.name, lists.size());
      if (added) lists.emplace_back();
      lists[found->second].push_back(one);
    }
  } else {
    // Backward meets the parameters roughly from the last to the first.
    int64_t elements = 0;
    for (auto one = parameters.rbegin(); one != parameters.rend(); ++one) {
      if (elements >= model::kReduceBucket) {
        lists.emplace_back();
        elements = 0;
      }
      lists.back().push_back(*one);
      elements += one->value.numel();
    }
  }
  units_.reserve(lists.size());  // hooks point into them
  for (const std::vector<Parameter>& list : lists) AddUnit(list);
}

void ShardedParallel::AddUnit(const std::vector<Parameter>& parameters) {
  std::map<std::tuple<bool, at::ScalarType>, std::vector<Parameter>> kinds;
  for (const Parameter& one : parameters) {
    kinds[{one.value.requires_grad(), one.value.scalar_type()}].push_back(one);
  }
  Unit unit;
  unit.gathered = true;
  for (const auto& [kind, list] : kinds) {
    const auto [trained, type] = kind;
    // FSDP's shard is that of fp32 masters, narrow where it is gathered.
    const bool wide = trained && parallel_.shard == model::Shard::kFsdp;
    unit.pieces.emplace_back(FlatParameters(list,
                                            communicator().rank(),
                                            communicator().world_size(),
                                            wide ? at::kFloat : type,
                                            !divides_parameters_));
    unit.pieces.back().filled.resize(list.size());
  }
  units_.push_back(std::move(unit));
}

std::vector<Parameter> ShardedParallel::Updated() const { return updated_; }

void ShardedParallel::HoldParameters() {
  for (Unit& unit : units_) {
    for (Piece& piece : unit.pieces) piece.flat.Hold();
  }
}

void ShardedParallel::ShareParameters() {
  for (size_t i = 0; i < units_.size(); ++i) {
    for (Piece& piece : units_[i].pieces) {
      communicator().Broadcast(piece.flat.whole());
      piece.flat.TakeShare();
    }
    LetGo(i);
  }
}

void ShardedParallel::GatherParameters() {
  for (size_t i = 0; i < units_.size(); ++i) AwaitGather(i);
}

void ShardedParallel::WaitFor(Transfer& transfer) {
  const double start = MonotonicSeconds();
  transfer.Wait();
  waited_s_ += MonotonicSeconds() - start;
}

void ShardedParallel::Gather(size_t index) {
  Unit& unit = units_[index];
  if (unit.gathered) return;
  const at::NoGradGuard no_grad;
  for (Piece& piece : unit.pieces) {
    piece.flat.Hold();
    unit.gathers.push_back(
        communicator().AllGather(piece.flat.ShareToSend(), piece.flat.whole()));
  }
  unit.gathered = true;
}

void ShardedParallel::AwaitGather(size_t index) {
  Gather(index);
  for (const auto& transfer : units_[index].gathers) WaitFor(*transfer);
  units_[index].gathers.clear();
}

void ShardedParallel::LetGo(size_t index) {
  Unit& unit = units_[index];
  if (!divides_parameters_) return;
  for (Piece& piece : unit.pieces) piece.flat.LetGo();
  unit.gathered = false;
}

// The transfer of the unit behind the one at `place` goes while that computes.
void ShardedParallel::GatherAhead(const std::vector<size_t>& order,
                                  size_t place) {
  if (place + 1 < order.size()) Gather(order[place + 1]);
}

PartEnd ShardedParallel::BeginForward() {
  if (!divides_parameters_) return {};
  forward_order_.clear();
  for (size_t i = 1; i < units_.size(); ++i) forward_order_.push_back(i);
  forward_place_ = 0;
  with_gradient_.clear();
  Gather(kRoot);
  if (!forward_order_.empty()) Gather(forward_order_.front());
  AwaitGather(kRoot);
  return [this](const PartName& part, const at::Tensor& output) {
    if (part.block) {
      OnBlockEnd(output);
    }
    // What follows computes now: the one behind it is gathered meanwhile.
    if (forward_place_ >= forward_order_.size()) return;
    GatherAhead(forward_order_, forward_place_);
    AwaitGather(forward_order_[forward_place_]);
  };
}

void ShardedParallel::OnBlockEnd(const at::Tensor& output) {
  ENSURE(forward_place_ < forward_order_.size(), "no more ends than blocks");
  const size_t unit = forward_order_[forward_place_++];
  if (output.requires_grad()) {
    with_gradient_.push_back(unit);
    // Autograd has gone through all later parts when this is called.
    const size_t place = with_gradient_.size();
    output.register_hook([this, place](const at::Tensor&) {
      OnBlockGradient(with_gradient_.size() - place);
    });
  }
  if (parallel_.reshard_after_forward || !output.requires_grad()) LetGo(unit);
}

void ShardedParallel::BeginBackward(const at::Tensor& loss, bool last) {
  reduces_ = last || divides_gradients_;
  for (Unit& unit : units_) {
    for (Piece& piece : unit.pieces) {
      piece.missing = piece.flat.slots().size();
      std::fill(piece.filled.begin(), piece.filled.end(), false);
    }
  }
  if (last) SendStatus(loss);
  if (!divides_parameters_) return;
  backward_order_.assign(with_gradient_.rbegin(), with_gradient_.rend());
  if (!backward_order_.empty()) Gather(backward_order_.front());
}

// Place 0 is the last block, whose output's gradient is the first.
void ShardedParallel::OnBlockGradient(size_t place) {
  if (place > 0) LetGo(backward_order_[place - 1]);
  GatherAhead(backward_order_, place);
  AwaitGather(backward_order_[place]);
}

// Room whose numbers mean nothing yet: every slot is written, or zeroed, before
// it is sent.
void ShardedParallel::MakeGradients(Piece& piece) {
  if (piece.gradients.defined()) return;
  piece.gradients =
      at::empty(piece.flat.whole().sizes(), piece.flat.share().options());
}

void ShardedParallel::OnGradient(Piece& piece, size_t index) {
  if (!reduces_) return;
  const at::NoGradGuard no_grad;
  const FlatParameters::Slot& slot = piece.flat.slots()[index];
  MakeGradients(piece);
  at::Tensor parameter = slot.parameter;
  at::Tensor& gradient = parameter.mutable_grad();
  const at::Tensor part =
      piece.gradients.narrow(0, slot.begin, gradient.numel())
          .view(gradient.sizes());
  // Divided here, on the way into the message, as Gloo has no mean.
  const double share = 1.0 / communicator().world_size();
  if (part.scalar_type() == gradient.scalar_type()) {
    at::Tensor out = part;
    at::mul_out(out,
                gradient,
                at::scalar_tensor(share, gradient.options().device(at::kCPU)));
  } else {
    part.copy_(gradient).mul_(share);  // divided where it is wide
  }
  gradient.reset();
  piece.filled[index] = true;
  if (--piece.missing == 0) Reduce(piece);
}

void ShardedParallel::Reduce(Piece& piece) {
  const at::NoGradGuard no_grad;
  const FlatParameters::Slot& last = piece.flat.slots().back();
  const int64_t end = last.begin + last.parameter.numel();
  piece.gradients.narrow(0, end, piece.gradients.numel() - end).zero_();
  piece.received = at::empty_like(piece.flat.share());
  piece.reduction =
      communicator().ReduceScatter(piece.gradients, piece.received);
}

// What this backward pass summed, to what the step's earlier ones did.
void ShardedParallel::AddUp(Piece& piece) {
  if (!piece.reduction) return;
  WaitFor(*piece.reduction);
  piece.reduction.reset();
  piece.gradients.reset();
  if (piece.summed.defined()) {
    piece.summed.add_(piece.received);
    piece.received.reset();
  } else {
    piece.summed = std::move(piece.received);
  }
}

// Parameters that this loss does not reach add nothing to the mean.
void ShardedParallel::ReduceTheRest(Piece& piece) {
  if (!piece.flat.trained() || piece.missing == 0) return;
  MakeGradients(piece);
  for (size_t i = 0; i < piece.filled.size(); ++i) {
    if (piece.filled[i]) continue;
    const FlatParameters::Slot& slot = piece.flat.slots()[i];
    piece.gradients.narrow(0, slot.begin, slot.parameter.numel()).zero_();
  }
  piece.missing = 0;
  Reduce(piece);
}

void ShardedParallel::EndBackward() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < units_.size(); ++i) LetGo(i);
  if (!reduces_) return;
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) {
    for (Piece& piece : unit->pieces) ReduceTheRest(piece);
  }
  for (Unit& unit : units_) {
    for (Piece& piece : unit.pieces) AddUp(piece);
  }
  if (!status_transfer_) return;  // not the step's last micro-batch
  WaitFor(*status_transfer_);
  status_transfer_.reset();
  stop_asked_ = status_[0].item<double>() > 0.0;
  loss_ = status_[1].item<double>();
  for (Unit& unit : units_) {
    for (Piece& piece : unit.pieces) GiveGradients(piece);
  }
}

// To the optimizer, by its parts of this rank's share.
void ShardedParallel::GiveGradients(const Piece& piece) {
  if (!piece.summed.defined()) return;
  for (const FlatParameters::Slice& slice : piece.flat.slices()) {
    at::Tensor part = slice.part.value;
    part.mutable_grad() = piece.summed.narrow(0, slice.begin, part.numel());
  }
}

// Early in the step's last backward pass, so that computation hides it.
void ShardedParallel::SendStatus(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  status_ = at::zeros({2}, at::TensorOptions(device_).dtype(at::kFloat));
  status_[0].fill_(asked_to_stop() ? 1.0 : 0.0);
  status_[1].copy_(loss.detach() * (1.0 / communicator().world_size()));
  status_transfer_ = communicator().AllReduce(status_);
}

void ShardedParallel::EndUpdate() {
  const at::NoGradGuard no_grad;
  for (Unit& unit : units_) {
    for (Piece& piece : unit.pieces) {
      piece.summed.reset();
      if (divides_parameters_ || !piece.flat.trained()) continue;
      // In place: the share is a part of the whole.
      WaitFor(
          *communicator().AllGather(piece.flat.share(), piece.flat.whole()));
    }
  }
}

std::optional<double> ShardedParallel::TakeWaited() {
  const double waited_s = std::exchange(waited_s_, 0.0);
  if (!device_.is_cpu()) return std::nullopt;  // its queue waits, not the host
  return waited_s;
}

}  // namespace trainfare::trainer
