#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "calibrate/session/command.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/redrawn_line.h"

namespace trainfare::calibrate::internal {

// Notes and progress, as lines or as one line that is redrawn.
class ProgressLog {
 public:
  ProgressLog(Progress style, std::ostream& log)
      : style_(style), log_(log), line_(log) {}

  void Note(const std::string& text) {
    if (style_ == Progress::kNone) return;
    line_.Clear();
    log_ << "calibrate: " << hardware::OneLine(text) << std::endl;
  }
  // What must be seen even without progress.
  void Warn(const std::string& text) {
    line_.Clear();
    log_ << "calibrate: " << hardware::OneLine(text) << std::endl;
  }
  void Finished(const std::string& text) {
    if (style_ == Progress::kLines) Note(text);
  }
  void Redraw(double spent_s, double budget_s, const std::string& text) {
    if (style_ != Progress::kBar) return;
    constexpr int kWidth = 24;
    const double share = std::clamp(spent_s / budget_s, 0.0, 1.0);
    const int full = static_cast<int>(share * kWidth);
    line_.Draw(fmt::format("[{:#<{}}{:.<{}}] {:.0f} of {:.0f} s  {}",
                           "",
                           full,
                           "",
                           kWidth - full,
                           spent_s,
                           budget_s,
                           hardware::OneLine(text)));
  }

 private:
  Progress style_;
  std::ostream& log_;
  hardware::RedrawnLine line_;
};

}  // namespace trainfare::calibrate::internal
