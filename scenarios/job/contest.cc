#include "scenarios/job/contest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <random>

#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {
namespace {

constexpr size_t kDraws = 2000;  // a share of them is off by 1 % or less

// The same numbers everywhere: what the library's own distribution draws is
// each library's own choice.
class Normals {
 public:
  double Next() {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * Uniform());
  }

 private:
  // Above 0 and at most 1, by the upper 53 bits.
  double Uniform() {
    return (static_cast<double>(random_() >> 11U) + 1.0) * 0x1p-53;
  }

  std::mt19937_64 random_{kOddsSeed};
};

// Logarithms that differ by more are of figures that do.
constexpr double kSurelyApart = 1e-9;

double ShareOfDraws(double times) { return times / double{kDraws}; }

// Where `name` stands among the names so far.
size_t IndexOf(const std::string& name, std::map<std::string, size_t>& names) {
  return names.emplace(name, names.size()).first->second;
}

}  // namespace

Uncertain::Uncertain(const ScoreRange& range)
    : value_(range.value),
      log_value_(std::log(range.value)),
      below_(std::log(range.value / range.low) / calibrate::kNormalQuantile90),
      above_(std::log(range.high / range.value) /
             calibrate::kNormalQuantile90) {}

double Uncertain::At(double z) const {
  return value_ * std::exp(z * (z < 0 ? below_ : above_));
}

double Uncertain::LogAt(double z) const {
  return log_value_ + z * (z < 0 ? below_ : above_);
}

Contest::Limit::Limit(const ScoreRange& range, double at_most)
    : figure(range), most(at_most), log_most(std::log(at_most)) {}

bool Contest::Entry::IsWithin(double z) const {
  return std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) {
    const double over = limit.figure.LogAt(z) - limit.log_most;
    return std::abs(over) > kSurelyApart ? over < 0
                                         : limit.figure.At(z) <= limit.most;
  });
}

bool Contest::IsBetter(const Leader& one, const Leader& other) const {
  const double more = one.log_score - other.log_score;
  if (std::abs(more) > kSurelyApart) return more < 0;
  const double score = entries_[*one.entry].score.At(one.z);
  const double least = entries_[*other.entry].score.At(other.z);
  return score < least || (score == least && *one.entry < *other.entry);
}

void Contest::Challenge(size_t entry, double z, Leader& leader) const {
  const Leader one{entry, z, entries_[entry].score.LogAt(z)};
  if (!leader.entry || IsBetter(one, leader)) leader = one;
}

Contest::Contest(const std::vector<Contestant>& contestants)
    : times_within_(contestants.size()) {
  std::map<std::string, size_t> devices;
  std::map<std::string, size_t> kinds;
  std::vector<size_t> kind_of_device;
  for (const Contestant& one : contestants) {
    Entry entry{IndexOf(one.device, devices), Uncertain(one.score), {}};
    for (const auto& [figure, most] : one.limits) {
      entry.limits.emplace_back(figure, most);
    }
    entries_.push_back(std::move(entry));
    kind_of_device.resize(devices.size());
    kind_of_device[entries_.back().device] = IndexOf(one.kind, kinds);
  }
  devices_ = devices.size();
  DrawErrors(kind_of_device, kinds.size());
  best_.resize(kDraws);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const double z = ErrorOf(draw, i);
      if (!entries_[i].IsWithin(z)) continue;
      ++times_within_[i];
      Challenge(i, z, best_[draw]);
    }
  }
}

void Contest::DrawErrors(const std::vector<size_t>& kinds, size_t kind_count) {
  const double shared = std::sqrt(kSharedByKind);
  const double own = std::sqrt(1.0 - kSharedByKind);
  Normals normals;
  std::vector<double> of_kind(kind_count);
  errors_.reserve(kDraws * devices_);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    for (double& error : of_kind) error = normals.Next();
    for (const size_t kind : kinds) {
      errors_.push_back(shared * of_kind[kind] + own * normals.Next());
    }
  }
  noises_.resize(kDraws);
  for (double& noise : noises_) noise = normals.Next();
}

std::vector<Odds> Contest::odds() const {
  std::vector<int> times_best(entries_.size());
  for (const Leader& best : best_) {
    if (best.entry) ++times_best[*best.entry];
  }
  std::vector<Odds> odds;
  for (size_t i = 0; i < entries_.size(); ++i) {
    odds.push_back(
        {ShareOfDraws(times_best[i]), ShareOfDraws(times_within_[i])});
  }
  return odds;
}

Informed Contest::Measuring(size_t taken_now,
                            const std::vector<size_t>& measured,
                            double correlation) const {
  Leader of_others;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].IsWithin(0) &&
        std::find(measured.begin(), measured.end(), i) == measured.end()) {
      Challenge(i, 0, of_others);
    }
  }
  Informed informed;
  if (measured.empty()) return informed;
  const double unknown = std::sqrt(1.0 - correlation * correlation);
  int times_right = 0;
  for (size_t draw = 0; draw < kDraws; ++draw) {
    const double said =
        correlation * ErrorOf(draw, measured.front()) + unknown * noises_[draw];
    Leader then = of_others;
    const double z = correlation * said;
    for (const size_t i : measured) {
      if (entries_[i].IsWithin(z)) Challenge(i, z, then);
    }
    if (!then.entry) continue;
    if (then.entry == best_[draw].entry) ++times_right;
    const auto truth = [&](size_t entry) {
      return entries_[entry].score.At(ErrorOf(draw, entry));
    };
    informed.saved += ShareOfDraws(truth(taken_now) - truth(*then.entry));
  }
  informed.right = ShareOfDraws(times_right);
  return informed;
}

}  // namespace trainfare::scenarios
