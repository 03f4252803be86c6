#include "model/trainable.h"

#include <algorithm>
#include <iterator>

#include "model/rounding.h"

namespace trainfare::model {
namespace {

// A matrix of a block that an adapter can stand beside.
struct Adapted {
  std::string_view module;
  int64_t inputs;
  int64_t outputs;
};

// Calls `with` with every one of them, in model order.
template <class With>
void ForEachAdapted(const Workload& w, bool decoder_side, const With& with) {
  const Architecture& a = w.architecture;
  const LoraMatrices& m = w.trainable.lora;
  const auto attention = [&] {
    if (m.query) with(Adapted{"query", a.hidden, a.query_width()});
    if (m.key) with(Adapted{"key", a.hidden, a.key_width()});
    if (m.value) with(Adapted{"value", a.hidden, a.value_width()});
    if (m.output) with(Adapted{"output", a.context_width(), a.hidden});
  };
  attention();
  if (decoder_side) attention();  // its cross-attention has the same names
  if (m.feed_forward_gate) {
    with(Adapted{"feed_forward_gate", a.hidden, a.intermediate});
  }
  if (m.feed_forward_in) {
    with(Adapted{"feed_forward_in", a.hidden, a.intermediate});
  }
  if (m.feed_forward_out) {
    with(Adapted{"feed_forward_out", a.intermediate, a.hidden});
  }
}

void AppendAdapters(const Workload& w,
                    int64_t layer,
                    bool decoder_side,
                    std::vector<ParameterTensor>& tensors) {
  const int64_t rank = w.trainable.lora_rank;
  ForEachAdapted(w, decoder_side, [&](const Adapted& matrix) {
    tensors.push_back(
        {matrix.module, rank * matrix.inputs, layer, matrix.inputs});
    tensors.push_back({matrix.module, rank * matrix.outputs, layer, rank});
  });
}

// Beside adapters only the task's own layer trains; a vocabulary head is the
// pre-trained model's.
bool HeadTrainsBesideAdapters(Head head) {
  return head == Head::kSequenceClassification ||
         head == Head::kQuestionAnswering;
}

}  // namespace

std::vector<ParameterTensor> TrainableTensorsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.trainable.everything()) return ParameterTensorsOf(a);
  std::vector<ParameterTensor> trains;
  if (w.trainable.lora_rank > 0) {
    trains.reserve(static_cast<size_t>(TrainableTensorCount(w)));
    for (int64_t i = 1; i <= a.layers; ++i) AppendAdapters(w, i, false, trains);
    for (int64_t i = 1; i <= a.decoder_layers; ++i) {
      AppendAdapters(w, a.layers + i, true, trains);
    }
    if (HeadTrainsBesideAdapters(a.head)) {
      const std::vector<ParameterTensor> head = HeadTensorsOf(a);
      trains.insert(trains.end(), head.begin(), head.end());
    }
    return trains;
  }
  const std::vector<ParameterTensor> all = ParameterTensorsOf(a);
  std::copy_if(all.begin(),
               all.end(),
               std::back_inserter(trains),
               [&](const ParameterTensor& tensor) {
                 return tensor.layer > w.trainable.frozen_layers;
               });
  return trains;
}

int64_t TrainableTensorCount(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.trainable.everything()) return ParameterTensorCount(a);
  if (w.trainable.lora_rank == 0) {
    return static_cast<int64_t>(TrainableTensorsOf(w).size());
  }
  const auto of_block = [&](bool decoder_side) {
    int64_t tensors = 0;
    ForEachAdapted(w, decoder_side, [&](const Adapted&) { tensors += 2; });
    return tensors;
  };
  const size_t head =
      HeadTrainsBesideAdapters(a.head) ? HeadTensorsOf(a).size() : 0;
  return a.layers * of_block(false) + a.decoder_layers * of_block(true) +
         static_cast<int64_t>(head);
}

int64_t TrainableParameters(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.trainable.everything()) return TotalParameters(a);
  if (w.trainable.lora_rank > 0) {
    return AdapterParameters(w) +
           (HeadTrainsBesideAdapters(a.head) ? HeadParameters(a) : 0);
  }
  int64_t sum = 0;
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    sum += tensor.elements;
  }
  return sum;
}

int64_t AdapterParameters(const Workload& w) {
  const auto of_layer = [&](bool decoder_side) {
    int64_t sum = 0;
    ForEachAdapted(w, decoder_side, [&](const Adapted& matrix) {
      sum += w.trainable.lora_rank * (matrix.inputs + matrix.outputs);
    });
    return sum;
  };
  return w.architecture.layers * of_layer(false) +
         w.architecture.decoder_layers * of_layer(true);
}

int64_t LayersWithBackward(const Workload& w) {
  return w.architecture.layers - w.trainable.frozen_layers;
}

int64_t BlocksComputedAgain(const Workload& w) {
  if (!w.gradient_checkpointing) return 0;
  const int64_t all = LayersWithBackward(w);
  return w.checkpointed_blocks > 0 ? std::min(w.checkpointed_blocks, all) : all;
}

bool BaseInFp8(const Workload& w) {
  return w.trainable.base_bits == 8 && w.precision == Precision::kFp8;
}

int64_t QuantisedBytes(int64_t elements, const Trainable& trainable) {
  if (trainable.base_bits == 8) return elements;
  constexpr int64_t kGroup = 64;
  constexpr int64_t kGroupOfGroups = 256;
  const int64_t groups = CeilDivide(elements, kGroup);
  const int64_t constants =
      trainable.double_quantised
          ? groups + CeilDivide(groups, kGroupOfGroups) * kSingle
          : groups * kSingle;
  return elements * trainable.base_bits / 8 + constants;
}

int64_t WidenedMatrixBytes(const Workload& w) {
  if (w.trainable.base_bits == 0 || BaseInFp8(w)) return 0;
  const Architecture& a = w.architecture;
  const int64_t dense = a.expert_layers() < a.layers ? a.intermediate : 0;
  const int64_t width = std::max(
      {dense, a.expert_intermediate, a.shared_intermediate, a.query_width()});
  return a.hidden * width * BytesPerElement(w.precision);
}

}  // namespace trainfare::model
