#pragma once

// How long a batch is once its sequences are padded to one length.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/error.h"

namespace trainfare::model {

// Share of a data set's sequences of each length in tokens.
class LengthHistogram {
 public:
  // Counts (or shares) by length; lengths rise, counts are not negative.
  static LengthHistogram FromCounts(
      const std::vector<std::pair<int64_t, double>>& counts) {
    ENSURE(!counts.empty(), "a histogram has a length");
    LengthHistogram h;
    h.shortest_ = counts.front().first;
    double sum = 0.0;
    for (const auto& [length, count] : counts) {
      ENSURE(length >= h.shortest_ + static_cast<int64_t>(h.cdf_.size()),
             "lengths rise");
      ENSURE(count >= 0, "counts are not negative");
      h.cdf_.resize(static_cast<size_t>(length - h.shortest_), sum);
      sum += count;
      h.cdf_.push_back(sum);
    }
    ENSURE(sum > 0, "a histogram has a sequence");
    for (double& value : h.cdf_) value /= sum;
    return h;
  }

  // From points of the distribution: `points` are (length, share of sequences
  // not longer than it), both rising, the last share 1. Between two points the
  // lengths are equally frequent.
  static LengthHistogram FromQuantiles(
      int64_t shortest, const std::vector<std::pair<int64_t, double>>& points) {
    LengthHistogram h;
    h.shortest_ = shortest;
    int64_t from = shortest - 1;
    double below = 0.0;
    for (const auto& [length, share] : points) {
      ENSURE(length > from && share >= below, "quantiles rise");
      const double step = (share - below) / static_cast<double>(length - from);
      for (int64_t l = from + 1; l < length; ++l) {
        h.cdf_.push_back(below + step * static_cast<double>(l - from));
      }
      h.cdf_.push_back(share);
      from = length;
      below = share;
    }
    ENSURE(!h.cdf_.empty() && h.cdf_.back() == 1.0, "the last share is 1");
    return h;
  }

  // Share of sequences of at most `length` tokens.
  double Cdf(int64_t length) const {
    if (length < shortest_) return 0.0;
    const auto index = static_cast<size_t>(length - shortest_);
    return index < cdf_.size() ? cdf_[index] : 1.0;
  }
  int64_t shortest() const { return shortest_; }
  int64_t longest() const {
    return shortest_ + static_cast<int64_t>(cdf_.size()) - 1;
  }
  // Mean tokens of a sequence that is cut at `limit`.
  //   E[min(X, L)] = sum over l in [0, L) of 1 - F(l)
  double MeanCutAt(int64_t limit) const {
    double mean = 0.0;
    for (int64_t l = 0; l < std::min(limit, longest()); ++l) mean += 1 - Cdf(l);
    return mean;
  }
  double Mean() const { return MeanCutAt(longest()); }

 private:
  int64_t shortest_ = 1;
  std::vector<double> cdf_;  // at shortest_, shortest_ + 1, ...
};

// A length that batches come in, and how many of them do.
struct PaddedLength {
  int64_t length = 0;
  double share = 0.0;
};

// Lengths of batches padded to their own longest sequence, cut at `limit`.
//
//   P(max of b <= L) = F(L)^b
//
// Sequences are drawn independently (shuffled data, not sorted by length).
// Check: tests/model/padding_test.cc.
inline std::vector<PaddedLength> DynamicLengths(
    const LengthHistogram& histogram, int64_t batch, int64_t limit) {
  ENSURE(batch >= 1 && limit >= 1, "a batch has a token");
  std::vector<PaddedLength> lengths;
  double below = 0.0;
  const int64_t last = std::min(histogram.longest(), limit);
  for (int64_t l = std::min(histogram.shortest(), last); l <= last; ++l) {
    const double up_to =
        l == last ? 1.0
                  : std::pow(histogram.Cdf(l), static_cast<double>(batch));
    if (up_to > below) lengths.push_back({l, up_to - below});
    below = up_to;
  }
  return lengths;
}

// The same rounded up to the next of `buckets` (rising); what is longer than
// the last is cut to it.
inline std::vector<PaddedLength> BucketedLengths(
    const LengthHistogram& histogram,
    int64_t batch,
    const std::vector<int64_t>& buckets) {
  ENSURE(!buckets.empty(), "bucketed padding has a bucket");
  std::vector<PaddedLength> lengths;
  double below = 0.0;
  for (const int64_t bound : buckets) {
    const double up_to =
        bound == buckets.back()
            ? 1.0
            : std::pow(histogram.Cdf(bound), static_cast<double>(batch));
    if (up_to > below) lengths.push_back({bound, up_to - below});
    below = up_to;
  }
  return lengths;
}

// Mean length of a batch.
inline double MeanLength(const std::vector<PaddedLength>& lengths) {
  double mean = 0.0;
  for (const PaddedLength& l : lengths) {
    mean += l.share * static_cast<double>(l.length);
  }
  return mean;
}

// Distinct lengths that `batches` draws are expected to show.
//   sum over lengths of 1 - (1 - p)^n
inline double ExpectedDistinctLengths(const std::vector<PaddedLength>& lengths,
                                      double batches) {
  double distinct = 0.0;
  for (const PaddedLength& l : lengths) {
    distinct += 1.0 - std::pow(1.0 - std::min(l.share, 1.0), batches);
  }
  return distinct;
}

}  // namespace trainfare::model
