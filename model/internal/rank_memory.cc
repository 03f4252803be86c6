#include "model/internal/rank_memory.h"

#include <algorithm>

#include "model/element_widths.h"
#include "model/error.h"
#include "model/frozen_base.h"
#include "model/internal/passes/casts.h"
#include "model/logits.h"
#include "model/muon.h"
#include "model/offload.h"
#include "model/optimizer_kernels.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "model/transients.h"

namespace trainfare::model::internal {
namespace {

// Tensors as large as what they update that the operations of an update make
// and drop, where it is not one kernel.
int64_t TemporaryLists(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kNone:
    case OptimizerKind::kSgd:  // updates in place
      return 0;
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
    case OptimizerKind::kBertAdam:
    case OptimizerKind::kLion:
    case OptimizerKind::kMuon:  // of what AdamW updates
      // The root of the second moment; Lion's update, of which the sign counts.
      return 1;
    case OptimizerKind::kAdan:
    case OptimizerKind::kAdafactor:
      // Adan's also the difference of two gradients; Adafactor's the square of
      // the gradient, and the update made of its means.
      return 2;
  }
  ENSURE(false, "an optimizer without temporaries");
}

// Elements of the largest tensor that trains.
int64_t LargestTrained(const Workload& w) {
  int64_t largest = 0;
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    largest = std::max(largest, tensor.elements);
  }
  return largest;
}

bool UpdatesByTensor(const Optimizer& optimizer) {
  return optimizer.in_backward ||
         optimizer.implementation == OptimizerImplementation::kForLoop;
}

// Bytes of these in an update of `parameters` elements, the largest tensor with
// so many: a multi-tensor update holds whole lists of them, one of a tensor at a
// time those of its largest, a fused one none.
int64_t TemporariesOf(const Workload& w, int64_t parameters, int64_t largest) {
  int64_t lists = TemporaryLists(w.optimizer.kind);
  switch (w.optimizer.implementation) {
    case OptimizerImplementation::kForLoop:
      // And its gradient in fp32.
      if (MastersInUpdate(w)) ++lists;
      return lists * ShareOf(largest, w.parallel) * BytesOfState(w);
    case OptimizerImplementation::kMultiTensor:
      return lists *
             (UpdatesByTensor(w.optimizer) ? ShareOf(largest, w.parallel)
                                           : parameters) *
             BytesOfState(w);
    case OptimizerImplementation::kFused:
      return 0;
  }
  ENSURE(false, "an implementation without temporaries");
}

int64_t OptimizerTemporaries(const Workload& w, int64_t parameters) {
  if (w.optimizer.kind == OptimizerKind::kNone) return 0;
  if (w.optimizer.state_bits == 8) return 0;  // one kernel a tensor
  if (w.optimizer.kind == OptimizerKind::kMuon) {
    const MuonParts parts = MuonPartsOf(w);
    return std::max(
        MuonTemporaries(w, parts),
        TemporariesOf(
            w, ShareOf(parts.other_elements, w.parallel), parts.largest_other));
  }
  const int64_t largest = UpdatesByTensor(w.optimizer) ? LargestTrained(w) : 0;
  return TemporariesOf(w, parameters, largest);
}

// The root stays in whole to the end, without resharding all blocks to the
// backward pass. Of blocks two are there, the one at work and the next, and
// under FSDP none at the loss, and of the lowest it alone; DeepSpeed's ranks
// gather ahead all the time, into a buffer of a block's size. What a block's
// gradients are copied to stands beside them. Sources: PyTorch's FSDP
// (_runtime_utils.py; fully_shard), and for ranks that hold all parameters
// DeepSpeed's bucket of gradients.
Gathered GatheredOf(const Workload& w) {
  Gathered held;
  if (!DividesState(w.parallel)) return held;
  if (!ShardsParameters(w.parallel)) {
    held.buffers = held.buffers_at_end =
        std::min(TrainableParameters(w), kReduceBucket) * SumWidth(w);
    return held;
  }
  const ShardUnits units = ShardUnitsOf(w);
  const EmbeddingUnits tables = EmbeddingUnitsOf(w);
  const int64_t embeddings = GatheredBytes(w, tables.embeddings);
  const int64_t output = GatheredBytes(w, tables.output);
  // The rest of the root stays from its first use on.
  const int64_t root = GatheredBytes(w, units.root) - embeddings - output;
  int64_t blocks = 0;
  int64_t block = 0;
  int64_t trained = 0;
  for (const ShardedBlocks& alike : units.blocks) {
    const int64_t gathered = GatheredBytes(w, alike.unit);
    block = std::max(block, gathered);
    held.buffers = std::max(held.buffers, SummedBytes(w, alike.unit));
    trained = std::max(trained, alike.unit.trained);
    blocks += alike.count * gathered;
  }
  const bool again = w.parallel.reshard_after_forward;
  const bool ahead = w.parallel.shard == Shard::kZero3;
  held.at_block = root + (again ? std::min(blocks, 2 * block) : blocks);
  if (!again) held.at_block += embeddings + output;
  held.at_loss = ahead || !again ? held.at_block : root + output;
  held.at_lowest = ahead ? held.at_block : root + block + embeddings;
  // One rank alone has what comes from its host where it is used.
  if (ahead && ShardsOf(w.parallel) > 1) held.buffers += block;
  held.at_end = root + embeddings;
  if (w.part.gathered_once) held.at_lowest = held.at_end = held.at_block;
  const int64_t width = ParameterWidth(w);
  held.gradients = trained * width;
  ShardUnit last = units.root;
  last.trained -= tables.output.trained;
  held.root_gradients = last.trained * width;
  held.buffers_at_end = SummedBytes(w, last);
  return held;
}

Bytes<> Size(int64_t bytes) { return Byte(static_cast<double>(bytes)); }

}  // namespace

RankMemory::RankMemory(const Workload& w,
                       const MemorySurroundings& surroundings)
    : w_(w),
      surroundings_(surroundings),
      shares_(DividesState(w.parallel)),
      divided_(shares_ && ShardsParameters(w.parallel)),
      updates_(w.work == Work::kTraining &&
               w.parallel.offload == Offload::kNone),
      blocks_(BlockSortsOf(w)),
      gathered_(GatheredOf(w)),
      elements_(ParametersInAll(w)),
      quantised_(QuantisedElements(w)),
      trained_(w.trainable.everything() ? elements_ : TrainableParameters(w)),
      experts_(w.architecture.expert_ranks > 1 ? ExpertParametersInAll(w) : 0),
      trained_experts_(
          w.architecture.expert_ranks > 1 ? TrainableExpertParameters(w) : 0),
      updated_(shares_ ? UpdatedByRank(w) : trained_),
      copied_in_blocks_(BlockMatrixElements(w.architecture) - quantised_ +
                        AdapterParameters(w)),
      copied_outside_(MatrixElementsOutsideBlocks(w)),
      parameter_bytes_(ParameterBytesOf()),
      gradient_bytes_(GradientBytesOf()),
      gradients_above_lowest_(GradientsAboveLowest()),
      master_bytes_(updates_ && KeepsMasters(w) ? updated_ * kSingle : 0),
      state_bytes_(updates_ ? StateBytesOf(w, StateNumbersOfRank(w, updated_))
                            : 0),
      temporaries_(updates_ ? OptimizerTemporaries(w, updated_) : 0) {}

// What trains is kept as masters where these are the shard, and what does not
// as wide as it was loaded.
int64_t RankMemory::ParameterBytesOf() const {
  if (w_.parallel.offload == Offload::kParameters) return 0;
  const bool masters = MastersAreShard(w_) && updates_;
  const int64_t as_masters = masters ? trained_ : 0;
  const int64_t width =
      masters && !w_.stack.narrow_weights ? kSingle : ParameterWidth(w_);
  const int64_t rest = elements_ - as_masters - quantised_;
  const int64_t of_experts = experts_ - (masters ? trained_experts_ : 0);
  return Share({rest, std::min(rest, of_experts)}, divided_) * width +
         BaseBytes(w_, Share({quantised_, 0}, divided_));
}

// Of what is gathered, where that is less than all. Autocast keeps copies of what
// trains to the end of the pass forward (cached_cast of PyTorch's
// autocast_mode.cpp); behind it there are those that a pass backward asks for,
// each block's until that is through, and none of blocks that run again but of
// the one at work. Other stacks keep all of them.
int64_t RankMemory::WeightCopyBytes(CopiesAt at, int64_t gathered) const {
  if (!CastsWeights(w_) || !surroundings_.weight_copies) return 0;
  const int64_t width = BytesPerElement(w_.precision);
  if (divided_) return gathered / kSingle * width;
  const int64_t all = copied_in_blocks_ + copied_outside_;
  const bool by_operation = OperationByOperation(w_.stack) && Autocasts(w_);
  const bool cached = at == CopiesAt::kForwardEnd && w_.trainable.everything();
  if (!by_operation || cached) return all * width;
  const int64_t blocks = w_.architecture.blocks_with_weights();
  const int64_t block = blocks > 0 ? copied_in_blocks_ / blocks : 0;
  const int64_t again = BlocksComputedAgain(w_);
  const int64_t kept = copied_in_blocks_ - again * block;
  switch (at) {
    case CopiesAt::kForwardEnd:
    case CopiesAt::kLoss:
      return (kept + copied_outside_) * width;
    case CopiesAt::kLastBlock:
      return (kept + (again > 0 ? block : 0)) * width;
    case CopiesAt::kLowestBlock:
      return block * width;
  }
  ENSURE(false, "a moment without copies");
}

int64_t RankMemory::GradientBytesOf() const {
  if (SendsGradientsToHost(w_.parallel)) return 0;
  if (w_.optimizer.in_backward) {
    return ShareOf(LargestTrained(w_), w_.parallel) * GradientWidth(w_);
  }
  return Share({trained_, trained_experts_},
               shares_ && KeepsShareOfGradients(w_)) *
         GradientWidth(w_);
}

// Those of all but the lowest block that has a backward pass, of which each has
// an even share, and but the word table, unless the logits gave it one.
int64_t RankMemory::GradientsAboveLowest() const {
  const Architecture& a = w_.architecture;
  const int64_t blocks =
      LayersWithBackward(w_) + a.decoder_layers + a.next_token_weights();
  if (trained_ == 0 || blocks == 0) return 0;
  if (w_.optimizer.in_backward) return TiedOutputGradient();
  if (SumsGradientsWide(w_)) return gradient_bytes_;
  int64_t above = (trained_ - EmbeddingCopies(w_)) / blocks * (blocks - 1) +
                  OutputCopies(w_);
  if (w_.trainable.everything()) {
    const bool tied = PredictsVocabulary(w_) && !a.untied_output;
    // What blocks share has a gradient from the last one on.
    const int64_t lowest =
        a.shared_blocks ? 0 : BlockMatrixElements(a) / blocks;
    above = trained_ - lowest - LayerEmbeddingParameters(a) -
            (tied ? 0 : a.vocabulary * a.word_width());
  }
  return GradientBytesOfSome(above);
}

int64_t RankMemory::GradientBytesOfSome(int64_t parameters) const {
  if (trained_ == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(gradient_bytes_) *
                              static_cast<double>(parameters) /
                              static_cast<double>(trained_));
}

bool RankMemory::SumsInProducts() const {
  return SumsGradientsWide(w_) && RulesOf(w_).adds_in_products;
}

bool RankMemory::AddsToSums() const {
  return SumsGradientsWide(w_) && !SumsInProducts() &&
         !(shares_ && KeepsShareOfGradients(w_));
}

int64_t RankMemory::BucketBytes() const {
  if (SumsInProducts()) return 0;
  if (AddsToSums()) {
    const bool sends = shares_ || surroundings_.communication_buckets;
    return sends ? trained_ * ParameterWidth(w_) : 0;
  }
  if (shares_) return gathered_.buffers;
  return surroundings_.communication_buckets ? gradient_bytes_ : 0;
}

// Fairseq's gradients in fp32 are beside the masters all the time.
int64_t RankMemory::UnscaledBytes() const {
  return RulesOf(w_).flat_masters ? master_bytes_ : 0;
}

// All gradients in fp32 at once, unless the update widens them itself.
int64_t RankMemory::WidenedBytes() const {
  const bool widens =
      MastersInUpdate(w_) &&
      w_.optimizer.implementation != OptimizerImplementation::kMultiTensor;
  const bool wide = MastersAreShard(w_) || SumsGradientsWide(w_);
  return wide || widens ? 0 : master_bytes_;
}

// What a block makes is gone when the head has logits of the last one's result.
Moment RankMemory::ForwardPass() const {
  const Moment block =
      ForwardOnly(gathered_.at_block, ForwardTransients(w_), 0);
  const Moment head =
      ForwardOnly(gathered_.at_loss,
                  HeadTokens(w_) * w_.architecture.hidden * Widths(w_).wide,
                  ForwardLogitBytes(w_));
  return head.total() > block.total() ? head : block;
}

Moment RankMemory::ForwardOnly(int64_t gathered,
                               int64_t activations,
                               int64_t logits) const {
  return {MemoryMoment::kForward,
          {{{"parameters", Size(parameter_bytes_)},
            {"gathered parameters", Size(gathered)},
            {"weight copies",
             Size(WeightCopyBytes(CopiesAt::kForwardEnd, gathered))},
            {"activations", Size(activations)},
            {"logits", Size(logits)},
            {"workspace", surroundings_.workspace},
            {kFrameworkContext, surroundings_.context}}}};
}

// A first micro-batch makes its gradients layer by layer, while activations go;
// a later one adds to gradients that are already there.
int64_t RankMemory::StandingGradients() const {
  const bool standing = w_.accumulation > 1 || SumsGradientsWide(w_);
  return standing ? gradient_bytes_ : 0;
}

int64_t RankMemory::OutputElements() const {
  const Architecture& a = w_.architecture;
  if (!w_.trainable.everything()) return OutputCopies(w_);
  return PredictsVocabulary(w_) ? a.vocabulary * a.word_width() : 0;
}

// Ranks that divide it make it as wide as the product is. What is added to sums
// is in these, or in the buckets beside them.
int64_t RankMemory::OutputGradient() const {
  if (SumsGradientsWide(w_)) return 0;
  return OutputElements() * (divided_ ? ParameterWidth(w_) : GradientWidth(w_));
}

// Under PyTorch's FSDP the root's gradients are divided at the end of the pass
// backward, behind all blocks (FSDPState::_root_post_backward_final_callback).
int64_t RankMemory::OutputGradientInRoot() const {
  const bool of_root = divided_ && w_.parallel.shard == Shard::kFsdp &&
                       !w_.parallel.embedding_units && !w_.part.gathered_once;
  return of_root ? OutputGradient() : 0;
}

// Where logits come in chunks the loss has it ready.
int64_t RankMemory::GradientsAtLoss() const {
  return StandingGradients() + (ChunksLoss(w_) ? OutputGradient() : 0);
}

// Of blocks none has a gradient yet.
int64_t RankMemory::GradientsAtLastBlock() const {
  if (w_.optimizer.in_backward) {
    return std::max(StandingGradients(), TiedOutputGradient());
  }
  const int64_t output =
      OutputGradientInRoot() > 0 ? 0 : GradientBytesOfSome(OutputElements());
  return std::max(StandingGradients(), output);
}

// Autograd adds both gradients of the table up before it hands them on.
int64_t RankMemory::TiedOutputGradient() const {
  return w_.architecture.untied_output ? 0 : OutputGradient();
}

// Tables beside all gradients where that of the word table is made: what is
// added to a gradient that stands; of a table that is the output layer, too, the
// logits' gradient and the embeddings', whose sum is a third (autograd's
// InputBuffer).
int64_t RankMemory::WholeTables() const {
  // Sums of a divided table are of its share.
  if (!EmbeddingsTrain(w_) || divided_) return 0;
  const bool tied = PredictsVocabulary(w_) && !w_.architecture.untied_output;
  const int64_t of_both = tied && RulesOf(w_).eager_outside ? 2 : 0;
  return of_both + (w_.accumulation > 1 ? 1 : 0);
}

Moment RankMemory::ForwardEnd(const ActivationBytes& activations) const {
  return BetweenPasses(MemoryMoment::kForward,
                       CopiesAt::kForwardEnd,
                       ForwardLogitBytes(w_),
                       GradientsAtLoss(),
                       activations);
}

Moment RankMemory::Loss(const ActivationBytes& activations) const {
  return BetweenPasses(MemoryMoment::kBackwardStart,
                       CopiesAt::kLoss,
                       LogitBytes(w_),
                       GradientsAtLoss(),
                       activations);
}

Moment RankMemory::BetweenPasses(MemoryMoment moment,
                                 CopiesAt at,
                                 int64_t logits,
                                 int64_t gradients,
                                 const ActivationBytes& activations) const {
  return DuringBackward(moment,
                        {false,
                         gathered_.at_loss,
                         WeightCopyBytes(at, gathered_.at_loss),
                         gradients,
                         activations.kept + activations.head,
                         logits,
                         0});
}

// Its weight's gradient is made of the logits' own, which is as narrow as what
// products take.
Moment RankMemory::OutputProduct(const ActivationBytes& activations) const {
  const Logits logits = LogitsOf(w_);
  const int64_t narrow =
      logits.rows * logits.classes * BytesPerElement(w_.precision);
  return BetweenPasses(MemoryMoment::kBackwardStart,
                       CopiesAt::kLoss,
                       std::min(LogitBytes(w_), narrow),
                       StandingGradients() + OutputGradient(),
                       activations);
}

// The logits and what the head kept are gone, the gradient of the last block's
// result is there.
Moment RankMemory::LastBlock(const ActivationBytes& activations) const {
  const Architecture& a = w_.architecture;
  return DuringBackward(
      MemoryMoment::kBackwardStart,
      {true,
       gathered_.at_block,
       WeightCopyBytes(CopiesAt::kLastBlock, gathered_.at_block),
       GradientsAtLastBlock(),
       activations.kept + activations.anew,
       0,
       BlockGradientBytes(w_, a.parts_of(a.layers - 1)) +
           WidenedMatrixBytes(w_) + w_.tokens() * a.hidden * Widths(w_).wide});
}

// Gradients come as activations go: what both hold together is most where one
// of them is whole.
Moment RankMemory::LowestBlock(const LowestBlockBytes& block) const {
  return DuringBackward(
      MemoryMoment::kLowestBlock,
      {true,
       gathered_.at_lowest,
       WeightCopyBytes(CopiesAt::kLowestBlock, gathered_.at_lowest),
       gradients_above_lowest_,
       block.held,
       0,
       block.made + WidenedMatrixBytes(w_)});
}

Moment RankMemory::DuringBackward(MemoryMoment moment,
                                  const Passing& passing) const {
  return {
      moment,
      {{{"parameters", Size(parameter_bytes_)},
        {"gathered parameters", Size(passing.gathered)},
        {"weight copies", Size(passing.copies)},
        {"gradients", Size(passing.gradients)},
        {"gathered gradients",
         Size(passing.in_block ? gathered_.gradients + OutputGradientInRoot()
                               : 0)},
        {"communication buckets",
         Size(passing.in_block || w_.parallel.shard != Shard::kFsdp
                  ? BucketBytes()
                  : 0)},
        {"master weights", Size(master_bytes_)},
        {"unscaled gradients", Size(UnscaledBytes())},
        {"optimizer state", Size(state_bytes_)},
        {"activations", Size(passing.activations)},
        {"logits", Size(passing.logits)},
        {"backward transients", Size(passing.transients)},
        {"workspace", surroundings_.workspace},
        {kFrameworkContext, surroundings_.context}}}};
}

Moment RankMemory::BackwardEnd() const {
  const Architecture& a = w_.architecture;
  const bool tables = EmbeddingsTrain(w_);
  const int64_t table = a.vocabulary * a.word_width() * ParameterWidth(w_);
  const bool added =
      w_.trainable.everything() && !divided_ && w_.accumulation > 1;
  const int64_t of_blocks =
      added ? a.layer_table_rows() * a.layer_table_width() * ParameterWidth(w_)
            : 0;
  return {MemoryMoment::kBackwardEnd,
          {{{"parameters", Size(parameter_bytes_)},
            {"gathered parameters", Size(gathered_.at_end)},
            {"gradients", Size(gradient_bytes_)},
            {"gathered gradients", Size(gathered_.root_gradients)},
            {"communication buckets", Size(LastBucketBytes())},
            {"master weights", Size(master_bytes_)},
            {"unscaled gradients", Size(UnscaledBytes())},
            {"optimizer state", Size(state_bytes_)},
            {"activations", Size(tables ? EmbeddingBytes(w_, w_.tokens()) : 0)},
            {"embedding gradient",
             Size(std::max(WholeTables() * table, of_blocks))},
            {"backward transients",
             Size(2 * w_.tokens() * a.hidden * Widths(w_).wide +
                  LayerEmbeddingGradientBytes(w_))},
            {"workspace", surroundings_.workspace},
            {kFrameworkContext, surroundings_.context}}}};
}

// Behind the last micro-batch a share of the sums is left.
int64_t RankMemory::SummedGradients() const {
  if (!divided_ || !w_.part.gathered_once) return gradient_bytes_;
  return Share({trained_, trained_experts_}, true) * GradientWidth(w_);
}

Moment RankMemory::OptimizerStep() const {
  return {MemoryMoment::kOptimizerStep,
          {{{"parameters", Size(parameter_bytes_)},
            {"gradients", Size(SummedGradients())},
            {"communication buckets", Size(divided_ ? 0 : BucketBytes())},
            {"master weights", Size(master_bytes_)},
            {"optimizer state", Size(state_bytes_)},
            {"unscaled gradients", Size(WidenedBytes())},
            {"optimizer temporaries", Size(temporaries_)},
            {"workspace", surroundings_.workspace},
            {kFrameworkContext, surroundings_.context}}}};
}

Bytes<> RankMemory::OfOtherStreams(const MemoryEstimate& moment) const {
  if (w_.parallel.shard != Shard::kFsdp || !divided_) return {};
  return Size(gathered_.most()) - moment.Of("gathered parameters") +
         Size(gradient_bytes_) - moment.Of("gradients");
}

}  // namespace trainfare::model::internal
