#include "model/stack_rules.h"

#include "model/parallel.h"

namespace trainfare::model {

namespace {

bool WritesOut(const Workload& workload, Activation activation) {
  const Architecture& a = workload.architecture;
  return a.activation == activation && OperationByOperation(workload.stack) &&
         !(a.gated && RulesOf(workload).fuses_gate);
}

}  // namespace

int64_t BytesOfLossLogit(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.stack.loss == LossKernels::kFusedCast) return kSingle;
  const bool narrow = a.narrow_logits && a.head == Head::kCausalLanguageModel &&
                      NarrowWeights(w) && w.trainable.base_bits == 0;
  return narrow ? BytesPerElement(w.precision) : 4;
}

bool JoinsProjections(const Workload& workload) {
  return RulesOf(workload).joins_projections ||
         workload.architecture.joint_projection();
}

bool WritesGeluOut(const Workload& workload) {
  return WritesOut(workload, Activation::kGeluNew);
}

bool WritesSquareOut(const Workload& workload) {
  return WritesOut(workload, Activation::kReluSquared);
}

bool WritesXieluOut(const Workload& workload) {
  return WritesOut(workload, Activation::kXielu);
}

namespace {

// FSDP's mixed precision (Zhao et al. 2023): shards are fp32, what is gathered
// of them is narrow, and so is all that flows; neither autocast nor a compiled
// graph has anything to cast. (Of compiled graphs this is read off
// measurements: gathers over hosts take half of what 4 bytes a parameter
// would.)
bool GathersNarrow(const Workload& workload) {
  return workload.parallel.shard == Shard::kFsdp &&
         DividesState(workload.parallel);
}

}  // namespace

bool KeepsMasters(const Workload& workload) {
  return NarrowWeights(workload) && !UpdatesNarrow(workload) &&
         (workload.stack.narrow_weights || GathersNarrow(workload) ||
          RulesOf(workload).keeps_masters);
}

bool NarrowWeights(const Workload& workload) {
  const StackRules& rules = RulesOf(workload);
  return BytesPerElement(workload.precision) < 4 &&
         (workload.stack.narrow_weights || GathersNarrow(workload) ||
          rules.keeps_masters || rules.narrow_always);
}

bool SumsGradientsWide(const Workload& workload) {
  return workload.optimizer.wide_gradients && NarrowWeights(workload);
}

bool UpdatesNarrow(const Workload& workload) {
  return BytesPerElement(workload.precision) < 4 &&
         workload.stack.narrow_weights && !RulesOf(workload).keeps_masters &&
         workload.optimizer.masters == Masters::kNone;
}

int64_t StateBytesOf(const Workload& workload, int64_t numbers) {
  const int64_t bits = workload.optimizer.state_bits;
  if (bits == 0) return numbers * BytesOfState(workload);
  if (bits == 16) return numbers * 2;
  constexpr int64_t kGroup = 256;
  return numbers * bits / 8 + numbers / kGroup * kSingle;
}

int64_t BytesOfState(const Workload& workload) {
  return UpdatesNarrow(workload) ? BytesPerElement(workload.precision) : 4;
}

bool MastersInUpdate(const Workload& workload) {
  return KeepsMasters(workload) && !RulesOf(workload).keeps_masters &&
         workload.optimizer.masters == Masters::kInUpdate;
}

bool Autocasts(const Workload& workload) {
  return RulesOf(workload).autocasts && !workload.stack.narrow_weights &&
         !GathersNarrow(workload) && BytesPerElement(workload.precision) < 4;
}

bool CastsWeights(const Workload& workload) {
  return BytesPerElement(workload.precision) < 4 && !NarrowWeights(workload);
}

}  // namespace trainfare::model
