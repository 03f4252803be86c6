#include "scenarios/commands/target_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "hardware/files/unit_text.h"
#include "scenarios/commands/job_notes.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatTime;

// The links that the ranks were measured over.
std::string RingLine(const PredictionTarget& target,
                     const calibrate::RankFit& ranks) {
  const calibrate::RingFit& ring = ranks.network.alone;
  std::string line = fmt::format(
      "data parallel over {}: {}, ring step {}, link {} +- {:.0f} %, by fit "
      "{}",
      ranks.backend.empty() ? "a measured ring" : ranks.backend,
      ranks.transport.empty() ? "transport not said" : ranks.transport,
      FormatTime(ring.ring.step_latency),
      hardware::FormatBandwidth(ring.ring.link),
      100.0 * ring.link_error,
      target.fit_name);
  if (!target.cluster.measured()) {
    line += fmt::format("; measured over {} ranks{}, not {}",
                        target.cluster.measured_ranks,
                        target.cluster.hosts > 1 ? " of one host" : "",
                        target.cluster.devices);
  }
  if (ranks.ranks_per_device > 1) {
    line += fmt::format("; all on one processor, {:.2f} of its speed each",
                        ranks.share);
  }
  return line;
}

// What the answer has of what its devices send each other, and whence.
void AddExchangeNote(const PredictionTarget& target, std::vector<Note>& notes) {
  if (const auto& ranks = target.cluster.ranks) {
    notes.push_back(RingLine(target, *ranks));
  } else if (target.cluster.racks == 1 &&
             target.predictor.HasExchangeOf(target.cluster.devices)) {
    notes.push_back(fmt::format(
        "what {} devices that share no state send each other is in the steps "
        "that made fit {}, which went over several; it is not added again",
        target.cluster.devices,
        target.fit_name));
  } else if (target.cluster.link) {
    notes.push_back(fmt::format(
        "data parallel over {}: link from its datasheet, not measured",
        target.cluster.link->name));
  }
}

}  // namespace

void AddFitNotes(const PredictionTarget& target, std::vector<Note>& notes) {
  const int64_t figures = target.predictor.fit().provenance.observations;
  if (!target.fit_name.empty() && figures <= calibrate::kFewFigures) {
    notes.emplace_back(
        fmt::format("fit {} rests on {}: the interval is of its priors more "
                    "than of measurements",
                    target.fit_name,
                    hardware::Plural(figures, "published figure")),
        Caution::kFitOfFewFigures);
  }
}

void AddLinkNotes(const PredictionTarget& target, std::vector<Note>& notes) {
  AddExchangeNote(target, notes);
  if (target.cluster.network && target.cluster.network->named) {
    notes.push_back(NetworkWords(target.cluster) + ", not measured");
  }
  if (target.cluster.devices_per_chip > 1) {
    notes.push_back(fmt::format(
        "{} parts of each {}: what they send each other is in the "
        "step of one{}",
        target.cluster.devices_per_chip,
        target.cluster.chip,
        target.cluster.link
            ? fmt::format("; {} chips are linked", target.cluster.chips())
            : ""));
  }
}

void AddPriceNotes(const PredictionTarget& target,
                   const std::vector<JobEstimate>& jobs,
                   bool spot,
                   std::vector<Note>& notes) {
  if (target.instance != nullptr && !target.instance->named_only.empty()) {
    notes.push_back(NamedCloudNote(*target.instance));
  }
  if (target.instance != nullptr && !target.tariff) {
    notes.emplace_back(fmt::format("no {}price of {} is known",
                                   spot ? "spot " : "",
                                   target.instance->FullName()),
                       Caution::kPriceUnknown);
  }
  if (target.tariff) {
    std::string line = fmt::format("price: {}", Describe(*target.tariff));
    if (std::any_of(jobs.begin(), jobs.end(), [&](const JobEstimate& job) {
          return BillingCounts(job, *target.tariff);
        })) {
      line += fmt::format(", billed {}", BillingWords(target.tariff->billing));
    }
    if (!target.tariff->excludes.empty()) {
      line += fmt::format("; excludes {}",
                          fmt::join(target.tariff->excludes, ", "));
    }
    notes.push_back(line);
    if (!target.tariff->caution.empty()) {
      notes.emplace_back(fmt::format("price: {}", target.tariff->caution),
                         Caution::kPriceDoubtful);
    }
    if (target.tariff->spot) {
      notes.emplace_back("work lost to spot interruptions is not counted");
    }
  }
}

}  // namespace trainfare::scenarios
