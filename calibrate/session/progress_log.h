#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "calibrate/session/command.h"
#include "hardware/files/foreign_text.h"

namespace trainfare::calibrate::internal {

// Notes and progress, as lines or as one line that is redrawn.
class ProgressLog {
 public:
  ProgressLog(Progress style, std::ostream& log) : style_(style), log_(log) {}
  ~ProgressLog() { Clear(); }
  ProgressLog(const ProgressLog&) = delete;
  ProgressLog& operator=(const ProgressLog&) = delete;

  void Note(const std::string& text) {
    if (style_ == Progress::kNone) return;
    Clear();
    log_ << "calibrate: " << hardware::OneLine(text) << std::endl;
  }
  // What must be seen even without progress.
  void Warn(const std::string& text) {
    Clear();
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
    std::string line = fmt::format("[{:#<{}}{:.<{}}] {:.0f} of {:.0f} s  {}",
                                   "",
                                   full,
                                   "",
                                   kWidth - full,
                                   spent_s,
                                   budget_s,
                                   hardware::OneLine(text));
    constexpr size_t kMost = 79;
    line = hardware::CutToWidth(line, kMost);
    const size_t width = hardware::DisplayWidth(line);
    const size_t rest = drawn_ > width ? drawn_ - width : 0;
    log_ << '\r' << line << std::string(rest, ' ') << std::flush;
    drawn_ = width;
  }

 private:
  void Clear() {
    if (drawn_ == 0) return;
    log_ << '\r' << std::string(drawn_, ' ') << '\r' << std::flush;
    drawn_ = 0;
  }

  Progress style_;
  std::ostream& log_;
  size_t drawn_ = 0;
};

}  // namespace trainfare::calibrate::internal
