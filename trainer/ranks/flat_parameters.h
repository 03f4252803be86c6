#pragma once

// Parameters side by side in one memory that ranks divide evenly.

#include <cstdint>
#include <vector>

#include "trainer/network/transformer.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// From its making on the parameters, all of one type, are parts of `whole()`.
// Its memory can go and come back under them: what autograd saved of them is
// the same memory then (as FSDP has it; Zhao et al. 2023, section 4.2).
class FlatParameters {
 public:
  // `share_type`: of this rank's share. `keeps_whole`: all stays where it is,
  // and the share is a part of it; of one type, then.
  FlatParameters(const std::vector<Parameter>& parameters,
                 int rank,
                 int ranks,
                 at::ScalarType share_type,
                 bool keeps_whole);

  // Parameters, then zeros that make it a multiple of the ranks.
  const at::Tensor& whole() const { return whole_; }
  const at::Tensor& share() const { return share_; }
  // The share in the type of whole(): a copy where the share has another.
  at::Tensor ShareToSend() const;
  bool trained() const { return trained_; }
  bool held() const { return held_; }

  // Memory for whole(), whose numbers mean nothing until they are written.
  void Hold();
  // The memory goes; only the share stays.
  void LetGo();
  // The share is that of whole().
  void TakeShare();

  struct Slot {
    at::Tensor parameter;
    int64_t begin = 0;  // in whole()
  };
  const std::vector<Slot>& slots() const { return slots_; }
  // Where each parameter lies in this rank's share, flat, and from which of
  // the share's elements on; parameters of other ranks are not among them.
  struct Slice {
    Parameter part;
    int64_t begin = 0;
  };
  const std::vector<Slice>& slices() const { return slices_; }

 private:
  std::vector<Slot> slots_;
  std::vector<Slice> slices_;
  at::Tensor whole_;
  at::Tensor share_;
  size_t bytes_ = 0;
  int64_t share_begin_ = 0;
  bool trained_ = false;
  bool keeps_whole_ = false;
  bool held_ = true;
};

}  // namespace trainfare::trainer
