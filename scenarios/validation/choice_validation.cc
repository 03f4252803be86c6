#include "scenarios/validation/choice_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "calibrate/records/statistics.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"

namespace trainfare::scenarios {
namespace {

// So little between two measurements decides nothing.
constexpr double kNearlyBest = 0.03;

// One device of a question.
struct Measured {
  std::vector<double> seconds;
  ScoreRange predicted;
};
using Devices = std::map<std::string, Measured>;

double MeasuredScore(const MeasuredChoice::Entry& entry) {
  return ToSeconds(entry.measured) * entry.price;
}

// Who is best as predicted, with what odds, and what that came to.
MeasuredChoice ChoiceOf(std::string question,
                        std::string_view objective,
                        const Devices& devices,
                        const std::map<std::string, double>& prices) {
  MeasuredChoice choice{std::move(question), objective, {}, 0};
  std::vector<Contestant> contestants;
  for (const auto& [device, measured] : devices) {
    const double price = prices.at(device);
    const ScoreRange& time = measured.predicted;
    choice.entries.push_back(
        {device,
         model::Second(calibrate::Median(measured.seconds)),
         time,
         price,
         0,
         false});
    const auto& of_catalog = hardware::DeviceCatalog::Shipped().Find(device);
    contestants.push_back(
        {device,
         std::string(hardware::ToText(of_catalog.kind)),
         {time.value * price, time.low * price, time.high * price},
         {}});
  }
  const std::vector<Odds> odds = Contest(contestants).odds();
  for (size_t i = 0; i < odds.size(); ++i) {
    choice.entries[i].best_probability = odds[i].best;
  }
  const auto best =
      std::min_element(choice.entries.begin(),
                       choice.entries.end(),
                       [](const auto& a, const auto& b) {
                         return MeasuredScore(a) < MeasuredScore(b);
                       });
  best->best = true;
  const double least = MeasuredScore(*best);
  std::stable_sort(choice.entries.begin(),
                   choice.entries.end(),
                   [](const auto& a, const auto& b) {
                     return a.predicted.value * a.price <
                            b.predicted.value * b.price;
                   });
  choice.regret = MeasuredScore(choice.entries.front()) / least - 1.0;
  return choice;
}

}  // namespace

DevicePrices ShippedDevicePrices() {
  const PriceOptions shipped;
  const Pricing pricing(shipped);
  DevicePrices prices;
  std::set<std::string> clouds;
  for (const hardware::Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    if (!instance.named_only.empty()) continue;
    const auto tariff = pricing.Of(instance, /*spot=*/false);
    if (!tariff) continue;
    clouds.insert(instance.cloud);
    const double price =
        ToDollarsPerHour(tariff->price) / static_cast<double>(instance.count);
    double& least =
        prices.of_device.emplace(instance.device, price).first->second;
    least = std::min(least, price);
  }
  prices.sources = SourcesOf(shipped, clouds);
  return prices;
}

std::vector<MeasuredChoice> ChoicesOf(
    const std::vector<MeasuredAnswer>& answers,
    const std::map<std::string, double>& prices) {
  std::map<std::string, Devices> questions;
  for (const MeasuredAnswer& answer : answers) {
    Measured& measured = questions[answer.question][answer.device];
    measured.seconds.push_back(ToSeconds(answer.measured));
    measured.predicted = answer.predicted;
  }
  std::vector<MeasuredChoice> choices;
  for (const auto& [question, devices] : questions) {
    if (devices.size() < 2) continue;
    std::map<std::string, double> alike;
    Devices priced;
    for (const auto& [device, measured] : devices) {
      alike[device] = 1.0;
      if (prices.contains(device)) priced[device] = measured;
    }
    choices.push_back(ChoiceOf(question, "time", devices, alike));
    if (priced.size() < 2) continue;
    choices.push_back(ChoiceOf(question, "cost", priced, prices));
  }
  return choices;
}

std::string ChoiceNote(const std::vector<MeasuredChoice>& choices) {
  if (choices.empty()) return "";
  double stated = 0;
  const auto count = [&](auto holds) {
    return std::count_if(choices.begin(), choices.end(), holds);
  };
  for (const MeasuredChoice& choice : choices) {
    stated += choice.entries.front().best_probability;
  }
  return fmt::format(
      "choices: of {} between devices by time or cost {} are the best as "
      "measured, {} or within 3 % of it; {:.1f} were expected to be the best",
      choices.size(),
      count([](const auto& c) { return c.entries.front().best; }),
      count([](const auto& c) { return c.regret <= kNearlyBest; }),
      stated);
}

}  // namespace trainfare::scenarios
