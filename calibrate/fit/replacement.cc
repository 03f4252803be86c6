#include "calibrate/fit/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "calibrate/fit/fit_file.h"
#include "calibrate/records/files.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/unwritten.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using hardware::Plural;
using model::InputError;

constexpr double kLeastSpanShare = 0.75;
constexpr double kLeastRunShare = 0.5;
// How many standard errors of their difference two left-out errors may be
// apart, and that of one times the root of the runs, relative.
constexpr double kChanceErrors = 2.0;
constexpr double kMedianError = 1.17;

std::optional<std::string> OtherDevice(const Fit& old, const Fit& candidate) {
  if (old.kind == candidate.kind && old.device == candidate.device &&
      old.reported_name == candidate.reported_name) {
    return std::nullopt;
  }
  const auto name = [](const Fit& fit) {
    return fit.reported_name.empty()
               ? fit.device
               : fmt::format("{} ({})", fit.device, fit.reported_name);
  };
  return fmt::format("it is of {}, not of {}", name(old), name(candidate));
}

// The share that [from, to] has of the span from `low` to `high`, in
// logarithms.
double ShareOfSpan(int64_t low, int64_t high, int64_t from, int64_t to) {
  const auto at = [](int64_t value) {
    return std::log(static_cast<double>(std::max<int64_t>(value, 1)));
  };
  const double common = at(std::min(high, to)) - at(std::max(low, from));
  if (low == high) return common < 0.0 ? 0.0 : 1.0;
  return std::max(common, 0.0) / (at(high) - at(low));
}

std::optional<std::string> LessSpan(const FittedRange& old,
                                    const FittedRange& candidate) {
  struct Span {
    const char* of;
    double share;
  };
  const Span spans[] = {{"tokens",
                         ShareOfSpan(old.min_tokens,
                                     old.max_tokens,
                                     candidate.min_tokens,
                                     candidate.max_tokens)},
                        {"lengths",
                         ShareOfSpan(old.min_sequence_length,
                                     old.max_sequence_length,
                                     candidate.min_sequence_length,
                                     candidate.max_sequence_length)},
                        {"parameters",
                         ShareOfSpan(old.min_parameters,
                                     old.max_parameters,
                                     candidate.min_parameters,
                                     candidate.max_parameters)}};
  for (const Span& span : spans) {
    if (span.share >= kLeastSpanShare) continue;
    return fmt::format("the new one's runs span {:.0f} % of its {}",
                       100.0 * span.share,
                       span.of);
  }
  return std::nullopt;
}

std::optional<std::string> LessCoverage(const Fit& old, const Fit& candidate) {
  const std::vector<std::string>& has = candidate.range.settings;
  for (const std::string& setting : old.range.settings) {
    if (std::find(has.begin(), has.end(), setting) == has.end()) {
      return fmt::format("the new one has no run of {}", setting);
    }
  }
  for (const RankFit& group : old.ranks) {
    const bool there =
        std::any_of(candidate.ranks.begin(),
                    candidate.ranks.end(),
                    [&](const RankFit& one) {
                      return one.network.ranks == group.network.ranks &&
                             one.backend == group.backend;
                    });
    if (!there) {
      return fmt::format("the new one knows nothing of {} ranks",
                         group.network.ranks);
    }
  }
  if (old.range.settings.empty()) return std::nullopt;
  return LessSpan(old.range, candidate.range);
}

// Below `share` of them.
std::optional<std::string> FewerRuns(const Provenance& old,
                                     const Provenance& candidate,
                                     double share) {
  const auto fewer = [share](int64_t before, int64_t now) {
    return static_cast<double>(now) < share * static_cast<double>(before);
  };
  if (fewer(old.runs, candidate.runs)) {
    return fmt::format(
        "it has {}, the new one {}", Plural(old.runs, "run"), candidate.runs);
  }
  if (fewer(old.kernels, candidate.kernels)) {
    return fmt::format("it has {} by themselves, the new one {}",
                       Plural(old.kernels, "kernel"),
                       candidate.kernels);
  }
  return std::nullopt;
}

std::optional<std::string> LargerError(const Fit& old, const Fit& candidate) {
  const std::optional<double> before = old.LeftOutError();
  const std::optional<double> now = candidate.LeftOutError();
  if (!before) return std::nullopt;
  if (!now) {
    return fmt::format("its left-out error is {:.1f} %, the new one has none",
                       100.0 * *before);
  }
  const double chance =
      kChanceErrors * kMedianError *
      std::sqrt(1.0 / static_cast<double>(old.provenance.runs) +
                1.0 / static_cast<double>(candidate.provenance.runs));
  if (*now <= *before * (1.0 + chance)) return std::nullopt;
  return fmt::format("its left-out error is {:.1f} %, the new one's {:.1f} %",
                     100.0 * *before,
                     100.0 * *now);
}

std::optional<std::string> TextAt(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  return hardware::ReadTextFile(path, "a fit");
}

// The file at `path` also by a name that is free, which is returned, so that
// there is one at `path` at any time.
std::string KeepBeside(const std::string& path) {
  std::string old = internal::FreeNameBeside(path);
  std::error_code error;
  fs::create_hard_link(path, old, error);
  // Not every file system has links.
  if (error) {
    error.clear();
    fs::copy_file(path, old, error);
  }
  if (error) hardware::RefuseUnwritten(old, error.value());
  return old;
}

}  // namespace

std::optional<std::string> WhyNotReplace(const Fit& old, const Fit& candidate) {
  if (auto why = OtherDevice(old, candidate)) return why;
  if (auto why = LessCoverage(old, candidate)) return why;
  if (auto why =
          FewerRuns(old.provenance, candidate.provenance, kLeastRunShare)) {
    return why;
  }
  return LargerError(old, candidate);
}

void RequireFitOrNone(const std::string& path) {
  const std::optional<std::string> text = TextAt(path);
  if (!text || text->empty() || IsFitText(*text)) return;
  throw InputError(
      fmt::format("{}: expected a new file, or a fit to replace; the one that "
                  "is there is none",
                  path));
}

Placed PlaceFit(const Fit& fit,
                const std::string& path,
                Replace replace,
                bool provisional) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    SaveFit(fit, path);
    return {path, "", true};
  }
  RequireFitOrNone(path);
  std::optional<Fit> old;
  std::string unreadable;
  try {
    old = LoadFit(path);
  } catch (const InputError& error) {
    unreadable = error.what();
  }
  std::optional<std::string> why;
  if (old && replace == Replace::kIfNotWorse) {
    why = WhyNotReplace(*old, fit);
    // What was broken off goes on later: until then there is no hurry.
    if (!why && provisional) {
      why = FewerRuns(old->provenance, fit.provenance, 1.0);
    }
  }
  if (why) {
    Placed placed{
        "", fmt::format("{}: the fit there is kept: {}", path, *why), false};
    if (provisional) return placed;
    placed.path = path + ".new";
    if (fs::exists(placed.path, ignored)) KeepBeside(placed.path);
    SaveFit(fit, placed.path);
    placed.note +=
        fmt::format("; the new one is {} (--force replaces it)", placed.path);
    return placed;
  }
  const std::string kept = KeepBeside(path);
  SaveFit(fit, path);
  if (!old) {
    return {path, fmt::format("{}; it is kept as {}", unreadable, kept), true};
  }
  return {path,
          fmt::format("{}: the fit of {} that was there is kept as {}",
                      path,
                      Plural(old->provenance.runs, "run"),
                      kept),
          true};
}

}  // namespace trainfare::calibrate
