#pragma once

// Whether the device that predictions choose is the one that measurements
// would: of questions that were measured on several devices.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "scenarios/job/contest.h"
#include "scenarios/job/pricing.h"

namespace trainfare::scenarios {

struct MeasuredAnswer {
  std::string question;  // all but the device
  std::string device;
  model::Seconds<> measured;
  ScoreRange predicted;  // seconds
};

struct MeasuredChoice {
  struct Entry {
    std::string device;
    model::Seconds<> measured;
    ScoreRange predicted;  // seconds
    double price = 1;      // of a device, an hour; 1 where time counts
    double best_probability = 0;
    bool best = false;  // as measured
  };
  std::string question;
  std::string_view objective;  // "time" or "cost"
  std::vector<Entry> entries;  // best first, as predicted
  // What the choice takes or costs more than the best, as measured.
  double regret = 0;
};

// Dollars of one device for an hour: of the instance that asks least for it.
struct DevicePrices {
  std::map<std::string, double> of_device;  // of which a price is known
  std::vector<PriceSource> sources;
};
DevicePrices ShippedDevicePrices();

// A choice by time of every question with several devices, and by cost of those
// that have a price. Of several measurements of one device the median counts;
// its prediction is one.
std::vector<MeasuredChoice> ChoicesOf(
    const std::vector<MeasuredAnswer>& answers,
    const std::map<std::string, double>& prices);

// How many are the best or nearly so, beside what was stated; empty: there are
// none.
std::string ChoiceNote(const std::vector<MeasuredChoice>& choices);

}  // namespace trainfare::scenarios
