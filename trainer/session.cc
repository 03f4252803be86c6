#include "trainer/session.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "model/error.h"
#include "trainer/launch_counter.h"

namespace trainfare::trainer {
namespace {

using model::Precision;

// Matrix products in bf16, everything else where it was: torch.autocast.
class Autocast {
 public:
  Autocast(at::DeviceType device, bool enabled)
      : device_(device), enabled_(enabled) {
    if (!enabled_) return;
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();  // casts of weights that are about to change
    at::autocast::set_autocast_enabled(device_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_;
};

void CheckPrecision(Precision precision, at::Device device) {
  if (precision == Precision::kFp32 || precision == Precision::kBf16) return;
  if (precision == Precision::kTf32 && device.is_cuda()) return;
  throw model::InputError(
      fmt::format("precision: this trainer has fp32 and bf16 (and tf32 on a "
                  "GPU), got {} on {}",
                  model::ToText(precision),
                  device.is_cuda() ? "a GPU" : "a CPU"));
}

}  // namespace

Session::Session(std::unique_ptr<Encoder> encoder,
                 Precision precision,
                 const OptimizerOptions& optimizer)
    : encoder_(std::move(encoder)),
      precision_(precision),
      optimizer_kind_(optimizer.kind) {
  CheckPrecision(precision, encoder_->device());
  if (encoder_->device().is_cuda()) {
    at::globalContext().setAllowTF32CuBLAS(precision == Precision::kTf32);
  }
  optimizer_ = MakeOptimizer(encoder_->parameters(), optimizer);
}

double Session::Now() const {
  if (!encoder_->device().is_cpu()) {
    const c10::impl::VirtualGuardImpl device(encoder_->device().type());
    device.synchronizeDevice(encoder_->device().index());
  }
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Output Session::Forward(const Batch& batch, bool training) const {
  const Autocast autocast(encoder_->device().type(),
                          precision_ == Precision::kBf16);
  return encoder_->Forward(batch, training);
}

bool Session::LaunchesCount() const {
  const bool ours =
      optimizer_kind_.kind == model::OptimizerKind::kAdan &&
      optimizer_kind_.implementation == model::OptimizerImplementation::kFused;
  return encoder_->device().is_cpu() || ours ||
         optimizer_kind_.implementation ==
             model::OptimizerImplementation::kForLoop;
}

void Session::ForwardBackward(const Batch& batch,
                              int64_t accumulation,
                              StepTimes& times) {
  const double start = Now();
  const Output output = Forward(batch, /*training=*/true);
  ENSURE(output.loss.defined(), "a training batch has labels");
  const at::Tensor loss = accumulation == 1
                              ? output.loss
                              : output.loss / static_cast<double>(accumulation);
  const double forward_end = Now();
  loss.backward();
  const double backward_end = Now();
  times.forward_s += forward_end - start;
  times.backward_s += backward_end - forward_end;
  times.loss += loss.item<double>();
}

void Session::Update(StepTimes& times) {
  const double start = Now();
  // The second step: the first may initialise what later ones update.
  if (optimizer_->steps() == 1 && !optimizer_launches_ && LaunchesCount()) {
    const LaunchCounter counter;
    optimizer_->Step();
    optimizer_launches_ = counter.count();
  } else {
    optimizer_->Step();
  }
  times.optimizer_s = Now() - start;
}

at::Tensor Session::Predict(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  Batch unlabelled = batch;
  unlabelled.labels.reset();
  unlabelled.start_positions.reset();
  unlabelled.end_positions.reset();
  return Forward(unlabelled, /*training=*/false).logits;
}

}  // namespace trainfare::trainer
