#pragma once

// What several ranks send each other in a step, whatever joins them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardware/models/step_time.h"
#include "model/architecture.h"
#include "model/data_parallel.h"
#include "model/sharding.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What the ranks of a workload send, whatever its passes take: counted once for
// every time and network that is asked about. `bucket_sizes`: of gradients as
// the trainer recorded them; empty: the default of PyTorch and of the trainer.
class RankMessages {
 public:
  explicit RankMessages(const model::Workload& workload,
                        const std::vector<model::Bytes<>>& bucket_sizes = {});

  // Whether other ranks, or the host, have what a step needs, and its units
  // where they do.
  bool by_unit() const { return by_unit_; }
  const model::ShardUnits& units() const { return units_; }

  // The backward pass of one micro-batch, from the head to the embeddings, each
  // bucket of gradients behind the layer that completes it; of ranks that share
  // nothing.
  template <class T>
  std::vector<model::BackwardPiece<T>> Pieces(
      const hardware::PassUnits<T>& units) const {
    std::vector<model::BackwardPiece<T>> pieces;
    pieces.reserve(messages_.size());
    for (size_t at = messages_.size(); at-- > 0;) {
      const auto layer = static_cast<int64_t>(at);
      const Message& message = messages_[at];
      model::BackwardPiece<T> piece{units.embeddings,
                                    message.all.sent,
                                    message.all.transfers,
                                    message.of_experts.sent,
                                    message.of_experts.transfers};
      if (at + 1 == messages_.size()) {
        piece.compute = units.head;
      } else if (layer > layers_) {
        piece.compute = units.decoder_layer;
      } else if (layer > 0) {
        // Frozen blocks have no backward pass.
        piece.compute =
            layer > frozen_layers_ ? units.layer : model::Seconds<T>();
      }
      pieces.push_back(piece);
    }
    return pieces;
  }

 private:
  // What leaves behind a layer: to all ranks with the same weights, and to those
  // with the same experts, where others have others.
  struct Transfers {
    model::Bytes<> sent;
    int64_t transfers = 0;
  };
  struct Message {
    Transfers all;
    Transfers of_experts;
  };
  // Adds what these tensors send in buckets of such sizes; empty: the default.
  void AddBuckets(const model::Workload& workload,
                  const std::vector<model::ParameterTensor>& tensors,
                  const std::vector<model::Bytes<>>& bucket_sizes,
                  Transfers Message::*to);

  int64_t layers_;
  int64_t frozen_layers_;
  bool by_unit_;
  model::ShardUnits units_;
  std::vector<Message> messages_;  // behind embeddings, blocks, head
};

}  // namespace trainfare::calibrate
