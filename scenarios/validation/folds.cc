#include "scenarios/validation/folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;

// Of a device of so many rows each workload is left out by a fit of its own; of
// more, which tell no less without one, by what it weighs in a fit to all: fits
// and what each costs both grow with the rows.
constexpr size_t kMostRowsOfRefits = 250;

// What makes a model larger or smaller, whatever it is called and predicts.
std::string SizeOf(const model::Architecture& a) {
  return fmt::format("{}+{}x{}x{}x{}",
                     a.layers,
                     a.decoder_layers,
                     a.hidden,
                     a.heads,
                     a.intermediate);
}

// The folds of one device after the other.
class FoldMaker {
 public:
  FoldMaker(const ValidateOptions& options, SortedRows& sorted)
      : options_(options), sorted_(sorted) {}

  Folds Make() {
    for (size_t d = 0; d < sorted_.devices.size(); ++d) {
      AddFoldsOf(d, FittableRows(sorted_, sorted_.devices[d]));
    }
    return std::move(made_);
  }

 private:
  void AddFoldsOf(size_t d, const std::vector<size_t>& fittable) {
    switch (options_.protocol) {
      case Protocol::kInSample:
        made_.folds.push_back({d, fittable, sorted_.devices[d].rows});
        return;
      case Protocol::kLeaveOneOut:
        LeaveOneOut(d, fittable);
        return;
      case Protocol::kLeaveSourceOut:
        LeaveOut(d, fittable, [](const Observation& o) { return o.source; });
        return;
      case Protocol::kLeaveHostsOut:
        LeaveOut(d, fittable, [](const Observation& o) { return o.hosts; });
        return;
      case Protocol::kModelRuns:
        LeaveModelsOut(d, fittable);
        return;
      case Protocol::kRunsPerDevice:
        DrawRuns(d, fittable);
        return;
      case Protocol::kAsShipped:
      case Protocol::kAddedRuns:
      case Protocol::kLeaveDeviceOut:
        break;
    }
    ENSURE(false, "no fit to rows of the device");
  }

  void LeaveOneOut(size_t d, const std::vector<size_t>& fittable) {
    std::map<std::string, std::vector<size_t>> works;
    for (const size_t row : sorted_.devices[d].rows) {
      works[sorted_.rows[row].work].push_back(row);
    }
    if (fittable.size() > kMostRowsOfRefits) {
      ManyWorks& many = made_.many_works.emplace_back();
      many.device = d;
      many.fit_to = fittable;
      for (auto& [work, members] : works) {
        many.works.push_back(std::move(members));
      }
      return;
    }
    for (const auto& [work, members] : works) {
      Fold fold{d, {}, members};
      for (const size_t row : fittable) {
        if (sorted_.rows[row].work != work) fold.fit_to.push_back(row);
      }
      made_.folds.push_back(std::move(fold));
    }
  }

  // Rows alike in a key are left out together: a fold for each key.
  template <class KeyOf>
  void LeaveOut(size_t d,
                const std::vector<size_t>& fittable,
                const KeyOf& key_of) {
    const auto key = [&](size_t row) {
      return key_of(*sorted_.rows[row].observation);
    };
    std::map<decltype(key(0)), Fold> by_key;
    for (const size_t row : sorted_.devices[d].rows) {
      by_key[key(row)].predict.push_back(row);
    }
    for (auto& [left_out, fold] : by_key) {
      fold.device = d;
      for (const size_t row : fittable) {
        if (key(row) != left_out) fold.fit_to.push_back(row);
      }
      made_.folds.push_back(std::move(fold));
    }
  }

  // Of a model that is left out some rows are drawn back in, where others of
  // the device are there beside them.
  void LeaveModelsOut(size_t d, const std::vector<size_t>& fittable) {
    const size_t first = made_.folds.size();
    LeaveOut(d, fittable, [](const Observation& o) {
      return SizeOf(o.workload.architecture);
    });
    const std::set<size_t> usable(fittable.begin(), fittable.end());
    for (size_t i = first; i < made_.folds.size(); ++i) {
      Fold& fold = made_.folds[i];
      if (fold.fit_to.empty()) continue;
      std::vector<size_t> own;
      for (const size_t row : fold.predict) {
        if (usable.contains(row)) own.push_back(row);
      }
      MoveDrawn(own, fold);
    }
  }

  void DrawRuns(size_t d, const std::vector<size_t>& fittable) {
    Fold fold{d, {}, sorted_.devices[d].rows};
    MoveDrawn(fittable, fold);
    made_.folds.push_back(std::move(fold));
  }

  // What a draw from some rows takes is fitted to and not predicted.
  void MoveDrawn(const std::vector<size_t>& from, Fold& fold) {
    const std::set<std::string> drawn =
        DrawnPoints(options_, sorted_, sorted_.devices[fold.device], from);
    std::vector<size_t> left;
    for (const size_t row : fold.predict) {
      if (drawn.contains(sorted_.rows[row].point)) {
        sorted_.rows[row].fitted = true;
        fold.fit_to.push_back(row);
      } else {
        left.push_back(row);
      }
    }
    fold.predict = std::move(left);
  }

  const ValidateOptions& options_;
  SortedRows& sorted_;
  Folds made_;
};

}  // namespace

Folds FoldsOf(const ValidateOptions& options, SortedRows& sorted) {
  return FoldMaker(options, sorted).Make();
}

std::set<std::string> DrawnPoints(const ValidateOptions& options,
                                  const SortedRows& sorted,
                                  const DeviceRows& of_device,
                                  const std::vector<size_t>& rows) {
  std::set<std::string> distinct;
  for (const size_t row : rows) distinct.insert(sorted.rows[row].point);
  std::vector<std::string> points(distinct.begin(), distinct.end());
  // Seeds come of the device's own name, so that another file changes no draw.
  std::seed_seq seeds(of_device.device.name.begin(),
                      of_device.device.name.end());
  std::mt19937_64 random(seeds);
  random.discard(options.seed);
  for (size_t i = points.size(); i > 1; --i) {
    // Not std::shuffle: its draws differ between standard libraries.
    std::swap(points[i - 1], points[random() % i]);
  }
  points.resize(
      std::min(points.size(), static_cast<size_t>(options.drawn_runs)));
  return {points.begin(), points.end()};
}

const char* NothingToFitTo(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLeaveOneOut:
      return "nothing else was measured on such devices";
    case Protocol::kLeaveSourceOut:
      return "nobody else measured such devices";
    case Protocol::kLeaveHostsOut:
      return "such devices were measured on this number of hosts alone";
    case Protocol::kModelRuns:
      return "no model of another size was measured on such devices";
    default:
      return "no row of such devices to fit to";
  }
}

}  // namespace trainfare::scenarios
