#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "calibrate/session/options.h"
#include "hardware/files/progress_line.h"
#include "hardware/files/terminal.h"

namespace trainfare::calibrate::internal {

// Notes and progress, as lines or as one line that is redrawn.
class ProgressLog {
 public:
  ProgressLog(Progress style, std::ostream& log)
      : style_(style),
        log_(log),
        width_(hardware::TerminalWidth(STDERR_FILENO)),
        line_(log, style == Progress::kBar ? width_ : std::nullopt) {}

  void Note(const std::string& text) {
    if (style_ != Progress::kNone) Warn(text);
  }
  // What must be seen even without progress.
  void Warn(const std::string& text) {
    line_.Beside([&] {
      log_ << hardware::Wrapped("calibrate: " + text, width_, "  ")
           << std::flush;
    });
  }
  void Finished(const std::string& text) {
    if (style_ == Progress::kLines) Note(text);
  }
  // So much of the budget is spent, and on what.
  void Redraw(double spent_s, double budget_s, const std::string& text) {
    if (!begun_) line_.Begin(budget_s, "s of runs", spent_s);
    begun_ = true;
    line_.Set(spent_s, text);
  }
  hardware::ProgressLine& line() { return line_; }

 private:
  Progress style_;
  std::ostream& log_;
  std::optional<size_t> width_;
  hardware::ProgressLine line_;
  bool begun_ = false;
};

}  // namespace trainfare::calibrate::internal
