#pragma once

// Who is best among answers that have intervals: how likely each one is, and
// what it would be worth to know some of them better.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainfare::scenarios {

// The seed of the draws of every answer.
inline constexpr uint64_t kOddsSeed = 1;

// A figure with its 80 % interval, in the base unit of what is asked for.
struct ScoreRange {
  double value = 0;
  double low = 0;
  double high = 0;
};

// A figure whose logarithm is off by as much as its interval says.
//
//   x = x_0 (x_high / x_0)^(z / z_90)   z > 0; the same with x_low below
//
//   z     standard normal
//   z_90  half the width of an 80 % interval
class Uncertain {
 public:
  explicit Uncertain(const ScoreRange& range);
  double At(double z) const;
  // Its logarithm, in far less time and not to the last bit.
  double LogAt(double z) const;

 private:
  double value_;
  double log_value_;
  double below_;
  double above_;
};

// How far the errors of two devices of one kind go together in one question:
// the same formulas count the same kernels on both.
//
//   z = sqrt(c) z_kind + sqrt(1 - c) z_device
//
// The likeliest of five tables' choices between devices, each device or run left
// out: docs/results.py prints how likely others are, there and on tables that it
// was not chosen on (docs/results/choices.md).
inline constexpr double kSharedByKind = 0.8;

struct Contestant {
  std::string device;  // those of one device share its fit and err together
  std::string kind;    // those of one kind do in part
  ScoreRange score;    // the least wins
  // Figures that must not be above a limit: out of the contest where they are.
  std::vector<std::pair<ScoreRange, double>> limits;
};

struct Odds {
  double best = 0;    // of being the best of those that meet their limits
  double within = 0;  // of meeting them
};

// What is taken once something more is known.
struct Informed {
  double right = 0;  // the probability that it is the best
  // By how much its score is expected to be below that of what is taken now.
  double saved = 0;
};

// Draws of all figures, the same every time.
class Contest {
 public:
  // The first of equals wins.
  explicit Contest(const std::vector<Contestant>& contestants);

  std::vector<Odds> odds() const;

  // Were some contestants of one device measured, by something that shares the
  // error with them to a correlation rho:
  //
  //   s = rho z + sqrt(1 - rho^2) w    what it says;  w  standard normal
  //   x' = x(rho s)                    the figure then, E(z | s) = rho s
  //
  // the least x' would be taken: the share of draws in which it is the least x,
  // and the mean of what is saved by it. What it says of other devices of the
  // kind is left out. Source: the knowledge gradient, Frazier et al. 2008.
  // Check: tests/scenarios/job/contest_test.cc.
  Informed Measuring(size_t taken_now,
                     const std::vector<size_t>& measured,
                     double correlation) const;

 private:
  struct Limit {
    Limit(const ScoreRange& range, double at_most);
    Uncertain figure;
    double most;
    double log_most;
  };
  struct Entry {
    size_t device = 0;
    Uncertain score;
    std::vector<Limit> limits;
    bool IsWithin(double z) const;
  };
  // Every draw's z, device by device; `kinds`: the kind of each device.
  void DrawErrors(const std::vector<size_t>& kinds, size_t kind_count);
  // Who has the least score so far; nobody yet.
  struct Leader {
    std::optional<size_t> entry;
    double z = 0;  // its error
    double log_score = 0;
  };
  // Whether the score of one is less than that of the other.
  bool IsBetter(const Leader& one, const Leader& other) const;
  // Lets an entry that is within its limits lead where it is better, its error
  // being z.
  void Challenge(size_t entry, double z, Leader& leader) const;
  double ErrorOf(size_t draw, size_t entry) const {
    return errors_[draw * devices_ + entries_[entry].device];
  }

  std::vector<Entry> entries_;
  size_t devices_ = 0;
  std::vector<double> errors_;     // z, by draw and device
  std::vector<double> noises_;     // w, by draw
  std::vector<Leader> best_;       // by draw
  std::vector<int> times_within_;  // by entry
};

}  // namespace trainfare::scenarios
