#include "trainer/ranks/flat_parameters.h"

#include <algorithm>

#include "model/error.h"

namespace trainfare::trainer {

FlatParameters::FlatParameters(const std::vector<Parameter>& parameters,
                               int rank,
                               int ranks,
                               at::ScalarType share_type,
                               bool keeps_whole)
    : keeps_whole_(keeps_whole) {
  ENSURE(!parameters.empty(), "parameters to divide");
  const at::NoGradGuard no_grad;
  const at::Tensor& first = parameters.front().value;
  trained_ = first.requires_grad();
  int64_t elements = 0;
  for (const Parameter& one : parameters) elements += one.value.numel();
  const int64_t share = (elements + ranks - 1) / ranks;
  whole_ = at::zeros({share * ranks}, first.options().requires_grad(false));
  bytes_ = whole_.nbytes();
  share_begin_ = share * rank;
  share_ = keeps_whole_
               ? whole_.narrow(0, share_begin_, share)
               : at::zeros({share}, whole_.options().dtype(share_type));
  ENSURE(share_.scalar_type() == share_type,
         "a part of the whole has its type");
  int64_t begin = 0;
  for (const Parameter& one : parameters) {
    ENSURE(one.value.scalar_type() == first.scalar_type() &&
               one.value.requires_grad() == trained_,
           "parameters of one kind");
    const at::Tensor part =
        whole_.narrow(0, begin, one.value.numel()).view(one.value.sizes());
    part.copy_(one.value);
    at::Tensor parameter = one.value;
    parameter.set_data(part);
    slots_.push_back({parameter, begin});
    const int64_t end = begin + parameter.numel();
    const int64_t own_begin = std::max(begin, share_begin_);
    const int64_t own_end = std::min(end, share_begin_ + share);
    if (own_begin < own_end) {
      const int64_t at = own_begin - share_begin_;
      slices_.push_back(
          {{one.name, share_.narrow(0, at, own_end - own_begin)}, at});
    }
    begin = end;
  }
  TakeShare();
}

at::Tensor FlatParameters::ShareToSend() const {
  return share_.to(whole_.scalar_type());
}

void FlatParameters::Hold() {
  if (held_) return;
  const c10::Storage& storage = whole_.storage();
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes_));
  storage.set_nbytes(bytes_);
  held_ = true;
}

void FlatParameters::LetGo() {
  if (!held_ || keeps_whole_) return;
  const c10::Storage& storage = whole_.storage();
  storage.set_nbytes(0);
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, whole_.device()));
  held_ = false;
}

void FlatParameters::TakeShare() {
  if (keeps_whole_) return;
  ENSURE(held_, "a share of what is there");
  const at::NoGradGuard no_grad;
  share_.copy_(whole_.narrow(0, share_begin_, share_.numel()));
}

}  // namespace trainfare::trainer
